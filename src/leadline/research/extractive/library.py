"""The documents that searches returned, as extraction looks at them, and what the whole collection is about."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from leadline.research.extractive.hints import folded, may_hold
from leadline.research.extractive.language import Language, language_of
from leadline.research.extractive.matching import likeness
from leadline.research.extractive.passages import Passage, passages
from leadline.research.extractive.plain import plain
from leadline.research.extractive.question import Term
from leadline.research.sources.dates import DatedBy, document_date, header_lines

OPENING = 200
"""Characters with which a document says what it is about."""
MIN_SHARING = 2
"""Documents that have to speak of what is the subject of all, at least."""
MAX_TEXT = 400_000
"""Characters of one document that are looked at."""


@dataclass(frozen=True)
class Document:
    """A document that a search returned, with its text."""

    source: str
    title: str
    location: str
    text: str
    published: str | None = None
    rank: int = 0
    place: int = 0
    """Where the search found it to match: what is looked at of a very long text lies around it."""

    @property
    def passages(self) -> tuple[Passage, ...]:
        """What can be quoted of it."""
        return _passages_around(self.text, self.location, self.place)

    @property
    def dated(self) -> DatedBy | None:
        return _dated(self.text, self.published)

    @property
    def heading(self) -> str:
        """Its name and the lines with which it begins."""
        return "\n".join((self.name, *header_lines(self.text)))

    @property
    def header(self) -> frozenset[str]:
        """The lines with which it begins, in plain words."""
        return _header(self.text)

    @property
    def opening(self) -> str:
        """Its name and its first words."""
        return f"{self.name}\n{self.text[:OPENING]}"

    @property
    def folded(self) -> str:
        """The part of the text that is looked at, folded."""
        return _folded(self.text, self.place)

    @property
    def language(self) -> Language:
        return language_of(self.text[:4000])

    @property
    def name(self) -> str:
        """The title and the words of the file name."""
        stem = self.location.rsplit("/", 1)[-1].rsplit(".", 1)[0].replace("_", " ").replace("-", " ")
        return f"{self.title}\n{stem}"


def _looked_at(text: str, place: int) -> tuple[int, int]:
    """The part of a text that is looked at: all of it, or `MAX_TEXT` characters around a place, in whole lines."""
    if len(text) <= MAX_TEXT:
        return 0, len(text)
    start = max(0, min(place - MAX_TEXT // 2, len(text) - MAX_TEXT))
    return (text.rfind("\n", 0, start) + 1 if start else 0), start + MAX_TEXT


@lru_cache(maxsize=64)
def _folded(text: str, place: int) -> str:
    start, end = _looked_at(text, place)
    return folded(text[start:end])


@lru_cache(maxsize=64)
def _passages_around(text: str, location: str, place: int) -> tuple[Passage, ...]:
    start, end = _looked_at(text, place)
    found = passages(text[start:end], location)
    return tuple(one.moved(start) for one in found) if start else found


@lru_cache(maxsize=512)
def _header(text: str) -> frozenset[str]:
    return frozenset(plain(line) for line in header_lines(text))


@lru_cache(maxsize=512)
def _dated(text: str, published: str | None) -> DatedBy | None:
    return document_date(text, published)


@dataclass(frozen=True)
class Library:
    """The documents that are known, and how many there are to search."""

    documents: tuple[Document, ...]
    total: int
    _holds: dict[tuple[str, Language], int] = field(
        default_factory=dict[tuple[str, Language], int], compare=False
    )

    def count(self, term: Term, language: Language) -> int:
        """How many of the known documents seem to hold a term."""
        key = (f"{term.kind} {term.text}", language)
        if key not in self._holds:
            self._holds[key] = sum(may_hold(term, document.folded, language) for document in self.documents)
        return self._holds[key]

    def is_subject(self, term: Term, language: Language) -> bool:
        """Whether a name is what the whole collection is about, so that a document need not repeat it."""
        if term.kind not in ("name", "word", "cjk") or term.concepts or term.surface.isupper():
            return False
        is_name = term.surface[:1].isupper()
        titled = len(
            {
                one.title
                for one in self.documents
                if likeness(term, one.heading if is_name else one.name, language) > 0
            }
        )
        if self.total <= 2:
            return titled > 0
        if titled >= max(MIN_SHARING, self.total / 4):
            return True
        opened = sum(likeness(term, one.opening, language) > 0 for one in self.documents)
        return is_name and opened >= max(MIN_SHARING, self.total / 2)
