"""Listens in on what SQLite does to its files, which it writes from C.

The table of functions by which SQLite reaches the operating system is exchanged for one that tells a `Tap` of
each write, sync, cut and removal below its folder, and lets its obstacle refuse them. This needs the
SQLite library of this Python as a shared library, which is how it is built on most systems (`reachable`).
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from leadline.testing.faults.journal import Cut, FolderSynced, Gone, Synced, SyncFailed, Wrote

if TYPE_CHECKING:
    from leadline.testing.faults.tap import Kind, Tap

_OK, _IOERR, _FULL, _CANTOPEN = 0, 10, 13, 14
_IOERR_WRITE, _IOERR_FSYNC, _IOERR_TRUNCATE, _IOERR_DELETE = 778, 1034, 1546, 2570
_MAIN_JOURNAL, _SUPER_JOURNAL, _WAL = 0x800, 0x4000, 0x80000
_SYNCS_ITS_FOLDER = _MAIN_JOURNAL | _SUPER_JOURNAL | _WAL
"""Files whose first sync also syncs the folder that they were made in."""

_File = ctypes.c_void_p
_Close = ctypes.CFUNCTYPE(ctypes.c_int, _File)
_Write = ctypes.CFUNCTYPE(ctypes.c_int, _File, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64)
_Truncate = ctypes.CFUNCTYPE(ctypes.c_int, _File, ctypes.c_int64)
_Sync = ctypes.CFUNCTYPE(ctypes.c_int, _File, ctypes.c_int)
_Open = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, _File, ctypes.c_int, ctypes.POINTER(ctypes.c_int)
)
_Delete = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)


class _Methods(ctypes.Structure):
    """`sqlite3_io_methods`: what can be done with an open file."""

    _fields_: ClassVar[Any] = [
        ("version", ctypes.c_int),
        ("close", _Close),
        ("read", ctypes.c_void_p),
        ("write", _Write),
        ("truncate", _Truncate),
        ("sync", _Sync),
        *((f"other{n}", ctypes.c_void_p) for n in range(13)),
    ]


class _Vfs(ctypes.Structure):
    """The beginning of `sqlite3_vfs`: how files are opened and removed."""

    _fields_: ClassVar[Any] = [
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest_path", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("open", _Open),
        ("delete", _Delete),
    ]


def _library() -> ctypes.CDLL | None:
    try:
        import _sqlite3  # noqa: PLC0415 - not every Python has it

        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        library.sqlite3_vfs_find.argtypes = [ctypes.c_char_p]
    except (ImportError, AttributeError, OSError):
        return None
    return library


def reachable() -> bool:
    """Whether the SQLite library of this Python can be listened to."""
    return _library() is not None


@contextmanager
def listening(tap: Tap) -> Generator[None]:
    """Tell `tap` of what SQLite does, while the block runs; nothing where the library is out of reach.

    Connections that are open already are not heard; those that are opened within stay heard until they close.
    """
    library = _library()
    if library is None:
        yield
        return
    vfs = library.sqlite3_vfs_find(None).contents
    listener = _Listener(tap, vfs)
    try:
        yield
    finally:
        listener.leave()


class _OpenFile:
    def __init__(self, path: str, node: int, fresh: bool) -> None:
        self.path = path
        self.node = node
        self.fresh = fresh


class _Listener:
    """Stands between SQLite and its functions. Kept alive by the files that are still open through it."""

    _kept: ClassVar[list[_Listener]] = []
    """A table of functions has to outlive the connections that were opened by it."""

    def __init__(self, tap: Tap, vfs: Any) -> None:
        self._tap: Tap | None = tap
        self._vfs = vfs
        self._open, self._delete = vfs.open, vfs.delete
        self._real_open = _Open(ctypes.cast(vfs.open, ctypes.c_void_p).value or 0)
        self._real_delete = _Delete(ctypes.cast(vfs.delete, ctypes.c_void_p).value or 0)
        self._mine = (_Open(self._on_open), _Delete(self._on_delete))
        self._files: dict[int, _OpenFile] = {}
        self._tables: dict[int, tuple[_Methods, _Methods]] = {}
        vfs.open, vfs.delete = self._mine
        self._kept.append(self)

    def leave(self) -> None:
        """Hear no more."""
        self._vfs.open, self._vfs.delete = self._real_open, self._real_delete
        self._tap = None

    def _on_open(self, vfs: int, name: int | None, file: int, flags: int, out: Any) -> int:
        tap = self._tap
        path = ctypes.string_at(name) if name else b""
        ours = tap.inside(path) if tap is not None and path else None
        if tap is None or not ours:
            return self._real_open(vfs, name, file, flags, out)
        there = os.path.lexists(path)
        refused = self._refused("open" if there else "make", ours, _CANTOPEN)
        if refused is not None:
            ctypes.cast(file, ctypes.POINTER(ctypes.c_void_p))[0] = None  # what is not open has no functions
            return refused
        with tap.lock:
            code = self._real_open(vfs, name, file, flags, out)
            if code == _OK:
                if not there:
                    tap.forget(ours)
                fresh = not there and bool(flags & _SYNCS_ITS_FOLDER)
                self._files[file] = _OpenFile(ours, tap.node(ours), fresh)
                self._exchange(file)
        return code

    def _exchange(self, file: int) -> None:
        """Give an open file the table of functions that tells."""
        place = ctypes.cast(file, ctypes.POINTER(ctypes.c_void_p))
        real = place[0] or 0
        if real not in self._tables:
            theirs = _Methods.from_address(real)
            mine = _Methods.from_buffer_copy(theirs)
            mine.close, mine.write = _Close(self._on_close(theirs)), _Write(self._on_write(theirs))
            mine.truncate, mine.sync = _Truncate(self._on_truncate(theirs)), _Sync(self._on_sync(theirs))
            self._tables[real] = (theirs, mine)
        place[0] = ctypes.addressof(self._tables[real][1])

    def _on_close(self, real: _Methods) -> Callable[[int], int]:
        def close(file: int) -> int:
            self._files.pop(file, None)
            return real.close(file)

        return close

    def _on_write(self, real: _Methods) -> Callable[[int, int, int, int], int]:
        def write(file: int, data: int, size: int, offset: int) -> int:
            tap, found = self._tap, self._files.get(file)
            if tap is None or found is None:
                return real.write(file, data, size, offset)
            try:
                room = self._attempt("write", found.path, size)
            except OSError as error:
                return _code(error, _IOERR_WRITE)
            part = size if room is None else min(room, size)
            with tap.lock:
                code = real.write(file, data, part, offset)
                if code == _OK:
                    tap.add(Wrote(found.node, offset, ctypes.string_at(data, part)))
            return code if part == size else _FULL

        return write

    def _on_truncate(self, real: _Methods) -> Callable[[int, int], int]:
        def truncate(file: int, size: int) -> int:
            tap, found = self._tap, self._files.get(file)
            if tap is None or found is None:
                return real.truncate(file, size)
            refused = self._refused("cut", found.path, _IOERR_TRUNCATE, size)
            if refused is not None:
                return refused
            with tap.lock:
                code = real.truncate(file, size)
                if code == _OK:
                    tap.add(Cut(found.node, size))
            return code

        return truncate

    def _on_sync(self, real: _Methods) -> Callable[[int, int], int]:
        def sync(file: int, flags: int) -> int:
            tap, found = self._tap, self._files.get(file)
            if tap is None or found is None:
                return real.sync(file, flags)
            upto = tap.here()
            refused = self._refused("sync", found.path, _IOERR_FSYNC)
            if refused is not None:
                with tap.lock:
                    tap.add(SyncFailed(found.node, upto))
                return refused
            code = real.sync(file, flags)
            with tap.lock:
                if code == _OK:
                    tap.add(Synced(found.node, upto))
                    if found.fresh:
                        tap.add(FolderSynced(found.path.rpartition("/")[0], upto))
                        found.fresh = False
            return code

        return sync

    def _on_delete(self, vfs: int, name: bytes, sync_folder: int) -> int:
        tap = self._tap
        ours = tap.inside(name) if tap is not None else None
        if tap is None or not ours:
            return self._real_delete(vfs, name, sync_folder)
        refused = self._refused("remove", ours, _IOERR_DELETE)
        if refused is not None:
            return refused
        with tap.lock:
            code = self._real_delete(vfs, name, sync_folder)
            if code == _OK:
                tap.forget(ours)
                tap.add(Gone(ours))
                if sync_folder:
                    tap.add(FolderSynced(ours.rpartition("/")[0], tap.here()))
        return code

    def _attempt(self, kind: Kind, path: str, size: int = 0) -> int | None:
        return self._tap.attempt(kind, path, size) if self._tap is not None else None

    def _refused(self, kind: Kind, path: str, otherwise: int, size: int = 0) -> int | None:
        try:
            self._attempt(kind, path, size)
        except OSError as error:
            return _code(error, otherwise)
        return None


def _code(error: OSError, otherwise: int) -> int:
    return _FULL if error.errno == errno.ENOSPC else otherwise
