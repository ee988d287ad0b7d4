"""Which of the documents that came up are versions of one document, written to the ledger."""

from __future__ import annotations

from leadline.capabilities.corpus.seam import Corpus
from leadline.research.events import VersionFound
from leadline.research.evidence.record import RunRecord
from leadline.research.sources.versions import DocInfo, relate_versions


def relate(corpus: Corpus, record: RunRecord) -> None:
    """Record every pair of which at least one side is evidence. Each pair is recorded once.

    In the order of their locations: which unit found a document first makes no difference.
    """
    ledger = record.ledger
    quoted = {quote.source for quote in ledger.quotes.values()}
    documents = [
        DocInfo(
            id=source.id,
            title=source.title,
            location=source.location,
            published=source.published,
            text=corpus.text(source.id),
        )
        for source in sorted(ledger.sources.values(), key=lambda one: (one.location, one.id))
        if ledger.usable(source.id)
    ]
    known = {(pair.newer, pair.older) for pair in ledger.versions}
    for pair in relate_versions(documents):
        if {pair.newer, pair.older} & quoted and (pair.newer, pair.older) not in known:
            record.append(VersionFound(newer=pair.newer, older=pair.older, reason=pair.reason))
