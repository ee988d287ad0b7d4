"""Law 9: whoever starts work awaits its end; after cancel returns, no file grows, no request arrives, no task is left."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from leadline import Leadline
from leadline.core.agent.agents import Agents
from leadline.core.agent.spec import AgentSpec
from leadline.core.tools.function import tool_from_function
from leadline.core.tools.registry import ToolRegistry
from leadline.orchestration.subagent.seam import SubagentRequest, Subagents
from leadline.research.engine.engine import ResearchEngine
from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import ProviderServer, Received
from tests.composition.conftest import FakeResearcher, call
from tests.laws.conftest import QUESTION, events, logs, running, written

pytestmark = pytest.mark.anyio

Responder = Callable[[Received], Behaviour]


def tasks() -> Counter[str]:
    """The tasks of the event loop, by name."""
    return Counter(str(task.name) for task in anyio.get_running_tasks())


async def settle() -> None:
    """Let everything run that could, for as long as a write or a request would take."""
    for _ in range(3):
        await anyio.wait_all_tasks_blocked()
        await anyio.sleep(0.02)


def stalling_at(answers: Responder, number: int, reached: anyio.Event) -> Responder:
    """The answers up to a request that is never answered to its end."""

    def answer(request: Received) -> Behaviour:
        if request.n < number:
            return answers(request)
        if request.n == number:
            reached.set()
        return Behaviour("stall", text="half a sentence")

    return answer


@pytest.mark.parametrize("number", range(8))
async def test_after_a_run_was_cancelled_nothing_of_it_goes_on(
    home: Path, corpus: Path, researcher: FakeResearcher, number: int
) -> None:
    researcher.units = 2
    reached = anyio.Event()
    async with running(stalling_at(researcher, number, reached)) as (app, server):
        before = tasks()
        run = await app.start_research(QUESTION, corpus=[corpus], breadth="balanced")
        await reached.wait()
        await run.cancel("enough")
        files, requests = written(home), len(server.requests)
        await settle()
        assert written(home) == files
        assert len(server.requests) == requests
        assert (await run.result()).status == "cancelled"
        await app.ctx.get(ResearchEngine).dispose(run)
        files = written(home)
        await settle()
        assert written(home) == files
        assert len(server.requests) == requests
        assert app.ctx.get(Agents).live == ()
        assert leftovers(before) == []
    for path in logs(home).values():
        kinds = [one["type"] for one in events(path)]
        assert kinds.count("turn/start") == kinds.count("turn/end")


def leftovers(before: Counter[str]) -> list[str]:
    """Tasks that were not there before, those of the server's connections left out."""
    return [name for name in (tasks() - before).elements() if "Connection" not in name]


@pytest.mark.parametrize("ending", ["cancel", "dispose"])
async def test_an_agent_that_is_stopped_ends_its_tools_and_its_children_first(
    home: Path, ending: str
) -> None:
    """The tool goes on writing until it is stopped; so does the child that waits for its model."""
    target = home.parent / "ticks"
    started = anyio.Event()

    async def tick() -> str:
        """Write for ever."""
        with target.open("a") as file:
            while True:
                file.write("tick\n")
                file.flush()
                started.set()
                await anyio.sleep(0.001)

    def answer(request: Received) -> Behaviour:
        return Behaviour("stall") if "child" in str(request.messages[-1]["content"]) else call("tick", {})

    async with running(answer) as (app, server):
        app.ctx.get(ToolRegistry).register(app.ctx, tool_from_function(tick))
        before = tasks()
        agent = await app.ctx.get(Agents).create(AgentSpec())
        agent.followup("go")
        child = await app.ctx.get(Subagents).start(SubagentRequest(parent=agent, prompt="be a child"))
        await started.wait()
        while len(server.requests) < 2:  # noqa: ASYNC110 - the server has no event to wait for
            await anyio.sleep(0.001)
        if ending == "cancel":
            await child.cancel("enough")
            await agent.cancel()
        else:
            await agent.dispose()
        files, ticks, requests = written(home), target.read_bytes(), len(server.requests)
        await settle()
        assert (written(home), target.read_bytes(), len(server.requests)) == (files, ticks, requests)
        assert (await child.result()).stop_reason == "aborted"
        await agent.dispose()
        assert app.ctx.get(Agents).live == ()
        assert leftovers(before) == []


async def test_leaving_the_program_in_mid_run_waits_for_its_end(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    reached = anyio.Event()
    before = tasks()
    async with ProviderServer(stalling_at(researcher, 2, reached), strict=True) as server:
        async with Leadline(model="local/fake", base_url=server.base_url) as app:
            run = await app.start_research(QUESTION, corpus=[corpus])
            await reached.wait()
        files, requests = written(home), len(server.requests)
        await settle()
        assert (written(home), len(server.requests)) == (files, requests)
        assert leftovers(before) == []
    assert events(logs(home)[run.id])[-1]["type"] == "research/ended"


@pytest.mark.parametrize("what", ["research", "agent"])
async def test_cancelling_whoever_awaits_the_work_cancels_the_work(
    home: Path, corpus: Path, researcher: FakeResearcher, what: str
) -> None:
    reached = anyio.Event()
    number = 3 if what == "research" else 0
    async with running(stalling_at(researcher, number, reached)) as (app, server):
        before = tasks()
        async with anyio.create_task_group() as group:
            if what == "research":
                group.start_soon(lambda: app.research(QUESTION, corpus=[corpus]))
            else:
                group.start_soon(app.agent, "go")
            await reached.wait()
            group.cancel_scope.cancel()
        files, requests = written(home), len(server.requests)
        await settle()
        assert (written(home), len(server.requests)) == (files, requests)
        assert app.ctx.get(ResearchEngine).runs == ()
        assert app.ctx.get(Agents).live == ()
        assert leftovers(before) == []


async def test_a_signal_ends_the_command_with_everything_closed(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    reached = anyio.Event()
    async with ProviderServer(stalling_at(researcher, 3, reached), strict=True) as server:
        script = "from leadline.apps.cli.entry import main; main()"
        options = ["--corpus", str(corpus), "--model", "local/fake", "--base-url", server.base_url, "--json"]
        async with await anyio.open_process(
            [sys.executable, "-c", script, "research", QUESTION, *options]
        ) as process:
            with anyio.fail_after(60):
                await reached.wait()
                process.send_signal(signal.SIGINT)
                assert await process.wait() == 130
        requests = len(server.requests)
        await settle()
        assert len(server.requests) == requests
        assert server.connections == 0
    run = next(
        path for path in logs(home).values() if any(it["type"] == "research/started" for it in events(path))
    )
    assert events(run)[-1]["data"]["status"] == "cancelled"
    for path in logs(home).values():
        kinds = [one["type"] for one in events(path)]
        assert kinds.count("turn/start") == kinds.count("turn/end")
