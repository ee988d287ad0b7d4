"""Whether a passage answers a question: which of its terms are covered, where, and what is missing.

Precision comes first: a passage that lacks one telling term of the question (a product code, a year, a name, a
word that is no general one) is no answer, however much else it shares.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from leadline.research.extractive.features import MONTHS, features
from leadline.research.extractive.hints import folded, may_hold
from leadline.research.extractive.kinds import (
    is_only_a_share,
    names_person,
    nearness,
    satisfies,
    states_money,
    states_percent,
)
from leadline.research.extractive.language import Language, language_of
from leadline.research.extractive.matching import likeness
from leadline.research.extractive.passages import Passage, passages
from leadline.research.extractive.question import Question, Term
from leadline.research.sources.dates import DatedBy, dates_in, document_date, header_lines

LEAD = 0.95
HEADING = 0.85
TITLE = 0.75
NEAR = 0.65
SUBJECT = 0.6
OPENING = 200
"""Characters with which a document says what it is about."""
AMOUNT = 0.9
"""How well an amount of money covers words such as "cost"."""
ELSEWHERE = 0.3
"""How well a term is covered that only another part of the document holds, beside several that the passage has."""
SECTION = 0.5
"""How much the heading right over a passage counts as its own words."""
_POINTS_BACK = re.compile(
    r"\W*(?:\w+\W+){0,2}?(?:it|its|she|her|he|his|him|they|their|them|this|these|that|those|both|such|er|sie|es|sein\w*|ihr\w*|dies\w*|"
    r"il|elle|ils|elles|son|sa|ses|leur|leurs|ce|cet|cette|ces|ella|él|ellos|su|sus|este|esta|estos|estas)(?!\w)|.*[它他她其这那それこの]",
    re.IGNORECASE,
)
"""A sentence that begins by pointing at what was named before it."""
_QUARTER = re.compile(r"[qh][1-4]")
PRICED = frozenset({"price", "budget"})
PERIODS = frozenset(MONTHS)
ENOUGH = 0.62
"""Share of the weight of the question's terms that an answer covers at least."""
LOCAL = 0.25
"""Share that an answer covers in its own words."""
SOFT_WEIGHT = 0.3
ENTITY_WEIGHT = 1.3
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
        known = len(self.documents)
        titled = sum(likeness(term, one.heading, language) > 0 for one in self.documents)
        opened = sum(likeness(term, one.opening, language) > 0 for one in self.documents)
        if self.total <= 2:
            return opened > 0
        return (titled >= min(3, known) and titled * 4 >= known) or (
            opened >= min(3, known) and opened * 2 >= known
        )


@dataclass(frozen=True)
class Match:
    """A passage held against a question."""

    document: Document
    passage: Passage
    score: float
    """0 to 1: how much of the question is covered, then adjusted for order among answers."""
    missing: tuple[Term, ...]
    fits: bool
    """Holds the kind of thing that is wanted."""
    local: float
    """Share covered in the passage's own words and the heading right over it."""
    own: float = 0.0
    """Share covered in the passage's own words."""

    @property
    def answers(self) -> bool:
        return not self.missing and self.fits and self.score >= ENOUGH and self.local >= LOCAL


def match_document(question: Question, document: Document, library: Library) -> list[Match]:
    """Every passage of a document that has something of a question, held against it, in order."""
    question = _pointed(question, library)
    weights = _weights(question, library)
    subjects = frozenset(term for term in question.terms if library.is_subject(term, question.language))
    given = subjects | _given(question, document)
    return [
        _match(question, document, passage, weights, subjects)
        for passage in document.passages
        if _may_answer(question, passage, given)
    ]


def _given(question: Question, document: Document) -> frozenset[Term]:
    """The terms that the name or the date of a document may cover for all its passages."""
    name = folded(document.name)
    year = document.dated.date[:4] if document.dated else ""
    return frozenset(
        term
        for term in question.terms
        if may_hold(term, name, question.language) or (term.kind == "year" and term.text == year)
    )


def _may_answer(question: Question, passage: Passage, given: frozenset[Term]) -> bool:
    """Whether a quick look leaves it open that a passage answers: nearly all telling terms have to be about."""
    context = folded("\n".join((passage.text, passage.lead, passage.near, *passage.headings)))
    absent = [
        term
        for term in question.strict
        if term not in given and not may_hold(term, context, question.language)
    ]
    return not absent or (len(absent) == 1 and len(question.strict) > 3 and not absent[0].is_entity)


def _pointed(question: Question, library: Library) -> Question:
    """With nothing but the subject of the collection to go by, general words such as "leads" are what is asked."""
    telling = [term for term in question.strict if not library.is_subject(term, question.language)]
    if telling or all(term.strict for term in question.terms):
        return question
    terms = tuple(term if term.strict else replace(term, kind="word") for term in question.terms)
    return replace(question, terms=terms)


def _weights(question: Question, library: Library) -> dict[Term, float]:
    known = max(1, len(library.documents))
    weights: dict[Term, float] = {}
    for term in question.terms:
        rarity = math.log((known + 1) / (library.count(term, question.language) + 0.5)) / math.log(known + 1)
        weight = 0.5 + max(0.0, min(1.0, rarity))
        weights[term] = weight * (
            SOFT_WEIGHT if not term.strict else ENTITY_WEIGHT if term.is_entity else 1.0
        )
    return weights


def _match(
    question: Question,
    document: Document,
    passage: Passage,
    weights: dict[Term, float],
    subjects: frozenset[Term],
) -> Match:
    covered = local = lasting = said = 0.0
    section = passage.headings[-1] if passage.headings and passage.headings[-1] not in document.title else ""
    missing: list[Term] = []
    for term in question.terms:
        own, around = _cover(question, term, passage, document)
        best = max(own, around, SUBJECT if term in subjects else 0.0)
        covered += weights[term] * best
        if not is_period(term):
            lasting += weights[term]
            said += weights[term] * own
            headed = (
                SECTION * likeness(term, section, question.language, document.language) if section else 0.0
            )
            local += weights[term] * max(own, headed)
        if term.strict and best == 0.0:
            missing.append(term)
    if len(missing) == 1 and _is_told_elsewhere(missing[0], question, passage, document):
        covered += weights[missing.pop()] * ELSEWHERE
    total = sum(weights.values()) or 1.0
    fits = satisfies(question, passage.text, passage.lead if passage.kind == "row" else "")
    share = local / lasting if lasting else 1.0
    if passage.kind == "list":
        share = 1.0 if question.wanted == "any" else 0.0
    return Match(document, passage, covered / total, tuple(missing), fits, share, said)


def is_period(term: Term) -> bool:
    """Whether a term says of which time something is asked; a title may tell that for a whole document."""
    return term.kind == "year" or bool(term.concepts & PERIODS) or bool(_QUARTER.fullmatch(term.text))


def _in_words(question: Question, term: Term, passage: Passage, document: Document) -> float:
    """How well the words of a passage cover a term; a word such as "cost" or "share" by the amount that answers it."""
    if question.wanted == "percent" and "share" in term.concepts:
        return AMOUNT if states_percent(passage.text) else 0.0
    own = likeness(term, passage.text, question.language, document.language)
    if own == 0.0 and question.wanted == "money" and term.concepts & PRICED and states_money(passage.text):
        return AMOUNT
    return own


def _is_told_elsewhere(term: Term, question: Question, passage: Passage, document: Document) -> bool:
    """Whether one word of a long question may stand in another part of the document than the answer."""
    if term.is_entity or passage.kind in ("pair", "list"):
        return False
    others = [one for one in question.strict if one != term]
    held = sum(_cover(question, one, passage, document)[0] > 0 for one in others)
    return held >= 3 and may_hold(term, document.folded, question.language)


def _cover(question: Question, term: Term, passage: Passage, document: Document) -> tuple[float, float]:
    """How well the passage itself covers a term, and how well what stands around it does."""
    language, written = question.language, document.language
    own = 0.0 if passage.kind == "list" else _in_words(question, term, passage, document)
    if passage.lead:
        own = max(own, LEAD * likeness(term, passage.lead, language, written))
    heading = HEADING * max(
        (likeness(term, text, language, written) for text in passage.headings), default=0.0
    )
    title = (LEAD if term.kind == "year" else TITLE) * likeness(term, document.name, language, written)
    points_back = term.kind not in ("name", "code") or bool(_POINTS_BACK.match(passage.text))
    near = NEAR * likeness(term, passage.near, language, written) if passage.near and points_back else 0.0
    dated = (
        LEAD if term.kind == "year" and document.dated and document.dated.date.startswith(term.text) else 0.0
    )
    return own, max(heading, title, near, dated)


def answers_in(question: Question, document: Document, library: Library) -> list[Match]:
    """The passages of a document that answer a question, best first."""
    return ranked(question, [one for one in match_document(question, document, library) if one.answers])


def ranked(question: Question, matches: Sequence[Match]) -> list[Match]:
    """Matches in the order of preference; equal ones in the order of the documents."""
    return sorted(matches, key=lambda one: (-worth(question, one), one.document.rank, one.passage.span.start))


@lru_cache(maxsize=65536)
def _label_bonus(terms: tuple[Term, ...], language: Language, text: str) -> float:
    """Whether the label before a colon, or the first cell, names what is asked for."""
    label = text.lstrip("-*•| ").split("|" if text.lstrip().startswith("|") else ":", 1)[0]
    if len(label) == len(text.lstrip("-*•| ")) or len(label) > 60:
        return 0.0
    wanted = [term for term in terms if term.strict and term.kind not in ("code", "year", "number")]
    hits = sum(likeness(term, label, language) > 0 for term in wanted)
    return 0.1 * hits / len(wanted) if wanted else 0.0


def worth(question: Question, match: Match) -> float:
    """The score with what makes one answer better than another: own words, a label, brevity."""
    text = match.passage.text
    value = match.score + 0.15 * match.local + _label_bonus(question.terms, question.language, text)
    if is_only_a_share(question, text):
        value -= 0.15
    if question.wanted == "person" and names_person(question, text):
        value += 0.15
    if question.wanted in ("count", "amount", "money", "percent"):
        value += 0.12 * nearness(question, text)
    if match.passage.kind == "pair":
        value -= 0.12
    if match.passage.kind == "answer":
        value += 0.1
    value -= 0.1 * _is_about_another(question, match.document)
    value += 0.08 * _is_about_it(question, match.document)
    value += 0.08 * _is_of_the_period(question, match.document)
    return value - 0.0001 * len(text)


def _is_about_another(question: Question, document: Document) -> bool:
    """Whether the title names another code of the same family than the question: VLX-500, not VLX-400."""
    asked = {term.text for term in question.terms if term.kind == "code"}
    titled = features(document.title, question.language).codes
    families = {code.rstrip("0123456789") for code in asked}
    return (
        bool(asked) and not titled & asked and any(code.rstrip("0123456789") in families for code in titled)
    )


def _is_about_it(question: Question, document: Document) -> bool:
    """Whether the title names a code of the question: that document is the one to ask."""
    asked = {term.text for term in question.terms if term.kind == "code"}
    return bool(asked & features(document.title, question.language).codes)


def is_about(question: Question, document: Document) -> bool:
    """Whether the title of a document has every telling term of the question."""
    terms = question.strict
    return bool(terms) and all(
        likeness(one, document.title, question.language, document.language) for one in terms
    )


def _is_of_the_period(question: Question, document: Document) -> bool:
    """Whether the document is one of the year that the question names, by its title or date."""
    years = {term.text for term in question.terms if term.kind == "year"}
    own = {date.iso[:4] for date in dates_in(document.title)} or (
        {document.dated.date[:4]} if document.dated else set()
    )
    return bool(years & own)
