"""Mounts the adaptive method."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from leadline.core.config import ConfigParser
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.research.methods.adaptive.method import Adaptive
from leadline.research.methods.seam import Methods


class Config(BaseModel):
    """Configuration of the adaptive method."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_parallel_units: int = Field(default=3, ge=1, le=16)
    """Units that are researched at the same time; the breadth of a request says how many there are."""


async def apply(ctx: Context, config: Config) -> None:
    ctx.get(Methods).register(ctx, Adaptive(config.max_parallel_units))


plugin = Plugin("research.methods.adaptive", apply, config=ConfigParser(Config), needs=(Methods,))
