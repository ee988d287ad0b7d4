"""Gives the session of an agent that a person started a title, with one model call after its first turn."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from leadline.core.agent.agents import Agents
from leadline.core.agent.signals import TurnStopping
from leadline.core.config import ConfigParser
from leadline.core.llm.request import ModelRef
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.orchestration.titles.titler import Titler


class TitlesConfig(BaseModel):
    """Which model gives titles, and for how long it may think."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    """`provider/name` of the model that is asked; a small one does."""

    timeout_s: float = Field(default=20.0, gt=0)
    """Seconds after which the session keeps the title that it has. A program that ends waits no longer for it."""


async def _apply(ctx: Context, config: TitlesConfig) -> None:
    titler = Titler(ctx, ModelRef.parse(config.model), config.timeout_s)
    ctx.on(TurnStopping, titler.turn_stops)


plugin: Plugin[TitlesConfig] = Plugin("titles", _apply, config=ConfigParser(TitlesConfig), needs=(Agents,))
