"""Splits a text into passages of a size to search and show, on the borders that the text itself has."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

LONGEST = 1200
"""Code points of the longest passage."""

_USUAL = 800
"""A border of the text from here on ends a passage."""

_SECTION = 400
"""A heading ends a passage that is at least this long."""

_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(\S.*?)[ \t]*#*$", re.M)
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_LINE = re.compile(r"(?<=[.!?:;。！？”\"|])[ \t]*\n")
_SENTENCE = re.compile(r"[.!?][\"”’)\]]*\s+|[。！？；]+[”」』]?\s*")
_ANY_LINE = re.compile(r"\n")
_SPACE = re.compile(r"\s+|(?<=[,;，、])")
_BORDERS = (_PARAGRAPH, _LINE, _SENTENCE, _ANY_LINE, _SPACE)
"""Best first."""


@dataclass(frozen=True)
class Passage:
    """Code points `start` to `end` of a text, without white space at the edges."""

    start: int
    end: int
    heading: str
    """Title of the section it begins in; empty if there is none."""


def split(text: str, *, headings: bool = True) -> list[Passage]:
    """Passages in order that do not overlap and hold all of `text` but white space between them.

    `headings`: whether lines of the form `# …` are headings; not so in source code.
    """
    marks = [(found.start(), found.group(2)) for found in _HEADING.finditer(text)] if headings else []
    starts = [start for start, _ in marks]
    passages: list[Passage] = []
    position = _skip(text, 0)
    while position < len(text):
        end = _end(text, position, starts)
        trimmed = position + len(text[position:end].rstrip())
        section = bisect_right(starts, position) - 1
        passages.append(Passage(position, trimmed, marks[section][1] if section >= 0 else ""))
        position = _skip(text, end)
    return passages


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _end(text: str, position: int, headings: list[int]) -> int:
    limit = min(position + LONGEST, len(text))
    if len(text) - position <= _USUAL:
        return len(text)
    following = bisect_left(headings, position + _SECTION)
    if following < len(headings) and headings[following] <= limit:
        return headings[following]
    if limit == len(text):
        return limit
    for border in _BORDERS:
        lowest = position + (_USUAL if border is not _SPACE else _SECTION)
        if border is _PARAGRAPH:
            lowest = position + _SECTION
        last = 0
        for found in border.finditer(text, lowest, limit):
            last = found.end()
            if border is _PARAGRAPH and last >= position + _USUAL:
                break
        if last:
            return last
    return _between_characters(text, position, limit)


def _between_characters(text: str, position: int, limit: int) -> int:
    """The last place at or before `limit` that does not part a letter from its marks."""
    end = limit
    while end > position + _SECTION and (unicodedata.combining(text[end]) or text[end] == "\u200d"):
        end -= 1
    return end
