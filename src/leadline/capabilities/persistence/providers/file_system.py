"""Which file system a path lies on, and how a database can be kept safe there.

A write-ahead log needs memory that all its users share and see alike. Network and host mounts do not
offer that, so that two users overwrite each other's pages; there the database uses a rollback journal,
which needs locks alone. Where not even locks can be relied on, the database is refused.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from leadline.kernel.errors import LeadlineError

Journal: TypeAlias = Literal["wal", "rollback"]
"""wal: appends are one write, syncs are shared. rollback: each append is synced by itself."""

_LOCAL = frozenset(
    [
        "ext2",
        "ext3",
        "ext4",
        "xfs",
        "btrfs",
        "zfs",
        "f2fs",
        "bcachefs",
        "jfs",
        "nilfs2",
        "reiserfs",
        "ubifs",
        "tmpfs",
        "ramfs",
        "overlay",
        "hfsplus",
        "apfs",
        "ntfs3",
        "exfat",
        "vfat",
    ]
)
"""Kinds of one machine, whose users share memory. What is not known is treated as what may be elsewhere."""

_WITHOUT_LOCKS = frozenset(
    [
        "afs",
        "coda",
        "davfs",
        "fuse.davfs",
        "fuse.davfs2",
        "fuse.sshfs",
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.gcsfuse",
        "fuse.goofys",
        "fuse.mount-s3",
        "fuse.blobfuse",
        "fuse.curlftpfs",
    ]
)
"""Kinds whose locks, if they have any, are not seen by another machine, or whose files cannot be written in place."""

_OPTIONS_WITHOUT_LOCKS = frozenset(("nolock", "nobrl", "local_lock=all", "local_lock=posix"))
_ESCAPED = re.compile(r"\\([0-7]{3})")
_MOUNTS = Path("/proc/self/mountinfo")


class FileSystemUnsafe(LeadlineError):
    """A database cannot be kept safe on the file system of its path. Nothing was touched."""


@dataclass(frozen=True, slots=True)
class FileSystem:
    """Where a path lies."""

    kind: str
    """As the system calls it: `ext4`, `nfs4`, `fuse.sshfs`, ...; empty where it does not tell."""
    mounted_at: str
    options: frozenset[str] = frozenset()


def mounts() -> str:
    """The system's own table of mounts; empty where it has none."""
    try:
        return _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def file_system_of(path: Path, table: str) -> FileSystem:
    """Where `path`, or what of it exists, lies according to `table`, which is in the form of `mounts`."""
    place = os.path.realpath(path)
    found = FileSystem("", "")
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        fields, described = before.split(" "), after.split(" ")
        if len(fields) < 6 or not described[0]:
            continue
        at = _ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), fields[4])
        # Of two mounts at one place the later one is seen.
        if len(at) >= len(found.mounted_at) and (place == at or place.startswith(at.rstrip("/") + "/")):
            options = ",".join([fields[5], *described[2:3]])
            found = FileSystem(described[0], at, frozenset(options.split(",")))
    return found


def journal_on(path: Path, table: str) -> Journal:
    """The journal with which a database at `path` is safe.

    Raises:
        FileSystemUnsafe: there is none.
    """
    found = file_system_of(path, table)
    if found.kind in _LOCAL:
        return "wal"
    unlocked = found.options & _OPTIONS_WITHOUT_LOCKS
    if found.kind in _WITHOUT_LOCKS or unlocked:
        how = f" with {min(unlocked)}" if unlocked else ""
        raise FileSystemUnsafe(
            f"the database {path} would lie on {found.kind}{how}, mounted at {found.mounted_at}, where locks do not "
            "keep two machines apart; choose a path on a local disk (database: PATH), or store: jsonl"
        )
    return "rollback"
