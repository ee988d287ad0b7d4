"""Agents before a model that has limits, over real HTTP: what the provider sees of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from leadline.capabilities.models import plugin as models
from leadline.core.agent.agent import Agent
from leadline.core.agent.signals import CallWaiting
from leadline.core.agent.spec import AgentSpec, TurnBudget
from leadline.core.llm.request import ModelRef
from leadline.core.session.events import TurnEnd
from leadline.core.spend.limiter import Limiter
from leadline.core.spend.limiter_config import LimiterConfig
from leadline.testing.agents import AgentStack, agent_stack
from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.limits import ServerLimits
from leadline.testing.provider_server.script import Script
from leadline.testing.provider_server.server import ProviderServer

pytestmark = pytest.mark.anyio

MODEL = ModelRef("bench", "model")


@asynccontextmanager
async def served(
    folder: Path, limits: ServerLimits, config: LimiterConfig, latency_s: float = 0.02
) -> AsyncGenerator[tuple[ProviderServer, AgentStack]]:
    script = Script([Behaviour("success", text="Nine fathoms.")], repeat=True)
    async with ProviderServer(script, latency_s=latency_s, limits=limits) as server:
        provider = {"profile": "local", "base_url": server.base_url, "api_key": "k"}
        plugin = (models.plugin, {"default": str(MODEL), "providers": {"bench": provider}})
        async with agent_stack(folder, models_plugin=plugin, limiter=config) as stack:
            yield server, stack


async def _asked(stack: AgentStack, count: int) -> list[Agent]:
    """So many agents, all asked at once, and all idle again."""
    agents = [
        await stack.agents.create(AgentSpec(model=MODEL, budget=TurnBudget(max_steps=3)))
        for _ in range(count)
    ]
    for number, agent in enumerate(agents):
        agent.send(f"How deep is it at mark {number}?")
    with anyio.fail_after(60):
        for agent in agents:
            await agent.when_idle()
    return agents


def _reasons(agents: list[Agent]) -> set[str]:
    ends = [event for agent in agents for event in agent.session.of(TurnEnd)]
    return {end.reason for end in ends}


@pytest.mark.parametrize("most", [1, 3])
async def test_agents_never_have_more_calls_under_way_than_may(tmp_path: Path, most: int) -> None:
    config = LimiterConfig.model_validate({"limits": [{"model": str(MODEL), "max": most}]})
    async with served(tmp_path, ServerLimits(concurrent=most, headers="none"), config) as (server, stack):
        told: set[str] = set()
        stack.ctx.on(CallWaiting, lambda signal: told.add(signal.waiting.why))
        agents = await _asked(stack, 8)
        assert _reasons(agents) == {"completed"}
        seen = server.line("model")
        assert (seen.admitted, seen.refused, seen.peak) == (8, 0, most)
        assert told == {"slots"}
        assert stack.ctx.get(Limiter).lines() == ()


async def test_a_provider_that_refuses_is_left_alone_by_everybody_for_as_long_as_it_asks(
    tmp_path: Path,
) -> None:
    limits = ServerLimits(requests=4, per_s=1.0, headers="none")
    async with served(tmp_path, limits, LimiterConfig()) as (server, stack):
        agents = await _asked(stack, 10)
        assert _reasons(agents) == {"completed"}
        seen = server.line("model")
        assert seen.admitted == 10
        assert seen.early == 0
        assert seen.most_requests <= 4
        (line,) = stack.ctx.get(Limiter).lines()
        assert line.ceiling is not None, "what was refused is remembered"


async def test_what_a_provider_says_is_left_is_kept_to_without_a_refusal(tmp_path: Path) -> None:
    limits = ServerLimits(requests=3, per_s=1.0, headers="openai")
    async with served(tmp_path, limits, LimiterConfig()) as (server, stack):
        await _asked(stack, 1)
        (line,) = stack.ctx.get(Limiter).lines()
        assert line.learned is not None
        assert line.learned.requests is not None
        assert line.learned.requests.limit == 3
        told: list[str] = []
        stack.ctx.on(CallWaiting, lambda signal: told.append(signal.waiting.why))
        agents = await _asked(stack, 6)
        assert _reasons(agents) == {"completed"}
        assert told[:4] == ["requests"] * 4, "two were left, and nobody had to be refused to learn that"
        seen = server.line("model")
        # The server counts by a window that slides, so that not all of it is free again at the reset.
        assert (seen.admitted, seen.refused <= 2) == (7, True)


async def test_what_the_head_of_a_response_says_is_in_no_log(tmp_path: Path) -> None:
    async with served(tmp_path, ServerLimits(requests=50, headers="openai"), LimiterConfig()) as (_, stack):
        (agent,) = await _asked(stack, 1)
        assert not any(b"resets_in_s" in bytes(logged.data) for logged in agent.session.since(0))
