"""Makes room in the windows of agents before their requests, and when a request was too large."""

from __future__ import annotations

from leadline.core.agent.agents import Agents
from leadline.core.agent.signals import GiveUp, RequestFailed, RequestPending, Retry
from leadline.core.config import ConfigParser
from leadline.core.ids import Ids
from leadline.core.llm.adapter import Models
from leadline.core.session.errors import refused_by_disk
from leadline.core.session.invariants import Invariants
from leadline.core.session.registry import EventTypes
from leadline.core.tools.registry import ToolRegistry
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.window.config import WindowConfig
from leadline.window.events import WINDOW_EVENTS
from leadline.window.invariants import guard_windows
from leadline.window.window import Window


async def _apply(ctx: Context, config: WindowConfig) -> None:
    ctx.get(EventTypes).register(ctx, *WINDOW_EVENTS)
    window = Window(ctx, config)

    async def pending(signal: RequestPending) -> None:
        try:
            await window.pending(signal)
        except Exception as error:
            if refused_by_disk(error):
                raise
            # A request that is larger than it could be is better than none.
            ctx.report(error, f"making room for {signal.agent.id}")

    async def failed(signal: RequestFailed) -> Retry | GiveUp | None:
        try:
            return await window.failed(signal)
        except Exception as error:
            if refused_by_disk(error):
                raise
            ctx.report(error, f"making room for {signal.agent.id}")
            return None

    ctx.on(RequestPending, pending)
    ctx.on(RequestFailed, failed)
    ctx.provide(Window, window)
    guard_windows(ctx)


plugin: Plugin[WindowConfig] = Plugin(
    "window",
    _apply,
    config=ConfigParser(WindowConfig),
    needs=(Agents, Models, ToolRegistry, EventTypes, Ids),
    wants=(Invariants,),
    provides=(Window,),
)
