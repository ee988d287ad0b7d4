"""Reading JSON that a provider sent, whatever it really sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import cast

import msgspec

_ESCAPE = re.compile(
    r"""
    \\u[dD][89abAB][0-9a-fA-F]{2} \\u[dD][c-fC-F][0-9a-fA-F]{2}    # a whole character
    | (?P<ends>\\u[dD][89abAB][0-9a-fA-F]{2}(?="))               # its first half, at the end of a text
    | (?P<begins>(?<=")\\u[dD][c-fC-F][0-9a-fA-F]{2})            # its second half, at the beginning of one
    | (?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})
    | \\.
    """,
    re.VERBOSE | re.DOTALL,
)
_LONGEST_COUNT = 20


class JsonReader:
    """Reads the JSON texts of one reply, and forgives what is no reason to lose it.

    A byte order mark, NaN and infinities are passed over. Where a character was cut in two between two
    texts, its halves are put together; a half without the other is lost.
    """

    def __init__(self) -> None:
        self._half = ""

    def read(self, data: str | bytes) -> object:
        """What ``data`` says.

        Raises:
            ValueError: it is not JSON, or nested too deeply.
        """
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            text = data if isinstance(data, str) else data.decode("utf-8", "replace")
        try:
            return json.loads(_ESCAPE.sub(self._mended, text.removeprefix("\ufeff")))
        except RecursionError:
            raise ValueError("nested too deeply") from None

    def _mended(self, found: re.Match[str]) -> str:
        if found["ends"]:
            self._half = found["ends"]
            return ""
        if found["begins"] and self._half:
            half, self._half = self._half, ""
            return half + found["begins"]
        return r"\ufffd" if found["begins"] or found["half"] else found.group()


def as_object(value: object) -> Mapping[str, object]:
    """``value`` if it is an object, else an empty one."""
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> Sequence[object]:
    """``value`` if it is an array, else an empty one."""
    return cast("Sequence[object]", value) if isinstance(value, list) else ()


def as_text(value: object) -> str:
    """``value`` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int | None:
    """``value`` if it is a count of something, also one written as a text; a boolean is none."""
    if value is None:
        return None
    if type(value) is int:
        return value if value >= 0 else None
    if isinstance(value, str):
        return int(value) if value.isdecimal() and len(value) < _LONGEST_COUNT else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return int(value) if value >= 0 and value == int(value) else None


def at(value: object, path: str) -> object:
    """What stands at a dotted path; None when nothing does. A number picks from an array."""
    if "." not in path and isinstance(value, dict):
        return cast("Mapping[str, object]", value).get(path)
    for step in path.split("."):
        if isinstance(value, list):
            items = as_list(cast("object", value))
            value = items[int(step)] if step.isdecimal() and int(step) < len(items) else None
        else:
            value = as_object(value).get(step)
    return value


def first_count(value: object, paths: Iterable[str]) -> int | None:
    """The first count that stands at one of ``paths``."""
    for path in paths:
        count = as_count(at(value, path))
        if count is not None:
            return count
    return None
