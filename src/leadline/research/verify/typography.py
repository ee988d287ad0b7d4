"""The one normal form in which two spellings of the same words are equal, with a map back to the original.

What it levels is typography, never wording: white space (line breaks, no-break spaces; next to Chinese and
Japanese characters white space is dropped), soft hyphens and invisible characters, hyphenation at line ends,
curly and straight quotation marks, dashes, ligatures, full-width forms, composed and decomposed letters, and
the one-character ellipsis. What could change a meaning stays as it is: letter case, digits, superscripts and
fractions (10² is not 102), emphasis marks, punctuation.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass

from leadline.core.patterns import lazy_pattern

JOIN = "\x00"
"""Stands for a hyphen at a line end: it may be a real hyphen or only a broken word."""

_HIDDEN = "\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\x00"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63"
_CJK = "\u2e80-\u2fdf\u3001-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SINGLE_QUOTES = "\u2018\u2019\u201a\u201b\u2032\u00b4\u0060"
_DOUBLE_QUOTES = "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb"
_MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093c\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f"

_PARTS = {
    "hyphen": r"(?<=\w)[-\u2010\u00ad][^\S\r\n]*[\r\n]\s*(?=\w)",
    "space": rf"[\s{_HIDDEN}]{{2,}}|[^\S ]|[{_HIDDEN}]|(?<=[{_CJK}]) | (?=[{_CJK}])",
    "dash": rf"-?[{_DASHES}][-{_DASHES}]*|--+",
    "single": rf"[{_SINGLE_QUOTES}]",
    "double": rf"[{_DOUBLE_QUOTES}]",
    "compat": r"[\ufb00-\ufb06\uff01-\uff9f\uffe0-\uffe6\u2026]",
}
_COMPOSE = rf"[^\s{_MARKS}][{_MARKS}]+|[\u1100-\u11ff]+|[\u2126\u212a\u212b\uf900-\ufaff]"
_COMPOSED_TEXT = lazy_pattern("|".join(f"(?P<{name}>{part})" for name, part in _PARTS.items()))
_ANY_TEXT = lazy_pattern(
    "|".join(f"(?P<{name}>{part})" for name, part in [("compose", _COMPOSE), *_PARTS.items()])
)
_IS_CJK = lazy_pattern(f"[{_CJK}]")
_HAS_SPACE = lazy_pattern(r"\s")


@dataclass(frozen=True)
class Normal:
    """A text in normal form; `span` maps back to the original, in code points."""

    text: str
    _starts: tuple[int, ...]
    """Where each segment begins in the normal form."""
    _origins: tuple[int, ...]
    """Where it begins in the original."""
    _ends: tuple[int, ...]
    """Where it ends in the original."""
    _plain: tuple[bool, ...]
    """Whether it is the same in both."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The original span behind a span of the normal form that is not empty."""
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end - 1) - 1
        begin = self._origins[first] + (start - self._starts[first] if self._plain[first] else 0)
        if self._plain[last]:
            return begin, self._origins[last] + (end - self._starts[last])
        return begin, self._ends[last]


def normalise(text: str) -> Normal:
    """The normal form of a text, in time linear in its length."""
    pattern = _COMPOSED_TEXT if unicodedata.is_normalized("NFC", text) else _ANY_TEXT
    pieces: list[str] = []
    starts: list[int] = []
    origins: list[int] = []
    ends: list[int] = []
    plain: list[bool] = []
    length = 0

    def add(piece: str, origin: int, end: int, is_plain: bool) -> None:
        nonlocal length
        if not piece:
            return
        pieces.append(piece)
        starts.append(length)
        origins.append(origin)
        ends.append(end)
        plain.append(is_plain)
        length += len(piece)

    done = 0
    for found in pattern.finditer(text):
        start, end = found.span()
        add(text[done:start], done, start, True)
        add(_replacement(text, found), start, end, False)
        done = end
    add(text[done:], done, len(text), True)
    return Normal("".join(pieces), tuple(starts), tuple(origins), tuple(ends), tuple(plain))


def _replacement(text: str, found: re.Match[str]) -> str:
    matched = found.group()
    match found.lastgroup:
        case "hyphen":
            return "" if matched[0] == "\u00ad" else JOIN
        case "space":
            return _space(text, found)
        case "dash":
            return "-"
        case "single":
            return "'"
        case "double":
            return '"'
        case "compose":
            return unicodedata.normalize("NFC", matched)
        case _:
            return unicodedata.normalize("NFKC", matched)


def _space(text: str, found: re.Match[str]) -> str:
    if not _HAS_SPACE.search(found.group()):
        return ""
    before = text[found.start() - 1 : found.start()]
    after = text[found.end() : found.end() + 1]
    return "" if _IS_CJK.match(before) or _IS_CJK.match(after) else " "


def level(text: str) -> str:
    """The normal form as plain text for comparing: broken words joined with a hyphen, edges stripped.

    Levelling a levelled text changes nothing, so that offsets into it stay good.
    """
    while True:
        levelled = normalise(text).text.replace(JOIN, "-").strip()
        if levelled == text:
            return levelled
        text = levelled
