"""The file of an export: a ZIP file in one strict form, written and read as a stream.

Members are stored, not deflated: what comes out is never larger than what went in, and the same members
give the same bytes on every machine. One date, one set of attributes, no extra fields, no comments, no gaps:
every byte follows from the names and contents, and the reader accepts nothing else. `unzip` reads it.
"""

from __future__ import annotations

import os
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from leadline.kernel.errors import LeadlineError

MAX_BYTES = (1 << 32) - 1
"""Ceiling on the file, which the plain form of ZIP sets."""

MAX_MEMBERS = (1 << 16) - 2
MAX_NAME = 420
CHUNK = 1 << 20

_LOCAL, _CENTRAL, _END = 0x04034B50, 0x02014B50, 0x06054B50
_LOCAL_HEAD = struct.Struct("<IHHHHHIIIHH")
_CENTRAL_HEAD = struct.Struct("<IHHHHHHIIIHHHHHII")
_END_RECORD = struct.Struct("<IHHHHIIH")
_DATE = (1 << 5) | 1  # 1980-01-01, the first day that the format knows
_VERSION = 20
_MADE_BY_UNIX = (3 << 8) | _VERSION
_ATTRIBUTES = 0o100600 << 16
_WITHOUT_WAITING = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class TooLarge(LeadlineError):
    """More than one file of this form can hold."""


class NotOfThisForm(LeadlineError):
    """The file is no ZIP file of this form at all."""


class Damaged(LeadlineError):
    """The file began in this form, but breaks it further on."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member and where its bytes lie."""

    name: str
    crc: int
    size: int
    head: int
    """Offset of its header in the file."""

    @property
    def start(self) -> int:
        """Offset of its first byte."""
        return self.head + _LOCAL_HEAD.size + len(self.name)


class Writer:
    """Writes members one after the other into a new file."""

    def __init__(self, file: BinaryIO) -> None:
        """`file` is empty and can be written and sought."""
        self._file = file
        self._members: list[Member] = []
        self._names: set[str] = set()
        self._at = 0

    def begin(self, name: str) -> None:
        """The next bytes belong to the member `name`.

        Raises:
            TooLarge: there are more members than a file can hold.
        """
        if not safe_name(name) or name in self._names:
            raise ValueError(f"{name!r} cannot be the name of a member, or is one already")
        if len(self._members) >= MAX_MEMBERS:
            raise TooLarge(f"more than {MAX_MEMBERS} members do not fit into one file")
        self._names.add(name)
        self._open = Member(name, 0, 0, self._at)
        self._crc = self._size = 0
        self._write(_local_head(self._open))

    def write(self, data: bytes) -> None:
        """Add bytes to the member that was begun last.

        Raises:
            TooLarge: the file would become larger than one can be.
        """
        self._crc = zlib.crc32(data, self._crc)
        self._size += len(data)
        self._write(data)

    def end(self) -> None:
        """The member is whole."""
        member = Member(self._open.name, self._crc, self._size, self._open.head)
        self._file.seek(member.head)
        self._file.write(_local_head(member))
        self._file.seek(self._at)
        self._members.append(member)

    def add(self, name: str, data: bytes) -> None:
        """A whole member."""
        self.begin(name)
        self.write(data)
        self.end()

    def close(self) -> int:
        """Write what stands behind the members; the size of the file."""
        for piece in _directory(self._members, self._at):
            self._write(piece)
        return self._at

    def _write(self, data: bytes) -> None:
        self._at += len(data)
        if self._at > MAX_BYTES:
            raise TooLarge(f"one file holds at most {MAX_BYTES} bytes")
        self._file.write(data)


def open_file(path: Path) -> BinaryIO:
    """The file `path`, to be read; never waits for somebody at the other end of it.

    Raises:
        NotOfThisForm: it is no ordinary file, or larger than one of this form can be.
        OSError: it cannot be read.
    """
    file = os.fdopen(os.open(path, _WITHOUT_WAITING), "rb")
    info = os.fstat(file.fileno())
    if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_BYTES:
        file.close()
        size = f"it has {info.st_size} bytes, more than {MAX_BYTES}"
        raise NotOfThisForm(size if stat.S_ISREG(info.st_mode) else "it is no ordinary file")
    return file


def read(file: BinaryIO) -> list[Member]:
    """The members of a file, in their order, after every byte of it has been accounted for.

    Raises:
        NotOfThisForm, Damaged: as they say.
    """
    size = file.seek(0, os.SEEK_END)
    at = 0
    members: list[Member] = []
    names: set[str] = set()
    while (member := _member(file, at, size)) is not None:
        if member.name in names:
            raise Damaged(f"the member {member.name} is there twice")
        if len(members) >= MAX_MEMBERS:
            raise Damaged(f"it has more than {MAX_MEMBERS} members")
        names.add(member.name)
        members.append(member)
        at = member.start + member.size
    if not members:
        raise NotOfThisForm("it is not a ZIP file of the form that an export has")
    _check_directory(file, members, at, size)
    for member in members:
        crc = 0
        for chunk in content(file, member):
            crc = zlib.crc32(chunk, crc)
        if crc != member.crc:
            raise Damaged(f"the bytes of {member.name} are not those that were written")
    return members


def first_name(file: BinaryIO) -> str:
    """The name of the first member; empty where the file does not begin in this form."""
    with suppress(Damaged):
        member = _member(file, 0, file.seek(0, os.SEEK_END))
        return member.name if member is not None else ""
    return ""


def content(file: BinaryIO, member: Member) -> Iterator[bytes]:
    """The bytes of a member, piece by piece.

    Raises:
        Damaged: the file became shorter meanwhile.
    """
    at, left = member.start, member.size
    while left:
        file.seek(at)
        chunk = file.read(min(CHUNK, left))
        if not chunk:
            raise Damaged(f"the file ends inside {member.name}")
        at += len(chunk)
        left -= len(chunk)
        yield chunk


def safe_name(name: str) -> bool:
    """A relative path of plain ASCII names: no parent, drive, separator of another system or control character."""
    if not name or len(name) > MAX_NAME or not name.isascii() or not name.isprintable():
        return False
    if any(mark in name for mark in '\\:*?"<>| '):
        return False
    return all(part not in ("", ".", "..") for part in name.split("/"))


def _member(file: BinaryIO, at: int, size: int) -> Member | None:
    """The member whose header stands at `at`; None where the directory begins."""
    file.seek(at)
    head = file.read(_LOCAL_HEAD.size)
    if len(head) < _LOCAL_HEAD.size or head[:4] != struct.pack("<I", _LOCAL):
        return None
    *_, crc, _, length, name_length, _ = _LOCAL_HEAD.unpack(head)
    raw = file.read(min(name_length, MAX_NAME + 1))
    name = raw.decode("ascii", "replace")
    if not safe_name(name) or len(raw) != name_length:
        raise Damaged(f"the member name {name[:100]!r} is not allowed")
    member = Member(name, crc, length, at)
    if head + raw != _local_head(member):
        raise Damaged(f"the header of {name} is not of the form that an export has")
    if member.start + member.size > size:
        raise Damaged(f"{name} claims more bytes than the file has")
    return member


def _check_directory(file: BinaryIO, members: list[Member], at: int, size: int) -> None:
    file.seek(at)
    for piece in _directory(members, at):
        if file.read(len(piece)) != piece:
            raise Damaged("the list of members at the end is not the one that the members give")
        at += len(piece)
    if at != size:
        raise Damaged(f"{size - at} bytes follow the end")


def _fields(member: Member) -> tuple[int, ...]:
    return _VERSION, 0, 0, 0, _DATE, member.crc, member.size, member.size


def _local_head(member: Member) -> bytes:
    return _LOCAL_HEAD.pack(_LOCAL, *_fields(member), len(member.name), 0) + member.name.encode("ascii")


def _directory(members: list[Member], at: int) -> Iterator[bytes]:
    length = 0
    for member in members:
        piece = _CENTRAL_HEAD.pack(
            _CENTRAL,
            _MADE_BY_UNIX,
            *_fields(member),
            len(member.name),
            0,
            0,
            0,
            0,
            _ATTRIBUTES,
            member.head,
        ) + member.name.encode("ascii")
        length += len(piece)
        yield piece
    yield _END_RECORD.pack(_END, 0, 0, len(members), len(members), length, at, 0)
