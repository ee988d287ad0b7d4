"""The sources of a recorded run as a corpus: the texts as they were stored, the searches as they were answered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from leadline.capabilities.corpus.seam import Corpus, CorpusDocument, Excerpt, Hit, document_by_id
from leadline.capabilities.corpus.tools.search import DEFAULT_LIMIT
from leadline.capabilities.documents.seam import Outcome
from leadline.core.llm.jsonvalue import JsonValue
from leadline.kernel.errors import LeadlineError
from leadline.research.evidence.citing import MadeCall, calls_of
from leadline.research.evidence.governor import READ, SEARCH
from leadline.research.evidence.pinned import document_of
from leadline.research.ledger.ledger import Ledger
from leadline.research.replay.recording import RecordedSession

Texts = Callable[[str], str]
"""The stored text with a hash; empty where the store has lost it."""
Restore = Callable[[Sequence[str], Sequence[CorpusDocument]], Corpus]
"""Makes documents searchable; see `Corpora.restore`."""


class SourcesLost(LeadlineError):
    """Texts that a recorded run rests on are not in the store any more."""

    def __init__(self, run: str, locations: Sequence[str]) -> None:
        named = ", ".join(locations[:5])
        more = f" and {len(locations) - 5} more" if len(locations) > 5 else ""
        super().__init__(
            f"run {run} cannot be replayed: the stored text of {named}{more} is gone; import the run again from an "
            "export that has its texts, or ask the question again"
        )


@dataclass(frozen=True)
class RecordedSources:
    """What a recording says of the corpus of its run."""

    run: str
    roots: tuple[str, ...]
    documents: tuple[CorpusDocument, ...]
    """By location: all documents of the corpus where the run has listed them, else those that came up."""
    searches: Mapping[tuple[str, int], tuple[Hit, ...]]
    """Hits by query and limit."""
    total: int
    """How many documents there were to search."""

    def check(self, texts: Texts, ledger: Ledger) -> None:
        """That the texts are there which quotes were taken from or that were read.

        Raises:
            SourcesLost: some are not.
        """
        needed = {one.source for one in (*ledger.quotes.values(), *ledger.reads)}
        lost = [
            source.location
            for source in ledger.sources.values()
            if source.id in needed and ledger.usable(source.id) and not texts(source.snapshot)
        ]
        if lost:
            raise SourcesLost(self.run, lost)


def recorded_sources(
    recording: RecordedSession, ledger: Ledger, texts: Texts, listed: Sequence[CorpusDocument] = ()
) -> RecordedSources:
    """The sources of a recorded run; `listed` are the documents of its corpus, where the run has written them down."""
    calls = [call for session in recording.line() for call in calls_of(session.session) if not call.is_error]
    documents = {document.id: document for document in listed or _documents(ledger, calls, texts)}
    searches: dict[tuple[str, int], tuple[Hit, ...]] = {}
    total = len(documents)
    for call in calls:
        if call.name == SEARCH:
            hits = tuple(_hits(call.value, documents))
            searches.setdefault((str(call.value.get("query", "")), _limit(call)), hits)
            total = _number(call.value.get("total_documents"), total)
    return RecordedSources(
        run=recording.id,
        roots=ledger.started.roots if ledger.started else (),
        documents=tuple(sorted(documents.values(), key=lambda one: one.location)),
        searches=searches,
        total=total,
    )


def _documents(ledger: Ledger, calls: Sequence[MadeCall], texts: Texts) -> Iterator[CorpusDocument]:
    """The sources of the ledger, with the dates of their own that the tools told."""
    dates: dict[str, str | None] = {}
    for call in calls:
        told = _objects(call.value.get("hits")) if call.name == SEARCH else [call.value]
        for one in told if call.name in (SEARCH, READ) else ():
            date = one.get("published")
            dates[str(one.get("source"))] = date if isinstance(date, str) else None
    for source in ledger.sources.values():
        document = document_of(source, len(texts(source.snapshot)))
        if source.id in dates:
            date = dates[source.id]
            snapshot = replace(document.snapshot, published=date)
            document = replace(document, published=date, snapshot=snapshot)
        yield document


def _hits(value: Mapping[str, JsonValue], documents: Mapping[str, CorpusDocument]) -> Iterator[Hit]:
    for rank, told in enumerate(_objects(value.get("hits")), start=1):
        document = documents.get(str(told.get("source")))
        if document is None:
            continue
        page = told.get("page")
        yield Hit(
            document=document,
            score=1 / rank,
            rank=_number(told.get("rank"), rank),
            start=_number(told.get("start"), 0),
            end=_number(told.get("end"), 0),
            snippet=str(told.get("snippet", "")),
            page=page if isinstance(page, int) else None,
            more=tuple(_excerpt(one) for one in _objects(told.get("more"))),
        )


def _excerpt(told: Mapping[str, JsonValue]) -> Excerpt:
    page = told.get("page")
    return Excerpt(
        start=_number(told.get("start"), 0),
        end=_number(told.get("end"), 0),
        text=str(told.get("snippet", "")),
        page=page if isinstance(page, int) else None,
    )


def _objects(value: JsonValue) -> list[Mapping[str, JsonValue]]:
    found = value if isinstance(value, list | tuple) else ()
    return [cast("Mapping[str, JsonValue]", one) for one in found if isinstance(one, Mapping)]


def _limit(call: MadeCall) -> int:
    return _number(call.arguments.get("limit"), DEFAULT_LIMIT)


def _number(value: JsonValue, otherwise: int) -> int:
    try:
        return int(value) if isinstance(value, int | str) else otherwise
    except ValueError:
        return otherwise


class RecordedCorpus(Corpus):
    """Answers a search as it was answered; one that was never made searches the recorded texts."""

    def __init__(self, sources: RecordedSources, texts: Texts, restore: Restore) -> None:
        self._sources = sources
        self._texts = texts
        self._restore = restore
        self._by_id = {document.id: document for document in sources.documents}
        self._restored: Corpus | None = None
        self._lock = threading.Lock()

    @property
    def roots(self) -> tuple[str, ...]:
        return self._sources.roots

    @property
    def left_out(self) -> Mapping[str, int]:
        return {}

    def documents(self) -> tuple[CorpusDocument, ...]:
        return self._sources.documents

    @property
    def total(self) -> int:
        return self._sources.total

    def document(self, document_id: str) -> CorpusDocument:
        return document_by_id(self._by_id, document_id)

    def search(self, query: str, limit: int = DEFAULT_LIMIT) -> list[Hit]:
        recorded = self._sources.searches.get((query, limit))
        if recorded is not None:
            return list(recorded)
        with self._lock:
            if self._restored is None:
                self._restored = self._restore(self.roots, self.documents())
        return self._restored.search(query, limit)

    def text(self, document_id: str) -> str:
        return self._texts(self.document(document_id).snapshot.text_sha256)

    def outcomes(self) -> Mapping[Outcome, int]:
        counts: dict[Outcome, int] = {}
        for document in self.documents():
            counts[document.outcome] = counts.get(document.outcome, 0) + 1
        return counts

    def close(self) -> None:
        with self._lock:
            if self._restored is not None:
                self._restored.close()
