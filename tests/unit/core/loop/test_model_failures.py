"""Answers that fail, are cut, are empty or are stopped: nothing of them is executed or remembered wrongly."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from leadline.core.agent.agent import Agent
from leadline.core.agent.signals import AttemptReset, RequestFailed, Retry, Streamed
from leadline.core.agent.spec import AgentSpec, CallOptions
from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.messages import AssistantMessage, Text, UserMessage
from leadline.core.llm.stream import TextDelta
from leadline.core.llm.usage import Usage
from leadline.core.loop.config import LoopConfig, RetryConfig
from leadline.core.session.events import (
    AssistantChunk,
    AssistantSaid,
    LlmRetry,
    RequestEnded,
    RequestSent,
    StepStart,
    ToolAnswered,
    ToolCalled,
)
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import Tool
from leadline.testing.agents import AgentStack, agent_stack
from leadline.testing.clock import ManualClock
from leadline.testing.scripted import Call, Reply, ScriptedModel

pytestmark = pytest.mark.anyio

BUSY = Wait("OVERLOADED", "busy")
DENIED = Stop("AUTH", "the key is not valid")
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def add_write(stack: AgentStack) -> list[str]:
    ran: list[str] = []

    async def write(args: dict[str, str], call: ToolInvocation) -> str:
        ran.append(args["text"])
        return "written"

    stack.tools.register(stack.ctx, Tool("write", "Writes.", SCHEMA, write))
    return ran


async def asked(agent: Agent, text: str = "go") -> None:
    agent.send(text)
    with anyio.fail_after(10):
        await agent.when_idle()


def answers(agent: Agent) -> list[str]:
    return [m.text for m in agent.session.derived().conversation if isinstance(m, AssistantMessage)]


def told(agent: Agent) -> list[str]:
    return [
        "".join(part.text for part in m.content if isinstance(part, Text))
        for m in agent.session.derived().conversation
        if isinstance(m, UserMessage) and m.source.form == "correction"
    ]


# attempts


@pytest.mark.case("K12")
async def test_a_retry_stays_in_its_step_and_the_failed_attempt_leaves_only_its_bill(tmp_path: Path) -> None:
    clock = ManualClock()
    half = Reply(
        "half an ans", (Call("write", {"text": "x"}),), failure=BUSY, usage=Usage(input=10, output=500)
    )
    model = ScriptedModel([half, Reply("whole", usage=Usage(input=10, output=600))])
    async with agent_stack(tmp_path, model, clock_service=clock) as stack:
        ran = add_write(stack)
        agent = await stack.agents.create(AgentSpec())
        agent.send("go")
        await clock.until_sleeping()
        assert [line.type for line in agent.session.logged][-2:] == [RequestEnded.TYPE, LlmRetry.TYPE]
        await clock.advance(20)
        await agent.when_idle()
        session = agent.session
        assert len(list(session.of(StepStart))) == 1
        assert [it.attempt for it in session.of(RequestSent)] == [1, 2]
        assert model.digests[0] == model.digests[1]
        assert answers(agent) == ["whole"]
        assert ran == [] and list(session.of(ToolCalled)) == []
        billed = [
            *(it.usage for it in session.of(RequestEnded)),
            *(it.usage for it in session.of(AssistantSaid)),
        ]
        assert sum(usage.output or 0 for usage in billed if usage) == 1100


async def test_viewers_see_a_failed_attempt_and_are_told_to_drop_it(tmp_path: Path) -> None:
    clock = ManualClock()
    model = ScriptedModel([Reply("half", failure=BUSY), Reply("whole")])
    async with agent_stack(tmp_path, model, clock_service=clock) as stack:
        shown: dict[int, str] = {}

        def drop(signal: AttemptReset) -> None:
            del shown[signal.attempt]

        stack.ctx.on(AttemptReset, drop)

        def show(signal: Streamed) -> None:
            if isinstance(signal.event, TextDelta):
                shown[signal.attempt] = shown.get(signal.attempt, "") + signal.event.text

        stack.ctx.on(Streamed, show)
        agent = await stack.agents.create(AgentSpec())
        agent.send("go")
        await clock.until_sleeping()
        await clock.advance(20)
        await agent.when_idle()
        assert shown == {2: "whole"}


async def test_a_failure_that_lasts_ends_the_turn_typed_and_the_next_prompt_gets_its_own(
    tmp_path: Path,
) -> None:
    model = ScriptedModel([DENIED, "fine"])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.send("one")
        agent.send("two")
        await agent.when_idle()
        ends = [line.json() for line in agent.session.logged if line.type == "turn/end"]
        assert [it["reason"] for it in ends] == ["error", "completed"]
        assert ends[0]["failure"] == {"family": "stop", "code": "AUTH", "message": "the key is not valid"}


async def test_attempts_are_bounded(tmp_path: Path) -> None:
    clock = ManualClock()
    model = ScriptedModel(lambda request: BUSY)
    config = LoopConfig(retry=RetryConfig(attempts=3))
    async with agent_stack(tmp_path, model, clock_service=clock, loop=config) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.send("go")
        await clock.until_sleeping()
        await clock.advance(20)
        await agent.when_idle()
        assert len(model.requests) == 3
        assert agent.last_turn_end is not None
        assert isinstance(agent.last_turn_end.failure, Stop)
        assert agent.last_turn_end.failure.code == "GAVE_UP"


async def test_a_plugin_can_take_a_failure_over_within_the_step(tmp_path: Path) -> None:
    model = ScriptedModel([DENIED, "fine"])
    async with agent_stack(tmp_path, model) as stack:

        async def renew(signal: RequestFailed) -> Retry | None:
            assert isinstance(signal.failure, Stop)
            return Retry() if signal.failure.code == "AUTH" else None

        stack.ctx.on(RequestFailed, renew)
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        assert answers(agent) == ["fine"]
        assert len(list(agent.session.of(StepStart))) == 1


async def test_cancelling_while_waiting_for_a_retry_ends_the_turn(tmp_path: Path) -> None:
    clock = ManualClock()
    async with agent_stack(tmp_path, ScriptedModel([BUSY]), clock_service=clock) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.send("go")
        await clock.until_sleeping()
        await agent.cancel()
        assert agent.last_turn_end is not None
        assert agent.last_turn_end.reason == "aborted"
        assert clock.sleepers == 0


async def test_an_answer_that_breaks_off_is_an_attempt_that_failed(tmp_path: Path) -> None:
    model = ScriptedModel([Reply("half", (Call("write", {"text": "x"}),), state="incomplete")])
    config = LoopConfig(retry=RetryConfig(attempts=1))
    async with agent_stack(tmp_path, model, loop=config) as stack:
        ran = add_write(stack)
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        assert (ran, answers(agent)) == ([], [])
        assert next(agent.session.of(RequestEnded)).state == "incomplete"


# cancelling in mid-stream


@pytest.mark.case("S46")
async def test_a_cancelled_answer_keeps_its_text_once_and_loses_its_calls(tmp_path: Path) -> None:
    model = ScriptedModel(["one", "two", Reply("third, so far", (Call("write", {"text": "x"}),), hang=True)])
    async with agent_stack(tmp_path, model) as stack:
        ran = add_write(stack)
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        await asked(agent)
        agent.send("go")
        while len(model.requests) < 3:
            await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
        await agent.dispose()
        read = await stack.sessions.read(agent.id)
        partial = [it for it in read.of(AssistantSaid) if it.state == "interrupted"]
        assert [(it.turn, it.message.text) for it in partial] == [(3, "third, so far")]
        assert partial[0].message.tool_calls == ()
        assert ran == []
        conversation = read.derived().conversation
        assert conversation.pairing_problem is None
        assert [m.text for m in conversation if isinstance(m, AssistantMessage)] == [
            "one",
            "two",
            "third, so far",
        ]


async def test_a_cancelled_answer_without_text_leaves_its_end_and_nothing_else(tmp_path: Path) -> None:
    model = ScriptedModel([Reply(hang=True)])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.send("go")
        while not model.requests:
            await anyio.lowlevel.checkpoint()
        await agent.cancel()
        assert next(agent.session.of(RequestEnded)).state == "cancelled"
        assert answers(agent) == []


async def test_long_text_is_in_the_log_before_it_has_ended(tmp_path: Path) -> None:
    model = ScriptedModel([Reply("x" * 10_000, pieces=100, hang=True)])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.send("go")
        while not model.requests:
            await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
        chunks = [it.text for it in agent.session.of(AssistantChunk)]
        assert len(chunks) == 2
        assert len("".join(chunks)) >= 8_000
        assert answers(agent) == []


async def test_slow_text_is_in_the_log_after_a_second(tmp_path: Path) -> None:
    clock = ManualClock()
    async with agent_stack(
        tmp_path, ScriptedModel([Reply("abcdef", pieces=6)]), clock_service=clock
    ) as stack:
        stack.ctx.on(Streamed, lambda signal: setattr(clock, "_elapsed", clock.monotonic() + 0.4))
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        assert [it.text for it in agent.session.of(AssistantChunk)] == ["abcd"]
        assert answers(agent) == ["abcdef"]


# answers of no use


@pytest.mark.case("M13")
async def test_a_write_that_is_cut_each_time_is_advised_then_ended(tmp_path: Path) -> None:
    cut = Reply(calls=(Call("write", '{"text": "' + "x" * 200),), state="length")
    model = ScriptedModel(lambda request: cut)
    async with agent_stack(tmp_path, model) as stack:
        ran = add_write(stack)
        agent = await stack.agents.create(AgentSpec(options=CallOptions(max_tokens=20_000)))
        await asked(agent)
        assert ran == [] and list(agent.session.of(ToolCalled)) == []
        assert len(model.requests) == 3
        first, second = told(agent)
        assert "write" in first and "not run" in first
        assert "20000 tokens" in second and "split" in second
        assert agent.last_turn_end is not None
        assert agent.last_turn_end.reason == "max-tokens"
        assert "3 times in a row" in agent.last_turn_end.error


async def test_reaching_the_output_ceiling_sticks_to_the_turn(tmp_path: Path) -> None:
    cut = Reply("so", (Call("write", '{"te'),), state="length")
    async with agent_stack(tmp_path, ScriptedModel([cut, Call("write", {"text": "short"}), "done"])) as stack:
        ran = add_write(stack)
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        assert ran == ["short"]
        assert answers(agent) == ["so", "", "done"]
        assert agent.last_turn_end is not None
        assert agent.last_turn_end.reason == "max-tokens"


async def test_text_that_reaches_the_ceiling_is_kept_and_ends_the_turn(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel([Reply("a long ans", state="length")])) as stack:
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        assert answers(agent) == ["a long ans"]
        assert agent.last_turn_end is not None
        assert agent.last_turn_end.reason == "max-tokens"


@pytest.mark.case("M37")
async def test_an_empty_answer_is_nudged_once_then_fails_typed(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: Reply(""))
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        assert len(model.requests) == 2
        assert len(told(agent)) == 1
        assert all(part for m in model.requests[1].conversation for part in m.content)
        assert agent.last_turn_end is not None
        assert agent.last_turn_end.reason == "error"
        assert isinstance(agent.last_turn_end.failure, Wait)
        assert agent.last_turn_end.failure.code == "EMPTY_RESPONSE"


@pytest.mark.case("M39")
async def test_a_call_written_as_text_is_no_final_answer(tmp_path: Path) -> None:
    leaked = Reply('<tool_call>{"name":"write","arguments":{}}</tool_call>', leaked_call=True)
    model = ScriptedModel([leaked, Call("write", {"text": "x"}), "done"])
    async with agent_stack(tmp_path, model) as stack:
        ran = add_write(stack)
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        assert ran == ["x"]
        assert len(told(agent)) == 1
        model.push(leaked, leaked)
        await asked(agent)
        assert agent.last_turn_end is not None
        assert isinstance(agent.last_turn_end.failure, Wait)
        assert agent.last_turn_end.failure.code == "MALFORMED_RESPONSE"


async def test_an_answer_that_was_withheld_ends_the_turn_as_a_refusal(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel([Reply(state="refused")])) as stack:
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        assert agent.last_turn_end is not None
        assert agent.last_turn_end.reason == "refusal"


@pytest.mark.parametrize(
    "arguments", ['{"text": "cut of', '{"text": 5}', "{}", "null", '{"text": "a"} {"text": "b"}', "[1]"]
)
async def test_arguments_that_are_not_right_are_told_and_never_run(tmp_path: Path, arguments: str) -> None:
    model = ScriptedModel([Call("write", arguments), "sorry"])
    async with agent_stack(tmp_path, model) as stack:
        ran = add_write(stack)
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        assert ran == []
        answered = next(agent.session.of(ToolAnswered))
        assert (answered.error_code, answered.started) == ("INVALID_ARGS", False)
