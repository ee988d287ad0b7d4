"""What may be done with sessions and runs as wholes: export, import, delete, archive, prune; and collect blobs.

A *family* is a session or run with everything that was made for it: its children, their children, and so
on. A fork is a session of its own and belongs to nobody's family; children that it shares with the session
that it was forked from stay for as long as either needs them.

Every operation with `dry_run` tells what it would do, and changes nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterable, Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from leadline.kernel.context import Context
from leadline.kernel.errors import LeadlineError
from leadline.kernel.services import Service
from leadline.kernel.signals import Gather

DAY_S = 86_400.0
"""Seconds of a day."""

GRACE_S = DAY_S
"""How long a blob that nothing names is kept after it was last stored or asked for; seconds."""

STALE_INDEX_S = 90 * DAY_S
"""How long the index of a corpus is kept after it was last used; seconds."""

SUFFIX = ".leadline-session"
"""How the name of an exported file ends, unless somebody chooses otherwise."""


@dataclass(frozen=True, slots=True)
class Part:
    """One session of a family, as a report names it."""

    id: str
    kind: str
    parent: str | None
    bytes: int
    """Of its log, as it lies in the store."""
    status: str
    """Before the operation."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What was written into one file."""

    root: str
    path: Path
    parts: tuple[Part, ...]
    """The family, the root first."""
    blobs: int
    bytes: int
    """Of the file."""
    sha256: str
    """Of the file, in hex. The same family gives the same file."""
    damaged_blobs: tuple[str, ...] = ()
    """Blobs that the logs name and that were left out, because their bytes do not have their hash any more."""
    problems: tuple[str, ...] = ()
    """What is wrong with the logs; they are in the file exactly as they stand all the same."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What came out of one file."""

    root: str
    added: tuple[str, ...]
    """Ids of the sessions that are new here."""
    present: tuple[str, ...]
    """Ids of those that were here already, byte for byte the same."""
    blobs: int
    """That were not here before."""
    bytes: int
    """Of the file."""
    interrupted: tuple[str, ...] = ()
    """Ids of sessions that stopped in mid-work: to go on with one is to run what its log says was asked for."""
    problems: tuple[str, ...] = ()
    """What is wrong with the logs; they were taken in exactly as they stood in the file."""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class DeleteReport:
    """What is gone, or would be. Blobs stay until they are collected."""

    root: str
    parts: tuple[Part, ...]
    """In the order of removal: children first, the root last."""
    kept: tuple[str, ...]
    """Children that stay, because a fork needs them."""
    bytes: int
    """Of the logs that are gone."""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What was put away compressed, or would be."""

    root: str
    parts: tuple[Part, ...]
    """Those that were not archived before; `bytes` as before."""
    bytes_before: int
    bytes_after: int
    """As `bytes_before` in a dry run: how far it shrinks is known when it is done."""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class CollectReport:
    """Which blobs and derived files are gone, or would be."""

    blobs: tuple[str, ...]
    """The hashes of those that nothing names."""
    bytes: int
    """Room that is free again: blobs, indexes and leftovers."""
    needed: int
    """Blobs that something names."""
    recent: int
    """Blobs that nothing names, and that are kept because somebody stored or asked for them a short while ago."""
    indexes: tuple[str, ...] = ()
    """Indexes of corpora that were not used for long; each is built anew when it is wanted."""
    leftovers: int = 0
    """Unfinished files of writers that died."""
    notes: tuple[str, ...] = ()
    """What could not be removed, and why."""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class PruneReport:
    """Which families are gone, or would be."""

    deleted: tuple[DeleteReport, ...]
    bytes: int
    skipped: tuple[tuple[str, str], ...] = ()
    """Ids of old sessions that stay, each with the reason."""
    dry_run: bool = False


class RetentionError(LeadlineError):
    """Root of what this seam raises by itself; errors of the stores pass through.

    RetentionError
    ├── ExportRefused     nothing was written
    ├── ImportRefused     nothing was taken in
    │   └── NotAnExport   the file is something else
    └── CollectRefused    nothing was removed, because it cannot be told what is needed
    """


class ExportRefused(RetentionError):
    """The family cannot be written to that file; there is no new file."""


class ImportRefused(RetentionError):
    """The file was not taken in; the store is as before.

    Attributes: path, problems (each one sentence).
    """

    def __init__(self, path: Path, problems: Collection[str], next_step: str) -> None:
        super().__init__(f"{path} was not imported: {'; '.join(problems)}. {next_step}")
        self.path = path
        self.problems = tuple(problems)


class NotAnExport(ImportRefused):
    """The file is something else than an export."""

    def __init__(self, path: Path, cause: str) -> None:
        super().__init__(path, [f"it is not an export: {cause}"], "Name a file that an export wrote.")


class CollectRefused(RetentionError):
    """Something that may name blobs cannot be read, so that nothing may be removed."""


@dataclass(frozen=True)
class SessionsRemoved(Gather[None]):
    """Sessions were deleted; whoever keeps anything derived from them forgets it before `delete` returns."""

    ids: tuple[str, ...]


Names: TypeAlias = Callable[[], AsyncIterable[bytes]]
"""Gives bytes in any pieces; every 64 hex digits in them are taken for the name of a blob that is needed."""


class Retention(Service, key="retention"):
    """Keeps, hands over and removes sessions and runs, over whatever stores are mounted."""

    @abstractmethod
    async def export(self, session_id: str, path: Path) -> ExportReport:
        """Write a family, the damage that was moved out of its logs and every blob that they name to one file.

        A session that is being written is taken as it is now. The file is there whole or not at all.

        Raises:
            SessionNotFound: there is none of that id.
            SessionUnreadable, SessionFormatTooNew: its header cannot be used, here or by an import.
            ExportRefused: `path` exists or cannot be written, or the family is too large for one file.
        """

    @abstractmethod
    async def import_(self, path: Path, *, dry_run: bool = False) -> ImportReport:
        """Take in what `export` wrote. Everything is checked before anything is stored; nothing is overwritten.

        Importing the same file again changes nothing, and completes an import that was cut off.

        Raises:
            NotAnExport: the file is something else.
            ImportRefused: the file breaks a rule, or one of its ids stands here for another log.
            SessionWriteFailed, BlobWriteFailed: the disk refused; what had been added was taken back.
        """

    @abstractmethod
    async def delete(self, session_id: str, *, dry_run: bool = False) -> DeleteReport:
        """Remove a family. Cut off in the middle, the root is still there, and deleting it again completes it.

        Raises:
            SessionNotFound: there is none of that id.
            SessionLocked: someone writes one of them now; nothing was removed.
            SessionWriteFailed: the disk refused; the root is still there.
        """

    @abstractmethod
    async def archive(self, session_id: str, *, dry_run: bool = False) -> ArchiveReport:
        """Put a family away compressed; it is still listed, read, searched and opened as ever.

        Raises:
            SessionNotFound: there is none of that id.
            SessionLocked: someone writes one of them now.
            SessionWriteFailed: the disk refused; each session is as before or archived.
        """

    @abstractmethod
    async def collect(
        self, *, dry_run: bool = False, grace_s: float = GRACE_S, stale_index_s: float = STALE_INDEX_S
    ) -> CollectReport:
        """Remove the blobs that no log, no archive and no index of a corpus names; other processes may go on.

        A blob is kept for `grace_s` after it was last stored or asked for, and for as long as a session is
        being written that was opened before that time was over.

        Raises:
            CollectRefused: something that may name blobs cannot be read; nothing was removed.
        """

    @abstractmethod
    async def prune(
        self,
        older_than_s: float,
        *,
        kinds: Collection[str] = (),
        interrupted: bool = False,
        dry_run: bool = False,
    ) -> PruneReport:
        """Delete the families in which nothing was written for `older_than_s` seconds.

        Only those whose root is of one of `kinds`, where any are given. Those that stopped in mid-work go with
        `interrupted` alone; those that cannot be read stay.

        Raises:
            SessionWriteFailed: the disk refused; each family is there whole, without some children, or gone.
        """

    @abstractmethod
    def needs(self, ctx: Context, label: str, names: Names) -> None:
        """Keep the blobs that `names` names from being collected, while the owner of `ctx` lives.

        Raises:
            FiberInactive: the owner is unloading or disposed.
        """
