"""A quote as a line of prose, and a row of a table as its cells."""

from __future__ import annotations

import csv
import re

from leadline.core.patterns import lazy_pattern
from leadline.research.verify.markup import plain as without_markup

_MARK = lazy_pattern(r"^\s*(?:[-*•‣◦·–]\s+|\(?\d{1,3}[.)]\s+|#{1,6}\s+|>\s+)+")
_EMPHASIS = lazy_pattern(r"(?<!\w)([*_])(?=\S)([^*_]+?)(?<=\S)\1(?!\w)")


def plain(text: str) -> str:
    """A quote on one line, without the mark of its list or heading and without marks of emphasis."""
    stripped = _MARK.sub("", text.strip())
    if stripped.startswith("|"):
        stripped = "\n".join(" | ".join(cells(row)) for row in stripped.splitlines() if row.strip(" |:-"))
    line = " ".join(re.sub(r"\*\*|__|`", "", stripped).split())
    line = _EMPHASIS.sub(r"\2", line)
    return line or " ".join(text.split())


def shown(text: str) -> str:
    """Words of a document without what a report may not hold: addresses, marks, tags."""
    return without_markup(plain(text)) or plain(text)


def is_list(quote: str) -> bool:
    """Whether a quote holds several entries of a list."""
    lines = [line.lstrip() for line in quote.splitlines()]
    marked = [line for line in lines if line[:2] in ("- ", "* ", "• ") or line[:3].rstrip(". )").isdigit()]
    return len(marked) >= 2 or (len(marked) == 1 and not lines[0].startswith(marked[0]))


def fields(line: str) -> list[str]:
    """The cells of a line of CSV, by the mark that divides most of it."""
    mark = max(",;\t", key=line.count)
    try:
        return [cell.strip() for cell in next(iter(csv.reader([line], delimiter=mark)))]
    except csv.Error:
        return [cell.strip() for cell in line.split(mark)]


def cells(row: str) -> list[str]:
    """The cells of a row of a Markdown table."""
    return [cell.strip() for cell in row.strip().strip("|").split("|")]
