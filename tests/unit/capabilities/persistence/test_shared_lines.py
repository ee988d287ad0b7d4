"""Lines that several processes stand in: places, turns, minutes and pauses hold over all of them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.capabilities.persistence.providers.presence import Presence, is_present, sweep
from leadline.capabilities.persistence.providers.shared_lines import FILE, FOLDER, SqliteSharedLines
from leadline.core.home import Home
from leadline.core.llm.limits import Bucket, RateLimits
from leadline.core.spend.shared import Held, Place, SharedLimits, SharedLinesUnusable
from leadline.testing.clock import ManualClock

MODEL = "bench/model"
ONE = SharedLimits(max=1)


class Machine:
    """Processes of one home directory, as far as it can tell them apart, on one clock."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder)
        self.clock = ManualClock()
        self.made: list[SqliteSharedLines] = []

    def process(self) -> SqliteSharedLines:
        lines = SqliteSharedLines(self.home, self.clock, f"p{len(self.made)}")
        self.made.append(lines)
        return lines

    def pass_time(self, seconds: float) -> None:
        self.clock.jump(seconds)

    def kill(self, lines: SqliteSharedLines) -> None:
        """As the system does it: what the process locked is free, what it wrote stays."""
        presence = lines._presence  # pyright: ignore[reportPrivateUsage]
        if presence is not None:
            os.close(presence._fd)  # pyright: ignore[reportPrivateUsage]
            presence._fd = -1  # pyright: ignore[reportPrivateUsage]
        if lines._db is not None:  # pyright: ignore[reportPrivateUsage]
            lines._db.close()  # pyright: ignore[reportPrivateUsage]
            lines._db = None  # pyright: ignore[reportPrivateUsage]
        self.made.remove(lines)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    for lines in made.made:
        lines.close()


def _placed(found: Place | Held) -> Place:
    assert isinstance(found, Place), found
    return found


def test_nothing_is_made_before_somebody_needs_a_place(machine: Machine, tmp_path: Path) -> None:
    lines = machine.process()
    assert lines.states() == ()
    lines.close()
    assert list(tmp_path.iterdir()) == []


def test_one_place_is_one_place_for_all_processes(machine: Machine) -> None:
    a, b = machine.process(), machine.process()
    place = _placed(a.take(MODEL, ONE, 0))
    assert b.take(MODEL, ONE, 0) == Held("slots", None)
    _placed(b.take("bench/other", ONE, 0))
    a.give_back(MODEL, place, None)
    _placed(b.take(MODEL, ONE, 0))
    assert a.take(MODEL, ONE, 0) == Held("slots", None)


def test_processes_are_served_first_come_and_each_with_one_call_at_a_time(machine: Machine) -> None:
    a, b, c = machine.process(), machine.process(), machine.process()
    place, holder, served = _placed(a.take(MODEL, ONE, 0)), a, ""
    for lines in (b, c, a):
        assert isinstance(lines.take(MODEL, ONE, 0), Held)
    for _ in range(6):
        holder.give_back(MODEL, place, None)
        for name, lines in (("c", c), ("b", b), ("a", a)):  # whoever asks first: the turn decides
            found = lines.take(MODEL, ONE, 0)
            if isinstance(found, Place):
                place, holder, served = found, lines, served + name
    assert served == "bcabca"


def test_nobody_waits_while_there_is_a_place_for_all_before_it(machine: Machine) -> None:
    a, b, c = machine.process(), machine.process(), machine.process()
    two = SharedLimits(max=2)
    first, second = _placed(a.take(MODEL, two, 0)), _placed(a.take(MODEL, two, 0))
    assert isinstance(b.take(MODEL, two, 0), Held)
    a.give_back(MODEL, first, None)
    a.give_back(MODEL, second, None)
    _placed(c.take(MODEL, two, 0))
    assert isinstance(c.take(MODEL, two, 0), Held), "the other one is for b, who came first"
    _placed(b.take(MODEL, two, 0))


def test_who_does_not_ask_again_loses_the_turn_and_who_leaves_gives_it_up(machine: Machine) -> None:
    a, b, c = machine.process(), machine.process(), machine.process()
    place = _placed(a.take(MODEL, ONE, 0))
    assert isinstance(b.take(MODEL, ONE, 0), Held)
    a.give_back(MODEL, place, None)
    assert isinstance(c.take(MODEL, ONE, 0), Held)
    b.leave(MODEL)
    place = _placed(c.take(MODEL, ONE, 0))
    assert isinstance(b.take(MODEL, ONE, 0), Held)
    c.give_back(MODEL, place, None)
    machine.pass_time(3)
    _placed(a.take(MODEL, ONE, 0))


def test_a_process_that_is_gone_holds_nothing(machine: Machine, tmp_path: Path) -> None:
    a, b = machine.process(), machine.process()
    _placed(a.take(MODEL, ONE, 0))
    assert isinstance(b.take(MODEL, ONE, 0), Held)
    machine.kill(a)
    _placed(b.take(MODEL, ONE, 0))
    assert [path.name for path in (tmp_path / FOLDER).glob("*.alive")] == ["p1.alive"]


def test_the_minute_is_that_of_all_processes(machine: Machine) -> None:
    a, b = machine.process(), machine.process()
    limits = SharedLimits(requests_per_minute=2)
    _placed(a.take(MODEL, limits, 0))
    machine.pass_time(20)
    _placed(b.take(MODEL, limits, 0))
    found = a.take(MODEL, limits, 0)
    assert found == Held("requests", 40.0)
    machine.pass_time(40)
    _placed(a.take(MODEL, limits, 0))


def test_tokens_are_corrected_when_a_call_has_ended(machine: Machine) -> None:
    a, b = machine.process(), machine.process()
    limits = SharedLimits(tokens_per_minute=100)
    place = _placed(a.take(MODEL, limits, 90))
    assert isinstance(b.take(MODEL, limits, 50), Held)
    a.give_back(MODEL, place, 40)
    place = _placed(b.take(MODEL, limits, 50))
    b.give_back(MODEL, place, 60)
    assert isinstance(a.take(MODEL, limits, 1), Held)
    (state,) = a.states()
    assert (state.requests, state.tokens, state.active) == (2, 100, 0)
    machine.pass_time(60)
    place = _placed(a.take(MODEL, limits, 500))
    a.give_back(MODEL, place, None, made=False)
    assert a.states() == (), "a call that was not made took nothing"


def test_a_large_call_of_one_process_is_not_overtaken_for_ever(machine: Machine) -> None:
    a, b = machine.process(), machine.process()
    limits = SharedLimits(tokens_per_minute=100)
    _placed(a.take(MODEL, limits, 40))
    assert isinstance(a.take(MODEL, limits, 90), Held)
    assert isinstance(b.take(MODEL, limits, 20), Held), "it would fit, and the one before it would not"
    machine.pass_time(60)
    assert isinstance(b.take(MODEL, limits, 20), Held)
    _placed(a.take(MODEL, limits, 90))


def test_a_pause_that_one_process_was_told_holds_for_all(machine: Machine) -> None:
    a, b = machine.process(), machine.process()
    said = RateLimits(requests=Bucket(60, 0, 30.0))
    a.tell(MODEL, learned=said, ceiling=3, paused_s=30)
    a.tell(MODEL, learned=said, ceiling=3, paused_s=None)
    machine.pass_time(10)
    assert b.take(MODEL, SharedLimits(), 0) == Held("paused", 20.0)
    (state,) = b.states()
    assert (state.ceiling, state.paused_s, state.learned_ago_s) == (3, 20, 10)
    assert state.learned == RateLimits(requests=Bucket(60, 0, 20.0))
    machine.pass_time(20)
    _placed(b.take(MODEL, SharedLimits(), 0))


def test_a_clock_that_is_set_back_stops_nobody(machine: Machine) -> None:
    a, b = machine.process(), machine.process()
    limits = SharedLimits(requests_per_minute=1)
    a.tell(MODEL, learned=None, ceiling=None, paused_s=100)
    a.give_back(MODEL, _placed(a.take("bench/other", limits, 0)), None)
    machine.pass_time(-86_400)
    _placed(b.take(MODEL, limits, 0))
    _placed(b.take("bench/other", limits, 0))


def test_a_file_that_is_damaged_is_made_anew(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / FILE).write_bytes(b"this is no database, and long enough to be looked at" * 40)
    _placed(machine.process().take(MODEL, ONE, 0))


def test_a_folder_that_somebody_removed_is_made_anew(machine: Machine, tmp_path: Path) -> None:
    a, b = machine.process(), machine.process()
    _placed(a.take(MODEL, ONE, 0))
    for path in (tmp_path / FOLDER).iterdir():
        path.unlink()
    (tmp_path / FOLDER).rmdir()
    _placed(a.take(MODEL, ONE, 0))
    assert isinstance(b.take(MODEL, ONE, 0), Held)


def test_a_home_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file", encoding="utf-8")
    lines = SqliteSharedLines(Home(tmp_path / "home"), ManualClock(), "p")
    with pytest.raises(SharedLinesUnusable, match="home"):
        lines.take(MODEL, ONE, 0)


def test_a_file_that_another_process_keeps_busy_makes_wait_and_not_fail(
    machine: Machine, tmp_path: Path
) -> None:
    import sqlite3

    a, b = machine.process(), machine.process()
    place = _placed(a.take(MODEL, ONE, 0))
    _placed(b.take("bench/other", ONE, 0))
    other = sqlite3.connect(tmp_path / FOLDER / FILE, isolation_level=None)
    other.execute("begin immediate")
    try:
        assert b.take(MODEL, ONE, 0) == Held("slots", None)
        a.give_back(MODEL, place, None)
    finally:
        other.execute("rollback")
        other.close()
    _placed(a.take("bench/third", ONE, 0))  # what could not be written down then is now
    _placed(b.take(MODEL, ONE, 0))


def test_a_sign_of_life_lasts_as_long_as_it_is_given(tmp_path: Path) -> None:
    presence = Presence.give(tmp_path, "a")
    sweep(tmp_path)
    assert is_present(tmp_path, "a")
    assert presence.seen
    assert not is_present(tmp_path, "b")
    presence.end()
    presence.end()
    assert not is_present(tmp_path, "a")
    assert list(tmp_path.iterdir()) == []


def test_a_sign_of_life_whose_file_is_gone_is_not_seen(tmp_path: Path) -> None:
    presence = Presence.give(tmp_path, "a")
    (tmp_path / "a.alive").unlink()
    assert not presence.seen
    presence.end()


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(0, 3), st.sampled_from((1, 20, 50, 90))),
        st.tuples(st.just("end"), st.integers(0, 9), st.integers(0, 120)),
        st.tuples(st.just("leave"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("kill"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("pass"), st.sampled_from((1, 3, 30, 61)), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_STEPS)
def test_whatever_processes_do_there_are_never_more_calls_than_may_and_a_free_place_is_given(
    steps: list[tuple[str, int, int]],
) -> None:
    limits = SharedLimits(max=2, requests_per_minute=5, tokens_per_minute=100)
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        alive = [machine.process() for _ in range(4)]
        active: list[tuple[SqliteSharedLines, Place]] = []
        begun: list[float] = []
        killed: list[int] = []
        for what, one, other in steps:
            if what == "take":
                found = alive[one].take(MODEL, limits, other)
                if isinstance(found, Place):
                    active.append((alive[one], found))
                    begun.append(machine.clock.now())
            elif what == "end" and active:
                lines, place = active.pop(one % len(active))
                lines.give_back(MODEL, place, other)
            elif what == "leave":
                alive[one].leave(MODEL)
            elif what == "kill":
                machine.kill(alive[one])
                killed.append(one)
                active = [(lines, place) for lines, place in active if lines is not alive[one]]
                alive[one] = SqliteSharedLines(machine.home, machine.clock, f"q{len(killed)}")
                machine.made.append(alive[one])
            elif what == "pass":
                machine.pass_time(one)
            assert len(active) <= 2
            assert all(sum(at <= other < at + 60 for other in begun) <= 5 for at in begun)
        for lines, place in active:
            lines.give_back(MODEL, place, None)
        machine.pass_time(200)
        _placed(alive[0].take(MODEL, limits, 90))
        for lines in machine.made:
            lines.close()
