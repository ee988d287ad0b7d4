"""Appending: validated, vetoed, written, told; and nothing can undo it afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, cast

import anyio
import msgspec
import pytest

from leadline.core.llm.messages import AssistantMessage, Text, ToolCall, ToolMessage, UserMessage
from leadline.core.session.codec import Header, Logged
from leadline.core.session.errors import (
    AppendVetoed,
    EventInvalid,
    EventOutOfPlace,
    EventUndecodable,
    ReentrantAppend,
    SessionWriteFailed,
)
from leadline.core.session.events import (
    AssistantSaid,
    Event,
    StepEnd,
    StepStart,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnStart,
    UserEntered,
)
from leadline.core.session.log import BeforeAppend, Session, SessionAppended
from leadline.core.session.registry import EventTypes
from leadline.kernel.context import Context, Kernel
from leadline.kernel.errors import DuplicateName
from leadline.kernel.plugin import Plugin
from leadline.kernel.signals import Notice
from leadline.testing.clock import START, ManualClock
from leadline.testing.sessions import MemoryLog, MemorySessions, memory_session


class Noted(Event, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "demo/noted"

    text: str = ""
    number: float | None = None
    flag: bool = False
    parts: tuple[str, ...] = ()
    extra: Mapping[str, object] = {}
    raw: msgspec.Raw = msgspec.Raw(b"null")


class Shaped(Event, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "demo/shaped"
    DERIVES: ClassVar[bool] = True


def bad(**fields: object) -> Noted:
    return Noted(**cast("dict[str, str]", fields))  # pyright: ignore[reportArgumentType]  # wrong on purpose


def content(session: Session) -> bytes:
    return bytes(cast("MemoryLog", session._sink).content)


# --- validation --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        bad(text=7),
        bad(text=None),
        bad(number="1"),
        bad(number=True),
        bad(flag=1),
        bad(parts=("a", 1)),
        bad(parts="abc"),
        bad(number=float("nan")),
        bad(number=float("inf")),
        bad(extra={"deep": [{"x": float("-inf")}]}),
        bad(text="half a pair: \ud83d"),
        bad(parts=("\udc80",)),
        bad(raw=msgspec.Raw(b"NaN")),
        bad(raw=msgspec.Raw(b'{"a":1}}')),
        bad(raw=msgspec.Raw(b'{"a":\n1}')),
        bad(raw=msgspec.Raw(b'"\xff"')),
        bad(extra={"thing": object()}),
        bad(text="x" * 9_000_000),
        UserEntered(message=UserMessage(cast("str", 5), (Text("x"),))),
        UserEntered(message=UserMessage("u", cast("tuple[Text]", ("x",)))),
    ],
    ids=lambda event: str(event)[:50],
)
def test_what_a_reader_would_not_take_back_is_refused_and_leaves_nothing(event: Event) -> None:
    session = memory_session()
    before = content(session)
    with pytest.raises(EventInvalid):
        session.append(event)
    assert len(session) == 0 and content(session) == before
    assert session.append(Noted(text="fine")).seq == 0


def test_a_tuple_inside_free_json_is_a_list_to_the_reader() -> None:
    session = memory_session()
    logged = session.append(Noted(extra={"ids": ("a", "b")}))
    assert logged.as_(Noted).extra == {"ids": ["a", "b"]}


def test_what_the_caller_changes_later_does_not_change_the_log() -> None:
    extra: dict[str, object] = {"a": 1}
    session = memory_session()
    logged = session.append(Noted(extra=extra))
    extra["a"] = 2
    assert logged.as_(Noted).extra == {"a": 1}
    assert session.last(Noted) == Noted(extra={"a": 1})


def test_a_literal_proto_key_survives() -> None:
    session = memory_session()
    extra = {"__proto__": {"x": 1}, "constructor": 2}
    assert session.append(Noted(extra=extra)).as_(Noted).extra == extra


@pytest.mark.parametrize(
    "event",
    [
        AssistantSaid(message=AssistantMessage("a", (ToolCall("", "read", "{}"),), "m/m")),
        AssistantSaid(message=AssistantMessage("a", (ToolCall("c", "", "{}"),), "m/m")),
        ToolCalled(call_id="", name="read", arguments="{}"),
        ToolAnswered(message=ToolMessage("t", "", "read", "x")),
    ],
)
def test_a_call_without_an_id_or_name_is_refused_when_it_is_written(event: Event) -> None:
    with pytest.raises(EventOutOfPlace, match="needs"):
        memory_session().append(event)


def test_an_event_class_without_a_type_name_is_refused() -> None:
    class Nameless(Event, frozen=True, kw_only=True):
        pass

    class Shouting(Event, frozen=True, kw_only=True):
        TYPE: ClassVar[str] = "No Good"

    for event in (Nameless(), Shouting()):
        with pytest.raises(EventInvalid, match=r"domain|TYPE"):
            memory_session().append(event)


def test_two_classes_cannot_share_a_type_name() -> None:
    class Other(Event, frozen=True, kw_only=True):
        TYPE: ClassVar[str] = "demo/noted"

    types = EventTypes((Noted,))
    with pytest.raises(DuplicateName, match="demo/noted"):
        EventTypes((Noted, Other))
    with pytest.raises(EventInvalid, match="belongs to"):
        memory_session(types=types).append(Other())


def test_an_event_that_shapes_the_window_has_to_be_registered_before_it_is_written() -> None:
    with pytest.raises(EventInvalid, match="not registered"):
        memory_session().append(Shaped())
    assert memory_session(types=EventTypes((Shaped,))).append(Shaped()).derives


# --- the order of a turn -----------------------------------------------------------------------------------


def said(number: int = 1, step: int = 1) -> AssistantSaid:
    return AssistantSaid(
        turn=number, step=step, message=AssistantMessage(f"a{number}.{step}", (Text("x"),), "m/m")
    )


@pytest.mark.parametrize(
    ("before", "event", "reason"),
    [
        ([], TurnEnd(turn=1, reason="completed"), "not open"),
        ([], StepStart(turn=1, step=1), "not open"),
        ([TurnStart(turn=1)], TurnStart(turn=2), "still open"),
        ([TurnStart(turn=2), TurnEnd(turn=2, reason="completed")], TurnStart(turn=2), "does not follow"),
        ([TurnStart(turn=1)], TurnEnd(turn=2, reason="completed"), "not open"),
        ([TurnStart(turn=1), StepStart(turn=1, step=1)], TurnEnd(turn=1, reason="completed"), "still open"),
        ([TurnStart(turn=1), StepStart(turn=1, step=1)], StepStart(turn=1, step=2), "still open"),
        ([TurnStart(turn=1), StepStart(turn=1, step=1)], StepEnd(turn=1, step=2), "not open"),
        ([TurnStart(turn=1)], said(), "not open"),
    ],
)
def test_an_event_that_contradicts_the_log_is_refused(before: list[Event], event: Event, reason: str) -> None:
    session = memory_session(events=before)
    with pytest.raises(EventOutOfPlace, match=reason):
        session.append(event)
    assert len(session) == len(before)


@pytest.mark.case("S46")
def test_a_second_answer_in_one_step_is_refused() -> None:
    session = memory_session(events=[TurnStart(turn=3), StepStart(turn=3, step=1)])
    partial = AssistantMessage("a3", (Text("I was say"),), "m/m")
    session.append(AssistantSaid(turn=3, step=1, message=partial, state="interrupted"))
    with pytest.raises(EventOutOfPlace, match="has its answer"):
        session.append(AssistantSaid(turn=3, step=1, message=partial, state="interrupted"))
    assert [message.id for message in session.derived().conversation] == ["a3"]
    assert [event.state for event in session.of(AssistantSaid)] == ["interrupted"]


@pytest.mark.case("S25")
def test_a_call_is_journaled_once_under_its_id() -> None:
    session = memory_session(events=[TurnStart(turn=1), StepStart(turn=1, step=1)])
    call = ToolCalled(turn=1, step=1, call_id="c1", name="write", arguments="{}", side_effects=("writes",))
    answer = ToolAnswered(turn=1, step=1, message=ToolMessage("t1", "c1", "write", "done"))
    session.append_all([call, answer])
    for again in (call, answer):
        with pytest.raises(EventOutOfPlace, match="already"):
            session.append(again)


# --- vetoes, observers, reentrance -------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_veto_stops_an_append_before_anything_is_written() -> None:
    store = MemorySessions()
    session = await store.create(Header(id="s-1", kind="agent", created=START))

    def veto(before: BeforeAppend) -> None:
        assert before.session is session
        if isinstance(before.event, Noted):
            raise PermissionError("not here")

    store.hooks.vetoes.append(veto)
    with pytest.raises(AppendVetoed, match="not here") as error:
        session.append_all([TurnStart(turn=1), Noted()])
    assert isinstance(error.value.__cause__, PermissionError)
    assert len(session) == 0 and session.place.turn == 0
    assert session.append(TurnStart(turn=1)).seq == 0


def test_an_observer_that_raises_stops_neither_the_append_nor_the_others() -> None:
    session = memory_session()
    reports: list[str] = []
    session._hooks.report = lambda error, where: reports.append(f"{where}: {error}")
    seen: list[int] = []

    def broken(logged: Logged) -> None:
        raise RuntimeError("I am broken")

    session.observe(broken)
    remove = session.observe(lambda logged: seen.append(logged.seq))
    session.append(Noted())
    remove()
    remove()
    session.append(Noted())
    assert seen == [0] and len(session) == 2
    assert reports == ["observer of session s-0000000000000001: I am broken"] * 2


def test_an_observer_cannot_append_to_the_session_it_observes() -> None:
    session = memory_session()
    errors: list[BaseException] = []
    session._hooks.report = lambda error, where: errors.append(error)
    session.observe(lambda logged: session.append(Noted(text="again")) and None)
    session.append(Noted(text="once"))
    assert len(session) == 1
    assert [type(error) for error in errors] == [ReentrantAppend]
    session._observers.clear()
    assert session.append(Noted()).seq == 1


def test_an_observer_may_append_to_another_session() -> None:
    one, other = memory_session(), memory_session(session_id="s-2")
    one.observe(lambda logged: other.append(Noted(text="copy")) and None)
    one.append(Noted())
    assert len(other) == 1


def test_observers_see_the_event_in_the_log_and_hear_of_each_event_of_a_batch() -> None:
    session = memory_session()
    seen: list[tuple[int, str]] = []
    session.observe(lambda logged: seen.append((len(session), logged.type)))
    session.append_all([TurnStart(turn=1), Noted()])
    assert seen == [(2, "turn/start"), (2, "demo/noted")]


# --- failing disks -----------------------------------------------------------------------------------------


def test_a_full_disk_is_told_and_the_same_append_works_afterwards() -> None:
    session = memory_session(events=[TurnStart(turn=1)])
    sink = cast("MemoryLog", session._sink)
    sink.full = True
    with pytest.raises(SessionWriteFailed, match="no space"):
        session.append(StepStart(turn=1, step=1))
    assert len(session) == 1 and not session.place.step_open
    sink.full = False
    assert session.append(StepStart(turn=1, step=1)).seq == 1


# --- reading -----------------------------------------------------------------------------------------------


def test_events_are_found_by_class_and_number() -> None:
    clock = ManualClock()
    session = memory_session(clock=clock, events=[Noted(text="a"), TurnStart(turn=1)])
    clock.jump(1.5)
    session.append(Noted(text="b"))
    assert [event.text for event in session.of(Noted)] == ["a", "b"]
    assert [(logged.seq, event.text) for logged, event in session.logged_of(Noted, since=1)] == [(2, "b")]
    assert [logged.seq for logged in session.since(1)] == [1, 2]
    assert session.logged[2].t - session.logged[0].t == 1.5
    last = session.last(Noted)
    assert last is not None and last.text == "b"
    assert session.last(TurnEnd) is None


def test_an_event_is_decoded_as_its_own_type_only() -> None:
    session = memory_session(events=[Noted(text="a")])
    with pytest.raises(EventUndecodable, match="demo/noted"):
        session.logged[0].as_(TurnStart)
    assert session.event(session.logged[0]) is None
    assert session.logged[0].json() == {"text": "a"}


@pytest.mark.anyio
async def test_following_gives_what_is_there_and_what_comes_until_the_session_is_closed() -> None:
    session = memory_session(events=[Noted(text="0"), Noted(text="1")])
    seen: list[int] = []

    async def follow() -> None:
        async for logged in session.follow(1):
            seen.append(logged.seq)

    async with anyio.create_task_group() as group:
        group.start_soon(follow)
        await anyio.wait_all_tasks_blocked()
        assert seen == [1]
        session.append_all([Noted(text="2"), Noted(text="3")])
        await anyio.wait_all_tasks_blocked()
        assert seen == [1, 2, 3]
        session.append(Noted(text="4"))
        await session.close()
    assert seen == [1, 2, 3, 4]


# --- versions ----------------------------------------------------------------------------------------------


class SelectedOld(Event, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "demo/selected"

    agent_name: str


class SelectedNew(Event, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "demo/selected"
    VERSION: ClassVar[int] = 2

    agent_name: str
    display_name: str

    @classmethod
    def upcast(cls, version: int, data: Mapping[str, object]) -> Mapping[str, object]:
        return {**data, "display_name": data["agent_name"]}


@pytest.mark.case("S06")
def test_an_old_event_is_brought_up_to_date_and_one_that_cannot_be_blocks_nothing() -> None:
    session = memory_session(events=[SelectedOld(agent_name="helper"), Noted(text="between")])
    assert session.logged[0].as_(SelectedNew) == SelectedNew(agent_name="helper", display_name="helper")

    class Emptied(Event, frozen=True, kw_only=True):
        TYPE: ClassVar[str] = "demo/selected"

    other = memory_session(events=[Emptied(), Noted(text="after")])
    with pytest.raises(EventUndecodable):
        other.logged[0].as_(SelectedNew)
    assert list(other.of(SelectedNew)) == []
    assert [event.text for event in other.of(Noted)] == ["after"]


def test_a_newer_version_of_a_known_event_is_an_unknown_event() -> None:
    session = memory_session(
        types=EventTypes((SelectedNew,)), events=[SelectedNew(agent_name="a", display_name="b")]
    )
    assert EventTypes((SelectedOld,)).known(session.logged[0]) is None
    assert EventTypes((SelectedNew,)).known(session.logged[0]) is SelectedNew
    with pytest.raises(EventUndecodable, match="newest known"):
        session.logged[0].as_(SelectedOld)


# --- kernel ------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_event_types_and_vetoes_are_effects_of_their_plugin() -> None:
    types, store = EventTypes(), MemorySessions(types=EventTypes())
    heard: list[Notice] = []

    def refuse(before: BeforeAppend) -> None:
        raise PermissionError("while I live")

    async def apply(ctx: Context, config: None) -> None:
        types.register(ctx, Noted, Shaped)
        store.veto(ctx, refuse)
        ctx.on(SessionAppended, heard.append)

    async with Kernel() as kernel:
        store.hooks.notice = kernel.root.notice
        before = kernel.snapshot()
        session = await store.create(Header(id="s-1", kind="agent", created=START))
        fiber = await kernel.root.mount(Plugin("demo", apply))
        assert types.get("demo/shaped") is Shaped
        with pytest.raises(AppendVetoed):
            session.append(Noted())
        store.hooks.vetoes.clear()
        session.append(Noted(text="heard"))
        store.hooks.vetoes.append(refuse)
        await fiber.dispose()
        assert kernel.snapshot() == before
        assert types.get("demo/noted") is None and types.get("demo/shaped") is None
        assert session.append(Noted(text="unheard")).seq == 1
    assert [(it.logged.seq, it.session.id) for it in heard if isinstance(it, SessionAppended)] == [(0, "s-1")]
