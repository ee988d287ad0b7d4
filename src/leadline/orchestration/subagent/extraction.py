"""Reads one JSON object out of a model's message, without guessing.

Three readings are tried, in this order: the whole message is JSON; the whole message is one
Markdown fence around JSON; the message is prose around exactly one top-level object. Nothing is
repaired: a missing bracket, a second object or a value no other program could read is told as a
problem.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import msgspec

if TYPE_CHECKING:
    from leadline.core.llm.jsonvalue import JsonValue

_WHOLE_FENCE = re.compile(r"\A(`{3,}|~{3,})[ \t]*[\w+-]*[ \t]*\r?\n(.*?)\r?\n?[ \t]*\1[ \t]*\Z", re.DOTALL)
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Extracted:
    """The value that the message holds."""

    value: JsonValue


@dataclass(frozen=True)
class NotExtracted:
    """Why no value could be read; `problem` is written for the model."""

    problem: str


def extract_json(text: str) -> Extracted | NotExtracted:
    """The JSON value of a message: see the module for the readings that are tried."""
    stripped = text.strip()
    if not stripped:
        return NotExtracted("the message is empty")
    whole = _strict(stripped)
    if isinstance(whole, Extracted):
        return whole
    fence = _WHOLE_FENCE.match(stripped)
    if fence is not None:
        inner = _strict(fence.group(2).strip())
        if isinstance(inner, Extracted):
            return inner
        stripped = fence.group(2).strip()
    return _only_object(stripped)


def _strict(text: str) -> Extracted | NotExtracted:
    try:
        return Extracted(cast("JsonValue", msgspec.json.decode(text)))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return NotExtracted(f"the JSON cannot be read: {error}")


def _only_object(text: str) -> Extracted | NotExtracted:
    found, problem = _top_level_objects(text)
    if len(found) > 1:
        return NotExtracted(f"the message holds {len(found)} JSON objects; send exactly one")
    if found:
        return _strict(found[0])
    return NotExtracted(problem or "the message holds no JSON object")


def _top_level_objects(text: str) -> tuple[list[str], str]:
    """Every object that is not inside another one, and what stopped the last attempt."""
    found: list[str] = []
    problem = ""
    at = text.find("{")
    while at != -1:
        try:
            _, end = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            # Going on behind the error, not behind the bracket: what lies between is part of a
            # broken object, and an object inside it is not the answer.
            problem = f"the JSON cannot be read: {error.msg} at character {error.pos - at}"
            end = max(error.pos, at + 1)
        except RecursionError:
            return found, "the JSON is nested too deeply"
        else:
            found.append(text[at:end])
        at = text.find("{", end)
    return found, problem
