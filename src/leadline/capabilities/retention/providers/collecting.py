"""Collect blobs: mark everything that anything may name, then remove what is neither named nor in recent use.

Other processes go on meanwhile. What protects their blobs:
- a blob that somebody stored or asked for within the grace period stays, and while a session is being
  written, the period reaches back from the moment at which it was opened;
- the store looks at the time of the last use once more in the moment of removal;
- logs that changed while others were read are read again before anything is removed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from anyio import CapacityLimiter, create_task_group, to_thread

from leadline.capabilities.retention.providers import files
from leadline.capabilities.retention.providers.family import raw
from leadline.capabilities.retention.providers.notes import one_at_a_time, take_back_unfinished
from leadline.capabilities.retention.providers.scan import BlobNames
from leadline.capabilities.retention.seam import CollectRefused, CollectReport, Names
from leadline.core.clock import Clock
from leadline.core.home import Home
from leadline.core.session.blobs import Blobs, StoredBlob
from leadline.core.session.errors import BlobError, SessionError, SessionNotFound
from leadline.core.session.store import SessionEntry, SessionStore

_ROUNDS = 8
"""How often logs that changed meanwhile are read again; a live writer changes its own for ever."""

_BATCH = 64
_AT_ONCE = 8
"""Logs that are read at the same time."""

_LONG = 1 << 18
"""Bytes from which looking through them is left to a worker thread."""


@dataclass
class Collection:
    """One collection under way."""

    store: SessionStore
    blobs: Blobs
    home: Home
    clock: Clock
    needs: Mapping[str, Names]
    dry_run: bool
    _notes: list[str] = field(default_factory=list[str])

    async def run(self, grace_s: float, stale_index_s: float) -> CollectReport:
        """Mark and sweep; errors as `Retention.collect`."""
        # What an import stores is named by nothing until its sessions are there: the two take turns.
        async with one_at_a_time(self.home, self.clock, wait=not self.dry_run) as mine:
            if not mine and not self.dry_run:
                raise CollectRefused(
                    "nothing was removed: an import is under way; try again when it is through"
                )
            if mine:
                await self._finish_imports()
            return await self._collected(grace_s, stale_index_s)

    async def _finish_imports(self) -> None:
        for session_id in await take_back_unfinished(self.store, self.home, dry_run=self.dry_run):
            self._notes.append(f"session {session_id} came from an import that was cut off")

    async def _collected(self, grace_s: float, stale_index_s: float) -> CollectReport:
        now = self.clock.now()
        indexes, freed = await to_thread.run_sync(self._indexes, now - stale_index_s)
        stored = await to_thread.run_sync(self._stored)
        since, needed = await self._marked(now - grace_s, grace_s, stored.keys(), indexes)
        unnamed = [one for name, one in stored.items() if name not in needed]
        old = [one for one in unnamed if one.used < since]
        gone = await self._swept(old, since)
        number, size = await to_thread.run_sync(self._leftovers, now - max(grace_s, 0.0))
        return CollectReport(
            blobs=tuple(one.sha256 for one in gone),
            bytes=sum(one.size for one in gone) + freed + size,
            needed=len(needed),
            recent=len(unnamed) - len(gone),
            indexes=tuple(one.name for one in indexes),
            leftovers=number,
            notes=tuple(self._notes),
            dry_run=self.dry_run,
        )

    def _stored(self) -> dict[str, StoredBlob]:
        try:
            return {one.sha256: one for one in self.blobs.entries()}
        except BlobError as error:
            raise CollectRefused(f"nothing was removed: {error}") from error

    # --- mark ---

    async def _marked(
        self, since: float, grace_s: float, wanted: Iterable[str], indexes: list[Path]
    ) -> tuple[float, set[str]]:
        """The time since when a use protects a blob, and the blobs that something names."""
        names = BlobNames(frozenset(wanted))
        stamps: dict[str, str] = {}
        passed_over: set[str] = {str(one) for one in indexes} if self.dry_run else set()
        for round_ in range(_ROUNDS):
            entries = await self._entries()
            since = min([since, *(_opened(one) - grace_s for one in entries if one.status == "running")])
            now = await self.store.stamps()
            changed = [one for one in entries if one.id not in stamps or stamps[one.id] != now.get(one.id)]
            if round_ and not changed:
                break
            stamps = {one.id: now.get(one.id, "") for one in entries}
            unread = await self._look_into_all(changed, names, first=round_ == 0)
            if round_ == 0:
                passed_over |= {one.path for one in entries if one.path} - unread
                await self._look_at_rest(names, passed_over)
        return since, names.found

    async def _entries(self) -> list[SessionEntry]:
        try:
            return await self.store.list()
        except SessionError as error:
            raise CollectRefused(f"nothing was removed: {error}") from error

    async def _look_into_all(
        self, entries: Iterable[SessionEntry], names: BlobNames, *, first: bool
    ) -> set[str]:
        """Look through logs and what stands beside them; the paths of those that are not there."""
        unread: set[str] = set()
        turn = CapacityLimiter(_AT_ONCE)

        async def look(entry: SessionEntry) -> None:
            async with turn:
                if not await self._look_into(entry, names.another(), first=first):
                    unread.add(entry.path)

        try:
            async with create_task_group() as group:
                for one in entries:
                    group.start_soon(look, one)
        except ExceptionGroup as failures:
            raise _first(failures) from failures
        return unread

    async def _look_into(self, entry: SessionEntry, names: BlobNames, *, first: bool) -> bool:
        """Look through a log and what stands beside it; whether it is there."""
        path = Path(entry.path)
        # A log in a file of its own below home: what stands beside it is looked through with all files there.
        alone = first and path.name.startswith(entry.id) and path.is_relative_to(self.home.path)
        try:
            async with raw(self.store, entry.id) as chunks:
                async for chunk in chunks:
                    if len(chunk) > _LONG:
                        await to_thread.run_sync(names.feed, chunk)
                    else:
                        names.feed(chunk)
            for moved in () if alone else (await self.store.beside(entry.id)).values():
                await to_thread.run_sync(names.whole, moved)
        except SessionNotFound:
            if entry.status == "unreadable" and not self._is_looked_through(Path(entry.path)):
                raise CollectRefused(f"nothing was removed: {entry.path}: {entry.reason}") from None
            return False  # deleted meanwhile, or looked through as a file
        except SessionError as error:
            raise CollectRefused(
                f"nothing was removed: {error}; it may name blobs. Make it readable or delete it, then try again"
            ) from error
        finally:
            names.end()
        return True

    def _is_looked_through(self, path: Path) -> bool:
        """Whether what a store cannot read is gone, or a file that counts as it stands."""
        return not os.path.lexists(path) or (path.is_relative_to(self.home.path) and path.is_file())

    async def _look_at_rest(self, names: BlobNames, passed_over: set[str]) -> None:
        for _ in range(_ROUNDS):
            looked = await to_thread.run_sync(files.look_through, self.home, names, passed_over)
            if not looked.vanished:
                break
        else:
            raise CollectRefused(
                f"nothing was removed: files in {self.home.path} come and go all the time; try again later"
            )
        self._notes.extend(looked.notes)
        for label, give in self.needs.items():
            try:
                async for chunk in give():
                    names.feed(chunk)
            except Exception as error:
                raise CollectRefused(
                    f"nothing was removed: {label} cannot tell which blobs it needs: {error}"
                ) from error
            finally:
                names.end()

    # --- sweep ---

    async def _swept(self, old: list[StoredBlob], since: float) -> list[StoredBlob]:
        if self.dry_run:
            return old
        gone: list[StoredBlob] = []
        for start in range(0, len(old), _BATCH):
            gone += await to_thread.run_sync(self._sweep, old[start : start + _BATCH], since)
        return gone

    def _sweep(self, batch: list[StoredBlob], since: float) -> list[StoredBlob]:
        gone: list[StoredBlob] = []
        for one in batch:
            try:
                if self.blobs.remove(one.sha256, unused_since=since):
                    gone.append(one)
            except BlobError as error:
                self._notes.append(str(error))
        return gone

    def _indexes(self, before: float) -> tuple[list[Path], int]:
        """Indexes that are gone, or would be, and the bytes that they took."""
        gone: list[Path] = []
        freed = 0
        for path in files.stale_indexes(self.home, before):
            size = files.size_of(path)
            refusal = "" if self.dry_run else files.remove_index(path)
            if refusal:
                self._notes.append(refusal)
                continue
            gone.append(path)
            freed += size
        return gone, freed

    def _leftovers(self, before: float) -> tuple[int, int]:
        left = self.blobs.leftovers(before=before, remove=not self.dry_run)
        number, size = left.files, left.bytes
        for path in files.leftovers(self.home, before):
            try:
                length = path.stat().st_size
                if not self.dry_run:
                    path.unlink()
            except OSError:
                continue
            number += 1
            size += length
        return number, size


def _opened(entry: SessionEntry) -> float:
    """When the session that is being written was opened at the earliest."""
    return entry.holder.started if entry.holder is not None else min(entry.created, entry.modified)


def _first(failure: Exception) -> Exception:
    """One of several failures that share a cause, as the caller knows it."""
    if isinstance(failure, ExceptionGroup):
        return _first(cast("ExceptionGroup[Exception]", failure).exceptions[0])
    return failure
