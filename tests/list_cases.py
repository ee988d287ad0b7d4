"""List which recorded failures (`*.jsonl` with an `id` a line) a test covers, and which none does."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent


def marked_cases(folder: Path) -> dict[str, list[str]]:
    """Case id -> the tests that carry its mark."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        for name, case in _marks(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(case, []).append(f"{path.relative_to(folder)}::{name}")
    return found


def _marks(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for mark in node.decorator_list:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.case":
                for argument in mark.args:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        yield node.name, argument.value


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print("usage: make cases CASES=DIR   (DIR holds *.jsonl files, one case a line)", file=sys.stderr)
        return 2
    covered = marked_cases(TESTS)
    for path in sorted(Path(arguments[0]).glob("*.jsonl")):
        cases = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        hit = [case for case in cases if case["id"] in covered]
        print(f"{path.name}: {len(hit)} of {len(cases)} covered")
        for case in cases:
            tests = covered.get(case["id"], [])
            print(
                f"  {case['id']} {'covered   ' + ', '.join(tests) if tests else 'uncovered ' + case['symptom']}"
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
