"""When to try again is a pure function of what failed and what was spent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.retry import Delay, GiveUp, RetryPolicy, duration

BUSY = Wait("SERVER", "500 broken")


def test_delays_double_up_to_the_ceiling() -> None:
    policy = RetryPolicy(attempts=9)
    delays = [policy.decide(attempt, BUSY, 0.0) for attempt in range(1, 8)]
    assert delays == [Delay(s) for s in (0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0)]


def test_jitter_moves_a_delay_by_a_tenth_either_way() -> None:
    policy = RetryPolicy()
    ends = [policy.decide(1, BUSY, 0.0, unit=unit) for unit in (0.0, 1.0)]
    assert [end.seconds for end in ends if isinstance(end, Delay)] == pytest.approx([0.45, 0.55])


def test_the_last_attempt_gives_up_and_says_how_often_it_tried() -> None:
    decision = RetryPolicy(attempts=5).decide(5, BUSY, 0.0)
    assert isinstance(decision, GiveUp)
    assert isinstance(decision.failure, Stop)
    assert decision.failure.message == "500 broken. Gave up after 5 attempts (SERVER)."


def test_a_server_that_cannot_be_reached_is_told_to_be_looked_after() -> None:
    failures = [Wait("TRANSPORT", "cannot connect: Connection refused"), BUSY]
    decisions = [RetryPolicy(attempts=5).decide(5, failure, 0.0) for failure in failures]
    stops = [one.failure for one in decisions if isinstance(one, GiveUp) and isinstance(one.failure, Stop)]
    assert ["whether its server runs" in str(stop.next_step) for stop in stops] == [True, False]


def test_a_stop_is_never_tried_again() -> None:
    stop = Stop("AUTH", "no")
    assert RetryPolicy().decide(1, stop, 0.0) == GiveUp(stop)


@pytest.mark.case("M28")
def test_retry_after_is_a_minimum() -> None:
    asked = Wait("RATE_LIMIT", "slow down", retry_after_s=30.0)
    assert RetryPolicy().decide(1, asked, 0.0, unit=0.0) == Delay(30.0)
    short = Wait("RATE_LIMIT", "slow down", retry_after_s=0.1)
    assert RetryPolicy().decide(1, short, 0.0) == Delay(0.5)


@pytest.mark.case("M26")
def test_retry_after_beyond_the_budget_is_a_quota_stop_with_the_reset_time() -> None:
    asked = Wait("RATE_LIMIT", "429 Rate limit reached.", retry_after_s=11180.0, status=429)
    decision = RetryPolicy(budget_s=300).decide(1, asked, 0.0)
    assert isinstance(decision, GiveUp)
    assert isinstance(decision.failure, Stop)
    assert (decision.failure.code, decision.failure.resets_in_s) == ("QUOTA", 11180.0)
    assert "3 h 6 min" in decision.failure.message


def test_waiting_that_is_already_spent_counts_against_the_budget() -> None:
    asked = Wait("RATE_LIMIT", "slow down", retry_after_s=30.0)
    assert RetryPolicy(budget_s=60).decide(1, asked, 25.0) == Delay(30.0)
    assert isinstance(RetryPolicy(budget_s=60).decide(1, asked, 45.0), GiveUp)


@given(st.integers(1, 20), st.floats(0, 1000), st.floats(0, 1), st.none() | st.floats(0, 1e6))
def test_no_delay_ever_leaves_the_budget_or_undercuts_the_provider(
    attempt: int, spent: float, unit: float, asked: float | None
) -> None:
    policy = RetryPolicy(attempts=100, budget_s=120)
    decision = policy.decide(attempt, Wait("SERVER", "x", asked), spent, unit)
    if isinstance(decision, Delay):
        assert spent + decision.seconds <= 120 + 1e-6
        assert decision.seconds >= (asked or 0)


def test_durations_are_written_for_people() -> None:
    assert [duration(s) for s in (0.4, 59, 60, 200, 3600, 11180)] == [
        "0 s", "59 s", "1 min", "3 min 20 s", "1 h", "3 h 6 min",
    ]  # fmt: skip
