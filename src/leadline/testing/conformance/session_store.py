"""What every session store promises, as checks that any store can run.

    @pytest.mark.anyio
    @pytest.mark.parametrize("check", CHECKS, ids=name_of)
    async def test_my_store_keeps_the_promise(check, tmp_path):
        await check(lambda types: MyStore(tmp_path, types=types))

A check gets a function that opens the same storage, empty at first, as often as it is called; each
call stands for another process. It raises AssertionError where a promise is not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from leadline.core.session.codec import chain, recompose
from leadline.core.session.errors import (
    EventInvalid,
    ForkRefused,
    SessionClosed,
    SessionExists,
    SessionLocked,
    SessionNotContinuable,
    SessionNotFound,
)
from leadline.core.session.events import (
    Event,
    SeedEnded,
    StepEnd,
    ToolAnswered,
    TurnEnd,
    TurnStart,
)
from leadline.core.session.log import BeforeAppend
from leadline.core.session.registry import EventTypes
from leadline.testing.conformance.session_keeping import KEEPING
from leadline.testing.conformance.session_words import (
    Check,
    Noted,
    Shaped,
    Stores,
    asked,
    header,
    pieces,
    raw_of,
    refused,
    same_events,
    whole_turn,
)

__all__ = [
    "CHECKS",
    "Check",
    "Noted",
    "Shaped",
    "Stores",
    "asked",
    "header",
    "name_of",
    "pieces",
    "raw_of",
    "refused",
    "same_events",
    "whole_turn",
]


async def what_was_appended_is_read_by_another_process(stores: Stores) -> None:
    session = await stores(EventTypes()).create(header())
    session.append_all(whole_turn())
    session.append(Noted(text="über 9 ½ fathoms", weight=0.1))
    read = await stores(EventTypes()).read("s-1")
    same_events(session, read)
    assert not read.problems
    assert [event.text for event in read.of(Noted)] == ["über 9 ½ fathoms"]
    await session.close()


async def numbers_are_contiguous_and_lines_chained(stores: Stores) -> None:
    session = await stores(EventTypes()).create(header())
    for event in whole_turn():
        session.append(event)
    assert [it.seq for it in session.logged] == list(range(6))
    for one, following in zip(session.logged, session.logged[1:], strict=False):
        line, _, digest = recompose(one, one.seq, one.prev)
        assert following.prev == digest == chain(line[:-1])
    await session.close()


async def a_session_has_one_writer(stores: Stores) -> None:
    session = await stores(EventTypes()).create(header())
    other = stores(EventTypes())
    await refused(SessionLocked, lambda: other.open("s-1"))
    session.append(Noted(text="still mine"))
    await session.close()
    again = await other.open("s-1")
    assert len(again) == 1
    await again.close()


async def reading_needs_no_lease_and_never_writes(stores: Stores) -> None:
    session = await stores(EventTypes()).create(header())
    session.append_all(asked())
    read = await stores(EventTypes()).read("s-1")
    assert len(read) == 7 and not read.writable
    session.append(Noted(text="meanwhile"))
    assert len(await stores(EventTypes()).read("s-1")) == 8
    await session.close()


async def numbering_goes_on_where_the_log_ends(stores: Stores) -> None:
    store = stores(EventTypes())
    session = await store.create(header())
    session.append_all([event for number in range(1, 21) for event in whole_turn(number)])
    await session.close()
    again = await stores(EventTypes()).open("s-1")
    assert again.append(Noted(text="next")).seq == 120
    assert again.place.turn == 20
    await again.close()


async def an_id_is_taken_once(stores: Stores) -> None:
    session = await stores(EventTypes()).create(header())
    session.append(Noted(text="first"))
    await refused(SessionExists, lambda: stores(EventTypes()).create(header()))
    await session.close()
    await refused(SessionExists, lambda: stores(EventTypes()).create(header()))
    assert len(await stores(EventTypes()).read("s-1")) == 1


async def an_unknown_id_is_told(stores: Stores) -> None:
    store = stores(EventTypes())
    for session_id in ("s-none", "../s-1", "", "a/b"):
        for doing in (store.open, store.read, store.delete):
            await refused(SessionNotFound, lambda doing=doing, it=session_id: doing(it))
    await refused(EventInvalid, lambda: store.create(header("../s-1")))


async def what_a_dead_writer_left_open_is_closed_once(stores: Stores) -> None:
    session = await stores(EventTypes()).create(header())
    session.append_all(asked())
    await session.close()
    again = await stores(EventTypes()).open("s-1")
    kinds = [it.type for it in again.since(7)]
    assert kinds == ["tool/result", "tool/result", "step/end", "turn/end"], kinds
    answers = list(again.of(ToolAnswered, since=7))
    assert [it.error_code for it in answers] == ["TOOL_OUTCOME_UNKNOWN", "TOOL_NOT_STARTED"]
    assert [it.reason for it in again.of(TurnEnd)] == ["interrupted"]
    assert again.derived().conversation.pairing_problem is None
    await again.close()
    once_more = await stores(EventTypes()).open("s-1")
    same_events(again, once_more)
    await once_more.close()


async def a_refused_event_leaves_no_trace(stores: Stores) -> None:
    store = stores(EventTypes())

    def no_secrets(before: BeforeAppend) -> None:
        if isinstance(before.event, Noted) and before.event.text == "secret":
            raise ValueError("no secrets")

    store.hooks.vetoes.append(no_secrets)
    session = await store.create(header())
    session.append(Noted(text="kept"))
    wrong: list[Sequence[Event]] = [
        [Noted(text="secret")],
        [Noted(text="x"), Noted(text=cast("str", 7))],
        [Noted(text="\ud800")],
        [Noted(text="x", weight=float("nan"))],
        [TurnStart(turn=1), StepEnd(turn=1, step=1)],
    ]
    for events in wrong:
        try:
            session.append_all(events)
        except Exception as error:  # noqa: BLE001 - which error is another matter
            assert len(session) == 1, f"{error} left something behind"
        else:
            raise AssertionError(f"{events} was accepted")
    same_events(session, await stores(EventTypes()).read("s-1"))
    session.append(Noted(text="after"))
    same_events(session, await stores(EventTypes()).read("s-1"))
    await session.close()


async def an_unknown_event_is_kept_byte_for_byte(stores: Stores) -> None:
    session = await stores(EventTypes((Noted,))).create(header())
    kept = bytes(session.append(Noted(text="é")).data)
    await session.close()
    without = await stores(EventTypes()).open("s-1")
    assert without.event(without.logged[0]) is None and without.continuable
    without.append_all(whole_turn())
    await without.close()
    read = await stores(EventTypes()).read("s-1")
    assert bytes(read.logged[0].data) == kept and len(read) == 7


async def what_shapes_the_window_must_be_known_to_go_on(stores: Stores) -> None:
    session = await stores(EventTypes((Shaped,))).create(header())
    session.append(Shaped(text="x"))
    await session.close()
    error = await refused(SessionNotContinuable, lambda: stores(EventTypes()).open("s-1"))
    assert error.type == "demo/shaped" and error.seq == 0 and "demo/shaped" in str(error)
    read = await stores(EventTypes()).read("s-1")
    assert len(read) == 1 and not read.continuable
    again = await stores(EventTypes((Shaped,))).open("s-1")
    await again.close()


async def a_seed_is_closed_by_its_own_event(stores: Stores) -> None:
    store = stores(EventTypes())
    source = await store.create(header())
    source.append_all(whole_turn())
    seeded = await store.create(header("s-2"), [*source.logged])
    assert len(seeded) == 7 and seeded.logged[-1].type == SeedEnded.TYPE and seeded.lifecycle_start == 7
    again = await store.create(header("s-3"), [*seeded.logged])
    assert len(again) == 7
    empty = await store.create(header("s-4"), [])
    assert [it.type for it in empty.logged] == [SeedEnded.TYPE]
    for session in (source, seeded, again, empty):
        same_events(session, await stores(EventTypes()).read(session.id))
        await session.close()


async def a_fork_copies_whole_turns(stores: Stores) -> None:
    store = stores(EventTypes())
    source = await store.create(header())
    source.append_all([*whole_turn(1), *asked(2)])
    await refused(ForkRefused, lambda: store.fork(source, header("s-2")))
    await refused(ForkRefused, lambda: store.fork(source, header("s-2"), 8))
    await refused(ForkRefused, lambda: store.fork(source, header("s-2"), 99))
    fork = await store.fork(source, header("s-2"), 5)
    assert fork.header.parent == "s-1" and fork.header.forked_at == 5
    assert [bytes(it.data) for it in fork.logged[:6]] == [bytes(it.data) for it in source.logged[:6]]
    assert fork.append(TurnStart(turn=2)).seq == 7
    assert len(source) == 13
    for session in (source, fork):
        same_events(session, await stores(EventTypes()).read(session.id))
        await session.close()


async def the_list_tells_what_each_session_is(stores: Stores) -> None:
    store = stores(EventTypes())
    for number, events in enumerate([[], whole_turn(), asked(), asked()], 1):
        session = await store.create(header(f"s-{number}"))
        session.append_all(events)
        if number < 4:
            await session.close()
    entries = await stores(EventTypes()).list()
    assert {it.id: it.status for it in entries} == {
        "s-1": "idle",
        "s-2": "finished",
        "s-3": "interrupted",
        "s-4": "running",
    }
    assert {it.kind for it in entries} == {"agent"} and {it.cwd for it in entries} == {"/somewhere"}


async def a_deleted_session_is_gone(stores: Stores) -> None:
    store = stores(EventTypes())
    session = await store.create(header())
    await refused(SessionLocked, lambda: stores(EventTypes()).delete("s-1"))
    await session.close()
    await store.delete("s-1")
    assert await store.list() == []
    await refused(SessionNotFound, lambda: store.read("s-1"))
    again = await store.create(header())
    assert len(again) == 0
    await again.close()


async def a_closed_session_takes_nothing_more(stores: Stores) -> None:
    session = await stores(EventTypes()).create(header())
    session.append(Noted(text="x"))
    await session.sync()
    await session.close()
    await session.close()

    async def append() -> None:
        session.append(Noted(text="y"))

    await refused(SessionClosed, append)
    await refused(SessionClosed, session.sync)
    assert len(session) == 1


async def a_turn_may_be_left_open_for_who_goes_on_with_it(stores: Stores) -> None:
    session = await stores(EventTypes()).create(header())
    session.append_all(asked())
    await session.close()
    again = await stores(EventTypes()).open("s-1", repair=False)
    same_events(session, again)
    assert again.place.turn_open and again.place.step_open
    await again.close()
    closed = await stores(EventTypes()).open("s-1")
    assert not closed.place.turn_open and len(closed) == 11
    await closed.close()


CHECKS: tuple[Check, ...] = (
    what_was_appended_is_read_by_another_process,
    numbers_are_contiguous_and_lines_chained,
    a_session_has_one_writer,
    reading_needs_no_lease_and_never_writes,
    numbering_goes_on_where_the_log_ends,
    an_id_is_taken_once,
    an_unknown_id_is_told,
    what_a_dead_writer_left_open_is_closed_once,
    a_refused_event_leaves_no_trace,
    an_unknown_event_is_kept_byte_for_byte,
    what_shapes_the_window_must_be_known_to_go_on,
    a_seed_is_closed_by_its_own_event,
    a_fork_copies_whole_turns,
    the_list_tells_what_each_session_is,
    a_deleted_session_is_gone,
    a_closed_session_takes_nothing_more,
    a_turn_may_be_left_open_for_who_goes_on_with_it,
    *KEEPING,
)
"""Every promise of the seam."""


def name_of(check: Check) -> str:
    """A check's name, for the ids of a parametrised test."""
    return getattr(check, "__name__", str(check))
