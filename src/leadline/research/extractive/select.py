"""From the answers in all documents to the few quotes that are recorded, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from leadline.research.extractive.alike import alike
from leadline.research.extractive.answer import (
    Match,
    answers_in,
    enumerates,
    is_about,
    is_period,
    ranked,
    worth,
)
from leadline.research.extractive.changes import changes
from leadline.research.extractive.facets import sub_questions
from leadline.research.extractive.kinds import names_person, nearness
from leadline.research.extractive.library import Document, Library
from leadline.research.extractive.plain import plain
from leadline.research.extractive.question import Question, TimeSpan, read_question
from leadline.research.extractive.quoting import Chosen, quoted, quoted_as_older
from leadline.research.extractive.relative import resolved
from leadline.research.extractive.spelling import respelled
from leadline.research.extractive.superlatives import asks_extreme, extreme_row
from leadline.research.sources.dates import dates_in
from leadline.research.sources.versions import DocInfo, Version, relate_versions, same_series

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
    versions = _versions(library)
    read = resolved(respelled(text, library), library)
    if read is None:
        return FacetAnswer(text, (), (text,), versions)
    question = read_question(read)
    whole = _answer(question, library, versions, documents)
    parts = sub_questions(read)
    if whole or not parts:
        return FacetAnswer(text, tuple(whole), () if whole else (text,), versions)
    chosen: list[Chosen] = []
    missing: list[str] = []
    for part in parts:
        found = _answer(read_question(part), library, versions, documents)
        chosen.extend(one for one in found if one not in chosen)
        if not found:
            missing.append(part)
    if not chosen:
        missing = [text]
    return FacetAnswer(text, tuple(chosen), tuple(missing), versions)


def _versions(library: Library) -> tuple[Version, ...]:
    return tuple(relate_versions([_info(one) for one in library.documents]))


def _answer(
    question: Question, library: Library, versions: Sequence[Version], documents: int | None
) -> list[Chosen]:
    differing = changes(question, library, versions)
    if differing:
        current = [newer for newer, _ in differing]
        return [
            one
            for newer, older in differing
            for one in (*quoted(newer, apart=_is_one_of_several(newer, current)), *quoted_as_older(older))
        ]
    found = {document.source: answers_in(question, document, library) for document in library.documents}
    older = {version.older: version.newer for version in versions}
    if question.overview:
        told = _overview(question, library, older)
        if told:
            return told
    if enumerates(question):
        listed = _everything(question, library, older)
        if listed:
            return listed
    if question.span:
        return _series(question, library, found, older, question.span, documents)
    pool = _pool(question, found, older)
    extreme = extreme_row(question, pool)
    if asks_extreme(question) and sum(one.passage.kind == "row" for one in pool) > 1:
        pool = [one for one in pool if one.passage.kind != "row"]
    best = [extreme] if extreme else _best(question, _latest_issues(question, pool), documents)
    chosen: list[Chosen] = []
    for match in with_rows_together(best):
        chosen.extend(quoted(match, apart=_is_one_of_several(match, best)))
        for source, newer in older.items():
            if newer == match.document.source and found.get(source) and match == _first_of(best, newer):
                before = found[source][0]
                if not alike(before.passage.text, match.passage.text):
                    chosen.extend(quoted_as_older(before))
    return chosen


def _latest_issues(question: Question, pool: list[Match]) -> list[Match]:
    """The answers without those of earlier issues of a periodical of which a later one answers as well.

    Only where the question names no time: each issue stays true of its own.
    """
    if any(is_period(term) for term in question.terms):
        return pool
    best: dict[str, Match] = {}
    for match in ranked(question, pool):
        best.setdefault(match.document.source, match)
    outdone = {
        one.document.source
        for one in best.values()
        for other in best.values()
        if _is_later_issue(other, one) and worth(question, other) >= worth(question, one) - CLOSE_ABROAD
    }
    return [one for one in pool if one.document.source not in outdone]


def _is_later_issue(one: Match, other: Match) -> bool:
    mine, theirs = one.document.dated, other.document.dated
    if mine is None or theirs is None or mine.date <= theirs.date:
        return False
    return same_series(_info(one.document), _info(other.document))


def with_rows_together(matches: Sequence[Match]) -> list[Match]:
    """The matches with rows of one table next to one another, in the order of the table."""
    heads = [(one.document.source, one.passage.head) for one in matches]
    first = {head: at for at, head in reversed(list(enumerate(heads)))}
    return sorted(
        matches,
        key=lambda one: (
            first[one.document.source, one.passage.head] if one.passage.head else matches.index(one),
            one.passage.span.start if one.passage.head else 0,
        ),
    )


def _is_one_of_several(match: Match, others: Sequence[Match]) -> bool:
    """Whether other rows of the same table answer too."""
    return match.passage.head is not None and any(
        one is not match and one.document == match.document and one.passage.head == match.passage.head
        for one in others
    )


def _pool(question: Question, found: dict[str, list[Match]], older: dict[str, str]) -> list[Match]:
    """The answers of all documents but outdated ones, without those that others show to be none."""
    pool = [
        one
        for source, matches in found.items()
        if not _outdated(source, older, found)
        for one in _apt(question, matches)
    ]
    if question.wanted == "person" and any(names_person(question, one.passage.text) for one in pool):
        pool = [one for one in pool if names_person(question, one.passage.text)]
    if question.wanted in ("count", "amount"):
        near = [one for one in pool if nearness(question, one.passage.words) >= NEAR_ENOUGH]
        pool = [one for one in pool if nearness(question, one.passage.words) > 0] if near else pool
    return pool


def _overview(question: Question, library: Library, older: dict[str, str]) -> list[Chosen]:
    """The first passages of the document that is about the matter, by its title; none where no title says so."""
    current = [one for one in library.documents if one.source not in older]
    about = next((one for one in current if is_about(question, one)), None)
    if about is None:
        return []
    whole = [
        Match(about, passage, 1.0, (), True, 1.0, 1.0)
        for passage in about.passages
        if passage.kind not in ("pair", "heading") and plain(passage.text) not in about.header
    ]
    taken: list[Match] = []
    for match in sorted(whole, key=lambda one: (one.passage.span.start, -one.passage.span.end)):
        if len(taken) < MAX_QUOTES and not any(_repeats(match, one) for one in taken):
            taken.append(match)
    return [one for match in taken for one in quoted(match, apart=_is_one_of_several(match, taken))]


def _everything(question: Question, library: Library, older: dict[str, str]) -> list[Chosen]:
    """The first list of the document that by its title is about what is to be listed; its rows where it has none."""
    about = next(
        (one for one in library.documents if one.source not in older and is_about(question, one)), None
    )
    if about is None:
        return []
    lists = [one for one in about.passages if one.kind == "list"]
    rows = [one for one in about.passages if one.kind == "row"][:MAX_ROWS]
    found = [Match(about, one, 1.0, (), True, 1.0, 1.0) for one in (lists[:1] or rows)]
    return [one for match in found for one in quoted(match, apart=len(found) > 1)]


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


def _series(
    question: Question,
    library: Library,
    found: dict[str, list[Match]],
    older: dict[str, str],
    span: TimeSpan,
    documents: int | None,
) -> list[Chosen]:
    """One answer for each document of the time that was asked for, in the order of their dates."""
    rows = _rows_of_the_time(found, older, span)
    if rows:
        return [one for match in rows for one in quoted(match, apart=True)]
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
    return [one for match in unlike for one in quoted(match)]


def _rows_of_the_time(found: dict[str, list[Match]], older: dict[str, str], span: TimeSpan) -> list[Match]:
    """The rows of one table that answer and are of the time asked for; none where they are fewer than two."""
    if span.first is None and span.last is None:
        return []
    for source, matches in found.items():
        if _outdated(source, older, found):
            continue
        tables: dict[tuple[int, int], list[Match]] = {}
        for match in matches:
            head = match.passage.head
            dates = dates_in(match.passage.words)
            if head and any(span.holds(int(date.iso[:4])) for date in dates):
                tables.setdefault((head.start, head.end), []).append(match)
        several = [rows for rows in tables.values() if len(rows) > 1]
        if several:
            return sorted(several[0], key=lambda one: one.passage.span.start)[:MAX_ROWS]
    return []


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
