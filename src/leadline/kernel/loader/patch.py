"""Patches: how one layer changes the rows of the layers below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from leadline.kernel.errors import did_you_mean
from leadline.kernel.loader.document import Node, Table
from leadline.kernel.loader.rows import (
    Row,
    check_keys,
    error,
    expect_table,
    read_flag,
    read_isolate,
    read_row,
    read_text,
)

PATCH_KEYS = ("id", "config", "merge", "disabled", "optional", "isolate", "requires")
INSERT_KEYS = ("insert", "before", "after", "into")
Rows = tuple[Row, ...]


def apply_item(rows: Rows, item: Node) -> Rows:
    """`rows` after one item of a layer: a row is added at the end, a patch changes what is there.

    Raises:
        ConfigError: a malformed item, an id that is there already, or one that is not there; with
            file, line and the nearest name.
    """
    table = expect_table(item, "an item")
    if "insert" in table.content:
        return _insert(rows, table)
    if "plugin" in table.content or "rows" in table.content:
        return _with_new(rows, read_row(table), lambda row: (*rows, row))
    check_keys(table, PATCH_KEYS, "a patch")
    target = read_text(table, "id")
    _find(rows, target, table)
    return _replace(rows, target, lambda row: (_changed(row, table),))


def all_rows(rows: Iterable[Row]) -> list[Row]:
    """Every row, those in groups included, outer first."""
    return [it for row in rows for it in (row, *all_rows(row.rows or ()))]


def _insert(rows: Rows, table: Table) -> Rows:
    check_keys(table, INSERT_KEYS, "an insertion")
    places = [key for key in ("before", "after", "into") if key in table.content]
    if len(places) > 1:
        raise error(table, f"an insertion has one place, not {' and '.join(places)}")
    row = read_row(table.content["insert"])
    if not places:
        return _with_new(rows, row, lambda row: (*rows, row))
    place = places[0]
    target = read_text(table, place)
    found = _find(rows, target, table)
    if place == "into" and found.rows is None:
        raise error(table, f"{target!r} is no group, so nothing can be inserted into it; use before or after")

    def put(present: Row) -> Rows:
        if place == "into":
            return (replace(present, rows=(*(present.rows or ()), row)),)
        return (row, present) if place == "before" else (present, row)

    return _with_new(rows, row, lambda row: _replace(rows, target, put))


def _with_new(rows: Rows, row: Row, add: Callable[[Row], Rows]) -> Rows:
    known = {it.id: it for it in all_rows(rows)}
    for new in all_rows([row]):
        if new.id in known:
            raise error(
                Table({}, new.origin),
                f"the id {new.id!r} is taken by the row at {known[new.id].origin}; choose another, "
                f"or change that row with a patch: {{id: {new.id}, merge: ...}}",
            )
        known[new.id] = new
    return add(row)


def _find(rows: Rows, target: str, table: Table) -> Row:
    known = {it.id: it for it in all_rows(rows)}
    if target not in known:
        raise error(table, f"no row has the id {target!r}{did_you_mean(target, known)}")
    return known[target]


def _replace(rows: Rows, target: str, put: Callable[[Row], Rows]) -> Rows:
    changed: list[Row] = []
    for row in rows:
        if row.id == target:
            changed += put(row)
        else:
            changed.append(row if row.rows is None else replace(row, rows=_replace(row.rows, target, put)))
    return tuple(changed)


def _changed(row: Row, table: Table) -> Row:
    given = table.content
    if "config" in given and "merge" in given:
        raise error(table, "a patch has `config` (replaces) or `merge` (adds to what is there), not both")
    if row.rows is not None and ("config" in given or "merge" in given):
        raise error(table, f"{row.id!r} is a group and has no config; patch the rows in it")
    if "config" in given:
        row = replace(row, config=expect_table(given["config"], "config"))
    if "merge" in given:
        row = replace(row, config=_merged(row.config, expect_table(given["merge"], "merge")))
    if "disabled" in given:
        row = replace(row, disabled=read_flag(table, "disabled"))
    if "optional" in given:
        row = replace(row, optional=read_flag(table, "optional"))
    if "isolate" in given:
        row = replace(row, isolate=read_isolate(given["isolate"]))
    if "requires" in given:
        row = replace(row, requires=read_text(table, "requires"))
    return row


def _merged(old: Table, new: Table) -> Table:
    """`new` over `old`: mappings are merged key by key, everything else is replaced."""
    content = dict(old.content)
    for key, node in new.content.items():
        present = content.get(key)
        if isinstance(present, Table) and isinstance(node, Table):
            node = _merged(present, node)
        content[key] = node
    return Table(content, old.origin)
