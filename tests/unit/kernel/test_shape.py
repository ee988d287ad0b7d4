"""The kernel stays small, and stands on the standard library and anyio."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import leadline.kernel

FOLDER = Path(leadline.kernel.__file__ or "").parent
SILENT = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


def sources() -> Iterator[tuple[Path, str]]:
    for path in sorted(FOLDER.rglob("*.py")):
        yield path.relative_to(FOLDER), path.read_text(encoding="utf-8")


def imported(text: str) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add(node.module or "")
    return names


def code_lines(text: str) -> int:
    """Lines with code on them: neither blank, nor comment, nor docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def test_the_kernel_imports_the_standard_library_and_anyio_and_yaml_in_the_loader_alone() -> None:
    for path, text in sources():
        allowed = {"anyio", *sys.stdlib_module_names} | ({"yaml"} if path.parts[0] == "loader" else set())
        for name in imported(text):
            assert name.startswith("leadline.kernel.") or name.partition(".")[0] in allowed, (path, name)


def test_the_kernel_does_not_import_its_loader() -> None:
    for path, text in sources():
        if path.parts[0] != "loader":
            assert not any(name.startswith("leadline.kernel.loader") for name in imported(text)), path


def test_the_environment_is_read_in_one_module() -> None:
    readers = [str(path) for path, text in sources() if "environ" in text and "os" in imported(text)]
    assert readers == ["loader/interpolate.py"]


def test_the_kernel_is_at_most_two_thousand_lines_of_code() -> None:
    assert sum(code_lines(text) for _, text in sources()) <= 2_000
