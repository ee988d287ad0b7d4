"""What the checks of session stores are written in: events, a usual turn, ways to write and to compare sessions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import ClassVar, TypeAlias, TypeVar

from leadline.core.llm.messages import AssistantMessage, Text, ToolCall, ToolMessage, UserMessage
from leadline.core.session.codec import Header
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
from leadline.core.session.log import Session
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


async def written(stores: Stores, session_id: str, events: Sequence[Event]) -> bytes:
    """The bytes of a new session with `events`, which is closed."""
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
