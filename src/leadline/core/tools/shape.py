"""What a tool takes and gives: the schema that is shown and the check that is made, from one source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

import msgspec
from pydantic import BaseModel, ValidationError

from leadline.core.llm.jsonvalue import JsonObject, JsonValue
from leadline.core.tools.errors import BadToolSpec
from leadline.core.tools.quick import Check, quick_check
from leadline.core.tools.schema import cleaned

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError as SchemaViolation
    from jsonschema.protocols import Validator

MAX_SHOWN = 300
"""Characters of one violation that are told."""


class Violations(ValueError):
    """A value that does not fit; `lines` has one line for each violation, beginning with its path."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("; ".join(self.lines))


class Shape(Protocol):
    """A shape that values are held to."""

    @property
    def schema(self) -> dict[str, object]:
        """The JSON Schema as shown to models; a copy of one's own."""
        ...

    def accept(self, text: str) -> object:
        """What valid JSON `text` says, as a new value each time.

        Raises:
            Violations: listing everything that does not fit.
        """
        ...


class ModelShape:
    """A shape declared as a pydantic model; what is accepted is an instance."""

    def __init__(self, tool: str, model: type[BaseModel], *, closed: bool = True) -> None:
        """`closed` asks for a model that refuses what it does not know, as parameters must.

        Raises:
            BadToolSpec: the model ignores unknown members, or has no JSON Schema.
        """
        if closed and model.model_config.get("extra") != "forbid":
            raise BadToolSpec(
                tool,
                f'{model.__name__} does not refuse unknown arguments; add model_config = ConfigDict(extra="forbid")',
            )
        self.model = model
        self._tool = tool

    @cached_property
    def _encoded(self) -> bytes:
        try:
            return _schema_of(self.model)
        except Exception as error:  # a field's type may fail in any way while its schema is made
            raise BadToolSpec(
                self._tool, f"{self.model.__name__} cannot be written as a JSON Schema: {error}"
            ) from error

    @property
    def schema(self) -> dict[str, object]:
        return cast("dict[str, object]", msgspec.json.decode(self._encoded))

    def accept(self, text: str) -> BaseModel:
        try:
            return self.model.model_validate_json(text)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False)
            raise Violations(_line(_path(one["loc"]), one["msg"], one["input"]) for one in found) from None


@lru_cache(maxsize=256)
def _schema_of(model: type[BaseModel]) -> bytes:
    """What a model is told of a pydantic model; remembered, as tools are made anew for each agent."""
    return msgspec.json.encode(cleaned(model.model_json_schema(), close_all=True))


class SchemaShape:
    """A shape declared as a raw JSON Schema (draft 2020-12); what is accepted is plain JSON."""

    def __init__(self, tool: str, schema: JsonObject, *, closed: bool = True) -> None:
        """`closed` asks for an object that refuses what it does not know, as parameters must.

        Raises:
            BadToolSpec: the root is not an object though it should be, or the schema is not JSON.
        """
        if closed and schema.get("type") != "object":
            raise BadToolSpec(tool, 'the schema of its parameters must have "type": "object" at its root')
        try:
            self._encoded = msgspec.json.encode(cleaned(schema) if closed else dict(schema))
        except (TypeError, ValueError, RecursionError) as error:
            raise BadToolSpec(tool, f"its schema is not JSON: {error}") from error
        self._tool = tool

    @property
    def schema(self) -> dict[str, object]:
        return cast("dict[str, object]", msgspec.json.decode(self._encoded))

    def accept(self, text: str) -> object:
        value = cast("JsonValue", msgspec.json.decode(text))
        if self._quick is not None and self._quick(value):
            return value
        found = violations(self._validator, value)
        if found:
            raise Violations(found)
        return value

    def check(self) -> None:
        """Raises BadToolSpec: the schema breaks the rules of draft 2020-12."""
        _ = self._validator

    @cached_property
    def _quick(self) -> Check | None:
        self.check()
        return quick_check(self.schema)

    @cached_property
    def _validator(self) -> Validator:
        return validator(self._tool, self.schema)


def validator(tool: str, schema: JsonObject) -> Validator:
    """A validator for `schema`.

    Raises:
        BadToolSpec: the schema breaks the rules of draft 2020-12, or refers to something outside it.
    """
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - 20 ms that only raw schemas need

    broken = breach(msgspec.json.encode(schema))
    if broken is not None:
        raise BadToolSpec(tool, f"its schema is not valid at {broken.place}: {broken.rule}")
    outside = sorted(ref for ref in _references(schema) if not ref.startswith("#"))
    if outside:
        raise BadToolSpec(tool, f"its schema refers to {outside[0]!r}, outside itself; write it into $defs")
    return Draft202012Validator(schema)


class Breach(NamedTuple):
    """How a schema breaks the rules for schemas."""

    place: str
    rule: str


@lru_cache(maxsize=256)
def breach(encoded: bytes) -> Breach | None:
    """What is worst about a schema, given as JSON, by draft 2020-12; None where it keeps all rules.

    Remembered by the bytes: it takes milliseconds, and children of one kind come with equal schemas.
    """
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 - as above

    try:
        Draft202012Validator.check_schema(cast("JsonObject", msgspec.json.decode(encoded)))
    except SchemaError as error:
        return Breach(error.json_path, error.message)
    return None


def violations(checker: Validator, value: JsonValue) -> tuple[str, ...]:
    """Everything in `value` that breaks the schema, a line each, ordered by place."""
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - as above

    try:
        found = list(cast("Iterable[SchemaViolation]", checker.iter_errors(value)))
    except RecursionError:
        return ("$: nested too deeply",)
    except Unresolvable as error:
        return (f"$: the schema refers to what it does not hold: {error}",)
    found.sort(key=lambda error: [str(part) for part in error.absolute_path])
    return tuple(_short(f"{error.json_path}: {error.message}") for error in found)


def _references(node: object) -> set[str]:
    if isinstance(node, Mapping):
        members = cast("Mapping[str, object]", node)
        ref = members.get("$ref")
        own = {ref} if isinstance(ref, str) else set[str]()
        return own.union(*(_references(member) for member in members.values()))
    if isinstance(node, list):
        return set[str]().union(*(_references(member) for member in cast("list[object]", node)))
    return set()


def _path(loc: tuple[int | str, ...]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)


def _line(path: str, message: str, found: object) -> str:
    if isinstance(found, dict | list):
        return _short(f"{path}: {message}")
    return _short(f"{path}: {message} (got {found!r})")


def _short(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
