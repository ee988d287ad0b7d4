"""From what a person types to a full-text expression, and from a text that was found to a line to show."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from leadline.core.patterns import lazy_pattern
from leadline.core.unspaced import RUN, UNSPACED, apart, asked_pairs, together

_WORD = lazy_pattern(rf"(?:(?![_{UNSPACED}])\w)+")
_MOST_TERMS = 24
_CONTROL = lazy_pattern(r"[\x00-\x08\x0b-\x1f\x7f]")

OPEN, CLOSE = "\x01", "\x02"
"""Stand around a word that the full-text index marks; they are in no text."""

_BEFORE, _SHOWN = 60, 200


@dataclass(frozen=True)
class Words:
    """What is looked for."""

    terms: tuple[str, ...]
    """Each as a part of a full-text expression over the columns of the index; quoted, so that nothing in it is syntax."""
    runs: tuple[str, ...]
    """Words of scripts without spaces."""

    @property
    def all(self) -> str:
        """Matches what has every term."""
        return " AND ".join(self.terms)

    @property
    def any(self) -> str:
        """Matches what has one of the terms."""
        return " OR ".join(self.terms)


def parse(text: str) -> Words | None:
    """The words in `text`; None where it has none."""
    composed = unicodedata.normalize("NFC", text)
    words = [f'{{head body}} : "{found.group()}"' for found in _WORD.finditer(composed)]
    runs = list(dict.fromkeys(found.group() for found in RUN.finditer(composed)))
    terms = dict.fromkeys([*words, *map(_phrase, runs)])
    return Words(tuple(terms)[:_MOST_TERMS], tuple(runs)) if terms else None


def _phrase(run: str) -> str:
    """The pairs of a run one behind the other: they stand so only where the run stands."""
    pairs = " ".join(asked_pairs(run))
    phrase = f'{{head_pairs body_pairs}} : "{pairs}"'
    return phrase if len(run) > 1 else f"{phrase} *"


def indexed(text: str) -> str:
    """`text` as the index keeps it: composed, without control characters, and with seams between scripts."""
    if text.isascii():
        return _CONTROL.sub(" ", text)
    return apart(_CONTROL.sub(" ", unicodedata.normalize("NFC", text)))


def folded(text: str) -> str:
    """`text` as it is compared where its case does not matter."""
    return unicodedata.normalize("NFC", text).casefold()


def snippet(marked: str, runs: tuple[str, ...]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """One line of a text around the words that were found in it, and where they stand in that line.

    Args:
        marked: the text as it was indexed, with OPEN and CLOSE around each word.
        runs: words without spaces, which are not marked.
    """
    text, found = _unmarked(marked)
    found = sorted({*found, *(span for run in runs for span in _places(text, run))})
    begin = _best(found)
    begin = max(0, begin - _BEFORE)
    if begin:
        space = text.find(" ", begin, begin + _BEFORE // 2)
        begin = space + 1 if space >= 0 else begin
    end = min(len(text), begin + _SHOWN)
    return _line(text, begin, end, [(a, b) for a, b in found if begin <= a and b <= end])


def _unmarked(marked: str) -> tuple[str, list[tuple[int, int]]]:
    parts: list[str] = []
    found: list[tuple[int, int]] = []
    at = 0
    for index, piece in enumerate(re.split(f"[{OPEN}{CLOSE}]", together(marked))):
        parts.append(piece)
        if index % 2:
            found.append((at, at + len(piece)))
        at += len(piece)
    return "".join(parts), found


def _places(text: str, run: str) -> Iterator[tuple[int, int]]:
    for found in re.finditer(re.escape(run), text):
        yield found.span()


def _best(found: list[tuple[int, int]]) -> int:
    """Where the stretch begins that holds most of what was found."""
    best, most = 0, 0
    for index, (start, _) in enumerate(found):
        inside = sum(1 for _, end in found[index : index + _MOST_TERMS] if end <= start + _SHOWN - _BEFORE)
        if inside > most:
            best, most = start, inside
    return best


def _line(
    text: str, begin: int, end: int, found: list[tuple[int, int]]
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """A stretch of the text with its line ends as spaces; each is one code point for one, so that places stay."""
    before, after = ("…" if begin else ""), ("…" if end < len(text) else "")
    line = re.sub(r"\s", " ", text[begin:end])
    shift = len(before) - begin
    return before + line + after, tuple((a + shift, b + shift) for a, b in found)
