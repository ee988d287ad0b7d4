"""A family becomes one file: logs and what stands beside them exactly as they are, and the blobs that they name."""

from __future__ import annotations

import errno
import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from anyio import CancelScope, to_thread

from leadline.capabilities.retention.providers import manifest
from leadline.capabilities.retention.providers.container import TooLarge, Writer
from leadline.capabilities.retention.providers.family import Kin, raw
from leadline.capabilities.retention.providers.manifest import (
    BesideMember,
    BlobMember,
    Manifest,
    SessionMember,
)
from leadline.capabilities.retention.providers.scan import BlobNames, LogCheck
from leadline.capabilities.retention.seam import ExportRefused, ExportReport, Part
from leadline.core.session.blobs import Blobs
from leadline.core.session.errors import (
    BlobDamaged,
    BlobMissing,
    SessionFormatTooNew,
    SessionNotFound,
    SessionUnreadable,
)
from leadline.core.session.store import SessionEntry, SessionStore

_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})


@dataclass
class Export:
    """One export under way."""

    store: SessionStore
    blobs: Blobs
    token: str
    """Makes the name of the unfinished file unique."""
    _parts: list[Part] = field(default_factory=list[Part])
    _sessions: list[SessionMember] = field(default_factory=list[SessionMember])
    _beside: list[BesideMember] = field(default_factory=list[BesideMember])
    _stored: list[BlobMember] = field(default_factory=list[BlobMember])
    _damaged: list[str] = field(default_factory=list[str])
    _problems: list[str] = field(default_factory=list[str])

    async def run(self, session_id: str, path: Path) -> ExportReport:
        """Write the family of `session_id` to the new file `path`; errors as `Retention.export`."""
        root = (await Kin.of(self.store)).entries.get(session_id) or await self.store.entry(session_id)
        _refuse_existing(path)
        unfinished = path.with_name(f".{path.name}.{self.token}.partial")
        try:
            with _new_file(unfinished) as file:
                out = Writer(file)
                await self._write(out, root)
                size = out.close()
                await to_thread.run_sync(_flush, file)
            digest = await to_thread.run_sync(_publish, unfinished, path)
        except (OSError, TooLarge) as error:
            cause = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            raise ExportRefused(
                f"session {session_id} cannot be exported to {path}: {cause}; "
                "choose another place, or free space, then try again"
            ) from error
        finally:
            with CancelScope(shield=True):
                await to_thread.run_sync(_forget, unfinished)
        return ExportReport(
            root=session_id,
            path=path,
            parts=tuple(self._parts),
            blobs=len(self._stored),
            bytes=size,
            sha256=digest,
            damaged_blobs=tuple(self._damaged),
            problems=tuple(self._problems),
        )

    async def _write(self, out: Writer, root: SessionEntry) -> None:
        names = BlobNames(await to_thread.run_sync(self._all_blobs))
        # The root first: whatever it names by then is in the family that is looked up after it.
        await self._log(out, root, names)
        family = await (await Kin.of(self.store)).family(root.id)
        for member in family.all[1:]:
            try:
                await self._log(out, member, names)
            except SessionNotFound:  # deleted meanwhile, as its parent's log can tell
                self._problems.append(f"session {member.id} was deleted while the export was made")
        for one in self._sessions:
            await self._moved(out, one.id, names)
        for name in sorted(names.found):
            await to_thread.run_sync(self._blob, out, name)
        out.add(manifest.NAME, manifest.encoded(self._manifest(root.id)))

    def _manifest(self, root: str) -> Manifest:
        return Manifest(
            root=root,
            sessions=tuple(self._sessions),
            beside=tuple(self._beside),
            blobs=tuple(self._stored),
        )

    def _all_blobs(self) -> set[str]:
        return {one.sha256 for one in self.blobs.entries()}

    async def _log(self, out: Writer, entry: SessionEntry, names: BlobNames) -> None:
        check = LogCheck()
        copy = _Copy(out, check, names)
        async with raw(self.store, entry.id) as chunks:
            first = await anext(chunks, b"")  # before anything of it is in the file: it may be gone
            out.begin(manifest.session_name(entry.id))
            await to_thread.run_sync(copy.add, first)
            async for chunk in chunks:
                await to_thread.run_sync(copy.add, chunk)
        # What a live writer is in the middle of is not part of the session yet.
        await to_thread.run_sync(copy.end, entry.status == "running")
        out.end()
        if check.newer_format is not None:
            raise SessionFormatTooNew(entry.id, check.newer_format)
        if check.header is None or check.header.id != entry.id:
            raise SessionUnreadable(
                f"session {entry.id} cannot be exported: its header cannot be used; "
                f"copy {entry.path or 'its log'} itself"
            )
        self._problems.extend(f"session {entry.id}, {one}" for one in check.problems)
        self._parts.append(Part(entry.id, check.header.kind, check.header.parent, check.size, entry.status))
        self._sessions.append(
            SessionMember(
                id=entry.id,
                parent=check.header.parent,
                kind=check.header.kind,
                bytes=check.size,
                sha256=check.sha256,
                events=check.events,
                digest=check.digest,
                sound=not check.problems,
            )
        )

    async def _moved(self, out: Writer, session_id: str, names: BlobNames) -> None:
        try:
            moved = await self.store.beside(session_id)
        except SessionNotFound:
            return
        for name, data in sorted(moved.items()):
            if not manifest.can_stand_beside(name):
                self._problems.append(f"session {session_id}: {name!r} beside it was left out")
                continue
            out.add(manifest.beside_name(session_id, name), data)
            names.whole(data)
            digest = hashlib.sha256(data).hexdigest()
            self._beside.append(BesideMember(session=session_id, name=name, bytes=len(data), sha256=digest))

    def _blob(self, out: Writer, name: str) -> None:
        try:
            data = self.blobs.get(name)
        except BlobMissing:  # collected meanwhile
            return
        except BlobDamaged:
            self._damaged.append(name)
            return
        if len(data) > manifest.MAX_BLOB_BYTES:
            raise TooLarge(f"blob {name} has more than {manifest.MAX_BLOB_BYTES} bytes")
        out.add(manifest.blob_name(name), data)
        self._stored.append(BlobMember(sha256=name, bytes=len(data)))


class _Copy:
    """Hands on the bytes of a log, whole lines before the rest."""

    def __init__(self, out: Writer, check: LogCheck, names: BlobNames) -> None:
        self._out = out
        self._check = check
        self._names = names
        self._held = b""

    def add(self, chunk: bytes) -> None:
        """Hand on all whole lines."""
        last = chunk.rfind(b"\n") + 1
        if last:
            self._hand_on(self._held + chunk[:last])
            self._held = b""
        self._held += chunk[last:]

    def end(self, without_rest: bool) -> None:
        """The log is over; an unfinished line at its end is handed on too, unless `without_rest`."""
        if self._held and not without_rest:
            self._hand_on(self._held)
        self._check.end()
        self._names.end()

    def _hand_on(self, data: bytes) -> None:
        self._out.write(data)
        self._check.feed(data)
        self._names.feed(data)


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise ExportRefused(f"{path} exists; an export overwrites nothing, choose another name")


def _new_file(path: Path) -> BinaryIO:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    return os.fdopen(fd, "w+b")


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _publish(unfinished: Path, path: Path) -> str:
    """Give the finished file its name, which nobody else has; its sha256."""
    with unfinished.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    try:
        path.hardlink_to(unfinished)
    except FileExistsError:
        _refuse_existing(path)
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        unfinished.replace(path)
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    return digest


def _forget(unfinished: Path) -> None:
    with suppress(OSError):  # it may never have been made; what stands in the way of that is told already
        unfinished.unlink()
