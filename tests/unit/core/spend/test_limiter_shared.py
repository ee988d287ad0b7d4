"""The limiter beside other processes: when it asks them, how often, and what it does when it cannot."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest

from leadline.core.llm.failure import Wait
from leadline.core.llm.limits import Bucket, RateLimits
from leadline.core.spend.limiter import Limiter, Permit
from leadline.core.spend.limiter_config import LimiterConfig, LineConfig
from leadline.core.spend.lines import Ask, Waiting
from leadline.core.spend.shared import (
    Held,
    Place,
    SharedLimits,
    SharedLines,
    SharedLinesUnusable,
    SharedState,
)
from leadline.testing.clock import ManualClock

pytestmark = pytest.mark.anyio

MODEL = "bench/model"


class Others(SharedLines):
    """Other processes that hold what a test says, and note what is asked of them."""

    def __init__(self) -> None:
        self.held: Held | None = None
        self.broken = False
        self.takes = 0
        self.places: list[int] = []
        self.given_back: list[tuple[int, int | None, bool]] = []
        self.left: list[str] = []
        self.told: list[tuple[str, float | None]] = []

    def take(self, model: str, limits: SharedLimits, tokens: int) -> Place | Held:
        self.takes += 1
        if self.broken:
            raise SharedLinesUnusable("the disk is full")
        if self.held is not None:
            return self.held
        self.places.append(self.takes)
        return Place(self.takes)

    def give_back(self, model: str, place: Place, tokens: int | None, *, made: bool = True) -> None:
        self.places.remove(place.number)
        self.given_back.append((place.number, tokens, made))

    def leave(self, model: str) -> None:
        self.left.append(model)

    def tell(
        self, model: str, *, learned: RateLimits | None, ceiling: int | None, paused_s: float | None
    ) -> None:
        self.told.append((model, paused_s))

    def states(self) -> Sequence[SharedState]:
        return ()


class Scene:
    """A limiter beside other processes, and one caller that asks it."""

    def __init__(self, others: Others, *limits: LineConfig, **config: object) -> None:
        self.clock = ManualClock()
        self.others = others
        self.limiter = Limiter(self.clock, LimiterConfig.model_validate({"limits": limits, **config}), others)
        self.permits: list[Permit] = []
        self.told: list[Waiting] = []

    async def call(self) -> None:
        found = await self.limiter.admit(Ask(MODEL, 10), self.told.append)
        assert isinstance(found, Permit)
        self.permits.append(found)


@asynccontextmanager
async def scene(*limits: LineConfig, **config: object) -> AsyncGenerator[tuple[Scene, anyio.abc.TaskGroup]]:
    made = Scene(Others(), *limits, **config)
    async with anyio.create_task_group() as group:
        group.start_soon(made.limiter.keep_time)
        await anyio.wait_all_tasks_blocked()
        yield made, group
        group.cancel_scope.cancel()


ONE = LineConfig(model=MODEL, max=1)


async def test_a_line_without_limits_is_nobody_elses_business() -> None:
    async with scene() as (made, _):
        await made.call()
        made.permits[0].done(10, RateLimits(requests=Bucket(60, 59, 1.0)))
        assert made.others.takes == 0


async def test_a_line_whose_provider_refused_is_everybodys() -> None:
    async with scene() as (made, _):
        await made.call()
        made.permits[0].done(None, None, Wait("RATE_LIMIT", "no", retry_after_s=0))
        assert made.others.told == [(MODEL, None)]
        await made.call()
        assert made.others.takes == 1


async def test_a_pause_is_told_at_once_and_what_headers_say_now_and_then() -> None:
    async with scene() as (made, _):
        for _ in range(5):
            await made.call()
            made.permits[-1].done(10, RateLimits(requests=Bucket(60, 59, 1.0)))
        assert len(made.others.told) == 1
        await made.call()
        made.permits[-1].done(None, None, Wait("RATE_LIMIT", "no", retry_after_s=7))
        assert made.others.told[1:] == [(MODEL, 7.0)]


async def test_a_place_is_given_back_with_what_the_call_took() -> None:
    async with scene(ONE) as (made, _):
        await made.call()
        made.permits[-1].done(7)
        await made.call()
        made.permits[-1].unmade()
        await made.call()
        made.permits[-1].done()
        assert made.others.given_back == [(1, 7, True), (2, None, False), (3, None, True)]
        assert made.others.places == []


async def test_others_are_asked_again_ten_times_a_second_and_only_while_somebody_waits() -> None:
    async with scene(ONE) as (made, group):
        made.others.held = Held("slots", None)
        for _ in range(20):
            group.start_soon(made.call)
        await anyio.wait_all_tasks_blocked()
        asked = made.others.takes
        await made.clock.advance(10)
        assert 95 <= made.others.takes - asked <= 101, "once for all that wait, and not for each"
        made.others.held = None
        await made.clock.advance(0.1)
        assert len(made.permits) == 1
        asked = made.others.takes
        await made.clock.advance(10)
        assert made.others.takes == asked, "it holds the only place itself"


async def test_a_wait_whose_end_is_known_is_looked_at_once_a_second() -> None:
    async with scene(ONE) as (made, group):
        made.others.held = Held("tokens", 30.0)
        group.start_soon(made.call)
        await anyio.wait_all_tasks_blocked()
        assert made.told == [Waiting(MODEL, "tokens", 0, 30.0)]
        asked = made.others.takes
        await made.clock.advance(10)
        assert made.others.takes - asked <= 11


async def test_who_waits_no_more_gives_up_the_turn_among_processes() -> None:
    async with scene(ONE, queue_timeout_s=5) as (made, group):
        made.others.held = Held("slots", None)
        group.start_soon(ask_and_be_refused, made)
        await anyio.wait_all_tasks_blocked()
        assert made.others.left == []
        await made.clock.advance(5)
        assert made.others.left == [MODEL]


async def ask_and_be_refused(made: Scene) -> None:
    found = await made.limiter.admit(Ask(MODEL))
    assert not isinstance(found, Permit)
    assert found.code == "CAPACITY"


async def test_a_call_that_is_cancelled_gives_up_the_turn_among_processes() -> None:
    async with scene(ONE) as (made, _):
        made.others.held = Held("slots", None)
        async with anyio.create_task_group() as callers:
            callers.start_soon(made.call)
            await anyio.wait_all_tasks_blocked()
            callers.cancel_scope.cancel()
        assert made.others.left == [MODEL]
        assert made.limiter.lines() == ()


async def test_who_is_held_by_something_of_its_own_keeps_nobody_else_waiting() -> None:
    async with scene(LineConfig(model=MODEL, max=2)) as (made, group):
        await made.call()
        made.others.held = Held("slots", None)
        group.start_soon(made.call)
        await anyio.wait_all_tasks_blocked()
        assert made.others.left == []
        made.permits[0].done(None, None, Wait("RATE_LIMIT", "no", retry_after_s=20))
        assert made.others.left == [MODEL]
        made.others.held = None
        await made.clock.advance(20)
        assert len(made.permits) == 2


async def test_what_cannot_be_shared_stops_no_call() -> None:
    async with scene(ONE) as (made, _):
        made.others.broken = True
        await made.call()
        assert made.limiter.problem == "the disk is full"
        made.permits[-1].done(10)
        await made.call()
        assert made.others.takes == 1, "it is left alone from then on"
        (line,) = made.limiter.lines()
        assert not line.shared


async def test_sharing_can_be_switched_off() -> None:
    async with scene(ONE, shared=False) as (made, _):
        await made.call()
        assert made.others.takes == 0
