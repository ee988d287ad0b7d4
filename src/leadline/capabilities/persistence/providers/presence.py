"""The sign of life of a process: a file that is locked for as long as the process lives, however it ends."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path

_SUFFIX = ".alive"
_HELD_BY_OTHER = (errno.EAGAIN, errno.EACCES)


class Presence:
    """A sign of life that is given. `give` makes one."""

    def __init__(self, fd: int, path: Path) -> None:
        self._fd = fd
        self._path = path

    @classmethod
    def give(cls, folder: Path, name: str) -> Presence:
        """Say that `name`, which nobody else may use, is there.

        Raises:
            OSError: the file cannot be made or locked.
        """
        path = folder / f"{name}{_SUFFIX}"
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
            except OSError:
                os.close(fd)
                raise
            if os.fstat(fd).st_nlink:
                return cls(fd, path)
            # Somebody swept the file away between the two.
            os.close(fd)

    @property
    def seen(self) -> bool:
        """Whether others can see it: nobody removed its file."""
        return self._fd >= 0 and os.fstat(self._fd).st_nlink > 0

    def end(self) -> None:
        """Take it back. Idempotent."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            if os.fstat(fd).st_nlink:
                with suppress(OSError):
                    self._path.unlink(missing_ok=True)
            os.close(fd)


def is_present(folder: Path, name: str) -> bool:
    """Whether `name` is alive; the file of one that is not is removed."""
    path = folder / f"{name}{_SUFFIX}"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD_BY_OTHER:
            return True
        raise
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return False
    finally:
        os.close(fd)


def sweep(folder: Path) -> None:
    """Remove the files of all that are not alive."""
    for path in tuple(folder.glob(f"*{_SUFFIX}")):
        is_present(folder, path.name.removesuffix(_SUFFIX))
