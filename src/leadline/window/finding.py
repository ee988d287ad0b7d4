"""Finds a text in a text as a person would: in any case, any width, any Unicode form, across line ends."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from functools import lru_cache
from unicodedata import category, combining, normalize


def spans(text: str, words: str) -> Iterator[tuple[int, int]]:
    """Start and end of each place where `words` stand in `text`; none overlaps the one before.

    Upper and lower case, full and half width, composed and decomposed letters are the same; any white space is
    one blank. Letters with and without marks differ. Blank words stand nowhere.
    """
    if text.isascii():
        yield from _in_ascii(text, words)
        return
    folded, starts = _folded(text)
    wanted = _folded(words)[0].strip()
    at = folded.find(wanted) if wanted else -1
    while at >= 0:
        end = at + len(wanted)
        if _whole(folded, starts, at, end):
            yield starts[at], starts[end] if end < len(starts) else len(text)
            at = folded.find(wanted, end)
        else:
            at = folded.find(wanted, at + 1)


def _in_ascii(text: str, words: str) -> Iterator[tuple[int, int]]:
    parts = _folded(words)[0].split()
    if parts and "".join(parts).isascii():
        pattern = re.compile(r"\s+".join(re.escape(part) for part in parts))
        for found in pattern.finditer(text.lower()):
            yield found.span()


def _whole(folded: str, starts: array[int], at: int, end: int) -> bool:
    """Whether a place begins and ends between characters: not in a syllable, a ligature, or before a mark."""
    if at and starts[at] == starts[at - 1]:
        return False
    return end == len(folded) or (starts[end] != starts[end - 1] and not combining(folded[end]))


def _folded(text: str) -> tuple[str, array[int]]:
    """The text in the form in which it is compared, and for each of its characters where it comes from."""
    parts: list[str] = []
    starts = array("l")
    blank = False
    for at, character in enumerate(text):
        part = _form(character)
        if part == " " and blank:
            continue
        if part:
            blank = part == " "
            parts.append(part)
            starts.extend([at] * len(part))
    return "".join(parts), starts


@lru_cache(maxsize=8192)
def _form(character: str) -> str:
    if character.isspace():
        return " "
    if category(character) == "Cf":
        return ""
    return normalize("NFKD", normalize("NFKD", character).casefold())
