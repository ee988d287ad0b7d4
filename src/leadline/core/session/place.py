"""Where a log stands in its turns, and which event may come next."""

from __future__ import annotations

from collections.abc import Iterable

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
    TurnStart,
)


class Place(msgspec.Struct, frozen=True):
    """The turn and step that a log is in, and what the step has had."""

    turn: int = 0
    """Number of the last turn that was started; 0 before the first."""
    turn_open: bool = False
    step: int = 0
    """Number of the last step of that turn; 0 before its first."""
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
                a second answer of a model in one step, a second call or result under one call id.
        """
        match event:
            case TurnStart():
                return self._turn_start(event)
            case TurnEnd():
                self._require(
                    self.turn_open and event.turn == self.turn, event, f"turn {event.turn} is not open"
                )
                self._require(not self.step_open, event, f"step {self.step} is still open")
                return Place(turn=self.turn)
            case StepStart():
                return self._step_start(event)
            case StepEnd():
                self._require(self._in(event.turn, event.step), event, f"step {event.step} is not open")
                return msgspec.structs.replace(self, step_open=False)
            case AssistantSaid() if event.turn is not None:
                self._require(self._in(event.turn, event.step), event, f"step {event.step} is not open")
                self._require(not self.said, event, f"step {event.step} has its answer already")
                return msgspec.structs.replace(self, said=True)
            case ToolCalled() if self._in(event.turn, event.step):
                self._require(
                    event.call_id not in self.calls, event, f"call {event.call_id!r} is logged already"
                )
                return msgspec.structs.replace(self, calls=self.calls | {event.call_id})
            case ToolAnswered() if self._in(event.turn, event.step):
                call = event.message.call_id
                self._require(call not in self.answers, event, f"call {call!r} has its result already")
                return msgspec.structs.replace(self, answers=self.answers | {call})
            case SeedEnded():
                return Place(turn=self.turn)
            case _:
                return self

    def _in(self, turn: int | None, step: int | None) -> bool:
        return self.turn_open and self.step_open and turn == self.turn and step == self.step

    def _turn_start(self, event: TurnStart) -> Place:
        self._require(not self.turn_open, event, f"turn {self.turn} is still open")
        self._require(event.turn > self.turn, event, f"turn {event.turn} does not follow turn {self.turn}")
        return Place(turn=event.turn, turn_open=True)

    def _step_start(self, event: StepStart) -> Place:
        self._require(self.turn_open and event.turn == self.turn, event, f"turn {event.turn} is not open")
        self._require(not self.step_open, event, f"step {self.step} is still open")
        self._require(event.step > self.step, event, f"step {event.step} does not follow step {self.step}")
        return Place(turn=self.turn, turn_open=True, step=event.step, step_open=True)

    def _require(self, true: bool, event: Event, reason: str) -> None:
        if not true:
            raise EventOutOfPlace(f"event {event.TYPE!r} was refused: {reason}")


PLACED: dict[str, type[Event]] = {
    kind.TYPE: kind
    for kind in (TurnStart, TurnEnd, StepStart, StepEnd, AssistantSaid, ToolCalled, ToolAnswered, SeedEnded)
}
"""The event types that can change a place."""


def check_ids(event: Event) -> None:
    """Refuse an id that a model's provider would refuse later.

    Raises:
        EventOutOfPlace: a call or a result without a call id, or a call without a name.
    """
    if isinstance(event, AssistantSaid):
        empty = any(not call.id or not call.name for call in event.message.tool_calls)
    elif isinstance(event, ToolCalled):
        empty = not event.call_id or not event.name
    elif isinstance(event, ToolAnswered):
        empty = not event.message.call_id
    else:
        return
    if empty:
        raise EventOutOfPlace(f"event {event.TYPE!r} was refused: a tool call needs an id and a name")


def place_of(logged: Iterable[Logged]) -> Place:
    """Where a log stands at its end. Total: events that make no sense where they are change nothing."""
    place = Place()
    for line in logged:
        kind = PLACED.get(line.type)
        if kind is None:
            continue
        try:
            place = place.after(line.as_(kind))
        except EventUndecodable:
            continue
        except EventOutOfPlace:
            place = _forced(place, line)
    return place


def _forced(place: Place, line: Logged) -> Place:
    """A start and an end are believed even where they do not follow, as an older writer may have left them."""
    match line.type:
        case TurnStart.TYPE:
            return Place(turn=max(place.turn, line.as_(TurnStart).turn), turn_open=True)
        case TurnEnd.TYPE:
            return Place(turn=max(place.turn, line.as_(TurnEnd).turn))
        case _:
            return place
