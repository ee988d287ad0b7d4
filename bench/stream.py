"""A long answer: what one streamed chunk costs from the socket to the log and to whoever looks on.

The whole path: HTTP, server-sent events, decoding, the filter for calls that leak into text, adding up, the chunks of the
log, the signal to a viewer. Both figures are CPU time of the client, which other work on the machine moves less than
wall time; each run has the floor beside it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import anyio

from bench.agent_loop import LOOK_UP
from bench.loopback import QUESTION, provider
from leadline.capabilities.models import plugin as models
from leadline.core.agent.signals import Streamed
from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.request import ModelRef
from leadline.core.llm.stream import TextDelta
from leadline.core.session.events import AssistantSaid
from leadline.testing.agents import agent_stack

CHUNKS, CHUNK_CHARS, RUNS = 20_000, 5, 5
ANSWER = "".join(f"w{n % 1000:03} " for n in range(CHUNKS))
assert len(ANSWER) == CHUNKS * CHUNK_CHARS


async def _agent(origin: str) -> float:
    """Microseconds of CPU for a chunk, with a viewer."""
    config = {
        "default": "bench/model",
        "providers": {"bench": {"profile": "local", "base_url": f"{origin}/v1"}},
    }
    with tempfile.TemporaryDirectory() as folder:
        async with agent_stack(
            Path(folder), models_plugin=(models.plugin, config), invariants=False
        ) as stack:
            stack.tools.register(stack.ctx, LOOK_UP)
            shown: list[str] = []

            def look(signal: Streamed) -> None:
                if isinstance(signal.event, TextDelta):
                    shown.append(signal.event.text)

            stack.ctx.on(Streamed, look)
            agent = await stack.agents.create(AgentSpec(model=ModelRef("bench", "model")))
            agent.send(QUESTION)
            began = time.process_time()
            await agent.when_idle()
            used = time.process_time() - began
            (said,) = agent.session.of(AssistantSaid)
            assert "".join(shown) == said.message.text == ANSWER
            return used / CHUNKS * 1e6


async def _bare(origin: str) -> float:
    """The same for a client that decodes each line and adds up the text."""
    text: list[str] = []
    async with aiohttp.ClientSession() as client:
        began = time.process_time()
        body = b'{"stream":true,"messages":[]}'
        async with client.post(f"{origin}/v1/chat/completions", data=body) as reply:
            async for line in reply.content:
                data = line.removeprefix(b"data: ").strip()
                if not data or data == b"[DONE]":
                    continue
                for choice in json.loads(data)["choices"]:
                    text.append(choice["delta"].get("content") or "")
        used = time.process_time() - began
    assert "".join(text) == ANSWER
    return used / CHUNKS * 1e6


def _in_own_process(what: str) -> float:
    with provider([{"text": ANSWER, "chunk_chars": CHUNK_CHARS}]) as origin:
        command = [sys.executable, "-m", "bench.stream", what, origin]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure() -> list[dict[str, object]]:
    """The row of this bar."""
    floors, own = list[float](), list[float]()
    for _ in range(RUNS):
        floors.append(_in_own_process("bare"))
        own.append(_in_own_process("agent"))
    value, floor = min(own), min(floors)
    bar = f"CPU of a streamed chunk, {CHUNKS} of them, over a bare client that decodes them"
    return [{"bar": bar, "value": value, "unit": "us", "floor": floor, "ratio": value / floor}]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["agent", origin]:
            print(anyio.run(_agent, origin))
        case ["bare", origin]:
            print(anyio.run(_bare, origin))
        case _:
            for row in measure():
                print(row)
