"""A recording is read from whatever a log has, and says once what was asked once."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.messages import HUMAN, AssistantMessage, MessageSource, Text, UserMessage
from leadline.core.llm.request import CallConfig, ModelRef
from leadline.core.session.codec import Header
from leadline.core.session.events import (
    AssistantSaid,
    Event,
    LlmRetry,
    RequestEnded,
    RequestHeader,
    RequestSent,
    StepEnd,
    StepStart,
    TurnEnd,
    TurnStart,
    UserEntered,
)
from leadline.core.session.load import load
from leadline.core.session.log import Session
from leadline.core.session.registry import EventTypes
from leadline.research.replay.recording import RecordedSession
from leadline.testing.clock import ManualClock
from leadline.testing.sessions import memory_session

LOGS = sorted((Path(__file__).parents[3] / "replay" / "recordings").rglob("*.jsonl"))
BUSY, DEAD = Wait("RATE_LIMIT", "busy"), Stop("AUTH", "no")


def read(content: bytes) -> RecordedSession:
    loaded = load(io.BytesIO(content))
    header = loaded.header or Header(id="s-1", kind="agent", created=0.0)
    return RecordedSession(Session(header, loaded, None, types=EventTypes(), clock=ManualClock()))


def looked_at(recorded: RecordedSession) -> int:
    requests = [recorded.request(attempt) for ask in recorded.asks for attempt in ask.attempts]
    return len(requests) + len(recorded.purpose)


@pytest.mark.parametrize("log", LOGS, ids=lambda one: f"{one.parts[-3]}-{one.stem}")
def test_every_beginning_of_a_log_can_be_read(log: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    counts = [len(read(b"".join(lines[:end])).asks) for end in range(len(lines) + 1)]
    assert counts == sorted(counts)
    assert looked_at(read(b"".join(lines))) > 0


@given(data=st.data())
def test_a_log_with_any_bytes_changed_can_be_read(data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from(LOGS)).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    looked_at(read(bytes(content)))


def sent(step: int, attempt: int = 1, turn: int = 1, digest: str = "") -> RequestSent:
    return RequestSent(
        turn=turn,
        step=step,
        attempt=attempt,
        purpose="agent/turn",
        model="p/m",
        digest=digest or f"d{step}",
        messages=1,
    )


def said(step: int, text: str, attempt: int = 1, turn: int = 1, *, cut: bool = False) -> AssistantSaid:
    message = AssistantMessage(f"m{turn}{step}{attempt}", (Text(text),), "p/m")
    state = "interrupted" if cut else "done"
    return AssistantSaid(turn=turn, step=step, attempt=attempt, message=message, state=state)


def failed(step: int, failure: Wait | Stop | None, attempt: int = 1, turn: int = 1) -> RequestEnded:
    state = "cancelled" if failure is None else "error"
    return RequestEnded(
        turn=turn, step=step, attempt=attempt, digest=f"d{step}", state=state, failure=failure
    )


def told(turn: int, step: int, source: MessageSource = HUMAN) -> UserEntered:
    return UserEntered(message=UserMessage(f"u{turn}{step}", (Text("go"),), source), turn=turn, step=step)


def recorded(*events: Event) -> RecordedSession:
    header = RequestHeader(config=CallConfig(ModelRef("p", "m")), system="s")
    return RecordedSession(
        memory_session(events=[header, TurnStart(turn=1), StepStart(turn=1, step=1), *events])
    )


def outcomes(session: RecordedSession) -> Sequence[Sequence[str]]:
    def shown(outcome: object) -> str:
        if isinstance(outcome, AssistantSaid):
            return outcome.message.text
        return outcome.state if isinstance(outcome, RequestEnded) else "in flight"

    return [[shown(one.outcome) for one in ask.attempts] for ask in session.asks]


def test_a_retry_stands_in_its_step_with_the_failure_before_it() -> None:
    session = recorded(
        sent(1),
        failed(1, BUSY),
        LlmRetry(turn=1, step=1, attempt=1, delay_s=1.0, failure=BUSY),
        sent(1, 2),
        said(1, "there", 2),
    )
    assert outcomes(session) == [["error", "there"]]


def test_what_was_in_flight_and_sent_again_stands_once() -> None:
    assert outcomes(recorded(sent(1), sent(1, 2), said(1, "there", 2))) == [["there"]]


def test_what_was_in_flight_last_is_the_open_end() -> None:
    session = recorded(sent(1), said(1, "first"), StepEnd(turn=1, step=1), StepStart(turn=1, step=2), sent(2))
    assert outcomes(session) == [["first"], ["in flight"]]
    assert [ask.last.is_open for ask in session.asks] == [False, True]


def test_a_turn_that_ended_with_a_failure_and_was_taken_up_has_the_later_answer_alone() -> None:
    end = (StepEnd(turn=1, step=1), TurnEnd(turn=1, reason="error", failure=DEAD))
    again = (TurnStart(turn=2), StepStart(turn=2, step=1), sent(1, turn=2), said(1, "now", turn=2))
    assert outcomes(recorded(sent(1), failed(1, DEAD), *end, *again)) == [["now"]]


def test_a_turn_that_was_stopped_stays_where_a_person_said_something_new_after_it() -> None:
    end = (StepEnd(turn=1, step=1), TurnEnd(turn=1, reason="aborted"))
    begin = (TurnStart(turn=2), StepStart(turn=2, step=1))
    new = (told(2, 1), sent(1, turn=2, digest="other"), said(1, "welcome", turn=2))
    session = recorded(told(1, 1), sent(1), said(1, "It is", cut=True), *end, *begin, *new)
    assert outcomes(session) == [["It is"], ["welcome"]]
    assert session.asks[0].last.is_open


def test_words_that_were_cut_off_before_the_session_was_taken_up_are_in_no_later_request() -> None:
    end = (StepEnd(turn=1, step=1), TurnEnd(turn=1, reason="aborted"))
    again = (TurnStart(turn=2), StepStart(turn=2, step=1), sent(1, turn=2), said(1, "whole", turn=2))
    session = recorded(told(1, 1), sent(1), said(1, "who", cut=True), *end, *again)
    assert outcomes(session) == [["whole"]]
    request = session.request(session.asks[0].last)
    assert request is not None
    assert [message.id for message in request.conversation] == ["u11"]


def test_the_failure_that_ended_the_turn_belongs_to_the_last_attempt() -> None:
    gave_up = Stop("GAVE_UP", "busy. Gave up after 2 attempts.")
    session = recorded(
        sent(1),
        failed(1, BUSY),
        sent(1, 2),
        failed(1, BUSY, 2),
        StepEnd(turn=1, step=1),
        TurnEnd(turn=1, reason="error", failure=gave_up),
    )
    assert outcomes(session) == [["error", "error"]]
    assert session.asks[0].last.final_failure == gave_up


def test_a_failure_that_was_to_be_tried_again_when_the_turn_was_stopped_says_so() -> None:
    session = recorded(
        sent(1),
        failed(1, BUSY),
        LlmRetry(turn=1, step=1, attempt=1, delay_s=1.0, failure=BUSY),
        StepEnd(turn=1, step=1),
        TurnEnd(turn=1, reason="aborted"),
    )
    assert outcomes(session) == [["error"]]
    assert session.asks[0].last.to_retry
