"""Provides the agents of this process."""

from __future__ import annotations

from leadline.core.agent.agents import Agents
from leadline.core.agent.driver import Driver
from leadline.core.agent.invariants import guard_agents
from leadline.core.clock import Clock
from leadline.core.ids import Ids
from leadline.core.llm.adapter import Models
from leadline.core.prompt.sections import PromptSections
from leadline.core.session.invariants import Invariants
from leadline.core.session.store import SessionStore
from leadline.core.tools.registry import ToolRegistry
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin


async def _apply(ctx: Context, config: None) -> None:
    agents = Agents(ctx)
    ctx.provide(Agents, agents)
    guard_agents(ctx, agents)
    ctx.defer("live agents", agents.dispose_all)


plugin: Plugin[None] = Plugin(
    "agents",
    _apply,
    needs=(Clock, Ids, Models, Driver, SessionStore, ToolRegistry, PromptSections),
    wants=(Invariants,),
    provides=(Agents,),
)
