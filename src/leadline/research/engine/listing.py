"""The documents of a run's corpus as they were when it began, kept as one blob that its log names."""

from __future__ import annotations

import msgspec

from leadline.capabilities.corpus.seam import Corpus, CorpusDocument
from leadline.core.session.blobs import Blobs
from leadline.core.session.errors import BlobError


def store_listing(blobs: Blobs, corpus: Corpus) -> str:
    """Store the list of documents; returns its hash. Equal corpora have one list between them.

    Raises:
        BlobWriteFailed: the disk refused.
    """
    return blobs.put(msgspec.json.encode(corpus.documents()))


def stored_listing(blobs: Blobs, sha256: str) -> tuple[CorpusDocument, ...]:
    """The documents of a list; none where there is no list, or the store has lost it."""
    try:
        return msgspec.json.decode(blobs.get(sha256), type=tuple[CorpusDocument, ...]) if sha256 else ()
    except (BlobError, msgspec.MsgspecError):
        return ()
