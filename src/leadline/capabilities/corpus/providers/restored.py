"""A corpus made of documents that were read before: their stored texts, indexed in memory when they are searched."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from leadline.capabilities.corpus.providers.index import Index, prepared
from leadline.capabilities.corpus.providers.query import parse
from leadline.capabilities.corpus.providers.search import search
from leadline.capabilities.corpus.providers.walk import Entry
from leadline.capabilities.corpus.seam import Corpus, CorpusClosed, CorpusDocument, Hit, document_by_id
from leadline.capabilities.documents.seam import Outcome, Snapshots
from leadline.core.session.errors import BlobError


class RestoredCorpus(Corpus):
    """Documents by their snapshots; no file is touched."""

    def __init__(
        self, roots: Sequence[str], documents: Sequence[CorpusDocument], snapshots: Snapshots
    ) -> None:
        self._roots = tuple(roots)
        self._documents = tuple(sorted(documents, key=lambda one: one.location))
        self._by_id = {document.id: document for document in self._documents}
        self._snapshots = snapshots
        self._index: Index | None = None
        self._by_seq: dict[int, CorpusDocument] = {}
        self._lock = threading.Lock()
        self.closed = False

    @property
    def roots(self) -> tuple[str, ...]:
        return self._roots

    @property
    def left_out(self) -> Mapping[str, int]:
        return {}

    def documents(self) -> tuple[CorpusDocument, ...]:
        return self._documents

    def document(self, document_id: str) -> CorpusDocument:
        return document_by_id(self._by_id, document_id)

    def search(self, query: str, limit: int = 8) -> list[Hit]:
        parsed = parse(query)
        if parsed is None:
            return []
        with self._lock:
            self._check_open()
            if self._index is None:
                self._index = self._indexed()
        return search(self._index, self._by_seq, parsed, limit)

    def _indexed(self) -> Index:
        index = Index(None)
        readable = {one.location: one for one in self._documents if one.readable}
        index.store(
            (prepared(_entry(one), one.snapshot, self.text(one.id), "") for one in readable.values()), "", 0
        )
        self._by_seq = {row.seq: readable[row.location] for row in index.rows()}
        return index

    def text(self, document_id: str) -> str:
        sha256 = self.document(document_id).snapshot.text_sha256
        self._check_open()
        try:
            return self._snapshots.text(sha256) if sha256 else ""
        except BlobError:
            return ""

    def outcomes(self) -> Mapping[Outcome, int]:
        return Counter(document.outcome for document in self._documents)

    def _check_open(self) -> None:
        if self.closed:
            raise CorpusClosed(f"the corpus of {', '.join(self._roots)} was closed; open it again")

    def close(self) -> None:
        with self._lock:
            self.closed = True
            index, self._index = self._index, None
        if index is not None:
            index.close()


def _entry(document: CorpusDocument) -> Entry:
    """The document as a file of which only the location is known."""
    return Entry(document.location, Path(), (), 0, 0, 0, 0)
