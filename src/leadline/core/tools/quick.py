"""Says at once of most values that they fit a JSON Schema, which a whole validator takes twenty times as long for.

It knows the usual part of draft 2020-12. A yes is a yes; anything else says nothing, and the validator is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

Check: TypeAlias = Callable[[object], bool]
"""Whether a value, as decoded from JSON, fits for certain."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_SAYS_NOTHING = frozenset(
    (
        "$comment",
        "default",
        "deprecated",
        "description",
        "examples",
        "format",
        "readOnly",
        "title",
        "writeOnly",
    )
)
"""Keywords that refuse no value, `format` included: a validator takes it as a remark."""


def quick_check(schema: object) -> Check | None:
    """What tells of values that they fit `schema`, a valid one; None where it says something that is not known here."""
    if not isinstance(schema, Mapping):
        return None
    rules = {
        name: rule for name, rule in cast("Mapping[str, object]", schema).items() if name not in _SAYS_NOTHING
    }
    match rules.pop("type", None):
        case "object":
            return _object(rules)
        case "array":
            return _array(rules)
        case str() as name if name in _TYPES:
            return _plain(_TYPES[name], rules)
        case _:
            return None


def _plain(types: tuple[type, ...], rules: Mapping[str, object]) -> Check | None:
    words = rules.get("enum")
    if not rules:
        return lambda value: type(value) in types
    if len(rules) > 1 or types != (str,) or not isinstance(words, list):
        return None
    known = frozenset(word for word in cast("list[object]", words) if isinstance(word, str))
    return lambda value: type(value) is str and value in known


def _array(rules: Mapping[str, object]) -> Check | None:
    if not rules:
        return lambda value: type(value) is list
    item = quick_check(rules.get("items")) if len(rules) == 1 else None
    if item is None:
        return None
    return lambda value: type(value) is list and all(map(item, cast("list[object]", value)))


def _object(rules: dict[str, object]) -> Check | None:
    properties = cast("Mapping[str, object]", rules.pop("properties", {}))
    required = frozenset(cast("list[str]", rules.pop("required", [])))
    others = rules.pop("additionalProperties", True)
    if rules or not isinstance(others, bool):
        return None
    members: dict[str, Check] = {}
    for name, rule in properties.items():
        member = quick_check(rule)
        if member is None:
            return None
        members[name] = member

    def fits(value: object) -> bool:
        if type(value) is not dict:
            return False
        given = cast("dict[str, object]", value)
        if not required <= given.keys():
            return False
        for name, it in given.items():
            member = members.get(name)
            if member is None:
                if not others:
                    return False
            elif not member(it):
                return False
        return True

    return fits
