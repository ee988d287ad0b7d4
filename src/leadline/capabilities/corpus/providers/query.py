"""Turns free text into a full-text expression, and tells which of its words a passage holds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Literal, Protocol, cast

from leadline.core.unspaced import RUN, UNSPACED, asked_pairs

_WORD = re.compile(rf"\d+(?:[.,]\d+)+|(?:(?![_{UNSPACED}])\w)+")
_MOST_TERMS = 32


_MOST_ENDING = 6
"""Letters that may follow the root of a word."""


@dataclass(frozen=True)
class Term:
    """One thing asked for: a word with its endings, a number, or two letters of a script without spaces."""

    text: str
    root: str
    """What of it stands in folded text, roughly as the index has it, for ranking and for showing."""
    stands: Literal["anywhere", "whole", "with endings"]

    def places(self, folded: str) -> Iterator[tuple[int, int]]:
        """Start and end of each place where it stands. By hand: a pattern costs more than it saves, for so few texts."""
        at = folded.find(self.root)
        while at >= 0:
            end = at + len(self.root)
            if self.stands == "anywhere":
                yield at, end
            elif not (at and _is_spaced(folded[at - 1])):
                last = end
                while last < len(folded) and last - end <= _MOST_ENDING and _is_spaced(folded[last]):
                    last += 1
                if self.stands == "with endings" or last == end:
                    yield at, min(last, end + _MOST_ENDING)
            at = folded.find(self.root, at + 1)

    @property
    def weight(self) -> int:
        """How much its absence tells: a year or a model number that is not there, more than a word."""
        return 2 if any(char.isdigit() for char in self.text) else 1


@dataclass(frozen=True)
class Query:
    """What is left of free text to search for."""

    terms: tuple[Term, ...]
    expression: str
    """For MATCH: any of the terms. Every term is a quoted string, so nothing in it is syntax."""

    def found_in(self, folded: str) -> Iterator[tuple[int, int, int]]:
        """Start, end and number of the term, for each place where a term stands."""
        for number, term in enumerate(self.terms):
            for start, end in term.places(folded):
                yield start, end, number


def parse(text: str) -> Query | None:
    """The query in `text`, or None if it holds nothing to search for."""
    composed = unicodedata.normalize("NFC", text)
    words = dict.fromkeys(fold(found.group()) for found in _WORD.finditer(composed))
    telling = [word for word in words if word not in _stop_words()] or list(words)
    terms = [_word(word) for word in telling]
    quoted = [f'"{word}"' for word in telling]
    for found in RUN.finditer(composed):
        for gram in asked_pairs(found.group()):
            terms.append(Term(gram, gram, "anywhere"))
            quoted.append(f'"{gram}"' if len(gram) > 1 else f'"{gram}" *')
    if not terms:
        return None
    kept = dict(zip((term.text for term in terms), zip(terms, quoted, strict=True), strict=True))
    chosen = list(kept.values())[:_MOST_TERMS]
    return Query(tuple(term for term, _ in chosen), " OR ".join(quote for _, quote in chosen))


def fold(text: str) -> str:
    """`text` in small letters without diacritics, one code point for one, so that offsets stay."""
    if text.isascii():
        return text.lower()
    return "".join(map(_plain, text))


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    lowered = char.lower()
    if not RUN.match(char):
        lowered = unicodedata.normalize("NFD", lowered)
    return lowered[:1] or char


def _word(word: str) -> Term:
    if not word.isalpha() or len(word) < 4:
        return Term(word, word, "whole")
    root = _stemmer()(word)
    if root.endswith("i"):  # Porter writes a final y as i
        root = root[:-1]
    root = root if word.startswith(root) else word
    return Term(word, root, "with endings")


@lru_cache(maxsize=4096)
def _is_spaced(char: str) -> bool:
    """Whether a letter, number or underscore belongs to a word of a script with spaces between words."""
    return (char.isalnum() or char == "_") and not RUN.match(char)


@lru_cache(maxsize=1)
def _stop_words() -> frozenset[str]:
    lines = (
        files("leadline.capabilities.corpus.providers")
        .joinpath("stop_words.txt")
        .read_text("utf-8")
        .splitlines()
    )
    return frozenset(fold(word) for line in lines if not line.startswith("#") for word in line.split())


class _Stemmer(Protocol):
    def stemWord(self, word: str, /) -> str: ...  # noqa: N802 - the library's name


class _Stemmers(Protocol):
    """What is used of snowballstemmer, which ships no types."""

    def stemmer(self, language: str, /) -> _Stemmer: ...


@lru_cache(maxsize=1)
def _stemmer() -> Callable[[str], str]:
    import snowballstemmer  # noqa: PLC0415 - loads all languages

    return cast("_Stemmers", snowballstemmer).stemmer("porter").stemWord
