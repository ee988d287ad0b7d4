"""Where a text may be cut without tearing what a person sees as one character."""

from __future__ import annotations

from unicodedata import category, combining

_FARTHEST = 64
"""A longer cluster is noise, and may be torn."""

_ZERO_WIDTH_JOINER = "\u200d"
_VIRAMA = 9
"""The combining class of signs that join the next letter to the one before."""


def cut_before(text: str, at: int) -> int:
    """The last place up to `at` that is inside of no character that a person sees."""
    for place in range(at, max(at - _FARTHEST, 0) - 1, -1):
        if not _inside(text, place):
            return place
    return at


def cut_after(text: str, at: int) -> int:
    """The first place from `at` on that is inside of no character that a person sees."""
    for place in range(at, min(at + _FARTHEST, len(text)) + 1):
        if not _inside(text, place):
            return place
    return at


def _inside(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if before.isascii() and after.isascii():
        return before == "\r" and after == "\n"
    return _extends(after) or _joins(before, after) or _is_flag(text, at)


def _extends(character: str) -> bool:
    """Whether it belongs to the character before it."""
    return (
        category(character)[0] == "M"
        or character in ("\u200c", _ZERO_WIDTH_JOINER)
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # tones of skin
        or "\U000e0020" <= character <= "\U000e007f"  # what flags of regions are spelled with
        or "\u1160" <= character <= "\u11ff"  # vowels and finals of Korean syllables
    )


def _joins(before: str, after: str) -> bool:
    return before == _ZERO_WIDTH_JOINER or (combining(before) == _VIRAMA and category(after)[0] == "L")


def _is_flag(text: str, at: int) -> bool:
    """Whether the place is between the two letters of a flag."""
    if not _regional(text[at]):
        return False
    first = at
    while first > max(at - _FARTHEST, 0) and _regional(text[first - 1]):
        first -= 1
    return (at - first) % 2 == 1


def _regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
