"""JSON Schemas in few words, for a model that reads its tools as text.

The notation is that of type declarations, which models know: ``{name: string, limit?: integer(1..50)}``. What it
has no words for is written as the JSON Schema that it is, so that nothing is lost. Pure: the same schema always
gives the same text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import cast

from leadline.capabilities.models.providers.provider_json import as_list, as_object, as_text
from leadline.core.llm.wire import encode_text


class _Endless(Exception):
    """A schema that refers to itself."""


_NAMED_FROM = 80
"""A part that is written more than once and has so many characters gets a name."""
_DEEPEST = 40
_PLAIN = frozenset(("string", "number", "integer", "boolean", "null"))
_SILENT = frozenset(
    ("title", "description", "$schema", "$defs", "definitions", "examples", "additionalProperties")
)
_SAID: Mapping[str, frozenset[str]] = {
    "object": frozenset(("type", "properties", "required")),
    "array": frozenset(("type", "items", "minItems", "maxItems")),
    "string": frozenset(("type", "enum", "const", "default", "minLength", "maxLength", "pattern")),
    "number": frozenset(("type", "enum", "const", "default", "minimum", "maximum")),
    "integer": frozenset(("type", "enum", "const", "default", "minimum", "maximum")),
    "boolean": frozenset(("type", "enum", "const", "default")),
    "null": frozenset(("type", "default")),
}


def schema_text(schema: Mapping[str, object]) -> str:
    """The arguments of a tool: one type on a line, followed by the named types that it uses."""
    counted: Counter[str] = Counter()
    try:
        _Writer(schema, counted=counted).type(schema, 0)
    except _Endless:
        return _json(schema)
    named = {text: f"T{at}" for at, text in enumerate(_repeated(counted), 1)}
    whole = _Writer(schema, named=named)
    first = whole.inner(schema, 0)
    lines = [f"{name} = {body}" for name, body in sorted(whole.bodies.items())]
    return "\n".join((first, *(["where", *lines] if lines else ())))


def _repeated(counted: Counter[str]) -> list[str]:
    """What is written more than once and is long, outermost first."""
    return sorted(
        (text for text, times in counted.items() if times > 1 and len(text) >= _NAMED_FROM),
        key=lambda text: (-len(text), text),
    )


class _Writer:
    """Writes types; counts them in a first pass, and gives names in a second one."""

    def __init__(
        self,
        root: Mapping[str, object],
        *,
        counted: Counter[str] | None = None,
        named: Mapping[str, str] | None = None,
    ) -> None:
        self._root = root
        self._counted = counted
        self._named = dict(named or {})
        self.bodies: dict[str, str] = {}
        """The named types that are used."""

    def type(self, schema: object, depth: int) -> str:
        """The type, or its name."""
        if not self._named:
            text = self.inner(schema, depth)
            if self._counted is not None:
                self._counted[text] += 1
            return text
        name = self._named.get(_Writer(self._root).inner(schema, depth))
        if name is None:
            return self.inner(schema, depth)
        if name not in self.bodies:
            self.bodies[name] = ""
            self.bodies[name] = self.inner(schema, depth)
        return name

    def inner(self, schema: object, depth: int) -> str:
        """The type itself."""
        known = as_object(schema)
        if depth > _DEEPEST:
            raise _Endless
        if not known:
            return "any" if schema in (True, {}) else _json(schema)
        if reference := as_text(known.get("$ref")):
            found = self._resolved(reference)
            return self.type(found, depth + 1) if found is not None else _json(schema)
        for word in ("anyOf", "oneOf"):
            if word in known and set(known) <= {word, "default", *_SILENT}:
                return " | ".join(self.type(one, depth + 1) for one in as_list(known[word])) + _default(known)
        return self._typed(known, depth)

    def _typed(self, schema: Mapping[str, object], depth: int) -> str:
        kind = as_text(schema.get("type"))
        said = _SAID.get(kind)
        if not kind and set(schema) <= {"enum", "const", "default", *_SILENT}:
            return _values(schema) or "any"
        if said is None or not set(schema) <= said | _SILENT:
            return _json(schema)
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            items = self.type(schema.get("items", {}), depth + 1)
            size = _bounds(schema, "minItems", "maxItems")
            return f"[{items}, ...]" + (f"({size} items)" if size else "")
        return (_values(schema) or kind + _limits(schema)) + _default(schema)

    def _object(self, schema: Mapping[str, object], depth: int) -> str:
        required = as_list(schema.get("required"))
        others = schema.get("additionalProperties", True)
        parts = [
            f"{name}{'' if name in required else '?'}: {self.type(one, depth + 1)}{_remark(one)}"
            for name, one in as_object(schema.get("properties")).items()
        ]
        if isinstance(others, Mapping):
            parts.append(f"[any name]: {self.type(cast('object', others), depth + 1)}")
        elif others is not False and not parts:
            return "object"
        return "{" + ", ".join(parts) + "}"

    def _resolved(self, reference: str) -> object:
        if reference == "#":
            return self._root
        if not reference.startswith("#/"):
            return None
        value: object = self._root
        for step in reference[2:].split("/"):
            value = as_object(value).get(step.replace("~1", "/").replace("~0", "~"))
        return value


def _values(schema: Mapping[str, object]) -> str:
    if "const" in schema:
        return _json(schema["const"])
    return " | ".join(_json(one) for one in as_list(schema.get("enum")))


def _limits(schema: Mapping[str, object]) -> str:
    parts: Sequence[str] = (
        _bounds(schema, "minimum", "maximum"),
        f"{size} characters" if (size := _bounds(schema, "minLength", "maxLength")) else "",
        f"matching {_json(schema['pattern'])}" if "pattern" in schema else "",
    )
    told = ", ".join(part for part in parts if part)
    return f"({told})" if told else ""


def _bounds(schema: Mapping[str, object], least: str, most: str) -> str:
    low, high = schema.get(least), schema.get(most)
    if low is None and high is None:
        return ""
    return f"{'' if low is None else low}..{'' if high is None else high}"


def _default(schema: Mapping[str, object]) -> str:
    return f" = {_json(schema['default'])}" if "default" in schema else ""


def _remark(schema: object) -> str:
    """What the schema says about a member, on one line."""
    words = " ".join(as_text(as_object(schema).get("description")).split()).replace("*/", "* /")
    return f" /* {words} */" if words else ""


def _json(value: object) -> str:
    return encode_text(value).decode()
