"""What was done to the files of a folder, operation by operation, so that it can be played again up to any point."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias, Union

import msgspec


class _Op(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """One operation. Files are numbered, since a name can be given to another file; paths are relative to the folder."""


class Made(_Op, frozen=True):
    """A new, empty file has a name."""

    path: str
    node: int


class Folder(_Op, frozen=True):
    """A new folder has a name."""

    path: str


class Wrote(_Op, frozen=True):
    """Bytes were written into a file."""

    node: int
    at: int
    data: bytes


class Cut(_Op, frozen=True):
    """A file was made shorter, or longer with zeros."""

    node: int
    size: int


class Linked(_Op, frozen=True):
    """A file has a further name."""

    path: str
    node: int


class Moved(_Op, frozen=True):
    """A name became another, and replaced what had it."""

    source: str
    target: str


class Gone(_Op, frozen=True):
    """A name was taken away."""

    path: str


class Synced(_Op, frozen=True):
    """What was written to a file before operation number `upto` survives a power cut."""

    node: int
    upto: int


class SyncFailed(_Op, frozen=True):
    """A sync of a file failed. What was written before operation number `upto` is no longer waiting to be kept.

    As systems do: pages whose writing failed count as clean, so that the next sync succeeds without them. Only what is
    written anew is kept by it.
    """

    node: int
    upto: int


class FolderSynced(_Op, frozen=True):
    """The names that a folder had before operation number `upto` survive a power cut."""

    path: str
    upto: int


class Noted(_Op, frozen=True):
    """The work said something: what it has promised, or what was paid for. Nothing on the disk changed."""

    name: str
    value: object
    """Plain values, as JSON has them."""


Op: TypeAlias = Union[Made, Folder, Wrote, Cut, Linked, Moved, Gone, Synced, SyncFailed, FolderSynced, Noted]  # noqa: UP007 - msgspec decodes it


class Journal(msgspec.Struct):
    """Every operation in the order in which it happened, and what the work came to."""

    ops: list[Op] = msgspec.field(default_factory=list[Op])
    outcome: object = None

    def __iter__(self) -> Iterator[Op]:  # type: ignore[override]
        return iter(self.ops)

    def save(self, path: Path) -> None:
        """Write it to a file."""
        path.write_bytes(msgspec.msgpack.encode(self))

    @classmethod
    def load(cls, path: Path) -> Journal:
        """What `save` wrote."""
        return msgspec.msgpack.decode(path.read_bytes(), type=Journal)


def told(op: Op, names: dict[int, str]) -> str:
    """An operation in words; `names` are the paths of the files by number, as far as they are known."""
    match op:
        case Wrote(node, at, data):
            return f"write of {len(data)} bytes at {at} of {names.get(node, f'file {node}')}"
        case Cut(node, size):
            return f"cut of {names.get(node, f'file {node}')} to {size} bytes"
        case Made(path, _):
            return f"making of {path}"
        case Folder(path):
            return f"making of the folder {path}"
        case Linked(path, node):
            return f"link of {names.get(node, f'file {node}')} as {path}"
        case Moved(source, target):
            return f"rename of {source} to {target}"
        case Gone(path):
            return f"removal of {path}"
        case Synced(node, _):
            return f"sync of {names.get(node, f'file {node}')}"
        case SyncFailed(node, _):
            return f"failed sync of {names.get(node, f'file {node}')}"
        case FolderSynced(path, _):
            return f"sync of the folder {path or '.'}"
        case Noted(name, value):
            return f"note {name} {value}"
