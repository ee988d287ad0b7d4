"""What lies in the home directory beside sessions and blobs: what of it names blobs, and what may go."""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from urllib.parse import quote

from leadline.capabilities.retention.providers.scan import BlobNames
from leadline.capabilities.retention.seam import CollectRefused
from leadline.core.home import Home

_SQLITE = b"SQLite format 3\x00"
_GZIP = b"\x1f\x8b"
_ZLIB = b"\x78"
_WITH_GZIP_HEADER = 31
_CHUNK = 1 << 20
_BUSY_S = 30.0
_BESIDE_SQLITE = ("-wal", "-shm", "-journal")
UNFINISHED = ".new"


@dataclass
class Looked:
    """What was found in the files of a home directory."""

    notes: list[str] = field(default_factory=list[str])
    vanished: bool = False
    """Whether a file was moved or removed while they were looked through, so that something may be missed."""


def look_through(home: Home, names: BlobNames, passed_over: AbstractSet[str]) -> Looked:
    """Feed every file of the home directory to `names`, but for blobs and the files `passed_over`.

    Databases are read row by row and packed files are unpacked. It does not matter what a file is for.

    Raises:
        CollectRefused: a file or folder cannot be read.
    """
    looked = Looked()
    for path in _files(home, passed_over):
        try:
            with path.open("rb") as file:
                head = file.read(len(_SQLITE))
            if head == _SQLITE:
                _look_into_database(path, names, looked, rebuildable=path.is_relative_to(home.corpora))
            elif not path.name.endswith(_BESIDE_SQLITE):
                _look_into_file(path, names, packed=head.startswith(_GZIP))
        except FileNotFoundError:
            looked.vanished = True
        except OSError as error:
            raise _unreadable(path, error.strerror or str(error)) from error
    return looked


def _files(home: Home, passed_over: AbstractSet[str]) -> Iterator[Path]:
    """Regular files below home, those of linked folders too, each folder once."""
    seen: set[tuple[int, int]] = set()

    def refuse(error: OSError) -> None:
        raise _unreadable(Path(str(error.filename)), error.strerror or str(error))

    blobs = home.blobs
    skipped = {str(part) for part in _with_parts(home.index)}  # holds only what logs say
    for folder, folders, files in os.walk(home.path, onerror=refuse, followlinks=True):
        here = Path(folder)
        folders[:] = sorted(one for one in folders if here / one != blobs and _first_time(here / one, seen))
        for name in sorted(files):
            path = here / name
            text = str(path)
            if text in passed_over or text in skipped or not path.is_file():
                continue
            yield path


def _first_time(folder: Path, seen: set[tuple[int, int]]) -> bool:
    try:
        info = folder.stat()
    except OSError:
        return True  # walking into it tells
    key = (info.st_dev, info.st_ino)
    if key in seen:
        return False
    seen.add(key)
    return True


def _look_into_file(path: Path, names: BlobNames, *, packed: bool) -> None:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            names.feed(chunk)
        names.end()
        if packed:
            file.seek(0)
            _unpacked(lambda: file.read(_CHUNK), names)


def _unpacked(read: Callable[[], bytes], names: BlobNames) -> None:
    """Feed what a gzip file holds, as far as it can be unpacked; however much that is, a piece at a time."""
    stream = _Stream(names, _WITH_GZIP_HEADER)
    try:
        while data := read():
            while data := stream.feed(data):
                stream = _Stream(names, _WITH_GZIP_HEADER)
    except zlib.error:
        pass  # its own bytes were looked through as well
    names.end()


class _Stream:
    """One compressed stream whose content is fed to `names`, a bounded piece at a time."""

    def __init__(self, names: BlobNames, window: int) -> None:
        self._names = names
        self._unpacker = zlib.decompressobj(window)

    @property
    def ended(self) -> bool:
        return self._unpacker.eof

    def feed(self, data: bytes) -> bytes:
        """Unpack the next bytes; what is behind the end of the stream."""
        while not self._unpacker.eof:
            piece = self._unpacker.decompress(data, _CHUNK)
            self._names.feed(piece)
            data = self._unpacker.unconsumed_tail
            if not data and len(piece) < _CHUNK:
                break
        return self._unpacker.unused_data


def _look_into_database(path: Path, names: BlobNames, looked: Looked, *, rebuildable: bool) -> None:
    try:
        with closing(_connected(path)) as connection:
            for table in _tables(connection):
                _look_into_table(connection, table, names, packed=not rebuildable)
    except sqlite3.OperationalError as error:
        if not path.exists():
            looked.vanished = True
            return
        raise _unreadable(path, str(error)) from error
    except sqlite3.DatabaseError as error:
        if not rebuildable:
            raise _unreadable(path, str(error)) from error
        # Its owner builds it anew. Until then whatever can be made out in it counts.
        looked.notes.append(f"{path} is damaged ({error}); it was looked through as it stands")
        for part in _with_parts(path):
            if part.is_file():
                _look_into_file(part, names, packed=False)


def _look_into_table(connection: sqlite3.Connection, table: str, names: BlobNames, *, packed: bool) -> None:
    """Feed every value of a table; `packed`: also what is in values that are compressed, one after the other."""
    columns = len(connection.execute(f"SELECT * FROM {table} LIMIT 0").description)
    order = ", ".join(str(number + 1) for number in range(min(columns, 2)))
    stream = _Packed(names)
    rows = cast("Iterator[tuple[object, ...]]", connection.execute(f"SELECT * FROM {table} ORDER BY {order}"))
    for value in (value for row in rows for value in row):
        if isinstance(value, str):
            names.whole(value.encode("utf-8", "replace"))
        elif isinstance(value, bytes):
            names.whole(value)
            if packed:
                stream.feed(value)
    names.end()


class _Packed:
    """Feeds to `names` what a compressed stream holds that lies in one value or in several that follow each other."""

    def __init__(self, names: BlobNames) -> None:
        self._names = names
        self._stream: _Stream | None = None

    def feed(self, value: bytes) -> None:
        """The next value; one that neither begins nor continues such a stream is passed over."""
        if self._stream is None and value[:1] == _ZLIB:
            self._stream = _Stream(self._names, zlib.MAX_WBITS)
        if self._stream is None:
            return
        try:
            self._stream.feed(value)
        except zlib.error:  # no such stream after all; the bytes themselves were looked through as well
            self._stream = None
        if self._stream is None or self._stream.ended:
            self._stream = None
            self._names.end()


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=_BUSY_S)
    connection.execute("BEGIN")
    return connection


def _tables(connection: sqlite3.Connection) -> list[str]:
    """Quoted names of the tables, without those of full-text indexes: they hold words of the others."""
    found = cast(
        "list[tuple[str, str]]",
        connection.execute(
            "SELECT name, coalesce(sql, '') FROM sqlite_master WHERE type = 'table'"
        ).fetchall(),
    )
    virtual = [name for name, sql in found if sql.upper().startswith("CREATE VIRTUAL")]
    return [
        '"' + name.replace('"', '""') + '"'
        for name, _ in found
        if name not in virtual and not any(name.startswith(f"{one}_") for one in virtual)
    ]


# --- what may go -------------------------------------------------------------------------------------------


def stale_indexes(home: Home, before: float) -> list[Path]:
    """Indexes of corpora that were used last before that time, in seconds since 1970."""
    found: list[Path] = []
    for path in sorted(home.corpora.glob("*.sqlite")):
        parts = [part for part in _with_parts(path) if part.is_file()]
        try:
            if parts and max(part.stat().st_mtime for part in parts) < before:
                found.append(path)
        except FileNotFoundError:
            continue
    return found


def size_of(path: Path) -> int:
    """Bytes of a database with what lies beside it."""
    return sum(part.stat().st_size for part in _with_parts(path) if part.is_file())


def remove_index(path: Path) -> str:
    """Remove a database that nobody has open; empty, or why it stays."""
    try:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
            try:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                return f"{path} stays: somebody uses it ({error})"
            except sqlite3.DatabaseError:
                pass  # damaged, so that nobody uses it
            for part in _with_parts(path):
                part.unlink(missing_ok=True)
    except (OSError, sqlite3.Error) as error:
        return f"{path} stays: {error}"
    return ""


def leftovers(home: Home, before: float) -> list[Path]:
    """Unfinished files of session stores that nobody has written since that time."""
    found: list[Path] = []
    for path in sorted(home.sessions.glob(f".*{UNFINISHED}")):
        try:
            if path.is_file() and path.stat().st_mtime < before:
                found.append(path)
        except FileNotFoundError:
            continue
    return found


def _with_parts(path: Path) -> list[Path]:
    return [*(path.with_name(path.name + end) for end in _BESIDE_SQLITE), path]


def _unreadable(path: Path, cause: str) -> CollectRefused:
    return CollectRefused(
        f"{path} cannot be read ({cause}), and may name blobs: nothing was removed; "
        "make it readable or move it out of the home directory, then try again"
    )
