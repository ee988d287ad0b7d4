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

from bench.agent_loop import LOOK_UP, Durability
from bench.loopback import QUESTION, ROUND, provider
from leadline.apps.cli.entry import collect_seldom
from leadline.capabilities.models import plugin as models
from leadline.core.agent.spec import AgentSpec, TurnBudget
from leadline.core.llm.request import ModelRef
from leadline.core.loop.config import LoopConfig
from leadline.testing.agents import agent_stack

AGENTS, ROUNDS, LATENCY_S = 100, 10, 0.05
WARM, RUNS = 3, 4


async def _agents(origin: str, count: int, durability: Durability) -> tuple[float, float, float]:
    """Seconds for all rounds of all agents, kB of memory that each agent added, seconds of CPU for one round."""
    config = {
        "default": "bench/model",
        "providers": {"bench": {"profile": "local", "base_url": f"{origin}/v1"}},
    }
    with tempfile.TemporaryDirectory() as folder:
        loop = LoopConfig(durability=durability)
        async with agent_stack(
            Path(folder), loop=loop, models_plugin=(models.plugin, config), invariants=False
        ) as stack:
            stack.tools.register(stack.ctx, LOOK_UP)
            spec = AgentSpec(model=ModelRef("bench", "model"), budget=TurnBudget(max_steps=ROUNDS))
            for _ in range(WARM):
                agent = await stack.agents.create(spec)
                agent.send(QUESTION)
                await agent.when_idle()
            before = _resident_kb()
            agents = [await stack.agents.create(spec) for _ in range(count)]
            began, cpu = time.monotonic(), time.process_time()
            for agent in agents:
                agent.send(QUESTION)
            for agent in agents:
                await agent.when_idle()
            took, used = time.monotonic() - began, time.process_time() - cpu
            gc.collect()
            return took, (_resident_kb() - before) / count, used / count / ROUNDS


async def _bare(origin: str, count: int) -> tuple[float, float, float]:
    """The same requests without agents: as `_agents`, the memory that of a task with its connection."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:

        async def one() -> None:
            for _ in range(ROUNDS):
                async with client.post(
                    f"{origin}/v1/chat/completions", data=b'{"stream":true,"messages":[]}'
                ) as reply:
                    async for _ in reply.content.iter_any():
                        pass

        await one()
        before = _resident_kb()
        began, cpu = time.monotonic(), time.process_time()
        async with anyio.create_task_group() as group:
            for _ in range(count):
                group.start_soon(one)
        took, used = time.monotonic() - began, time.process_time() - cpu
        gc.collect()
        return took, (_resident_kb() - before) / count, used / count / ROUNDS


def _resident_kb() -> float:
    with Path("/proc/self/status").open(encoding="utf-8") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return float(line.split()[1])


def in_own_process(*what: str) -> list[float]:
    """Run one measurement in a fresh process, so that memory of earlier ones does not count."""
    with provider([ROUND], latency_s=LATENCY_S) as origin:
        command = [sys.executable, "-m", "bench.many_agents", *what, origin]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def measure() -> list[dict[str, object]]:
    """The rows of this bar."""
    count = str(AGENTS)
    own = [in_own_process(count, "written") for _ in range(RUNS)]
    synced = min(in_own_process(count, "synced")[0] for _ in range(RUNS))
    bare = [in_own_process(count, "bare") for _ in range(RUNS)]
    floor, bare_memory = min(run[0] for run in bare), statistics.median(run[1] for run in bare)
    wall, memory = min(run[0] for run in own), statistics.median(run[1] for run in own)
    bar, ideal = f"{AGENTS} agents x {ROUNDS} rounds at {LATENCY_S * 1000:g} ms", ROUNDS * LATENCY_S
    return [
        _row(f"{bar}, the calls alone, over the latency", floor, "s", ideal),
        _row(f"{bar}, written, over the latency", wall, "s", ideal),
        _row(f"{bar}, written, over the calls alone", wall, "s", floor),
        _row(f"{bar}, synced, over the calls alone", synced, "s", floor),
        _row("memory of one agent, over that of a task with its connection", memory, "kB", bare_memory),
    ]


def _row(bar: str, value: float, unit: str, floor: float) -> dict[str, object]:
    return {"bar": bar, "value": value, "unit": unit, "floor": floor, "ratio": value / floor}


if __name__ == "__main__":
    collect_seldom()  # as the program does
    match sys.argv[1:]:
        case [count, "written" | "synced" as durability, origin]:
            print(*anyio.run(_agents, origin, int(count), durability))
        case [count, "bare", origin]:
            print(*anyio.run(_bare, origin, int(count)))
        case _:
            for row in measure():
                print(row)
