"""What every session store promises, as checks that any store can run.

    @pytest.mark.anyio
    @pytest.mark.parametrize("check", CHECKS, ids=name_of)
    async def test_my_store_keeps_the_promise(check, tmp_path):
        await check(lambda types: MyStore(tmp_path, types=types))

A check gets a function that opens the same storage, empty at first, as often as it is called; each
call stands for another process. It raises AssertionError where a promise is not kept.
"""

from __future__ import annotations

import io
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import ClassVar, TypeAlias, TypeVar, cast

import anyio

from leadline.core.llm.messages import AssistantMessage, Text, ToolCall, ToolMessage, UserMessage
from leadline.core.session.codec import Header, chain, encode_header, recompose
from leadline.core.session.errors import (
    EventInvalid,
    ForkRefused,
    SessionClosed,
    SessionExists,
    SessionFormatTooNew,
    SessionLocked,
    SessionNotContinuable,
    SessionNotFound,
    SessionUnreadable,
)
from leadline.core.session.events import (
    AssistantSaid,
    DamageMoved,
    Event,
    SeedEnded,
    StepEnd,
    StepStart,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnStart,
    UserEntered,
)
from leadline.core.session.load import load
from leadline.core.session.log import BeforeAppend, Session
from leadline.core.session.registry import EventTypes
from leadline.core.session.store import SessionStore

Stores: TypeAlias = Callable[[EventTypes], SessionStore]
Check: TypeAlias = Callable[[Stores], Awaitable[None]]
E = TypeVar("E", bound=Exception)


class Noted(Event, frozen=True, kw_only=True):
    """An event of a plugin, which a reader may not know."""

    TYPE: ClassVar[str] = "demo/noted"

    text: str
    weight: float | None = None


class Shaped(Event, frozen=True, kw_only=True):
    """An event of a plugin that shapes what the model sees."""

    TYPE: ClassVar[str] = "demo/shaped"
    DERIVES: ClassVar[bool] = True

    text: str


def header(session_id: str = "s-1", kind: str = "agent") -> Header:
    """A header as a check needs it."""
    return Header(id=session_id, kind=kind, created=1_767_225_600.0, cwd="/somewhere")


def asked(number: int = 1) -> list[Event]:
    """A turn up to the two calls that a model makes; the first was run and answered, the second started."""
    calls = (ToolCall("c1", "read", "{}"), ToolCall("c2", "write", "{}"), ToolCall("c3", "write", "{}"))
    said = AssistantMessage(f"a{number}", (Text("Looking."), *calls), "local/model")
    return [
        TurnStart(turn=number),
        StepStart(turn=number, step=1),
        UserEntered(turn=number, step=1, message=UserMessage(f"u{number}", (Text("Look."),))),
        AssistantSaid(turn=number, step=1, message=said),
        ToolCalled(turn=number, step=1, call_id="c1", name="read", arguments="{}"),
        ToolAnswered(turn=number, step=1, message=ToolMessage(f"t{number}", "c1", "read", "Nine fathoms.")),
        ToolCalled(turn=number, step=1, call_id="c2", name="write", arguments="{}"),
    ]


def whole_turn(number: int = 1) -> list[Event]:
    """A turn that ended by itself."""
    said = AssistantMessage(f"a{number}", (Text("Nine fathoms."),), "local/model")
    return [
        TurnStart(turn=number),
        StepStart(turn=number, step=1),
        UserEntered(turn=number, step=1, message=UserMessage(f"u{number}", (Text("How deep?"),))),
        AssistantSaid(turn=number, step=1, message=said),
        StepEnd(turn=number, step=1),
        TurnEnd(turn=number, reason="completed"),
    ]


async def refused(kind: type[E], doing: Callable[[], Awaitable[object]]) -> E:
    """The error that `doing` raises, which has to be a `kind`."""
    try:
        await doing()
    except kind as error:
        return error
    raise AssertionError(f"it was not refused with {kind.__name__}")


def same_events(one: Session, other: Session) -> None:
    """Both sessions have the same events, byte for byte."""
    mine = [(it.seq, it.t, it.type, it.prev, it.derives, bytes(it.data)) for it in one.logged]
    theirs = [(it.seq, it.t, it.type, it.prev, it.derives, bytes(it.data)) for it in other.logged]
    assert mine == theirs, f"{mine} is not {theirs}"
    assert one.digest == other.digest and one.header == other.header


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


async def one_session_is_told_as_the_list_tells_it(stores: Stores) -> None:
    store = stores(EventTypes())
    for number, events in enumerate([whole_turn(), asked(), whole_turn()], 1):
        session = await store.create(header(f"s-{number}"))
        session.append_all(events)
        if number < 3:
            await session.close()
    other = stores(EventTypes())
    assert [await other.entry(it.id) for it in await other.list()] == await other.list()
    await refused(SessionNotFound, lambda: other.entry("s-none"))


async def who_writes_a_session_is_told(stores: Stores) -> None:
    store = stores(EventTypes())
    session = await store.create(header())
    holder = (await stores(EventTypes()).entry("s-1")).holder
    assert holder is not None and holder.pid == os.getpid() and holder.host, holder
    await session.close()
    assert (await stores(EventTypes()).entry("s-1")).holder is None
    again = await stores(EventTypes()).open("s-1")
    following = (await stores(EventTypes()).entry("s-1")).holder
    assert following is not None
    await again.close()


async def a_stamp_changes_with_the_log_alone(stores: Stores) -> None:
    store, other = stores(EventTypes()), stores(EventTypes())
    assert await other.stamps() == {}
    session = await store.create(header())
    await (await store.create(header("s-2"))).close()
    before = await other.stamps()
    assert set(before) == {"s-1", "s-2"}
    await other.read("s-1")
    assert await other.stamps() == before
    seen = {before["s-1"]}
    for event in whole_turn():
        session.append(event)
        now = await other.stamps()
        assert now["s-2"] == before["s-2"] and now["s-1"] not in seen, f"{event} changed no stamp"
        seen.add(now["s-1"])
    await session.close()
    await store.delete("s-2")
    assert set(await other.stamps()) == {"s-1"}


async def raw_bytes_are_the_log(stores: Stores) -> None:
    session = await stores(EventTypes()).create(header())
    session.append_all([*whole_turn(), Noted(text="ü")])
    await session.close()
    content = await raw_of(stores, "s-1")
    loaded = load(io.BytesIO(content))
    assert content.startswith(encode_header(session.header)) and content.endswith(b"\n")
    assert not loaded.problems and loaded.digest == session.digest and loaded.size == len(content)
    assert (await stores(EventTypes()).entry("s-1")).size == len(content)

    async def missing() -> None:
        await raw_of(stores, "s-none")

    await refused(SessionNotFound, missing)


async def the_rest_of_a_log_is_what_stands_behind_its_beginning(stores: Stores) -> None:
    content = await _written(stores, "s-1", whole_turn())
    for start in (200, 0, 1, 200, len(content), len(content) + 9):
        rest = b"".join([chunk async for chunk in stores(EventTypes()).tail("s-1", start)])
        assert rest == content[start:], f"from {start}"
        await stores(EventTypes()).archive("s-1")  # from the second look on


async def who_writes_what_is_told_of_all(stores: Stores) -> None:
    session, other = await stores(EventTypes()).create(header()), stores(EventTypes())
    writers = await other.writers()
    assert writers == {"s-1": (await other.entry("s-1")).holder} and writers["s-1"] is not None
    await session.close()
    assert await other.writers() == {}


async def a_mark_that_stays_means_that_nothing_happened(stores: Stores) -> None:
    store, other = stores(EventTypes()), stores(EventTypes())
    seen = {await _settled(other)}

    async def told(what: str) -> None:
        mark = await _settled(other)
        assert mark is None or mark not in seen, f"no mark told that a session was {what}"
        seen.add(mark)

    session = await store.create(header())
    await told("made")
    await session.close()
    await told("closed")
    session = await store.open("s-1")
    await told("opened")
    await session.close()
    await store.archive("s-1")
    await told("archived")
    await store.delete("s-1")
    await told("deleted")


async def _settled(store: SessionStore) -> str | None:
    """The mark, once the store can tell; None where it does not within the time that the coarsest clock needs."""
    for _ in range(30):
        if (mark := await store.mark()) is not None:
            return mark
        await anyio.sleep(0.01)
    return None


async def a_log_is_taken_in_as_it_is(stores: Stores) -> None:
    content = await _written(stores, "s-1", asked())
    line = content.split(b"\n")[3] + b"\n"
    for damaged in (content, content + b"torn", content + line, content[:-9], content.replace(line, b"")):
        store = stores(EventTypes())
        await store.delete("s-1")
        entry = await store.add_raw(pieces(damaged))
        assert entry.id == "s-1" and entry.size == len(damaged) and not entry.archived
        assert await raw_of(stores, "s-1") == damaged
        read = await stores(EventTypes()).read("s-1")
        assert bool(read.problems) == (damaged != content)
        await refused(SessionExists, lambda store=store: store.add_raw(pieces(content)))
    assert await raw_of(stores, "s-1") == content.replace(line, b"")


async def what_is_no_log_is_not_taken_in(stores: Stores) -> None:
    store = stores(EventTypes())
    good = encode_header(header())
    for wrong in (b"", b"no log\n", good[:-1], good.replace(b"s-1", b"../s-1"), b"{}\n" + good):
        await refused(SessionUnreadable, lambda wrong=wrong: store.add_raw(pieces(wrong)))
    newer = good.replace(b'"format":1', b'"format":99')
    await refused(SessionFormatTooNew, lambda: store.add_raw(pieces(newer)))
    for name in ("../s-1.damaged-1", "s-2.damaged-1", "s-1.damaged-", "s-1.jsonl"):
        await refused(SessionUnreadable, lambda name=name: store.add_raw(pieces(good), {name: b"x"}))
    assert await store.list() == [] and await store.stamps() == {}


async def an_archived_session_is_as_before(stores: Stores) -> None:
    content = await _written(stores, "s-1", [*whole_turn(1), *asked(2)])
    store, other = stores(EventTypes()), stores(EventTypes())
    before, read = await store.entry("s-1"), await store.read("s-1")
    entry = await store.archive("s-1")
    assert entry.archived and entry == await store.archive("s-1") == await other.entry("s-1")
    assert [entry] == await other.list() and set(await other.stamps()) == {"s-1"}
    assert (entry.status, entry.size, entry.kind) == ("interrupted", len(content), "agent")
    assert (entry.created, entry.cwd, entry.modified) == (before.created, before.cwd, before.modified)
    same_events(read, await other.read("s-1"))
    assert await raw_of(stores, "s-1") == content
    await refused(SessionExists, lambda: other.create(header()))
    await refused(SessionExists, lambda: other.add_raw(pieces(content)))


async def an_archived_session_goes_on(stores: Stores) -> None:
    await _written(stores, "s-1", whole_turn())
    store = stores(EventTypes())
    await store.archive("s-1")
    again = await stores(EventTypes()).open("s-1")
    await refused(SessionLocked, lambda: store.archive("s-1"))
    again.append_all(whole_turn(2))
    await again.close()
    same_events(again, await store.read("s-1"))
    assert not (await store.entry("s-1")).archived and len(again) == 12
    await store.archive("s-1")
    await store.delete("s-1")
    assert await store.list() == [] and await store.stamps() == {}
    await refused(SessionNotFound, lambda: store.archive("s-1"))


async def damage_is_moved_beside_and_stays_readable(stores: Stores) -> None:
    content = await _written(stores, "s-1", whole_turn())
    fork = content.split(b"\n")[2].replace(b'"seq":1', b'"seq":3') + b"\n"
    store = stores(EventTypes())
    await store.delete("s-1")
    await store.add_raw(pieces(content + fork + b"torn"))
    assert await store.beside("s-1") == {}
    session = await store.open("s-1")
    await session.close()
    assert session.logged[6].type == DamageMoved.TYPE
    beside = await stores(EventTypes()).beside("s-1")
    assert [*beside.values()] == [fork + b"torn"], beside
    moved = await raw_of(stores, "s-1")
    await store.delete("s-1")
    await refused(SessionNotFound, lambda: store.beside("s-1"))
    await store.add_raw(pieces(moved), beside)
    assert await store.beside("s-1") == beside
    read = await stores(EventTypes()).read("s-1")
    assert [it.event.type for it in read.quarantined if it.event] == ["step/start"]
    await store.delete("s-1")


async def _written(stores: Stores, session_id: str, events: Sequence[Event]) -> bytes:
    session = await stores(EventTypes()).create(header(session_id))
    session.append_all(events)
    await session.close()
    return await raw_of(stores, session_id)


async def raw_of(stores: Stores, session_id: str) -> bytes:
    """The bytes of a log, as another process reads them."""
    return b"".join([chunk async for chunk in stores(EventTypes()).raw(session_id)])


async def pieces(content: bytes) -> AsyncGenerator[bytes]:
    """`content` in pieces that end where no line does."""
    for start in range(0, len(content), 100):
        yield content[start : start + 100]


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
    one_session_is_told_as_the_list_tells_it,
    who_writes_a_session_is_told,
    a_stamp_changes_with_the_log_alone,
    raw_bytes_are_the_log,
    the_rest_of_a_log_is_what_stands_behind_its_beginning,
    who_writes_what_is_told_of_all,
    a_mark_that_stays_means_that_nothing_happened,
    a_log_is_taken_in_as_it_is,
    what_is_no_log_is_not_taken_in,
    an_archived_session_is_as_before,
    an_archived_session_goes_on,
    damage_is_moved_beside_and_stays_readable,
)
"""Every promise of the seam."""


def name_of(check: Check) -> str:
    """A check's name, for the ids of a parametrised test."""
    return getattr(check, "__name__", str(check))
