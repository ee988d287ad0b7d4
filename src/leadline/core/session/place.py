"""Where a log stands in its turns, and which event may come next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import cast

import msgspec

from leadline.core.session.codec import Logged
from leadline.core.session.errors import EventOutOfPlace, EventUndecodable
from leadline.core.session.events import (
    AssistantSaid,
    Event,
    SeedEnded,
    StepEnd,
    StepStart,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnResumed,
    TurnStart,
)


class Place(msgspec.Struct, frozen=True):
    """The turn and step that a log is in, and what the step has had."""

    turn: int = 0
    """Number of the last turn that was started; 0 before the first."""
    turn_open: bool = False
    step: int = 0
    """Number of the last step of that turn; 0 before its first. What follows is kept when step and turn are closed."""
    step_open: bool = False
    said: bool = False
    """Whether the step has its assistant/message."""
    calls: frozenset[str] = frozenset()
    """Ids of the calls whose tool/call the step has."""
    answers: frozenset[str] = frozenset()
    """Ids of the calls whose tool/result the step has."""

    def after(self, event: Event) -> Place:
        """Where the log stands after `event`.

        Raises:
            EventOutOfPlace: the event contradicts what is logged: a turn or step that does not follow,
                a second answer of a model in one step, a second call or result under one call id; or
                it has a tool call without an id or a name, which no provider would take back.
        """
        move = _MOVES.get(type(event))
        return move(self, event) if move is not None else self

    def is_in(self, turn: int | None, step: int | None) -> bool:
        """Whether that step of that turn is open."""
        return self.turn_open and self.step_open and turn == self.turn and step == self.step


def _require(true: bool, event: Event, reason: str) -> None:
    if not true:
        raise EventOutOfPlace(f"event {event.TYPE!r} was refused: {reason}")


def _turn_start(place: Place, event: TurnStart) -> Place:
    _require(not place.turn_open, event, f"turn {place.turn} is still open")
    _require(event.turn > place.turn, event, f"turn {event.turn} does not follow turn {place.turn}")
    return Place(turn=event.turn, turn_open=True)


def _turn_end(place: Place, event: TurnEnd) -> Place:
    _require(place.turn_open and event.turn == place.turn, event, f"turn {event.turn} is not open")
    _require(not place.step_open, event, f"step {place.step} is still open")
    return msgspec.structs.replace(place, turn_open=False)


def _turn_resumed(place: Place, event: TurnResumed) -> Place:
    _require(event.turn == place.turn, event, f"the latest turn is {place.turn}, not {event.turn}")
    if place.turn_open:
        return place
    said = place.said and bool(event.calls or not event.void)
    return msgspec.structs.replace(
        place,
        turn_open=True,
        step_open=place.step > 0 and (bool(event.void) or not said),
        said=said,
        calls=place.calls - set(event.unbegun),
        answers=place.answers - set(event.calls),
    )


def _step_start(place: Place, event: StepStart) -> Place:
    _require(place.turn_open and event.turn == place.turn, event, f"turn {event.turn} is not open")
    _require(not place.step_open, event, f"step {place.step} is still open")
    _require(event.step > place.step, event, f"step {event.step} does not follow step {place.step}")
    return Place(turn=place.turn, turn_open=True, step=event.step, step_open=True)


def _step_end(place: Place, event: StepEnd) -> Place:
    _require(place.is_in(event.turn, event.step), event, f"step {event.step} is not open")
    return msgspec.structs.replace(place, step_open=False)


def _said(place: Place, event: AssistantSaid) -> Place:
    for call in event.message.tool_calls:
        _require(bool(call.id and call.name), event, "a tool call needs an id and a name")
    if event.turn is None:
        return place
    _require(place.is_in(event.turn, event.step), event, f"step {event.step} is not open")
    _require(not place.said, event, f"step {event.step} has its answer already")
    return msgspec.structs.replace(place, said=True)


def _called(place: Place, event: ToolCalled) -> Place:
    _require(bool(event.call_id and event.name), event, "a tool call needs an id and a name")
    if not place.is_in(event.turn, event.step):
        return place
    _require(event.call_id not in place.calls, event, f"call {event.call_id!r} is logged already")
    return msgspec.structs.replace(place, calls=place.calls | {event.call_id})


def _answered(place: Place, event: ToolAnswered) -> Place:
    call = event.message.call_id
    _require(bool(call), event, "a result needs the id of its call")
    if not place.is_in(event.turn, event.step):
        return place
    _require(call not in place.answers, event, f"call {call!r} has its result already")
    return msgspec.structs.replace(place, answers=place.answers | {call})


def _seed_ended(place: Place, event: SeedEnded) -> Place:
    return Place(turn=place.turn)


_MOVES = cast(
    "dict[type[Event], Callable[[Place, Event], Place]]",
    {
        TurnStart: _turn_start,
        TurnEnd: _turn_end,
        TurnResumed: _turn_resumed,
        StepStart: _step_start,
        StepEnd: _step_end,
        AssistantSaid: _said,
        ToolCalled: _called,
        ToolAnswered: _answered,
        SeedEnded: _seed_ended,
    },
)
_TURNS: dict[str, type[TurnStart | TurnEnd]] = {TurnStart.TYPE: TurnStart, TurnEnd.TYPE: TurnEnd}
_PLACED = {kind.TYPE: kind for kind in _MOVES}


def place_of(logged: Sequence[Logged]) -> Place:
    """Where a log stands at its end. Total: events that make no sense where they are change nothing.

    What came before the last turn/start counts only for the number of the turn.
    """
    last = _last_start(logged)
    place = Place(turn=_highest_turn(islice(logged, last)))
    for line in islice(logged, last, None):
        kind = _PLACED.get(line.type)
        if kind is None:
            continue
        try:
            place = place.after(line.as_(kind))
        except EventUndecodable:
            continue
        except EventOutOfPlace:
            place = _forced(place, line)
    return place


def _last_start(logged: Sequence[Logged]) -> int:
    for at in range(len(logged) - 1, -1, -1):
        if logged[at].type == TurnStart.TYPE:
            with suppress(EventUndecodable):
                logged[at].as_(TurnStart)
                return at
    return 0


def _highest_turn(logged: Iterable[Logged]) -> int:
    highest = 0
    for line in logged:
        kind = _TURNS.get(line.type)
        if kind is not None:
            with suppress(EventUndecodable):
                highest = max(highest, line.as_(kind).turn)
    return highest


def _forced(place: Place, line: Logged) -> Place:
    """A start and an end are believed even where they do not follow, as an older writer may have left them."""
    match line.type:
        case TurnStart.TYPE:
            return Place(turn=max(place.turn, line.as_(TurnStart).turn), turn_open=True)
        case TurnEnd.TYPE:
            return Place(turn=max(place.turn, line.as_(TurnEnd).turn))
        case _:
            return place
