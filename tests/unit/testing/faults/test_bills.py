"""What may be paid for again after a crash, and what may not."""

from __future__ import annotations

import pytest

from leadline.core.llm.messages import AssistantMessage, Text
from leadline.core.session.events import (
    AssistantSaid,
    Event,
    RequestEnded,
    RequestSent,
    StepEnd,
    StepStart,
    TurnStart,
)
from leadline.testing.faults.bills import Asked, asked_by, check_bill
from leadline.testing.sessions import memory_session

BEFORE = Asked(answered=frozenset({"a", "b"}), in_flight=frozenset({"c"}))


def test_calls_that_were_in_flight_and_new_ones_may_be_charged() -> None:
    check_bill(BEFORE, ["a", "b", "c"], ["c", "d"])


@pytest.mark.parametrize(
    ("earlier", "later", "told"),
    [
        (["a"], ["a"], "answers that were logged were paid for again"),
        ([], ["b"], "answers that were logged were paid for again"),
        (["x"], ["x"], "without having been in flight"),
        ([], ["d", "d"], "paid for twice after the crash"),
    ],
)
def test_anything_else_is_told(earlier: list[str], later: list[str], told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        check_bill(BEFORE, earlier, later)


def test_a_power_cut_excuses_calls_of_which_nothing_is_left_and_no_others() -> None:
    check_bill(BEFORE, ["x"], ["x"], power_cut=True)
    with pytest.raises(AssertionError, match="answers that were logged"):
        check_bill(BEFORE, ["a"], ["a"], power_cut=True)


def step(number: int, key: str, *ends: Event) -> list[Event]:
    sent = RequestSent(
        turn=1, step=number, purpose="agent/turn", model="m/m", digest="0", messages=1, idempotency_key=key
    )
    return [StepStart(turn=1, step=number), sent, *ends]


def said(number: int, state: str = "done") -> AssistantSaid:
    message = AssistantMessage(f"a{number}", (Text("x"),), "m/m")
    return AssistantSaid(turn=1, step=number, message=message, state=state)  # type: ignore[arg-type]


def test_an_answer_counts_where_all_of_it_is_logged() -> None:
    cancelled = RequestEnded(turn=1, step=3, digest="0", state="cancelled")
    session = memory_session(
        events=[
            TurnStart(turn=1),
            *step(1, "whole", said(1), StepEnd(turn=1, step=1)),
            *step(2, "part", said(2, "interrupted"), StepEnd(turn=1, step=2)),
            *step(3, "cancelled", cancelled, StepEnd(turn=1, step=3)),
            *step(4, "flying"),
        ]
    )
    assert asked_by(session) == ({"whole"}, {"part", "cancelled", "flying"})
