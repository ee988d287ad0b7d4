"""The index in SQLite: what each session is, how far its log was read, and the full text of its passages."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import cast

import msgspec

from leadline.capabilities.session_index.providers.reading import Progress, Reading
from leadline.capabilities.session_index.providers.records import (
    Entry,
    IndexUnusable,
    Match,
    Row,
    Unread,
    bounded,
)
from leadline.capabilities.session_index.providers.words import CLOSE, OPEN, folded, indexed
from leadline.capabilities.session_index.seam import Passage, Place
from leadline.core.session.projection import Checkpoint
from leadline.core.session.titles import cut_title
from leadline.core.unspaced import pairs

SCHEMA = 3
"""Another number makes every index be built anew: raise it with the tables or with what goes into them."""

_BUSY_S = 30.0
_CACHE_KIB = 32_768

_TABLES = """
CREATE TABLE session(
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL, resting TEXT NOT NULL, kind TEXT NOT NULL,
    created REAL NOT NULL, modified REAL NOT NULL, parent TEXT, depth INTEGER NOT NULL, label TEXT NOT NULL,
    size INTEGER NOT NULL, archived INTEGER NOT NULL, reason TEXT NOT NULL, holder TEXT NOT NULL,
    known TEXT NOT NULL DEFAULT '', outcome TEXT NOT NULL DEFAULT '', status TEXT NOT NULL, title TEXT NOT NULL DEFAULT '', question TEXT NOT NULL DEFAULT '',
    method TEXT NOT NULL DEFAULT '', model TEXT NOT NULL DEFAULT '', corpora TEXT NOT NULL DEFAULT '[]',
    turns INTEGER NOT NULL DEFAULT 0, calls INTEGER NOT NULL DEFAULT 0, tokens INTEGER, cost REAL, currency TEXT, cost_at_least REAL,
    title_folded TEXT NOT NULL DEFAULT '', corpora_folded TEXT NOT NULL DEFAULT '');
CREATE INDEX session_order ON session((status = 'unreadable'), created DESC, id DESC);
CREATE INDEX session_roots ON session((status = 'unreadable'), created DESC, id DESC) WHERE depth = 0;
CREATE INDEX session_parent ON session(parent);
CREATE INDEX session_known ON session(known);
CREATE INDEX session_stamps ON session(id, stamp);
CREATE INDEX session_held ON session(id) WHERE holder != '';
CREATE TABLE progress(session INTEGER PRIMARY KEY, offset INTEGER NOT NULL, checkpoints BLOB NOT NULL);
CREATE TABLE passage(row INTEGER PRIMARY KEY, session INTEGER NOT NULL, place TEXT NOT NULL, key TEXT NOT NULL);
CREATE INDEX passage_session ON passage(session, place, key);
CREATE VIRTUAL TABLE words USING fts5(head, body, head_pairs, body_pairs, tokenize = 'porter unicode61 remove_diacritics 2');
"""
_NAMES = ("session", "progress", "passage", "words")

COLUMNS = (
    "n, id, kind, status, created, modified, title, label, question, method, model, corpora, turns, calls, "
    "tokens, cost, currency, cost_at_least, parent, depth, size, archived, reason, holder, known"
)
"""What `Row` has, in its order."""

_ENTER = """
INSERT INTO session(id, stamp, resting, kind, created, modified, parent, depth, label, size, archived, reason, holder, status)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?3)
ON CONFLICT(id) DO UPDATE SET
    stamp = ?2, resting = ?3, kind = ?4, created = ?5, modified = ?6, parent = ?7, depth = ?8, label = ?9, size = ?10,
    archived = ?11, reason = ?12, holder = ?13,
    status = CASE WHEN ?3 = 'finished' AND outcome != '' THEN outcome ELSE ?3 END,
    known = CASE WHEN stamp = ?2 AND ?2 != '' OR (stamp = '' OR ?2 = '') AND size = ?10 AND modified = ?6 THEN known ELSE '' END
"""
"""What was read of a log stays known while its stamp stays, or where none was taken, its size and time."""

_RANKING = "bm25(words, 3.0, 1.0, 3.0, 1.0)"
"""Weights of the columns: a word in a title, a question or a report counts more."""

_SEEN = "stamp || '/' || size || '/' || modified"

_AMONG = "(SELECT value FROM json_each(?))"
"""A set of any size, as one value."""

_HEADS: frozenset[Place] = frozenset({"title", "question", "report"})


class IndexFile:
    """One index file, or one in memory. Calls may come from any thread, one at a time.

    Raises:
        IndexUnusable: from every method, if the file is damaged, locked for long or not writable.
    """

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        if path is not None:  # SQLite would let others read it
            with contextlib.suppress(OSError):
                path.touch(mode=0o600)
        try:
            self._connection = sqlite3.connect(
                ":memory:" if path is None else path,
                timeout=_BUSY_S,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
        except sqlite3.DatabaseError as error:
            raise _unusable(error) from error
        try:
            self._prepare()
        except IndexUnusable:
            self._connection.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def _prepare(self) -> None:
        with self._using():
            if self._version() != SCHEMA:  # where no write-ahead log can be kept, the mode stays, and is safe
                self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            current = self._version() == SCHEMA
        if current:
            return
        with self._writing():
            if self._version() != SCHEMA:
                self._create()

    def _create(self) -> None:
        for name in _NAMES:
            self._connection.execute(f"DROP TABLE IF EXISTS {name}")
        for statement in _TABLES.split(";\n"):
            self._connection.execute(statement)
        self._connection.execute(f"PRAGMA user_version = {SCHEMA}")

    def _version(self) -> int:
        return cast("tuple[int]", self._connection.execute("PRAGMA user_version").fetchone())[0]

    @contextlib.contextmanager
    def _using(self) -> Generator[None]:
        """The connection for oneself."""
        with self._lock:
            try:
                yield
            except sqlite3.ProgrammingError:  # a defect here says nothing about the file
                raise
            except sqlite3.DatabaseError as error:
                raise _unusable(error) from error

    @contextlib.contextmanager
    def _writing(self) -> Generator[None]:
        """The same, all or nothing: a killed process leaves what was there before."""
        with self._using():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def clear(self) -> None:
        """Forget everything."""
        with self._writing():
            self._create()

    # --- keeping up ---

    def stamps(self) -> dict[str, str]:
        """The stamp of each session as of when it was looked at."""
        with self._using():
            found = self._connection.execute("SELECT id, stamp FROM session")
            return dict(cast("Iterator[tuple[str, str]]", found))

    def open_ids(self) -> list[str]:
        """Sessions that had a writer when they were looked at."""
        with self._using():
            found = self._connection.execute("SELECT id FROM session WHERE holder != ''").fetchall()
        return [cast("str", one[0]) for one in found]

    def enter(self, entries: Sequence[Entry]) -> None:
        """Take in what a store says; of logs that changed since, nothing more is known until they are read."""
        with self._writing():
            self._connection.executemany(_ENTER, (astuple(one) for one in entries))

    def remove(self, ids: Iterable[str]) -> None:
        """Forget sessions that are gone."""
        with self._writing():
            for session_id in ids:
                found = self._connection.execute(
                    "SELECT n FROM session WHERE id = ?", (session_id,)
                ).fetchone()
                if found is not None:
                    self._forget_text(found[0])
                    self._connection.execute("DELETE FROM progress WHERE session = ?", found)
                    self._connection.execute("DELETE FROM session WHERE n = ?", found)

    def _forget_text(self, n: int) -> None:
        self._connection.execute(
            "DELETE FROM words WHERE rowid IN (SELECT row FROM passage WHERE session = ?)", (n,)
        )
        self._connection.execute("DELETE FROM passage WHERE session = ?", (n,))

    def known(self) -> list[str]:
        """What the sources that read the logs were, wherever it differs."""
        with self._using():
            found = self._connection.execute("SELECT DISTINCT known FROM session").fetchall()
        return [cast("str", one[0]) for one in found]

    def unread(self, good: Sequence[str], ids: Sequence[str] | None = None) -> list[Unread]:
        """Sessions whose log has to be read: all, or those among `ids`.

        Args:
            good: what sources may have read them.
            ids: where only these are asked about.
        """
        query = (
            f"SELECT id, size, {_SEEN}, offset, checkpoints FROM session LEFT JOIN progress ON session = n "
            f"WHERE status != 'unreadable' AND known NOT IN {_AMONG}"
        )
        values = [_json(good)]  # in the order of their making, so that newer passages come behind older ones
        if ids is not None:
            query += f" AND id IN {_AMONG}"
            values.append(_json(ids))
        with self._using():
            found = self._connection.execute(f"{query} ORDER BY created, id", values).fetchall()
        return [Unread(id_, size, seen, _progress(at, packed)) for id_, size, seen, at, packed in found]

    def take(self, by: str, readings: Sequence[tuple[Unread, Reading]]) -> None:
        """Take in what reading logs gave. Where another process was quicker, what it wrote stays.

        Args:
            by: names the sources that read them.
            readings: by what was to be read.
        """
        with self._writing():
            for unread, reading in readings:
                found = self._connection.execute(
                    f"SELECT n, label, depth, {_SEEN}, offset FROM session LEFT JOIN progress ON session = n WHERE id = ?",
                    (unread.id,),
                ).fetchone()
                if found is None:
                    continue
                n, label, depth, seen, offset = found
                if not reading.whole and (unread.progress is None or unread.progress.offset != offset):
                    continue
                self._take((n, label, depth), by if seen == unread.seen else "", reading)

    def _take(self, session: tuple[int, str, int], known: str, reading: Reading) -> None:
        n, label, depth = session
        if reading.whole:
            self._forget_text(n)
        facts = reading.facts
        # What a child was told is a text of its parent; who started it gave it a label.
        first = label or facts.question if depth else facts.question or label
        title = facts.title or cut_title(first)
        self._connection.execute(
            "UPDATE session SET known = :known, outcome = :outcome, title = :title, question = :question, method = :method, model = :model, "
            "corpora = :corpora, turns = :turns, calls = :calls, tokens = :tokens, cost = :cost, currency = :currency, cost_at_least = :cost_at_least, "
            "title_folded = :title_folded, corpora_folded = :corpora_folded, "
            "status = CASE WHEN resting = 'finished' AND :outcome != '' THEN :outcome ELSE resting END WHERE n = :n",
            {
                **msgspec.structs.asdict(facts),
                "n": n,
                "known": known,
                "title": title,
                "corpora": msgspec.json.encode(facts.corpora).decode(),
                "turns": bounded(facts.turns or 0),
                "calls": bounded(facts.calls or 0),
                "tokens": None if facts.tokens is None else bounded(facts.tokens),
                "title_folded": folded(title),
                "corpora_folded": folded("\n".join(facts.corpora)),
            },
        )
        self._connection.execute(
            "INSERT OR REPLACE INTO progress VALUES (?, ?, ?)",
            (n, reading.progress.offset, _packer.encode(tuple(reading.progress.checkpoints.values()))),
        )
        if not depth:
            self._add(n, Passage(place="title", text=title, key="title"))
            self._add(n, Passage(place="question", text=facts.question, key="question"))
        for passage in reading.passages:
            self._add(n, passage)

    def _add(self, n: int, passage: Passage) -> None:
        if passage.key:
            known = self._connection.execute(
                "SELECT row FROM passage WHERE session = ? AND place = ? AND key = ?",
                (n, passage.place, passage.key),
            ).fetchone()
            if known is not None:
                self._connection.execute("DELETE FROM words WHERE rowid = ?", known)
                self._connection.execute("DELETE FROM passage WHERE row = ?", known)
        text = indexed(passage.text)
        if not text.strip():
            return
        cursor = self._connection.execute(
            "INSERT INTO passage(session, place, key) VALUES (?, ?, ?)", (n, passage.place, passage.key)
        )
        spoken, paired = ("head", "head_pairs") if passage.place in _HEADS else ("body", "body_pairs")
        self._connection.execute(
            f"INSERT INTO words(rowid, {spoken}, {paired}) VALUES (?, ?, ?)",
            (cursor.lastrowid, text, "" if text.isascii() else pairs(text)),
        )

    # --- asking ---

    def rows(self, condition: str, values: Sequence[object], limit: int) -> list[Row]:
        """Sessions for which `condition` is true, newest first, the unreadable last."""
        with self._using():
            found = self._connection.execute(
                f"SELECT {COLUMNS} FROM session WHERE {condition} "
                "ORDER BY (status = 'unreadable'), created DESC, id DESC LIMIT ?",
                (*values, limit),
            ).fetchall()
        return [Row(*values) for values in found]

    def nth_newest(self, expression: str, before: int, count: int) -> int:
        """The row of passage number `count` of those before row `before` that match, newest first; 0 where fewer do."""
        with self._using():
            found = self._connection.execute(
                "SELECT rowid FROM words WHERE words MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT 1 OFFSET ?",
                (expression, before, count - 1),
            ).fetchone()
        return cast("int", found[0]) if found else 0

    def matches(self, expression: str, first: int, before: int, limit: int, offset: int) -> list[Match]:
        """Passages that match, of those from row `first` to before row `before`, best first."""
        with self._using():
            found = self._connection.execute(
                "SELECT row, session, place FROM (SELECT rowid AS found, "
                f"{_RANKING} AS score FROM words WHERE words MATCH ? AND rowid >= ? AND rowid < ? "
                "ORDER BY score, rowid DESC LIMIT ? OFFSET ?) JOIN passage ON row = found ORDER BY score, row DESC",
                (expression, first, before, limit, offset),
            ).fetchall()
        return [Match(*values) for values in found]

    def matching_sessions(self, expression: str) -> list[int]:
        """Every session with a passage that matches."""
        with self._using():
            found = self._connection.execute(
                "SELECT DISTINCT session FROM passage WHERE row IN (SELECT rowid FROM words WHERE words MATCH ?)",
                (expression,),
            ).fetchall()
        return [cast("int", one[0]) for one in found]

    def family(self, ns: Sequence[int]) -> dict[int, tuple[str, str | None, int]]:
        """Id, parent and depth of sessions by number."""
        with self._using():
            found = self._connection.execute(
                f"SELECT n, id, parent, depth FROM session WHERE n IN {_AMONG}", (_json(ns),)
            ).fetchall()
        return {n: (id_, parent, depth) for n, id_, parent, depth in found}

    def by_ids(self, ids: Sequence[str]) -> dict[str, Row]:
        """Sessions by id; those that are not there are absent."""
        with self._using():
            found = self._connection.execute(
                f"SELECT {COLUMNS} FROM session WHERE id IN {_AMONG}", (_json(ids),)
            ).fetchall()
        rows = [Row(*values) for values in found]
        return {row.id: row for row in rows}

    def marked(self, row: int, expression: str) -> str:
        """The text of a passage, with marks around the words that match."""
        with self._using():
            head, body = self._connection.execute(
                "SELECT highlight(words, 0, ?, ?), highlight(words, 1, ?, ?) FROM words WHERE words MATCH ? AND rowid = ?",
                (OPEN, CLOSE, OPEN, CLOSE, expression, row),
            ).fetchone()
        return cast("str", head or body)


def _json(values: Sequence[str] | Sequence[int]) -> str:
    return msgspec.json.encode(values).decode()


def _unusable(error: sqlite3.DatabaseError) -> IndexUnusable:
    return IndexUnusable(str(error), damaged=not isinstance(error, sqlite3.OperationalError))


_packer = msgspec.msgpack.Encoder()
_unpacker = msgspec.msgpack.Decoder(tuple[Checkpoint, ...])


def _progress(offset: int | None, packed: object) -> Progress | None:
    if offset is None:
        return None
    try:
        kept = _unpacker.decode(cast("bytes", packed))
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return Progress(offset, {one.key: one for one in kept})
