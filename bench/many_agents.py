"""Many agents at once, each waiting for its model most of the time: wall time and memory of each."""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import anyio

from bench.agent_loop import LOOK_UP
from bench.loopback import QUESTION, ROUND, provider
from leadline.capabilities.models import plugin as models
from leadline.core.agent.spec import AgentSpec, TurnBudget
from leadline.core.llm.request import ModelRef
from leadline.testing.agents import agent_stack

AGENTS, ROUNDS, LATENCY_S = 100, 10, 0.05
WARM = 3


async def _agents(origin: str) -> tuple[float, float]:
    """Seconds for all rounds of all agents, and kB of memory that each agent added."""
    config = {
        "default": "bench/model",
        "providers": {"bench": {"profile": "local", "base_url": f"{origin}/v1"}},
    }
    with tempfile.TemporaryDirectory() as folder:
        async with agent_stack(Path(folder), models_plugin=(models.plugin, config)) as stack:
            stack.tools.register(stack.ctx, LOOK_UP)
            spec = AgentSpec(model=ModelRef("bench", "model"), budget=TurnBudget(max_steps=ROUNDS))
            for _ in range(WARM):
                agent = await stack.agents.create(spec)
                agent.send(QUESTION)
                await agent.when_idle()
            before = _resident_kb()
            agents = [await stack.agents.create(spec) for _ in range(AGENTS)]
            began = time.monotonic()
            for agent in agents:
                agent.send(QUESTION)
            for agent in agents:
                await agent.when_idle()
            took = time.monotonic() - began
            gc.collect()
            return took, (_resident_kb() - before) / AGENTS


async def _bare(origin: str) -> float:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:

        async def one() -> None:
            for _ in range(ROUNDS):
                async with client.post(
                    f"{origin}/v1/chat/completions", data=b'{"stream":true,"messages":[]}'
                ) as reply:
                    async for _ in reply.content.iter_any():
                        pass

        began = time.monotonic()
        async with anyio.create_task_group() as group:
            for _ in range(AGENTS):
                group.start_soon(one)
        return time.monotonic() - began


def _resident_kb() -> float:
    with Path("/proc/self/status").open(encoding="utf-8") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return float(line.split()[1])


def _in_own_process(what: str) -> list[float]:
    """Run one measurement in a fresh process, so that memory of earlier ones does not count."""
    with provider([ROUND], latency_s=LATENCY_S) as origin:
        command = [sys.executable, "-m", "bench.many_agents", what, origin]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def measure() -> list[dict[str, object]]:
    """The rows of this bar."""
    own = [_in_own_process("agents") for _ in range(3)]
    floor = min(_in_own_process("bare")[0] for _ in range(3))
    wall, memory = min(run[0] for run in own), statistics.median(run[1] for run in own)
    bar = f"{AGENTS} agents x {ROUNDS} rounds at {LATENCY_S * 1000:g} ms"
    return [
        {"bar": bar, "value": wall, "unit": "s", "floor": floor, "ratio": wall / floor},
        {"bar": "memory of one agent", "value": memory, "unit": "kB", "floor": None, "ratio": None},
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["agents"]:
        print(*anyio.run(_agents, sys.argv[2]))
    elif sys.argv[1:2] == ["bare"]:
        print(anyio.run(_bare, sys.argv[2]))
    else:
        for row in measure():
            print(row)
