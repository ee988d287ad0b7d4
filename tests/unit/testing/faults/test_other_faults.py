"""Clocks that jump, writers that do not ask, processes that are killed."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.core.clock import Clock
from leadline.core.session.errors import StaleLease
from leadline.core.session.log import Session
from leadline.core.session.registry import EventTypes
from leadline.testing.conformance.session_store import Noted, header, whole_turn
from leadline.testing.faults.clocks import HOUR, JumpingClock
from leadline.testing.faults.kills import NotKilled, kill, killed, let_be, together, within
from leadline.testing.faults.writers import append, second_branch

pytestmark = pytest.mark.anyio


def store_in(folder: Path, clock: Clock | None = None) -> JsonlSessions:
    return JsonlSessions(folder, clock=clock or Clock(), types=EventTypes())


def test_a_clock_jumps_back_and_forth_and_durations_stay_true() -> None:
    clock, plain = JumpingClock((-HOUR, 2 * HOUR), every=2), Clock()
    apart = [round((clock.now() - plain.now()) / HOUR) for _ in range(7)]
    assert apart == [0, -1, -1, 1, 1, 0, 0]
    assert abs(clock.monotonic() - plain.monotonic()) < 60


async def test_a_log_that_was_written_while_the_clock_jumped_is_whole(tmp_path: Path) -> None:
    session = await store_in(tmp_path, JumpingClock(every=2)).create(header())
    for number in range(1, 11):
        session.append_all(whole_turn(number))
    await session.close()
    assert len({line.t for line in session.logged}) > 5
    again = await store_in(tmp_path, JumpingClock(every=1)).open("s-1")
    assert (len(again), list(again.problems)) == (60, [])
    await again.close()
    (entry,) = await store_in(tmp_path).list()
    assert entry.status == "finished"


def others(session: Session) -> list[str]:
    return [one.event.as_(Noted).text for one in session.quarantined if one.event is not None]


async def test_a_second_writer_that_does_not_ask_is_noticed_and_both_branches_can_be_read(
    tmp_path: Path,
) -> None:
    store = store_in(tmp_path)
    session = await store.create(header())
    for text in ("one", "two", "three"):
        session.append(Noted(text=text))
    append(tmp_path / "s-1.jsonl", second_branch(tmp_path / "s-1.jsonl", 0, ("other two", "other three")))
    with pytest.raises(StaleLease, match="changed by someone else"):
        session.append(Noted(text="four"))
    await session.close()
    read = await store_in(tmp_path).read("s-1")
    assert [event.text for event in read.of(Noted)] == ["one", "two", "three"]
    assert others(read) == ["other two", "other three"]
    again = await store_in(tmp_path).open("s-1")
    again.append(Noted(text="four"))
    await again.close()
    last = await store_in(tmp_path).read("s-1")
    assert [event.text for event in last.of(Noted)] == ["one", "two", "three", "four"]
    assert others(last) == ["other two", "other three"]


COUNT = """
import sys, time
with open(sys.argv[1], "a") as file:
    file.write("x")
    file.flush()
    time.sleep(float(sys.argv[2]))
print("done")
"""


def counting(file: Path, seconds: float) -> list[str]:
    return [sys.executable, "-c", COUNT, str(file), str(seconds)]


def written(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


async def begun(file: Path, times: int) -> None:
    while written(file) < times:  # noqa: ASYNC110 - the process has no event to wait for
        await anyio.sleep(0.005)


async def test_a_command_is_killed_as_often_as_wanted_and_then_let_be(tmp_path: Path) -> None:
    file = tmp_path / "x"

    async def command(attempt: int) -> list[str]:
        return counting(file, 60 if attempt < 3 else 0)

    found = await killed(command, 3, lambda attempt: begun(file, attempt + 1))
    assert (found.kills, found.last.code, found.last.out) == (3, 0, b"done\n")
    assert file.read_text() == "xxxx"


async def test_a_command_that_ends_before_its_moment_is_not_killed(tmp_path: Path) -> None:
    async def command(attempt: int) -> list[str]:
        return counting(tmp_path / "x", 0)

    found = await killed(command, 3, within(60, at_least=60))
    assert (found.kills, found.last.code, found.last.out) == (0, 0, b"done\n")
    assert await kill(counting(tmp_path / "y", 60), lambda attempt: begun(tmp_path / "y", 1)) is None


async def test_what_does_not_end_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotKilled, match="did not end within 1 s"):
        await let_be(counting(tmp_path / "x", 60), timeout_s=1)


async def test_commands_run_at_once(tmp_path: Path) -> None:
    ended = await together([counting(tmp_path / f"{n}", 0) for n in range(3)])
    assert [one.out for one in ended] == [b"done\n"] * 3
