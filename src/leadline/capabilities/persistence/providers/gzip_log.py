"""A log in a gzip file of several members: `<id>.jsonl.gz`, as `archive` leaves it.

Each member holds a stretch of whole lines, so that damage to one costs that one. The first member says
in its extra field how long the log is and how it ended, so that a list need not unpack it. Files that
another program packed, with one member or many, read as well.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import msgspec

from leadline.core.session.store import SessionStatus

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_MAGIC = b"\x1f\x8b\x08"
_FIELD = b"LL"
"""Id of our part of the extra field."""
_EXTRA_FLAG = 4
_MEMBER_BYTES = 1 << 20
_CHUNK = 1 << 18
_LEVEL = 6
_TOLD = 20
"""Most problems of one archive that are told."""
_WITH_GZIP_HEADER = 31
_HEAD = struct.Struct("<3sBIBBH")


class Summary(msgspec.Struct, frozen=True):
    """What an archive says of the log in it."""

    size: int
    """Bytes of the log."""
    status: SessionStatus


class GzipLog(io.RawIOBase):
    """The log in an open gzip file, to be read once from its start. Damage is passed over and told.

    Closes the file that it was given.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._held = b""
        self._out = memoryview(b"")
        self._read = 0
        self.problems: list[str] = []
        """What could not be unpacked, as far as it was read."""
        self._unpacker = zlib.decompressobj(_WITH_GZIP_HEADER)
        self._fresh = True

    def readable(self) -> bool:
        """True."""
        return True

    def close(self) -> None:
        """Close the file as well."""
        if not self.closed:
            self._file.close()
        super().close()

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill `buffer` as far as one piece reaches; 0 at the end."""
        while not self._out:
            piece = self._next()
            if piece is None:
                return 0
            self._out = memoryview(piece)
        room = memoryview(buffer).cast("B")
        taken = min(len(room), len(self._out))
        room[:taken] = self._out[:taken]
        self._out = self._out[taken:]
        return taken

    def _fill(self) -> bool:
        if not self._held:
            self._held = self._file.read(_CHUNK)
            self._read += len(self._held)
        return bool(self._held)

    def _next(self) -> bytes | None:
        """A piece of the log, perhaps empty; None at the end."""
        at_end = not self._fill()
        if at_end and self._fresh:
            return None
        try:
            out = self._unpacker.decompress(self._held, _MEMBER_BYTES)
        except zlib.error as error:
            self._skip(str(error))
            return b""
        self._fresh = False
        self._held = self._unpacker.unconsumed_tail
        if self._unpacker.eof:
            self._held = self._unpacker.unused_data
            self._start_member()
        elif at_end and not out:
            self._fresh = True
            self._tell("the archive ends inside a member")
        return out

    def _tell(self, problem: str) -> None:
        if len(self.problems) < _TOLD:
            self.problems.append(problem)

    def _start_member(self) -> None:
        self._unpacker = zlib.decompressobj(_WITH_GZIP_HEADER)
        self._fresh = True
        while self._fill() and not self._held.strip(b"\0"):
            self._held = b""  # padding, as tape and some disks leave it
        if self._held.startswith(b"\0"):
            self._held = self._held.lstrip(b"\0")

    def _skip(self, reason: str) -> None:
        """Go to where the next member may begin."""
        before = self._read - len(self._held)
        self._held = self._held[1:]
        while self._fill():
            found = self._held.find(_MAGIC)
            if found >= 0:
                self._held = self._held[found:]
                break
            kept = self._held[-2:] if len(self._held) > 2 else b""
            more = self._file.read(_CHUNK)
            self._read += len(more)
            self._held = kept + more if more else b""
            if not more:
                break
        after = self._read - len(self._held)
        self._tell(f"the archive is damaged from byte {before} to byte {after}: {reason}")
        self._unpacker = zlib.decompressobj(_WITH_GZIP_HEADER)
        self._fresh = True


def summary_of(fd: int) -> Summary | None:
    """What the archive that is open as `fd` says of its log; None when another program packed it."""
    head = os.pread(fd, 4096, 0)
    if len(head) < _HEAD.size or not head.startswith(_MAGIC) or not head[3] & _EXTRA_FLAG:
        return None
    extra = head[_HEAD.size : _HEAD.size + _HEAD.unpack_from(head)[5]]
    while len(extra) >= 4:
        length = int.from_bytes(extra[2:4], "little")
        if extra[:2] == _FIELD:
            try:
                return msgspec.json.decode(extra[4 : 4 + length], type=Summary)
            except (msgspec.MsgspecError, UnicodeError):
                return None
        extra = extra[4 + length :]
    return None


def pack(log: BinaryIO, into: Path, summary: Summary) -> None:
    """Write the rest of `log` as an archive, synced.

    Raises:
        OSError: the disk refused; what there is of `into` is of no use.
    """
    fd = os.open(into, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        said = msgspec.json.encode(summary)
        extra = _FIELD + len(said).to_bytes(2, "little") + said
        for stretch in _stretches(log):
            file.write(_member(stretch, extra))
            extra = b""
        file.flush()
        os.fsync(file.fileno())


def _stretches(log: BinaryIO) -> Iterator[bytes]:
    """Whole lines, about a member's worth each; at least one stretch, empty for an empty log."""
    yield log.readline(_MEMBER_BYTES)
    while chunk := log.read(_MEMBER_BYTES):
        yield chunk if chunk.endswith(b"\n") else chunk + log.readline()


def _member(content: bytes, extra: bytes) -> bytes:
    head = _HEAD.pack(_MAGIC, _EXTRA_FLAG, 0, 0, 255, len(extra)) + extra
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = packer.compress(content) + packer.flush()
    return head + body + struct.pack("<II", zlib.crc32(content), len(content) & 0xFFFFFFFF)


def unpacked(file: BinaryIO) -> tuple[BinaryIO, GzipLog]:
    """The log in an archive as a buffered file, and the reader that tells of damage."""
    raw = GzipLog(file)
    return cast("BinaryIO", io.BufferedReader(raw, _CHUNK)), raw
