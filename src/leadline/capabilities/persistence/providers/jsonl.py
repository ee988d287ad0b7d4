"""Sessions as files: `<id>.jsonl` is the log, `<id>.lock` its lease, `<id>.damaged-<n>` what was moved out.

Written and synced: an append survives the death of the process when it returns; a power cut may take
what came after the last `sync`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

import anyio
from anyio import to_thread
from pydantic import BaseModel, ConfigDict

from leadline.capabilities.persistence.providers.lease import Lease, is_held
from leadline.capabilities.persistence.providers.listing import entry_of, head_line, read_header
from leadline.capabilities.persistence.providers.log_file import (
    LogFile,
    damaged_files,
    move_damage,
    open_log,
    publish,
)
from leadline.core.clock import Clock
from leadline.core.config import ConfigParser
from leadline.core.home import Home
from leadline.core.session.codec import (
    FORMAT,
    Header,
    Logged,
    Problem,
    decode_line,
    newer_format,
    valid_id,
)
from leadline.core.session.errors import (
    SessionExists,
    SessionFormatTooNew,
    SessionLocked,
    SessionNotFound,
    SessionUnreadable,
    SessionWriteFailed,
)
from leadline.core.session.events import DamageMoved, Event
from leadline.core.session.load import Loaded, Quarantined, load
from leadline.core.session.log import Session
from leadline.core.session.registry import EventTypes
from leadline.core.session.repair import repairs
from leadline.core.session.store import SessionEntry, SessionStore, first_lines
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin

_LOCK_TRIES = 5
_LOCK_PAUSE_S = 0.01
_READ_TRIES = 5


class JsonlSessions(SessionStore):
    """The default store: a directory of files."""

    def __init__(self, root: Path, *, clock: Clock, types: EventTypes) -> None:
        super().__init__()
        self._root = root
        self._clock = clock
        self._types = types
        self._open: set[Session] = set()

    async def create(self, header: Header, seed: Sequence[Logged] | None = None) -> Session:
        content, header, loaded = first_lines(header, seed, round(self._clock.now(), 6))
        path = self._path(header.id)
        lease = await to_thread.run_sync(self._publish, path, content)
        return self._opened(header, loaded, path, lease)

    def _publish(self, path: Path, content: bytes) -> Lease:
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SessionWriteFailed(
                str(self._root), error.strerror or str(error), "choose another directory"
            ) from error
        if path.exists():
            raise SessionExists(f"session {path.stem} is there already ({path}); choose another id")
        lease = Lease.acquire(self._lock(path), path.stem, self._clock.now())
        try:
            publish(path, content, path.with_name(f".{path.stem}.{secrets.token_hex(4)}.new"))
        except BaseException:
            lease.release()
            raise
        return lease

    async def open(self, session_id: str, *, repair: bool = True) -> Session:
        path = self._existing(session_id)
        await to_thread.run_sync(self._check_header, path)
        lease = await self._lease(path)
        try:
            session, extra = await to_thread.run_sync(self._load_to_write, path, lease)
        except BaseException:
            lease.release()
            raise
        try:
            session.append_all([*extra, *(repairs(session) if repair else ())])
        except BaseException:
            await session.close()
            raise
        return session

    async def _lease(self, path: Path) -> Lease:
        # Whoever only looks whether a lease is held has it for an instant: that is no reason to give up.
        for _ in range(_LOCK_TRIES - 1):
            try:
                return await to_thread.run_sync(Lease.acquire, self._lock(path), path.stem, self._clock.now())
            except SessionLocked:
                await anyio.sleep(_LOCK_PAUSE_S)
        return await to_thread.run_sync(Lease.acquire, self._lock(path), path.stem, self._clock.now())

    def _check_header(self, path: Path) -> None:
        """Refuse, before anything is touched, a log that this version may not write."""
        try:
            with open_log(path) as file:
                newer = newer_format(head_line(file.fileno())[0])
                header = read_header(file.fileno(), path.stem)
        except OSError as error:
            raise SessionUnreadable(
                f"session {path.stem} ({path}) cannot be read: {error.strerror}"
            ) from error
        if newer is not None:
            raise SessionFormatTooNew(path.stem, newer)
        if isinstance(header, str):
            raise SessionUnreadable(f"session {path.stem} ({path}) cannot be opened for writing: {header}")

    def _load_to_write(self, path: Path, lease: Lease) -> tuple[Session, list[Event]]:
        with open_log(path) as file:
            loaded = load(file)
        header = loaded.header
        if header is None:
            raise SessionUnreadable(f"session {path.stem} ({path}) lost its header while it was opened")
        obstacle = Session(header, loaded, None, types=self._types, clock=self._clock).obstacle
        if obstacle is not None:
            raise obstacle
        extra: list[Event] = []
        if loaded.end < loaded.size:
            extra.append(move_damage(path, loaded))
        self._tell_moved(path, loaded)
        return self._opened(header, loaded, path, lease), extra

    def _opened(self, header: Header, loaded: Loaded, path: Path, lease: Lease) -> Session:
        try:
            sink = LogFile(path, loaded.end, lease)
        except BaseException:
            lease.release()
            raise
        session = Session(header, loaded, sink, types=self._types, clock=self._clock, hooks=self.hooks)
        self._open = {one for one in self._open if one.writable}
        self._open.add(session)
        return session

    async def read(self, session_id: str) -> Session:
        path = self._existing(session_id)
        loaded = await to_thread.run_sync(self._load_to_read, path)
        header = loaded.header or Header(format=FORMAT, id=session_id, kind="unreadable", created=0.0)
        return Session(header, loaded, None, types=self._types, clock=self._clock)

    def _load_to_read(self, path: Path) -> Loaded:
        loaded = Loaded()
        for _ in range(_READ_TRIES):
            try:
                with open_log(path) as file:
                    loaded = load(file)
            except FileNotFoundError:
                raise self._missing(path.stem) from None
            except OSError as error:
                return Loaded(problems=[Problem(0, f"{path} cannot be read: {error.strerror or error}")])
            # A line that a live writer is in the middle of is whole a moment later.
            if loaded.end == loaded.size or not is_held(self._lock(path)):
                break
        self._tell_moved(path, loaded)
        return loaded

    def _tell_moved(self, path: Path, loaded: Loaded) -> None:
        """Tell of damage that was moved out before, and read what can be read of it."""
        for line in loaded.logged:
            if line.type == DamageMoved.TYPE and (moved := self._types.decode(line)):
                assert isinstance(moved, DamageMoved)
                reasons = "; ".join(moved.reasons) or "it could not be used"
                loaded.problems.append(
                    Problem(moved.first_line, f"{moved.bytes} bytes were moved to {moved.file}: {reasons}")
                )
        for beside in damaged_files(path):
            loaded.quarantined.extend(_readable(beside))

    async def list(self) -> list[SessionEntry]:
        return await to_thread.run_sync(self._list)

    def _list(self) -> list[SessionEntry]:
        entries = [
            entry_of(path, self._lock(path), self._types)
            for path in sorted(self._root.glob("*.jsonl"))
            if not path.name.startswith(".")
        ]
        return sorted(entries, key=lambda one: (one.status == "unreadable", one.created, one.id))

    async def delete(self, session_id: str) -> None:
        path = self._existing(session_id)
        lease = await self._lease(path)
        try:
            await to_thread.run_sync(self._remove, path)
        finally:
            lease.release()

    def _remove(self, path: Path) -> None:
        try:
            for beside in damaged_files(path):
                beside.unlink()
            path.unlink()
            self._lock(path).unlink(missing_ok=True)
        except FileNotFoundError:
            raise self._missing(path.stem) from None
        except OSError as error:
            raise SessionWriteFailed(
                str(path), error.strerror or str(error), "make its directory writable"
            ) from error

    async def close(self) -> None:
        """Close every session that is still open."""
        for session in tuple(self._open):
            await session.close()
        self._open.clear()

    def _path(self, session_id: str) -> Path:
        return self._root / f"{session_id}.jsonl"

    def _lock(self, path: Path) -> Path:
        return path.with_suffix(".lock")

    def _existing(self, session_id: str) -> Path:
        path = self._path(session_id)
        if not valid_id(session_id) or not os.path.lexists(path):
            raise self._missing(session_id)
        return path

    def _missing(self, session_id: str) -> SessionNotFound:
        return SessionNotFound(
            f"there is no session {session_id!r} in {self._root}; a run tells its id when it starts"
        )


def _readable(beside: Path) -> list[Quarantined]:
    try:
        lines = beside.read_bytes().split(b"\n")
    except OSError:
        return []
    found = [(number, decode_line(line)) for number, line in enumerate(lines, 1) if line]
    return [
        Quarantined(beside.name, number, "moved out of the log", event)
        for number, event in found
        if isinstance(event, Logged)
    ]


class JsonlConfig(BaseModel):
    """Configuration of the store of session files."""

    model_config = ConfigDict(extra="forbid")

    root: Path | None = None
    """Directory of the logs; without it `sessions` in the home directory."""


async def start(ctx: Context, root: Path | None) -> None:
    """Provide the store from `ctx`; its sessions are closed when the owner of `ctx` unloads."""
    store = JsonlSessions(root or ctx.get(Home).sessions, clock=ctx.get(Clock), types=ctx.get(EventTypes))
    store.hooks.notice = ctx.notice
    store.hooks.report = ctx.report
    ctx.defer("open sessions", store.close)
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
