"""A configuration document as nodes that remember their file and line. YAML is known here alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import yaml
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from leadline.kernel.errors import ConfigError

_TAG = "tag:yaml.org,2002:"
_TAGS = ("map", "seq", "str", "null", "bool", "int", "float", "timestamp", "merge", "value")
_MAX_DEPTH = 40
_MAX_NODES = 100_000


@dataclass(frozen=True)
class Origin:
    """Where something was written."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Env:
    """`!env NAME`: a value of the environment, with an optional default."""

    name: str
    default: Node | None = None


@dataclass(frozen=True)
class Ref:
    """`!ref service.field`: an attribute of a service, read when the plugin starts."""

    service: str
    attribute: str
    default: Node | None = None


@dataclass(frozen=True)
class Value:
    """A scalar. Equality of nodes is equality of content, wherever it was written."""

    content: str | int | float | bool | Env | Ref | None
    origin: Origin = field(compare=False)


@dataclass(frozen=True)
class Items:
    """A sequence."""

    content: tuple[Node, ...]
    origin: Origin = field(compare=False)


@dataclass(frozen=True)
class Table:
    """A mapping with string keys."""

    content: Mapping[str, Node]
    origin: Origin = field(compare=False)


Node = Value | Items | Table


def parse(text: str, file: str) -> Node | None:
    """The document in `text`, or None if it is empty; `file` is what messages call it.

    Raises:
        ConfigError: not YAML, a tag other than `!env` and `!ref`, a key twice, a key that is no string.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)  # pyright: ignore[reportUnknownMemberType]
    except RecursionError:
        raise ConfigError("nested too deeply", origin=str(Origin(file, 1))) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if isinstance(mark, yaml.Mark) else 1
        problem = getattr(error, "problem", None) or error
        raise ConfigError(f"not valid YAML: {problem}", origin=str(Origin(file, line))) from None
    return None if root is None else _Reader(file).node(root, 0)


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._nodes = 0
        self._scalars = yaml.SafeLoader("")

    def node(self, raw: yaml.Node, depth: int) -> Node:
        origin = Origin(self._file, raw.start_mark.line + 1)
        self._nodes += 1
        if depth > _MAX_DEPTH or self._nodes > _MAX_NODES:
            raise ConfigError("too deep or too large; does an alias repeat itself?", origin=str(origin))
        tag = raw.tag
        if tag in ("!env", "!ref"):
            return Value(self._tagged(tag, raw, depth, origin), origin)
        if not tag.startswith(_TAG) or tag.removeprefix(_TAG) not in _TAGS:
            raise ConfigError(f"unknown tag {tag!r}; only !env and !ref are known", origin=str(origin))
        if isinstance(raw, MappingNode):
            return self._table(raw, depth, origin)
        if isinstance(raw, SequenceNode):
            children = cast("list[yaml.Node]", raw.value)
            return Items(tuple(self.node(child, depth + 1) for child in children), origin)
        assert isinstance(raw, ScalarNode)
        if tag.removeprefix(_TAG) in ("null", "bool", "int", "float"):
            try:
                made = cast("int | float | bool | None", self._scalars.construct_object(raw))  # pyright: ignore[reportUnknownMemberType]
            except (ValueError, LookupError) as error:
                raise ConfigError(f"cannot read {str(raw.value)[:40]!r}", origin=str(origin)) from error
            return Value(made, origin)
        return Value(cast("str", raw.value), origin)

    def _table(self, raw: MappingNode, depth: int, origin: Origin) -> Table:
        content: dict[str, Node] = {}
        for key, value in cast("list[tuple[yaml.Node, yaml.Node]]", raw.value):
            place = Origin(self._file, key.start_mark.line + 1)
            if not isinstance(key, ScalarNode) or key.tag != f"{_TAG}str":
                raise ConfigError(
                    f"the key {key.value!r} is not a string; put it in quotes", origin=str(place)
                )
            name = cast("str", key.value)
            if name in content:
                raise ConfigError(f"the key {name!r} is there twice; remove one", origin=str(place))
            content[name] = self.node(value, depth + 1)
        return Table(content, origin)

    def _tagged(self, tag: str, raw: yaml.Node, depth: int, origin: Origin) -> Env | Ref:
        form = "!env NAME or !env {name: NAME, default: VALUE}"
        if tag == "!ref":
            form = "!ref service.field or !ref {name: service.field, default: VALUE}"
        name, default = None, None
        if isinstance(raw, ScalarNode):
            name = cast("str", raw.value)
        elif isinstance(raw, MappingNode):
            table = self._table(raw, depth, origin).content
            known = table.get("name")
            if (
                isinstance(known, Value)
                and isinstance(known.content, str)
                and set(table) <= {"name", "default"}
            ):
                name, default = known.content, table.get("default")
        service, _, attribute = (name or "").rpartition(".")
        if not name or (tag == "!ref" and not (service and attribute)):
            raise ConfigError(f"write {form}", origin=str(origin))
        return Env(name, default) if tag == "!env" else Ref(service, attribute, default)
