"""The index of a corpus in SQLite: what each file was when it was read, and the full text of its passages."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import cast

import msgspec

from leadline.capabilities.corpus.providers.passages import Passage, split
from leadline.capabilities.corpus.providers.walk import Entry
from leadline.capabilities.corpus.seam import make_document_id
from leadline.capabilities.documents.seam import Snapshot
from leadline.core.unspaced import apart, pairs, together

SCHEMA = 3
"""Another number makes every index be built anew: raise it with the tables, the passages or the words."""

_WITHOUT_HEADINGS = frozenset({"text/x-source", "text/csv", "text/tab-separated-values", "application/json"})
_BUSY_S = 30.0
_CACHE_KIB = 65_536
_SHIFT = 20
"""A passage's row is its document's number and its own in 20 bits, so that a match names its document."""

_RACY_NS = 2_000_000_000
"""A file changed less than this before it was looked at may have changed again unseen."""

_TABLES = """
CREATE TABLE document(
    seq INTEGER PRIMARY KEY, location TEXT NOT NULL UNIQUE, id TEXT NOT NULL, size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL, checked_ns INTEGER NOT NULL, fingerprint TEXT NOT NULL,
    passages INTEGER NOT NULL, content TEXT NOT NULL, text_sha256 TEXT NOT NULL, snapshot BLOB NOT NULL);
CREATE INDEX document_content ON document(content);
CREATE TABLE text(sha256 TEXT NOT NULL UNIQUE, packed BLOB NOT NULL);
CREATE TABLE passage(row INTEGER PRIMARY KEY, start INTEGER NOT NULL, end INTEGER NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(
    title, heading, body, grams, tokenize = 'porter unicode61 remove_diacritics 2');
"""
_RANKING = "bm25(words, 2.0, 1.5, 1.0, 1.0)"
"""Weights of the columns: a word in a title or heading counts a little more."""


@dataclass(frozen=True)
class Row:
    """What the index holds of one file."""

    seq: int
    location: str
    id: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    checked_ns: int
    fingerprint: str
    snapshot: Snapshot

    def is_current(self, entry: Entry) -> bool:
        """Whether the file is as it was, so that it need not be read again."""
        return (
            (self.size, self.mtime_ns, self.ctime_ns, self.inode)
            == (entry.size, entry.mtime_ns, entry.ctime_ns, entry.inode)
            and self.mtime_ns < self.checked_ns - _RACY_NS
            and bool(self.snapshot.bytes_sha256)
        )


@dataclass(frozen=True)
class Prepared:
    """A file that was read, ready to be put into the index."""

    entry: Entry
    id: str
    title: str
    snapshot: Snapshot
    text: str
    packed: bytes
    """The text, compressed by `packed`."""
    passages: Sequence[Passage]
    content: str
    """Stands for the bytes and who read them; files of equal content have equal snapshots. Empty: unknown."""


def prepared(entry: Entry, snapshot: Snapshot, text: str, content: str) -> Prepared:
    """A file with this text, split into passages; `content` as in `Prepared`."""
    headings = snapshot.media_type not in _WITHOUT_HEADINGS
    return Prepared(
        entry=entry,
        id=make_document_id(entry.location, snapshot.bytes_sha256),
        title=snapshot.title or PurePosixPath(entry.location).name,
        snapshot=snapshot,
        text=text,
        packed=packed(text),
        passages=split(text, headings=headings) if snapshot.readable else [],
        content=content,
    )


@dataclass(frozen=True)
class Touched:
    """A file that was read again and is as the index has it."""

    entry: Entry


@dataclass(frozen=True)
class PassageRow:
    """A passage that matches."""

    document: int
    start: int
    end: int
    body: str
    heading: str


class Index:
    """One index file, or one in memory. Calls may come from any thread, one at a time.

    Raises:
        sqlite3.DatabaseError: from every method, if the file is damaged, locked for long or not writable.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            ":memory:" if path is None else path,
            timeout=_BUSY_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._prepare()
        except sqlite3.DatabaseError:
            self._connection.close()
            raise
        if path is not None:
            with contextlib.suppress(OSError):  # nobody removes what may only be read
                os.utime(path)  # to open it is to use it: an index that nobody uses for long is removed

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def _prepare(self) -> None:
        if self.path is not None:
            mode = cast("tuple[str]", self._connection.execute("PRAGMA journal_mode = WAL").fetchone())
            if mode[0] != "wal":  # a reader would hold up writers, and hold on to nothing
                raise sqlite3.OperationalError(f"no write-ahead log at {self.path}")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        if self._version() == SCHEMA:
            return
        with self._writing():
            if self._version() != SCHEMA:
                for table in ("document", "text", "passage", "words"):
                    self._connection.execute(f"DROP TABLE IF EXISTS {table}")
                for statement in _TABLES.split(";\n"):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version = {SCHEMA}")

    def _version(self) -> int:
        return cast("tuple[int]", self._connection.execute("PRAGMA user_version").fetchone())[0]

    @contextlib.contextmanager
    def _writing(self) -> Generator[None]:
        """All or nothing: a killed process leaves what was there before."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    # what is known

    def rows(self) -> list[Row]:
        """All files of the index, by location."""
        with self._lock:
            found = self._connection.execute(
                "SELECT seq, location, id, size, mtime_ns, ctime_ns, inode, checked_ns, fingerprint, snapshot "
                "FROM document ORDER BY location"
            ).fetchall()
        decoder = msgspec.json.Decoder(Snapshot)
        return [Row(*values, snapshot=decoder.decode(encoded)) for *values, encoded in found]

    def known(self, content: str) -> tuple[Snapshot, str] | None:
        """Snapshot and text of a file with the same content."""
        with self._lock:
            found = self._connection.execute(
                "SELECT snapshot, packed FROM document JOIN text ON sha256 = text_sha256 WHERE content = ? LIMIT 1",
                (content,),
            ).fetchone()
        if found is None:
            return None
        return msgspec.json.decode(cast("bytes", found[0]), type=Snapshot), _unpacked(found[1])

    def text(self, sha256: str) -> str:
        """A stored text; empty for that of a file that is not in the index."""
        with self._lock:
            found = self._connection.execute("SELECT packed FROM text WHERE sha256 = ?", (sha256,)).fetchone()
        return "" if found is None else _unpacked(found[0])

    # changes

    def store(self, files: Iterable[Prepared | Touched], fingerprint: str, checked_ns: int) -> None:
        """Put files in, each in place of what was at its location."""
        with self._lock, self._writing():
            for file in files:
                if isinstance(file, Prepared):
                    self._store(file, fingerprint, checked_ns)
                else:
                    self._touch(file.entry, checked_ns)

    def _touch(self, entry: Entry, checked_ns: int) -> None:
        self._connection.execute(
            "UPDATE document SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, checked_ns = ? WHERE location = ?",
            (entry.size, entry.mtime_ns, entry.ctime_ns, entry.inode, checked_ns, entry.location),
        )

    def _store(self, file: Prepared, fingerprint: str, checked_ns: int) -> None:
        entry = file.entry
        self._remove(entry.location)
        cursor = self._connection.execute(
            "INSERT INTO document(location, id, size, mtime_ns, ctime_ns, inode, checked_ns, fingerprint, passages, content, "
            "text_sha256, snapshot) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                entry.location,
                file.id,
                entry.size,
                entry.mtime_ns,
                entry.ctime_ns,
                entry.inode,
                checked_ns,
                fingerprint,
                len(file.passages),
                file.content,
                file.snapshot.text_sha256,
                msgspec.json.encode(file.snapshot),
            ),
        )
        first = (cursor.lastrowid or 0) << _SHIFT
        self._connection.executemany(
            "INSERT INTO passage(row, start, end) VALUES (?, ?, ?)",
            ((first + number, each.start, each.end) for number, each in enumerate(file.passages)),
        )
        self._connection.executemany(
            "INSERT INTO words(rowid, title, heading, body, grams) VALUES (?, ?, ?, ?, ?)",
            _words(file, first),
        )
        self._connection.execute(
            "INSERT OR IGNORE INTO text(sha256, packed) VALUES (?, ?)",
            (file.snapshot.text_sha256, file.packed),
        )

    def remove(self, locations: Iterable[str]) -> None:
        """Take out files that are gone, and the texts that no file has any more."""
        with self._lock, self._writing():
            for location in locations:
                self._remove(location)
            self._connection.execute(
                "DELETE FROM text WHERE sha256 NOT IN (SELECT text_sha256 FROM document)"
            )

    def _remove(self, location: str) -> None:
        found = self._connection.execute(
            "SELECT seq, passages FROM document WHERE location = ?", (location,)
        ).fetchone()
        if found is None:
            return
        first = cast("int", found[0]) << _SHIFT
        last = first + cast("int", found[1]) - 1
        self._connection.execute("DELETE FROM words WHERE rowid BETWEEN ? AND ?", (first, last))
        self._connection.execute("DELETE FROM passage WHERE row BETWEEN ? AND ?", (first, last))
        self._connection.execute("DELETE FROM document WHERE seq = ?", (found[0],))

    # search

    def hold(self) -> None:
        """From now on, until `close`, this connection sees the index as it is now, whoever writes to it."""
        with self._lock:
            self._connection.execute("BEGIN")
            self._connection.execute("SELECT count(*) FROM document").fetchone()

    def ranked(self, expression: str, limit: int = -1) -> Iterator[tuple[int, int, float]]:
        """Document number, row and score (higher is better) of the best `limit` matches, best first; -1: of all.

        Read it within one `locked`.
        """
        cursor = self._connection.execute(
            f"SELECT rowid, {_RANKING} AS score FROM words WHERE words MATCH ? ORDER BY score LIMIT ?",
            (expression, limit),
        )
        for row, rank in cast("Iterator[tuple[int, float]]", cursor):
            yield row >> _SHIFT, row, -rank

    def passage(self, row: int) -> PassageRow:
        """A passage by its row."""
        start, end = self._connection.execute(
            "SELECT start, end FROM passage WHERE row = ?", (row,)
        ).fetchone()
        body, heading = self._connection.execute(
            "SELECT body, heading FROM words WHERE rowid = ?", (row,)
        ).fetchone()
        return PassageRow(row >> _SHIFT, start, end, together(body), together(heading))

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """The connection for oneself, for `ranked` and `passage`."""
        with self._lock:
            yield


def _words(file: Prepared, first: int) -> Iterator[tuple[int, str, str, str, str]]:
    for number, each in enumerate(file.passages):
        body = file.text[each.start : each.end]
        text = f"{file.title}\n{each.heading}\n{body}"
        grams = "" if text.isascii() else pairs(text)
        yield first + number, apart(file.title), apart(each.heading), apart(body), grams


def remove_files(path: Path) -> None:
    """Delete a damaged index; it is built anew."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def packed(text: str) -> bytes:
    """A text as it is stored."""
    return zlib.compress(text.encode("utf-8"), 1)


def _unpacked(data: object) -> str:
    return zlib.decompress(cast("bytes", data)).decode("utf-8")
