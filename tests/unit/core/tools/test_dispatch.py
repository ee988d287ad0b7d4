"""Bodies that run in their caller's own task, as they do where nothing is wrapped around them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from anyio import create_task_group, get_cancelled_exc_class, wait_all_tasks_blocked

from leadline.core.llm.messages import ToolCall
from leadline.core.tools.flight import CallLog
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.outcome import Code
from leadline.core.tools.policy import PostExecute
from leadline.core.tools.scheduler import run_calls
from leadline.core.tools.spec import Tool, ToolOutput
from leadline.testing.tool_bench import ToolBench, tool_bench

pytestmark = pytest.mark.anyio

NOTHING = {"type": "object", "properties": {"tags": {"type": "array"}}}


@pytest.fixture
async def bench() -> AsyncIterator[ToolBench]:
    async with tool_bench() as made:
        yield made


async def test_a_body_that_waits_for_something_cancelled_ends_its_own_call_alone(bench: ToolBench) -> None:
    async def body(args: object, call: ToolInvocation) -> str:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future
        return "never"

    bench.add(Tool("wait", "W.", NOTHING, body), Tool("next", "N.", NOTHING, answer))
    outcomes = await bench.run("wait")
    assert [outcome.error_code for outcome in outcomes] == [Code.ABORTED]
    assert bench.lines == ["call c1", f"result c1 {Code.ABORTED}"]
    assert [outcome.content for outcome in await bench.run("next")] == ["[]"]


async def answer(args: dict[str, list[str]], call: ToolInvocation) -> ToolOutput:
    return ToolOutput(list(args.get("tags", [])))


async def test_a_body_that_swallows_a_cancellation_gets_its_call_ended_all_the_same(bench: ToolBench) -> None:
    reviewed: list[str] = []

    async def stubborn(args: object, call: ToolInvocation) -> str:
        try:
            await asyncio.get_running_loop().create_future()
        except get_cancelled_exc_class():
            return "done after all"
        return "never"

    async def review(signal: PostExecute, call_next: object) -> ToolOutput:
        reviewed.append(signal.call.call_id)
        return signal.output

    bench.add(Tool("stubborn", "S.", NOTHING, stubborn))
    bench.ctx.on(PostExecute, review)
    async with create_task_group() as group:
        group.start_soon(bench.run, "stubborn")
        await wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert bench.lines == ["call c1", f"result c1 {Code.ABORTED}"]
    assert reviewed == []


async def test_each_attempt_gets_arguments_of_its_own(bench: ToolBench) -> None:
    seen: list[list[object]] = []

    async def spoiling(args: dict[str, list[object]], call: ToolInvocation) -> str:
        seen.append(list(args["tags"]))
        args["tags"].append("spoilt")
        if len(seen) < 3:
            raise ValueError("again")
        return "done"

    bench.add(Tool("spoil", "S.", NOTHING, spoiling, attempts=3))
    calls = [ToolCall("c1", "spoil", '{"tags":["a"]}')]
    outcomes = await run_calls(bench.pipeline, calls, bench.caller, CallLog())
    assert [outcome.content for outcome in outcomes] == ["done"]
    assert seen == [["a"]] * 3
