"""Time as a service, so that a replay and a test decide what time it is."""

from __future__ import annotations

import time

import anyio

from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.kernel.services import Service


class Clock(Service, key="clock"):
    """The machine's clock. `leadline.testing.clock.ManualClock` is the one that tests turn by hand."""

    def now(self) -> float:
        """Seconds since 1970 in UTC. May jump when the machine's clock is set."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since some point; never goes back. For durations and deadlines only."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`; at once for zero and less, though other tasks get their turn."""
        await anyio.sleep(max(0.0, seconds))


async def _apply(ctx: Context, config: None) -> None:
    ctx.provide(Clock, Clock())


plugin: Plugin[None] = Plugin("clock", _apply, provides=(Clock,))
