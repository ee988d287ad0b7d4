"""The shape of the code: bounded sizes, a first line for every module, no attics."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "leadline"
MODULES = sorted(SOURCE.rglob("*.py"))

MAX_FUNCTION, MAX_CLASS, MAX_FILE, MAX_INIT = 80, 400, 600, 40
EXCEPTIONS: dict[str, str] = {}
"""`path` or `path:name` -> the reason why it may be larger. This list may only shrink."""

ATTICS = {"utils", "util", "helpers", "common", "manager", "managers", "base", "misc", "types"}


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _too_large() -> Iterator[str]:
    for path in MODULES:
        name, text = str(path.relative_to(SOURCE)), path.read_text(encoding="utf-8")
        limit = MAX_INIT if path.name == "__init__.py" else MAX_FILE
        if len(text.splitlines()) > limit:
            yield name
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _lines(node) > MAX_FUNCTION:
                yield f"{name}:{node.name}"
            if isinstance(node, ast.ClassDef) and _lines(node) > MAX_CLASS:
                yield f"{name}:{node.name}"


def test_no_function_class_or_file_outgrows_its_bound() -> None:
    assert set(_too_large()) == set(EXCEPTIONS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_module_begins_with_its_job(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring
    assert docstring.splitlines()[0].endswith((".", "?", "!", ":")), "the first line is a sentence"


def test_there_is_no_attic() -> None:
    assert not [path for path in MODULES if path.stem in ATTICS or path.parent.name in ATTICS]


def test_nothing_is_nested_deeper_than_four_packages() -> None:
    assert not [path for path in MODULES if len(path.relative_to(SOURCE).parts) > 4]
