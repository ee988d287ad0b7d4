"""Where the large lines of a log stay while its session is in memory: in the log's own file, or in one made for them."""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path
from typing import BinaryIO

from leadline.core.session.codec import Outside


class InFile:
    """Large lines of a plain log: read again from where they stand. Outlives the file's name."""

    def __init__(self, file: BinaryIO) -> None:
        """`file` is the open log; it may be closed afterwards."""
        self._file = file
        self._fd = -1

    def keep(self, at: int, line: bytes) -> int:
        """As `Outside.keep`; nothing is copied."""
        if self._fd < 0:
            self._fd = os.dup(self._file.fileno())
            weakref.finalize(self, os.close, self._fd)
        return at

    def read(self, at: int, size: int) -> bytes:
        """As `Outside.read`."""
        return os.pread(self._fd, size, at)


class InSpool:
    """Large lines of a log that cannot be read at a place, such as an archive: copied to a file without a name."""

    def __init__(self, directory: Path) -> None:
        """The file is made in `directory` once there is something to keep."""
        self._directory = directory
        self._fd = -1
        self._end = 0

    def keep(self, at: int, line: bytes) -> int:
        """As `Outside.keep`."""
        if self._fd < 0:
            with tempfile.TemporaryFile(dir=self._directory, prefix=".") as file:
                self._fd = os.dup(file.fileno())
            weakref.finalize(self, os.close, self._fd)
        kept = self._end
        written = 0
        while written < len(line):
            written += os.pwrite(self._fd, line[written:] if written else line, kept + written)
        self._end += len(line)
        return kept

    def read(self, at: int, size: int) -> bytes:
        """As `Outside.read`."""
        return os.pread(self._fd, size, at)


def outside(file: BinaryIO, directory: Path) -> Outside:
    """Where the large lines of the open log `file` can stay; what has to be copied is copied to `directory`."""
    return InFile(file) if file.seekable() else InSpool(directory)
