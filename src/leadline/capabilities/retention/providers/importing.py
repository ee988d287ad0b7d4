"""One file becomes a family again: checked whole, stored children first and the root last, or taken back.

Importing the same file again completes what was cut off.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from anyio import CancelScope, to_thread

from leadline.capabilities.retention.providers import checking, container, manifest
from leadline.capabilities.retention.providers.checking import Incoming
from leadline.capabilities.retention.providers.container import NotOfThisForm
from leadline.capabilities.retention.providers.family import digest_of, named_in
from leadline.capabilities.retention.providers.manifest import SessionMember
from leadline.capabilities.retention.providers.notes import Note, one_at_a_time, write_note
from leadline.capabilities.retention.seam import ImportRefused, ImportReport, NotAnExport
from leadline.core.clock import Clock
from leadline.core.home import Home
from leadline.core.session.blobs import Blobs, sha256_hex
from leadline.core.session.errors import (
    SessionExists,
    SessionFormatTooNew,
    SessionNotFound,
    SessionUnreadable,
)
from leadline.core.session.store import SessionStore
from leadline.kernel.errors import LeadlineError

_KEEP = "Nothing of the file was stored."


@dataclass
class Import:
    """One import under way."""

    store: SessionStore
    blobs: Blobs
    home: Home
    clock: Clock
    token: str
    """Makes the name of its note unique."""
    _added: list[str] = field(default_factory=list[str])

    async def run(self, path: Path, *, dry_run: bool) -> ImportReport:
        """Take in the file `path`; errors as `Retention.import_`."""
        file = await to_thread.run_sync(_opened, path)
        with file:
            incoming = await to_thread.run_sync(checking.check, file, path)
            async with AsyncExitStack() as turn:
                if not dry_run and not await turn.enter_async_context(one_at_a_time(self.home, self.clock)):
                    raise ImportRefused(
                        path, ["another import or a collection is under way"], f"{_KEEP} Try again."
                    )
                present = await self._present(incoming, path)
                await self._check_parents(incoming, path)
                new = [one for one in incoming.in_order if one.id not in present]
                blobs = [one.sha256 for one in incoming.manifest.blobs if not self.blobs.has(one.sha256)]
                if not dry_run:
                    await self._store(file, path, incoming, new)
            size = os.fstat(file.fileno()).st_size
        return ImportReport(
            root=incoming.manifest.root,
            added=tuple(one.id for one in reversed(new)),
            present=tuple(present),
            blobs=len(blobs),
            bytes=size,
            interrupted=()
            if dry_run
            else await self._interrupted(one.id for one in incoming.manifest.sessions),
            problems=incoming.problems,
            dry_run=dry_run,
        )

    async def _present(self, incoming: Incoming, path: Path) -> list[str]:
        """Ids of the sessions that are here already, the same; others of that id forbid the import."""
        same: list[str] = []
        other: list[str] = []
        for one in incoming.manifest.sessions:
            digest = await digest_of(self.store, one.id)
            if digest == one.sha256:
                same.append(one.id)
            elif digest is not None:
                other.append(f"session {one.id} is here already, with another log")
        if other:
            raise ImportRefused(path, other, f"{_KEEP} Delete or export what is here first, if it may go.")
        return same

    async def _check_parents(self, incoming: Incoming, path: Path) -> None:
        """A session may come back to a parent that is here and knows it; it may not foist itself on another."""
        foisted: list[str] = []
        for session_id, header in incoming.headers.items():
            if header.parent is None or header.parent in incoming.headers or header.forked_at is not None:
                continue
            if await self._is_here(header.parent) and not await named_in(
                self.store, header.parent, {session_id}
            ):
                foisted.append(
                    f"session {session_id} says that it was made for session {header.parent}, "
                    "which is here and does not know it"
                )
        if foisted:
            raise ImportRefused(path, foisted, f"{_KEEP} Import it where that session is not.")

    async def _is_here(self, session_id: str) -> bool:
        try:
            await self.store.entry(session_id)
        except SessionNotFound:
            return False
        return True

    async def _store(self, file: BinaryIO, path: Path, incoming: Incoming, new: list[SessionMember]) -> None:
        for blob in incoming.manifest.blobs:
            await to_thread.run_sync(self._put, file, path, incoming, blob.sha256)
        if not new:
            return
        note = Note(incoming.manifest.root, {it.id: it.sha256 for it in new})
        written = await to_thread.run_sync(write_note, self.home, self.token, note)
        try:
            for one in new:
                await self._add(file, path, incoming, one)
        except BaseException as error:
            with CancelScope(shield=True):
                if await self._take_back(error):
                    await to_thread.run_sync(written.unlink)
            raise
        await to_thread.run_sync(written.unlink)

    def _put(self, file: BinaryIO, path: Path, incoming: Incoming, sha256: str) -> None:
        if self.blobs.has(sha256):
            return
        data = checking.read_all(file, incoming.members[manifest.blob_name(sha256)])
        if sha256_hex(data) != sha256:
            raise _changed(path)
        self.blobs.put(data, synced=True)

    async def _add(self, file: BinaryIO, path: Path, incoming: Incoming, one: SessionMember) -> None:
        beside: dict[str, bytes] = {}
        for it in incoming.manifest.beside:
            if it.session == one.id:
                member = incoming.members[manifest.beside_name(it.session, it.name)]
                beside[it.name] = await to_thread.run_sync(checking.read_all, file, member)
        log = _Log(file, incoming.members[manifest.session_name(one.id)])
        try:
            await self.store.add_raw(log.chunks(), beside)
        except (SessionExists, SessionUnreadable, SessionFormatTooNew) as error:
            raise ImportRefused(path, [str(error)], f"{_KEEP} Try again.") from error
        self._added.append(one.id)
        if log.sha256 != one.sha256:
            raise _changed(path)

    async def _take_back(self, error: BaseException) -> bool:
        """Delete what was added; whether all of it is gone. What is not, a later collection takes back."""
        whole = True
        for session_id in reversed(self._added):
            try:
                await self.store.delete(session_id)
            except LeadlineError as also:
                error.add_note(f"session {session_id} was stored and could not be taken back: {also}")
                whole = False
        return whole

    async def _interrupted(self, ids: Iterable[str]) -> tuple[str, ...]:
        found: list[str] = []
        for session_id in ids:
            with suppress(SessionNotFound):
                if (await self.store.entry(session_id)).status == "interrupted":
                    found.append(session_id)
        return tuple(found)


class _Log:
    """The bytes of a log in the file, and what they hash to once they have been read."""

    def __init__(self, file: BinaryIO, member: container.Member) -> None:
        self._pieces = container.content(file, member)
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    async def chunks(self) -> AsyncGenerator[bytes]:
        while chunk := await to_thread.run_sync(next, self._pieces, b""):
            self._digest.update(chunk)
            yield chunk


def _opened(path: Path) -> BinaryIO:
    try:
        return container.open_file(path)
    except NotOfThisForm as error:
        raise NotAnExport(path, str(error)) from error
    except OSError as error:
        raise NotAnExport(path, f"it cannot be read: {error.strerror or error}") from error


def _changed(path: Path) -> ImportRefused:
    return ImportRefused(path, ["it was changed while it was read"], f"{_KEEP} Try again.")
