"""One import at a time, and a note of what it is storing: what a process that died left is taken back.

Without its root a family is not in any list that a person looks at. The note says which sessions an import
stores, and is removed when the root is there. Whoever imports or collects next finds the note of a dead one.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import msgspec
from anyio import to_thread

from leadline.capabilities.retention.providers.family import digest_of
from leadline.core.clock import Clock
from leadline.core.home import VARIABLE, Home, HomeUnusable
from leadline.core.session.errors import SessionError, SessionNotFound
from leadline.core.session.store import SessionStore

FOLDER = "imports"
_TRIES = 100
_PAUSE_S = 0.1
_MOST = 64 << 20


class Note(msgspec.Struct, frozen=True):
    """What an import is storing."""

    root: str
    sessions: dict[str, str]
    """sha256 of the logs of those that were not here before, by id."""


@asynccontextmanager
async def one_at_a_time(home: Home, clock: Clock, *, wait: bool = True) -> AsyncGenerator[bool]:
    """The exclusive right to store imports, of all processes of this home; False where another keeps it.

    The system gives it up for a process that dies.

    Args:
        home: whose imports.
        clock: paces the waiting.
        wait: for another process; else only look, which a home that cannot be written allows as well.

    Raises:
        HomeUnusable: the home cannot be written.
    """
    try:
        fd = await to_thread.run_sync(_lock_file, home)
    except HomeUnusable:
        if wait:
            raise
        yield False
        return
    try:
        for _ in range(_TRIES if wait else 1):
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                await clock.sleep(_PAUSE_S if wait else 0)
            else:
                yield True
                return
        yield False
    finally:
        os.close(fd)


def _lock_file(home: Home) -> int:
    path = home.make(FOLDER) / ".lock"
    with _writing(path):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextmanager
def _writing(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise HomeUnusable(
            f"cannot write {path}: {error.strerror or error}; "
            f"free space, or set {VARIABLE} to a directory that you may write"
        ) from error


def write_note(home: Home, token: str, note: Note) -> Path:
    """A note that survives a power cut; the caller removes it, and has the right of `one_at_a_time`.

    Raises:
        HomeUnusable: it cannot be written.
    """
    path = home.make(FOLDER) / f"{note.root}.{token}.json"
    with _writing(path), path.open("xb") as file:
        file.write(msgspec.json.encode(note))
        file.flush()
        os.fsync(file.fileno())
    return path


async def take_back_unfinished(store: SessionStore, home: Home, *, dry_run: bool) -> list[str]:
    """Delete what imports of dead processes left without a root; ids of those sessions.

    The caller has the right of `one_at_a_time`, so that every note is that of a dead process.
    """
    gone: list[str] = []
    for path in sorted((home.path / FOLDER).glob("*.json")):
        note = await to_thread.run_sync(_read, path)
        if note is not None:
            gone += await _take_back(store, note, dry_run=dry_run)
        if not dry_run:
            path.unlink(missing_ok=True)
    return gone


async def _take_back(store: SessionStore, note: Note, *, dry_run: bool) -> list[str]:
    with suppress(SessionNotFound):
        await store.entry(note.root)
        return []  # another import completed it
    gone: list[str] = []
    for session_id, sha256 in note.sessions.items():
        if await digest_of(store, session_id) != sha256:
            continue  # not stored, or somebody went on with it
        with suppress(SessionError):
            if not dry_run:
                await store.delete(session_id)
            gone.append(session_id)
    return gone


def _read(path: Path) -> Note | None:
    """The note; None where it was cut off while it was written, before anything was stored."""
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_MOST), type=Note)
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return None
