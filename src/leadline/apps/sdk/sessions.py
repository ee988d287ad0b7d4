"""`app.sessions`: everything that is stored, to list, search, fork, rename, keep and remove."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from anyio import CancelScope

from leadline.core.clock import Clock
from leadline.core.ids import Ids
from leadline.core.session import titles
from leadline.core.session.codec import Header
from leadline.core.session.errors import ForkRefused, SessionNotFound
from leadline.core.session.events import Event, Titled
from leadline.core.session.forks import fork_point
from leadline.core.session.store import MAX_LABEL, SessionEntry, SessionStore
from leadline.kernel.errors import LeadlineError, did_you_mean

if TYPE_CHECKING:
    from leadline.capabilities.retention.seam import (
        ArchiveReport,
        CollectReport,
        DeleteReport,
        ExportReport,
        ImportReport,
        PruneReport,
        Retention,
    )
    from leadline.capabilities.session_index.seam import Hit, ListQuery, Page, SessionIndex, Summary
    from leadline.core.session.log import Session
    from leadline.core.session.spending import Spending
    from leadline.kernel.context import Context


_NOT_ENDED = ("running", "interrupted")


class BadTitle(LeadlineError):
    """A title is blank."""


class SessionFilters(TypedDict, total=False):
    """Which sessions are asked for; what is given must all be true of a session."""

    kind: str | None
    """`agent`, `research`, ..."""
    status: Sequence[str]
    """Any of these."""
    since: str | date | None
    """Created at this date or time (an object or ISO text), or later; UTC where it names no offset."""
    until: str | date | None
    """Created at this date or time, or earlier; a date includes its day."""
    title: str | None
    """Letters that stand in the title."""
    corpus: str | None
    """Letters that stand in the name of something that a run may search."""
    model: str | None
    """Letters that stand in `provider/name` of a model that was used."""
    min_cost: float | None
    max_cost: float | None
    text: str | None
    """Words that `search` would find in it."""
    parent: str | None
    """Only what was made for or forked from this session."""
    roots_only: bool
    """Leave out what agents and runs started for themselves; the default."""
    limit: int
    """At most so many on one page; default 50."""
    cursor: str | None
    """That of the page before."""


class Sessions:
    """What is stored. An id may be given by its beginning wherever only one session has it."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    # reading

    async def list(self, **filters: Unpack[SessionFilters]) -> Page[Summary]:
        """Sessions and runs, newest first, those that cannot be read last.

        Raises:
            QueryRefused: a time, a status, the limit or the cursor is none.
            SessionNotFound: there is no such parent.
            TypeError: there is no filter of that name.
        """
        known = SessionFilters.__annotations__
        for name in filters.keys() - known.keys():
            raise TypeError(f"list() has no filter {name!r}{did_you_mean(name, known)}")
        page = await self._index.list(await self._query(filters))
        begun = [one for one in page.items if one.kind == "research" and one.status in _NOT_ENDED]
        if not begun:
            return page
        # What the roles at work have used stands in their own logs until they are over.
        entries = await self._store.list()
        used = {one.id: await self._used_so_far(one, entries) for one in begun}
        return replace(page, items=tuple(used.get(one.id, one) for one in page.items))

    async def _used_so_far(self, run: Summary, entries: Sequence[SessionEntry]) -> Summary:
        from leadline.core.session.spending import total
        from leadline.core.spend.money import dollars

        root = next((one for one in entries if one.id == run.id), None)
        if root is None:
            return run
        used = total(await self._spendings(below(root, entries)))
        if used.calls <= run.calls:
            return run
        cost = used.paid
        return replace(
            run,
            calls=used.calls,
            tokens=used.tokens.total,
            cost=dollars(cost.known) if cost.complete else None,
            currency="USD" if cost.complete or cost.known else None,
            cost_at_least=dollars(cost.known) if cost.known and not cost.complete else None,
        )

    async def search(
        self, text: str, *, kind: str | None = None, limit: int = 20, cursor: str | None = None
    ) -> Page[Hit]:
        """Sessions and runs in whose titles, questions, reports, quotes or transcripts the words stand, best first.

        Raises:
            QueryRefused: there is no word in `text`; the limit or the cursor is none.
        """
        return await self._index.search(text, kind=kind, limit=limit, cursor=cursor)

    async def summary(self, session_id: str) -> Summary:
        """What a list tells of one session.

        Raises:
            SessionNotFound, AmbiguousId: no session has that id, or several begin with it.
        """
        return await self._index.summary(await self.resolve(session_id))

    async def read(self, session_id: str) -> Session:
        """The log of a session, for reading.

        Raises:
            as `summary`.
        """
        return await self._store.read(await self.resolve(session_id))

    async def resolve(self, prefix: str) -> str:
        """The full id of the one session whose id is or begins with `prefix`.

        Raises:
            as `summary`.
        """
        from leadline.capabilities.session_index.seam import SessionIndex

        try:
            return (await self._store.entry(prefix)).id
        except SessionNotFound:
            index = self._ctx.find(SessionIndex)
            if index is None or not prefix:
                raise
            return await index.resolve(prefix)

    async def usage(self, session_id: str, *, children: bool = True) -> tuple[Spending, ...]:
        """What a session or a run paid for, by purpose and model; also while somebody writes it.

        Args:
            session_id: the session.
            children: with all that it started, and what those started; forks are bills of their own.

        Raises:
            as `summary`.
        """
        root = await self._store.entry(await self.resolve(session_id))
        members = [root, *(below(root, await self._store.list()) if children else ())]
        return await self._spendings(members)

    async def _spendings(self, members: Iterable[SessionEntry]) -> tuple[Spending, ...]:
        from leadline.core.session.spending import merged, session_spending

        rows: list[Spending] = []
        for one in members:
            with suppress(SessionNotFound):  # removed in the meantime
                rows += session_spending(await self._store.read(one.id))
        return merged(rows)

    # changing

    async def fork(self, session_id: str, *, turn: int | None = None, title: str | None = None) -> str:
        """A new session with the turns that an agent's session has had; returns its id.

        What waits in the inbox is not inherited. `leadline resume ID TASK` goes on with it.

        Args:
            session_id: the session to fork; it may be open elsewhere.
            turn: the last turn that is kept, 0 for none; None: every turn that has ended.
            title: what to call the fork; None: as the session was called by then.

        Raises:
            ForkRefused: there is no such turn, it has not ended, or the session is a run.
            as `summary`.
        """
        wanted = None if title is None else one_line(title)
        source = await self.read(session_id)
        if source.header.kind == "research":
            raise ForkRefused(
                f"session {source.id} is a run, which has no turns; to see what another model or method makes "
                f"of its evidence: leadline replay {source.id} --model PROVIDER/NAME"
            )
        if source.obstacle is not None:
            raise source.obstacle
        upto = fork_point(source, turn)
        old = source.header
        # A person starts it, so that no delegation lies above it, whatever it is forked from.
        header = Header(
            id=self._ctx.get(Ids).new("s"),
            kind=old.kind,
            created=self._ctx.get(Clock).now(),
            cwd=old.cwd,
            label=old.label,
        )
        session = await self._store.fork(source, header, upto)
        with CancelScope(shield=True):
            try:
                if wanted is not None:
                    session.append(Titled(title=wanted, source="user"))
            finally:
                await session.close()
        return session.id

    async def rename(self, session_id: str, title: str) -> Summary:
        """Give a session or a run a title; it holds against those that a model or the program gave.

        Raises:
            BadTitle: it is blank.
            SessionLocked: another process writes the session now.
            as `summary`.
        """
        wanted, found = one_line(title), await self.resolve(session_id)
        await self._append(found, Titled(title=wanted, source="user"))
        return await self._index.summary(found)

    async def _append(self, session_id: str, event: Event) -> None:
        from leadline.core.agent.agents import Agents

        agents = self._ctx.find(Agents)
        live = agents.find(session_id) if agents is not None else None
        if live is not None:
            live.session.append(event)
            return
        # A turn that was cut off stays open: whoever resumes the session goes on with it.
        archived = (await self._store.entry(session_id)).archived
        session = await self._store.open(session_id, repair=False)
        with CancelScope(shield=True):
            try:
                session.append(event)
                await session.sync()
            finally:
                await session.close()
                if archived:
                    await self._store.archive(session_id)

    # keeping and removing

    async def export(self, session_id: str, path: str | Path) -> ExportReport:
        """Write a session or a run, with all that belongs to it, into one new file.

        Raises:
            ExportRefused: the file is there already or cannot be written.
            as `summary`.
        """
        return await self._retention.export(await self.resolve(session_id), Path(path))

    async def import_(self, path: str | Path, *, dry_run: bool = False) -> ImportReport:
        """Take in what `export` wrote; nothing is overwritten.

        Raises:
            ImportRefused: the file is something else, was altered, or an id in it stands for another log here.
        """
        return await self._retention.import_(Path(path), dry_run=dry_run)

    async def delete(self, session_id: str, *, dry_run: bool = False) -> DeleteReport:
        """Remove a session or a run with all that it started. Texts that others may need stay until `collect`.

        Raises:
            SessionLocked: somebody writes one of them now; nothing was removed.
            as `summary`.
        """
        return await self._retention.delete(await self.resolve(session_id), dry_run=dry_run)

    async def archive(self, session_id: str, *, dry_run: bool = False) -> ArchiveReport:
        """Compress a session or a run with all that it started; it stays readable and can go on.

        Raises:
            SessionLocked: somebody writes one of them now.
            as `summary`.
        """
        return await self._retention.archive(await self.resolve(session_id), dry_run=dry_run)

    async def collect(
        self, *, dry_run: bool = False, grace_s: float | None = None, stale_index_s: float | None = None
    ) -> CollectReport:
        """Remove stored texts and indexes that nothing needs. Other processes may be at work.

        Args:
            dry_run: only tell.
            grace_s: leave what was used in so many last seconds; None: a day.
            stale_index_s: leave indexes of folders that were used in so many last seconds; None: 90 days.

        Raises:
            CollectRefused: a log cannot be read, so that nobody can tell what it needs; nothing was removed.
        """
        from leadline.capabilities.retention.seam import GRACE_S, STALE_INDEX_S

        return await self._retention.collect(
            dry_run=dry_run,
            grace_s=GRACE_S if grace_s is None else grace_s,
            stale_index_s=STALE_INDEX_S if stale_index_s is None else stale_index_s,
        )

    async def prune(
        self,
        older_than_s: float,
        *,
        kinds: Collection[str] = (),
        interrupted: bool = False,
        dry_run: bool = False,
    ) -> PruneReport:
        """Delete what was not written for so many seconds, each with all that it started.

        Args:
            older_than_s: seconds.
            kinds: only `agent`, only `research`, ..., one or several; none given: all.
            interrupted: also what stopped in mid-work and could be resumed.
            dry_run: only tell.
        """
        return await self._retention.prune(
            older_than_s,
            kinds=(kinds,) if isinstance(kinds, str) else kinds,
            interrupted=interrupted,
            dry_run=dry_run,
        )

    # services

    @property
    def _retention(self) -> Retention:
        from leadline.capabilities.retention.seam import Retention

        return self._ctx.get(Retention)

    @property
    def _store(self) -> SessionStore:
        return self._ctx.get(SessionStore)

    @property
    def _index(self) -> SessionIndex:
        from leadline.capabilities.session_index.seam import SessionIndex

        return self._ctx.get(SessionIndex)

    async def _query(self, filters: SessionFilters) -> ListQuery:
        from leadline.capabilities.session_index.seam import ListQuery

        parent = filters.get("parent")
        status = filters.get("status", ())
        return ListQuery(
            kind=filters.get("kind"),
            status=(status,) if isinstance(status, str) else tuple(status),
            since=_iso(filters.get("since")),
            until=_iso(filters.get("until")),
            title=filters.get("title"),
            corpus=filters.get("corpus"),
            model=filters.get("model"),
            min_cost=filters.get("min_cost"),
            max_cost=filters.get("max_cost"),
            text=filters.get("text"),
            parent=None if parent is None else await self.resolve(parent),
            roots_only=filters.get("roots_only", True),
            limit=filters.get("limit", 50),
            cursor=filters.get("cursor"),
        )


def _iso(moment: str | date | None) -> str | None:
    return moment.isoformat() if isinstance(moment, date) else moment


def below(root: SessionEntry, entries: Iterable[SessionEntry]) -> tuple[SessionEntry, ...]:
    """What was started for `root`, and for those; a fork is as deep as what it was forked from, and so not one."""
    children: dict[str, list[SessionEntry]] = {}
    for one in entries:
        if one.parent is not None and one.status != "unreadable":
            children.setdefault(one.parent, []).append(one)
    found = [root]
    for parent in found:
        found += [one for one in children.pop(parent.id, ()) if one.depth > parent.depth]
    return tuple(found[1:])


def one_line(title: str) -> str:
    """A title as it is kept: one line, and no longer than a list can show.

    Raises:
        BadTitle: nothing is left of it.
    """
    made = titles.one_line(title.encode("utf-8", "replace").decode())[:MAX_LABEL]
    if not made:
        raise BadTitle("title: it is blank. Say what to call the session.")
    return made
