"""One agent, many tool rounds, a model that answers at once: what the harness adds to each round."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path

import anyio

from bench.loopback import (
    PARAMETERS,
    QUESTION,
    ROUND,
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
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import NO_EFFECT, Tool
from leadline.testing.agents import agent_stack

SHORT, LONG, RUNS = 200, 1_000, 3


async def _found(arguments: Mapping[str, str], _: ToolInvocation) -> str:
    return found(**arguments)


LOOK_UP = Tool(
    "look_up",
    "Looks something up.",
    PARAMETERS,
    _found,
    side_effects=NO_EFFECT,
)


async def agent_rounds(origin: str, rounds: int) -> None:
    """As many steps of one agent, everything mounted, the log on disk."""
    config = {
        "default": "bench/model",
        "providers": {"bench": {"profile": "local", "base_url": f"{origin}/v1"}},
    }
    with tempfile.TemporaryDirectory() as folder:
        async with agent_stack(Path(folder), models_plugin=(models.plugin, config)) as stack:
            stack.tools.register(stack.ctx, LOOK_UP)
            spec = AgentSpec(model=ModelRef("bench", "model"), budget=TurnBudget(max_steps=rounds))
            agent = await stack.agents.create(spec)
            agent.send(QUESTION)
            await agent.when_idle()
            assert agent.last_turn_end is not None
            assert agent.last_turn_end.reason == "budget", agent.last_turn_end


def _gaps(bare: bool, rounds: int) -> list[float]:
    with provider([ROUND]) as origin:
        anyio.run(bare_rounds if bare else agent_rounds, origin, rounds)
        return gaps_ms(timings(origin))


def measure() -> list[dict[str, object]]:
    """The rows of this bar."""
    own = min((_gaps(False, SHORT) for _ in range(RUNS)), key=statistics.median)
    floor = statistics.median(min((_gaps(True, SHORT) for _ in range(RUNS)), key=statistics.median))
    median = statistics.median(own)
    rows: list[dict[str, object]] = [
        _row(f"reply to next request, {SHORT} tool rounds, median", median, "ms", floor)
    ]
    own_slope = min(slope_us(_gaps(False, LONG)) for _ in range(2))
    floor_slope = min(slope_us(_gaps(True, LONG)) for _ in range(2))
    rows.append(_row(f"growth of a round over {LONG} rounds", own_slope, "us", floor_slope))
    return rows


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
