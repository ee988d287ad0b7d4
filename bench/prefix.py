"""What of the prompts was sent before, byte for byte: what the prompt caches of providers can use.

Two shares for an agent and for a run. *Kept*: of what a session sent, the part that its next request begins with where no
event of its log (another header, a changed window) says why it need not; the bar is all of it. *Reused*: of all bytes that
were sent, those that an earlier request to the same model began with; the first request of each conversation is new.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio

from bench.agent_loop import LOOK_UP, SHORT
from bench.loopback import CALL, QUESTION, bare_rounds
from leadline import Leadline
from leadline.capabilities.models import plugin as models
from leadline.core.agent.spec import AgentSpec, TurnBudget
from leadline.core.llm.request import ModelRef
from leadline.core.session.events import RequestHeader, RequestSent, WindowChanged
from leadline.core.session.log import Session
from leadline.core.session.store import SessionStore
from leadline.testing.agents import agent_stack
from leadline.testing.prefixes import kept, reuse
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.server import ProviderServer, Received
from leadline.testing.researcher import ScriptedResearcher, topics, write_corpus

UNITS, RECORDS = 3, 4
BREAKS = (RequestHeader.TYPE, WindowChanged.TYPE)


def _round(request: Received) -> Behaviour:
    call = CallSpec(str(CALL["name"]), {"query": f"the question of round {request.n}"})
    return Behaviour("tool_call_success", text="Looking this up. ", calls=(call,))


async def _agent() -> tuple[list[Sequence[bytes]], list[bytes]]:
    """What an agent of many rounds sent: between declared breaks, and all of it."""
    async with ProviderServer(_round) as server:
        config = {
            "default": "bench/model",
            "providers": {"bench": {"profile": "local", "base_url": server.base_url}},
        }
        with tempfile.TemporaryDirectory() as folder:
            async with agent_stack(
                Path(folder), models_plugin=(models.plugin, config), invariants=False
            ) as stack:
                stack.tools.register(stack.ctx, LOOK_UP)
                spec = AgentSpec(model=ModelRef("bench", "model"), budget=TurnBudget(max_steps=SHORT))
                agent = await stack.agents.create(spec)
                agent.send(QUESTION)
                await agent.when_idle()
                return _runs(agent.session, server), [request.raw for request in server.requests]


async def _research() -> tuple[list[Sequence[bytes]], list[bytes]]:
    """What the roles of a run sent: of each between declared breaks, and all of it."""
    found = topics(UNITS, sentences=RECORDS)
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder, "corpus"), found)
        researcher = ScriptedResearcher(found, at_once=1)
        async with ProviderServer(researcher) as server:
            home = Path(folder, "home")
            async with Leadline(model="local/model", base_url=server.base_url, home=home) as app:
                result = await app.research(
                    "What did the reservoirs hold?", corpus=[Path(folder, "corpus")], breadth="broad"
                )
                assert result.status == "completed", result.error
                store = app.ctx.get(SessionStore)
                sessions = [await store.read(one.id) for one in await store.list()]
                runs = [run for session in sessions for run in _runs(session, server)]
                return runs, [request.raw for request in server.requests]


async def _bare() -> list[bytes]:
    """What a loop of thirty lines sends."""
    async with ProviderServer(_round) as server:
        await bare_rounds(server.base_url.removesuffix("/v1"), SHORT)
        return [request.raw for request in server.requests]


def _runs(session: Session, server: ProviderServer) -> list[Sequence[bytes]]:
    """The bodies that a session sent, cut where an event says that the next one may begin otherwise."""
    raw = {hashlib.sha256(request.raw).hexdigest(): request.raw for request in server.requests}
    runs: list[list[bytes]] = [[]]
    for line in session.logged:
        if line.type in BREAKS:
            runs.append([])
        elif line.type == RequestSent.TYPE:
            runs[-1].append(raw[line.as_(RequestSent).digest])
    return [run for run in runs if run]


def measure() -> list[dict[str, object]]:
    """The rows of this bar."""
    floor = reuse(anyio.run(_bare)).share * 100
    rows: list[dict[str, object]] = []
    for what, work in (
        (f"an agent of {SHORT} rounds", _agent),
        (f"a run with {UNITS} units", _research),
    ):
        runs, bodies = anyio.run(work)
        weights = [sum(map(len, run[:-1])) for run in runs]
        share = sum(kept(run) * weight for run, weight in zip(runs, weights, strict=True)) / sum(weights)
        rows.append(_row(f"prompt kept by the next request, {what}, outside declared breaks", share * 100))
        beside = floor if work is _agent else None
        rows.append(_row(f"prompt that was sent before, {what}", reuse(bodies).share * 100, beside))
    return rows


def _row(bar: str, value: float, floor: float | None = None) -> dict[str, object]:
    ratio = value / floor if floor else None
    return {"bar": bar, "value": value, "unit": "%", "floor": floor, "ratio": ratio}


if __name__ == "__main__":
    for row in measure():
        print(row)
