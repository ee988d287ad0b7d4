"""Provides the driver that runs agents' turns."""

from __future__ import annotations

from leadline.core.agent.driver import Driver
from leadline.core.clock import Clock
from leadline.core.config import ConfigParser
from leadline.core.ids import Ids
from leadline.core.llm.adapter import Models
from leadline.core.loop.config import LoopConfig
from leadline.core.loop.driver import Loop
from leadline.core.loop.invariants import guard_requests
from leadline.core.prompt.sections import PromptSections
from leadline.core.session.invariants import Invariants
from leadline.core.spend.meter import Meter
from leadline.core.tools.pipeline import ToolPipeline
from leadline.core.tools.registry import ToolRegistry
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin


async def _apply(ctx: Context, config: LoopConfig) -> None:
    ctx.provide(Driver, Loop(ctx, config))
    guard_requests(ctx)


plugin: Plugin[LoopConfig] = Plugin(
    "loop",
    _apply,
    config=ConfigParser(LoopConfig),
    needs=(Clock, Ids, Models, ToolRegistry, ToolPipeline, PromptSections, Meter),
    wants=(Invariants,),
    provides=(Driver,),
)
