"""Layers into one composition, in which each value knows where it was written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from leadline.kernel.errors import ConfigError
from leadline.kernel.loader.document import Items, Node, Table, parse
from leadline.kernel.loader.interpolate import environment, shown
from leadline.kernel.loader.patch import all_rows, apply_item
from leadline.kernel.loader.rows import Row, expect_items


@dataclass(frozen=True)
class Layer:
    """One document of rows and patches."""

    name: str
    """What messages call it, such as its path."""
    text: str

    @classmethod
    def read(cls, path: Path) -> Layer:
        """The layer in the file at `path`.

        Raises:
            ConfigError: the file cannot be read, or is not UTF-8.
        """
        try:
            return cls(str(path), path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"cannot read the layer {path}: {error}; check the path and that it is UTF-8"
            ) from error


@dataclass(frozen=True)
class Described:
    """One line of what is composed."""

    path: str
    """`row` or `row.config.key`."""
    value: str
    """As text; what comes from the environment is shown as set or not set."""
    origin: str
    """`file:line`."""


@dataclass(frozen=True)
class Composition:
    """The rows that all layers together say."""

    rows: tuple[Row, ...] = ()

    def enabled(self) -> list[Row]:
        """The rows to mount, groups included, outer first; a disabled group disables what is in it."""
        return all_rows(_enabled(self.rows))

    def describe(self, environ: Mapping[str, str] | None = None) -> list[Described]:
        """A line for each row and each value in it, with its origin; no secret of the environment in it."""
        known = environment() if environ is None else environ
        return [line for row in all_rows(self.rows) for line in _described(row, known)]


def compose(layers: Iterable[Layer], onto: Composition | None = None) -> Composition:
    """What `layers` say together, each changing what those before it said, the first one `onto`.

    Raises:
        ConfigError: with file, line and the nearest name: not YAML, an unknown key, a duplicate id,
            a patch for a row that is not there.
    """
    rows = onto.rows if onto is not None else ()
    for layer in layers:
        document = parse(layer.text, layer.name)
        for item in expect_items(document, "a layer").content if document is not None else ():
            rows = apply_item(rows, item)
    return Composition(rows)


def _enabled(rows: Iterable[Row]) -> list[Row]:
    return [
        row if row.rows is None else replace(row, rows=tuple(_enabled(row.rows)))
        for row in rows
        if not row.disabled
    ]


def _described(row: Row, environ: Mapping[str, str]) -> list[Described]:
    what = "group" if row.rows is not None else row.plugin
    marks = [word for word, on in (("disabled", row.disabled), ("optional", row.optional)) if on]
    marks += [f"isolate {key}: {str(to).lower() if to is True else to}" for key, to in row.isolate.items()]
    marks += [f"requires {row.requires}"] if row.requires else []
    head = Described(row.id, what + (f" ({', '.join(marks)})" if marks else ""), str(row.origin))
    return [head, *_leaves(f"{row.id}.config", row.config, environ)]


def _leaves(path: str, node: Node, environ: Mapping[str, str]) -> list[Described]:
    inner: list[tuple[str, Node]] = []
    if isinstance(node, Table):
        inner = [(f"{path}.{key}", child) for key, child in node.content.items()]
    elif isinstance(node, Items):
        inner = [(f"{path}[{n}]", child) for n, child in enumerate(node.content)]
    if inner:
        return [line for place, child in inner for line in _leaves(place, child, environ)]
    if isinstance(node, Table | Items):
        empty = "{}" if isinstance(node, Table) else "[]"
        return [] if path.endswith(".config") else [Described(path, empty, str(node.origin))]
    return [Described(path, shown(node, environ), str(node.origin))]
