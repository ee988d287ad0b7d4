"""Provides delegation, with the driver that runs children in this process."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from leadline.core.agent.agents import Agents
from leadline.core.config import ConfigParser
from leadline.core.prompt.sections import PromptSections
from leadline.core.session.invariants import Invariants
from leadline.core.tools.registry import ToolRegistry
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.orchestration.subagent.carried import live_children
from leadline.orchestration.subagent.in_process import InProcess
from leadline.orchestration.subagent.invariants import guard_children
from leadline.orchestration.subagent.registry import SubagentDrivers
from leadline.orchestration.subagent.seam import Subagents
from leadline.window.carry import Carry


class SubagentConfig(BaseModel):
    """How children are started."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    start_timeout_s: float = Field(default=30.0, gt=0)
    """Seconds that a child's session and setup may take."""


async def _apply(ctx: Context, config: SubagentConfig) -> None:
    subagents = SubagentDrivers()
    subagents.register(ctx, InProcess(ctx, start_timeout_s=config.start_timeout_s))
    ctx.provide(Subagents, subagents)

    async def children(signal: Carry) -> str | None:
        return live_children(ctx.get(Agents), signal)

    ctx.on(Carry, children)
    guard_children(ctx)


plugin: Plugin[SubagentConfig] = Plugin(
    "subagents",
    _apply,
    config=ConfigParser(SubagentConfig),
    needs=(Agents, ToolRegistry, PromptSections),
    wants=(Invariants,),
    provides=(Subagents,),
)
