"""Listens in on what this process does to the files of one folder, and can make it fail.

While a `Tap` is entered, the functions of `os` that change files are replaced by ones that tell of each
call below the folder; files that are opened for writing through `open` go through them too. What is done
elsewhere goes on as before. SQLite, which writes from C, is heard where its library can be reached.
"""

from __future__ import annotations

import builtins
import io
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self, TypeAlias, cast
from unittest import mock

from leadline.testing.faults.journal import (
    Cut,
    Folder,
    FolderSynced,
    Gone,
    Journal,
    Linked,
    Made,
    Moved,
    Noted,
    Op,
    Synced,
    SyncFailed,
    Wrote,
)
from leadline.testing.faults.sqlite_tap import listening

Kind: TypeAlias = Literal[
    "open", "make", "write", "cut", "sync", "sync_folder", "link", "rename", "remove", "folder"
]
"""open: of a file that is there, for writing. make: of a new file. folder: making one."""


@dataclass(frozen=True)
class Attempt:
    """Something that is about to be done to a file or folder."""

    kind: Kind
    path: str
    """Relative to the folder that is watched."""
    size: int = 0
    """Bytes of a write; the new size of a cut."""


class Obstacle(Protocol):
    """What may stand in the way of an attempt."""

    def __call__(self, attempt: Attempt) -> int | None:
        """None lets it pass; a number lets that many bytes of a write pass.

        Raises:
            OSError: it fails so; nothing is done.
        """
        ...


def nothing(attempt: Attempt) -> int | None:
    """No obstacle."""
    return None


@dataclass(frozen=True)
class _Descriptor:
    path: str
    node: int
    folder: bool
    identity: tuple[int, int]


class Tap:
    """A journal of what is done below a folder while it is entered. One at a time in a process.

    Effects: replaces functions of `os` and `open` until it is left.
    """

    def __init__(self, folder: Path, obstacle: Obstacle = nothing) -> None:
        """What the folder holds on entering counts as synced."""
        self.folder = folder.resolve()
        self.journal = Journal()
        self.obstacle = obstacle
        self.lock = threading.RLock()
        self._nodes: dict[str, int] = {}
        self._open: dict[int, _Descriptor] = {}
        self._next = 0
        self._patches = ExitStack()

    def __enter__(self) -> Self:
        self._take_stock()
        calls = _Calls(self)
        with ExitStack() as patches:
            for name, replacement in calls.replacements().items():
                patches.enter_context(mock.patch.object(os, name, replacement))
            patches.enter_context(_python_open())
            patches.enter_context(listening(self))
            self._patches = patches.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._patches.close()

    def note(self, name: str, value: object = None) -> None:
        """Write something down between the operations."""
        with self.lock:
            self.journal.ops.append(Noted(name, value))

    # --- what the listeners use ---

    def attempt(self, kind: Kind, path: str, size: int = 0) -> int | None:
        """Ask the obstacle; as it answers."""
        return self.obstacle(Attempt(kind, path, size))

    def inside(self, path: str | bytes | os.PathLike[str] | int, dir_fd: int | None = None) -> str | None:
        """A path relative to the folder, or None for one that is elsewhere."""
        if isinstance(path, int):
            return None
        named = Path(os.fsdecode(path))
        if dir_fd is not None and not named.is_absolute():
            named = Path(f"/proc/self/fd/{dir_fd}").readlink() / named
        whole = named.parent.resolve() / named.name
        if whole == self.folder:
            return ""
        return str(whole.relative_to(self.folder)) if whole.is_relative_to(self.folder) else None

    def add(self, op: Op) -> None:
        """Write an operation down; the caller holds the lock since before it happened."""
        self.journal.ops.append(op)

    def here(self) -> int:
        """The number of the next operation."""
        return len(self.journal.ops)

    def node(self, path: str) -> int:
        """The file that has a name now, or a new one that gets it."""
        found = self._nodes.get(path)
        if found is None:
            found = self._nodes[path] = self._next
            self._next += 1
            self.add(Made(path, found))
        return found

    def renamed(self, source: str, target: str) -> None:
        """Follow a name that became another."""
        for path in [one for one in self._nodes if one == source or one.startswith(source + "/")]:
            self._nodes[target + path[len(source) :]] = self._nodes.pop(path)

    def linked(self, source: str, target: str) -> int:
        """Follow a file to a further name."""
        self._nodes[target] = self.node(source)
        return self._nodes[target]

    def forget(self, path: str) -> None:
        """A name is gone."""
        self._nodes.pop(path, None)

    def opened(self, fd: int, path: str) -> None:
        """A descriptor is open on a file or folder of ours."""
        found = os.fstat(fd)
        folder = Path(f"/proc/self/fd/{fd}").is_dir()
        node = -1 if folder else self.node(path)
        self._open[fd] = _Descriptor(path, node, folder, (found.st_dev, found.st_ino))

    def closed(self, fd: int) -> None:
        """A descriptor is not open any more."""
        self._open.pop(fd, None)

    def descriptor(self, fd: int) -> _Descriptor | None:
        """The file or folder of ours behind a descriptor."""
        found = self._open.get(fd)
        if found is None:
            return None
        try:
            now = os.fstat(fd)
        except OSError:
            return None
        return found if found.identity == (now.st_dev, now.st_ino) else None

    def _take_stock(self) -> None:
        """What is there already."""
        folders = [""]
        for root, names, files in os.walk(self.folder):
            for name in sorted(names):
                path = os.path.relpath(Path(root, name), self.folder)
                folders.append(path)
                self.add(Folder(path))
            for name in sorted(files):
                found = Path(root, name)
                if found.is_file() and not found.is_symlink():
                    node = self.node(os.path.relpath(found, self.folder))
                    self.add(Wrote(node, 0, found.read_bytes()))
                    self.add(Synced(node, self.here()))
        for path in folders if len(self.journal.ops) else ():
            self.add(FolderSynced(path, self.here()))


class _Calls:
    """The replacements of the functions of `os`, around the real ones."""

    def __init__(self, tap: Tap) -> None:
        self._tap = tap
        self._real = {name: getattr(os, name) for name in self._names()}

    def _names(self) -> list[str]:
        return [name.removeprefix("_do_") for name in dir(self) if name.startswith("_do_")]

    def replacements(self) -> dict[str, Callable[..., object]]:
        """By the name of the function of `os`."""
        return {name: getattr(self, f"_do_{name}") for name in self._names()}

    def _do_open(self, path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        tap, real = self._tap, cast("Callable[..., int]", self._real["open"])
        ours = tap.inside(path, dir_fd)
        writes = bool(flags & (os.O_WRONLY | os.O_RDWR))
        if ours is None or not (writes or flags & os.O_CREAT or Path(path).is_dir()):
            fd = real(path, flags, mode, dir_fd=dir_fd)
            tap.closed(fd)
            if ours is not None:  # a file that is read may be synced through the same descriptor
                with tap.lock:
                    tap.opened(fd, ours)
            return fd
        there = os.path.lexists(path)
        if writes:
            tap.attempt("open" if there else "make", ours)
        with tap.lock:
            fd = real(path, flags, mode, dir_fd=dir_fd)
            if not there:
                tap.forget(ours)
            tap.opened(fd, ours)
            if flags & os.O_TRUNC and there:
                tap.add(Cut(tap.node(ours), 0))
        return fd

    def _do_close(self, fd: int) -> None:
        self._tap.closed(fd)
        self._real["close"](fd)

    def _do_write(self, fd: int, data: bytes) -> int:
        tap, real = self._tap, cast("Callable[[int, object], int]", self._real["write"])
        found = tap.descriptor(fd)
        if found is None:
            return real(fd, data)
        room = tap.attempt("write", found.path, len(data))
        with tap.lock:
            import fcntl  # noqa: PLC0415 - there is none on every system, and a tap is needed on few

            appends = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND
            at = os.fstat(fd).st_size if appends else os.lseek(fd, 0, os.SEEK_CUR)
            part = data if room is None else bytes(data)[:room]
            written = real(fd, part)
            tap.add(Wrote(found.node, at, bytes(part)[:written]))
        return written

    def _do_pwrite(self, fd: int, data: bytes, offset: int) -> int:
        tap, real = self._tap, cast("Callable[[int, object, int], int]", self._real["pwrite"])
        found = tap.descriptor(fd)
        if found is None:
            return real(fd, data, offset)
        room = tap.attempt("write", found.path, len(data))
        with tap.lock:
            written = real(fd, data if room is None else bytes(data)[:room], offset)
            tap.add(Wrote(found.node, offset, bytes(data)[:written]))
        return written

    def _do_writev(self, fd: int, buffers: list[bytes]) -> int:
        return self._do_write(fd, b"".join(map(bytes, buffers)))

    def _do_ftruncate(self, fd: int, length: int) -> None:
        tap = self._tap
        found = tap.descriptor(fd)
        if found is not None:
            tap.attempt("cut", found.path, length)
        with tap.lock:
            self._real["ftruncate"](fd, length)
            if found is not None:
                tap.add(Cut(found.node, length))

    def _do_truncate(self, path: str | int, length: int) -> None:
        if isinstance(path, int):
            self._do_ftruncate(path, length)
            return
        fd = self._do_open(path, os.O_WRONLY)
        try:
            self._do_ftruncate(fd, length)
        finally:
            self._do_close(fd)

    def _do_fsync(self, fd: int) -> None:
        self._sync("fsync", fd)

    def _do_fdatasync(self, fd: int) -> None:
        self._sync("fdatasync", fd)

    def _sync(self, how: str, fd: int) -> None:
        tap = self._tap
        found = tap.descriptor(fd)
        if found is None:
            self._real[how](fd)
            return
        upto = tap.here()  # what is written while the disk is at it need not be in it
        try:
            tap.attempt("sync_folder" if found.folder else "sync", found.path)
            self._real[how](fd)
        except OSError:
            with tap.lock:
                if not found.folder:
                    tap.add(SyncFailed(found.node, upto))
            raise
        with tap.lock:
            tap.add(FolderSynced(found.path, upto) if found.folder else Synced(found.node, upto))

    def _do_link(self, src: str, dst: str, **where: object) -> None:
        tap = self._tap
        source, target = tap.inside(src), tap.inside(dst)
        if target is not None:
            tap.attempt("link", target)
        with tap.lock:
            self._real["link"](src, dst, **where)
            if source is not None and target is not None:
                tap.add(Linked(target, tap.linked(source, target)))

    def _do_rename(self, src: str, dst: str, **where: object) -> None:
        self._move("rename", src, dst, where)

    def _do_replace(self, src: str, dst: str, **where: object) -> None:
        self._move("replace", src, dst, where)

    def _move(self, how: str, src: str, dst: str, where: dict[str, object]) -> None:
        tap = self._tap
        source, target = tap.inside(src), tap.inside(dst)
        if target is not None:
            tap.attempt("rename", target)
        with tap.lock:
            self._real[how](src, dst, **where)
            if source is not None and target is not None:
                tap.renamed(source, target)
                tap.add(Moved(source, target))

    def _do_unlink(self, path: str, *, dir_fd: int | None = None) -> None:
        self._remove("unlink", path, dir_fd)

    def _do_remove(self, path: str, *, dir_fd: int | None = None) -> None:
        self._remove("remove", path, dir_fd)

    def _do_rmdir(self, path: str, *, dir_fd: int | None = None) -> None:
        self._remove("rmdir", path, dir_fd)

    def _remove(self, how: str, path: str, dir_fd: int | None) -> None:
        tap = self._tap
        ours = tap.inside(path, dir_fd)
        if ours is not None:
            tap.attempt("remove", ours)
        with tap.lock:
            self._real[how](path, dir_fd=dir_fd)
            if ours is not None:
                tap.forget(ours)
                tap.add(Gone(ours))

    def _do_mkdir(self, path: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        tap = self._tap
        ours = tap.inside(path, dir_fd)
        if ours is not None and not os.path.lexists(path):
            tap.attempt("folder", ours)
        with tap.lock:
            self._real["mkdir"](path, mode, dir_fd=dir_fd)
            if ours:
                tap.add(Folder(ours))


def _python_open() -> AbstractContextManager[object]:
    """`open` for writing by way of `os.open` and `os.write`, which the built-in one does not use."""
    import _pyio  # type: ignore[import-not-found]  # noqa: PLC0415 - heavy, and only needed here

    real = io.open
    through_os = cast("Callable[..., object]", _pyio.open)  # type: ignore[attr-defined]

    def opened(file: object, mode: str = "r", *arguments: object, **options: object) -> object:
        chosen = through_os if set(mode) & set("wxa+") else real
        return chosen(file, mode, *arguments, **options)  # type: ignore[operator]

    both = ExitStack()
    both.enter_context(mock.patch.object(io, "open", opened))
    both.enter_context(mock.patch.object(builtins, "open", opened))
    return both
