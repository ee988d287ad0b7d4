"""One agent, many tool rounds, a model that answers at once: what the harness adds to each round."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Literal

import anyio

from bench.loopback import (
    PARAMETERS,
    QUESTION,
    ROUND,
    bare_calls,
    bare_rounds,
    found,
    gaps_ms,
    provider,
    slope_us,
    timings,
)
from leadline.capabilities.models import plugin as models
from leadline.core.agent.spec import AgentSpec, TurnBudget
from leadline.core.llm.request import ModelRef
from leadline.core.loop.config import LoopConfig
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import NO_EFFECT, Tool
from leadline.testing.agents import agent_stack

SHORT, LONG, RUNS = 200, 1_000, 5

Durability = Literal["written", "synced"]


async def _found(arguments: Mapping[str, str], _: ToolInvocation) -> str:
    return found(**arguments)


LOOK_UP = Tool(
    "look_up",
    "Looks something up.",
    PARAMETERS,
    _found,
    side_effects=NO_EFFECT,
)


async def agent_rounds(origin: str, rounds: int, durability: Durability = "written") -> None:
    """As many steps of one agent, everything mounted, the log on disk."""
    config = {
        "default": "bench/model",
        "providers": {"bench": {"profile": "local", "base_url": f"{origin}/v1"}},
    }
    loop = LoopConfig(durability=durability)
    with tempfile.TemporaryDirectory() as folder:
        async with agent_stack(
            Path(folder), loop=loop, models_plugin=(models.plugin, config), invariants=False
        ) as stack:
            stack.tools.register(stack.ctx, LOOK_UP)
            spec = AgentSpec(model=ModelRef("bench", "model"), budget=TurnBudget(max_steps=rounds))
            agent = await stack.agents.create(spec)
            agent.send(QUESTION)
            await agent.when_idle()
            assert agent.last_turn_end is not None
            assert agent.last_turn_end.reason == "budget", agent.last_turn_end


async def _synced(origin: str, rounds: int) -> None:
    await agent_rounds(origin, rounds, "synced")


Rounds = Callable[[str, int], Awaitable[None]]


def _gaps(client: Rounds, rounds: int) -> list[float]:
    with provider([ROUND]) as origin:
        anyio.run(client, origin, rounds)
        return gaps_ms(timings(origin))


def _typical(client: Rounds) -> float:
    """The median gap of the run that the machine disturbed least."""
    return min(statistics.median(_gaps(client, SHORT)) for _ in range(RUNS))


def measure() -> list[dict[str, object]]:
    """The rows of this bar."""
    bar = f"reply to next request, {SHORT} tool rounds"
    calls, least, written, synced = (
        _typical(client) for client in (bare_calls, bare_rounds, agent_rounds, _synced)
    )
    growth = min(abs(slope_us(_gaps(agent_rounds, LONG))) for _ in range(2))
    least_growth = min(abs(slope_us(_gaps(bare_rounds, LONG))) for _ in range(2))
    return [
        _row(f"{bar}, a loop of 30 lines over the calls alone", least, "ms", calls),
        _row(f"{bar}, written, over the calls alone", written, "ms", calls),
        _row(f"{bar}, written, over a loop of 30 lines", written, "ms", least),
        _row(f"{bar}, synced, over a loop of 30 lines", synced, "ms", least),
        _row(f"growth of a round over {LONG} rounds, over a loop of 30 lines", growth, "us", least_growth),
    ]


def _row(bar: str, value: float, unit: str, floor: float) -> dict[str, object]:
    return {
        "bar": bar,
        "value": value,
        "unit": unit,
        "floor": floor,
        "ratio": value / floor if floor > 0 else None,
    }


if __name__ == "__main__":
    for line in measure():
        print(line)
