"""Reads the arguments of a call strictly: what is not a JSON object is told to the model, never repaired."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

import msgspec

from leadline.core.llm.jsonvalue import JsonObject, JsonValue

_EXCERPT = 24


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call: a JSON object that nobody can change."""

    text: str
    """The object as canonical JSON: keys sorted, no blanks. What is approved, and what is executed."""

    value: JsonObject
    """The same, as mappings and tuples that cannot be written to."""

    def fresh(self) -> dict[str, object]:
        """A plain copy of one's own."""
        return cast("dict[str, object]", json.loads(self.text))


@dataclass(frozen=True)
class BadArguments:
    """Arguments that cannot be used."""

    problem: str
    """What is wrong, where, and what to send instead; written for the model."""


NO_ARGUMENTS = Arguments("{}", MappingProxyType({}))


class _NotStrict(ValueError):
    """Something Python's reader takes and JSON does not have."""


def parse_arguments(raw: str | None) -> Arguments | BadArguments:
    """The arguments in `raw`; nothing, blanks and null count as an empty object.

    Of a key that occurs twice the last one holds.
    """
    if raw is None or raw.strip() in ("", "null"):
        return NO_ARGUMENTS
    try:
        value: object = _STRICT.decode(raw)
    except json.JSONDecodeError as error:
        return BadArguments(_not_json(raw, error))
    except RecursionError:
        return BadArguments("The arguments are nested too deeply. Send a flatter JSON object.")
    except ValueError as error:
        return BadArguments(f"The arguments are not valid JSON: {error}. Send one JSON object.")
    if not isinstance(value, dict):
        found = _kind(value)
        return BadArguments(
            f'The arguments are {found}, not an object. Send one JSON object, such as {{"name": "value"}}.'
        )
    return of_object(cast("dict[str, object]", value))


def of_object(value: JsonObject) -> Arguments | BadArguments:
    """The same for arguments that a program made."""
    try:
        text = msgspec.json.encode(dict(value), order="deterministic").decode()
        return Arguments(text, cast("JsonObject", _frozen(msgspec.json.decode(text))))
    except (TypeError, OverflowError, RecursionError) as error:
        return BadArguments(f"The arguments cannot be written as JSON: {error}.")
    except UnicodeEncodeError:
        return BadArguments(
            r"The arguments hold half a surrogate pair (\ud800 to \udfff), which is not a character. "
            "Send the character itself."
        )


def _no_constant(name: str) -> object:
    raise _NotStrict(f"{name} is not a JSON value; use null or a number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _NotStrict(f"the number {text[:40]} is too large")
    return number


_STRICT = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)


def _frozen(value: object) -> object:
    if isinstance(value, dict):
        members = cast("Mapping[str, object]", value)
        return MappingProxyType({key: _frozen(member) for key, member in members.items()})
    if isinstance(value, list):
        return tuple(_frozen(member) for member in cast("Sequence[JsonValue]", value))
    return value


def _not_json(raw: str, error: json.JSONDecodeError) -> str:
    before = json.dumps(raw[max(0, error.pos - _EXCERPT) : error.pos], ensure_ascii=False)[1:-1]
    behind = json.dumps(raw[error.pos : error.pos + _EXCERPT], ensure_ascii=False)[1:-1]
    return (
        f"The arguments are not valid JSON: {error.msg} at line {error.lineno}, column {error.colno} "
        f"(character {error.pos} of {len(raw)}), here: {before}⟨HERE⟩{behind}\n{_advice(raw, error)}"
    )


def _advice(raw: str, error: json.JSONDecodeError) -> str:
    if "escape" in error.msg:
        return (
            "Send the whole call again. Inside a JSON string a backslash is written twice: "
            r"\\alpha, not \alpha; C:\\data, not C:\data."
        )
    if error.msg.startswith("Unterminated") or error.pos >= len(raw.rstrip()):
        return (
            "The text ends before the object does, as when an answer was cut off. Send the whole call "
            "again; if its content is long, send less at a time."
        )
    if "control character" in error.msg:
        return r"Send the whole call again. Inside a JSON string a line break is written \n and a tab \t."
    if error.msg.startswith("Extra data"):
        return "Send the whole call again: one JSON object, with nothing behind it."
    return (
        "Send the whole call again as one JSON object: keys and texts in double quotes, "
        "no comments, no comma after the last member."
    )


def _kind(value: object) -> str:
    if isinstance(value, str):
        return "a text"
    if isinstance(value, bool):
        return "true or false"
    return "a list" if isinstance(value, list) else "a number"
