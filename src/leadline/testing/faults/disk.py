"""A disk in memory that a journal is played on: what a killed process leaves, and what a power cut leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal, TypeAlias

from leadline.testing.faults.journal import (
    Cut,
    Folder,
    FolderSynced,
    Gone,
    Linked,
    Made,
    Moved,
    Noted,
    Op,
    Synced,
    SyncFailed,
    Wrote,
)

Loss: TypeAlias = Literal["dropped", "torn", "scattered"]
"""What a power cut does to what was not synced. dropped: none of it is there. torn: of each file and
of the names, what came first is there, with the last write cut off, or its length there and its bytes
zero. scattered: any sectors and any names are there, in whatever order they were written."""

SECTOR = 512
_DIRECTORY = -1
Names: TypeAlias = dict[str, int]
"""Path -> number of the file, or -1 for a folder."""


@dataclass
class _Node:
    content: bytearray = field(default_factory=bytearray)
    safe: bytearray = field(default_factory=bytearray)
    """What survives a power cut for certain."""
    pending: list[tuple[int, Wrote | Cut]] = field(default_factory=list[tuple[int, Wrote | Cut]])
    given_up: list[Wrote | Cut] = field(default_factory=list[Wrote | Cut])
    """What the system no longer means to keep, since a sync failed: it may be there, but no sync brings it."""


@dataclass(frozen=True)
class _Renaming:
    """A change of the names in one folder."""

    index: int
    folder: str
    do: Callable[[Names], None]


class Disk:
    """The files under one folder. `apply` operations in order; look at them with `after_kill` and `after_power_cut`."""

    def __init__(self) -> None:
        self._nodes: dict[int, _Node] = {}
        self._names: Names = {}
        self._safe: Names = {}
        self._pending: list[_Renaming] = []
        self.notes: list[Noted] = []
        """What the work has said so far."""

    def names(self) -> dict[int, str]:
        """A path of each file that has one, by its number."""
        return {node: path for path, node in self._names.items() if node != _DIRECTORY}

    def apply(self, index: int, op: Op) -> None:
        """Let operation number `index` happen."""
        match op:
            case Wrote() | Cut():
                node = self._nodes[op.node]
                _change(node.content, op)
                node.pending.append((index, op))
            case Made(path, number) | Linked(path, number):
                self._nodes.setdefault(number, _Node())
                self._rename(index, path, lambda names: names.__setitem__(path, number))
            case Folder(path):
                self._rename(index, path, lambda names: names.__setitem__(path, _DIRECTORY))
            case Gone(path):
                self._rename(index, path, lambda names: _remove(names, path))
            case Moved(source, target):
                self._move(index, source, target)
            case Synced(number, upto):
                self._sync(self._nodes[number], upto)
            case SyncFailed(number, upto):
                node = self._nodes[number]
                node.given_up += [one for index, one in node.pending if index < upto]
                node.pending = [one for one in node.pending if one[0] >= upto]
            case FolderSynced(path, upto):
                self._sync_folder(path, upto)
            case Noted():
                self.notes.append(op)

    def _rename(self, index: int, path: str, do: Callable[[Names], None]) -> None:
        do(self._names)
        self._pending.append(_Renaming(index, _parent(path), do))

    def _move(self, index: int, source: str, target: str) -> None:
        moved = {path: node for path, node in self._names.items() if _within(path, source)}

        def arrive(names: Names) -> None:
            for path, node in moved.items():
                names[target + path[len(source) :]] = node

        def leave(names: Names) -> None:
            for path in moved:
                names.pop(path, None)

        if _parent(source) == _parent(target):

            def both(names: Names) -> None:
                leave(names)
                arrive(names)

            self._rename(index, target, both)
        else:
            self._rename(index, target, arrive)
            self._rename(index, source, leave)

    def _sync(self, node: _Node, upto: int) -> None:
        late: list[tuple[int, Wrote | Cut]] = []
        for index, op in node.pending:
            if index < upto:
                _change(node.safe, op)
                node.given_up = [one for one in node.given_up if not _covers(op, one)]
            else:
                late.append((index, op))
        node.pending = late

    def _sync_folder(self, folder: str, upto: int) -> None:
        late: list[_Renaming] = []
        for one in self._pending:
            if one.folder == folder and one.index < upto:
                one.do(self._safe)
            else:
                late.append(one)
        self._pending = late

    def after_kill(self, unfinished: Wrote | None = None, part: int = 0) -> Contents:
        """What is there when the process is dead: everything that it did. `part` bytes of `unfinished` came through."""
        contents = {number: bytes(node.content) for number, node in self._nodes.items()}
        if unfinished is not None:
            content = bytearray(contents[unfinished.node])
            _change(content, Wrote(unfinished.node, unfinished.at, unfinished.data[:part]))
            contents[unfinished.node] = bytes(content)
        return Contents.of(self._names, contents)

    def after_power_cut(self, loss: Loss, seed: int = 0) -> Contents:
        """What is there after the power was cut now: what was synced, and of the rest what `loss` and `seed` say."""
        random = Random(seed)
        names = dict(self._safe)
        for one in _survivors(self._pending, loss, random):
            one.do(names)
        contents: dict[int, bytes] = {}
        for number, node in self._nodes.items():
            content = bytearray(node.safe)
            for op in _lost(node, loss, random):
                _change(content, op)
            contents[number] = bytes(content)
        return Contents.of(names, contents)


@dataclass(frozen=True)
class Contents:
    """Folders and files, by their paths relative to the folder that was watched."""

    folders: tuple[str, ...]
    files: dict[str, bytes]

    @classmethod
    def of(cls, names: Names, contents: dict[int, bytes]) -> Contents:
        """What can be reached by the names."""
        folders = {""}
        for path in sorted(names, key=lambda path: path.count("/")):
            if names[path] == _DIRECTORY and _parent(path) in folders:
                folders.add(path)
        files = {
            path: contents[node]
            for path, node in names.items()
            if node != _DIRECTORY and _parent(path) in folders
        }
        return cls(tuple(sorted(folders - {""})), files)

    def write(self, folder: Path) -> None:
        """Make them in `folder`, which is made where it is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        for path in self.folders:
            (folder / path).mkdir(parents=True, exist_ok=True)
        for path, content in self.files.items():
            (folder / path).write_bytes(content)


def _survivors(pending: list[_Renaming], loss: Loss, random: Random) -> list[_Renaming]:
    match loss:
        case "dropped":
            return []
        case "torn":
            return pending[: random.randint(0, len(pending))]
        case "scattered":
            return [one for one in pending if random.random() < 0.5]


def _lost(node: _Node, loss: Loss, random: Random) -> Iterator[Wrote | Cut]:
    """The part of what was not synced that is there all the same."""
    ops = [*node.given_up, *(op for _, op in node.pending)]
    if loss == "dropped" or not ops:
        return
    if loss == "torn":
        whole = random.randint(0, len(ops))
        yield from ops[:whole]
        if whole < len(ops):
            yield from _torn(ops[whole], random)
        return
    for op in ops:
        if isinstance(op, Cut):
            if random.random() < 0.5:
                yield op
            continue
        for at in range(0, len(op.data), SECTOR):
            if random.random() < 0.5:
                yield Wrote(op.node, op.at + at, op.data[at : at + SECTOR])


def _torn(op: Wrote | Cut, random: Random) -> Iterator[Wrote | Cut]:
    if isinstance(op, Cut):
        return
    kept = random.randint(0, len(op.data))
    yield Wrote(op.node, op.at, op.data[:kept])
    if random.random() < 0.5:
        yield Wrote(op.node, op.at + kept, bytes(len(op.data) - kept))


def _covers(newer: Wrote | Cut, older: Wrote | Cut) -> bool:
    """Whether a write stands where an older one stood."""
    if isinstance(newer, Cut) or isinstance(older, Cut):
        return False
    return newer.at < older.at + len(older.data) and older.at < newer.at + len(newer.data)


def _change(content: bytearray, op: Wrote | Cut) -> None:
    if isinstance(op, Cut):
        if op.size < len(content):
            del content[op.size :]
        else:
            content.extend(bytes(op.size - len(content)))
        return
    if not op.data:
        return
    if op.at > len(content):
        content.extend(bytes(op.at - len(content)))
    content[op.at : op.at + len(op.data)] = op.data


def _remove(names: Names, path: str) -> None:
    names.pop(path, None)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")
