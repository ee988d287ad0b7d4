"""The file of the database of sessions: connections to it, its journal, and when it is safe on disk.

With a write-ahead log a commit is one write, and survives the death of the process; `sync` makes all
commits so far survive a power cut with one system call for everybody who waits. With a rollback
journal each commit is synced by itself.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import anyio
from anyio import to_thread

from leadline.capabilities.persistence.providers.file_system import Journal, journal_on, mounts
from leadline.capabilities.persistence.providers.sqlite_schema import (
    VERSION,
    SchemaUnknown,
    migrate,
    version_of,
)
from leadline.capabilities.persistence.providers.sqlite_wal import commits, keep_copy
from leadline.capabilities.persistence.providers.syncing import sync_place
from leadline.core.session.errors import SessionUnreadable, SessionWriteFailed, StaleLease

T = TypeVar("T")

BUSY_S: dict[Journal, float] = {"wal": 5.0, "rollback": 30.0}
"""Seconds to wait for other processes that write; a write takes far less than a millisecond, or some syncs."""

_TRIES, _PAUSE_S = 200, 0.025
_CHECKPOINT_BYTES = 4 << 20
"""Bytes of log after which a sync also moves them from the write-ahead log to the tables."""

_CHUNK = 1 << 20

_BACKSTOP_PAGES = 16_384
"""Pages of write-ahead log (64 MiB) at which a commit moves them itself, when nobody ever syncs."""

_PAGES_AT_ONCE = 1000

ENGINE_ERRORS = (sqlite3.Error, UnicodeError)
"""What the engine raises; the second where a damaged name stands in its message."""

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""The last is an error in a statement, which, as the statements are right, means that the tables are not."""

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_CAUSES = {
    sqlite3.SQLITE_FULL: "no space left on the disk",
    sqlite3.SQLITE_BUSY: "another process keeps it busy",
    sqlite3.SQLITE_LOCKED: "another task keeps it busy",
    sqlite3.SQLITE_READONLY: "it may not be written",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_PERM: "access is not permitted",
    sqlite3.SQLITE_IOERR: "the disk failed",
}
_RETRY = "free space or mend the disk, then try again; nothing of it was kept"
_RESCUE = (
    "what can be read of it still is: export its sessions, move the file away, and import them into a new one"
)


class DatabaseUnusable(SessionUnreadable):
    """The database cannot be read or written now: it is damaged, of a later version, or out of reach.

    Attributes: reason (what is wrong and what to do, without the path), damaged.
    """

    def __init__(self, path: Path, reason: str, *, damaged: bool = False) -> None:
        super().__init__(f"the database of sessions {path} cannot be used: {reason}")
        self.reason = reason
        self.damaged = damaged


class Database:
    """One database file, opened when it is first needed."""

    def __init__(
        self,
        path: Path,
        table: Callable[[], str] = mounts,
        shared: Callable[[], bool] = lambda: False,
    ) -> None:
        """`table` gives the table of mounts by which the journal is chosen; `shared` tells whether somebody else writes."""
        self.path = path
        self._table = table
        self._shared = shared
        self._journal: Journal | None = None
        self._read_only = False
        self._preparing = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._writer: sqlite3.Connection | None = None
        self._writing = threading.Lock()
        self._identity: tuple[int, int] | None = None
        self._syncing = anyio.Lock()
        self._commits = 0
        self._synced = 0
        self._unmoved = 0
        self._directory_synced = False
        self._doubtful = False

    def check_place(self) -> Journal:
        """The journal with which the database is safe where it is to lie. Touches nothing.

        Raises:
            FileSystemUnsafe: there is none.
        """
        return journal_on(self.path, self._table())

    @property
    def exists(self) -> bool:
        """Whether the file is there."""
        return os.path.lexists(self.path)

    @property
    def identity(self) -> str:
        """Which file it is; another one under the same path has another identity."""
        return "" if self._identity is None else f"{self._identity[0]:x}.{self._identity[1]:x}"

    # connections

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """A connection for one thread, which sees one state of the database while the block runs.

        Raises:
            DatabaseUnusable: there is none to be had, or what it read is damaged.
        """
        connection = self._taken()
        try:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")
        except ENGINE_ERRORS as error:
            connection.close()
            raise unusable(self.path, error) from error
        except BaseException:
            self._idle.append(connection)
            raise
        self._idle.append(connection)

    def write(self, work: Callable[[sqlite3.Connection], T], size: int = 0) -> T:
        """Do `work` in a transaction: when this returns, it survives the death of the process.

        `size` is how many bytes it adds. Waits for other processes, at most `BUSY_S`.

        Raises:
            SessionWriteFailed: it could not be written; nothing of it was kept.
            StaleLease: the file was replaced by another.
            as `work`; nothing of it was kept.
        """
        with self._writing:
            try:
                connection = self._writer = self._writer or self._taken()
                self._check_identity()
                connection.execute("BEGIN IMMEDIATE")
                result = work(connection)
                connection.execute("COMMIT")
            except DatabaseUnusable as error:
                raise SessionWriteFailed(str(self.path), error.reason, "nothing was written") from error
            except ENGINE_ERRORS as error:
                self._roll_back()
                raise refused(self.path, error) from error
            except BaseException:
                self._roll_back()
                raise
            self._commits += 1
            self._unmoved += size
        return result

    def _roll_back(self) -> None:
        connection = self._writer
        if connection is None:
            return
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            # A connection that cannot undo is given up: closing it undoes.
            self._writer = None
            with suppress(sqlite3.Error):
                connection.close()

    def _check_identity(self) -> None:
        if self._replaced():
            raise StaleLease(
                f"the database of sessions {self.path} was removed or replaced while it was open; "
                "close the session, and open it again to go on from what is there now"
            )

    def _replaced(self) -> bool:
        try:
            found = self.path.stat()
        except OSError:
            return True
        return (found.st_dev, found.st_ino) != self._identity

    def _taken(self) -> sqlite3.Connection:
        with self._preparing:
            if self._journal is not None and self._writer is None and self._replaced():
                self._forget()
            if self._journal is None:
                return self._prepared()
        with suppress(IndexError):
            return self._idle.pop()
        return self._connected(self._journal)

    def _forget(self) -> None:
        """Close what is idle, and begin anew with the file that is there when it is next needed."""
        connections, self._idle = self._idle, []
        for connection in connections:
            with suppress(sqlite3.Error):
                connection.close()
        self._journal = None

    def _prepared(self) -> sqlite3.Connection:
        """The first connection: makes the file where it is missing, and brings it up to date."""
        journal = self.check_place()
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.exists and not self.path.is_file():
                raise DatabaseUnusable(self.path, "it is no regular file; choose another path")
            self._read_only = not os.access(self.path.parent, os.W_OK)
        except OSError as error:
            raise DatabaseUnusable(
                self.path, f"{error.strerror or error}; choose another directory"
            ) from error
        log = self._beside("-wal")
        ends = [] if self._read_only or self._shared() else commits(log)
        connection = self._connected_at_last(journal)
        found = self.path.stat()
        self._identity = (found.st_dev, found.st_ino)
        self._journal = self._mode_of(connection)
        if ends and self._journal == "wal":
            try:
                self._check_log(connection, log, ends)
            except (OSError, *ENGINE_ERRORS):
                pass  # it is read all the same; what cannot be told is told by the chains of the sessions
        return connection

    def _check_log(self, connection: sqlite3.Connection, log: Path, ends: list[int]) -> None:
        """Keep a copy of a damaged write-ahead log, and tell of it with the sessions that it may have cost something."""
        _, sound, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        lost = [number for number in ends if number > sound]
        if len(lost) < 2:
            return
        kept = keep_copy(log, self.path)
        connection.execute(
            "UPDATE sessions SET told = ?, changes = changes + 1"
            " WHERE writer IS NOT NULL OR modified = (SELECT max(modified) FROM sessions)",
            (
                f"the last {len(lost)} changes of the database were lost, as its write-ahead log was damaged; "
                f"they may have been to this session; a copy of it is {kept}",
            ),
        )

    def _connected_at_last(self, journal: Journal) -> sqlite3.Connection:
        # Of two that make the database at once the engine refuses one without waiting.
        for _ in range(_TRIES - 1):
            try:
                return self._connected(journal)
            except DatabaseUnusable as error:
                cause = error.__cause__
                if not isinstance(cause, sqlite3.Error) or _code(cause) not in _BUSY:
                    raise
                time.sleep(_PAUSE_S)
        return self._connected(journal)

    def _connected(self, journal: Journal) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = None
        try:
            connection = self._opened(BUSY_S[self._journal or journal])
            connection.text_factory = _text
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            if self._read_only:
                self._check_version(connection)
                return connection
            if self._journal is None:
                self._set_up(connection, journal)
            wal = (self._journal or self._mode_of(connection)) == "wal"
            connection.execute(f"PRAGMA synchronous = {'NORMAL' if wal else 'EXTRA'}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_BACKSTOP_PAGES}")
            connection.execute("PRAGMA journal_size_limit = 67108864")
            connection.execute("PRAGMA secure_delete = FAST")
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, SchemaUnknown):
                raise DatabaseUnusable(self.path, str(error)) from error
            if isinstance(error, ENGINE_ERRORS):
                raise unusable(self.path, error) from error
            raise
        return connection

    def _opened(self, timeout: float) -> sqlite3.Connection:
        if not self._read_only:
            connection = sqlite3.connect(
                self.path, timeout=timeout, isolation_level=None, check_same_thread=False
            )
            if self.path.stat().st_mode & 0o077 and not self.path.stat().st_size:
                self.path.chmod(0o600)
            return connection
        log = self._beside("-wal")
        if log.exists() and log.stat().st_size:
            raise DatabaseUnusable(
                self.path,
                "its directory may not be written, and it was not closed; make the directory writable",
            )
        return sqlite3.connect(
            f"file:{quote(str(self.path))}?immutable=1",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )

    def _check_version(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            raise SchemaUnknown(
                f"it has schema {version}, not {VERSION}, and may not be written to bring it up to date"
            )

    def _set_up(self, connection: sqlite3.Connection, journal: Journal) -> None:
        if journal == "rollback":
            # A database that came from a local disk may still have a write-ahead log. With the exclusive lock
            # the engine reads that without shared memory, which is what is not safe here. Nothing else is done
            # under it: whoever holds on to a lock while it waits for another stops everybody.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        version = version_of(connection)  # before anything is touched
        if journal == "rollback":
            if self._mode_of(connection) == "wal":
                connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("PRAGMA locking_mode = NORMAL")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if version == 0:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        if journal == "wal":
            connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection)

    def _mode_of(self, connection: sqlite3.Connection) -> Journal:
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        return "wal" if mode == "wal" else "rollback"

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(self.path.name + ending)

    # syncs

    async def sync(self) -> None:
        """Return when everything that this process committed survives a power cut.

        Raises:
            SessionWriteFailed: the disk does not promise it.
        """
        wanted = self._commits
        while self._synced < wanted:
            async with self._syncing:
                if self._synced >= wanted:
                    return  # one sync serves everybody who waited for it
                reached = self._commits
                await to_thread.run_sync(self._sync)
                self._synced = reached

    def _sync(self) -> None:
        if self._writer is None:
            return
        try:
            # With a rollback journal each commit was synced already; the way to the file may not have been.
            if self._journal == "wal":
                self._sync_log()
            if not self._directory_synced:
                sync_place(self.path.parent)
                self._directory_synced = True
        except OSError as error:
            self._doubtful = True
            raise SessionWriteFailed(
                str(self.path),
                f"the disk does not promise to keep it: {error.strerror or error}",
                "check the disk, then try again",
            ) from error
        if self._unmoved >= _CHECKPOINT_BYTES:
            self._unmoved = 0
            self.checkpoint("PASSIVE")

    def _sync_log(self) -> None:
        if self._doubtful:
            self._write_again()
            return
        fd = os.open(self._beside("-wal"), os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fdatasync(fd)
        finally:
            os.close(fd)

    def _write_again(self) -> None:
        """Write the log over itself, byte for byte, and sync that.

        After a sync that failed, the system may have forgotten which bytes it still owes to the disk, and a second
        sync would succeed without them. To move them to the tables would not do: what the disk does have of the log
        would then be taken for newer than the tables.
        """
        with self._writing:
            connection = self._writer
            if connection is None:
                return
            try:
                connection.execute("BEGIN IMMEDIATE")  # so that nobody writes it meanwhile
                try:
                    _write_over(self._beside("-wal"))
                finally:
                    connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise OSError(
                    errno.EIO, f"after a failed sync the log could not be written again: {error}"
                ) from error
        self._doubtful = False

    def checkpoint(self, how: str) -> bool:
        """Move what is in the write-ahead log to the tables; whether all of it was."""
        try:
            connection = self._taken()
        except DatabaseUnusable:
            return False
        try:
            busy, logged, moved = connection.execute(f"PRAGMA wal_checkpoint({how})").fetchone()
        except sqlite3.Error:
            self._doubtful = True  # it may have been the sync of the log that failed
            connection.close()
            return False
        self._idle.append(connection)
        return not busy and logged == moved

    def shrink(self) -> None:
        """Give pages that are no longer used back to the file system. What fails is left for the next time."""
        with suppress(sqlite3.Error):
            while self._shrink_a_bit():
                pass  # others write in between
        self.checkpoint("PASSIVE")

    def _shrink_a_bit(self) -> bool:
        """Whether there is more of it."""
        with self._writing:
            connection = self._writer
            if connection is None:
                return False
            (before,) = connection.execute("PRAGMA freelist_count").fetchone()
            connection.execute(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})").fetchall()
            (after,) = connection.execute("PRAGMA freelist_count").fetchone()
        return 0 < after < before

    def close(self) -> None:
        """Close every connection. The last process to do so leaves one file behind."""
        with self._writing, self._preparing:
            if self._writer is not None:
                self._idle.append(self._writer)
                self._writer = None
            self._forget()


def unusable(path: Path, error: Exception) -> DatabaseUnusable:
    """What an error of the engine while reading means to a reader."""
    if is_damage(error):
        return DatabaseUnusable(path, f"it is damaged ({error}); {_RESCUE}", damaged=True)
    return DatabaseUnusable(path, f"{_cause(error)}; check the disk and its permissions")


def _write_over(path: Path) -> None:
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        at = 0
        while chunk := os.pread(fd, _CHUNK, at):
            at += os.pwrite(fd, chunk, at)
        os.fdatasync(fd)
    finally:
        os.close(fd)


def refused(path: Path, error: Exception) -> SessionWriteFailed:
    """What an error of the engine while writing means to a writer."""
    if is_damage(error):
        return SessionWriteFailed(str(path), f"the database is damaged ({error})", _RESCUE)
    return SessionWriteFailed(str(path), _cause(error), _RETRY)


def is_damage(error: Exception) -> bool:
    """Whether the file itself is broken."""
    return _code(error) in _DAMAGED or isinstance(error, UnicodeError)


def _code(error: Exception) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _cause(error: Exception) -> str:
    told = _CAUSES.get(_code(error))
    return f"{told} ({error})" if told else str(error)


def _text(stored: bytes) -> str:
    """Text as it stands in a database that may be damaged."""
    return stored.decode("utf-8", "replace")
