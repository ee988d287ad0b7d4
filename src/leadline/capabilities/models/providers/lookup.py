"""Reading JSON that a provider sent, whatever it really sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast


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
    """``value`` if it is a count of something; a boolean is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value >= 0 and value == int(value) else None


def at(value: object, path: str) -> object:
    """What stands at a dotted path; None when nothing does. A number picks from an array."""
    for step in path.split("."):
        if isinstance(value, list):
            items = as_list(cast("object", value))
            value = items[int(step)] if step.isdecimal() and int(step) < len(items) else None
        else:
            value = as_object(value).get(step)
    return value


def first_count(value: object, paths: Iterable[str]) -> int | None:
    """The first count that stands at one of ``paths``."""
    return next((count for path in paths if (count := as_count(at(value, path))) is not None), None)
