"""Where a session may be forked: behind a turn that has ended, and nowhere else."""

from __future__ import annotations

import pytest

from leadline.core.session.errors import ForkRefused
from leadline.core.session.events import Event, StepEnd, StepStart, Titled, TurnEnd, TurnStart
from leadline.core.session.forks import fork_point
from leadline.testing.sessions import memory_session


def turn(number: int) -> tuple[Event, ...]:
    return (
        TurnStart(turn=number),
        StepStart(turn=number, step=1),
        StepEnd(turn=number, step=1),
        TurnEnd(turn=number, reason="completed"),
    )


def test_a_fork_takes_all_that_rests() -> None:
    session = memory_session(events=(*turn(1), Titled(title="t", source="user")))
    assert fork_point(session) == 4
    assert fork_point(memory_session()) == -1


def test_a_fork_takes_the_turns_up_to_the_one_that_is_named() -> None:
    session = memory_session(events=(*turn(1), *turn(2), *turn(3)))
    assert [fork_point(session, number) for number in range(4)] == [-1, 3, 7, 11]


def test_a_fork_leaves_out_the_turn_that_goes_on() -> None:
    session = memory_session(events=(*turn(1), TurnStart(turn=2)))
    assert fork_point(session) == 3
    with pytest.raises(ForkRefused, match="still in turn 2"):
        fork_point(session, 2)
    with pytest.raises(ForkRefused, match="has no turn 3: it has had turns 1 to 1"):
        fork_point(session, 3)


def test_a_fork_of_a_first_turn_that_goes_on_is_refused() -> None:
    with pytest.raises(ForkRefused, match="still in turn 1"):
        fork_point(memory_session(events=(TurnStart(turn=1),)))
    with pytest.raises(ForkRefused, match="has no turn 7: it has had none"):
        fork_point(memory_session(), 7)
