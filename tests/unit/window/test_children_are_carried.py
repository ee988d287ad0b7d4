"""An agent whose conversation is summarised is told which of its children still work."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from leadline.core.agent.spec import AgentSpec
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import Tool
from leadline.orchestration.subagent import plugin as subagents
from leadline.testing.long_work import LongWork, long_work, text_of
from leadline.testing.scripted import Call
from leadline.window.config import PruneConfig, WindowConfig

pytestmark = pytest.mark.anyio


async def test_live_children_are_told_from_the_state_of_the_program(tmp_path: Path) -> None:
    work = LongWork(40)
    config = WindowConfig(prune=PruneConfig(enabled=False))
    async with long_work(tmp_path, work, config, plugins=[subagents.plugin]) as desk:
        begun = anyio.Event()

        async def slow(args: object, call: ToolInvocation) -> str:
            begun.set()
            await anyio.sleep_forever()
            return ""

        desk.stack.tools.register(desk.stack.ctx, Tool("slow", "Takes long.", {"type": "object"}, slow))
        child = await desk.stack.agents.create(AgentSpec(parent=desk.agent, label="tide table"))
        await desk.stack.agents.create(AgentSpec(label="somebody else's"))
        work.first = lambda request: Call("slow") if request.session == child.id else None
        child.send("Fetch the tide table.")
        await begun.wait()
        await desk.ask()
        first = text_of(work.own[-1].conversation[0])
        assert f"- tide table (session {child.id}): at work" in first
        assert "somebody else's" not in first
        await child.dispose()
