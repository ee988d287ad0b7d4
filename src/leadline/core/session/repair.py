"""What a log lacks after its writer died, as events that complete it.

Only a session that is opened for writing is repaired, once; a session that is live never is.
"""

from __future__ import annotations

from leadline.core.session.derive import NOT_STARTED, OUTCOME_UNKNOWN, Derived, OpenCall
from leadline.core.session.events import Event, StepEnd, ToolAnswered, TurnEnd
from leadline.core.session.log import Session


def repairs(session: Session) -> list[Event]:
    """The events that close what was left open, in the order in which they are to be appended."""
    place = session.place
    events: list[Event] = [_answer(call) for call in Derived(session.logged).open_calls]
    if place.step_open:
        events.append(StepEnd(turn=place.turn, step=place.step))
    if place.turn_open:
        events.append(TurnEnd(turn=place.turn, reason="interrupted"))
    return events


def _answer(call: OpenCall) -> ToolAnswered:
    return ToolAnswered(
        turn=call.said.turn,
        step=call.said.step,
        message=call.settled(),
        error_code=OUTCOME_UNKNOWN if call.called else NOT_STARTED,
        started=call.called is not None,
        synthesised=True,
        side_effects=call.called.side_effects if call.called else (),
    )
