"""Sessions as files: `<id>.jsonl` is the log, `<id>.lock` its lease, `<id>.damaged-<n>` what was moved out.

Written and synced: an append survives the death of the process when it returns; a power cut may take
what came after the last `sync`.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import anyio
from anyio import to_thread
from pydantic import BaseModel, ConfigDict

from leadline.capabilities.persistence.providers.lease import (
    WRITING,
    Lease,
    forget_dead,
    held_in,
    holder_of,
    is_held,
)
from leadline.capabilities.persistence.providers.listing import PLAIN, entry_of, id_of, writable_header
from leadline.capabilities.persistence.providers.log_file import (
    LogFile,
    damaged_files,
    drop,
    move_damage,
    open_log,
    publish,
    publish_file,
)
from leadline.capabilities.persistence.providers.moved import check_names, readable_lines, tell_moved
from leadline.capabilities.persistence.providers.outside import InFile, outside
from leadline.capabilities.persistence.providers.session_files import SessionFiles, new_file
from leadline.capabilities.persistence.providers.syncing import Syncing, sync_directory
from leadline.core.clock import Clock
from leadline.core.config import ConfigParser
from leadline.core.home import Home
from leadline.core.session.codec import (
    FORMAT,
    MAX_HEADER_BYTES,
    Header,
    Logged,
    Problem,
    valid_id,
)
from leadline.core.session.errors import (
    SessionExists,
    SessionLocked,
    SessionNotFound,
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

_LOCK_TRIES = 5
_LOCK_PAUSE_S = 0.01
_READ_TRIES = 5
_CHUNK = 1 << 20
_TICK_NS = 50_000_000
"""Two changes of a directory within this time may leave it with one time of change."""
_COARSE_NS = 2_100_000_000
"""The same where a file system keeps whole seconds only."""


class JsonlSessions(SessionStore):
    """The default store: a directory of files."""

    def __init__(self, root: Path, *, clock: Clock, types: EventTypes) -> None:
        super().__init__()
        self._root = root
        self._clock = clock
        self._types = types
        self._open: dict[Session, Lease] = {}
        self._syncing = Syncing()

    async def create(self, header: Header, seed: Sequence[Logged] | None = None) -> Session:
        content, header, loaded = first_lines(header, seed, round(self._clock.now(), 6))
        files = self._files(header.id)
        lease = await to_thread.run_sync(self._publish, files, content)
        return self._opened(header, loaded, files, lease)

    def _publish(self, files: SessionFiles, content: bytes) -> Lease:
        self._make_root()
        lease = self._new(files)
        try:
            publish(files.plain, content, files.temporary)
        except BaseException:
            lease.release()
            raise
        return lease

    def _new(self, files: SessionFiles) -> Lease:
        """The lease of a session that does not exist yet."""
        _refuse_taken(files)
        try:
            return Lease.acquire(files.lock, files.id, self._clock.now())
        except SessionLocked as error:
            raise SessionExists(f"session {files.id} is being made by somebody else: {error}") from error

    def _make_root(self) -> None:
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SessionWriteFailed(
                str(self._root), error.strerror or str(error), "choose another directory"
            ) from error

    async def open(self, session_id: str, *, repair: bool = True) -> Session:
        files = self._existing(session_id)
        await to_thread.run_sync(self._check_header, files)
        lease = await self._lease(files)
        try:
            session, extra = await to_thread.run_sync(self._load_to_write, files, lease)
        except BaseException:
            lease.release()
            raise
        try:
            session.append_all([*extra, *(repairs(session) if repair else ())])
        except BaseException:
            await session.close()
            raise
        return session

    async def _lease(self, files: SessionFiles) -> Lease:
        # Whoever only looks whether a lease is held has it for an instant: that is no reason to give up.
        for _ in range(_LOCK_TRIES - 1):
            try:
                return await to_thread.run_sync(Lease.acquire, files.lock, files.id, self._clock.now())
            except SessionLocked:
                await anyio.sleep(_LOCK_PAUSE_S)
        return await to_thread.run_sync(Lease.acquire, files.lock, files.id, self._clock.now())

    def _check_header(self, files: SessionFiles) -> None:
        """Refuse, before anything is touched, a log that this version may not write."""
        try:
            with files.log() as (file, _):
                line = file.readline(MAX_HEADER_BYTES)
        except OSError as error:
            raise SessionUnreadable(
                f"session {files.id} ({files.plain}) cannot be read: {error.strerror or error}"
            ) from error
        writable_header(line, files.id, f"session {files.id} ({files.plain}) cannot be opened for writing")

    def _load_to_write(self, files: SessionFiles, lease: Lease) -> tuple[Session, list[Event]]:
        damaged = files.restore()
        with open_log(files.plain) as file:
            loaded = load(file, InFile(file))
        header = loaded.header
        if header is None:
            raise SessionUnreadable(f"session {files.id} ({files.plain}) lost its header while it was opened")
        obstacle = Session(header, loaded, None, types=self._types, clock=self._clock).obstacle
        if obstacle is not None:
            raise obstacle
        extra: list[Event] = [damaged] if damaged else []
        if loaded.end < loaded.size:
            extra.append(move_damage(files.plain, loaded))
        self._tell_moved(files, loaded)
        return self._opened(header, loaded, files, lease), extra

    def _opened(self, header: Header, loaded: Loaded, files: SessionFiles, lease: Lease) -> Session:
        try:
            sink = LogFile(files.plain, loaded.end, lease, self._syncing)
        except BaseException:
            lease.release()
            raise
        session = Session(header, loaded, sink, types=self._types, clock=self._clock, hooks=self.hooks)
        self._open = {one: held for one, held in self._open.items() if one.writable}
        self._open[session] = lease
        return session

    async def beat(self) -> None:
        """Say for every open session, again and again until cancelled, that its writer is alive."""
        while True:
            # Paced by real time whatever clock is composed: it is for processes that know no other.
            await anyio.sleep(BEAT_S)
            for session, lease in tuple(self._open.items()):
                if session.writable:
                    lease.beat(self._clock.now())

    async def read(self, session_id: str) -> Session:
        files = self._existing(session_id)
        loaded = await to_thread.run_sync(self._load_to_read, files)
        header = loaded.header or Header(format=FORMAT, id=session_id, kind="unreadable", created=0.0)
        return Session(header, loaded, None, types=self._types, clock=self._clock)

    def _load_to_read(self, files: SessionFiles) -> Loaded:
        loaded = Loaded()
        for _ in range(_READ_TRIES):
            try:
                with files.log() as (file, lost):
                    loaded = load(file, outside(file, self._root))
            except FileNotFoundError:
                raise self._missing(files.id) from None
            except OSError as error:
                return Loaded(
                    problems=[Problem(0, f"{files.plain} cannot be read: {error.strerror or error}")]
                )
            loaded.problems.extend(Problem(0, one) for one in lost)
            # A line that a live writer is in the middle of is whole a moment later.
            if loaded.end == loaded.size or not is_held(files.lock):
                break
        self._tell_moved(files, loaded)
        return loaded

    def _tell_moved(self, files: SessionFiles, loaded: Loaded) -> None:
        """Tell of damage that was moved out before, and read what can be read of it."""
        tell_moved(loaded, self._types)
        for beside in damaged_files(files.plain):
            with suppress(OSError), open_log(beside) as file:
                loaded.quarantined.extend(readable_lines(beside.name, file, InFile(file)))

    async def list(self) -> list[SessionEntry]:
        return await to_thread.run_sync(self._list)

    def _list(self) -> list[SessionEntry]:
        unlistable = self._unlistable()
        if unlistable is not None:
            return [unlistable]
        entries = [self._entry(SessionFiles(self._root, session_id)) for session_id in self._stamps()]
        found = [one for one in entries if one is not None]
        return sorted(found, key=lambda one: (one.status == "unreadable", one.created, one.id))

    def _unlistable(self) -> SessionEntry | None:
        """What the list says where the directory itself cannot be read: that there is nothing, it cannot say."""
        try:
            os.scandir(self._root).close()
        except FileNotFoundError:
            return None
        except OSError as error:
            reason = f"{self._root} cannot be listed: {error.strerror or error}; make it a readable directory"
            return SessionEntry(id=self._root.name, status="unreadable", path=str(self._root), reason=reason)
        return None

    def _entry(self, files: SessionFiles) -> SessionEntry | None:
        path = files.present()
        return entry_of(path, files.lock, self._types, self._clock.now()) if path else None

    async def entry(self, session_id: str) -> SessionEntry:
        files = self._existing(session_id)
        found = await to_thread.run_sync(self._entry, files)
        if found is None:
            raise self._missing(session_id)
        return found

    async def stamps(self) -> dict[str, str]:
        return await to_thread.run_sync(self._stamps)

    def _stamps(self) -> dict[str, str]:
        plain: dict[str, str] = {}
        packed: dict[str, str] = {}
        try:
            with os.scandir(self._root) as found:
                for one in found:
                    name = one.name
                    session_id = id_of(name)
                    if session_id is None:
                        continue
                    stamps = plain if name.endswith(PLAIN) else packed
                    try:
                        stat = one.stat(follow_symlinks=False)
                    except OSError:
                        stamps[session_id] = ""
                        continue
                    stamps[session_id] = f"{stat.st_size}.{stat.st_mtime_ns}.{stat.st_ino}"
        except FileNotFoundError:
            return {}
        except OSError:
            return {self._root.name: ""}  # `list` tells why nothing else is listed
        return packed | plain

    async def raw(self, session_id: str) -> AsyncGenerator[bytes]:
        files = self._existing(session_id)
        try:
            with files.log() as (file, _):
                while chunk := await to_thread.run_sync(file.read, _CHUNK):
                    yield chunk
        except FileNotFoundError:
            raise self._missing(session_id) from None
        except OSError as error:
            raise SessionUnreadable(
                f"session {session_id} ({files.plain}) cannot be read: {error.strerror or error}"
            ) from error

    async def tail(self, session_id: str, start: int) -> AsyncGenerator[bytes]:
        files = self._existing(session_id)
        try:
            with files.log() as (file, lost):
                chunk = await to_thread.run_sync(_from, file, start)
                while chunk:
                    yield chunk
                    # A short piece is the last one: what a live writer adds behind it is for the next time.
                    chunk = await to_thread.run_sync(file.read, _CHUNK) if len(chunk) == _CHUNK else b""
                if lost:
                    raise SessionUnreadable(f"the archive of session {session_id} is damaged: {lost[0]}")
        except FileNotFoundError:
            raise self._missing(session_id) from None
        except OSError as error:
            raise SessionUnreadable(
                f"session {session_id} ({files.plain}) cannot be read: {error.strerror or error}"
            ) from error

    async def writers(self) -> dict[str, Holder]:
        return await to_thread.run_sync(self._writers)

    def _writers(self) -> dict[str, Holder]:
        now = self._clock.now()
        found: dict[str, Holder] = {}
        for session_id in filter(valid_id, held_in(self._root)):
            lock = self._files(session_id).lock
            holder = holder_of(lock, now)
            if holder is not None:
                found[session_id] = holder
            else:
                forget_dead(lock)
        return found

    async def mark(self) -> str | None:
        return await to_thread.run_sync(_mark, self._root)

    async def add_raw(
        self, chunks: AsyncIterable[bytes], beside: Mapping[str, bytes] | None = None
    ) -> SessionEntry:
        self._make_root()
        temporary = self._root / f".{secrets.token_hex(8)}.new"
        try:
            head = await self._receive(chunks, temporary)
            header = writable_header(head, None, "the log cannot be taken in")
            files = self._files(header.id)
            check_names(files.id, beside or {})
            lease = await to_thread.run_sync(self._new, files)
            try:
                await to_thread.run_sync(_publish_raw, files, temporary, beside or {})
            finally:
                lease.release()
        finally:
            drop(temporary)
        return await self.entry(header.id)

    async def _receive(self, chunks: AsyncIterable[bytes], into: Path) -> bytes:
        """Write `chunks` to the file `into`, synced; the first line."""
        head = b""
        try:
            with new_file(into) as file:
                async for chunk in chunks:
                    if len(head) < MAX_HEADER_BYTES:
                        head += chunk[:MAX_HEADER_BYTES]
                    await to_thread.run_sync(file.write, chunk)
                await to_thread.run_sync(_flushed, file)
        except OSError as error:
            raise SessionWriteFailed(
                str(into), error.strerror or str(error), "free space, then try again"
            ) from error
        line, end, _ = head[:MAX_HEADER_BYTES].partition(b"\n")
        return line + end

    async def archive(self, session_id: str) -> SessionEntry:
        files = self._existing(session_id)
        lease = await self._lease(files)
        try:
            await to_thread.run_sync(files.archive, self._types)
        finally:
            lease.release()
        return await self.entry(session_id)

    async def beside(self, session_id: str) -> dict[str, bytes]:
        files = self._existing(session_id)
        try:
            return await to_thread.run_sync(files.beside)
        except OSError as error:
            raise SessionUnreadable(
                f"what was moved out of session {session_id} cannot be read: {error.strerror or error}"
            ) from error

    async def delete(self, session_id: str) -> None:
        files = self._existing(session_id)
        lease = await self._lease(files)
        try:
            await to_thread.run_sync(files.remove)
        except FileNotFoundError:
            raise self._missing(session_id) from None
        except OSError as error:
            raise SessionWriteFailed(
                str(files.plain),
                error.strerror or str(error),
                "make its directory writable, or remove it yourself",
            ) from error
        finally:
            lease.release()

    async def close(self) -> None:
        """Close every session that is still open."""
        for session in tuple(self._open):
            await session.close()
        self._open.clear()

    def _files(self, session_id: str) -> SessionFiles:
        return SessionFiles(self._root, session_id)

    def _existing(self, session_id: str) -> SessionFiles:
        files = self._files(session_id)
        if not valid_id(session_id) or files.present() is None:
            raise self._missing(session_id)
        return files

    def _missing(self, session_id: str) -> SessionNotFound:
        return SessionNotFound(
            f"there is no session {session_id!r} in {self._root}; `leadline sessions list` shows what there is"
        )


def _refuse_taken(files: SessionFiles) -> None:
    there = files.present()
    if there is not None:
        raise SessionExists(f"session {files.id} is there already ({there}); choose another id")


def _from(file: BinaryIO, start: int) -> bytes:
    """The first piece from byte `start` on."""
    if file.seekable():
        file.seek(start)
        start = 0
    while start and (skipped := len(file.read(min(start, _CHUNK)))):
        start -= skipped
    return file.read(_CHUNK)


def _mark(root: Path) -> str | None:
    """Both directories as they are; None where one may change again without its time changing."""
    parts: list[str] = []
    for path in (root, root / WRITING):
        try:
            found = path.stat()
        except FileNotFoundError:
            parts.append("-")
            continue
        except OSError:
            return None
        whole_seconds = found.st_mtime_ns % 1_000_000_000 == 0
        # Compared with what the file system wrote, so it is the real time whatever clock is composed.
        if time.time_ns() - found.st_mtime_ns < (_COARSE_NS if whole_seconds else _TICK_NS):
            return None
        parts.append(f"{found.st_ino}.{found.st_mtime_ns}")
    return "/".join(parts)


def _publish_raw(files: SessionFiles, temporary: Path, beside: Mapping[str, bytes]) -> None:
    _refuse_taken(files)
    try:
        files.add_beside(beside)
        publish_file(files.plain, temporary)
        sync_directory(files.root)
    except OSError as error:
        raise SessionWriteFailed(
            str(files.plain), error.strerror or str(error), "free space, then try again"
        ) from error


def _flushed(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


class JsonlConfig(BaseModel):
    """Configuration of the store of session files."""

    model_config = ConfigDict(extra="forbid")

    root: Path | None = None
    """Directory of the logs; without it `sessions` in the home directory."""


async def start(ctx: Context, root: Path | None) -> None:
    """Provide the store from `ctx`; its sessions are closed when the owner of `ctx` unloads."""
    store = JsonlSessions(root or ctx.get(Home).sessions, clock=ctx.get(Clock), types=ctx.get(EventTypes))
    store.hooks.notice = ctx.notice
    store.hooks.heard = ctx.heard
    store.hooks.report = ctx.report
    ctx.defer("open sessions", store.close)
    ctx.spawn(store.beat, name="heartbeat of open sessions")
    ctx.provide(SessionStore, store)


async def _apply(ctx: Context, config: JsonlConfig) -> None:
    await start(ctx, config.root)


plugin: Plugin[JsonlConfig] = Plugin(
    "jsonl-sessions",
    _apply,
    config=ConfigParser(JsonlConfig),
    needs=(Home, Clock, EventTypes),
    provides=(SessionStore,),
)
