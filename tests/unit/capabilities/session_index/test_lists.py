"""Lists of sessions: order, pages, filters, and a status that is right at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from tests.unit.capabilities.session_index.conftest import Library, draft, run, turn

from leadline.capabilities.session_index.seam import AmbiguousId, ListQuery, QueryRefused
from leadline.core.session.errors import SessionNotFound
from leadline.core.session.events import Titled
from leadline.research.events import Resumed

pytestmark = pytest.mark.anyio


async def ids(library: Library, **query: object) -> list[str]:
    async with library.index() as index:
        return [one.id for one in (await index.list(ListQuery(**query))).items]  # pyright: ignore[reportArgumentType]


async def status(library: Library, session_id: str) -> str:
    async with library.index() as index:
        return (await index.summary(session_id)).status


async def test_a_session_is_summed_up(library: Library) -> None:
    await library.add(
        "s-1", [*turn(1, "How deep is the channel?", "Nine fathoms."), *turn(2, "Thanks", "Yes.")]
    )
    async with library.index() as index:
        one = (await index.list()).items[0]
    assert (one.id, one.kind, one.status, one.title) == (
        "s-1",
        "agent",
        "finished",
        "How deep is the channel?",
    )
    assert (one.turns, one.calls, one.tokens, one.model) == (2, 2, 220, "local/model")
    assert (one.cost, one.currency, one.depth, one.parent, one.archived) == (None, None, 0, None, False)
    assert one.created_at == "2026-01-01T00:00:01Z" and one.size > 100


async def test_a_run_is_summed_up(library: Library) -> None:
    await library.add(
        "r-1", run("What does it cost?", draft("It costs 4 euros."), cost=0.25), kind="research"
    )
    async with library.index() as index:
        one = await index.summary("r-1")
    assert (one.kind, one.status, one.question, one.title) == (
        "research", "completed", "What does it cost?", "What does it cost?",
    )  # fmt: skip
    assert (one.method, one.corpora, one.calls, one.tokens, one.cost, one.currency) == (
        "adaptive", ("share",), 7, 500, 0.25, "EUR",
    )  # fmt: skip


async def test_the_newest_come_first_page_by_page_and_each_once(library: Library) -> None:
    for number in range(7):
        await library.add(f"s-{number}", turn(1, f"Question {number}"))
    async with library.index() as index:
        seen: list[list[str]] = []
        cursor = None
        while True:
            page = await index.list(ListQuery(limit=3, cursor=cursor))
            seen.append([one.id for one in page.items])
            cursor = page.cursor
            if cursor is None:
                break
    assert seen == [["s-6", "s-5", "s-4"], ["s-3", "s-2", "s-1"], ["s-0"]]


async def test_sessions_of_one_moment_are_paged_by_their_ids(library: Library) -> None:
    for number in range(5):
        await library.add(f"s-{number}", created=1_767_225_600.0)
    async with library.index() as index:
        first = await index.list(ListQuery(limit=2))
        second = await index.list(ListQuery(limit=2, cursor=first.cursor))
    assert [one.id for one in (*first.items, *second.items)] == ["s-4", "s-3", "s-2", "s-1"]


async def test_filters_hold_together(library: Library) -> None:
    await library.add("s-1", turn(1, "The Harbour's depth", "x"))
    await library.add("r-1", run("Cost of the Harbour?", cost=0.5, corpus="Museum papers"), kind="research")
    await library.add("r-2", run("Cost of the crane?", cost=2.0, status="failed"), kind="research")
    await library.add("c-1", turn(1, "child"), parent="r-1", depth=1)
    assert await ids(library) == ["r-2", "r-1", "s-1"]
    assert await ids(library, roots_only=False) == ["c-1", "r-2", "r-1", "s-1"]
    assert await ids(library, parent="r-1") == ["c-1"]
    assert await ids(library, kind="research") == ["r-2", "r-1"]
    assert await ids(library, status=("failed", "finished")) == ["r-2", "s-1"]
    assert await ids(library, title="HARBOUR") == ["r-1", "s-1"]
    assert await ids(library, title="100%") == []
    assert await ids(library, corpus="museum") == ["r-1"]
    assert await ids(library, model="Local/") == ["r-2", "r-1", "s-1"]
    assert await ids(library, min_cost=0.5, max_cost=1.0) == ["r-1"]
    assert await ids(library, kind="research", title="crane", min_cost=1) == ["r-2"]


async def test_times_are_dates_or_times_and_a_date_includes_its_day(library: Library) -> None:
    await library.add("s-1", created=1_767_225_600.0)  # 2026-01-01T00:00:00Z
    await library.add("s-2", created=1_767_225_600.0 + 86_399.5)
    await library.add("s-3", created=1_767_225_600.0 + 86_400)
    assert await ids(library, since="2026-01-02") == ["s-3"]
    assert await ids(library, until="2026-01-01") == ["s-2", "s-1"]
    assert await ids(library, until="2026-01-01T23:59:59Z") == ["s-2", "s-1"]
    assert await ids(library, until="2026-01-01T23:59:58") == ["s-1"]
    assert await ids(library, since="2026-01-01T01:00:00+01:00", until="2026-01-01T00:00:00Z") == ["s-1"]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"since": "yesterday"}, "yesterday"),
        ({"until": "2026-13-01"}, "2026-13-01"),
        ({"status": ("finnished",)}, "finished"),
        ({"limit": 0}, "limit 0"),
        ({"limit": 1.5}, "limit 1.5"),
        ({"cursor": "nonsense"}, "nonsense"),
        ({"text": "…"}, "…"),
    ],
)
async def test_what_makes_no_sense_is_refused_by_name(
    library: Library, query: dict[str, object], named: str
) -> None:
    async with library.index() as index:
        with pytest.raises(QueryRefused, match=named):
            await index.list(ListQuery(**query))  # pyright: ignore[reportArgumentType]


async def test_a_title_that_was_given_is_listed_and_found(library: Library) -> None:
    await library.add("s-1", turn(1, "How deep is it?"))
    assert await ids(library, title="soundings") == []
    await library.append("s-1", Titled(title="Soundings of 1891", source="user"))
    assert await ids(library, title="soundings") == ["s-1"]
    async with library.index() as index:
        assert [hit.place for hit in (await index.search("soundings")).items] == ["title"]


# --- status ------------------------------------------------------------------------------------------------


async def test_running_and_finished_are_told_at_once(library: Library) -> None:
    session = await library.open("s-1", turn(1, "Wait", end=False))
    async with library.index() as index:
        assert [(one.status, bool(one.holder)) for one in (await index.list()).items] == [("running", True)]
        session.append_all(turn(1, "", end=True)[-1:])
        await session.close()
        assert [(one.status, one.holder) for one in (await index.list()).items] == [("finished", "")]
        again = await library.store.open("s-1")
        assert [one.status for one in (await index.list()).items] == ["running"]
        assert [one.status for one in (await index.list(ListQuery(status=("running",)))).items] == ["running"]
        await again.close()
        assert [one.status for one in (await index.list()).items] == ["finished"]


async def test_a_session_without_a_turn_is_idle(library: Library) -> None:
    await library.add("s-1")
    assert await status(library, "s-1") == "idle"


@pytest.mark.parametrize("ended", ["completed", "partial", "failed", "cancelled"])
async def test_a_run_that_ended_has_the_status_of_its_end(library: Library, ended: str) -> None:
    await library.add("r-1", run("Why?", status=ended), kind="research")  # pyright: ignore[reportArgumentType]
    assert await status(library, "r-1") == ended


async def test_a_run_without_an_end_whose_writer_is_gone_is_interrupted(library: Library) -> None:
    await library.add("r-1", run("Why?", status=None), kind="research")
    assert await status(library, "r-1") == "interrupted"


async def test_a_run_that_was_taken_up_again_does_not_keep_the_status_of_its_first_end(
    library: Library,
) -> None:
    await library.add("r-1", run("Why?", status="cancelled"), kind="research")
    async with library.index() as index:
        assert (await index.list()).items[0].status == "cancelled"
        await library.append("r-1", Resumed())
        assert (await index.list()).items[0].status == "interrupted"
        await library.append("r-1", run("Why?", status="completed")[-1])
        assert (await index.list()).items[0].status == "completed"


WRITER = """
import anyio, sys
from pathlib import Path
from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.capabilities.persistence.providers.sqlite import SqliteSessions
from leadline.core.clock import Clock
from leadline.core.session.codec import Header
from leadline.core.session.events import TurnStart
from leadline.core.session.registry import EventTypes

async def main():
    kind = {"files": JsonlSessions, "database": SqliteSessions}[sys.argv[1]]
    store = kind(Path(sys.argv[2]), clock=Clock(), types=EventTypes())
    session = await store.create(Header(id="s-1", kind="agent", created=1.0))
    session.append(TurnStart(turn=1))
    print("open", flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


async def test_a_writer_in_another_process_is_seen_to_live_and_to_die(library: Library) -> None:
    command = [sys.executable, "-c", WRITER, library.kind, str(library.place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:  # noqa: ASYNC220 - it is to be killed
        assert writer.stdout is not None and writer.stdout.readline() == b"open\n"
        async with library.index() as index:
            one = (await index.list()).items[0]
            assert one.status == "running" and f"process {writer.pid} on " in one.holder
            os.kill(writer.pid, signal.SIGKILL)
            writer.wait()
            assert [(it.status, it.holder) for it in (await index.list()).items] == [("interrupted", "")]


@pytest.mark.case("S02")
async def test_one_corrupt_session_is_listed_as_such_and_harms_no_other(library: Library) -> None:
    for number in (1, 2, 3):
        await library.add(f"s-{number}", turn(1, f"Question {number}"))
    async with library.index() as index:
        assert len((await index.list()).items) == 3
    path = library.log("s-2")
    path.write_bytes(b"\x00\xfe" * 10 + path.read_bytes()[20:])
    async with library.index() as index:
        found = (await index.list()).items
    assert [(one.id, one.status) for one in found] == [
        ("s-3", "finished"),
        ("s-1", "finished"),
        ("s-2", "unreadable"),
    ]
    assert found[2].reason and found[2].created_at == ""
    assert await ids(library, status=("unreadable",)) == ["s-2"]


async def test_what_is_unreadable_is_paged_too(library: Library) -> None:
    for number in range(4):
        await library.add(f"s-{number}")
    for number in (0, 1):
        library.log(f"s-{number}").write_bytes(b"?")
    async with library.index() as index:
        first = await index.list(ListQuery(limit=3))
        second = await index.list(ListQuery(limit=3, cursor=first.cursor))
    assert [one.id for one in (*first.items, *second.items)] == ["s-3", "s-2", "s-1", "s-0"]


# --- one session -------------------------------------------------------------------------------------------


async def test_an_id_may_be_given_by_its_beginning(library: Library) -> None:
    for one in ("s-1", "s-12", "s-2"):
        await library.add(one)
    async with library.index() as index:
        assert [await index.resolve(one) for one in ("s-1", "s-12", "s-2", "s-12")] == [
            "s-1",
            "s-12",
            "s-2",
            "s-12",
        ]
        with pytest.raises(AmbiguousId, match="s-1, s-12, s-2"):
            await index.resolve("s-")
        for wrong in ("x", "", "../s-1", "s-1%"):
            with pytest.raises(SessionNotFound):
                await index.resolve(wrong)
        with pytest.raises(SessionNotFound):
            await index.summary("s-9")


async def test_a_session_that_was_deleted_or_archived_is_told_at_once(library: Library) -> None:
    await library.add("s-1", turn(1, "One harbour"))
    await library.add("s-2", turn(1, "Two harbours"))
    async with library.index() as index:
        assert len((await index.list()).items) == 2
        await library.store.archive("s-1")
        await library.store.delete("s-2")
        found = (await index.list()).items
        assert [(one.id, one.archived, one.status, one.title) for one in found] == [
            ("s-1", True, "finished", "One harbour")
        ]
        assert [hit.summary.id for hit in (await index.search("harbour")).items] == ["s-1"]
        assert [hit.summary.id for hit in (await index.search("two")).items] == []
