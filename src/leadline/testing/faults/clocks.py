"""A wall clock that jumps while others look at it, as one does that is set by hand or by the network."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from leadline.core.clock import Clock
from leadline.core.config import ConfigParser
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin

HOUR = 3600.0
JUMPS = (-24 * HOUR, 400 * 24 * HOUR, -0.5, -800 * 24 * HOUR, 24 * HOUR)
"""A day back, a year ahead, a moment back, two years back, a day ahead; in seconds."""


class JumpingClock(Clock):
    """The clock of the machine, set anew every few times that it is read. Durations stay true."""

    def __init__(self, jumps: Sequence[float] = JUMPS, every: int = 7) -> None:
        """At each `every`-th reading of `now` the next of `jumps` (seconds) is added, round and round."""
        self._jumps = tuple(jumps)
        self._every = every
        self._offset = 0.0
        self.readings = 0
        """How often somebody has asked for the time of day."""

    def now(self) -> float:
        self.readings += 1
        if self._jumps and self.readings % self._every == 0:
            self._offset += self._jumps[(self.readings // self._every - 1) % len(self._jumps)]
        return super().now() + self._offset


class JumpingClockConfig(BaseModel):
    """Configuration of a clock that jumps."""

    model_config = ConfigDict(extra="forbid")

    jumps: tuple[float, ...] = JUMPS
    """Seconds by which it is set anew, one after the other, round and round."""

    every: int = Field(default=7, ge=1)
    """At how many readings of the time of day it jumps."""


async def _apply(ctx: Context, config: JumpingClockConfig) -> None:
    ctx.provide(Clock, JumpingClock(config.jumps, config.every))


plugin: Plugin[JumpingClockConfig] = Plugin(
    "jumping-clock", _apply, config=ConfigParser(JumpingClockConfig), provides=(Clock,)
)
"""In the place of the plugin of the row `clock`."""
