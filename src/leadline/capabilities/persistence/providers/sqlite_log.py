"""The log of one session in a database: its rows as a file, and the sink that adds to them."""

from __future__ import annotations

import io
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, cast

from anyio import to_thread

from leadline.capabilities.persistence.providers.sqlite_database import ENGINE_ERRORS, Database, is_damage
from leadline.capabilities.persistence.providers.sqlite_schema import OFFSET_BITS
from leadline.core.clock import Clock
from leadline.core.session.errors import StaleLease

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BATCH = 256
_BUFFER = 1 << 18
_ROW_BYTES = 1 << 24
"""A longer line, which only a damaged log has, is kept in several rows."""
_PART_BYTES = 1 << 20
_IN_MEMORY = 8 << 20
_LEVEL = 6
_STRETCH = "FROM lines WHERE at >= ? AND at < ?"


def stretch(number: int) -> tuple[int, int]:
    """Where the lines of session `number` stand: from, and up to."""
    return number << OFFSET_BITS, (number + 1) << OFFSET_BITS


def rows_of(number: int, offset: int, content: bytes) -> list[tuple[int, bytes]]:
    """The rows that keep `content` from byte `offset` of the log on: one a line."""
    rows: list[tuple[int, bytes]] = []
    at, start = stretch(number)[0] + offset, 0
    while start < len(content):
        end = content.find(b"\n", start, start + _ROW_BYTES) + 1
        if end == 0:
            end = min(len(content), start + _ROW_BYTES)
        rows.append((at + start, content[start:end]))
        start = end
    return rows


def rows_in(number: int, file: BinaryIO, size: int) -> Iterator[tuple[int, bytes]]:
    """The rows that keep the next `size` bytes of `file` as the log from its start on: one a line."""
    at, rest = stretch(number)[0], size
    while rest and (line := file.readline(min(rest, _ROW_BYTES))):
        yield at, line
        at, rest = at + len(line), rest - len(line)


@contextmanager
def spool() -> Generator[BinaryIO]:
    """A file for a log that is on its way; on disk only where it is large."""
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        yield cast("BinaryIO", file)


class LogReader:
    """The bytes of one log, read once from its start; what is missing is passed over and told."""

    def __init__(self, connection: sqlite3.Connection, number: int, size: int, *, archived: bool) -> None:
        """`size` is how long the log has to be; `archived`, whether it is compressed."""
        self._connection = connection
        self._number = number
        self._size = size
        self._archived = archived
        self.problems: list[str] = []
        """What could not be read, as far as it was tried."""
        self.damaged = False
        """Whether the database itself is broken where this log lies."""

    def file(self) -> BinaryIO:
        """The log as a file, to be read from its start."""
        return cast("BinaryIO", io.BufferedReader(_Pieces(self.pieces()), _BUFFER))

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """The log from byte `start` on, in pieces."""
        skipped = start
        if start and not self._archived:
            base, _ = stretch(self._number)
            (first,) = self._connection.execute(
                "SELECT max(at) FROM lines WHERE at >= ? AND at <= ?", (base, base + start)
            ).fetchone()
            skipped = start - (int(first) - base if isinstance(first, int) else 0)
        for piece in self._unpacked() if self._archived else self._joined(start - skipped):
            yield piece[skipped:]
            skipped = max(0, skipped - len(piece))

    def _joined(self, start: int) -> Iterator[bytes]:
        base, beyond = stretch(self._number)
        reached = base + start
        for rows in self._batches(reached, beyond):
            lines: list[bytes] = []
            for at, stored in rows:
                line = stored if isinstance(stored, bytes) else _bytes(stored)
                if at != reached:
                    self._tell_gap(reached - base, at - base)
                reached = at + len(line)
                lines.append(line)
            yield b"".join(lines)
        if reached - base != self._size:
            self._tell_gap(reached - base, self._size)

    def _tell_gap(self, reached: int, found: int) -> None:
        if found > reached:
            self.problems.append(f"bytes {reached} to {found} of the log are missing in the database")
        else:
            self.problems.append(
                f"the database has {reached - found} bytes of the log twice, or more than were written, "
                f"before byte {reached}"
            )

    def _batches(self, base: int, beyond: int) -> Iterator[list[tuple[int, object]]]:
        last = base - 1
        try:
            rows = self._connection.execute(f"SELECT at, line {_STRETCH} ORDER BY at", (base, beyond))
            while batch := rows.fetchmany(_BATCH):
                last = batch[-1][0]
                yield batch
        except ENGINE_ERRORS as error:
            if not is_damage(error):
                raise
            self.damaged = True
            self.problems.append(f"the database is damaged: {error}")
            yield from self._around(last, beyond)

    def _around(self, last: int, beyond: int) -> Iterator[list[tuple[int, object]]]:
        """What stands on either side of a page that cannot be read, as far as that is reached."""
        before = [*self._steps("at > ? AND at < ? ORDER BY at", last, beyond)]
        yield before
        last = before[-1][0] if before else last
        behind = [*self._steps("at < ?2 AND at > ?1 ORDER BY at DESC", last, beyond)]
        yield behind[::-1]

    def _steps(self, which: str, last: int, beyond: int) -> Iterator[tuple[int, object]]:
        # One statement a row: in one for all, an error takes the row before it along.
        question = f"SELECT at, line FROM lines WHERE {which} LIMIT 1"
        try:
            while row := self._connection.execute(question, (last, beyond)).fetchone():
                yield row
                last, beyond = (last, row[0]) if "DESC" in which else (row[0], beyond)
        except ENGINE_ERRORS as error:
            if not is_damage(error):
                raise

    def _unpacked(self) -> Iterator[bytes]:
        unpacker = zlib.decompressobj()
        try:
            parts = self._connection.execute(
                "SELECT content FROM packed WHERE number = ? ORDER BY part", (self._number,)
            )
            for (content,) in parts:
                held = _bytes(content)
                while held:
                    yield unpacker.decompress(held, _PART_BYTES)
                    held = unpacker.unconsumed_tail
            yield unpacker.flush()
        except (*ENGINE_ERRORS, zlib.error) as error:
            if not isinstance(error, zlib.error) and not is_damage(error):
                raise
            self.damaged = not isinstance(error, zlib.error)
            self.problems.append(f"the archive is damaged: {error}")
            return
        if not unpacker.eof:
            self.problems.append("the archive ends too early")


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file that is read from its start."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._out = memoryview(b"")

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill `buffer` as far as the pieces reach; 0 at the end."""
        room = memoryview(buffer).cast("B")
        filled = 0
        while filled < len(room):
            if not self._out:
                piece = next((one for one in self._pieces if one), None)
                if piece is None:
                    break
                self._out = memoryview(piece)
            taken = min(len(room) - filled, len(self._out))
            room[filled : filled + taken] = self._out[:taken]
            self._out = self._out[taken:]
            filled += taken
        return filled


def _bytes(stored: object) -> bytes:
    """What a column holds, which in a damaged database may be of another type."""
    if isinstance(stored, bytes):
        return stored
    return stored.encode("utf-8", "replace") if isinstance(stored, str) else b""


def packed_parts(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """`pieces` compressed, in parts of about a megabyte."""
    packer = zlib.compressobj(_LEVEL)
    held = bytearray()
    for piece in pieces:
        held += packer.compress(piece)
        if len(held) >= _PART_BYTES:
            yield bytes(held)
            held.clear()
    yield bytes(held) + packer.flush()


class SqliteLog:
    """Adds lines behind the last one of a session; holds the lease while it is open."""

    def __init__(
        self,
        database: Database,
        session_id: str,
        number: int,
        size: int,
        held: tuple[str, int],
        clock: Clock,
        release: Callable[[SqliteLog], None],
    ) -> None:
        """`held` is the lease: the token of the writer, and the epoch."""
        self._database = database
        self._session_id = session_id
        self.number = number
        self._size = size
        self.writer, self.epoch = held
        self._clock = clock
        self._release = release
        self._closed = False

    @property
    def where(self) -> str:
        """The path of the database, and the session."""
        return f"{self._database.path}, session {self._session_id}"

    def write(self, lines: bytes) -> None:
        """As `Sink.write`: one transaction."""

        def add(connection: sqlite3.Connection) -> None:
            grown = connection.execute(
                "UPDATE sessions SET size = ?, modified = ?, changes = changes + 1"
                " WHERE number = ? AND epoch = ? AND writer = ? AND size = ?",
                (size, now, self.number, self.epoch, self.writer, self._size),
            )
            if grown.rowcount != 1:
                raise self._stale(connection)
            connection.executemany("INSERT INTO lines (at, line) VALUES (?, ?)", rows)

        size, now = self._size + len(lines), self._clock.now()
        rows = rows_of(self.number, self._size, lines)
        self._database.write(add, len(lines))
        self._size = size

    def _stale(self, connection: sqlite3.Connection) -> StaleLease:
        row = connection.execute(
            "SELECT epoch, writer, size FROM sessions WHERE number = ?", (self.number,)
        ).fetchone()
        if row is None:
            how = "was deleted"
        elif row[0] != self.epoch or row[1] != self.writer:
            how = f"was taken over (epoch {row[0]}; this is epoch {self.epoch})"
        else:
            how = "was changed by someone else"
        return StaleLease(
            f"session {self._session_id} {how}; close it and open it again to go on from what is logged now"
        )

    async def sync(self) -> None:
        """As `Sink.sync`: one system call for all sessions that wait."""
        if not self._closed:
            await self._database.sync()

    async def close(self) -> None:
        """As `Sink.close`."""
        if not self._closed:
            self._closed = True
            await to_thread.run_sync(self._release, self)
