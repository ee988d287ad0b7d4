"""What reading a document yields, who can read which kind, and the stored snapshot of it.

Shape of every stored text: Unicode as the document has it (no NFC, no joined hyphens), line ends `\\n`,
without NUL and lone surrogates. All offsets are code points of that text.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Literal, Protocol

from anyio import CapacityLimiter, to_thread

from leadline.core.session.blobs import Blobs
from leadline.kernel.context import Context
from leadline.kernel.effects import Effect
from leadline.kernel.errors import LeadlineError
from leadline.kernel.services import Service

Outcome = Literal["ok", "partial", "thin", "blocked", "paywalled", "unsupported", "disallowed", "error"]
"""How reading went: `ok` all of it; `partial` some of it, the reason tells what is missing; `thin` nothing
worth quoting inside; `blocked` a password or a gate is before it; `paywalled` it must be bought;
`unsupported` no reader for its kind, or over a limit; `disallowed` a rule forbids reading it; `error` broken."""

READABLE: frozenset[Outcome] = frozenset({"ok", "partial"})
"""Outcomes whose text may become evidence."""


@dataclass(frozen=True)
class PageSpan:
    """Where a page's text lies: page `number` counted from 1, code points `start` to `end`."""

    number: int
    start: int
    end: int


@dataclass(frozen=True)
class Extraction:
    """The text of a document and how it was obtained."""

    outcome: Outcome
    reason: str
    """Empty for `ok`; else one line: what is missing or in the way."""
    media_type: str
    """Found from the content, whatever the name says."""
    text: str
    title: str | None
    """From the document's own metadata or first heading."""
    published: str | None
    """ISO date from the document's own metadata; never guessed from its sentences."""
    pages: tuple[PageSpan, ...]
    """Ascending; empty where the format has no pages."""
    method: str
    method_version: str
    encoding: str | None = None
    """For text formats, the encoding that the bytes were decoded with."""


@dataclass(frozen=True)
class Snapshot:
    """What was read, by content: hashes of the bytes and of the stored text, and how one became the other."""

    bytes_sha256: str
    """Hex; empty if the bytes could not be read."""
    text_sha256: str
    """Hex, of the UTF-8 text; also its blob."""
    media_type: str
    method: str
    method_version: str
    pages: tuple[PageSpan, ...]
    title: str | None
    published: str | None
    outcome: Outcome
    length: int
    """Code points of the text."""
    reason: str = ""
    encoding: str | None = None

    @property
    def readable(self) -> bool:
        """Whether the text may become evidence."""
        return self.outcome in READABLE

    def page_at(self, offset: int) -> int | None:
        """The number of the page that holds the code point at `offset`; None where there are no pages."""
        return page_at(self.pages, offset)


def page_at(pages: Sequence[PageSpan], offset: int) -> int | None:
    """The number of the page that holds `offset`; None before the first page and where there are none."""
    found = bisect_right(pages, offset, key=lambda page: page.start)
    return pages[found - 1].number if found else None


@dataclass(frozen=True)
class Limits:
    """How much a reader may take in and give back."""

    max_bytes: int = 50_000_000
    """Bytes of one document; a bigger one is `unsupported`."""
    max_text: int = 10_000_000
    """Code points of one text; a longer one is cut and `partial`."""
    max_expanded: int = 200_000_000
    """Bytes that the members of a packed document (DOCX) may have together when unpacked."""


class Certainty(IntEnum):
    """How sure a reader is that it knows the format."""

    FALLBACK = 1
    TEXT = 2
    STRUCTURE = 3
    SIGNATURE = 4


@dataclass(frozen=True)
class Recognition:
    """A reader's claim on a document."""

    media_type: str
    certainty: Certainty


class DocumentError(LeadlineError):
    """Root of what this seam raises."""


class DuplicateReader(DocumentError):
    """A reader of that name is registered already."""


class NoReader(DocumentError):
    """No reader is registered at all."""


class Reader(Protocol):
    """Reads one family of formats. Called in a worker thread, several at once."""

    @property
    def name(self) -> str:
        """Unique; recorded as the method."""
        ...

    @property
    def version(self) -> str:
        """Changes whenever the same bytes may give another text; recorded as the method's version."""
        ...

    def recognise(self, data: bytes, name: str) -> Recognition | None:
        """A claim on `data`, which is not empty, or None. `name` may only break ties between kinds of text."""
        ...

    def read(self, data: bytes, media_type: str, name: str, limits: Limits) -> Extraction:
        """The text, or an outcome with the reason. A damaged document is an outcome; only defects raise."""
        ...


class Documents(Service, key="documents"):
    """Chooses the reader for a document by its content and runs it off the event loop."""

    def __init__(
        self, limits: Limits | None = None, readers: Sequence[Reader] = (), *, workers: int | None = None
    ) -> None:
        """`readers`: some that stay as long as this does, where there is no context to register with.
        `workers`: threads that read at the same time; the number of processors if None."""
        self.limits = limits or Limits()
        self._readers: dict[str, Reader] = {reader.name: reader for reader in readers}
        self._workers = max(1, workers or os.cpu_count() or 1)
        self._limiter: CapacityLimiter | None = None

    def register(self, ctx: Context, reader: Reader) -> Effect:
        """Offer a reader until `ctx` ends.

        Raises:
            DuplicateReader: the name is taken.
        """
        if reader.name in self._readers:
            raise DuplicateReader(
                f"a reader named {reader.name!r} is registered already; give {ctx.label}'s another name"
            )
        effect = ctx.defer(f"reader {reader.name}", lambda: self._remove(reader.name))
        self._readers[reader.name] = reader
        return effect

    def _remove(self, name: str) -> None:
        del self._readers[name]

    @property
    def fingerprint(self) -> str:
        """Changes when another reader, version or limit may give another text for the same bytes."""
        parts = [f"{name} {reader.version}" for name, reader in sorted(self._readers.items())]
        return hashlib.sha256("\n".join([*parts, repr(self.limits)]).encode()).hexdigest()[:16]

    async def extract(self, data: bytes, name: str) -> Extraction:
        """The text of `data`; `name` is its file name or URL path.

        Raises:
            NoReader: no reader is registered.
        """
        if self._limiter is None:
            self._limiter = CapacityLimiter(self._workers)
        return await to_thread.run_sync(self.extract_now, data, name, limiter=self._limiter)

    def extract_now(self, data: bytes, name: str) -> Extraction:
        """As `extract`, in the calling thread."""
        if not self._readers:
            raise NoReader(
                "no document reader is registered; enable the plugin of leadline.capabilities.documents"
            )
        if not data:
            return without_text("thin", "empty file", "application/x-empty")
        if len(data) > self.limits.max_bytes:
            return too_large(len(data), self.limits)
        chosen = self._choose(data, name)
        if chosen is None:
            return without_text("unsupported", "no reader knows this format", "application/octet-stream")
        reader, media_type = chosen
        return _cut(_clean(reader.read(data, media_type, name, self.limits)), self.limits.max_text)

    def _choose(self, data: bytes, name: str) -> tuple[Reader, str] | None:
        """The surest reader, by name among equals, so that the order of registration does not matter."""
        claims = [
            (-claim.certainty, key, claim.media_type)
            for key, reader in self._readers.items()
            if (claim := reader.recognise(data, name)) is not None
        ]
        if not claims:
            return None
        _, key, media_type = min(claims)
        return self._readers[key], media_type


class Snapshots(Service, key="snapshots"):
    """Takes and keeps snapshots: the text goes to the blobs under its own hash."""

    def __init__(self, documents: Documents, blobs: Blobs, *, keep_bytes: bool = False) -> None:
        """`keep_bytes`: whether the original bytes are kept too; their hash always is."""
        self.documents = documents
        self._blobs = blobs
        self._keep_bytes = keep_bytes

    async def take(self, data: bytes, name: str) -> Snapshot:
        """Read `data` and store its text.

        Raises:
            NoReader: no reader is registered.
            BlobWriteFailed: the text could not be stored.
        """
        extraction = await self.documents.extract(data, name)
        return await to_thread.run_sync(self._kept, extraction, data)

    def _kept(self, extraction: Extraction, data: bytes) -> Snapshot:
        self.store(extraction.text, data)
        return snapshot_of(extraction, hashlib.sha256(data).hexdigest())

    def store(self, text: str, data: bytes | None = None) -> None:
        """Store the text of a snapshot that was made elsewhere, and its bytes where bytes are kept.

        Raises:
            BlobWriteFailed: the disk refused.
        """
        self._blobs.put(text.encode("utf-8"))
        if self._keep_bytes and data is not None:
            self._blobs.put(data)

    def text(self, snapshot: Snapshot | str) -> str:
        """The stored text, by snapshot or by the text's hash.

        Raises:
            BlobMissing, BlobDamaged: the text is gone or no longer what its hash says.
        """
        digest = snapshot if isinstance(snapshot, str) else snapshot.text_sha256
        return self._blobs.get(digest).decode("utf-8")

    def has(self, snapshot: Snapshot | str) -> bool:
        """Whether the text is stored."""
        return self._blobs.has(snapshot if isinstance(snapshot, str) else snapshot.text_sha256)


def snapshot_of(extraction: Extraction, bytes_sha256: str) -> Snapshot:
    """The snapshot of an extraction. `bytes_sha256` is empty where the bytes could not be read."""
    return Snapshot(
        bytes_sha256=bytes_sha256,
        text_sha256=hashlib.sha256(extraction.text.encode("utf-8")).hexdigest(),
        media_type=extraction.media_type,
        method=extraction.method,
        method_version=extraction.method_version,
        pages=extraction.pages,
        title=extraction.title,
        published=extraction.published,
        outcome=extraction.outcome,
        length=len(extraction.text),
        reason=extraction.reason,
        encoding=extraction.encoding,
    )


def too_large(size: int, limits: Limits) -> Extraction:
    """The outcome of a document of `size` bytes that is over the limit and was not read."""
    reason = f"{size:,} bytes, over the limit of {limits.max_bytes:,}"
    return without_text("unsupported", reason, "application/octet-stream")


def without_text(outcome: Outcome, reason: str, media_type: str) -> Extraction:
    """An outcome that no reader made: there are no bytes, too many, or none that may be read."""
    return Extraction(outcome, reason, media_type, "", None, None, (), "none", "1")


def _clean(extraction: Extraction) -> Extraction:
    """Readers give clean text; this holds for third ones too. Pages are kept only where offsets still fit."""
    text = clean_text(extraction.text)
    if text == extraction.text:
        return extraction
    return replace(extraction, text=text, pages=())


def clean_text(text: str) -> str:
    """Line ends as `\\n`, without NUL and lone surrogates; nothing else changes."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        text = text.replace("\0", "")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-8", "ignore").decode("utf-8")
    return text


def _cut(extraction: Extraction, max_text: int) -> Extraction:
    total = len(extraction.text)
    if total <= max_text:
        return extraction
    reason = f"text cut at {max_text:,} of {total:,} characters"
    if extraction.reason:
        reason = f"{extraction.reason}; {reason}"
    pages = tuple(
        PageSpan(page.number, page.start, min(page.end, max_text))
        for page in extraction.pages
        if page.start < max_text
    )
    return replace(
        extraction,
        outcome="partial" if extraction.outcome == "ok" else extraction.outcome,
        reason=reason,
        text=extraction.text[:max_text],
        pages=pages,
    )
