"""The index is a read model: it follows the logs, can be lost at any time, and is never believed over them."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.capabilities.session_index.conftest import Library, draft, run, turn

from leadline.capabilities.session_index.providers.local import LocalIndex
from leadline.capabilities.session_index.seam import Facts, IndexSource, ListQuery, Passage
from leadline.core.llm.messages import AssistantMessage, Text
from leadline.core.llm.usage import Usage
from leadline.core.session.codec import Logged
from leadline.core.session.events import AssistantSaid, Event, SeedEnded
from leadline.core.session.projection import Projection
from leadline.research.events import Ended, RunUsage
from leadline.testing.sessions import MemorySessions

pytestmark = pytest.mark.anyio


async def listed(index: LocalIndex) -> list[tuple[str, str, str, int]]:
    page = await index.list(ListQuery(roots_only=False))
    return [(one.id, one.status, one.title, one.turns) for one in page.items]


async def everything(index: LocalIndex) -> object:
    """All that can be asked of it."""
    words = ("anchor", "capstan", "港口", "lantern")
    hits = [[(hit.summary.id, hit.place) for hit in (await index.search(word)).items] for word in words]
    return (await index.list(ListQuery(roots_only=False))).items, [sorted(one) for one in hits]


async def test_only_what_is_new_in_a_log_is_read(library: Library) -> None:
    await library.add("s-1", turn(1, "anchor", "x"))
    await library.add("s-2", turn(1, "lantern", "x"))
    async with library.index() as index:
        await index.search("anchor")
        assert sorted(library.store.tails) == [("s-1", 0), ("s-2", 0)]
    size = (await library.store.entry("s-1")).size
    await library.append("s-1", *turn(2, "capstan", "y"))
    library.store.tails.clear()
    async with library.index() as index:
        hits = await index.search("capstan")
        assert hits.items[0].summary.turns == 2
        assert library.store.tails == [("s-1", size)]
        assert (await index.search("anchor")).items[0].summary.id == "s-1"


@pytest.mark.case("S19")
async def test_a_list_reads_the_logs_that_it_shows(library: Library) -> None:
    for number in range(6):
        await library.add(f"s-{number}", turn(1, "anchor"))
    async with library.index() as index:
        await index.list(ListQuery(limit=2))
    assert sorted(library.store.tails) == [("s-4", 0), ("s-5", 0)]


async def test_while_the_mark_of_the_store_stays_no_log_is_looked_at(library: Library) -> None:
    for number in range(3):
        await library.add(f"s-{number}", turn(1, "anchor"))
    library.settle()
    async with library.index() as index:
        await index.list()
        looks = library.store.looks
        for _ in range(3):
            assert len((await index.list()).items) == 3
        assert library.store.looks == looks
        await library.add("s-9", turn(1, "anchor"))
        assert len((await index.list()).items) == 4


async def test_what_was_edited_behind_the_back_of_the_store_is_seen_soon(library: Library) -> None:
    await library.add("s-1", turn(1, "anchor"))
    library.settle()
    path = library.log("s-1")
    async with library.index() as index:
        await index.list()
        with path.open("r+b") as file:
            file.write(b"????")
        await library.clock.advance(6)
        assert (await index.list()).items[0].status == "unreadable"


async def test_a_log_that_was_replaced_by_a_shorter_one_is_read_anew(library: Library) -> None:
    await library.add("s-1", [*turn(1, "anchor", "x"), *turn(2, "capstan", "y")])
    path = library.log("s-1")
    async with library.index() as index:
        assert (await index.search("capstan")).items
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:6]))
    async with library.index() as index:
        assert await listed(index) == [("s-1", "finished", "anchor", 1)]
        assert not (await index.search("capstan")).items and (await index.search("anchor")).items


async def test_a_log_that_goes_on_differently_is_read_by_the_rule_of_all_loading(library: Library) -> None:
    await library.add("s-1", turn(1, "anchor", "x"))
    path = library.log("s-1")
    async with library.index() as index:
        await index.search("anchor")
    path.write_bytes(path.read_bytes() + b'{"not":"an event"}\n' + path.read_bytes().splitlines()[2] + b"\n")
    async with library.index() as index:
        assert [hit.summary.id for hit in (await index.search("anchor")).items] == ["s-1"]
        assert await listed(index) == [("s-1", "finished", "anchor", 1)]


async def test_a_line_that_a_writer_is_in_the_middle_of_is_read_when_it_is_whole(library: Library) -> None:
    await library.add("s-1", [*turn(1, "anchor"), *turn(2, "capstan")])
    path = library.log("s-1")
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    async with library.index() as index:
        assert (await index.summary("s-1")).turns == 2
        path.write_bytes(whole)
        assert (await index.summary("s-1")).status == "finished"


@pytest.mark.parametrize("count", [2**63, 2**64 - 1, 10**30])
async def test_numbers_that_no_table_holds_harm_nothing(library: Library, count: int) -> None:
    said = AssistantSaid(
        message=AssistantMessage("a1", (Text("anchor"),), "local/model"), usage=Usage(input=count)
    )
    await library.add("s-1", [said, said], depth=0)
    await library.add("r-1", [Ended(status="completed", usage=RunUsage(calls=count))], kind="research")
    await library.add("s-2", turn(1, "lantern"))
    async with library.index() as index:
        assert {one.id for one in (await index.list()).items} == {"s-1", "r-1", "s-2"}
        assert [hit.summary.id for hit in (await index.search("lantern")).items] == ["s-2"]


async def test_a_file_whose_name_is_no_text_is_listed_as_unreadable(library: Library) -> None:
    await library.add("s-1", turn(1, "anchor"))
    library.log("s-1").with_name(os.fsdecode(b"s-\xff.jsonl")).write_bytes(b"{}\n")
    async with library.index() as index:
        for _ in range(2):
            found = (await index.list()).items
            assert [(one.id, one.status) for one in found] == [
                ("s-1", "finished"),
                ("s-\\udcff", "unreadable"),
            ]


# --- loss and damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["deleted", "emptied", "junk", "cut", "middle", "old schema"])
async def test_an_index_that_is_lost_or_damaged_is_made_anew(library: Library, damage: str) -> None:
    await library.add("s-1", turn(1, "anchor"))
    await library.add("r-1", run("Why?", draft("capstan")), kind="research")
    async with library.index() as index:
        before = await everything(index)
    content = library.file.read_bytes()
    for path in library.root.glob("index.sqlite-*"):
        path.unlink()
    match damage:
        case "deleted":
            library.file.unlink()
        case "emptied":
            library.file.write_bytes(b"")
        case "junk":
            library.file.write_bytes(b"no database" * 1000)
        case "cut":
            library.file.write_bytes(content[: len(content) // 2])
        case "middle":
            half = len(content) // 2
            library.file.write_bytes(content[:4096] + b"\xff" * (half - 4096) + content[half:])
        case _:
            with sqlite3.connect(library.file) as file:
                file.execute("PRAGMA user_version = 77")
            file.close()
    async with library.index() as index:
        assert await everything(index) == before
    async with library.index() as index:
        assert await everything(index) == before


async def test_an_index_that_is_damaged_under_a_living_process_is_made_anew(library: Library) -> None:
    for number in range(30):
        await library.add(f"s-{number:02}", turn(1, f"anchor {'chain ' * 200}{number}"))
    async with library.index() as index:
        before = await everything(index)
        index.close()
        half = library.file.stat().st_size // 2
        with library.file.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * half)
        assert await everything(index) == before
        assert library.reports


async def test_where_no_file_can_be_kept_the_answers_are_the_same(library: Library) -> None:
    await library.add("s-1", turn(1, "anchor"))
    nowhere = library.root / "file" / "index.sqlite"
    nowhere.parent.write_bytes(b"no directory")
    async with library.index(file=nowhere) as index, library.index() as other:
        assert await everything(index) == await everything(other)
    assert "memory" in library.reports[0]


async def test_others_may_not_read_the_file(library: Library) -> None:
    await library.add("s-1", turn(1, "anchor"))
    async with library.index() as index:
        await index.list()
        assert all(path.stat().st_mode & 0o077 == 0 for path in library.root.glob("index.sqlite*"))


async def test_rebuilding_gives_the_same_again(library: Library) -> None:
    await library.add("s-1", turn(1, "anchor"))
    await library.add("s-2", turn(1, "港口", "capstan"))
    async with library.index() as index:
        before = await everything(index)
        await index.rebuild()
        assert await everything(index) == before


async def test_two_indexes_over_one_file_keep_each_other_up_to_date(library: Library) -> None:
    async with library.index() as one, library.index() as other:
        for number in range(6):
            await library.add(f"s-{number}", turn(1, "anchor"))
            async with anyio.create_task_group() as tasks:
                for index in (one, other):
                    tasks.start_soon(index.search, "anchor")
            await library.append(f"s-{number}", *turn(2, "capstan"))
            assert await everything(one) == await everything(other)
    with sqlite3.connect(library.file) as file:
        (passages,) = file.execute("SELECT count(*) FROM passage WHERE place = 'transcript'").fetchone()
    file.close()
    assert passages == 12


# --- sources -----------------------------------------------------------------------------------------------


class Count(msgspec.Struct, frozen=True):
    seen: int = 0


def source(version: int = 1, word: str = "bollard") -> IndexSource[Count]:
    def texts(logged: Logged) -> list[Passage]:
        if word == "raise":
            raise ValueError("a defect of the plugin")
        return [Passage(place="transcript", text=word)]

    return IndexSource(
        facts=Projection(
            "test/count", version, Count, lambda _: Count(), lambda state, _: Count(state.seen + 1),
            lambda state: Facts(title=f"{version}:{state.seen}"), frozenset({SeedEnded.TYPE}),
        ),
        texts={SeedEnded.TYPE: texts},
    )  # fmt: skip


async def test_a_plugin_tells_of_its_own_events(library: Library) -> None:
    await library.add("s-1", [SeedEnded(), SeedEnded()])
    async with library.index() as index:
        assert await listed(index) == [("s-1", "idle", "", 0)]
    async with library.index(source()) as index:  # pyright: ignore[reportArgumentType]
        assert await listed(index) == [("s-1", "idle", "1:2", 0)]
        assert (await index.search("bollard")).items[0].summary.id == "s-1"


async def test_a_new_version_of_a_source_reads_every_log_again(library: Library) -> None:
    await library.add("s-1", [SeedEnded()])
    async with library.index(source()) as index:  # pyright: ignore[reportArgumentType]
        await index.search("bollard")
    async with library.index(source(2, "capstan")) as index:  # pyright: ignore[reportArgumentType]
        assert await listed(index) == [("s-1", "idle", "2:1", 0)]
        assert (await index.search("capstan")).items and not (await index.search("bollard")).items


async def test_a_process_that_knows_fewer_sources_reads_nothing_again(library: Library) -> None:
    await library.add("s-1", [SeedEnded()])
    async with library.index(source()) as index:  # pyright: ignore[reportArgumentType]
        await index.search("bollard")
    library.store.tails.clear()
    async with library.index() as index:
        assert await listed(index) == [("s-1", "idle", "1:1", 0)]
    assert library.store.tails == []


async def test_a_source_that_raises_costs_its_text_and_nothing_else(library: Library) -> None:
    await library.add("s-1", [SeedEnded(), *turn(1, "anchor")])
    async with library.index(source(word="raise")) as index:  # pyright: ignore[reportArgumentType]
        assert (await index.search("anchor")).items
    assert any("session/end-seed" in one for one in library.reports)


async def test_an_index_can_be_kept_over_any_store(tmp_path: Path, library: Library) -> None:
    store = MemorySessions(library.clock)
    library.store = store  # pyright: ignore[reportAttributeAccessIssue]
    await library.add("s-1", turn(1, "anchor"))
    async with library.index() as index:
        assert await listed(index) == [("s-1", "finished", "anchor", 1)]
        session = await store.open("s-1")
        session.append_all(turn(2, "capstan"))
        assert (await index.list()).items[0].status == "running"
        await session.close()
        assert await listed(index) == [("s-1", "finished", "anchor", 2)]
        assert (await index.search("capstan")).items


PIECES: list[list[Event]] = [
    turn(1, "anchor", "lantern"),
    turn(2, "港口的灯塔"),
    [draft("capstan"), draft("anchor")],
    run("lantern?", status="partial"),
    run("anchor?", status=None),
    [SeedEnded()],
]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 3), st.integers(0, len(PIECES) - 1)),
        st.tuples(st.sampled_from(("look", "delete", "archive", "tear")), st.integers(0, 3), st.just(0)),
    ),
    max_size=14,
)  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_happens_between_two_looks_an_old_index_says_what_a_new_one_does(
    steps: list[tuple[str, int, int]],
) -> None:
    anyio.run(_compare, steps)


async def _compare(steps: list[tuple[str, int, int]]) -> None:
    with TemporaryDirectory() as folder:
        library = Library(Path(folder))
        async with library.index() as old:
            for what, which, piece in steps:
                await _step(library, old, what, f"s-{which}", piece)
            async with library.index(file=Path(folder) / "new.sqlite") as new:
                assert await everything(old) == await everything(new)


async def _step(library: Library, old: LocalIndex, what: str, session_id: str, piece: int) -> None:
    there = session_id in await library.store.stamps()
    path = library.log(session_id)
    match what:
        case "append" if not there:
            await library.add(session_id, PIECES[0], kind="research")
        case "append":
            session = await library.store.open(session_id)
            try:
                session.append_all([one for one in PIECES[piece] if not one.TYPE.startswith("turn/")])
            finally:
                await session.close()
        case "look":
            await everything(old)
        case "delete" if there:
            await library.store.delete(session_id)
        case "archive" if there:
            await library.store.archive(session_id)
        case "tear" if there and path.exists():
            path.write_bytes(path.read_bytes()[:-7])
            await library.clock.advance(6)  # what no store did is seen when the whole store is looked at
        case _:
            pass
