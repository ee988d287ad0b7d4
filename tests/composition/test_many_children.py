"""Children over a real provider: many in a row, several at once, and what is left of them afterwards."""

from __future__ import annotations

import gc
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from leadline.apps.sdk.app import Leadline, take_turn
from leadline.core.agent.agent import Agent
from leadline.core.agent.agents import Agents
from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.messages import AssistantMessage, ToolMessage
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.registry import ToolRegistry
from leadline.core.tools.spec import Tool
from leadline.orchestration.subagent.seam import SubagentRequest, SubagentResult, Subagents
from leadline.testing.provider_server import Behaviour, CallSpec, ProviderServer
from leadline.testing.provider_server.server import Received

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def running(home: Path, answer: Callable[[Received], Behaviour]) -> AsyncGenerator[Leadline]:
    async with (
        ProviderServer(answer, strict=True) as server,
        Leadline(profile="headless", model="local/m", base_url=server.base_url, home=home) as app,
    ):
        yield app


async def delegated(app: Leadline, parent: Agent, prompt: str) -> tuple[str, SubagentResult]:
    run = await app.ctx.get(Subagents).start(SubagentRequest(parent=parent, prompt=prompt))
    try:
        return run.session_id, await run.result()
    finally:
        await run.dispose()


@pytest.mark.case("A22")
async def test_two_hundred_children_in_a_row_leave_their_logs_and_nothing_else(home: Path) -> None:
    async with running(home, lambda request: Behaviour(text="x" * 20_000)) as app, app.open_agent() as parent:

        async def some(count: int) -> tuple[int, object]:
            for n in range(count):
                _, result = await delegated(app, parent, f"task {n}")
                assert result.stop_reason == "completed"
            gc.collect()
            return len(gc.get_objects()), app.ctx.kernel.snapshot()

        await some(10)
        objects, before = await some(10)
        objects_later, after = await some(180)
        assert after == before
        assert objects_later - objects < 180 * 20
        assert app.ctx.get(Agents).live == (parent,)
    assert len(list((home / "sessions").glob("*.jsonl"))) == 201


@pytest.mark.case("A22")
async def test_a_child_that_was_freed_is_revived_from_its_log(home: Path) -> None:
    def answer(request: Received) -> Behaviour:
        return Behaviour(text=f"answer {sum(message['role'] == 'user' for message in request.messages)}")

    async with running(home, answer) as app, app.open_agent() as parent:
        child_id, result = await delegated(app, parent, "first")
        assert (result.output, app.ctx.get(Agents).find(child_id)) == ("answer 1", None)
        child = await app.ctx.get(Agents).resume(child_id, AgentSpec(parent=parent))
        assert (await take_turn(child, "second")).text == "answer 2"
        assert (child.depth, child.session.header.parent) == (1, parent.id)
        await child.dispose()


@pytest.mark.case("A21")
async def test_five_children_of_one_message_all_run_beside_other_sessions(home: Path) -> None:
    def answer(request: Received) -> Behaviour:
        if any(message["role"] == "tool" for message in request.messages):
            return Behaviour(text="all done")
        if "child" in str(request.messages[1]["content"]):
            return Behaviour(text=str(request.messages[1]["content"]))
        return Behaviour(calls=tuple(CallSpec("delegate", {"n": n}) for n in range(5)))

    async with (
        running(home, answer) as app,
        running(home, lambda _: Behaviour(text="other")) as other,
        other.open_agent() as first,
        other.open_agent() as second,
    ):

        async def delegate(args: dict[str, int], call: ToolInvocation) -> str:
            parent = app.ctx.get(Agents).get(call.agent_id or "")
            return (await delegated(app, parent, f"child {args['n']}"))[1].output

        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        tool = Tool("delegate", "Delegates.", schema, delegate, parallel=True)
        app.ctx.get(ToolRegistry).register(app.ctx, tool)
        parent = await app.ctx.get(Agents).create(AgentSpec())
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(take_turn, first, "beside")
                group.start_soon(take_turn, second, "beside")
                group.start_soon(take_turn, parent, "go")
        conversation = parent.session.derived().conversation
        assert [m.content for m in conversation if isinstance(m, ToolMessage)] == [
            f"child {n}" for n in range(5)
        ]
        last = conversation[-1]
        assert isinstance(last, AssistantMessage)
        assert last.text == "all done"


@pytest.mark.case("A19")
@pytest.mark.parametrize("levels", [0, 1])
async def test_when_a_time_limit_around_an_agent_is_told_nobody_writes_any_more(
    home: Path, tmp_path: Path, levels: int
) -> None:
    out = tmp_path / "out.txt"

    async def write(args: dict[str, object], call: ToolInvocation) -> str:
        while True:
            with out.open("a") as file:
                file.write("x\n")
            await anyio.sleep(0.01)

    async with running(home, lambda _: Behaviour(calls=(CallSpec("write"),))) as app:
        tool = Tool("write", "Writes.", {"type": "object"}, write, side_effects=frozenset({"writes"}))
        app.ctx.get(ToolRegistry).register(app.ctx, tool)
        with anyio.move_on_after(0.3) as limit:
            async with app.open_agent() as agent:
                await (delegated(app, agent, "go") if levels else take_turn(agent, "go"))
        assert limit.cancelled_caught
        written = out.read_text()
        logs = {log: log.stat().st_size for log in (home / "sessions").glob("*.jsonl")}
        await anyio.sleep(0.1)
        assert (out.read_text(), len(app.ctx.get(Agents))) == (written, 0)
        assert written
        assert {log: log.stat().st_size for log in logs} == logs
