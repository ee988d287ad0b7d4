"""Whether a passage answers a question: which of its terms are covered, where, and what is missing.

Precision comes first: a passage that lacks one telling term of the question (a product code, a year, a name, a
word that is no general one) is no answer, however much else it shares.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from leadline.core.patterns import lazy_pattern
from leadline.core.unspaced import SPACED
from leadline.research.extractive.features import MONTHS, features
from leadline.research.extractive.hints import folded, may_hold
from leadline.research.extractive.kinds import (
    about_matter,
    is_only_a_share,
    names_person,
    nearness,
    new_names,
    permits,
    satisfies,
    states_area,
    states_money,
    states_percent,
)
from leadline.research.extractive.language import Language
from leadline.research.extractive.library import Document, Library
from leadline.research.extractive.matching import likeness
from leadline.research.extractive.passages import Passage
from leadline.research.extractive.plain import plain
from leadline.research.extractive.question import Question, Term
from leadline.research.sources.dates import dates_in

LEAD = 0.95
HEADING = 0.85
TITLE = 0.75
NEAR = 0.65
SUBJECT = 0.9
"""How well a name that the whole collection is about is covered where a passage does not repeat it."""
IN_HEADER = 0.15
"""What an answer is worth less that stands in the lines with which a document names and dates itself."""
AMOUNT = 0.9
"""How well an amount of money covers words such as "cost"."""
ELSEWHERE = 0.3
"""How well a term is covered that only another part of the document holds, beside several that the passage has."""
SECTION = 0.5
"""How much the heading right over a passage counts as its own words."""
_POINTS_BACK = lazy_pattern(
    r"\W*(?:\w+\W+){0,2}?(?:it|its|she|her|he|his|him|they|their|them|this|these|that|those|both|such|er|sie|es|sein\w*|ihr\w*|dies\w*|"
    r"il|elle|ils|elles|son|sa|ses|leur|leurs|ce|cet|cette|ces|ella|él|ellos|su|sus|este|esta|estos|estas)(?!\w)|.*[它他她其这那それこの]",
    re.IGNORECASE,
)
"""A sentence that begins by pointing at what was named before it."""
_QUARTER = lazy_pattern(r"[qh][1-4]")
_ENUMERATES = lazy_pattern(
    r"^\W*(?:which\s\w+s\s(?:are|were|do|does|did|have|has|can|take|took)|list|name|welche\s\w+[en]\s|nenne|liste[zr]?|"
    r"quels|quelles|qué\s\w+s\s|cuáles)(?!\w)|哪些|どんな",
    re.IGNORECASE,
)
HEADED = 0.2
"""What a list is worth more whose heading is what the question asks for."""
LISTED = 0.08
"""What an answer is worth more for each of two names, where names are asked for."""
NARROWER = 0.1
"""What an answer is worth less that is of a part of the time asked for."""
OF_THE_TIME = 0.5
"""How much of an entry is its own when it is of the time asked for, and the rest stands over it."""
FIGURES = frozenset({"date", "count", "money", "percent", "amount", "duration"})
"""Kinds of answers that a heading can hold."""
PRICED = frozenset({"price", "budget"})
PERIODS = frozenset(MONTHS)
ENOUGH = 0.62
"""Share of the weight of the question's terms that an answer covers at least."""
LOCAL = 0.25
"""Share that an answer covers in its own words."""
SOFT_WEIGHT = 0.3
UNHEARD_WEIGHT = 0.1
"""Of a general word that no document has: the documents say it otherwise, or leave it out."""
ENTITY_WEIGHT = 1.3


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
    context = folded("\n".join((passage.words, passage.lead, passage.near, *passage.headings)))
    absent = [
        term
        for term in question.strict
        if term not in given and not may_hold(term, context, question.language)
    ]
    return not absent or (len(absent) == 1 and len(question.strict) > 1 and not absent[0].is_entity)


def _pointed(question: Question, library: Library) -> Question:
    """With nothing but the subject of the collection to go by, general words such as "leads" are what is asked."""
    telling = [term for term in question.strict if not library.is_subject(term, question.language)]
    if telling or all(term.strict for term in question.terms):
        return question
    terms = tuple(term if term.strict else replace(term, kind="word") for term in question.terms)
    return replace(question, terms=terms)


def _weights(question: Question, library: Library) -> dict[Term, float]:
    """How much each term counts: rare ones more, general words less, those that no document has hardly at all."""
    of = max(2, library.total)
    weights: dict[Term, float] = {}
    for term in question.terms:
        holding = library.count(term, question.language)
        rarity = math.log((of + 1) / (holding + 0.5)) / math.log(of + 1)
        weight = 0.5 + max(0.0, min(1.0, rarity))
        if not term.strict:
            weight *= SOFT_WEIGHT if holding else UNHEARD_WEIGHT
        elif term.is_entity:
            weight *= ENTITY_WEIGHT
        weights[term] = weight
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
        best = SUBJECT if term in subjects else max(own, around)
        covered += weights[term] * best
        if not is_period(term) and term not in subjects:
            lasting += weights[term]
            said += weights[term] * own
            headed = (
                SECTION * likeness(term, section, question.language, document.language) if section else 0.0
            )
            local += weights[term] * max(own, headed)
        if term.strict and best == 0.0:
            missing.append(term)
    if len(missing) == 1 and _is_dispensable(missing[0], question, passage, document):
        covered += weights[missing.pop()] * ELSEWHERE
    total = sum(weights.values()) or 1.0
    fits = _fits(question, passage) and _has_matter(question, passage, document, subjects)
    share = local / lasting if lasting else 1.0
    if passage.kind in ("item", "row") and _is_the_time(question, passage, document):
        share = max(share, OF_THE_TIME)
    if passage.kind == "list":
        share = 1.0 if question.wanted == "any" else 0.0
    return Match(document, passage, covered / total, tuple(missing), fits, share, said)


def _fits(question: Question, passage: Passage) -> bool:
    """Whether a passage holds what is wanted; a heading only where it states a figure itself."""
    if passage.kind == "heading" and (question.wanted not in FIGURES or not re.search(r"\d", passage.text)):
        return False
    words = passage.words
    if passage.kind == "item" and question.wanted == "person":
        words = about_matter(question, words)
    return satisfies(question, words, passage.lead if passage.kind == "row" else "")


def _has_matter(question: Question, passage: Passage, document: Document, subjects: frozenset[Term]) -> bool:
    """Whether anything but the name of a thing is answered: "what did the VLX-500 sell?" is not, by its payload.

    Nor is "does the firm own boats?" by any sentence about boats: it has to own, allow, forbid or deny something.
    """
    if question.wanted not in ("any", "yesno") or question.overview:
        return True
    telling = [
        term
        for term in question.strict
        if term not in subjects
        and (not term.is_entity or (term.kind == "name" and not _is_called(document, term, question)))
    ]
    general = [term for term in question.terms if not term.strict]
    if not general or (telling and (question.wanted == "any" or len(telling) > 1)):
        return True
    if question.wanted == "yesno" and telling and permits(passage.words, question.language):
        return True
    return any(max(_cover(question, term, passage, document)) > 0 for term in general)


def _is_called(document: Document, term: Term, question: Question) -> bool:
    return likeness(term, document.name, question.language, document.language) > 0


def _is_the_time(question: Question, passage: Passage, document: Document) -> bool:
    """Whether a passage is one of the things that the document lists, and of the time that is asked for."""
    times = [term for term in question.strict if is_period(term)]
    return (
        question.wanted == "any"
        and bool(times)
        and all(_in_words(question, term, passage, document) > 0 for term in times)
    )


def is_period(term: Term) -> bool:
    """Whether a term says of which time something is asked; a title may tell that for a whole document."""
    return term.kind == "year" or bool(term.concepts & PERIODS) or bool(_QUARTER.fullmatch(term.text))


def _in_words(question: Question, term: Term, passage: Passage, document: Document) -> float:
    """How well the words of a passage cover a term; a word such as "cost" or "share" by the amount that answers it."""
    if question.wanted == "percent" and "share" in term.concepts:
        return AMOUNT if states_percent(passage.words) else 0.0
    own = likeness(term, passage.words, question.language, document.language)
    if own == 0.0 and "size" in term.concepts and states_area(passage.words):
        return AMOUNT
    if own == 0.0 and question.wanted == "money" and term.concepts & PRICED and len(question.strict) > 1:
        return AMOUNT if states_money(passage.words) else 0.0
    return own


def _is_dispensable(term: Term, question: Question, passage: Passage, document: Document) -> bool:
    """Whether the one word of a question that a passage lacks may stand in another part of the document.

    So it may in a long question, and when it tells of what kind the next word is ("battery pack") and a name in the
    passage (LFP) stands with it elsewhere.
    The heading of an entry ("2.3.0 - 2025-11-02") may leave out what happened then, and the row of a table the verb.
    """
    if term.is_entity or passage.kind in ("pair", "list"):
        return False
    others = [one for one in question.strict if one != term]
    held = [one for one in others if _cover(question, one, passage, document)[0] > 0]
    if passage.kind == "heading":
        return len(held) == len(others) > 0 and all(one.is_entity for one in held) and _is_bare(passage.text)
    if passage.kind == "row" and len(held) == len(others) >= 2 and _closes(term, question):
        return True
    if len(held) < 2 or not may_hold(term, document.folded, question.language):
        return False
    return len(held) >= 3 or (
        any(_qualifies(term, one, question) for one in held) and _is_linked(term, question, passage, document)
    )


def _closes(term: Term, question: Question) -> bool:
    """Whether a word closes the question as a verb does: "in which language is it taught?"."""
    last = re.search(r"([^\W\d_]+)\W*$", question.text)
    return bool(last) and last[1] == term.surface and term.surface.islower()


_NAMING = lazy_pattern(rf"(?<!{SPACED})(?={SPACED}*[A-Z]{SPACED}*[A-Z0-9])(?:{SPACED}|-){{2,}}(?!{SPACED})")


def _is_linked(term: Term, question: Question, passage: Passage, document: Document) -> bool:
    """Whether the document uses a name of the passage together with the term elsewhere: LFP, of a battery."""
    asked = frozenset(_NAMING.findall(question.text))
    names = frozenset(_NAMING.findall(passage.text)) - asked
    return bool(names) and any(
        names & frozenset(_NAMING.findall(one.text))
        and likeness(term, one.words, question.language, document.language) > 0
        for one in document.passages
        if one.kind in ("row", "item", "sentence") and one is not passage
    )


def _is_bare(heading: str) -> bool:
    """Whether a heading holds little but codes, figures and dates."""
    return len(re.findall(r"[^\W\d_]{4,}", heading)) <= 2


def _qualifies(term: Term, other: Term, question: Question) -> bool:
    """Whether a word stands right before another one in the question: battery in "battery pack"."""
    pattern = rf"(?<!\w){re.escape(term.surface)}[ -]{re.escape(other.surface)}(?!\w)"
    return bool(re.search(pattern, question.text, re.IGNORECASE))


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
    points_back = term.kind not in ("name", "code") or bool(_POINTS_BACK.match(passage.words))
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
    return sorted(
        matches, key=lambda one: (-round(worth(question, one), 2), one.document.rank, one.passage.span.start)
    )


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
    text = match.passage.words
    value = match.score + 0.15 * match.local + _label_bonus(question.terms, question.language, text)
    if is_only_a_share(question, text):
        value -= 0.15
    if question.wanted == "person" and names_person(question, text):
        value += 0.15
    if question.wanted in ("count", "amount", "money", "percent"):
        value += 0.12 * nearness(question, text)
    if match.passage.kind == "list" and _is_headed(question, match):
        value += HEADED
    if enumerates(question):
        value += LISTED * min(2, len(new_names(question, text))) / 2
    if plain(text) in match.document.header and question.wanted not in ("date", "person"):
        value -= IN_HEADER
    if match.passage.kind == "pair":
        value -= 0.12
    if match.passage.kind == "answer":
        value += 0.1
    if _is_narrower(question, f"{match.document.title}\n{text}"):
        value -= NARROWER
    value -= 0.1 * _is_about_another(question, match.document)
    value += 0.08 * _is_about_it(question, match.document)
    value += 0.08 * _is_of_the_period(question, match.document)
    return value - 0.0001 * len(text)


_PART_OF_YEAR = lazy_pattern(rf"(?<!{SPACED})[QH][1-4](?:\s|/|-)?(?=(?:19|20)\d\d)")


def enumerates(question: Question) -> bool:
    """Whether a question asks for several things of a kind."""
    return question.wanted == "any" and bool(_ENUMERATES.search(question.text))


def _is_headed(question: Question, match: Match) -> bool:
    """Whether the heading right over a list names all that is asked for, in these words."""
    heading = match.passage.headings[-1] if match.passage.headings else ""
    return bool(heading and question.strict) and all(
        likeness(term, heading, question.language, match.document.language) >= 1.0 for term in question.strict
    )


def _is_narrower(question: Question, text: str) -> bool:
    """Whether a text speaks of a quarter where a whole year is asked for."""
    periods = [term for term in question.strict if is_period(term)]
    return bool(periods) and all(term.kind == "year" for term in periods) and bool(_PART_OF_YEAR.search(text))


def _is_about_another(question: Question, document: Document) -> bool:
    """Whether the title names another code than the question: VLX-500, not VLX-400, or where none was asked for."""
    asked = {term.text for term in question.terms if term.kind == "code"}
    titled = {
        code for code in features(document.title, question.language).codes if not _QUARTER.fullmatch(code)
    }
    families = {code.rstrip("0123456789") for code in asked}
    of_family = any(code.rstrip("0123456789") in families for code in titled)
    return bool(titled) and not titled & asked and (of_family or not asked)


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
