"""The researcher's part: search, read, record, finish; each step a pure function of what was done before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from leadline.core.llm.jsonvalue import JsonObject, JsonValue
from leadline.research.extractive.facets import split
from leadline.research.extractive.library import Document, Library
from leadline.research.extractive.phrases import attributed, phrase, report_language
from leadline.research.extractive.queries import formulations
from leadline.research.extractive.question import read_question
from leadline.research.extractive.quoting import Chosen
from leadline.research.extractive.relative import resolved
from leadline.research.extractive.select import FacetAnswer, answer_facet
from leadline.research.extractive.spelling import respelled
from leadline.research.extractive.transcript import Done
from leadline.research.roles.purposes import UnitData

SEARCH = "corpus_search"
READ = "read"
RECORD = "record_evidence"
OUTPUT = "structured_output"
HITS = 12
"""Documents asked of one search."""
MAX_SEARCHES = 3
READS = 2
READS_OF_SERIES = 3
WHOLE = 12_000
"""Characters that a read gives without being told a place."""
MARGIN = 300
MAX_READ = 100_000

Texts = Callable[[str], str | None]
"""The stored text of a snapshot by its hash; None when it is not at hand."""


@dataclass(frozen=True)
class Call:
    """A tool call to be made."""

    name: str
    arguments: JsonValue


def next_calls(data: UnitData, tools: frozenset[str], done: Sequence[Done], texts: Texts) -> list[Call]:
    """The calls of the next step; empty when the unit is finished or nothing can be done."""
    outputs = [one for one in done if one.name == OUTPUT]
    if outputs or OUTPUT not in tools:
        return []
    facets = split(data.unit.question)
    if SEARCH not in tools or READ not in tools:
        return [_finding(data, [FacetAnswer(facet, (), (facet,)) for facet in facets])]
    left = data.source_calls - sum(one.name in (SEARCH, READ) for one in done)
    library = library_of(done, texts)
    answers = [answer_facet(facet, library) for facet in facets]
    if not any(one.name in (READ, RECORD) for one in done):
        searches = _searches(facets, answers, library, done, left)
        if searches:
            return searches
        reads = _reads(answers, library, left)
        if reads:
            return reads
    if not any(one.name == RECORD for one in done) and RECORD in tools:
        records = _records(answers, done)
        if records:
            return records
    return [_finding(data, _as_recorded(answers, done))]


def library_of(done: Sequence[Done], texts: Texts) -> Library:
    """The documents that the searches so far returned, each once, in the order of their best rank."""
    found: dict[str, tuple[int, JsonObject]] = {}
    total = 0
    for search in (one for one in done if one.name == SEARCH and not one.failed):
        total = max(total, _number(search.value.get("total_documents")))
        for hit in cast("Sequence[JsonObject]", search.value.get("hits") or ()):
            source, rank = str(hit.get("source")), _number(hit.get("rank"))
            if source not in found or rank < found[source][0]:
                found[source] = (rank, hit)
    documents: list[Document] = []
    for source, (rank, hit) in sorted(found.items(), key=lambda one: (one[1][0], one[0])):
        text = texts(str(hit.get("snapshot") or ""))
        if text:
            published = hit.get("published")
            documents.append(
                Document(
                    source,
                    str(hit.get("title") or ""),
                    str(hit.get("location") or ""),
                    text,
                    published if isinstance(published, str) else None,
                    rank,
                    _number(hit.get("start")),
                )
            )
    return Library(tuple(documents), max(total, len(documents)))


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _searches(
    facets: Sequence[str],
    answers: Sequence[FacetAnswer],
    library: Library,
    done: Sequence[Done],
    left: int,
) -> list[Call]:
    """The searches to make now: some formulations at first, another one when nothing answers."""
    made = [str(one.arguments.get("query")) for one in done if one.name == SEARCH]
    series = any(read_question(facet).span for facet in facets)
    keep = READS_OF_SERIES if series else READS
    if not made:
        count = max(1, min(MAX_SEARCHES, left - keep))
        return [_search(query) for query in formulations(facets, count)]
    unanswered = [facet for facet, answer in zip(facets, answers, strict=True) if not answer.chosen]
    if (
        not unanswered
        or len(made) >= MAX_SEARCHES + 1
        or left <= (keep if len(unanswered) < len(facets) else 1)
    ):
        return []
    read = [resolved(respelled(facet, library), library) or facet for facet in unanswered]
    wordings = (*formulations(read, MAX_SEARCHES + 1), *formulations(unanswered, MAX_SEARCHES + 1))
    further = [query for query in wordings if query not in made]
    return [_search(further[0])] if further else []


def _search(query: str) -> Call:
    return Call(SEARCH, {"query": query, "limit": HITS})


def _reads(answers: Sequence[FacetAnswer], library: Library, left: int) -> list[Call]:
    """Reads of the documents that the answers come from; of the best hit, when there is no answer."""
    documents = _in_order_of_need(answers)
    if not documents:
        documents = list(library.documents[:1])
    chosen = [one for answer in answers for one in answer.chosen]
    return [_read(document, chosen) for document in documents[: max(0, left)]]


def _in_order_of_need(answers: Sequence[FacetAnswer]) -> list[Document]:
    """First the best document of each facet, then older versions that differ, then the rest."""
    first = [one.chosen[0].document for one in answers if one.chosen]
    differing = [
        document
        for answer in answers
        for one in answer.chosen
        if one.role == "older"
        for document in (*_newer_of(one.document, answer), one.document)
    ]
    rest = [document for answer in answers for document in answer.documents]
    return list(dict.fromkeys((*first, *differing, *rest)))


def _newer_of(document: Document, answer: FacetAnswer) -> list[Document]:
    newer = {pair.newer for pair in answer.versions if pair.older == document.source}
    return [one.document for one in answer.chosen if one.document.source in newer]


def _read(document: Document, chosen: Sequence[Chosen]) -> Call:
    """A read that shows everything that will be quoted from a document."""
    spans = [one.span for one in chosen if one.document == document]
    if len(document.text) <= WHOLE or not spans or max(span.end for span in spans) <= WHOLE - MARGIN:
        return Call(READ, {"source": document.source})
    start = max(0, min(span.start for span in spans) - MARGIN)
    needed = max(span.end for span in spans) + MARGIN - start
    return Call(READ, {"source": document.source, "start": start, "limit": max(WHOLE, min(MAX_READ, needed))})


def _was_read(one: Chosen, done: Sequence[Done]) -> bool:
    """Whether a read showed the whole of a quote."""
    return any(
        read.name == READ
        and not read.failed
        and read.value.get("source") == one.document.source
        and _number(read.value.get("start")) <= one.span.start
        and one.span.end <= _number(read.value.get("end"))
        for read in done
    )


def _records(answers: Sequence[FacetAnswer], done: Sequence[Done]) -> list[Call]:
    kept = dict.fromkeys(one for answer in answers for one in answer.chosen if _was_read(one, done))
    return [
        Call(
            RECORD,
            {
                "source": one.document.source,
                "quote": one.text,
                "claim": one.claim,
                "polarity": one.polarity,
            },
        )
        for one in kept
    ]


def _as_recorded(answers: Sequence[FacetAnswer], done: Sequence[Done]) -> list[FacetAnswer]:
    """The answers with only those quotes that are on record; a facet that lost all of them is unanswered."""
    recorded = {
        (str(one.arguments.get("source")), str(one.arguments.get("quote")))
        for one in done
        if one.name == RECORD and not one.failed
    }
    kept: list[FacetAnswer] = []
    for answer in answers:
        chosen = tuple(one for one in answer.chosen if (one.document.source, one.text) in recorded)
        answered = any(one.role in ("answer", "older") for one in chosen)
        missing = answer.missing if answered else answer.missing or (answer.question,)
        kept.append(FacetAnswer(answer.question, chosen if answered else (), missing, answer.versions))
    return kept


def _finding(data: UnitData, answers: Sequence[FacetAnswer]) -> Call:
    language = report_language(data.language, data.unit.question)
    lines: list[str] = []
    unresolved: list[str] = []
    for answer in answers:
        for one in answer.chosen:
            if one.role == "older":
                dated = one.document.dated
                named = attributed(
                    "older",
                    language,
                    one.document.title,
                    one.document.location,
                    dated.date if dated else None,
                )
                lines.append(f"{named} {one.plain}")
            elif one.role == "answer":
                lines.append(phrase("source", language, title=one.document.title, text=one.plain))
        told = [phrase("not_found", language, question=question) for question in answer.missing]
        unresolved.extend(told)
        lines.extend(told)
    finding: JsonValue = {
        "findings": "\n".join(lines),
        "unresolved": list(dict.fromkeys(unresolved)),
        "limitations": phrase("limitations", language),
    }
    return Call(OUTPUT, finding)
