"""Where the records of a CSV text begin, and the cells of each."""

from __future__ import annotations

import csv
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

MARKS = {"text/csv": ",;\t", "text/tab-separated-values": "\t"}
"""By media type, the marks that may stand between two cells."""


@dataclass(frozen=True, eq=False)
class Records:
    """The records of one text. A record is a line, or several where a cell in quotation marks has line breaks."""

    text: str
    mark: str
    """What stands between two cells."""
    starts: array[int]
    """Where each record begins, in code points; after the last one the length of the text."""
    widths: array[int]
    """How many cells each has; 0 is a blank line."""

    def at(self, offset: int) -> int:
        """The number of the record in which an offset lies."""
        return min(bisect_right(self.starts, offset), len(self.widths)) - 1

    def span(self, number: int) -> tuple[int, int]:
        """Where a record begins and ends, with its line break."""
        return self.starts[number], self.starts[number + 1]

    def cells(self, number: int) -> tuple[str, ...]:
        begin, end = self.span(number)
        rows = csv.reader(self.text[begin:end].splitlines(keepends=True), delimiter=self.mark)
        return tuple(" ".join(cell.split()) for row in rows for cell in row)

    def whole(self, start: int, end: int) -> range | None:
        """The records that a span covers; None where it cuts one or lies outside of the text."""
        if not 0 <= start < end <= len(self.text):
            return None
        first, last = self.at(start), self.at(end - 1)
        cut = self.text[self.starts[first] : start] + self.text[end : self.starts[last + 1]]
        return None if cut.strip() else range(first, last + 1)


@lru_cache(maxsize=4)
def csv_records(text: str, media_type: str) -> Records | None:
    """The records of a text of that media type; None where it is none of CSV, or a broken one."""
    mark = _mark(text, MARKS.get(media_type, ""))
    if not mark:
        return None
    starts, widths = array("Q", [0]), array("L")
    taken = 0

    def lines() -> Iterator[str]:
        nonlocal taken
        while taken < len(text):
            end = text.find("\n", taken) + 1 or len(text)
            line, taken = text[taken:end], end
            yield line

    try:
        for row in csv.reader(lines(), delimiter=mark):
            starts.append(taken)
            widths.append(len(row) if any(cell.strip() for cell in row) else 0)
    except csv.Error:
        return None
    return Records(text, mark, starts, widths) if widths else None


def _mark(text: str, marks: str) -> str:
    """The mark that divides the first line into most cells; none where no mark divides it."""
    first = next((line for line in text[:100_000].splitlines() if line.strip()), "")
    counts = {mark: len(next(csv.reader([first], delimiter=mark))) for mark in marks if mark in first}
    return max(counts, key=lambda mark: counts[mark], default="")
