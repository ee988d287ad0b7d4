"""A call is told once, where it was made, whatever was stopped and made again."""

from __future__ import annotations

import msgspec

from leadline.core.llm.messages import AssistantMessage, ToolCall, ToolMessage
from leadline.core.session.events import (
    AssistantSaid,
    Event,
    StepEnd,
    StepStart,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnResumed,
    TurnStart,
)
from leadline.core.tools.outcome import Code
from leadline.research.evidence.citing import calls_of
from leadline.testing.sessions import memory_session


def called(call: str) -> ToolCalled:
    return ToolCalled(turn=1, step=1, call_id=call, name="read", arguments=f'{{"source":"{call}"}}')


def answered(call: str, message: str, *, synthesised: bool = False) -> ToolAnswered:
    value = msgspec.Raw(msgspec.json.encode({"of": message}))
    said = ToolMessage(message, call, "read", message, value=value)
    return ToolAnswered(turn=1, step=1, message=said, synthesised=synthesised)


def test_a_call_that_was_stopped_and_made_again_is_told_once_by_its_second_making() -> None:
    asked = AssistantMessage("a1", tuple(ToolCall(one, "read", "{}") for one in ("c1", "c2", "c3")), "m/m")
    events: list[Event] = [
        TurnStart(turn=1),
        StepStart(turn=1, step=1),
        AssistantSaid(turn=1, step=1, message=asked),
        called("c1"),
        answered("c1", "t1"),
        called("c2"),
        answered("c2", "stopped"),
        called("c3"),
        answered("c3", "unknown", synthesised=True),
        StepEnd(turn=1, step=1),
        TurnEnd(turn=1, reason="aborted"),
        TurnResumed(turn=1, step=1, void=("stopped",), calls=("c2",), unbegun=("c2",)),
        called("c2"),
        answered("c2", "t2"),
    ]
    session = memory_session(events=events)
    made = list(calls_of(session))
    assert [(one.call_id, one.seq, one.value) for one in made] == [
        ("c1", 3, {"of": "t1"}),
        ("c2", 12, {"of": "t2"}),
    ]


def test_a_call_that_was_stopped_and_not_made_again_yet_is_none() -> None:
    said = ToolMessage("stopped", "c1", "read", "was cancelled", is_error=True)
    events: list[Event] = [
        TurnStart(turn=1),
        StepStart(turn=1, step=1),
        AssistantSaid(turn=1, step=1, message=AssistantMessage("a1", (ToolCall("c1", "read", "{}"),), "m/m")),
        called("c1"),
        ToolAnswered(turn=1, step=1, message=said, error_code=Code.ABORTED),
        StepEnd(turn=1, step=1),
        TurnEnd(turn=1, reason="aborted"),
    ]
    assert list(calls_of(memory_session(events=events))) == []
