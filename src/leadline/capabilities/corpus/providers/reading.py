"""Reads a file that the walk found, through no link: what was swapped in since then is refused."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass, replace

from leadline.capabilities.corpus.providers.walk import Entry, Problem
from leadline.capabilities.documents.seam import Limits, too_large

_CHUNK = 1 << 20
_BY_HANDLE = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_FILE_FLAGS = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)


@dataclass(frozen=True)
class FileBytes:
    """The bytes of a file and the state of the file they belong to, or a problem."""

    entry: Entry
    data: bytes
    problem: Problem | None = None


def read_file(entry: Entry, limits: Limits) -> FileBytes:
    """The bytes of `entry`, or why not; nothing raises."""
    if entry.problem is not None:
        return FileBytes(entry, b"", entry.problem)
    try:
        handle = _opened(entry)
    except OSError as error:
        return FileBytes(entry, b"", _problem(error))
    try:
        info = os.fstat(handle)
        fresh = replace(
            entry,
            size=info.st_size,
            mtime_ns=info.st_mtime_ns,
            ctime_ns=info.st_ctime_ns,
            inode=info.st_ino,
        )
        if not stat.S_ISREG(info.st_mode):
            return FileBytes(fresh, b"", Problem("unsupported", "not a regular file any more"))
        if info.st_size > limits.max_bytes:
            return FileBytes(fresh, b"", _over(info.st_size, limits))
        data = _all(handle, limits.max_bytes + 1)
    except OSError as error:
        return FileBytes(entry, b"", _problem(error))
    finally:
        os.close(handle)
    if len(data) > limits.max_bytes:
        return FileBytes(fresh, b"", _over(len(data), limits))
    return FileBytes(fresh, data)


def _opened(entry: Entry) -> int:
    """An open file, each folder on the way opened from the one before and none of them a link."""
    if not _BY_HANDLE:
        path = entry.folder.joinpath(*entry.parts)
        if path.resolve(strict=True) != path:
            raise OSError(errno.ELOOP, "became a link")
        return os.open(path, _FILE_FLAGS)
    flags = os.O_RDONLY | os.O_DIRECTORY
    folder = os.open(entry.folder, flags)
    try:
        for part in entry.parts[:-1]:
            deeper = os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = deeper
        return os.open(entry.parts[-1], _FILE_FLAGS, dir_fd=folder)
    finally:
        os.close(folder)


def _all(handle: int, most: int) -> bytes:
    pieces: list[bytes] = []
    left = most
    while left > 0 and (piece := os.read(handle, min(_CHUNK, left))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _problem(error: OSError) -> Problem:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return Problem("disallowed", "became a link while it was being read; not followed")
    return Problem("error", f"cannot be read: {error.strerror or error}")


def _over(size: int, limits: Limits) -> Problem:
    refused = too_large(size, limits)
    return Problem(refused.outcome, refused.reason)
