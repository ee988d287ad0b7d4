"""Retention over the session store and the blob store that are mounted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from pathlib import Path

from anyio import CancelScope

from leadline.capabilities.retention.providers.family import Family, Kin, locked
from leadline.capabilities.retention.seam import (
    GRACE_S,
    STALE_INDEX_S,
    ArchiveReport,
    CollectReport,
    DeleteReport,
    ExportReport,
    ImportReport,
    Names,
    Part,
    PruneReport,
    Retention,
    SessionsRemoved,
)
from leadline.core.clock import Clock
from leadline.core.home import Home
from leadline.core.ids import Ids
from leadline.core.session.blobs import Blobs
from leadline.core.session.errors import SessionLocked, SessionNotFound
from leadline.core.session.store import SessionEntry, SessionStore
from leadline.kernel.context import Context


class StoredRetention(Retention):
    """The default: knows nothing of how logs and blobs are stored."""

    def __init__(
        self,
        store: SessionStore,
        blobs: Blobs,
        home: Home,
        *,
        clock: Clock,
        ids: Ids,
        removed: Callable[[SessionsRemoved], Awaitable[object]],
    ) -> None:
        """`removed` is told of sessions that are gone."""
        self._store = store
        self._blobs = blobs
        self._home = home
        self._clock = clock
        self._ids = ids
        self._removed = removed
        self._needs: dict[str, Names] = {}

    async def export(self, session_id: str, path: Path) -> ExportReport:
        from leadline.capabilities.retention.providers.exporting import Export  # noqa: PLC0415 - as in `collect`

        return await Export(self._store, self._blobs, self._ids.token(4)).run(session_id, path)

    async def import_(self, path: Path, *, dry_run: bool = False) -> ImportReport:
        from leadline.capabilities.retention.providers.importing import Import  # noqa: PLC0415 - as in `collect`

        importing = Import(self._store, self._blobs, self._home, self._clock, self._ids.token(4))
        return await importing.run(path, dry_run=dry_run)

    # --- delete ---

    async def delete(self, session_id: str, *, dry_run: bool = False) -> DeleteReport:
        return await self._delete(await Kin.of(self._store), session_id, dry_run=dry_run)

    async def _delete(self, kin: Kin, session_id: str, *, dry_run: bool) -> DeleteReport:
        family = await kin.family(session_id)
        kept = await kin.shared(family)
        going = [one for one in reversed(family.all) if one.id not in kept and one.id != session_id]
        going.append(family.root)
        for one in (*going, *await kin.above(family.root)):
            if one.status == "running":
                raise locked(one)
        parts = tuple(_part(one) for one in going)
        if not dry_run:
            await self._remove(family, going)
        return DeleteReport(
            root=session_id,
            parts=parts,
            kept=tuple(sorted(kept)),
            bytes=sum(one.bytes for one in parts),
            dry_run=dry_run,
        )

    async def _remove(self, family: Family, going: list[SessionEntry]) -> None:
        """Remove `going`, the root last: as long as it is there, deleting it again completes it."""
        gone: list[str] = []
        try:
            for one in going:
                if one.id != family.root.id:
                    root = await self._store.entry(family.root.id)
                    if root.status == "running":
                        raise locked(root)
                try:
                    await self._store.delete(one.id)
                except SessionNotFound:
                    continue
                gone.append(one.id)
        finally:
            with CancelScope(shield=True):
                if gone:
                    await self._removed(SessionsRemoved(tuple(gone)))

    # --- archive ---

    async def archive(self, session_id: str, *, dry_run: bool = False) -> ArchiveReport:
        family = await (await Kin.of(self._store)).family(session_id, adopt=False)
        for one in family.members:
            if one.status == "running":
                raise locked(one)
        going = [
            one
            for one in reversed(family.members)
            if not one.archived and (one.status != "unreadable" or one.id == session_id)
        ]
        before = after = sum(one.size for one in going)
        if not dry_run:
            after = 0
            for one in going:
                try:
                    archived = await self._store.archive(one.id)
                except SessionNotFound:
                    continue
                after += _room(archived) if archived.packed is None else archived.packed
        return ArchiveReport(session_id, tuple(_part(one) for one in going), before, after, dry_run)

    # --- prune ---

    async def prune(
        self,
        older_than_s: float,
        *,
        kinds: Collection[str] = (),
        interrupted: bool = False,
        dry_run: bool = False,
    ) -> PruneReport:
        limit = self._clock.now() - older_than_s
        kin = await Kin.of(self._store)
        deleted: list[DeleteReport] = []
        skipped: list[tuple[str, str]] = []
        roots = [one for one in kin.entries.values() if await kin.is_root(one)]
        for root in roots:
            if root.modified >= limit or (kinds and root.kind not in kinds) or root.id not in kin.entries:
                continue
            family = await kin.family(root.id)
            if any(one.modified >= limit for one in family.members):
                continue
            reason = _why_not(family, interrupted=interrupted)
            if reason:
                skipped.append((root.id, reason))
                continue
            try:
                deleted.append(await self._delete(kin, root.id, dry_run=dry_run))
            except (SessionLocked, SessionNotFound) as error:
                skipped.append((root.id, str(error)))
                continue
            kin.forget(one.id for one in deleted[-1].parts)
        return PruneReport(
            deleted=tuple(deleted),
            bytes=sum(one.bytes for one in deleted),
            skipped=tuple(skipped),
            dry_run=dry_run,
        )

    # --- collect ---

    async def collect(
        self, *, dry_run: bool = False, grace_s: float = GRACE_S, stale_index_s: float = STALE_INDEX_S
    ) -> CollectReport:
        # Loads sqlite3: every start would pay for what hardly any does.
        from leadline.capabilities.retention.providers.collecting import Collection  # noqa: PLC0415

        collection = Collection(self._store, self._blobs, self._home, self._clock, dict(self._needs), dry_run)
        return await collection.run(grace_s, stale_index_s)

    def needs(self, ctx: Context, label: str, names: Names) -> None:
        key = f"{label} ({ctx.label})"
        ctx.check_open(f"blobs that {label} needs")
        while key in self._needs:
            key += "+"
        self._needs[key] = names

        def forget() -> None:
            self._needs.pop(key, None)

        ctx.defer(f"blobs that {label} needs", forget)


def _part(entry: SessionEntry) -> Part:
    return Part(entry.id, entry.kind, entry.parent, _room(entry), entry.status)


def _room(entry: SessionEntry) -> int:
    """Bytes that it takes in the store."""
    return entry.size if entry.packed is None else entry.packed


def _why_not(family: Family, *, interrupted: bool) -> str:
    """Why an old family stays; empty where it may go."""
    root = family.root
    if root.status == "unreadable":
        return root.reason or "it cannot be read"
    if root.status == "interrupted" and not interrupted:
        return "it stopped in mid-work and could be resumed"
    running = next((one for one in family.members if one.status == "running"), None)
    return f"session {running.id} is being written" if running is not None else ""
