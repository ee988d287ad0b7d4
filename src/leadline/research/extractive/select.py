"""From the answers in all documents to the few quotes that are recorded, in order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from leadline.research.extractive.answer import (
    Document,
    Library,
    Match,
    answers_in,
    is_about,
    ranked,
    worth,
)
from leadline.research.extractive.facets import sub_questions
from leadline.research.extractive.kinds import names_person, nearness
from leadline.research.extractive.passages import MAX_QUOTE, Span
from leadline.research.extractive.phrases import COLUMNS, NAMES, STATES
from leadline.research.extractive.plain import plain
from leadline.research.extractive.question import Question, TimeSpan, read_question
from leadline.research.sources.dates import HEAD_CHARS, dates_in
from leadline.research.sources.versions import DocInfo, Version, is_superseded, relate_versions, same_series

MAX_QUOTES = 4
MAX_ROWS = 12
MAX_SERIES = 6
CLOSE = 0.08
"""How much less worth than the best one a further answer may have."""
CLOSE_ABROAD = 0.14
NEEDED_PAIR = 0.15
"""How much more of the question two sentences have to cover than each of them."""
NEAR_ENOUGH = 0.6
"""How near its number an answer stands that makes others, where it does not stand near, none."""
SHINGLE = 3
ALIKE = 0.75

QuoteRole = Literal["answer", "older", "context"]


@dataclass(frozen=True)
class Chosen:
    """A stretch of a document that will be recorded as evidence."""

    document: Document
    span: Span
    role: QuoteRole
    """`answer`; `older`: the answer of a superseded version; `context`: what names the document, its date or the
    columns of a table, for the answer before it."""
    claim: str
    """What stands over the quote and the quote in plain words, or what kind of context it is."""

    @property
    def text(self) -> str:
        return self.span.of(self.document.text)

    @property
    def plain(self) -> str:
        """The quote as a line of prose."""
        return plain(self.text)

    @property
    def polarity(self) -> str:
        return {"answer": "supporting", "older": "opposing", "context": "context"}[self.role]


@dataclass(frozen=True)
class FacetAnswer:
    """What was found for one facet."""

    question: str
    chosen: tuple[Chosen, ...] = ()
    missing: tuple[str, ...] = ()
    """Questions that stayed without an answer; the facet itself or parts of it."""
    versions: tuple[Version, ...] = field(default=())

    @property
    def documents(self) -> tuple[Document, ...]:
        return tuple(dict.fromkeys(one.document for one in self.chosen))


@lru_cache(maxsize=128)
def answer_facet(text: str, library: Library, documents: int | None = None) -> FacetAnswer:
    """The quotes that answer a facet; when it has none as a whole, those that answer its parts.

    Args:
        text: the facet as a question.
        library: the documents that searches returned.
        documents: how many documents may be read; None: any number.
    """
    question = read_question(text)
    whole = _answer(question, library, documents)
    parts = sub_questions(text)
    if whole or not parts:
        return FacetAnswer(text, tuple(whole), () if whole else (text,), _versions(library))
    chosen: list[Chosen] = []
    missing: list[str] = []
    for part in parts:
        found = _answer(read_question(part), library, documents)
        chosen.extend(one for one in found if one not in chosen)
        if not found:
            missing.append(part)
    if not chosen:
        missing = [text]
    return FacetAnswer(text, tuple(chosen), tuple(missing), _versions(library))


def _versions(library: Library) -> tuple[Version, ...]:
    return tuple(relate_versions([_info(one) for one in library.documents]))


def _answer(question: Question, library: Library, documents: int | None) -> list[Chosen]:
    found = {document.source: answers_in(question, document, library) for document in library.documents}
    older = {version.older: version.newer for version in _versions(library)}
    if question.overview:
        told = _overview(question, library, older)
        if told:
            return told
    if question.span:
        return _series(question, library, found, older, question.span, documents)
    pool = [
        one
        for source, matches in found.items()
        if not _outdated(source, older, found)
        for one in _apt(question, matches)
    ]
    if question.wanted == "person" and any(names_person(question, one.passage.text) for one in pool):
        pool = [one for one in pool if names_person(question, one.passage.text)]
    if question.wanted in ("count", "amount"):
        near = [one for one in pool if nearness(question, one.passage.text) >= NEAR_ENOUGH]
        pool = [one for one in pool if nearness(question, one.passage.text) > 0] if near else pool
    best = _best(question, pool, documents)
    chosen: list[Chosen] = []
    for match in _joined_rows(best):
        chosen.extend(_with_head(match, name_document=_has_sister(match, best)))
        for source, newer in older.items():
            if newer == match.document.source and found.get(source) and match == _first_of(best, newer):
                chosen.extend(_older(found[source][0], match))
    return chosen


def _overview(question: Question, library: Library, older: dict[str, str]) -> list[Chosen]:
    """The first passages of the document that is about the matter, by its title; none where no title says so."""
    current = [one for one in library.documents if one.source not in older]
    about = next((one for one in current if is_about(question, one)), None)
    if about is None:
        return []
    whole = [
        Match(about, passage, 1.0, (), True, 1.0, 1.0) for passage in about.passages if passage.kind != "pair"
    ]
    taken: list[Match] = []
    for match in sorted(whole, key=lambda one: (one.passage.span.start, -one.passage.span.end)):
        if len(taken) < MAX_QUOTES and not any(_repeats(match, one) for one in taken):
            taken.append(match)
    return [one for match in taken for one in _with_head(match)]


def _joined_rows(matches: Sequence[Match]) -> list[Match]:
    """Rows of one table as one match, where the table up to the last of them is short enough for a quote."""
    joined: list[Match] = []
    for match in matches:
        head = match.passage.head
        same = [
            one for one in matches if head and one.document == match.document and one.passage.head == head
        ]
        if head is None or len(same) == 1:
            joined.append(match)
            continue
        ordered = sorted(same, key=lambda one: one.passage.span.start)
        span = Span(ordered[0].passage.span.start, ordered[-1].passage.span.end)
        if span.end - head.start > MAX_QUOTE:
            joined.append(match)
        elif match == same[0]:
            rows = "\n".join(one.passage.text for one in ordered)
            joined.append(replace(match, passage=replace(match.passage, span=span, text=rows)))
    return joined


def _has_sister(match: Match, others: Sequence[Match]) -> bool:
    """Whether another answer comes from another issue of the same periodical, so that each needs its name."""
    mine = _info(match.document)
    return any(same_series(mine, _info(one.document)) for one in others if one.document != match.document)


def _info(document: Document) -> DocInfo:
    return DocInfo(document.source, document.title, document.location, document.published, document.text)


def _apt(question: Question, matches: Sequence[Match]) -> list[Match]:
    """The answers of one document, without pairs of which one sentence answers about as well.

    A list as a whole stands for its entries when these answer only by what stands over them, or when what
    answers best is the line that introduces it.
    """
    lists = [one for one in matches if one.passage.kind == "list"]
    single = [one for one in matches if one.passage.kind not in ("pair", "list")]
    speaking = [one for one in single if one.own > 0]
    if lists and not speaking:
        return lists
    best_single = max(single, key=lambda one: worth(question, one), default=None)
    if (
        question.wanted == "any"
        and best_single
        and best_single.passage.text.rstrip("*_").endswith((":", "："))
    ):
        start = best_single.passage.span.start
        introduced = [
            one for one in matches if one.passage.kind == "list" and one.passage.span.start == start
        ]
        if introduced:
            return introduced
    best = max((one.score for one in single), default=0.0)
    return single + [one for one in matches if one.passage.kind == "pair" and one.score > best + NEEDED_PAIR]


def _outdated(source: str, older: dict[str, str], found: dict[str, list[Match]]) -> bool:
    """Whether a newer version of the document answers the question."""
    seen: set[str] = set()
    while source in older and source not in seen:
        seen.add(source)
        source = older[source]
        if found.get(source):
            return True
    return False


def _first_of(matches: Sequence[Match], source: str) -> Match | None:
    return next((one for one in matches if one.document.source == source), None)


def _best(question: Question, pool: Sequence[Match], documents: int | None) -> list[Match]:
    """The best answers, without overlaps and near-duplicates, newest first among issues of one series."""
    order = ranked(question, pool)
    if not order:
        return []
    top = worth(question, order[0])
    kept: list[Match] = []
    for match in order:
        table = [one for one in kept if match.passage.head and one.passage.head == match.passage.head]
        if len(kept) >= MAX_QUOTES and not (table and len(kept) < MAX_ROWS):
            continue
        margin = CLOSE if any(match.document == one.document for one in kept) else CLOSE_ABROAD
        if worth(question, match) < top - margin:
            continue
        if any(_repeats(match, one) for one in kept):
            continue
        if documents is not None and len({one.document.source for one in (*kept, match)}) > documents:
            continue
        kept.append(match)
    return _newest_first(question, kept)


def _newest_first(question: Question, kept: list[Match]) -> list[Match]:
    """Answers worth about the same, with the newer document first where both are dated."""
    top = worth(question, kept[0])
    level = [one for one in kept if worth(question, one) >= top - CLOSE / 2]
    rest = [one for one in kept if one not in level]
    dated = sorted(level, key=lambda one: one.document.dated.date if one.document.dated else "", reverse=True)
    timed = any(term.kind == "year" for term in question.terms)
    if all(one.document.dated for one in level) and not timed:
        level = dated
    return level + rest


def _repeats(one: Match, other: Match) -> bool:
    if one.document == other.document:
        first, second = one.passage.span, other.passage.span
        if first.start < second.end and second.start < first.end:
            return True
    return alike(one.passage.text, other.passage.text)


def alike(one: str, other: str) -> bool:
    """Whether two quotes say nearly the same in the same words; different figures make them different."""
    if sorted(re.findall(r"\d+", one)) != sorted(re.findall(r"\d+", other)):
        return False
    first, second = _shingles(one), _shingles(other)
    smaller = min(len(first), len(second))
    return bool(smaller) and len(first & second) / smaller >= ALIKE


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = re.findall(r"\w", text) if _is_dense(text) else re.findall(r"\w+", text.casefold())
    size = min(SHINGLE, max(1, len(words)))
    return frozenset(tuple(words[at : at + size]) for at in range(len(words) - size + 1))


def _is_dense(text: str) -> bool:
    return bool(re.search(r"[\u3040-\u30ff\u3400-\u9fff]{6,}", text))


def _series(
    question: Question,
    library: Library,
    found: dict[str, list[Match]],
    older: dict[str, str],
    span: TimeSpan,
    documents: int | None,
) -> list[Chosen]:
    """One answer for each document of the time that was asked for, in the order of their dates."""
    points: list[tuple[str, Match]] = []
    for document in library.documents:
        if _outdated(document.source, older, found):
            continue
        for match in _apt(question, found[document.source]):
            period = _period(match, span)
            if period:
                points.append((period, match))
                break
    if span.first is not None and not points:
        return []
    if sum(bool(match.document.dated) for _, match in points) >= 2:
        points = [one for one in points if one[1].document.dated]
    top = max((worth(question, match) for _, match in points), default=0.0)
    kept = [one for one in points if worth(question, one[1]) >= top - CLOSE_ABROAD]
    kept = sorted(kept, key=lambda one: -worth(question, one[1]))[: min(MAX_SERIES, documents or MAX_SERIES)]
    kept.sort(key=lambda one: (one[0], one[1].document.rank))
    unlike: list[Match] = []
    for _, match in kept:
        if not any(_repeats(match, other) for other in unlike):
            unlike.append(match)
    several = len({match.document.source for match in unlike}) > 1
    return [one for match in unlike for one in _with_head(match, name_document=several)]


def _period(match: Match, span: TimeSpan) -> str | None:
    """The time that an answer is about, when it lies in the span: of the document, else of the passage."""
    stated = [date.iso for date in dates_in(match.passage.text)]
    title = [date.iso for date in dates_in(match.document.title)]
    dated = [match.document.dated.date] if match.document.dated else []
    candidates = title or dated or stated
    if span.first is None and span.last is None:
        return (candidates or [""])[0] or "0000"
    for period in (*candidates, *stated):
        if span.holds(int(period[:4])):
            return period
    return None


def _with_head(match: Match, *, name_document: bool = False) -> list[Chosen]:
    """A match as evidence, followed by the head of its table and the name of its document."""
    chosen = _answer_of(match, "answer")
    if name_document:
        chosen.extend(_context(match.document, [name_line(match.document)], NAMES))
    return chosen


def _answer_of(match: Match, role: QuoteRole) -> list[Chosen]:
    """A match with the head of its table: in one quote where they stand close, else as two."""
    head, span = match.passage.head, match.passage.span
    if head is None:
        return [Chosen(match.document, span, role, claim_of(match))]
    if span.end - head.start <= MAX_QUOTE and head.of(match.document.text).lstrip().startswith("|"):
        return [Chosen(match.document, Span(head.start, span.end), role, claim_of(match))]
    return [
        Chosen(match.document, span, role, claim_of(match)),
        Chosen(match.document, head, "context", COLUMNS),
    ]


def _older(match: Match, newer: Match) -> list[Chosen]:
    """The answer of an older version, when it says something else, and where both say what they are."""
    if alike(match.passage.text, newer.passage.text):
        return []
    return [
        *_context(newer.document, [dating_line(newer.document)], STATES),
        *_answer_of(match, "older"),
        *_context(match.document, [name_line(match.document)], NAMES),
        *_context(match.document, [dating_line(match.document), superseding_line(match.document)], STATES),
    ]


def _context(document: Document, spans: Sequence[Span | None], claim: str) -> list[Chosen]:
    return [
        Chosen(document, span, "context", claim)
        for span in spans
        if span and span.end - span.start <= MAX_QUOTE
    ]


def name_line(document: Document) -> Span | None:
    """The line with which a document names itself; None where its title does not stand in its text."""
    wanted = " ".join(document.title.split()).casefold()
    return next(
        (span for span in _head_lines(document) if plain(span.of(document.text)).casefold() == wanted), None
    )


def dating_line(document: Document) -> Span | None:
    """The line in which a document states its date, when that is not its title."""
    if document.dated is None:
        return None
    name = name_line(document)
    for span in _head_lines(document):
        if plain(span.of(document.text)) == plain(document.dated.statement):
            return None if span == name else span
    return None


def superseding_line(document: Document) -> Span | None:
    """The line in which a document says that it is no longer current, other than its title."""
    name = name_line(document)
    told = [span for span in _head_lines(document) if is_superseded(span.of(document.text)) and span != name]
    return told[0] if told else None


def _head_lines(document: Document) -> list[Span]:
    """The lines at the beginning of a document, without the white space around them."""
    spans: list[Span] = []
    at = 0
    for line in document.text[:HEAD_CHARS].split("\n"):
        stripped = line.strip()
        if stripped:
            start = at + len(line) - len(line.lstrip())
            spans.append(Span(start, start + len(stripped)))
        at += len(line) + 1
    return spans


def claim_of(match: Match) -> str:
    """What a quote establishes: the title and headings over it, then its own words."""
    over = [
        match.document.title,
        *(name for name in match.passage.headings if name not in match.document.title),
    ]
    if match.passage.lead and match.passage.kind != "row":
        over.append(plain(match.passage.lead).rstrip(":："))
    return f"{' › '.join(over)}: {plain(match.passage.text)}"[:1000]
