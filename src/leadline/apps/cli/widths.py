"""How many columns of a terminal a text takes, and tables that fit into it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import category, east_asian_width

from leadline.apps.cli.streams import visible

_GAP = "  "
_ELLIPSIS = "…"
_NO_WIDTH = ("Mn", "Me", "Cf")


def columns_of(text: str) -> int:
    """How many columns the text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def fitting(text: str, columns: int) -> str:
    """The beginning of the text that fits; a line that wraps could not be cleared."""
    for at, character in enumerate(text):
        columns -= _width(character)
        if columns < 0:
            return text[:at]
    return text


def shortened(text: str, columns: int) -> str:
    """The text, or its beginning and an ellipsis, in at most so many columns."""
    if columns_of(text) <= columns:
        return text
    return fitting(text, columns - 1).rstrip() + _ELLIPSIS if columns > 1 else fitting(text, columns)


def terminal_columns() -> int | None:
    """The width that a document for a person has to fit into; None where stdout is no terminal."""
    terminal = bool(sys.stdout) and sys.stdout.isatty()
    return max(20, shutil.get_terminal_size().columns) if terminal else None


def _width(character: str) -> int:
    if east_asian_width(character) in "WF":
        return 2
    return 0 if category(character) in _NO_WIDTH else 1


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    head: str
    cells: Sequence[str]
    right: bool = False
    drop: int = 0
    """Which columns a narrow terminal loses: those with the highest number first; 0 is kept."""


def table(columns: Sequence[Column], width: int | None, least: int = 16) -> str:
    """The columns as lines with a head. Where `width` is given, nothing is wider.

    The last column is shortened to fit. Before it has less than `least`, others are left out.
    """
    # A line end in a cell would end the line.
    shown = [(one, [" ".join(visible(cell).split()) for cell in (one.head, *one.cells)]) for one in columns]
    shown = [(one, cells) for one, cells in shown if any(cells[1:]) or not one.drop]
    if width is not None:
        while (drop := max(one.drop for one, _ in shown)) and width - _taken(shown[:-1]) < least:
            shown = [(one, cells) for one, cells in shown if one.drop != drop]
    widths = [max(map(columns_of, cells)) for _, cells in shown]
    if width is not None:
        widths[-1] = max(1, min(widths[-1], width - _taken(shown[:-1])))
    lines = [
        _GAP.join(
            _padded(shortened(cells[row], room), room, right=one.right)
            for (one, cells), room in zip(shown, widths, strict=True)
        ).rstrip()
        for row in range(len(shown[0][1]))
    ]
    return "\n".join(line if width is None else fitting(line, width) for line in lines)


def _taken(shown: Sequence[tuple[Column, list[str]]]) -> int:
    return sum(max(map(columns_of, cells)) + len(_GAP) for _, cells in shown)


def _padded(text: str, columns: int, *, right: bool) -> str:
    fill = " " * (columns - columns_of(text))
    return fill + text if right else text + fill
