"""The manual clock: time passes by `advance` alone, and sleepers wake in order."""

from __future__ import annotations

import anyio
import pytest

from leadline.testing.clock import START, ManualClock
from leadline.testing.ids import SeededIds

pytestmark = pytest.mark.anyio


async def test_time_stands_still_until_it_is_advanced() -> None:
    clock = ManualClock()
    assert clock.now() == clock.now() == START
    await clock.advance(2.5)
    assert clock.now() == START + 2.5
    assert clock.monotonic() == 2.5


async def test_sleepers_wake_in_the_order_of_their_time() -> None:
    clock = ManualClock()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    async with anyio.create_task_group() as group:
        for name, seconds in (("late", 3.0), ("early", 1.0), ("also early", 1.0), ("never yet", 9.0)):
            group.start_soon(sleeper, name, seconds)
        await clock.until_sleeping(4)
        await clock.advance(3.0)
        assert [name for name, _ in woken] == ["early", "also early", "late"]
        assert [at for _, at in woken] == [1.0, 1.0, 3.0]
        assert clock.sleepers == 1
        await clock.advance(6.0)
    assert woken[-1] == ("never yet", 9.0)


async def test_what_a_woken_task_sleeps_next_counts_in_the_same_advance() -> None:
    clock = ManualClock()
    at: list[float] = []

    async def ticker() -> None:
        for _ in range(4):
            await clock.sleep(0.5)
            at.append(clock.monotonic())

    async with anyio.create_task_group() as group:
        group.start_soon(ticker)
        await clock.until_sleeping()
        await clock.advance(1.4)
        assert at == [0.5, 1.0]
        await clock.advance(0.6)
    assert at == [0.5, 1.0, 1.5, 2.0]


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = ManualClock()
    async with anyio.create_task_group() as group:
        group.start_soon(clock.sleep, 5.0)
        await clock.until_sleeping()
        group.cancel_scope.cancel()
    assert clock.sleepers == 0
    await clock.advance(10)


async def test_the_wall_clock_jumps_without_time_passing() -> None:
    clock = ManualClock()
    clock.jump(-3600)
    assert clock.now() == START - 3600
    assert clock.monotonic() == 0


async def test_seeded_ids_are_the_same_each_time_and_distinct() -> None:
    one, other = SeededIds(7), SeededIds(7)
    first = [one.new("s") for _ in range(100)]
    assert first == [other.new("s") for _ in range(100)]
    assert len(set(first)) == 100
    assert first != [SeededIds(8).new("s") for _ in range(100)]
    assert all(len(it) == len("s-") + 16 for it in first)
