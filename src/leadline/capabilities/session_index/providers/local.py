"""The index over the sessions of this home: kept up to date whenever it is asked, made anew when it is damaged.

Before each answer it learns which logs changed. A whole look at the store compares the stamp of each
log; while the store's mark stays the same, only sessions that somebody writes are looked at. Of a log
that grew, what is new is read. A list reads the logs that it shows, a search and a filter all that are new.
"""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import anyio
import msgspec
from anyio import to_thread

from leadline.capabilities.session_index.providers.queries import (
    ListCursor,
    check_limit,
    closed,
    condition,
    needs_facts,
    one_of,
    words_in,
)
from leadline.capabilities.session_index.providers.reading import (
    AnySource,
    LogReader,
    Progress,
    Reading,
    read_session,
)
from leadline.capabilities.session_index.providers.records import (
    Entry,
    IndexUnusable,
    Row,
    Unread,
    bounded,
)
from leadline.capabilities.session_index.providers.searching import Search
from leadline.capabilities.session_index.providers.transcripts import TRANSCRIPTS
from leadline.capabilities.session_index.seam import (
    AmbiguousId,
    Facts,
    Hit,
    IndexSource,
    ListQuery,
    Page,
    SessionIndex,
    Status,
    Summary,
)
from leadline.core.clock import Clock
from leadline.core.session.errors import SessionNotFound, SessionUnreadable
from leadline.core.session.projection import Projections
from leadline.core.session.store import SessionEntry, SessionStore
from leadline.kernel.context import Context

if TYPE_CHECKING:
    from leadline.capabilities.session_index.providers.index_file import IndexFile

S = TypeVar("S", bound=msgspec.Struct)
R = TypeVar("R")
Q = TypeVar("Q")
T = TypeVar("T")

_RESCAN_S = 5.0
"""Seconds after which the whole store is looked at again whatever its mark says: somebody may have edited a file."""

_MANY = 200
"""From so many changed sessions on, the store is asked for its whole list."""

_BATCH = 200
"""Logs that are read before what they gave is written down; other processes may write in between."""

_LARGE = 1 << 18
"""Bytes from which a piece of a log is folded in a worker thread."""

_SHOWN_IDS = 5


class LocalIndex(SessionIndex):
    """An index in one file, or in memory where the file cannot be used."""

    def __init__(
        self,
        store: SessionStore,
        path: Path | None,
        projections: Projections,
        clock: Clock,
        report: Callable[[BaseException, str], None],
    ) -> None:
        self._store = store
        self._path = path
        self._projections = projections
        self._clock = clock
        self._report = report
        self._sources: dict[str, AnySource] = {}
        self._file: IndexFile | None = None
        self._busy = anyio.Lock()
        self._mark: str | None = None
        self._scanned: float | None = None

    def register(self, ctx: Context, source: IndexSource[S]) -> None:
        self._projections.register(ctx, source.facts)
        key = source.facts.key
        self._sources[key] = cast("AnySource", source)

        def forget() -> None:
            self._sources.pop(key, None)

        ctx.defer(f"index source {key}", forget)

    def close(self) -> None:
        """Let go of the file."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    # --- answers ---

    async def list(self, query: ListQuery | None = None) -> Page[Summary]:
        asked = query or ListQuery()
        condition(asked)
        words = words_in(asked.text) if asked.text is not None else None

        async def answer() -> Page[Summary]:
            wanted = condition(asked)
            await self._look()
            if needs_facts(asked):
                await self._read(None)
            if words is not None:
                search = Search(self._open, words)
                part, value = one_of(
                    await self._in_thread(
                        lambda: search.sessions(roots=asked.roots_only and asked.parent is None)
                    )
                )
                wanted.add(part, value)
            rows, more = await self._rows(wanted.text, wanted.values, asked.limit)
            cursor = (
                ListCursor(rows[-1].status == "unreadable", rows[-1].created, rows[-1].id) if more else None
            )
            return Page(tuple(map(summary_of, rows)), closed(cursor) if cursor else None)

        return await self._answered(answer)

    async def search(
        self, text: str, *, kind: str | None = None, limit: int = 20, cursor: str | None = None
    ) -> Page[Hit]:
        check_limit(limit)
        words = words_in(text)

        async def answer() -> Page[Hit]:
            await self._look()
            await self._read(None)
            search = Search(self._open, words)
            return await self._in_thread(lambda: search.page(kind, limit, cursor, summary_of))

        return await self._answered(answer)

    async def summary(self, session_id: str) -> Summary:
        async def answer() -> Summary:
            entry = _entry(await self._store.entry(session_id), "")
            file = self._open()
            await self._in_thread(lambda: file.enter([entry]))
            rows, _ = await self._rows("id = ?", [session_id], 1)
            return summary_of(rows[0])

        return await self._answered(answer)

    async def resolve(self, prefix: str) -> str:
        try:
            return (await self._store.entry(prefix)).id
        except SessionNotFound:
            found = sorted(one for one in await self._store.stamps() if prefix and one.startswith(prefix))
            if len(found) == 1:
                return found[0]
            if not found:
                raise
        raise AmbiguousId(prefix, tuple(found[:_SHOWN_IDS]), len(found) > _SHOWN_IDS) from None

    async def rebuild(self) -> None:
        async def answer() -> None:
            await self._in_thread(lambda: self._open().clear())
            self._scanned = None
            await self._look()
            await self._read(None)

        await self._answered(answer)

    async def _answered(self, answer: Callable[[], Awaitable[R]]) -> R:
        """What `answer` gives; a file that proves useless is replaced once by a new one, then by memory."""
        async with self._busy:
            for _ in range(2):
                try:
                    return await answer()
                except IndexUnusable as error:
                    self._replace(error)
            return await answer()

    def _replace(self, error: IndexUnusable) -> None:
        self.close()
        self._scanned = None
        path, damaged = self._path, error.damaged
        if path is not None and damaged:
            try:
                _remove(path)
            except OSError:
                damaged = False
        if not damaged:
            self._path = None
        what = "is made anew" if damaged else "is kept in memory for now, which takes longer"
        self._report(error, f"the index of sessions ({path}) {what}")

    def _open(self) -> IndexFile:
        if self._file is None:
            from leadline.capabilities.session_index.providers.index_file import (  # noqa: PLC0415 - loads SQLite
                IndexFile,
            )

            self._file = IndexFile(self._path)
        return self._file

    async def _in_thread(self, call: Callable[[], R]) -> R:
        return await to_thread.run_sync(call)

    async def _rows(
        self, where: str, values: Sequence[object], limit: int
    ) -> tuple[builtins.list[Row], bool]:
        """Rows whose logs were read, and whether there are more."""
        rows = await self._in_thread(lambda: self._open().rows(where, values, limit + 1))
        good = await self._good()
        shown = rows[:limit]
        unread = [row.id for row in shown if row.known not in good and row.status != "unreadable"]
        if unread:
            await self._read(unread)
            rows = await self._in_thread(lambda: self._open().rows(where, values, limit + 1))
        return rows[:limit], len(rows) > limit

    # --- keeping up ---

    async def _look(self) -> None:
        """Learn of every session what the store says of it now."""
        mark, now = await self._store.mark(), self._clock.monotonic()
        if mark is None or mark != self._mark or self._scanned is None or now - self._scanned > _RESCAN_S:
            await self._scan()
            self._mark, self._scanned = mark, now
            return
        stirring = {*await self._store.writers(), *await self._in_thread(lambda: self._open().open_ids())}
        if stirring:
            await self._enter(sorted(stirring), {})

    async def _scan(self) -> None:
        (stamps, writers), (file, known, held) = await _both(
            self._as_stored, lambda: self._in_thread(self._as_known)
        )
        gone = [one for one in known if one not in stamps]
        if gone:
            await self._in_thread(lambda: file.remove(gone))
        changed = {one for one, stamp in stamps.items() if known.get(one) != stamp}
        changed.update(one for one in (*writers, *held) if one in stamps)
        if changed:
            await self._enter(sorted(changed), stamps)

    async def _as_stored(self) -> tuple[dict[str, str], Iterable[str]]:
        stamps = await self._store.stamps()
        return {_plain(one): stamp for one, stamp in stamps.items()}, await self._store.writers()

    def _as_known(self) -> tuple[IndexFile, dict[str, str], Sequence[str]]:
        file = self._open()
        return file, file.stamps(), file.open_ids()

    async def _enter(self, ids: Sequence[str], stamps: dict[str, str]) -> None:
        """Take in what the store says of `ids`. Stamps are older than that, so that nothing is missed."""
        if len(ids) > _MANY:
            wanted = set(ids)
            found = [one for one in await self._store.list() if _plain(one.id) in wanted]
        else:
            found = [one for each in ids if (one := await self._entry(each)) is not None]
        missing = {*ids} - {_plain(one.id) for one in found}
        if missing:  # gone in the meantime, or told by the list alone
            found += [one for one in await self._store.list() if _plain(one.id) in missing]
            missing -= {_plain(one.id) for one in found}
        entries = [_entry(one, stamps.get(_plain(one.id), "")) for one in found]
        file = self._open()
        await self._in_thread(lambda: file.enter(entries))
        if missing:
            await self._in_thread(lambda: file.remove(missing))

    async def _entry(self, session_id: str) -> SessionEntry | None:
        try:
            return await self._store.entry(session_id)
        except SessionNotFound:
            return None

    # --- reading logs ---

    def _all_sources(self) -> list[AnySource]:
        return [cast("AnySource", TRANSCRIPTS), *self._sources.values()]

    def _by(self) -> str:
        """Names the sources that read logs now."""
        return " ".join(f"{one.facts.key}:{one.facts.version}" for one in self._all_sources())

    async def _good(self) -> list[str]:
        """What logs may have been read by: all sources of now, and perhaps others."""
        needed = set(self._by().split())
        known = await self._in_thread(lambda: self._open().known())
        return [one for one in known if needed <= set(one.split())]

    async def _read(self, ids: Sequence[str] | None) -> None:
        """Read the logs of `ids` that changed, or all that did."""
        good = await self._good()
        unread = await self._in_thread(lambda: self._open().unread(good, ids))
        by = self._by()
        for start in range(0, len(unread), _BATCH):
            readings = [(one, await self._reading(one)) for one in unread[start : start + _BATCH]]
            taken = [(one, reading) for one, reading in readings if reading is not None]
            await self._in_thread(lambda taken=taken: self._open().take(by, taken))

    async def _reading(self, unread: Unread) -> Reading | None:
        """What the log of a session says; None where it is gone."""
        known = unread.progress if unread.progress and unread.progress.offset < unread.size else None
        sources = self._all_sources()
        try:
            return await self._read_on(unread, sources, known) or await self._read_loaded(unread.id, sources)
        except SessionNotFound:
            return None
        except IndexUnusable:
            raise
        except Exception as error:  # noqa: BLE001 - what one log says cannot be kept; the others are listed
            self._report(error, f"index of session {unread.id}")
            return Reading(Facts(), (), Progress(0, {}), whole=True)

    async def _read_on(
        self, unread: Unread, sources: Sequence[AnySource], known: Progress | None
    ) -> Reading | None:
        """What the log says, from where it was left; None where it takes the store's own loading."""
        reader = LogReader(unread.id, sources, known, self._report)
        try:
            async with aclosing(self._store.tail(unread.id, reader.offset)) as chunks:
                async for chunk in chunks:
                    if len(chunk) > _LARGE:
                        await to_thread.run_sync(reader.feed, chunk)
                    else:
                        reader.feed(chunk)
        except SessionUnreadable:
            return None
        return reader.reading()

    async def _read_loaded(self, session_id: str, sources: Sequence[AnySource]) -> Reading:
        session = await self._store.read(session_id)
        return await to_thread.run_sync(read_session, session, sources, self._report)


def _plain(text: str) -> str:
    """`text` as it can be kept: what is no character, as in a file name of another encoding, is written out."""
    return text.encode("utf-8", "backslashreplace").decode()


def _remove(path: Path) -> None:
    """Delete a damaged index; it is built anew."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


async def _both(one: Callable[[], Awaitable[R]], other: Callable[[], Awaitable[Q]]) -> tuple[R, Q]:
    """What both give, at the same time. An error of one is raised as it is, after the other is done."""
    first: list[R] = []
    second: list[Q] = []
    failed: list[Exception] = []

    async def kept(call: Callable[[], Awaitable[T]], given: list[T]) -> None:
        try:
            given.append(await call())
        except Exception as error:  # noqa: BLE001 - raised below, where no group is put around it
            failed.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kept, one, first)
        await kept(other, second)
    if failed:
        raise failed[0]
    return first[0], second[0]


def _entry(found: SessionEntry, stamp: str) -> Entry:
    holder = found.holder
    return Entry(
        id=_plain(found.id),
        stamp="" if holder is not None else stamp,
        resting=found.status,
        kind=found.kind,
        created=found.created,
        modified=found.modified,
        parent=found.parent,
        depth=bounded(found.depth),
        label=found.label,
        size=found.size,
        archived=found.archived,
        reason=_plain(found.reason),
        holder=f"process {holder.pid} on {holder.host}" if holder is not None else "",
    )


def summary_of(row: Row) -> Summary:
    """A row as others see it."""
    return Summary(
        id=row.id,
        kind=row.kind,
        status=cast("Status", row.status),
        created_at=_shown(row.created),
        modified_at=_shown(row.modified),
        title=row.title,
        question=row.question,
        method=row.method,
        model=row.model,
        corpora=msgspec.json.decode(row.corpora, type=tuple[str, ...]),
        turns=row.turns,
        calls=row.calls,
        tokens=row.tokens,
        cost=row.cost,
        currency=row.currency,
        cost_at_least=row.cost_at_least,
        parent=row.parent,
        depth=row.depth,
        size=row.size,
        archived=bool(row.archived),
        reason=row.reason,
        holder=row.holder,
    )


def _shown(moment: float) -> str:
    try:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""
    except (ValueError, OverflowError, OSError):
        return ""
