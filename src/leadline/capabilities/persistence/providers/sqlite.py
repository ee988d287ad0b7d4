"""Sessions in one SQLite database: the same lines as in log files, as rows.

Written and synced: an append is a transaction and survives the death of the process when it returns; a
power cut may take what came after the last `sync`, in any of the sessions. One `sync` serves every
session that waits for one.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import anyio
from anyio import to_thread
from pydantic import BaseModel, ConfigDict

from leadline.capabilities.persistence.providers.file_system import mounts
from leadline.capabilities.persistence.providers.listing import writable_header
from leadline.capabilities.persistence.providers.moved import check_names, readable_in, tell_moved
from leadline.capabilities.persistence.providers.outside import InSpool
from leadline.capabilities.persistence.providers.sqlite_changes import Changes, Lease, damage_moved, missing
from leadline.capabilities.persistence.providers.sqlite_database import Database, DatabaseUnusable
from leadline.capabilities.persistence.providers.sqlite_listing import (
    Row,
    entry_of,
    every,
    find,
    find_bare,
    ids,
    salvaged,
)
from leadline.capabilities.persistence.providers.sqlite_log import (
    LogReader,
    SqliteLog,
    spool,
)
from leadline.capabilities.persistence.providers.sqlite_writers import Writers
from leadline.core.clock import Clock
from leadline.core.config import ConfigParser
from leadline.core.home import Home
from leadline.core.session.codec import FORMAT, MAX_HEADER_BYTES, Header, Logged, Problem, valid_id
from leadline.core.session.errors import (
    SessionUnreadable,
    SessionWriteFailed,
)
from leadline.core.session.events import Event
from leadline.core.session.lease import BEAT_S, Holder
from leadline.core.session.load import Loaded, load
from leadline.core.session.log import Session
from leadline.core.session.registry import EventTypes
from leadline.core.session.repair import repairs
from leadline.core.session.store import SessionEntry, SessionStore, first_lines
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin

FILE = "sessions.sqlite"
"""Name of the database in the home directory."""

_CHUNK = 1 << 20


class SqliteSessions(SessionStore):
    """The store for those who want all sessions in one file."""

    def __init__(
        self, path: Path, *, clock: Clock, types: EventTypes, table: Callable[[], str] = mounts
    ) -> None:
        """`table` gives the table of mounts by which the journal of the database is chosen."""
        super().__init__()
        self._writers = Writers(path.with_name(path.name + "-writers"))
        self._database = Database(path, table, self._writers.others)
        self._changes = Changes(self._database, self._writers, clock)
        self._clock = clock
        self._types = types
        self._open: dict[int, tuple[SqliteLog, Session]] = {}

    @property
    def database(self) -> Database:
        """The database itself."""
        return self._database

    # writing

    async def create(self, header: Header, seed: Sequence[Logged] | None = None) -> Session:
        content, header, loaded = first_lines(header, seed, round(self._clock.now(), 6))
        lease = await to_thread.run_sync(self._changes.create, header.id, content)
        return self._opened(header, loaded, lease)

    async def open(self, session_id: str, *, repair: bool = True) -> Session:
        await to_thread.run_sync(self._check_header, session_id)
        lease = await to_thread.run_sync(self._changes.take, session_id)
        try:
            session, extra = await to_thread.run_sync(self._load_to_write, lease)
        except BaseException:
            await self._give_up(lease)
            raise
        try:
            session.append_all([*extra, *(repairs(session) if repair else ())])
        except BaseException:
            await session.close()
            raise
        return session

    def _check_header(self, session_id: str) -> None:
        """Refuse, before anything is touched, a log that this version may not write."""
        head = self._existing(session_id).head[:MAX_HEADER_BYTES]
        what = f"session {session_id} ({self._database.path}) cannot be opened for writing"
        writable_header(head, session_id, what)

    def _load_to_write(self, lease: Lease) -> tuple[Session, list[Event]]:
        row = lease.row
        with self._database.reading() as connection:
            reader, loaded = self._load(connection, row)
            beside = _beside(connection, row.number)
        if reader.damaged:
            raise SessionUnreadable(
                f"session {row.id} cannot be opened for writing: the database {self._database.path} is damaged; "
                "export the session, and import it into a new database"
            )
        header = loaded.header
        if header is None:
            raise SessionUnreadable(f"session {row.id} lost its header while it was opened")
        obstacle = Session(header, loaded, None, types=self._types, clock=self._clock).obstacle
        if obstacle is not None:
            raise obstacle
        extra: list[Event] = []
        if row.archived or reader.problems or loaded.end < loaded.size:
            moved = self._changes.rewrite(row, loaded, beside)
            if moved is not None:
                beside[moved[0]] = moved[1]
                extra.append(damage_moved(*moved, loaded))
        self._tell_moved(loaded, beside)
        return self._opened(header, loaded, lease), extra

    def _opened(self, header: Header, loaded: Loaded, lease: Lease) -> Session:
        number = lease.row.number
        held = lease.token, lease.epoch
        sink = SqliteLog(self._database, header.id, number, loaded.end, held, self._clock, self._closed)
        session = Session(header, loaded, sink, types=self._types, clock=self._clock, hooks=self.hooks)
        self._open[number] = (sink, session)
        return session

    def _closed(self, log: SqliteLog) -> None:
        held = self._open.get(log.number)
        if held is not None and held[0] is log:
            del self._open[log.number]
        self._changes.release(log.number, log.writer, log.epoch)

    async def _give_up(self, lease: Lease) -> None:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._changes.release, lease.row.number, lease.token, lease.epoch)

    # reading

    async def read(self, session_id: str) -> Session:
        loaded = await to_thread.run_sync(self._load_to_read, session_id)
        header = loaded.header or Header(format=FORMAT, id=session_id, kind="unreadable", created=0.0)
        return Session(header, loaded, None, types=self._types, clock=self._clock)

    def _load_to_read(self, session_id: str) -> Loaded:
        self._check_id(session_id)
        try:
            with self._database.reading() as connection:
                row = find(connection, session_id)
                if row is None:
                    raise missing(self._database, session_id)
                _, loaded = self._load(connection, row)
                beside = _beside(connection, row.number)
        except DatabaseUnusable as error:
            return self._load_what_is_left(session_id, error)
        self._tell_moved(loaded, beside)
        return loaded

    def _load(self, connection: sqlite3.Connection, row: Row) -> tuple[LogReader, Loaded]:
        reader = LogReader(connection, row.number, row.size, archived=row.archived)
        with reader.file() as file:
            loaded = load(file, InSpool(self._database.path.parent))
        loaded.problems.extend(Problem(0, one) for one in (*reader.problems, row.told) if one)
        return reader, loaded

    def _load_what_is_left(self, session_id: str, error: DatabaseUnusable) -> Loaded:
        """The log, as far as its own rows can be read, where the tables do not lead to it any more."""
        loaded = Loaded()
        for rows in (self._bare, self._salvaged):
            found = next((row for row in rows(session_id) if row.id == session_id), None)
            if found is not None:
                with suppress(DatabaseUnusable), self._database.reading() as connection:
                    _, loaded = self._load(connection, found)
                    break
        loaded.problems.append(Problem(0, str(error)))
        return loaded

    def _bare(self, session_id: str) -> list[Row]:
        with suppress(DatabaseUnusable), self._database.reading() as connection:
            found = find_bare(connection, session_id)
            return [found] if found else []
        return []

    def _salvaged(self, session_id: str = "") -> list[Row]:
        with suppress(DatabaseUnusable), self._database.reading() as connection:
            return salvaged(connection)
        return []

    def _tell_moved(self, loaded: Loaded, beside: Mapping[str, bytes]) -> None:
        tell_moved(loaded, self._types)
        for name, content in beside.items():
            loaded.quarantined.extend(readable_in(name, content))

    async def list(self) -> list[SessionEntry]:
        return await to_thread.run_sync(self._list)

    def _list(self) -> list[SessionEntry]:
        if not self._database.exists:
            return []
        alive = self._writers.rule(self._clock.now())
        try:
            with self._database.reading() as connection:
                entries = [self._entry_of(connection, row, alive) for row in every(connection)]
        except DatabaseUnusable as error:
            entries = self._list_what_is_left(error)
        return sorted(entries, key=lambda one: (one.status == "unreadable", one.created, one.id))

    def _list_what_is_left(self, error: DatabaseUnusable) -> list[SessionEntry]:
        """One entry for each session that is told of anywhere, and one for the database itself."""
        path = self._database.path
        told: dict[str, SessionEntry] = {}
        with suppress(DatabaseUnusable):
            with self._database.reading() as connection:
                names = ids(connection)
            told = {name: self._entry_left(name, error) for name in names}
        for row in self._salvaged():
            if row.id not in told:
                told[row.id] = self._lost(row.id, error)
        return [self._lost(path.name, error), *told.values()]

    def _entry_left(self, session_id: str, error: DatabaseUnusable) -> SessionEntry:
        with suppress(DatabaseUnusable), self._database.reading() as connection:
            row = find(connection, session_id)
            if row is not None:
                return self._entry_of(connection, row, self._writers.rule(self._clock.now()))
        return self._lost(session_id, error)

    def _lost(self, session_id: str, error: DatabaseUnusable) -> SessionEntry:
        return SessionEntry(
            id=session_id, status="unreadable", path=str(self._database.path), reason=error.reason
        )

    def _entry_of(
        self, connection: sqlite3.Connection, row: Row, alive: Callable[[str, Holder], bool]
    ) -> SessionEntry:
        return entry_of(connection, row, self._database.path, self._types, alive)

    async def entry(self, session_id: str) -> SessionEntry:
        return await to_thread.run_sync(self._entry, session_id)

    def _entry(self, session_id: str) -> SessionEntry:
        try:
            row = self._existing(session_id)
            with self._database.reading() as connection:
                return self._entry_of(connection, row, self._writers.rule(self._clock.now()))
        except DatabaseUnusable as error:
            return self._lost(session_id, error)

    async def stamps(self) -> dict[str, str]:
        return await to_thread.run_sync(self._stamps)

    def _stamps(self) -> dict[str, str]:
        if not self._database.exists:
            return {}
        try:
            with self._database.reading() as connection:
                rows = connection.execute("SELECT id, number, changes FROM sessions").fetchall()
        except DatabaseUnusable as error:
            return {one.id: "" for one in self._list_what_is_left(error)}
        return {str(session_id): f"{number}.{changes}" for session_id, number, changes in rows}

    async def writers(self) -> dict[str, Holder]:
        return await to_thread.run_sync(self._who_writes)

    def _who_writes(self) -> dict[str, Holder]:
        if not self._database.exists:
            return {}
        alive = self._writers.rule(self._clock.now())
        try:
            with self._database.reading() as connection:
                found = {row.id: row.holder(alive) for row in every(connection, held=True)}
        except DatabaseUnusable:
            return {}
        return {session_id: holder for session_id, holder in found.items() if holder is not None}

    async def mark(self) -> str | None:
        return await to_thread.run_sync(self._marked)

    def _marked(self) -> str | None:
        if not self._database.exists:
            return ""
        try:
            with self._database.reading() as connection:
                (value,) = connection.execute("SELECT value FROM mark").fetchone()
                return f"{self._database.identity}.{value}"
        except DatabaseUnusable:
            return None

    # logs as bytes

    def raw(self, session_id: str) -> AsyncGenerator[bytes]:
        return self.tail(session_id, 0)

    async def tail(self, session_id: str, start: int) -> AsyncGenerator[bytes]:
        # Copied first: whoever takes the pieces may be slow, and would hold up every writer.
        with spool() as file:
            await to_thread.run_sync(self._copy, session_id, start, file)
            while chunk := await to_thread.run_sync(file.read, _CHUNK):
                yield chunk

    def _copy(self, session_id: str, start: int, into: BinaryIO) -> None:
        row = self._existing(session_id)
        with self._database.reading() as connection:
            reader = LogReader(connection, row.number, row.size, archived=row.archived)
            for piece in reader.pieces(start):
                into.write(piece)
        into.seek(0)

    async def add_raw(
        self, chunks: AsyncIterable[bytes], beside: Mapping[str, bytes] | None = None
    ) -> SessionEntry:
        with spool() as file:
            try:
                async for chunk in chunks:
                    await to_thread.run_sync(file.write, chunk)
            except OSError as error:
                raise SessionWriteFailed(
                    tempfile.gettempdir(), error.strerror or str(error), "free space, then try again"
                ) from error
            file.seek(0)
            header = writable_header(file.readline(MAX_HEADER_BYTES), None, "the log cannot be taken in")
            check_names(header.id, beside or {})
            await to_thread.run_sync(self._changes.add, header.id, file, beside or {})
        await self._database.sync()
        return await self.entry(header.id)

    async def beside(self, session_id: str) -> dict[str, bytes]:
        return await to_thread.run_sync(self._kept_beside, session_id)

    def _kept_beside(self, session_id: str) -> dict[str, bytes]:
        row = self._existing(session_id)
        with self._database.reading() as connection:
            return _beside(connection, row.number)

    # putting away

    async def archive(self, session_id: str) -> SessionEntry:
        self._check_id(session_id)
        lease = await to_thread.run_sync(self._changes.take, session_id)
        try:
            if not lease.row.archived:
                await to_thread.run_sync(self._changes.pack, lease.row, self._types)
                await self._database.sync()
        finally:
            await self._give_up(lease)
        return await self.entry(session_id)

    async def delete(self, session_id: str) -> None:
        self._check_id(session_id)
        lease = await to_thread.run_sync(self._changes.take, session_id)
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._changes.remove, lease.row)

    # its life

    async def beat(self) -> None:
        """Say again and again, until cancelled, that this process is alive, while it has sessions open."""
        while True:
            # Paced by real time whatever clock is composed: it is for processes that know no other.
            await anyio.sleep(BEAT_S)
            if self._open:
                await to_thread.run_sync(self._changes.beat)

    async def close(self) -> None:
        """Close every session that is still open, and the database."""
        for _, session in tuple(self._open.values()):
            await session.close()
        self._open.clear()
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._leave)

    def _leave(self) -> None:
        self._writers.leave()
        self._database.close()

    def _check_id(self, session_id: str) -> None:
        if not valid_id(session_id) or not self._database.exists:
            raise missing(self._database, session_id)

    def _existing(self, session_id: str) -> Row:
        self._check_id(session_id)
        with self._database.reading() as connection:
            row = find(connection, session_id)
        if row is None:
            raise missing(self._database, session_id)
        return row


def _beside(connection: sqlite3.Connection, number: int) -> dict[str, bytes]:
    kept = connection.execute(
        "SELECT name, content FROM beside WHERE number = ? ORDER BY length(name), name", (number,)
    )
    return {str(name): content for name, content in kept if isinstance(content, bytes)}


class SqliteConfig(BaseModel):
    """Configuration of the store of sessions in a database."""

    model_config = ConfigDict(extra="forbid")

    path: Path | None = None
    """File of the database; without it `sessions.sqlite` in the home directory."""


async def start(ctx: Context, path: Path | None, table: Callable[[], str] = mounts) -> None:
    """Provide the store from `ctx`; its sessions are closed when the owner of `ctx` unloads.

    Args:
        ctx: whose the store is.
        path: file of the database; without it `sessions.sqlite` in the home directory.
        table: gives the table of mounts by which the journal is chosen.

    Raises:
        FileSystemUnsafe: a database cannot be kept safe where it is to lie.
    """
    place = (path or ctx.get(Home).path / FILE).expanduser().absolute()
    store = SqliteSessions(place, clock=ctx.get(Clock), types=ctx.get(EventTypes), table=table)
    store.database.check_place()
    store.hooks.notice = ctx.notice
    store.hooks.heard = ctx.heard
    store.hooks.report = ctx.report
    ctx.defer("open sessions", store.close)
    ctx.spawn(store.beat, name="heartbeat of open sessions")
    ctx.provide(SessionStore, store)


async def _apply(ctx: Context, config: SqliteConfig) -> None:
    await start(ctx, config.path)


plugin: Plugin[SqliteConfig] = Plugin(
    "sqlite-sessions",
    _apply,
    config=ConfigParser(SqliteConfig),
    needs=(Home, Clock, EventTypes),
    provides=(SessionStore,),
)
