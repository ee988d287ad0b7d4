"""What changes the rows of a session other than an append: each is a transaction, whole or not at all."""

from __future__ import annotations

import hashlib
import io
import os
import sqlite3
from collections.abc import Mapping
from typing import BinaryIO, NamedTuple

from leadline.capabilities.persistence.providers.sqlite_database import Database
from leadline.capabilities.persistence.providers.sqlite_listing import Row, find, resting
from leadline.capabilities.persistence.providers.sqlite_log import (
    LogReader,
    packed_parts,
    rows_in,
    spool,
    stretch,
)
from leadline.capabilities.persistence.providers.sqlite_writers import Writers, locked
from leadline.core.clock import Clock
from leadline.core.session.errors import SessionError, SessionExists, SessionNotFound, SessionUnreadable
from leadline.core.session.events import DamageMoved
from leadline.core.session.load import Loaded
from leadline.core.session.registry import EventTypes

_ROWS_AT_ONCE = 2000
_TOLD = 20


class Lease(NamedTuple):
    """The right to write a session, and the session as it was when the right was taken."""

    row: Row
    token: str
    epoch: int


class Changes:
    """Makes, takes, gives up, rewrites, packs and removes sessions. Works in the calling thread.

    Each of its methods raises SessionWriteFailed where the database cannot be written; nothing was changed then.
    """

    def __init__(self, database: Database, writers: Writers, clock: Clock) -> None:
        self._database = database
        self._writers = writers
        self._clock = clock

    def create(self, session_id: str, content: bytes) -> Lease:
        """A new session with the log `content`, and the right to write it.

        Raises:
            SessionExists: the id is taken.
        """
        token = self._writers.enter()

        def create(connection: sqlite3.Connection) -> int:
            self._writers.register(connection, self._clock.now())
            return self._insert(connection, session_id, io.BytesIO(content), len(content), token)

        number = self._database.write(create, len(content))
        return Lease(Row(number, session_id, len(content), self._clock.now(), b""), token, 1)

    def add(self, session_id: str, file: BinaryIO, beside: Mapping[str, bytes]) -> None:
        """As `create`, for a log in a file and a session that nobody writes, with what is to be kept beside it.

        Raises:
            SessionExists: the id is taken.
        """

        def add(connection: sqlite3.Connection) -> None:
            number = self._insert(connection, session_id, file, size, None)
            connection.executemany(
                "INSERT INTO beside (number, name, content) VALUES (?, ?, ?)",
                [(number, name, kept) for name, kept in beside.items()],
            )

        size = file.seek(0, os.SEEK_END)
        self._database.write(add, size)

    def _insert(
        self, connection: sqlite3.Connection, session_id: str, file: BinaryIO, size: int, writer: str | None
    ) -> int:
        now = self._clock.now()
        file.seek(0)
        try:
            added = connection.execute(
                "INSERT INTO sessions (id, size, modified, epoch, writer, taken, changes)"
                " VALUES (?, ?, ?, ?, ?, ?, 1)",
                (session_id, size, now, 1 if writer else 0, writer, now),
            )
        except sqlite3.IntegrityError:
            raise SessionExists(
                f"session {session_id} is there already (in {self._database.path}); choose another id"
            ) from None
        number = added.lastrowid or 0
        connection.executemany("INSERT INTO lines (at, line) VALUES (?, ?)", rows_in(number, file, size))
        _mark(connection)
        return number

    def take(self, session_id: str) -> Lease:
        """The right to write a session, for this process.

        Raises:
            SessionNotFound: there is none of that id.
            SessionLocked: someone has it.
        """
        token = self._writers.enter()

        def take(connection: sqlite3.Connection) -> Lease:
            row = find(connection, session_id)
            if row is None:
                raise missing(self._database, session_id)
            holder = row.holder(self._writers.rule(self._clock.now()))
            if holder is not None:
                raise locked(session_id, holder)
            self._writers.register(connection, self._clock.now())
            connection.execute(
                "UPDATE sessions SET epoch = epoch + 1, writer = ?, taken = ? WHERE number = ?",
                (token, self._clock.now(), row.number),
            )
            _mark(connection)
            return Lease(row, token, row.epoch + 1)

        return self._database.write(take)

    def release(self, number: int, token: str, epoch: int) -> None:
        """Give the right up. Where that cannot be written it ends with this process."""

        def release(connection: sqlite3.Connection) -> None:
            given = connection.execute(
                "UPDATE sessions SET writer = NULL WHERE number = ? AND writer = ? AND epoch = ?",
                (number, token, epoch),
            )
            if given.rowcount:
                _mark(connection)

        try:
            self._database.write(release)
        except SessionError:
            return

    def beat(self) -> None:
        """Say that this process is alive. What cannot be written is left: the next append tells why."""

        def beat(connection: sqlite3.Connection) -> None:
            self._writers.beat(connection, self._clock.now())

        try:
            self._database.write(beat)
        except SessionError:
            return

    def rewrite(self, row: Row, loaded: Loaded, beside: Mapping[str, bytes]) -> tuple[str, bytes] | None:
        """Make the log plain rows again, up to its last good line. What stands behind that is moved beside it.

        The name and the content of what was moved; None where nothing was.
        """
        name = _next_name(row.id, beside)
        with spool() as file:
            with self._database.reading() as connection:
                reader = LogReader(connection, row.number, row.size, archived=row.archived)
                for piece in reader.pieces():
                    file.write(piece)
            file.seek(loaded.end)
            bad = file.read()
            self._replace(row, file, loaded.end, (name, bad))
        return (name, bad) if bad else None

    def _replace(self, row: Row, file: BinaryIO, size: int, moved: tuple[str, bytes]) -> None:
        """Put the first `size` bytes of `file` in the place of the log, and what was moved out beside it."""

        def rewrite(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM lines WHERE at >= ? AND at < ?", stretch(row.number))
            connection.execute("DELETE FROM packed WHERE number = ?", (row.number,))
            file.seek(0)
            connection.executemany(
                "INSERT INTO lines (at, line) VALUES (?, ?)", rows_in(row.number, file, size)
            )
            if moved[1]:
                connection.execute(
                    "INSERT INTO beside (number, name, content) VALUES (?, ?, ?)", (row.number, *moved)
                )
            connection.execute(
                "UPDATE sessions SET size = ?, archived = 0, resting = '', changes = changes + 1"
                " WHERE number = ?",
                (size, row.number),
            )
            _mark(connection)

        self._database.write(rewrite, size)

    def pack(self, row: Row, types: EventTypes) -> None:
        """Compress the log; its first line stays.

        Raises:
            SessionUnreadable: something of the log is missing.
        """
        with self._database.reading() as connection:
            reader = LogReader(connection, row.number, row.size, archived=False)
            parts = [*packed_parts(reader.pieces())]
            status = resting(connection, row.number, types)
        if reader.problems:
            raise SessionUnreadable(
                f"session {row.id} cannot be archived: {reader.problems[0]}; open it once, so that this is told"
            )

        def pack(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM packed WHERE number = ?", (row.number,))
            connection.executemany(
                "INSERT INTO packed (number, part, content) VALUES (?, ?, ?)",
                [(row.number, part, content) for part, content in enumerate(parts)],
            )
            base, beyond = stretch(row.number)
            connection.execute("DELETE FROM lines WHERE at > ? AND at < ?", (base, beyond))
            connection.execute(
                "UPDATE sessions SET archived = 1, resting = ?, changes = changes + 1 WHERE number = ?",
                (status, row.number),
            )

        self._database.write(pack, sum(map(len, parts)))
        self._database.shrink()

    def remove(self, row: Row) -> None:
        """Remove the session; its pages go back to the file system."""

        def forget(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM sessions WHERE number = ?", (row.number,))
            connection.execute("DELETE FROM beside WHERE number = ?", (row.number,))
            connection.execute("DELETE FROM packed WHERE number = ?", (row.number,))
            connection.execute("DELETE FROM lines WHERE at = ?", (stretch(row.number)[0],))
            _mark(connection)

        def remove(connection: sqlite3.Connection) -> int:
            return connection.execute(
                "DELETE FROM lines WHERE at IN (SELECT at FROM lines WHERE at >= ? AND at < ? LIMIT ?)",
                (*stretch(row.number), _ROWS_AT_ONCE),
            ).rowcount

        self._database.write(forget)
        while self._database.write(remove) > 0:
            pass  # a piece at a time, so that others write in between
        self._database.shrink()


def damage_moved(name: str, content: bytes, loaded: Loaded) -> DamageMoved:
    """The event that tells of what was moved out of a log."""
    return DamageMoved(
        file=name,
        first_line=loaded.damaged_from_line,
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        reasons=tuple(str(one) for one in loaded.problems if one.line >= loaded.damaged_from_line)[:_TOLD],
    )


def missing(database: Database, session_id: str) -> SessionNotFound:
    """The error of an id that is not there."""
    return SessionNotFound(
        f"there is no session {session_id!r} in {database.path}; `leadline sessions list` shows what there is"
    )


def _mark(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE mark SET value = value + 1")


def _next_name(session_id: str, beside: Mapping[str, bytes]) -> str:
    numbers = [int(name.rpartition("-")[2]) for name in beside if name.rpartition("-")[2].isdecimal()]
    return f"{session_id}.damaged-{max(numbers, default=0) + 1}"
