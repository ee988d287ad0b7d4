"""Everything an agent needs, mounted as in production on a folder of the test's own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from leadline.capabilities.persistence import plugin as persistence
from leadline.core import home
from leadline.core.agent import plugin as agent_plugin
from leadline.core.agent.agents import Agents
from leadline.core.clock import Clock
from leadline.core.ids import Ids
from leadline.core.llm.adapter import LlmAdapter
from leadline.core.loop import plugin as loop_plugin
from leadline.core.loop.config import LoopConfig
from leadline.core.prompt import plugin as prompt_plugin
from leadline.core.prompt.sections import PromptSections
from leadline.core.session import registry, rules
from leadline.core.session.store import SessionStore
from leadline.core.spend import limiter as limiter_plugin
from leadline.core.spend import meter as meter_plugin
from leadline.core.spend.limiter import LimiterConfig
from leadline.core.spend.meter import MeterConfig
from leadline.core.tools import plugin as tools_plugin
from leadline.core.tools.registry import ToolRegistry
from leadline.kernel.context import Context, Kernel
from leadline.kernel.fiber import Fiber
from leadline.kernel.plugin import Mountable, Plugin
from leadline.testing.scripted import models_of


@dataclass(frozen=True)
class AgentStack:
    """The mounted services, by their usual names."""

    kernel: Kernel
    ctx: Context
    agents: Agents
    sessions: SessionStore
    tools: ToolRegistry
    prompt: PromptSections
    loop: Fiber
    """The fiber of the loop's plugin."""


@asynccontextmanager
async def agent_stack(
    folder: Path,
    *adapters: LlmAdapter,
    loop: LoopConfig | None = None,
    limiter: LimiterConfig | None = None,
    meter: MeterConfig | None = None,
    clock_service: Clock | None = None,
    ids_service: Ids | None = None,
    models_plugin: tuple[Mountable, object] | None = None,
    plugins: Sequence[Mountable] = (),
    invariants: bool = True,
) -> AsyncGenerator[AgentStack]:
    """Mount it all, `plugins` last; what is mounted is gone when the block is left.

    `adapters` are the models, the first scripted one the default; `models_plugin`, a plugin and its
    configuration, takes their place where real providers are wanted. `invariants`: whether everything that
    runs is held to them.

    Raises:
        AssertionError: a plugin did not become active.
    """

    async def own_services(ctx: Context, config: None) -> None:
        ctx.provide(Clock, clock_service or Clock())
        ctx.provide(Ids, ids_service or Ids())

    services: Plugin[None] = Plugin("own-services", own_services, provides=(Clock, Ids))
    async with Kernel() as kernel:
        root = kernel.root
        fibers = [
            await root.mount(services),
            await root.mount(home.plugin, {"path": str(folder)}),
            await root.mount(registry.plugin),
            await root.mount(persistence.plugin),
            await root.mount(rules.plugin, {"enabled": invariants}),
            await root.mount(*(models_plugin or (models_of(*adapters), None))),
            await root.mount(tools_plugin.plugin),
            await root.mount(prompt_plugin.plugin, {"identity": False}),
            await root.mount(limiter_plugin.plugin, limiter or LimiterConfig()),
            await root.mount(meter_plugin.plugin, meter or MeterConfig()),
            await root.mount(loop_plugin.plugin, loop or LoopConfig()),
            await root.mount(agent_plugin.plugin),
        ]
        fibers += [await root.mount(plugin) for plugin in plugins]
        await root.settled()
        assert not root.diagnose(), "\n".join(map(str, root.diagnose()))
        yield AgentStack(
            kernel,
            root,
            root.get(Agents),
            root.get(SessionStore),
            root.get(ToolRegistry),
            root.get(PromptSections),
            next(fiber for fiber in fibers if fiber.id == "loop"),
        )
