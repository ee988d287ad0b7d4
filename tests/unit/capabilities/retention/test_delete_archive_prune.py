"""Families go as wholes, children first; what a fork needs stays; what somebody writes is left alone."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import pytest

from leadline.capabilities.retention.seam import SessionsRemoved
from leadline.capabilities.session_index import plugin as session_index
from leadline.capabilities.session_index.seam import SessionIndex
from leadline.core.session import projection
from leadline.core.session.codec import Header
from leadline.core.session.errors import SessionLocked, SessionNotFound, SessionWriteFailed
from leadline.core.session.events import TurnStart
from leadline.testing.conformance.session_store import Noted, asked

from .conftest import DAY, Opener, Place

pytestmark = pytest.mark.anyio


# --- delete ------------------------------------------------------------------------------------------------


async def test_a_family_goes_with_all_its_children_and_nobody_else(place: Place) -> None:
    await place.family()
    await place.session("other")
    trial = await place.retention.delete("r", dry_run=True)
    assert [one.id for one in trial.parts] == ["g", "c2", "c1", "r"] and trial.kept == ()
    assert trial.bytes == sum([len(await place.log(one)) for one in ("r", "c1", "c2", "g")])
    assert await place.ids() == {"r", "c1", "c2", "g", "other"} and not place.removed
    report = await place.retention.delete("r")
    assert report.parts == trial.parts and await place.ids() == {"other"}
    assert [one.ids for one in place.removed] == [("g", "c2", "c1", "r")]
    with pytest.raises(SessionNotFound):
        await place.retention.delete("r")


async def test_a_child_goes_without_its_parent(place: Place) -> None:
    await place.family()
    await place.retention.delete("c1")
    assert await place.ids() == {"r", "c2"}


@pytest.mark.parametrize(("alive", "target"), [("r", "r"), ("g", "r"), ("c1", "g"), ("r", "g")])
async def test_nothing_goes_while_somebody_writes_one_of_them_or_one_above(
    place: Place, opened: Opener, alive: str, target: str
) -> None:
    await place.family()
    async with opened("here") as other:
        session = await other.store.open(alive)
        for dry_run in (True, False):
            with pytest.raises(SessionLocked, match=f"session {alive} "):
                await place.retention.delete(target, dry_run=dry_run)
        assert await place.ids() == {"r", "c1", "c2", "g"}
        await session.close()
    await place.retention.delete(target)
    assert target not in await place.ids()


async def test_a_delete_that_was_cut_off_leaves_the_root_and_is_completed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.family()
    delete = type(place.store).delete

    async def fail(store: object, session_id: str) -> None:
        if session_id == "c1":
            raise SessionWriteFailed("c1", "no space left", "free space")
        await delete(place.store, session_id)

    with monkeypatch.context() as patch:
        patch.setattr(type(place.store), "delete", fail)
        with pytest.raises(SessionWriteFailed):
            await place.retention.delete("r")
    assert await place.ids() == {"r", "c1"} and place.removed[0].ids == ("g", "c2")
    await place.retention.delete("r")
    assert await place.ids() == set()


async def test_nothing_more_goes_once_somebody_resumes_the_root(
    place: Place, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.family()
    delete = type(place.store).delete
    async with opened("here") as other:

        async def resumed(store: object, session_id: str) -> None:
            await delete(place.store, session_id)
            if session_id == "g":
                await other.store.open("r")

        with monkeypatch.context() as patch:
            patch.setattr(type(place.store), "delete", resumed)
            with pytest.raises(SessionLocked):
                await place.retention.delete("r")
        assert await place.ids() == {"r", "c1", "c2"}


async def test_a_fork_is_nobodys_child_and_keeps_the_children_that_it_names(place: Place) -> None:
    await place.session("r", [Noted(text="c1")])
    await place.session("c1", parent="r", depth=1)
    await place.session("g", parent="c1", depth=2)
    await place.session("c2", parent="r", depth=1)
    fork = await place.fork("r", "f")
    fork.append(Noted(text="c2 is only told of in a sentence"))
    await fork.close()
    await (await place.fork("f", "ff")).close()
    report = await place.retention.delete("r")
    assert [one.id for one in report.parts] == ["c2", "r"] and report.kept == ("c1", "g")
    assert await place.ids() == {"c1", "g", "f", "ff"}
    report = await place.retention.delete("f")
    assert [one.id for one in report.parts] == ["f"] and report.kept == ("c1", "g"), "its own fork needs them"


async def test_a_fork_takes_what_only_it_needs_with_it(place: Place) -> None:
    await place.session("r", [Noted(text="c1")])
    await place.session("c1", parent="r", depth=1)
    await place.session("g", parent="c1", depth=2)
    await (await place.fork("r", "f")).close()
    report = await place.retention.delete("f", dry_run=True)
    assert [one.id for one in report.parts] == ["f"] and report.kept == ("c1", "g"), "r is still there"
    await place.retention.delete("r")
    assert await place.ids() == {"c1", "g", "f"}
    report = await place.retention.delete("f")
    assert [one.id for one in report.parts] == ["g", "c1", "f"] and await place.ids() == set()


async def test_a_fork_made_before_a_child_was_does_not_keep_it(place: Place) -> None:
    await place.session("r")
    await (await place.fork("r", "f")).close()
    session = await place.store.open("r")
    session.append(Noted(text="c1"))
    await session.close()
    await place.session("c1", parent="r", depth=1)
    assert [one.id for one in (await place.retention.delete("r")).parts] == ["c1", "r"]


# --- archive -----------------------------------------------------------------------------------------------


async def test_a_family_is_put_away_and_still_reads_the_same(place: Place) -> None:
    noise = [Noted(text="nine fathoms " * 1000)]
    await place.session("r", noise)
    await place.session("c1", noise, parent="r", depth=1)
    before = {one: await place.log(one) for one in ("r", "c1")}
    trial = await place.retention.archive("r", dry_run=True)
    assert {one.id for one in trial.parts} == {"r", "c1"} and trial.bytes_after == trial.bytes_before
    assert not any(one.archived for one in await place.store.list())
    report = await place.retention.archive("r")
    assert report.bytes_before == sum(len(it) for it in before.values())
    assert 0 < report.bytes_after < report.bytes_before / 5
    assert (await place.retention.delete("r", dry_run=True)).bytes == report.bytes_after
    assert all(one.archived for one in await place.store.list())
    assert {one: await place.log(one) for one in before} == before
    again = await place.retention.archive("r")
    assert again.parts == () and again.bytes_before == 0
    session = await place.store.open("r")
    with pytest.raises(SessionLocked):
        await place.retention.archive("r")
    session.append(TurnStart(turn=2))
    await session.close()


# --- prune -------------------------------------------------------------------------------------------------


async def test_old_families_go_by_kind_and_age(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    await place.family()
    await place.session("a")
    await (await place.fork("a", "f")).close()
    await place.session("stopped", asked(2)[:4])
    now = place.clock.now()
    monkeypatch.setattr(place.clock, "now", lambda: now + 10 * DAY)
    await place.session("new")
    written = place.root / "sessions" / "new.jsonl"
    if written.exists():  # such a store takes the time from the file system
        os.utime(written, (now + 10 * DAY, now + 10 * DAY))
    monkeypatch.setattr(place.clock, "now", lambda: now + 20 * DAY)
    assert (await place.retention.prune(30 * DAY)).deleted == ()
    old = 15 * DAY
    trial = await place.retention.prune(old, kinds=["research"], dry_run=True)
    assert [one.root for one in trial.deleted] == ["r"] and trial.dry_run
    assert trial.bytes == sum(one.bytes for one in trial.deleted)
    report = await place.retention.prune(old)
    assert {one.root for one in report.deleted} == {"r", "a", "f"}
    assert [one for one, _ in report.skipped] == ["stopped"] and "resumed" in report.skipped[0][1]
    assert await place.ids() == {"stopped", "new"}
    assert [one.root for one in (await place.retention.prune(old, interrupted=True)).deleted] == ["stopped"]


async def test_old_files_of_sessions_go_and_living_ones_stay(place: Place, opened: Opener) -> None:
    await place.family()
    await place.session("gone")
    alive = await place.store.create(Header(id="alive", kind="agent", created=place.clock.now()))
    young = await place.store.open("c1")
    young.append(TurnStart(turn=2))
    await young.close()
    async with opened("here") as other:
        report = await other.retention.prune(-1, interrupted=True, dry_run=True)
    assert {one.root for one in report.deleted} == {"r", "gone"}
    assert report.skipped == (("alive", "session alive is being written"),)
    await alive.close()


async def test_what_was_derived_from_a_deleted_session_is_forgotten_at_once(place: Place) -> None:
    await place.ctx.mount(projection.plugin)
    await place.ctx.mount(session_index.plugin)
    await place.session("s-1")
    index = place.ctx.get(SessionIndex)
    assert [one.summary.id for one in (await index.search("fathoms")).items] == ["s-1"]
    with closing(sqlite3.connect(place.root / "index.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM session").fetchone() == (1,)
        await place.retention.delete("s-1")
        assert connection.execute("SELECT count(*) FROM session").fetchone() == (0,)


async def test_a_listener_that_fails_keeps_nothing_from_going(place: Place) -> None:
    async def fail(removed: SessionsRemoved) -> None:
        raise ValueError("no")

    place.ctx.on(SessionsRemoved, fail)
    await place.session("s-1")
    await place.retention.delete("s-1")
    assert await place.ids() == set()
    (report,) = place.ctx.kernel.reports
    assert "forgetting" in report.where
    place.ctx.kernel.reports.clear()
