"""The files of one session: its log, plain or archived, its lease, and what was moved out of the log.

Where a log is there both plain and archived, an archive was being made or taken out when the process
died: the plain one is whole and the newer, and is the log.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from leadline.capabilities.persistence.providers.gzip_log import GzipLog, Summary, pack, unpacked
from leadline.capabilities.persistence.providers.listing import PACKED, PLAIN, resting
from leadline.capabilities.persistence.providers.log_file import (
    damaged_files,
    drop,
    next_damaged,
    open_log,
    publish_file,
)
from leadline.capabilities.persistence.providers.syncing import sync_directory
from leadline.core.session.errors import SessionUnreadable, SessionWriteFailed
from leadline.core.session.events import DamageMoved
from leadline.core.session.registry import EventTypes

_OPEN_TRIES = 3
_CHUNK = 1 << 20
_MEND = "free space or mend the disk, then try again"


@dataclass(frozen=True, slots=True)
class SessionFiles:
    """Where the files of session `id` are."""

    root: Path
    id: str

    @property
    def plain(self) -> Path:
        """The log."""
        return self.root / f"{self.id}{PLAIN}"

    @property
    def packed(self) -> Path:
        """The log once it was archived."""
        return self.root / f"{self.id}{PACKED}"

    @property
    def lock(self) -> Path:
        """The lease."""
        return self.root / f"{self.id}.lock"

    @property
    def temporary(self) -> Path:
        """A new name for what is to become one of the files."""
        return self.root / f".{self.id}.{secrets.token_hex(4)}.new"

    def present(self) -> Path | None:
        """The file that is the log now; None where there is none."""
        return next((path for path in (self.plain, self.packed) if os.path.lexists(path)), None)

    @contextmanager
    def log(self) -> Generator[tuple[BinaryIO, list[str]]]:
        """The log, to be read from its start, and what could not be unpacked of it as far as it was read.

        Raises:
            FileNotFoundError: there is none.
            OSError: it cannot be read.
        """
        file, archive = self._opened()
        with file:
            yield file, archive.problems if archive else []

    def _opened(self) -> tuple[BinaryIO, GzipLog | None]:
        # Between two looks the log may have gone into an archive, or come out of one.
        for _ in range(_OPEN_TRIES):
            try:
                return open_log(self.plain), None
            except FileNotFoundError:
                pass
            try:
                return unpacked(open_log(self.packed))
            except FileNotFoundError:
                continue
        raise FileNotFoundError(self.plain)

    def archive(self, types: EventTypes) -> None:
        """Compress the log; the lease has to be held.

        Raises:
            SessionWriteFailed: the disk refused; the log is as before.
        """
        if not os.path.lexists(self.plain):
            return
        temporary = self.temporary
        try:
            with open_log(self.plain) as log:
                stat = os.fstat(log.fileno())
                pack(log, temporary, Summary(stat.st_size, resting(log.fileno(), stat.st_size, types)))
            os.utime(temporary, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            temporary.replace(self.packed)
            sync_directory(self.root)
            self.plain.unlink()
        except OSError as error:
            raise SessionWriteFailed(str(self.packed), error.strerror or str(error), _MEND) from error
        finally:
            drop(temporary)

    def restore(self) -> DamageMoved | None:
        """Take the log out of its archive; the lease has to be held.

        A damaged archive is kept beside the log, and what is returned then tells of it.

        Raises:
            SessionWriteFailed: the disk refused; the archive is as before.
            SessionUnreadable: the archive cannot be read.
        """
        if os.path.lexists(self.plain):
            return None
        try:
            file, archive = unpacked(open_log(self.packed))
        except OSError as error:
            raise SessionUnreadable(
                f"session {self.id} ({self.packed}) cannot be read: {error.strerror or error}"
            ) from error
        temporary = self.temporary
        try:
            with file, _synced(temporary) as out:
                while chunk := file.read(_CHUNK):
                    out.write(chunk)
            packed = self.packed.stat()
            os.utime(temporary, ns=(packed.st_atime_ns, packed.st_mtime_ns))
            publish_file(self.plain, temporary)
            sync_directory(self.root)
            if archive.problems:
                return self._put_beside(archive.problems)
            self.packed.unlink()
        except OSError as error:
            raise SessionWriteFailed(str(self.plain), error.strerror or str(error), _MEND) from error
        finally:
            drop(temporary)
        return None

    def _put_beside(self, problems: Sequence[str]) -> DamageMoved:
        """Keep the archive as damage."""
        with self.packed.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
        beside = next_damaged(self.plain)
        self.packed.replace(beside)
        return DamageMoved(file=beside.name, first_line=0, bytes=size, sha256=digest, reasons=tuple(problems))

    def beside(self) -> dict[str, bytes]:
        """The damage that was moved out of the log, by file name."""
        return {path.name: path.read_bytes() for path in damaged_files(self.plain)}

    def add_beside(self, contents: Mapping[str, bytes]) -> None:
        """Put files there that `beside` gave, synced; the lease has to be held, and there may be no log yet.

        What an import that died left under these names is nobody's, and goes.

        Raises:
            OSError: the disk refused.
        """
        for left in damaged_files(self.plain):
            left.unlink()
        for name, content in contents.items():
            with _synced(self.root / name) as out:
                out.write(content)

    def remove(self) -> None:
        """Remove everything, the lease last.

        Raises:
            FileNotFoundError: there is no log.
            OSError: the directory may not be written.
        """
        for beside in damaged_files(self.plain):
            beside.unlink()
        if self.present() is None:
            raise FileNotFoundError(self.plain)
        # The archive goes first: alone, it would count as the log again.
        self.packed.unlink(missing_ok=True)
        self.plain.unlink(missing_ok=True)
        self.lock.unlink(missing_ok=True)


@contextmanager
def _synced(path: Path) -> Generator[BinaryIO]:
    with new_file(path) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def new_file(path: Path) -> BinaryIO:
    """A new file that only its owner reads, open for writing.

    Raises:
        OSError: it cannot be made.
    """
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
