"""The JSON Schema that a model sees: cleaned of what costs tokens and tells it nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from leadline.core.llm.jsonvalue import JsonObject

_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
_SCHEMAS = frozenset(
    {
        "items", "contains", "additionalProperties", "unevaluatedItems", "unevaluatedProperties",
        "propertyNames", "not", "if", "then", "else",
    }
)  # fmt: skip
_SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_COMPOSED = frozenset(
    {"allOf", "anyOf", "oneOf", "if", "not", "$ref", "patternProperties", "dependentSchemas"}
)
_DEFS = "#/$defs/"


def cleaned(schema: JsonObject, *, close_all: bool = False) -> dict[str, object]:
    """A plain copy without titles, with definitions inlined where they do not contain themselves.

    The root takes no further properties unless it says that it does or is composed of other schemas.
    `close_all` does the same for every object inside, which is right only where the schema was made
    from a model.
    """
    defs = schema.get("$defs")
    definitions = cast("Mapping[str, object]", defs) if isinstance(defs, Mapping) else dict[str, object]()
    cleaner = _Cleaner(definitions, close_all)
    made = cleaner.schema(_unfolded(schema, definitions), frozenset())
    result = cast("dict[str, object]", made)
    _close(result)
    if cleaner.kept or cleaner.unresolved:
        result["$defs"] = cleaner.definitions()
    return result


def _unfolded(schema: JsonObject, definitions: Mapping[str, object]) -> JsonObject:
    """The root without definitions, itself never a bare reference: providers ask for an object there."""
    root = {key: value for key, value in schema.items() if key != "$defs"}
    for _ in definitions:
        target = definitions.get(str(root.get("$ref", "")).removeprefix(_DEFS))
        if not isinstance(target, Mapping):
            break
        beside = {key: value for key, value in root.items() if key != "$ref"}
        root = {**cast("Mapping[str, object]", target), **beside}
    return root


class _Cleaner:
    """One pass over a schema; remembers which definitions must stay."""

    def __init__(self, definitions: Mapping[str, object], close_all: bool) -> None:
        self._definitions = definitions
        self._close_all = close_all
        self.kept: set[str] = set()
        self.unresolved = False

    def definitions(self) -> dict[str, object]:
        """The definitions that something still refers to; all of them where a reference is not a plain one."""
        made: dict[str, object] = {}
        wanted = set(self._definitions) if self.unresolved else self.kept
        while missing := sorted(wanted - set(made)):
            for name in missing:
                made[name] = self.schema(self._definitions[name], frozenset({name}))
            wanted |= self.kept
        return {name: made[name] for name in sorted(made)}

    def schema(self, node: object, inside: frozenset[str]) -> object:
        if not isinstance(node, Mapping):
            return node
        members = cast("Mapping[str, object]", node)
        inlined = self._inlined(members, inside)
        if inlined is not None:
            return inlined
        made = {
            key: self._member(key, value, inside)
            for key, value in members.items()
            if not _is_title(key, value)
        }
        if self._close_all:
            _close(made)
        return made

    def _inlined(self, members: Mapping[str, object], inside: frozenset[str]) -> object | None:
        ref = members.get("$ref")
        if not isinstance(ref, str):
            return None
        name = ref.removeprefix(_DEFS)
        if not ref.startswith(_DEFS) or name not in self._definitions:
            self.unresolved = True
            return None
        if name in inside or self._contains_itself(name):
            self.kept.add(name)
            return None
        target = self.schema(self._definitions[name], inside | {name})
        beside = {key: value for key, value in members.items() if key != "$ref"}
        if not isinstance(target, dict):
            return None if beside else target
        return {**cast("dict[str, object]", target), **cast("dict[str, object]", self.schema(beside, inside))}

    def _contains_itself(self, name: str) -> bool:
        seen: set[str] = set()
        todo = _references(self._definitions[name])
        while todo:
            found = todo.pop()
            if found == name:
                return True
            if found not in seen and found in self._definitions:
                seen.add(found)
                todo |= _references(self._definitions[found])
        return False

    def _member(self, key: str, value: object, inside: frozenset[str]) -> object:
        if key in _SCHEMA_MAPS and isinstance(value, Mapping):
            named = cast("Mapping[str, object]", value)
            return {name: self.schema(member, inside) for name, member in named.items()}
        if key in _SCHEMAS:
            return self.schema(value, inside)
        if key in _SCHEMA_LISTS and isinstance(value, list):
            return [self.schema(member, inside) for member in cast("list[object]", value)]
        return value


def _is_title(key: str, value: object) -> bool:
    return key == "title" and isinstance(value, str)


def _close(schema: dict[str, object]) -> None:
    is_object = schema.get("type") == "object" or "properties" in schema
    if is_object and "additionalProperties" not in schema and not _COMPOSED & schema.keys():
        schema["additionalProperties"] = False


def _references(node: object) -> set[str]:
    if isinstance(node, Mapping):
        members = cast("Mapping[str, object]", node)
        ref = members.get("$ref")
        own = {ref.removeprefix(_DEFS)} if isinstance(ref, str) else set[str]()
        return own.union(*(_references(member) for member in members.values()))
    if isinstance(node, list):
        return set[str]().union(*(_references(member) for member in cast("list[object]", node)))
    return set()
