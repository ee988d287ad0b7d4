"""How the calls of one message run: what overlaps, what is ordered, what a cancellation leaves behind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from anyio import CancelScope, Event, create_task_group, sleep_forever, wait_all_tasks_blocked
from anyio.lowlevel import checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from leadline.core.llm.messages import ToolCall
from leadline.core.tools.flight import CallLog
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.outcome import Code, ToolOutcome
from leadline.core.tools.policy import AroundExecute, Deny, PostExecute, PreExecute
from leadline.core.tools.scheduler import run_calls
from leadline.core.tools.spec import Tool, ToolOutput
from leadline.testing.tool_bench import ToolBench, tool_bench

pytestmark = pytest.mark.anyio


class Flag(BaseModel):
    model_config = ConfigDict(extra="forbid")

    alone: bool = False


@dataclass
class Gates:
    """Bodies that wait until they are let go, and how many of them ran together."""

    started: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    most: int = 0
    running: int = 0
    gates: dict[str, Event] = field(default_factory=dict)

    def tool(self, name: str, **fields: object) -> Tool:
        self.gates[name] = Event()
        whole = {"parallel": True, "parameters": Flag, **fields}
        return Tool(name=name, description="Waits.", execute=self.body, **whole)  # type: ignore[arg-type]

    async def body(self, args: object, call: ToolInvocation) -> str:
        self.started.append(call.name)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.gates[call.name].wait()
        finally:
            self.running -= 1
            self.ended.append(call.name)
        return call.name

    async def open(self, *names: str) -> None:
        for name in names:
            self.gates[name].set()
            await wait_all_tasks_blocked()


@pytest.fixture
async def bench() -> AsyncIterator[ToolBench]:
    async with tool_bench(max_parallel=2) as made:
        yield made


@pytest.fixture
def gates() -> Gates:
    return Gates()


async def test_no_calls_give_no_outcomes(bench: ToolBench) -> None:
    assert list(await bench.run()) == []


async def test_only_bodies_overlap_and_a_later_result_waits_for_its_turn(
    bench: ToolBench, gates: Gates
) -> None:
    asked: list[str] = []

    async def policy(signal: PreExecute) -> None:
        asked.append(signal.call.name)

    bench.add(gates.tool("a"), gates.tool("b"))
    bench.ctx.on(PreExecute, policy)
    async with create_task_group() as group:
        group.start_soon(bench.run, "a", "b")
        await wait_all_tasks_blocked()
        assert (asked, gates.started) == (["a", "b"], ["a", "b"])
        await gates.open("b")
        assert bench.lines == ["call c1", "call c2"]
        await gates.open("a")
    assert bench.lines == ["call c1", "call c2", "result c1 ok", "result c2 ok"]


async def test_the_pool_rolls_and_never_holds_more_than_its_bound(bench: ToolBench, gates: Gates) -> None:
    bench.add(*(gates.tool(name) for name in "abcd"))
    async with create_task_group() as group:
        group.start_soon(bench.run, *"abcd")
        await wait_all_tasks_blocked()
        assert gates.started == ["a", "b"]
        await gates.open("b")
        assert gates.started == ["a", "b", "c"]
        await gates.open("a", "c", "d")
    assert gates.most == 2
    assert [line for line in bench.lines if line.startswith("result")] == [
        f"result c{n} ok" for n in (1, 2, 3, 4)
    ]


async def test_an_exclusive_call_runs_alone_and_holds_back_what_follows(
    bench: ToolBench, gates: Gates
) -> None:
    bench.add(gates.tool("a"), gates.tool("x", parallel=False), gates.tool("b"))
    async with create_task_group() as group:
        group.start_soon(bench.run, "a", "x", "b")
        await wait_all_tasks_blocked()
        assert (gates.started, bench.lines) == (["a"], ["call c1"])
        await gates.open("a")
        assert (gates.started, bench.lines) == (["a", "x"], ["call c1", "result c1 ok", "call c2"])
        await gates.open("x", "b")
    assert gates.most == 1


@pytest.mark.parametrize(
    "rule", [lambda args: 1, lambda args: "yes", lambda args: args.missing, lambda args: not args.alone]
)
async def test_only_the_value_true_lets_a_call_overlap(
    bench: ToolBench, gates: Gates, rule: Callable[..., bool]
) -> None:
    bench.add(gates.tool("a", parallel=rule))
    calls = [ToolCall("c1", "a", '{"alone": true}'), ToolCall("c2", "a", '{"alone": true}')]

    async def run() -> None:
        await run_calls(bench.pipeline, calls, bench.caller, bench.log)

    async with create_task_group() as group:
        group.start_soon(run)
        await wait_all_tasks_blocked()
        await gates.open("a")
    assert gates.most == 1
    assert gates.started == ["a", "a"]


async def test_a_rule_may_let_calls_overlap_by_their_arguments(bench: ToolBench, gates: Gates) -> None:
    bench.add(gates.tool("a", parallel=lambda args: args.alone is False))
    async with create_task_group() as group:
        group.start_soon(bench.run, "a", "a")
        await wait_all_tasks_blocked()
        await gates.open("a")
    assert gates.most == 2


async def test_a_registry_that_changes_between_siblings_makes_the_next_call_run_alone(
    bench: ToolBench, gates: Gates
) -> None:
    bench.add(gates.tool("a"))
    effect = bench.registry.register(bench.ctx, gates.tool("b"))

    async def swap(signal: PreExecute) -> None:
        if signal.call.name == "b":
            await effect.dispose()
            bench.add(gates.tool("b", parallel=False))

    bench.ctx.on(PreExecute, swap)
    async with create_task_group() as group:
        group.start_soon(bench.run, "a", "b")
        await wait_all_tasks_blocked()
        assert bench.lines == ["call c1", "call c2"]
        await gates.open("a")
    assert bench.lines[2:] == ["result c1 ok", f"result c2 {Code.UNKNOWN_TOOL}"]
    assert gates.most == 1


async def test_refused_calls_keep_their_place(bench: ToolBench, gates: Gates) -> None:
    async def policy(signal: PreExecute) -> Deny | None:
        return Deny("no") if signal.call.name == "b" else None

    bench.add(gates.tool("a"), gates.tool("b"))
    bench.ctx.on(PreExecute, policy)
    async with create_task_group() as group:
        group.start_soon(bench.run, "a", "b", "nowhere")
        await wait_all_tasks_blocked()
        await gates.open("a")
    assert [line for line in bench.lines if line.startswith("result")] == [
        "result c1 ok",
        "result c2 DENIED",
        "result c3 UNKNOWN_TOOL",
    ]


async def test_reviews_come_in_the_models_order(bench: ToolBench, gates: Gates) -> None:
    reviewed: list[str] = []

    async def review(signal: PostExecute, call_next: object) -> ToolOutput:
        reviewed.append(signal.call.name)
        return signal.output

    bench.add(gates.tool("a"), gates.tool("b"))
    bench.ctx.on(PostExecute, review)
    async with create_task_group() as group:
        group.start_soon(bench.run, "a", "b")
        await wait_all_tasks_blocked()
        await gates.open("b")
        assert reviewed == []
        await gates.open("a")
    assert reviewed == ["a", "b"]


# cancellation


async def cancelled(bench: ToolBench, *names: str, when: Callable[[], object] = lambda: None) -> None:
    async with create_task_group() as group:
        group.start_soon(bench.run, *names)
        await wait_all_tasks_blocked()
        when()
        group.cancel_scope.cancel()


async def test_a_cancellation_drains_what_runs_and_gives_every_call_its_pair(
    bench: ToolBench, gates: Gates
) -> None:
    bench.add(gates.tool("a"), gates.tool("b", parallel=False), gates.tool("c"))
    await cancelled(bench, "a", "b", "c")
    assert gates.ended == ["a"]
    assert bench.lines == [
        "call c1",
        f"result c1 {Code.ABORTED}",
        "call c2",
        f"result c2 {Code.ABORTED_BEFORE_DISPATCH}",
        "call c3",
        f"result c3 {Code.ABORTED_BEFORE_DISPATCH}",
    ]


async def test_a_body_that_cleans_up_is_awaited_before_its_result_is_written(bench: ToolBench) -> None:
    async def tidy(args: object, call: ToolInvocation) -> str:
        try:
            await sleep_forever()
        finally:
            with CancelScope(shield=True):
                await checkpoint()
            bench.lines.append("tidied")
        return ""

    bench.add(Tool("tidy", "T.", Flag, tidy))
    await cancelled(bench, "tidy")
    assert bench.lines == ["call c1", "tidied", f"result c1 {Code.ABORTED}"]


async def test_a_cancellation_replaces_a_success_and_never_a_specific_error(bench: ToolBench) -> None:
    async def stubborn(args: object, call: ToolInvocation) -> str:
        with CancelScope(shield=True):
            await released.wait()
        return "done after all"

    async def failing(args: object, call: ToolInvocation) -> str:
        try:
            await sleep_forever()
        finally:
            raise LookupError("lost it")

    released = Event()
    bench.add(
        Tool("stubborn", "S.", Flag, stubborn, parallel=True),
        Tool("failing", "F.", Flag, failing, parallel=True),
    )
    await cancelled(bench, "stubborn", "failing", when=released.set)
    assert [line for line in bench.lines if line.startswith("result")] == [
        f"result c1 {Code.ABORTED}",
        f"result c2 {Code.TOOL_FAILED}",
    ]


async def test_a_result_that_only_waited_for_its_turn_is_kept(bench: ToolBench, gates: Gates) -> None:
    bench.add(gates.tool("a"), gates.tool("b"))
    async with create_task_group() as group:
        group.start_soon(bench.run, "a", "b")
        await wait_all_tasks_blocked()
        await gates.open("b")
        group.cancel_scope.cancel()
    assert bench.lines[2:] == [f"result c1 {Code.ABORTED}", "result c2 ok"]


async def test_a_cancellation_while_a_policy_ponders_starts_nothing(bench: ToolBench, gates: Gates) -> None:
    async def ponder(signal: PreExecute) -> None:
        await sleep_forever()

    bench.add(gates.tool("a"))
    bench.ctx.on(PreExecute, ponder)
    await cancelled(bench, "a", "a")
    assert gates.started == []
    assert bench.lines == [
        line for n in (1, 2) for line in (f"call c{n}", f"result c{n} {Code.ABORTED_BEFORE_DISPATCH}")
    ]


async def test_a_caller_that_is_cancelled_already_runs_no_stage(bench: ToolBench, gates: Gates) -> None:
    asked: list[str] = []

    async def policy(signal: PreExecute) -> None:
        asked.append(signal.call.name)

    bench.add(gates.tool("a"))
    bench.ctx.on(PreExecute, policy)
    with CancelScope() as scope:
        scope.cancel()
        await bench.run("a")
    assert scope.cancelled_caught
    assert asked == []
    assert bench.lines == ["call c1", f"result c1 {Code.ABORTED_BEFORE_DISPATCH}"]


# failure of the log


def failing_log(bench: ToolBench, on: str) -> CallLog:
    def on_call(call: ToolCall) -> None:
        if on == f"call {call.id}":
            raise OSError("disk full")

    def on_result(call: ToolCall, outcome: ToolOutcome) -> None:
        if on == f"result {call.id}":
            raise OSError("disk full")
        bench.lines.append(f"result {call.id}")

    async def sync() -> None:
        if on == "sync":
            raise OSError("disk full")

    return CallLog(on_call, on_result, sync)


@pytest.mark.parametrize("on", ["call c2", "result c1", "sync"])
async def test_a_log_that_fails_ends_the_batch_after_draining_and_nothing_is_made_up(
    bench: ToolBench, gates: Gates, on: str
) -> None:
    bench.add(gates.tool("a"), gates.tool("b", side_effects=frozenset({"writes"})), gates.tool("c"))
    calls = [ToolCall(f"c{at}", name, "{}") for at, name in enumerate("abc", 1)]
    if on == "result c1":
        gates.gates["a"].set()
    with pytest.raises(OSError, match="disk full"):
        await run_calls(bench.pipeline, calls, bench.caller, failing_log(bench, on))
    assert gates.running == 0
    assert "b" not in gates.started or on == "result c1"
    assert bench.lines == []


async def test_a_log_that_fails_during_a_cancellation_is_reported_and_the_cancellation_goes_on(
    bench: ToolBench, gates: Gates
) -> None:
    bench.add(gates.tool("a"))
    async with create_task_group() as group:
        group.start_soon(
            run_calls,
            bench.pipeline,
            [ToolCall("c1", "a", "{}")],
            bench.caller,
            failing_log(bench, "result c1"),
        )
        await wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert any("disk full" in str(report.error) for report in bench.reports)


# order, in general


@given(
    kinds=st.lists(st.sampled_from(["parallel", "alone", "failing", "unknown"]), max_size=7),
    releases=st.randoms(use_true_random=False),
    cap=st.integers(1, 4),
)
@settings(max_examples=40, deadline=None)
def test_whatever_ends_first_the_log_has_every_pair_in_the_models_order(
    kinds: list[str], releases: object, cap: int
) -> None:
    import anyio

    async def scenario() -> None:
        running = 0

        async def body(args: object, call: ToolInvocation) -> str:
            nonlocal running
            running += 1
            assert running <= cap
            assert running == 1 or not call.name.startswith("alone")
            for _ in range(releases.randrange(6)):  # type: ignore[attr-defined]
                await checkpoint()
            running -= 1
            if call.name.startswith("failing"):
                raise ValueError("x")
            return call.name

        async with tool_bench(max_parallel=cap) as bench:
            names = [f"{kind}_{at}" for at, kind in enumerate(kinds)]
            for name in names:
                if not name.startswith("unknown"):
                    bench.add(Tool(name, "T.", Flag, body, parallel=not name.startswith("alone")))
            outcomes = await bench.run(*names)
            assert [outcome.name for outcome in outcomes] == names
            calls = [line for line in bench.lines if line.startswith("call")]
            results = [line.rsplit(" ", 1)[0] for line in bench.lines if line.startswith("result")]
            assert calls == [f"call c{at}" for at in range(1, len(names) + 1)]
            assert results == [f"result c{at}" for at in range(1, len(names) + 1)]

    anyio.run(scenario)


# what wrappers and reviewers that take their time must not change

Wrapped = Callable[[AroundExecute], Awaitable[ToolOutput]]
Reviewed = Callable[[PostExecute], Awaitable[ToolOutput]]


async def test_a_success_behind_a_shield_is_replaced_all_the_same(bench: ToolBench, gates: Gates) -> None:
    async def shield(signal: AroundExecute, call_next: Wrapped) -> ToolOutput:
        outputs: list[ToolOutput] = []
        with CancelScope(shield=True):
            outputs.append(await call_next(signal))
        return outputs[0]

    async def stubborn(args: object, call: ToolInvocation) -> str:
        with CancelScope(shield=True):
            await released.wait()
        return "done after all"

    released = Event()
    bench.add(Tool("stubborn", "S.", Flag, stubborn))
    bench.ctx.on(AroundExecute, shield)
    await cancelled(bench, "stubborn", when=released.set)
    assert bench.lines == ["call c1", f"result c1 {Code.ABORTED}"]


async def test_a_body_does_not_start_after_a_cancellation_that_a_wrapper_ignored(
    bench: ToolBench, gates: Gates
) -> None:
    async def linger(signal: AroundExecute, call_next: Wrapped) -> ToolOutput:
        outputs: list[ToolOutput] = []
        with CancelScope(shield=True):
            await released.wait()
            outputs.append(await call_next(signal))
        return outputs[0]

    released = Event()
    bench.add(gates.tool("a"))
    bench.ctx.on(AroundExecute, linger)
    await cancelled(bench, "a", when=released.set)
    assert gates.started == []
    assert bench.lines == ["call c1", f"result c1 {Code.ABORTED_BEFORE_DISPATCH}"]


async def test_a_call_is_classified_again_just_before_it_starts(bench: ToolBench, gates: Gates) -> None:
    overlap = True

    async def policy(signal: PreExecute) -> None:
        nonlocal overlap
        overlap = signal.call.name != "b"

    bench.add(gates.tool("a"), gates.tool("b", parallel=lambda args: overlap))
    bench.ctx.on(PreExecute, policy)
    async with create_task_group() as group:
        group.start_soon(bench.run, "a", "b")
        await wait_all_tasks_blocked()
        assert (bench.lines, gates.started) == (["call c1", "call c2"], ["a"])
        await gates.open("a", "b")
    assert gates.most == 1


async def test_a_slow_review_is_done_once_for_each_call(bench: ToolBench, gates: Gates) -> None:
    reviewed: list[str] = []

    async def review(signal: PostExecute, call_next: Reviewed) -> ToolOutput:
        reviewed.append(signal.call.call_id)
        for _ in range(5):
            await checkpoint()
        return await call_next(signal)

    bench.add(gates.tool("a"), gates.tool("b"))
    bench.ctx.on(PostExecute, review)
    gates.gates["a"].set()
    gates.gates["b"].set()
    await bench.run("a", "b")
    assert reviewed == ["c1", "c2"]
    assert [line for line in bench.lines if line.startswith("result")] == ["result c1 ok", "result c2 ok"]


async def test_a_result_that_waited_is_reviewed_though_the_turn_was_cancelled(
    bench: ToolBench, gates: Gates
) -> None:
    async def review(signal: PostExecute, call_next: Reviewed) -> ToolOutput:
        await checkpoint()
        return ToolOutput(None, f"reviewed {signal.call.name}")

    contents: list[str] = []
    log = CallLog(on_result=lambda call, outcome: contents.append(outcome.content))
    bench.add(gates.tool("a"), gates.tool("b"))
    bench.ctx.on(PostExecute, review)
    calls = [ToolCall("c1", "a", "{}"), ToolCall("c2", "b", "{}")]
    async with create_task_group() as group:
        group.start_soon(run_calls, bench.pipeline, calls, bench.caller, log)
        await wait_all_tasks_blocked()
        await gates.open("b")
        group.cancel_scope.cancel()
    assert "cancelled while it ran" in contents[0]
    assert contents[1] == "reviewed b"
