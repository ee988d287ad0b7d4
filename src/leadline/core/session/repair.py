"""What a log lacks after its writer died, as events that complete it.

Only a session that is opened for writing is repaired, once; a session that is live never is.
"""

from __future__ import annotations

from msgspec import structs

from leadline.core.session.approvals import Questions, questions
from leadline.core.session.derive import (
    NOT_STARTED,
    NOT_STARTED_TEXT,
    OUTCOME_UNKNOWN,
    Derived,
    OpenCall,
)
from leadline.core.session.events import Event, StepEnd, ToolAnswered, TurnEnd
from leadline.core.session.log import Session


def repairs(session: Session) -> list[Event]:
    """The events that close what was left open, in the order in which they are to be appended."""
    place = session.place
    open_calls, asked = Derived(session.logged).open_calls, questions(session.logged)
    events: list[Event] = [_answer(call, asked) for call in open_calls]
    if place.step_open:
        events.append(StepEnd(turn=place.turn, step=place.step))
    if place.turn_open:
        events.append(TurnEnd(turn=place.turn, reason="interrupted"))
    return events


def _answer(call: OpenCall, asked: Questions) -> ToolAnswered:
    begun = call.called is not None and asked.begun(call.call.id)
    message = call.settled() if begun else structs.replace(call.settled(), content=NOT_STARTED_TEXT)
    return ToolAnswered(
        turn=call.said.turn,
        step=call.said.step,
        message=message,
        error_code=OUTCOME_UNKNOWN if begun else NOT_STARTED,
        started=begun,
        synthesised=True,
        side_effects=call.called.side_effects if begun and call.called else (),
    )
