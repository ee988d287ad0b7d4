"""The line before a model: what an admission costs where nothing holds it back, and where much stands in line."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from bench.__main__ import Row
from leadline.capabilities.persistence.providers.shared_lines import SqliteSharedLines
from leadline.core.clock import Clock
from leadline.core.home import Home
from leadline.core.spend.limiter import Limiter, Permit
from leadline.core.spend.limiter_config import LimiterConfig, LineConfig
from leadline.core.spend.lines import Ask
from leadline.core.spend.shared import SharedLines

MODEL = "bench/model"
CALLS, BEST_OF = 20_000, 5
TASKS, ROUNDS, PLACES = 500, 10, 16


def _limiter(shared: SharedLines | None = None, **limits: int) -> Limiter:
    rows = (LineConfig.model_validate({"model": MODEL, **limits}),) if limits else ()
    return Limiter(Clock(), LimiterConfig(limits=rows), shared)


async def _alone(limiter: Limiter, ask: Ask, calls: int) -> float:
    """Microseconds of one admission and its end, with nobody else there; the best of some."""
    best = float("inf")
    for _ in range(BEST_OF):
        began = time.perf_counter()
        for _ in range(calls):
            permit = await limiter.admit(ask)
            assert isinstance(permit, Permit)
            permit.done(900)
        best = min(best, time.perf_counter() - began)
    return best / calls * 1e6


async def _crowd(one: Callable[[], Awaitable[None]]) -> float:
    """Microseconds of one turn of many tasks that share few places."""
    began = time.perf_counter()

    async def task() -> None:
        for _ in range(ROUNDS):
            await one()

    async with anyio.create_task_group() as group:
        for _ in range(TASKS):
            group.start_soon(task)
    return (time.perf_counter() - began) / (TASKS * ROUNDS) * 1e6


async def _in_line() -> float:
    limiter, ask = _limiter(max=PLACES), Ask(MODEL, 1000)

    async def one() -> None:
        permit = await limiter.admit(ask)
        assert isinstance(permit, Permit)
        await anyio.lowlevel.checkpoint()
        permit.done(900)

    return await _crowd(one)


async def _semaphore() -> float:
    places = anyio.Semaphore(PLACES)

    async def one() -> None:
        async with places:
            await anyio.lowlevel.checkpoint()

    return await _crowd(one)


async def _measured() -> list[Row]:
    free = await _alone(_limiter(), Ask(MODEL, 1000), CALLS)
    child = await _alone(_limiter(), Ask(MODEL, 1000, child=True), CALLS)
    held = _limiter(max=8, requests_per_minute=10**9, tokens_per_minute=10**12)
    limited = await _alone(held, Ask(MODEL, 1000), CALLS)
    with tempfile.TemporaryDirectory() as folder:
        shared = SqliteSharedLines(Home(Path(folder)), Clock(), "bench")
        together = await _alone(_limiter(shared, max=8), Ask(MODEL, 1000), 500)
        shared.close()
    floor = min([await _semaphore() for _ in range(3)])
    crowd = min([await _in_line() for _ in range(3)])
    return [
        Row(bar="limiter: no limit", value=free, unit="us", floor=None, ratio=None),
        Row(bar="limiter: no limit, a child", value=child, unit="us", floor=None, ratio=None),
        Row(bar="limiter: three limits that hold nobody", value=limited, unit="us", floor=None, ratio=None),
        Row(bar="limiter: shared with processes", value=together, unit="us", floor=None, ratio=None),
        Row(bar="limiter: 500 callers, 16 places", value=crowd, unit="us", floor=floor, ratio=crowd / floor),
    ]


def measure() -> list[Row]:
    """One row for each way to be admitted."""
    return anyio.run(_measured)
