"""The container of a bundle: a ZIP file of which every byte follows from its members.

Members are sorted by name and stored uncompressed, with one fixed date and fixed attributes. They are stored
rather than deflated because the output of deflate differs between versions of zlib: a bundle must come out the
same on every machine, and `verify` compares all bytes. The price is size (a text is about three times as large),
which a reader can mend by compressing the bundle as a whole.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from leadline.kernel.errors import LeadlineError

MAX_BUNDLE_BYTES = 1 << 30
MAX_MEMBERS = 20_000
MAX_NAME = 200

_LOCAL, _CENTRAL, _END = 0x04034B50, 0x02014B50, 0x06054B50
_DATE = (1 << 5) | 1  # 1980-01-01, the first day that the format knows
_VERSION = 20
_MADE_BY_UNIX = (3 << 8) | _VERSION
_ATTRIBUTES = 0o100644 << 16
_WITHOUT_WAITING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class BundleError(LeadlineError):
    """A bundle cannot be written or read."""


class NotABundle(BundleError):
    """The file is not a bundle at all, as opposed to one that does not hold."""

    def __init__(self, path: Path, cause: str) -> None:
        super().__init__(
            f"{path}: not a bundle: {cause}. Name a .leadline file that a run or an export wrote."
        )
        self.path = path


class BundleTooLarge(BundleError):
    """A bundle is beyond what this program will write or read."""


class DamagedArchive(BundleError):
    """The container breaks its own rules; `problems` says how."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class _Entry:
    name: bytes
    crc: int
    size: int
    offset: int


def pack(members: Mapping[str, bytes]) -> Iterator[bytes]:
    """The bytes of the archive, piece by piece. The same members give the same bytes, everywhere.

    Raises:
        BundleTooLarge: more than `MAX_BUNDLE_BYTES` or `MAX_MEMBERS`.
        ValueError: a name that is not a plain relative ASCII path (a defect of the caller).
    """
    if len(members) > MAX_MEMBERS:
        raise BundleTooLarge(f"the bundle would have {len(members)} members, more than {MAX_MEMBERS}")
    entries: list[_Entry] = []
    offset = 0
    for name in sorted(members):
        if not is_safe_name(name):
            raise ValueError(f"{name!r} cannot be the name of a member")
        data = members[name]
        entry = _Entry(name.encode("ascii"), zlib.crc32(data), len(data), offset)
        entries.append(entry)
        header = struct.pack("<IHHHHHIIIHH", _LOCAL, *_fields(entry), len(entry.name), 0) + entry.name
        offset += len(header) + len(data)
        if offset > MAX_BUNDLE_BYTES:
            raise BundleTooLarge(
                f"the bundle would be larger than {MAX_BUNDLE_BYTES} bytes; narrow the corpus"
            )
        yield header
        yield data
    directory = b"".join(_central(entry) for entry in entries)
    yield directory
    yield struct.pack("<IHHHHIIH", _END, 0, 0, len(entries), len(entries), len(directory), offset, 0)


def _fields(entry: _Entry) -> tuple[int, ...]:
    return _VERSION, 0, 0, 0, _DATE, entry.crc, entry.size, entry.size


def _central(entry: _Entry) -> bytes:
    fields = struct.pack(
        "<IHHHHHHIIIHHHHHII",
        _CENTRAL,
        _MADE_BY_UNIX,
        *_fields(entry),
        len(entry.name),
        0,
        0,
        0,
        0,
        _ATTRIBUTES,
        entry.offset,
    )
    return fields + entry.name


def is_safe_name(name: str) -> bool:
    """A relative path of plain ASCII names: no parent, drive, separator of another system or control character."""
    if not name or len(name) > MAX_NAME or not name.isascii() or not name.isprintable():
        return False
    if any(mark in name for mark in '\\:*?"<>|'):
        return False
    return all(part not in ("", ".", "..") for part in name.split("/"))


def read_bytes(path: Path) -> bytes:
    """The bytes of what may be a bundle, read once, so that all that is said of it is said of the same bytes.

    Raises:
        NotABundle: no ordinary file; a device or a pipe could go on without end.
        BundleTooLarge: larger than this program will read.
        OSError: the file cannot be read.
    """
    with os.fdopen(os.open(path, _WITHOUT_WAITING), "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode):
            raise NotABundle(path, "it is no ordinary file")
        if info.st_size > MAX_BUNDLE_BYTES:
            raise BundleTooLarge(
                f"{path}: {info.st_size} bytes, more than {MAX_BUNDLE_BYTES}; this program does not read it"
            )
        return file.read(MAX_BUNDLE_BYTES + 1)


def unpack(raw: bytes, path: Path) -> dict[str, bytes]:
    """The members of an archive, every byte of which has been accounted for.

    Raises:
        NotABundle: no ZIP file, or one without a manifest; `path` is named.
        DamagedArchive: it was a bundle, but its bytes are not those that its members give.
    """
    try:
        members = _members(raw)
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        EOFError,
        ValueError,
        struct.error,
        zlib.error,
    ) as error:
        if looks_like_bundle(raw):
            raise DamagedArchive([f"the archive cannot be read: {error}"]) from error
        raise NotABundle(path, "it is not a ZIP file of the bundle's form") from error
    if members is None:
        raise NotABundle(path, "it has no manifest.json")
    _compare(raw, members)
    return members


def looks_like_bundle(raw: bytes) -> bool:
    """Whether damaged bytes were once a bundle: they still hold two of the words that every bundle has."""
    return sum(word in raw for word in (b"manifest.json", b"leadline-bundle", b"ledger.jsonl")) >= 2


def _members(raw: bytes) -> dict[str, bytes] | None:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        infos = archive.infolist()
        names = [info.filename for info in infos]
        if "manifest.json" not in names and not looks_like_bundle(raw):
            return None
        problems = [f"the member name {name!r} is not allowed" for name in names if not is_safe_name(name)]
        problems += (
            [
                f"the member {name} is there twice"
                for name, count in sorted(Counter(names).items())
                if count > 1
            ]
            if len(names) <= MAX_MEMBERS
            else [f"it has {len(names)} members, more than {MAX_MEMBERS}"]
        )
        problems += [
            f"the member {info.filename} is compressed; a bundle only stores"
            for info in infos
            if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size
        ]
        if sum(info.file_size for info in infos) > len(raw):
            problems.append("the members claim more bytes than the file has")
        if problems:
            raise DamagedArchive(problems)
        return {info.filename: archive.read(info) for info in infos}


def _compare(raw: bytes, members: Mapping[str, bytes]) -> None:
    """Build the archive again from its members and compare all bytes."""
    at = 0
    for piece in pack(members):
        if not raw.startswith(piece, at):
            raise DamagedArchive([f"the bytes from {at} on are not those that the members give"])
        at += len(piece)
    if at != len(raw):
        raise DamagedArchive([f"{len(raw) - at} bytes follow the end of the archive"])
