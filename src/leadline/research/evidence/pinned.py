"""A corpus in which everything that a run came upon stays as it was, whatever became of the files."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from leadline.capabilities.corpus.seam import Corpus, CorpusDocument, Hit, UnknownDocument
from leadline.capabilities.documents.seam import Outcome, PageSpan, Snapshot
from leadline.core.session.blobs import Blobs
from leadline.core.session.errors import BlobDamaged, BlobMissing
from leadline.research.events import Source


class PinnedCorpus(Corpus):
    """The corpus as it is now, and the documents of earlier processes as they were recorded."""

    def __init__(self, now: Corpus, sources: Callable[[], Mapping[str, Source]], blobs: Blobs) -> None:
        """`sources` gives what the run has recorded by now, by id."""
        self._now = now
        self._sources = sources
        self._blobs = blobs
        self._texts: dict[str, str] = {}

    @property
    def roots(self) -> tuple[str, ...]:
        return self._now.roots

    @property
    def left_out(self) -> Mapping[str, int]:
        return self._now.left_out

    def documents(self) -> tuple[CorpusDocument, ...]:
        return self._now.documents()

    @property
    def total(self) -> int:
        return self._now.total

    def document(self, document_id: str) -> CorpusDocument:
        try:
            return self._now.document(document_id)
        except UnknownDocument:
            recorded = self._sources().get(document_id)
            if recorded is None:
                raise
            return document_of(recorded, len(self._recorded_text(recorded)))

    def search(self, query: str, limit: int = 8) -> list[Hit]:
        return self._now.search(query, limit)

    def text(self, document_id: str) -> str:
        try:
            return self._now.text(document_id)
        except UnknownDocument:
            recorded = self._sources().get(document_id)
            if recorded is None:
                raise
            return self._recorded_text(recorded)

    def outcomes(self) -> Mapping[Outcome, int]:
        return self._now.outcomes()

    def close(self) -> None:
        self._now.close()

    def _recorded_text(self, source: Source) -> str:
        """The text as it was stored; empty where the store has lost it, so that its quotes are told as lost."""
        sha = source.snapshot
        if sha not in self._texts:
            self._texts[sha] = stored_text(self._blobs, sha)
        return self._texts[sha]


def stored_text(blobs: Blobs, sha256: str) -> str:
    """The text of a snapshot; empty where there is none, or the store has lost it."""
    try:
        return blobs.get(sha256).decode("utf-8", "surrogatepass") if sha256 else ""
    except (BlobMissing, BlobDamaged):
        return ""


def document_of(source: Source, length: int) -> CorpusDocument:
    """A source of a ledger as the document it was; `length` is that of its text, in code points."""
    snapshot = Snapshot(
        bytes_sha256=source.bytes_sha256,
        text_sha256=source.snapshot,
        media_type=source.media_type,
        method=source.method,
        method_version=source.method_version,
        pages=tuple(PageSpan(page.number, page.start, page.end) for page in source.pages),
        title=source.title,
        published=source.published,
        outcome=source.outcome,
        reason=source.reason,
        length=length,
    )
    return CorpusDocument(
        id=source.id,
        location=source.location,
        title=source.title,
        published=source.published,
        outcome=source.outcome,
        reason=source.reason,
        snapshot=snapshot,
    )
