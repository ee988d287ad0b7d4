"""Scripts that are written without spaces between words, made searchable by pairs of letters."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from leadline.core.patterns import lazy_pattern

UNSPACED = "\u1100-\u11ff\u3005\u3007\u3041-\u3096\u30a1-\u30fa\u30fc-\u30fe\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\uac00-\ud7a3\U00020000-\U0003ffff"
"""Letters of such scripts, as the inside of a character class."""

SPACED = r"(?-i:[0-9A-Z_a-zÀ-ÖØ-öø-ÿ])"
"""A letter, number or underscore of Latin-1: instead of `\\w` at the border of a name or number that may be glued to
letters of such scripts. Small, as a class of all other letters takes a millisecond to compile."""

RUN = lazy_pattern(f"[{UNSPACED}]+")
"""Such letters without anything between them."""

_SEAM = "\x03"
"""Stands around letters of such scripts, so that a number or a name in the midst of them is a word."""


def pairs(text: str) -> str:
    """Letter pairs of each run without spaces, and its last letter, as words for a full-text index."""
    return " ".join(pair for run in RUN.findall(unicodedata.normalize("NFC", text)) for pair in _of(run))


def asked_pairs(run: str) -> list[str]:
    """The words of `pairs` that a text has when it has `run`; a single letter begins one of them."""
    return [run] if len(run) == 1 else [run[index : index + 2] for index in range(len(run) - 1)]


def apart(text: str) -> str:
    """`text` for a full-text index: with seams around the runs, so that what is glued to them is a word of its own.

    What looks like a seam before becomes a space.
    """
    if text.isascii():
        return text.replace(_SEAM, " ")
    return RUN.sub(rf"{_SEAM}\g<0>{_SEAM}", text.replace(_SEAM, " "))


def together(text: str) -> str:
    """What `apart` was given, code point for code point."""
    return text.replace(_SEAM, "")


def _of(run: str) -> Iterable[str]:
    yield from (run[index : index + 2] for index in range(len(run) - 1))
    yield run[-1]
