"""`app.sessions` for programs without an event loop."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, Unpack

from leadline.apps.sdk.sessions import SessionFilters, Sessions

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from anyio.from_thread import BlockingPortal

    from leadline.capabilities.retention.seam import (
        ArchiveReport,
        CollectReport,
        DeleteReport,
        ExportReport,
        ImportReport,
        PruneReport,
    )
    from leadline.capabilities.session_index.seam import Hit, Page, Summary
    from leadline.core.session.log import Session
    from leadline.core.session.spending import Spending

T = TypeVar("T")


class SyncSessions:
    """As `Sessions`; each call returns when it is done."""

    def __init__(self, sessions: Sessions, portal: BlockingPortal) -> None:
        self._sessions = sessions
        self._portal = portal

    def _call(self, work: Callable[[], Coroutine[object, object, T]]) -> T:
        return self._portal.call(work)

    def list(self, **filters: Unpack[SessionFilters]) -> Page[Summary]:
        """As `Sessions.list`."""
        return self._call(lambda: self._sessions.list(**filters))

    def search(
        self, text: str, *, kind: str | None = None, limit: int = 20, cursor: str | None = None
    ) -> Page[Hit]:
        """As `Sessions.search`."""
        return self._call(lambda: self._sessions.search(text, kind=kind, limit=limit, cursor=cursor))

    def summary(self, session_id: str) -> Summary:
        """As `Sessions.summary`."""
        return self._call(lambda: self._sessions.summary(session_id))

    def read(self, session_id: str) -> Session:
        """As `Sessions.read`."""
        return self._call(lambda: self._sessions.read(session_id))

    def resolve(self, prefix: str) -> str:
        """As `Sessions.resolve`."""
        return self._call(lambda: self._sessions.resolve(prefix))

    def usage(self, session_id: str, *, children: bool = True) -> tuple[Spending, ...]:
        """As `Sessions.usage`."""
        return self._call(lambda: self._sessions.usage(session_id, children=children))

    def fork(self, session_id: str, *, turn: int | None = None, title: str | None = None) -> str:
        """As `Sessions.fork`."""
        return self._call(lambda: self._sessions.fork(session_id, turn=turn, title=title))

    def rename(self, session_id: str, title: str) -> Summary:
        """As `Sessions.rename`."""
        return self._call(lambda: self._sessions.rename(session_id, title))

    def export(self, session_id: str, path: str | Path) -> ExportReport:
        """As `Sessions.export`."""
        return self._call(lambda: self._sessions.export(session_id, path))

    def import_(self, path: str | Path, *, dry_run: bool = False) -> ImportReport:
        """As `Sessions.import_`."""
        return self._call(lambda: self._sessions.import_(path, dry_run=dry_run))

    def delete(self, session_id: str, *, dry_run: bool = False) -> DeleteReport:
        """As `Sessions.delete`."""
        return self._call(lambda: self._sessions.delete(session_id, dry_run=dry_run))

    def archive(self, session_id: str, *, dry_run: bool = False) -> ArchiveReport:
        """As `Sessions.archive`."""
        return self._call(lambda: self._sessions.archive(session_id, dry_run=dry_run))

    def collect(
        self, *, dry_run: bool = False, grace_s: float | None = None, stale_index_s: float | None = None
    ) -> CollectReport:
        """As `Sessions.collect`."""
        return self._call(
            lambda: self._sessions.collect(dry_run=dry_run, grace_s=grace_s, stale_index_s=stale_index_s)
        )

    def prune(
        self,
        older_than_s: float,
        *,
        kinds: Collection[str] = (),
        interrupted: bool = False,
        dry_run: bool = False,
    ) -> PruneReport:
        """As `Sessions.prune`."""
        return self._call(
            lambda: self._sessions.prune(older_than_s, kinds=kinds, interrupted=interrupted, dry_run=dry_run)
        )
