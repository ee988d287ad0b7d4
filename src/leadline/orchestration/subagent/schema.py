"""Checks the JSON Schema a caller asks a child to answer in, and values against it.

The schema is asserted first and copied then, so that a hostile value fails as a schema error and
a later change of the caller's dictionary cannot move the goal posts. The copy is a JSON Schema of
draft 2020-12 with an object at its root, references inside itself only, and usable patterns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

from leadline.core.tools.shape import breach
from leadline.orchestration.subagent.errors import OutputSchemaError
from leadline.orchestration.subagent.references import reference_problems

if TYPE_CHECKING:
    from leadline.core.llm.jsonvalue import JsonObject, JsonValue

MAX_PROBLEMS = 20
MAX_PROBLEM_CHARS = 300
MAX_DEPTH = 64


class _Violation(Protocol):
    @property
    def json_path(self) -> str: ...
    @property
    def message(self) -> str: ...


class _Checker(Protocol):
    def iter_errors(self, instance: object) -> Iterable[_Violation]: ...


class OutputSchema:
    """A schema that has been asserted and copied; `problems(value)` lists every violation."""

    def __init__(self, schema: JsonObject, *, asserted_before: bool = False) -> None:
        """Assert and copy.

        Args:
            schema: what the answer is held to.
            asserted_before: a child was asked by this schema already, and now goes on. It is not held against the
                rules of draft 2020-12 again: loading them takes as long as all else that resuming does.

        Raises:
            OutputSchemaError: listing all that is wrong with the schema.
        """
        problems: list[str] = []
        plain = _plain(schema, "$", 0, problems)
        if not problems:
            problems += _root_problems(plain)
            if not asserted_before:
                problems += _meta_problems(plain) or reference_problems(plain)
        if problems:
            raise OutputSchemaError(problems)
        self.schema: JsonObject = cast("JsonObject", plain)

    @cached_property
    def _checker(self) -> _Checker:
        return _checker(cast("dict[str, object]", self.schema))

    def problems(self, value: JsonValue) -> tuple[str, ...]:
        """What is wrong with the value, each with the place; empty where it holds."""
        try:
            errors = sorted(self._checker.iter_errors(value), key=lambda error: error.json_path)
        except RecursionError:
            return ("$: the value is nested too deeply",)
        return listed(f"{error.json_path}: {error.message}" for error in errors)


def _checker(schema: dict[str, object]) -> _Checker:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - 20 ms of modules that most runs do not need

    made = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    return cast("_Checker", made)


def listed(problems: Iterable[str]) -> tuple[str, ...]:
    """The problems cut to what a model can use: short lines, a bounded number, the rest counted."""
    every = [_short(problem) for problem in problems]
    if len(every) <= MAX_PROBLEMS:
        return tuple(every)
    return (*every[:MAX_PROBLEMS], f"and {len(every) - MAX_PROBLEMS} more")


def _short(text: str) -> str:
    return text if len(text) <= MAX_PROBLEM_CHARS else text[: MAX_PROBLEM_CHARS - 1] + "…"


def _plain(node: object, path: str, depth: int, problems: list[str]) -> object:
    """A copy of plain JSON; what is not JSON is told in `problems`."""
    if len(problems) >= MAX_PROBLEMS:
        return None
    if depth > MAX_DEPTH:
        problems.append(f"{path}: nested deeper than {MAX_DEPTH} levels")
    elif isinstance(node, Mapping):
        copy: dict[str, object] = {}
        for key, value in cast("Mapping[object, object]", node).items():
            if isinstance(key, str):
                problems += _keyword_problems(key, value, path)
                copy[key] = _plain(value, f"{path}.{key}", depth + 1, problems)
            else:
                problems.append(f"{path}: the key {key!r} is not text")
        return copy
    elif isinstance(node, list | tuple):
        items = cast("Sequence[object]", node)
        return [_plain(item, f"{path}[{at}]", depth + 1, problems) for at, item in enumerate(items)]
    elif isinstance(node, float) and not isfinite(node):
        problems.append(f"{path}: {node} is not a JSON number")
    elif node is not None and not isinstance(node, str | int | float | bool):
        problems.append(f"{path}: {type(node).__name__} is not JSON")
    return node


def _keyword_problems(key: str, value: object, path: str) -> list[str]:
    if key in ("$ref", "$dynamicRef") and isinstance(value, str) and not value.startswith("#"):
        return [f"{path}.{key}: {value} points outside the schema; write the definition into $defs"]
    if key == "pattern" and isinstance(value, str):
        try:
            re.compile(value)
        except re.error as error:
            return [f"{path}.pattern: {value!r} is not a usable pattern: {error}"]
    return []


def _root_problems(plain: object) -> list[str]:
    if not isinstance(plain, dict):
        return ["$: the schema must be an object"]
    if cast("dict[str, object]", plain).get("type") != "object":
        return ['$.type: must be "object": what a tool is called with is an object']
    return []


def _meta_problems(plain: object) -> list[str]:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - 20 ms of modules that most runs do not need

    if not isinstance(plain, dict) or breach(msgspec.json.encode(plain)) is None:
        return []
    meta = _checker(cast("dict[str, object]", Draft202012Validator.META_SCHEMA))
    errors = sorted(meta.iter_errors(cast("object", plain)), key=lambda error: error.json_path)
    return list(listed(dict.fromkeys(f"{error.json_path}: {error.message}" for error in errors)))
