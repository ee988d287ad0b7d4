"""The blocks of a text that has Markdown in it: its words without the marks of lists, headings, tables and emphasis.

Documents of many kinds are stored as text with such marks. They say how words are set, not what is said, so that
the checks and the reader of a report do without them. What could be more than a mark stays: numbers of lists,
struck-out words, stars and underscores within words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from leadline.core.patterns import lazy_pattern

Kind = Literal["paragraph", "heading", "item", "row"]

BORDER = " | "
"""Stands between two blocks, and between two cells of a table."""

_QUOTED = lazy_pattern(r"^\s*>[ \t]?(?!\s*\d)")
_HEADING = lazy_pattern(r"\s*#{1,6}\s+(?=\S)")
_ITEM = lazy_pattern(r"\s*(?:[-*+•‣◦·]|–(?=\s+\S))\s+(?=\S)")
_NUMBERED = lazy_pattern(r"\s*\(?\d{1,3}[.)]\s+\S")
_ROW = lazy_pattern(r"\s*\|.*")
_RULE = lazy_pattern(
    r"\s*(?:\|?\s*:?-+:?\s*\|\s*(?::?-+:?\s*\|\s*)*(?::?-+:?)?|(?:[-*_]\s*){3,}|={3,}|`{3,}\S*|~{3,}\S*)\s*"
)
_CELL = lazy_pattern(r"(?<!\\)\|")

_EMPHASIS: tuple[tuple[re.Pattern[str], str], ...] = (
    (lazy_pattern(r"(?<!\w)\*{2,3}|\*{2,3}(?!\w)"), ""),
    (lazy_pattern(r"(?<![\w_])(_{1,3})(?=[^\s_])([^_]*(?:\w_\w[^_]*)*)(?<=[^\s_])\1(?![\w_])"), r"\2"),
    (lazy_pattern(r"(?<![\w*])\*(?=[^\s*])([^*]*)(?<=[^\s*])\*(?![\w*])"), r"\1"),
    (lazy_pattern(r"(`+)([^`]+)\1(?!`)"), r"\2"),
    (lazy_pattern(r"\\([!-/:-@\[-`{-~])"), r"\1"),
)


@dataclass(frozen=True)
class TextBlock:
    """One block: its words, in which a table row has `BORDER` between its cells."""

    kind: Kind
    text: str
    row: tuple[str, ...] = ()

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of a row; of another block its text."""
        return self.row or (self.text,)


def blocks(text: str) -> tuple[TextBlock, ...]:
    """The blocks of a text in order, without their marks; the rules under headings and within tables are left out."""
    found: list[TextBlock] = []
    open_block = False
    for raw in text.splitlines():
        line = _QUOTED.sub("", raw)
        if not line.strip() or _RULE.fullmatch(line):
            open_block = False
            continue
        block = _line(line)
        if block.kind == "paragraph" and open_block and not _NUMBERED.match(line):
            found[-1] = TextBlock(found[-1].kind, f"{found[-1].text} {block.text}")
        elif block.text:
            found.append(block)
        open_block = bool(found) and found[-1].kind in ("paragraph", "item")
    return tuple(found)


def unmarked(text: str, border: str = BORDER) -> str:
    """The words of a text on one line, with a border between its blocks."""
    return border.join(block.text for block in blocks(text))


def is_table_line(line: str) -> bool:
    """Whether a line is a row of a table or the rule under its head."""
    return bool(_ROW.fullmatch(_QUOTED.sub("", line)))


def is_rule(line: str) -> bool:
    """Whether a line only sets others apart, such as the one under the head of a table."""
    return bool(_RULE.fullmatch(_QUOTED.sub("", line)))


def _line(line: str) -> TextBlock:
    if _ROW.fullmatch(line):
        inner = line.strip().removeprefix("|")
        inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
        cells = tuple(_words(cell) for cell in _CELL.split(inner))
        return TextBlock("row", BORDER.join(cells), cells)
    heading = _HEADING.match(line)
    if heading:
        return TextBlock("heading", _words(line[heading.end() :]))
    item = _ITEM.match(line)
    if item:
        return TextBlock("item", _words(line[item.end() :]))
    return TextBlock("paragraph", _words(line))


def _words(text: str) -> str:
    for pattern, inside in _EMPHASIS:
        text = pattern.sub(inside, text)
    return " ".join(text.split())
