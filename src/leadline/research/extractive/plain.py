"""A quote as a line of prose, and a row of a table as its cells."""

from __future__ import annotations

import csv
import re

_MARK = re.compile(r"^\s*(?:[-*•‣◦·–]\s+|\(?\d{1,3}[.)]\s+|#{1,6}\s+|>\s+)+")


def plain(text: str) -> str:
    """A quote on one line, without the mark of its list or heading and without marks of emphasis."""
    stripped = _MARK.sub("", text.strip())
    if stripped.startswith("|"):
        stripped = "\n".join(" | ".join(cells(row)) for row in stripped.splitlines() if row.strip(" |:-"))
    line = " ".join(re.sub(r"\*\*|__|`", "", stripped).split())
    if line.startswith("*") and line.endswith("*"):
        line = line.strip("*")
    return line or " ".join(text.split())


def fields(line: str) -> list[str]:
    """The cells of a line of CSV, by the mark that divides most of it."""
    mark = max(",;\t", key=line.count)
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=mark), [])]
    except csv.Error:
        return [cell.strip() for cell in line.split(mark)]


def cells(row: str) -> list[str]:
    """The cells of a row of a Markdown table."""
    return [cell.strip() for cell in row.strip().strip("|").split("|")]
