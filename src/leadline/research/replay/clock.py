"""The clock of a replay: the time of day is that of the recording, and moves on with what is played of it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from leadline.core.clock import Clock
from leadline.core.config import ConfigParser
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin


class RecordedClock(Clock):
    """Says what time it was. Durations are real, so that deadlines and leases hold as ever."""

    def __init__(self, begins: float) -> None:
        self._now = begins

    def now(self) -> float:
        return self._now

    def reach(self, time: float) -> None:
        """Something that was recorded at `time` has happened again; the clock never goes back."""
        self._now = max(self._now, time)


class ClockConfig(BaseModel):
    """Configuration of the clock of a replay."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    begins: float
    """When the recording begins; seconds since 1970, UTC."""


async def _apply(ctx: Context, config: ClockConfig) -> None:
    ctx.provide(Clock, RecordedClock(config.begins))


plugin: Plugin[ClockConfig] = Plugin(
    "recorded-clock", _apply, config=ConfigParser(ClockConfig), provides=(Clock,)
)
