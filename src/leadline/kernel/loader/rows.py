"""The row: what one entry of a composition may say, and its meaning."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from leadline.kernel.errors import ConfigError, did_you_mean
from leadline.kernel.loader.document import Items, Node, Origin, Table, Value

ROW_KEYS = ("id", "plugin", "config", "disabled", "optional", "isolate", "requires", "rows")


@dataclass(frozen=True)
class Row:
    """One plugin, or one group of rows, to be mounted. Equality disregards where it was written."""

    id: str
    """Unique in the whole composition; what patches and reports call it."""
    plugin: str
    """`import.path:name`, or the name of a discovered plugin; empty for a group."""
    config: Table
    disabled: bool = False
    optional: bool = False
    """Whether the boot goes on without it."""
    isolate: Mapping[str, bool | str] = field(default_factory=dict[str, bool | str])
    """Service key to true (a private realm) or to the name of a shared realm."""
    requires: str = ""
    """Distributions and versions, such as `leadline>=0.1`."""
    rows: tuple[Row, ...] | None = None
    """What is in the group; None for a plugin."""
    origin: Origin = field(compare=False, default=Origin("?", 0))


def read_row(node: Node) -> Row:
    """The row that `node` describes.

    Raises:
        ConfigError: an unknown key, a missing id, neither or both of `plugin` and `rows`, a wrong type.
    """
    table = expect_table(node, "a row")
    check_keys(table, ROW_KEYS, "a row")
    if ("plugin" in table.content) == ("rows" in table.content):
        raise error(table, "a row has either `plugin` or `rows`")
    config = table.content.get("config")
    group = table.content.get("rows")
    if group is not None and config is not None:
        raise error(config, "a group has no config of its own; give it to the rows in it")
    return Row(
        id=read_text(table, "id"),
        plugin="" if group is not None else read_text(table, "plugin"),
        config=Table({}, table.origin) if config is None else expect_table(config, "config"),
        disabled=read_flag(table, "disabled"),
        optional=read_flag(table, "optional"),
        isolate=read_isolate(table.content.get("isolate")),
        requires=read_text(table, "requires", default=""),
        rows=None
        if group is None
        else tuple(read_row(child) for child in expect_items(group, "rows").content),
        origin=table.origin,
    )


def read_isolate(node: Node | None) -> dict[str, bool | str]:
    """Service key to realm."""
    realms: dict[str, bool | str] = {}
    for key, child in expect_table(node, "isolate").content.items() if node is not None else ():
        if not isinstance(child, Value) or not isinstance(child.content, bool | str):
            raise error(child, f"isolate.{key} is true (a private realm) or the name of a shared one")
        realms[key] = child.content
    return realms


def read_text(table: Table, key: str, *, default: str | None = None) -> str:
    """The string under `key`."""
    node = table.content.get(key)
    if node is None and default is not None:
        return default
    if not isinstance(node, Value) or not isinstance(node.content, str) or not node.content:
        raise error(node or table, f"`{key}` must be there and be a string that is not empty")
    return node.content


def read_flag(table: Table, key: str) -> bool:
    """The boolean under `key`, false if it is absent."""
    node = table.content.get(key)
    if node is None:
        return False
    if not isinstance(node, Value) or not isinstance(node.content, bool):
        raise error(node, f"`{key}` must be true or false")
    return node.content


def expect_table(node: Node, what: str) -> Table:
    if isinstance(node, Table):
        return node
    if isinstance(node, Value) and node.content is None:
        return Table({}, node.origin)
    raise error(node, f"{what} must be a mapping")


def expect_items(node: Node, what: str) -> Items:
    if not isinstance(node, Items):
        raise error(node, f"{what} must be a list")
    return node


def check_keys(table: Table, known: Collection[str], what: str) -> None:
    """Refuse a key that would otherwise be ignored."""
    for key, node in table.content.items():
        if key not in known:
            raise error(node, f"unknown key {key!r} in {what}{did_you_mean(key, known)}")


def error(node: Node, message: str) -> ConfigError:
    """A ConfigError that says where `node` was written."""
    return ConfigError(message, origin=str(node.origin))
