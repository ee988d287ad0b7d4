"""The exclusive right to write one session: a lock that dies with its holder, and an epoch that does not.

The lock is `flock` on a file beside the log, which the system gives up when the holder's process
ends, however it ends. The file holds who has it, a heartbeat, and the epoch, a number that rises with
each holder, so that one who lost the lock without noticing (the file was replaced, a network mount let
go) is refused at its next append. On a file system that does not carry the lock to other machines, the
heartbeat of a holder there is what keeps others out.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import structs

from leadline.core.session.errors import SessionLocked, SessionWriteFailed, StaleLease
from leadline.core.session.lease import Here, Holder, here, is_alive

WRITING = ".writing"
"""Directory beside the leases with an empty file for each that is held: it changes as they come and go."""

_HELD_BY_OTHER = (errno.EAGAIN, errno.EACCES)
_UNKNOWN = Holder(epoch=0, host="", pid=0, boot="", started=0.0)
"""Stands for a holder whose file cannot be read."""


class Lease:
    """A lease that is held. `acquire` makes one."""

    def __init__(self, fd: int, path: Path, session_id: str, holder: Holder) -> None:
        self._fd = fd
        self._path = path
        self._session_id = session_id
        self.holder = holder
        self._stamp = _stamp(fd)

    @classmethod
    def acquire(cls, path: Path, session_id: str, now: float) -> Lease:
        """Take the lease whose file is `path`, which is made where it is missing.

        Raises:
            SessionLocked: someone has it.
            SessionWriteFailed: the file cannot be used for locking.
        """
        asking = here()
        while True:
            try:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise _unusable(path, error) from error
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not _still_there(fd, path):
                    os.close(fd)
                    continue
                before = _read(fd)
                if before is not None and _beats_elsewhere(before, asking, now):
                    os.close(fd)
                    raise _locked(session_id, before)
                lease = cls(fd, path, session_id, _take(fd, before, asking, now))
                _note(path)
                return lease
            except OSError as error:
                holder = _read(fd)
                os.close(fd)
                if error.errno in _HELD_BY_OTHER:
                    raise _locked(session_id, holder) from None
                raise _unusable(path, error) from error

    def check(self) -> None:
        """Refuse to go on when another has taken over. Cheap: one look at the open lock file.

        Raises:
            StaleLease: another has.
        """
        stamp = _stamp(self._fd)
        if stamp == self._stamp:
            return
        found = _read(self._fd)
        if not _still_there(self._fd, self._path) or found is None or found.epoch != self.holder.epoch:
            by = f"epoch {found.epoch}, process {found.pid} on {found.host}" if found else "someone"
            raise StaleLease(
                f"session {self._session_id} was taken over ({by}; this is epoch {self.holder.epoch}); "
                "close it and open it again to go on from what is logged now"
            )
        self._stamp = stamp

    def beat(self, now: float) -> None:
        """Say that the holder is still there. What cannot be written is left: the next append tells why."""
        self._say(structs.replace(self.holder, heartbeat=now))

    def release(self) -> None:
        """Give the lease up. Idempotent."""
        self._say(structs.replace(self.holder, released=True))
        fd, self._fd = self._fd, -1
        if fd >= 0:
            # While the lock is still held: the note of the next holder is not this one's to remove.
            if _still_there(fd, self._path) or not os.path.lexists(self._path):
                _forget(self._path)
            os.close(fd)

    def _say(self, holder: Holder) -> None:
        if self._fd < 0:
            return
        try:
            self.check()
            _write(self._fd, holder)
            self._stamp = _stamp(self._fd)
        except (OSError, StaleLease):
            return
        self.holder = holder


def held_in(root: Path) -> list[str]:
    """Ids of the sessions below `root` that may be held: all that are, and those whose holder died."""
    try:
        return [one.name for one in (root / WRITING).iterdir()]
    except OSError:
        return []


def _noted(path: Path) -> Path:
    return path.parent / WRITING / path.stem


def _note(path: Path) -> None:
    """Keep account of the lease, for those who watch a directory instead of each lock; losing it loses only that."""
    note = _noted(path)
    with suppress(OSError):
        note.parent.mkdir(mode=0o700, exist_ok=True)
        note.touch(mode=0o600)


def _forget(path: Path) -> None:
    with suppress(OSError):
        _noted(path).unlink(missing_ok=True)


def forget_dead(path: Path) -> None:
    """Take back the account of a holder that died, unless somebody takes the lease just now."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _still_there(fd, path):
            _forget(path)
    except OSError:
        return
    finally:
        os.close(fd)


def is_held(path: Path) -> bool:
    """Whether a live process of this machine has the lease whose file is `path`."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return _is_locked(fd)
    finally:
        os.close(fd)


def holder_of(path: Path, now: float) -> Holder | None:
    """Who has the lease whose file is `path` and is alive; None where nobody is."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        holder = _read(fd)
        if holder is not None and holder.released:
            return None
        if _is_locked(fd):
            return holder or _UNKNOWN
        return holder if holder is not None and _beats_elsewhere(holder, here(), now) else None
    finally:
        os.close(fd)


def _is_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _HELD_BY_OTHER
    return False


def _beats_elsewhere(holder: Holder, asking: Here, now: float) -> bool:
    """Whether `holder` lives on a machine whose locks this one may not see; on this one the lock itself tells."""
    return holder.boot != asking.boot and is_alive(holder, asking, now)


def _take(fd: int, before: Holder | None, asking: Here, now: float) -> Holder:
    # An unreadable counter is continued at a number that no counting reaches, so that it still rises.
    epoch = before.epoch + 1 if before else (1 if os.fstat(fd).st_size == 0 else int(now * 1000))
    holder = asking.holder(epoch, now)
    _write(fd, holder)
    os.fdatasync(fd)
    return holder


def _write(fd: int, holder: Holder) -> None:
    data = msgspec.json.encode(holder) + b"\n"
    os.pwrite(fd, data, 0)
    os.ftruncate(fd, len(data))


def _read(fd: int) -> Holder | None:
    try:
        return msgspec.json.decode(os.pread(fd, 4096, 0).partition(b"\n")[0], type=Holder)
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return None


def _stamp(fd: int) -> tuple[int, int, int]:
    found = os.fstat(fd)
    return found.st_mtime_ns, found.st_size, found.st_nlink


def _still_there(fd: int, path: Path) -> bool:
    try:
        there = path.stat()
    except OSError:
        return False
    here = os.fstat(fd)
    return (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev)


def _locked(session_id: str, holder: Holder | None) -> SessionLocked:
    if holder is None:
        return SessionLocked(session_id, "", None, None)
    return SessionLocked(session_id, holder.host, holder.pid, holder.started)


def _unusable(path: Path, error: OSError) -> SessionWriteFailed:
    return SessionWriteFailed(
        str(path),
        error.strerror or str(error),
        "make the directory writable, free space, or use one on a file system that can lock files",
    )
