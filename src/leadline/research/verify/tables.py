"""Quoted tables: rows with the head under which they stand, quoted in one piece or head and rows apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TypeAlias

from leadline.research.verify.blocks import blocks, is_rule, is_table_line
from leadline.research.verify.check import Cited, records_of
from leadline.research.verify.tokens import refuses

Row: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class QuotedTable:
    """A head and at least one row of its table."""

    evidence: str
    """The quotes that hold it, as a reader is told."""
    head: Row
    rows: tuple[Row, ...]


def quoted_tables(cited: Sequence[Cited]) -> tuple[QuotedTable, ...]:
    """Every table that the quotes hold, alone or one with the head and another with rows; in any order of them."""
    found = [_alone(one) for one in cited]
    found += [_apart(head, body) for head, body in permutations(cited, 2)]
    return tuple(one for one in found if one)


def _alone(one: Cited) -> QuotedTable | None:
    rows = _csv_rows(one) if records_of(one) else _rows(one.quote.text)
    return QuotedTable(one.quote.id, rows[0], rows[1:]) if len(rows) > 1 else None


def _rows(text: str) -> tuple[Row, ...]:
    return tuple(block.cells for block in blocks(text) if block.kind == "row")


def _csv_rows(one: Cited) -> tuple[Row, ...]:
    """The records of a quote that begins with the head of its document."""
    records = records_of(one)
    covered = records.whole(one.quote.start, one.quote.end) if records else None
    if records is None or covered is None or not _is_one_table(records.widths[: covered.stop]):
        return ()
    return tuple(records.cells(number) for number in covered) if covered.start == 0 else ()


def _is_one_table(widths: Sequence[int]) -> bool:
    return widths[0] > 1 and all(width == widths[0] for width in widths)


def _apart(head: Cited, body: Cited) -> QuotedTable | None:
    """The table of two quotes, the first with its head and the second with rows further down."""
    if head.quote.source != body.quote.source or head.quote.snapshot != body.quote.snapshot:
        return None
    if not (_is_intact(head) and _is_intact(body)):
        return None
    rows = _csv_apart(head, body) if records_of(head) else _lines_apart(head, body)
    if len(rows) < 2:
        return None
    return QuotedTable(f"{body.quote.id} under {head.quote.id}", rows[0], rows[1:])


def _is_intact(one: Cited) -> bool:
    quote = one.quote
    return one.text is not None and bool(quote.text) and one.text[quote.start : quote.end] == quote.text


def _csv_apart(head: Cited, body: Cited) -> tuple[Row, ...]:
    records = records_of(head)
    if records is None:
        return ()
    above = records.whole(head.quote.start, head.quote.end)
    below = records.whole(body.quote.start, body.quote.end)
    if above is None or below is None or above.start != 0 or below.start < above.stop:
        return ()
    if not _is_one_table(records.widths[: below.stop]):
        return ()
    return tuple(records.cells(number) for number in (*above, *below))


def _lines_apart(head: Cited, body: Cited) -> tuple[Row, ...]:
    """The rows of both quotes, if nothing but lines of one table stands from the one to the other."""
    text = head.text or ""
    above, below = _whole_lines(text, head), _whole_lines(text, body)
    if above is None or below is None or above[1] >= below[0]:
        return ()
    lines = text[above[0] : below[1]].splitlines()
    rules = [number for number, line in enumerate(lines) if is_rule(line)]
    if not all(is_table_line(line) for line in lines) or rules not in ([], [1]):
        return ()
    if _follows_table_line(text, above[0]):
        return ()
    between = _rows(text[above[1] : below[0]])
    if any(len(labels := [cell for cell in row if cell]) == 1 and refuses(labels[0]) for row in between):
        return ()
    rows = (*_rows(head.quote.text), *_rows(body.quote.text))
    return rows if all(len(row) == len(rows[0]) > 1 for row in rows) else ()


def _follows_table_line(text: str, begin: int) -> bool:
    """Whether the line above one that begins here belongs to a table: then this one is not its head."""
    return begin > 0 and is_table_line(text[text.rfind("\n", 0, begin - 1) + 1 : begin - 1])


def _whole_lines(text: str, one: Cited) -> tuple[int, int] | None:
    """Begin and end of the lines that a quote covers; None where it leaves out more than the outer marks."""
    begin = text.rfind("\n", 0, one.quote.start) + 1
    end = text.find("\n", one.quote.end)
    end = len(text) if end < 0 else end
    before, after = text[begin : one.quote.start], text[one.quote.end : end]
    is_whole = not before.strip(" \t>") and after.strip() in ("", "|")
    return (begin, end) if is_whole and is_table_line(one.quote.text.splitlines()[0]) else None
