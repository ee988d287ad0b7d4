"""A clock that stands still until a test turns it."""

from __future__ import annotations

import heapq
from itertools import count

import anyio
import anyio.lowlevel

from leadline.core.clock import Clock

START = 1_767_225_600.0
"""2026-01-01T00:00:00Z, where a manual clock starts."""


class ManualClock(Clock):
    """Time moves by `advance` alone. Sleepers wake in order of their time, then of their arrival."""

    def __init__(self, start: float = START) -> None:
        self._now = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, anyio.Event]] = []
        self._order = count()
        self._arrived = anyio.Event()
        self.slept: list[float] = []
        """Each duration that was asked of `sleep`, in order, in seconds."""

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed

    @property
    def sleepers(self) -> int:
        """How many tasks wait for time to pass."""
        return len(self._sleepers)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return
        entry = (self._elapsed + seconds, next(self._order), anyio.Event())
        heapq.heappush(self._sleepers, entry)
        self._arrived.set()
        self._arrived = anyio.Event()
        try:
            await entry[2].wait()
        finally:
            if entry in self._sleepers:
                self._sleepers.remove(entry)
                heapq.heapify(self._sleepers)

    async def until_sleeping(self, count: int = 1) -> None:
        """Return once at least `count` tasks sleep on this clock."""
        while len(self._sleepers) < count:
            await self._arrived.wait()

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back without any time passing."""
        self._now += seconds

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass. Each sleeper whose time comes wakes at its own time and runs on,
        and what it then sleeps counts too, before the next one wakes."""
        end = self._elapsed + seconds
        while self._sleepers and self._sleepers[0][0] <= end:
            due, _, event = heapq.heappop(self._sleepers)
            self._pass(due - self._elapsed)
            event.set()
            await anyio.wait_all_tasks_blocked()
        self._pass(end - self._elapsed)
        await anyio.wait_all_tasks_blocked()

    def _pass(self, seconds: float) -> None:
        self._elapsed += seconds
        self._now += seconds
