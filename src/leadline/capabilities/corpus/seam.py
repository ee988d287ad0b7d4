"""What a corpus of documents is, what a search of it yields, and who opens one."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from leadline.capabilities.documents.seam import READABLE, Outcome, Snapshot
from leadline.kernel.errors import LeadlineError
from leadline.kernel.services import Service

Progress = Callable[[int, int, str], None]
"""Called on the event loop: files read so far, files to read, location of the one just read."""


@dataclass(frozen=True)
class CorpusDocument:
    """One file of a corpus, read or not."""

    id: str
    """`d-` and ten hex digits of location and content: the same on every machine, another once it changes."""
    location: str
    """Path in the corpus with `/`, behind the root's name where there are several roots."""
    title: str
    """The document's own, else its file name."""
    published: str | None
    """ISO date from the document's metadata."""
    outcome: Outcome
    reason: str
    """Empty for `ok`; else why there is no text, or what is missing."""
    snapshot: Snapshot

    @property
    def readable(self) -> bool:
        """Whether its text may become evidence."""
        return self.outcome in READABLE


@dataclass(frozen=True)
class Excerpt:
    """A window of a document's text: `text` is exactly its code points `start` to `end`."""

    start: int
    end: int
    text: str
    page: int | None
    """The page that `start` lies on; None where there are no pages."""


@dataclass(frozen=True)
class Hit:
    """A document that matches a query, shown by its best passage."""

    document: CorpusDocument
    score: float
    """Higher is better; comparable within one search only."""
    rank: int
    """From 1."""
    start: int
    end: int
    snippet: str
    """Exactly the code points `start` to `end` of the document's text, around the words that match."""
    page: int | None
    more: tuple[Excerpt, ...]
    """Up to two further passages of the document, best first."""


class CorpusError(LeadlineError):
    """Root of what this seam raises.

    CorpusError
    ├── CorpusUnavailable    a path that cannot be opened
    ├── UnknownDocument      no document has that id
    └── CorpusClosed         used after it was closed
    """


class CorpusUnavailable(CorpusError):
    """A path given as a corpus is not there or cannot be read.

    Attributes: path, cause (one phrase), next_step (one sentence).
    """

    def __init__(self, path: str, cause: str, next_step: str) -> None:
        super().__init__(f"corpus {path!r}: {cause}. {next_step}")
        self.path = path
        self.cause = cause
        self.next_step = next_step


class UnknownDocument(CorpusError):
    """No document of the corpus has the id that was asked for.

    Attributes: id, nearest (ids that look like it, at most three).
    """

    def __init__(self, document_id: str, nearest: Sequence[str]) -> None:
        hint = f"; the nearest are {', '.join(nearest)}" if nearest else ""
        super().__init__(
            f"no document {document_id!r} in this corpus{hint}. Ids come from a search or the list of documents"
        )
        self.id = document_id
        self.nearest = tuple(nearest)


def document_by_id(documents: Mapping[str, CorpusDocument], document_id: str) -> CorpusDocument:
    """The document of that id.

    Raises:
        UnknownDocument: there is none; it names the ids that look like it.
    """
    found = documents.get(document_id)
    if found is None:
        from difflib import get_close_matches  # noqa: PLC0415  needed only where an id is wrong

        raise UnknownDocument(document_id, get_close_matches(document_id, documents, n=3, cutoff=0.5))
    return found


class CorpusClosed(CorpusError):
    """The corpus was closed, or the plugin that opened it was unloaded."""


class Corpus(Protocol):
    """A fixed view of some files, as they were when it was opened. Safe to use from several threads."""

    @property
    def roots(self) -> tuple[str, ...]:
        """Names of the roots, in the order given; unique."""
        ...

    @property
    def left_out(self) -> Mapping[str, int]:
        """How many files and folders were passed over by a rule (hidden, ignored, …), by rule."""
        ...

    def documents(self) -> tuple[CorpusDocument, ...]:
        """All documents, readable or not, by location."""
        ...

    @property
    def total(self) -> int:
        """How many documents there are to search, those included of which only the number is known."""
        return len(self.documents())

    def document(self, document_id: str) -> CorpusDocument:
        """One document.

        Raises:
            UnknownDocument: no document has this id.
        """
        ...

    def search(self, query: str, limit: int = 8) -> list[Hit]:
        """The documents that match any word of `query`, best first; none for a query without words.

        Raises:
            CorpusClosed: it was closed.
        """
        ...

    def text(self, document_id: str) -> str:
        """The stored text of a document; empty where none could be read.

        Raises:
            UnknownDocument: no document has this id.
            CorpusClosed: it was closed.
        """
        ...

    def outcomes(self) -> Mapping[Outcome, int]:
        """How many documents ended in each outcome."""
        ...

    def close(self) -> None:
        """Let go of the index; closing twice is harmless."""
        ...


class Corpora(Service, key="corpora"):
    """Opens files and folders as a corpus."""

    @abstractmethod
    async def open(self, paths: Sequence[Path], *, progress: Progress | None = None) -> Corpus:
        """Read what is new or changed below `paths` and give the whole as one corpus.

        It stays open until it is closed or the provider is unloaded.

        Raises:
            CorpusUnavailable: a path is missing or cannot be read, or none was given.
        """

    @abstractmethod
    def restore(self, roots: Sequence[str], documents: Sequence[CorpusDocument]) -> Corpus:
        """These documents with their stored texts, whatever became of the files; a text that is lost is empty.

        It is indexed in memory when it is first searched. It stays open as one that was opened.
        """


def make_document_id(location: str, bytes_sha256: str) -> str:
    """The id of a file by its location and content. `bytes_sha256` is empty where it could not be read."""
    return "d-" + hashlib.sha256(f"{location}\0{bytes_sha256}".encode()).hexdigest()[:10]
