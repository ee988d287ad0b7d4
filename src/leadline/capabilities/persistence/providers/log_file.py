"""The file of one session that is open for writing."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NoReturn

import anyio
from anyio import to_thread

from leadline.capabilities.persistence.providers.lease import Lease
from leadline.capabilities.persistence.providers.syncing import Syncing, sync_directory
from leadline.core.session.errors import SessionExists, SessionWriteFailed, StaleLease
from leadline.core.session.events import DamageMoved
from leadline.core.session.load import Loaded

_CHUNK = 1 << 20
_RETRY = "free space or mend the disk, then try again; nothing of it was kept"


class LogFile:
    """Adds lines behind the last good byte; holds the lease while it is open."""

    def __init__(self, path: Path, end: int, lease: Lease, syncing: Syncing | None = None) -> None:
        """`end` is the size of the file in bytes: where the next line goes. `syncing` is shared by a store's files.

        Raises:
            SessionWriteFailed: the file cannot be opened for writing.
        """
        self._path = path
        self._end = end
        self._lease = lease
        self._torn = False
        self._synced = -1
        self._doubtful = False
        self._turn = anyio.Lock()
        self._syncing = syncing or Syncing()
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise SessionWriteFailed(str(path), error.strerror or str(error), "make it writable") from error
        self._number = self._syncing.named()

    @property
    def where(self) -> str:
        """The path."""
        return str(self._path)

    def write(self, lines: bytes) -> None:
        """As `Sink.write`: one write, all or nothing."""
        self._lease.check()
        if self._torn:
            self._cut_back()
        if os.lseek(self._fd, 0, os.SEEK_END) != self._end:  # three times as fast as fstat
            raise StaleLease(
                f"session log {self._path} was changed by someone else; close the session and open it again"
            )
        try:
            written = os.write(self._fd, lines)
        except OSError as error:
            self._refuse(error.strerror or str(error), error)
        if written != len(lines):
            self._refuse(f"only {written} of {len(lines)} bytes found room", None)
        self._end += written

    def _refuse(self, cause: str, error: OSError | None) -> NoReturn:
        self._torn = True
        failure = SessionWriteFailed(str(self._path), cause, _RETRY)
        try:
            self._cut_back()
        except SessionWriteFailed as also:
            failure.add_note(str(also))
        raise failure from error

    def _cut_back(self) -> None:
        """Take away what a failed write left behind."""
        try:
            os.ftruncate(self._fd, self._end)
        except OSError as error:
            raise SessionWriteFailed(
                str(self._path), f"what a failed write left cannot be taken away: {error.strerror}", _RETRY
            ) from error
        self._torn = False

    async def sync(self) -> None:
        """As `Sink.sync`: together with other files of the store, in worker threads."""
        async with self._turn:
            end = self._end
            if self._fd < 0 or end == self._synced:
                return
            try:
                if self._doubtful:
                    await to_thread.run_sync(self._write_anew, max(0, self._synced), end)
                    self._doubtful = False
                await self._syncing.sync(self._fd)
                await self._syncing.names(self._path.parent, self._number)
            except OSError as error:
                self._doubtful = True
                raise SessionWriteFailed(
                    str(self._path),
                    f"the disk does not promise to keep it: {error.strerror}",
                    "check the disk, then try again",
                ) from error
            self._synced = end

    def _write_anew(self, start: int, end: int) -> None:
        """Write the bytes from `start` to `end` over themselves: a disk that failed to keep them is asked anew.

        The system forgets after a failed sync that they are still to be written, and would call the next one done.
        """
        fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            while start < end and (chunk := os.pread(fd, min(_CHUNK, end - start), start)):
                start += os.pwrite(fd, chunk, start)
        finally:
            os.close(fd)

    async def close(self) -> None:
        """As `Sink.close`; waits for a sync in flight."""
        async with self._turn:
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)
                self._lease.release()


def open_log(path: Path) -> BinaryIO:
    """The file `path`, to be read; never waits for somebody at the other end of it.

    Raises:
        OSError: it cannot be read, or is a pipe, a device or a directory.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is no regular file; move it away", str(path))
    return os.fdopen(fd, "rb")


def publish(path: Path, content: bytes, temporary: Path) -> None:
    """Make the file `path` with `content`: it is there whole or not at all, and never replaces another.

    Raises:
        SessionExists: the file is there already.
        SessionWriteFailed: the disk refused; nothing is left behind.
    """
    try:
        temporary.write_bytes(content)
        temporary.chmod(0o600)
        publish_file(path, temporary)
    except OSError as error:
        raise SessionWriteFailed(str(path), error.strerror or str(error), _RETRY) from error
    finally:
        drop(temporary)


def publish_file(path: Path, temporary: Path) -> None:
    """Give the file `temporary` the name `path` as well, which it never takes from another.

    Raises:
        SessionExists: the file is there already.
        OSError: the disk refused.
    """
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        raise SessionExists(f"session {path.stem} is there already ({path}); choose another id") from None


def drop(temporary: Path) -> None:
    """Remove a file that nobody needs any more. One that cannot be removed stays: what it was for is done."""
    with suppress(OSError):
        temporary.unlink(missing_ok=True)


def move_damage(path: Path, loaded: Loaded) -> DamageMoved:
    """Move what stands behind the last good line of `path` to a file beside it; the event that tells.

    The bytes are safe in the other file before they leave this one.

    Raises:
        SessionWriteFailed: the disk refused; the log is as it was.
    """
    try:
        with path.open("rb") as file:
            file.seek(loaded.end)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(loaded.end)
            beside = _copy_beside(path, file, digest)
        os.truncate(path, loaded.end)
    except OSError as error:
        raise SessionWriteFailed(str(path), error.strerror or str(error), _RETRY) from error
    return DamageMoved(
        file=beside.name,
        first_line=loaded.damaged_from_line,
        bytes=loaded.size - loaded.end,
        sha256=digest,
        reasons=tuple(str(one) for one in loaded.problems if one.line >= loaded.damaged_from_line)[:20],
    )


def damaged_files(path: Path) -> list[Path]:
    """The files to which damage of the log `path` was moved, oldest first."""
    found = path.parent.glob(f"{path.stem}.damaged-*")
    numbered = [
        (int(one.name.rpartition("-")[2]), one)
        for one in found
        if one.name.rpartition("-")[2].isdecimal() and one.is_file()
    ]
    return [one for _, one in sorted(numbered)]


def next_damaged(path: Path) -> Path:
    """The name for the next file of damage of the log `path`."""
    before = damaged_files(path)
    number = int(before[-1].name.rpartition("-")[2]) + 1 if before else 1
    return path.with_name(f"{path.stem}.damaged-{number}")


def _copy_beside(path: Path, file: BinaryIO, digest: str) -> Path:
    before = damaged_files(path)
    if before:
        with before[-1].open("rb") as last:
            if hashlib.file_digest(last, "sha256").hexdigest() == digest:
                return before[-1]  # moved by an attempt that did not get as far as cutting the log
    beside = next_damaged(path)
    with beside.open("xb") as copy:
        while chunk := file.read(1 << 20):
            copy.write(chunk)
        copy.flush()
        os.fsync(copy.fileno())
    sync_directory(path.parent)
    return beside
