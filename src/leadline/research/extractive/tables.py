"""Quoted rows as a table of the report: its cells are those of the rows, under those of the quoted head."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.core.llm.jsonvalue import JsonValue
from leadline.research.extractive.plain import cells, fields, shown
from leadline.research.roles.purposes import EvidenceItem
from leadline.research.verify.tokens import tokens

MAX_COLUMNS = 9
NOTHING = "-"
"""Stands in a cell that is empty in the document."""


def leaf(text: str, evidence: Sequence[str], label: str = "finding") -> JsonValue:
    """A sentence or cell of a report."""
    return {"text": text, "evidence": list(evidence), "label": label}


def whole_table(item: EvidenceItem) -> JsonValue | None:
    """A quote that holds the head of a table and rows of it; None where it holds no such thing, or a reservation.

    A cell is established only by a quote that says nothing else of it.
    """
    rows = [cells(line) for line in item.quote.splitlines() if line.strip().startswith("|")]
    rows = [row for row in rows if not all(set(cell) <= set(":- ") for cell in row)]
    if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows) or _reserves(item):
        return None
    return {
        "kind": "table",
        "header": [shown(cell) or NOTHING for cell in rows[0]],
        "rows": [_row(row, item) for row in rows[1:]],
    }


def table_of(head: EvidenceItem, rows: Sequence[EvidenceItem]) -> JsonValue | None:
    """Rows that were quoted apart from their head, as one table; None where they do not fit together."""
    names = split_row(head)
    found = [split_row(row) for row in rows]
    if not 2 <= len(names) <= MAX_COLUMNS or any(len(row) != len(names) for row in found):
        return None
    if any(_reserves(item) for item in (head, *rows)):
        return None
    return {
        "kind": "table",
        "header": [shown(name) or NOTHING for name in names],
        "rows": [_row(row, item, head) for row, item in zip(found, rows, strict=True)],
    }


def split_row(item: EvidenceItem) -> list[str]:
    """The cells of a quoted row, of Markdown or of CSV; one where it is no row."""
    line = item.quote.strip()
    if "\n" in line:
        return [line]
    return cells(line) if line.startswith("|") else fields(line)


def _row(row: Sequence[str], *evidence: EvidenceItem) -> list[JsonValue]:
    ids = [item.id for item in evidence]
    return [leaf(text, ids) if (text := shown(cell)) else leaf(NOTHING, (), "background") for cell in row]


def _reserves(item: EvidenceItem) -> bool:
    return any(token.reserves for token in tokens(item.quote))
