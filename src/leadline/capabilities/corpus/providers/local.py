"""Opens local files as a corpus: walks, reads what is new or changed, indexes, and gives a fixed view."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeVar, cast

from anyio import CapacityLimiter, Semaphore, create_task_group, to_thread

from leadline.capabilities.corpus.providers.index import Index, Prepared, Row, Touched, prepared, remove_files
from leadline.capabilities.corpus.providers.query import parse
from leadline.capabilities.corpus.providers.reading import read_file
from leadline.capabilities.corpus.providers.restored import RestoredCorpus
from leadline.capabilities.corpus.providers.search import search
from leadline.capabilities.corpus.providers.walk import Entry, Problem, Root, Walked, resolve_roots, walk
from leadline.capabilities.corpus.seam import (
    Corpora,
    Corpus,
    CorpusClosed,
    CorpusDocument,
    Hit,
    Progress,
    document_by_id,
)
from leadline.capabilities.documents.seam import Outcome, Snapshots, snapshot_of, without_text
from leadline.core.clock import Clock
from leadline.core.home import Home, HomeUnusable

_Job = tuple[Entry, Row | None]
_Open = TypeVar("_Open", bound="FolderCorpus | RestoredCorpus")
_BATCH = 64
_BATCH_CHARACTERS = 4_000_000


class LocalCorpora(Corpora):
    """Corpora of local files, each with an index in the home directory."""

    def __init__(self, snapshots: Snapshots, home: Home, clock: Clock, *, workers: int = 2) -> None:
        """`workers`: files that are read at the same time."""
        self._snapshots = snapshots
        self._home = home
        self._clock = clock
        self._workers = workers
        self._open: list[FolderCorpus | RestoredCorpus] = []

    async def open(self, paths: Sequence[Path], *, progress: Progress | None = None) -> Corpus:
        roots = await to_thread.run_sync(resolve_roots, paths)
        walked = await to_thread.run_sync(partial(walk, roots, except_for=self._home.path))
        index = await self._indexed(roots, walked, progress)
        try:
            corpus = await to_thread.run_sync(FolderCorpus, roots, walked, index)
        except BaseException:
            index.close()
            raise
        return self._kept(corpus)

    def restore(self, roots: Sequence[str], documents: Sequence[CorpusDocument]) -> Corpus:
        return self._kept(RestoredCorpus(roots, documents, self._snapshots))

    def _kept(self, corpus: _Open) -> _Open:
        self._open = [each for each in self._open if not each.closed]
        self._open.append(corpus)
        return corpus

    def close(self) -> None:
        """Close every corpus that is still open."""
        for corpus in self._open:
            corpus.close()
        self._open.clear()

    async def _indexed(self, roots: Sequence[Root], walked: Walked, progress: Progress | None) -> Index:
        """An index that is up to date: the stored one, that one built anew if it is damaged, else one in memory."""
        path = await to_thread.run_sync(self._path, roots)
        for _ in range(2 if path else 0):
            try:
                return await self._updated(path, walked, progress)
            except sqlite3.OperationalError:
                break  # locked for long, read-only or full: do without the file
            except sqlite3.DatabaseError:
                assert path is not None
                await to_thread.run_sync(remove_files, path)
        return await self._updated(None, walked, progress)

    def _path(self, roots: Sequence[Root]) -> Path | None:
        named = "\0".join(f"{root.name}\0{root.path}" for root in roots)
        digest = hashlib.sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        try:
            return self._home.make("corpora") / f"{digest}.sqlite"
        except HomeUnusable:
            return None

    async def _updated(self, path: Path | None, walked: Walked, progress: Progress | None) -> Index:
        index = await to_thread.run_sync(Index, path)
        try:
            await _Update(index, self._snapshots, self._clock, self._workers, progress).run(walked)
            await to_thread.run_sync(index.hold)
        except BaseException:
            index.close()
            raise
        return index


@dataclass
class _Update:
    """Brings an index up to date with what was found."""

    index: Index
    snapshots: Snapshots
    clock: Clock
    workers: int
    progress: Progress | None

    async def run(self, walked: Walked) -> None:
        fingerprint = self.snapshots.documents.fingerprint
        gone, to_read = await to_thread.run_sync(self._plan, walked, fingerprint)
        await self._read(to_read, fingerprint)
        if gone or to_read:  # last, so that a file that was renamed is known by its content
            await to_thread.run_sync(self.index.remove, gone)

    def _plan(self, walked: Walked, fingerprint: str) -> tuple[list[str], list[_Job]]:
        """Locations that are gone, and files to read, with what is known of them by the same readers."""
        rows = {row.location: row for row in self.index.rows()}
        to_read: list[_Job] = []
        for entry in walked.entries:
            row = rows.pop(entry.location, None)
            if row is not None and (row.fingerprint != fingerprint or not self.snapshots.has(row.snapshot)):
                row = None
            if row is None or not row.is_current(entry):
                to_read.append((entry, row))
        return sorted(rows), to_read

    async def _read(self, jobs: Sequence[_Job], fingerprint: str) -> None:
        checked_ns = int(self.clock.now() * 1e9)
        limiter = CapacityLimiter(self.workers)
        turn = Semaphore(2 * self.workers)  # bounds how many files are in memory
        ready: list[Prepared | Touched] = []
        done = 0

        async def store() -> None:
            batch = ready.copy()
            ready.clear()
            await to_thread.run_sync(self.index.store, batch, fingerprint, checked_ns)

        async def take(entry: Entry, row: Row | None) -> None:
            nonlocal done
            try:
                ready.append(await to_thread.run_sync(self._taken, entry, row, fingerprint, limiter=limiter))
                if len(ready) >= _BATCH or sum(_size(each) for each in ready) > _BATCH_CHARACTERS:
                    await store()
            finally:
                turn.release()
            done += 1
            if self.progress is not None:
                self.progress(done, len(jobs), entry.location)

        try:
            async with create_task_group() as group:
                for entry, row in jobs:
                    await turn.acquire()
                    group.start_soon(take, entry, row)
        except ExceptionGroup as failures:
            raise _first(failures) from failures
        if ready:
            await store()

    def _taken(self, entry: Entry, row: Row | None, fingerprint: str) -> Prepared | Touched:
        """Read one file in a worker thread; a file for which there is no room costs nobody the others."""
        try:
            return self._read_one(entry, row, fingerprint)
        except MemoryError:
            return self._refused(entry, Problem("error", "not enough memory to read it"))

    def _refused(self, entry: Entry, problem: Problem) -> Prepared:
        """A file of which nothing is known, so that it is read again the next time."""
        refused = without_text(problem.outcome, problem.reason, "application/octet-stream")
        self.snapshots.store(refused.text)
        return prepared(entry, snapshot_of(refused, ""), "", "")

    def _read_one(self, entry: Entry, row: Row | None, fingerprint: str) -> Prepared | Touched:
        file = read_file(entry, self.snapshots.documents.limits)
        if file.problem is not None:
            return self._refused(file.entry, file.problem)
        digest = hashlib.sha256(file.data).hexdigest()
        if row is not None and row.snapshot.bytes_sha256 == digest:
            return Touched(file.entry)
        name = PurePosixPath(entry.location).name
        content = f"{digest} {PurePosixPath(name).suffix.lower()} {fingerprint}"
        known = self.index.known(content)
        if known is None:
            extraction = self.snapshots.documents.extract_now(file.data, name)
            known = snapshot_of(extraction, digest), extraction.text
        snapshot, text = known
        self.snapshots.store(text, file.data)
        return prepared(file.entry, snapshot, text, content)


def _first(failure: Exception) -> Exception:
    """One of several failures that share a cause, as the caller knows it."""
    if isinstance(failure, ExceptionGroup):
        return _first(cast("ExceptionGroup[Exception]", failure).exceptions[0])
    return failure


def _size(file: Prepared | Touched) -> int:
    return len(file.text) if isinstance(file, Prepared) else 0


class FolderCorpus(Corpus):
    """A fixed view of an index."""

    def __init__(self, roots: Sequence[Root], walked: Walked, index: Index) -> None:
        self._names = tuple(root.name for root in roots)
        self._left_out = dict(walked.left_out)
        self._index = index
        self._by_seq = {row.seq: _document(row) for row in index.rows()}
        self._documents = tuple(self._by_seq.values())
        self._by_id = {document.id: document for document in self._documents}
        self.closed = False

    @property
    def roots(self) -> tuple[str, ...]:
        return self._names

    @property
    def left_out(self) -> Mapping[str, int]:
        return self._left_out

    def documents(self) -> tuple[CorpusDocument, ...]:
        return self._documents

    def document(self, document_id: str) -> CorpusDocument:
        return document_by_id(self._by_id, document_id)

    def search(self, query: str, limit: int = 8) -> list[Hit]:
        self._check_open()
        parsed = parse(query)
        return [] if parsed is None else search(self._index, self._by_seq, parsed, limit)

    def text(self, document_id: str) -> str:
        sha256 = self.document(document_id).snapshot.text_sha256
        self._check_open()
        return self._index.text(sha256)

    def outcomes(self) -> Mapping[Outcome, int]:
        return Counter(document.outcome for document in self._documents)

    def _check_open(self) -> None:
        if self.closed:
            raise CorpusClosed(f"the corpus of {', '.join(self._names)} was closed; open it again")

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._index.close()


def _document(row: Row) -> CorpusDocument:
    snapshot = row.snapshot
    return CorpusDocument(
        id=row.id,
        location=row.location,
        title=snapshot.title or PurePosixPath(row.location).name,
        published=snapshot.published,
        outcome=snapshot.outcome,
        reason=snapshot.reason,
        snapshot=snapshot,
    )
