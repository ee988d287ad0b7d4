"""Titles: which line or metadata field may stand as one."""

from __future__ import annotations

import re

_MARKS = re.compile(r"^[#>*_=\s]+|[#*_=\s]+$")
_FILE_NAME = re.compile(
    r"^(?:microsoft (?:word|powerpoint|excel) - .*|.*\.(?:docx?|pdf|tex|dvi|indd|odt|rtf|html?|md|txt|pptx?|xlsx?))$",
    re.I,
)
_PLACEHOLDER = frozenset(
    {
        "untitled",
        "untitled document",
        "document",
        "title",
        "contents",
        "table of contents",
        "abstract",
        "unknown",
        "none",
        "word document",
        "no title",
    }
)
_LONGEST = 200
_LONGEST_LINE = 120
_WRAPPED = 60
_FEWEST_LETTERS = 3
_SENTENCE_ENDS = (".", ",", ";", "!", "。", "，", "；")


def usable_title(raw: str | None) -> str | None:
    """A title in one line, or None for blanks, placeholders and left-over file names."""
    if not raw:
        return None
    title = " ".join(_MARKS.sub("", raw.replace("\0", "")).split())
    if not any(char.isalnum() for char in title):
        return None
    if title.lower() in _PLACEHOLDER or _FILE_NAME.match(title):
        return None
    return title if len(title) <= _LONGEST else title[: _LONGEST - 1].rstrip() + "…"


def first_line_title(text: str) -> str | None:
    """The first line that is not blank, if it looks like a title: short, with letters, neither a sentence
    nor the first line of a wrapped paragraph."""
    line, _, rest = text[:4000].lstrip().partition("\n")
    line = line.strip()
    if (
        len(line) > _LONGEST_LINE
        or line.endswith(_SENTENCE_ENDS)
        or sum(map(str.isalpha, line)) < _FEWEST_LETTERS
    ):
        return None
    follows = len(rest.partition("\n")[0].strip())
    if len(line) > _WRAPPED and follows > len(line) * 0.7:
        return None
    return usable_title(line)
