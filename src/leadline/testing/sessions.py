"""Sessions in memory, for tests that need a log and no disk, and a store of them."""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Iterator, Mapping, Sequence

from leadline.capabilities.persistence.providers.moved import check_names, readable_in, tell_moved
from leadline.core.clock import Clock
from leadline.core.session.blobs import Blobs, StoredBlob, is_hash, sha256_hex
from leadline.core.session.codec import Header, Logged, encode_header, valid_id
from leadline.core.session.errors import (
    BlobDamaged,
    BlobMissing,
    SessionExists,
    SessionFormatTooNew,
    SessionLocked,
    SessionNotFound,
    SessionUnreadable,
    SessionWriteFailed,
)
from leadline.core.session.events import DamageMoved, Event
from leadline.core.session.lease import here
from leadline.core.session.load import Loaded, load
from leadline.core.session.log import Session
from leadline.core.session.registry import EventTypes
from leadline.core.session.repair import repairs
from leadline.core.session.store import SessionEntry, SessionStatus, SessionStore, first_lines
from leadline.testing.clock import START, ManualClock


class MemoryLog:
    """The bytes of one session, and the sink that adds to them."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self.leased = False
        self.archived = False
        self.beside: dict[str, bytes] = {}
        self.full = False
        """Set it to make every write fail as on a full disk."""
        self.synced = len(content)
        """How many bytes would survive a power cut."""

    @property
    def where(self) -> str:
        return "memory"

    def write(self, lines: bytes) -> None:
        if self.full:
            raise SessionWriteFailed(self.where, "no space left on device", "free space, then try again")
        self.content += lines

    def cut_back(self, session_id: str, loaded: Loaded) -> list[DamageMoved]:
        """Move damage at the end beside the log; the event that tells, if there was any."""
        damage = bytes(self.content[loaded.end :])
        if not damage:
            return []
        name = f"{session_id}.damaged-{len(self.beside) + 1}"
        self.beside[name] = damage
        del self.content[loaded.end :]
        reasons = tuple(str(one) for one in loaded.problems if one.line >= loaded.damaged_from_line)
        return [
            DamageMoved(
                file=name,
                first_line=loaded.damaged_from_line,
                bytes=len(damage),
                sha256=sha256_hex(damage),
                reasons=reasons,
            )
        ]

    def tell_moved(self, loaded: Loaded, types: EventTypes) -> None:
        """Add what was moved beside the log before to what was loaded of it."""
        tell_moved(loaded, types)
        for name, content in self.beside.items():
            loaded.quarantined.extend(readable_in(name, content))

    async def sync(self) -> None:
        self.synced = len(self.content)

    async def close(self) -> None:
        self.leased = False


class MemorySessions(SessionStore):
    """A store that forgets everything when it is dropped."""

    def __init__(self, clock: Clock | None = None, types: EventTypes | None = None) -> None:
        super().__init__()
        self._clock = clock or ManualClock()
        self._types = types or EventTypes()
        self.logs: dict[str, MemoryLog] = {}
        """By session id; a test may damage their bytes."""

    async def create(self, header: Header, seed: Sequence[Logged] | None = None) -> Session:
        encode_header(header)
        content, header, loaded = first_lines(header, seed, self._clock.now())
        if header.id in self.logs:
            raise SessionExists(f"session {header.id} is there already; choose another id")
        log = self.logs[header.id] = MemoryLog(content)
        log.leased = True
        return Session(header, loaded, log, types=self._types, clock=self._clock, hooks=self.hooks)

    async def open(self, session_id: str, *, repair: bool = True) -> Session:
        log = self._log(session_id)
        if log.leased:
            raise SessionLocked(session_id, "localhost", None, None)
        loaded = load(io.BytesIO(bytes(log.content)))
        if loaded.newer_format is not None:
            raise SessionFormatTooNew(session_id, loaded.newer_format)
        if loaded.header is None:
            raise SessionUnreadable(
                f"session {session_id} cannot be opened for writing: {loaded.problems[0]}"
            )
        session = Session(loaded.header, loaded, log, types=self._types, clock=self._clock, hooks=self.hooks)
        if session.obstacle is not None:
            raise session.obstacle
        log.tell_moved(loaded, self._types)
        log.leased, log.archived = True, False
        session.append_all([*log.cut_back(session_id, loaded), *(repairs(session) if repair else ())])
        return session

    async def read(self, session_id: str) -> Session:
        log = self._log(session_id)
        loaded = load(io.BytesIO(bytes(log.content)))
        log.tell_moved(loaded, self._types)
        header = loaded.header or Header(id=session_id, kind="unreadable", created=0.0)
        return Session(header, loaded, None, types=self._types, clock=self._clock)

    async def list(self) -> list[SessionEntry]:
        entries = [await self._entry(session_id) for session_id in self.logs]
        return sorted(entries, key=lambda one: (one.status == "unreadable", one.created, one.id))

    async def entry(self, session_id: str) -> SessionEntry:
        return await self._entry(session_id)

    async def stamps(self) -> dict[str, str]:
        return {session_id: hashlib.sha256(log.content).hexdigest() for session_id, log in self.logs.items()}

    async def raw(self, session_id: str) -> AsyncGenerator[bytes]:
        yield bytes(self._log(session_id).content)

    async def add_raw(
        self, chunks: AsyncIterable[bytes], beside: Mapping[str, bytes] | None = None
    ) -> SessionEntry:
        content = b"".join([chunk async for chunk in chunks])
        loaded = load(io.BytesIO(content))
        header = loaded.header
        if loaded.newer_format is not None:
            raise SessionFormatTooNew(header.id if header else "", loaded.newer_format)
        if header is None or not valid_id(header.id):
            raise SessionUnreadable(f"the log cannot be taken in: {loaded.problems[:1]}")
        check_names(header.id, beside or ())
        if header.id in self.logs:
            raise SessionExists(f"session {header.id} is there already; choose another id")
        log = self.logs[header.id] = MemoryLog(content)
        log.beside = dict(beside or {})
        return await self.entry(header.id)

    async def archive(self, session_id: str) -> SessionEntry:
        if self._log(session_id).leased:
            raise SessionLocked(session_id, "localhost", None, None)
        self.logs[session_id].archived = True
        return await self.entry(session_id)

    async def beside(self, session_id: str) -> dict[str, bytes]:
        return dict(self._log(session_id).beside)

    async def _entry(self, session_id: str) -> SessionEntry:
        session = await self.read(session_id)
        header = session.header
        if session.obstacle is not None and not session.logged and session.problems:
            return SessionEntry(session_id, "unreadable", reason=str(session.problems[0]))
        return SessionEntry(
            id=session_id,
            status="running" if self.logs[session_id].leased else self._resting(session),
            kind=header.kind,
            created=header.created,
            parent=header.parent,
            depth=header.depth,
            cwd=header.cwd,
            label=header.label,
            size=len(self.logs[session_id].content),
            holder=here().holder(1, header.created) if self.logs[session_id].leased else None,
            archived=self.logs[session_id].archived,
        )

    def _resting(self, session: Session) -> SessionStatus:
        for line in reversed(session.logged):
            kind = self._types.get(line.type)
            if kind is not None and (kind.OPENS or kind.CLOSES):
                return "interrupted" if kind.OPENS else "finished"
        return "idle"

    async def delete(self, session_id: str) -> None:
        if self._log(session_id).leased:
            raise SessionLocked(session_id, "localhost", None, None)
        del self.logs[session_id]

    def _log(self, session_id: str) -> MemoryLog:
        if not valid_id(session_id) or session_id not in self.logs:
            raise SessionNotFound(
                f"there is no session {session_id!r}; `leadline sessions list` shows what there is"
            )
        return self.logs[session_id]


def memory_session(
    kind: str = "agent",
    *,
    session_id: str = "s-0000000000000001",
    clock: Clock | None = None,
    types: EventTypes | None = None,
    events: Iterable[Event] = (),
) -> Session:
    """A new session in memory, open for writing, that has `events`."""
    header = Header(id=session_id, kind=kind, created=START)
    clock = clock or ManualClock()
    content, header, loaded = first_lines(header, None, clock.now())
    session = Session(header, loaded, MemoryLog(content), types=types or EventTypes(), clock=clock)
    session.append_all([*events])
    return session


class MemoryBlobs(Blobs):
    """Blobs that are forgotten when it is dropped."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or ManualClock()
        self._lock = threading.Lock()
        self.stored: dict[str, bytes] = {}
        """By hash; a test may damage them."""
        self.used: dict[str, float] = {}
        """By hash, in seconds since 1970; a test may make a blob older."""

    def put(self, data: bytes, *, synced: bool = False) -> str:
        name = sha256_hex(data)
        with self._lock:
            self.stored[name] = bytes(data)
            self.used[name] = self._clock.now()
        return name

    def get(self, sha256: str) -> bytes:
        if not is_hash(sha256) or sha256 not in self.stored:
            raise BlobMissing(f"blob {sha256!r} is not stored; store its bytes first")
        data = self.stored[sha256]
        if sha256_hex(data) != sha256:
            raise BlobDamaged(f"blob {sha256} does not have its hash any more; store the bytes again")
        return data

    def has(self, sha256: str) -> bool:
        with self._lock:
            if sha256 not in self.stored:
                return False
            self.used[sha256] = self._clock.now()
            return True

    def entries(self) -> Iterator[StoredBlob]:
        for name, data in tuple(self.stored.items()):
            yield StoredBlob(name, len(data), self.used.get(name, 0.0))

    def remove(self, sha256: str, *, unused_since: float) -> bool:
        if not is_hash(sha256):
            raise BlobMissing(f"{sha256!r} is not the name of a blob; it has to be 64 hex digits")
        with self._lock:
            if sha256 in self.stored and self.used.get(sha256, 0.0) >= unused_since:
                return False
            self.stored.pop(sha256, None)
            self.used.pop(sha256, None)
            return True
