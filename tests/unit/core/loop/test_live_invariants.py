"""Invariants of what runs: each is broken here on purpose, and told."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from msgspec import structs

from leadline.core.agent.agent import Agent
from leadline.core.agent.signals import (
    AgentCreated,
    AgentDisposed,
    AgentStatusChanged,
    InboxChanged,
    TurnEnded,
)
from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.adapter import ModelInfo, PreparedCall
from leadline.core.llm.failure import Stop
from leadline.core.llm.messages import Conversation, UserMessage
from leadline.core.llm.request import LlmRequest, ModelRef
from leadline.core.llm.stream import Finish, StreamEvent, TextDelta
from leadline.core.loop.thread import Thread
from leadline.core.prompt.epoch import Epoch
from leadline.core.prompt.sections import Assembled
from leadline.core.session.events import RequestHeader, RequestSent, TurnEnd
from leadline.core.session.invariants import InvariantBroken
from leadline.core.tools.invocation import Caller, ToolInvocation
from leadline.core.tools.outcome import ToolOutcome
from leadline.core.tools.policy import ToolFinished
from leadline.core.tools.spec import Tool
from leadline.orchestration.subagent import plugin as subagents
from leadline.testing.agents import agent_stack
from leadline.testing.scripted import Call, ScriptedModel

pytestmark = pytest.mark.anyio


async def asked(agent: Agent) -> None:
    agent.send("go")
    await agent.when_idle()


def taken(broken: list[InvariantBroken]) -> list[str]:
    """What was broken, each by its name and reason; the list is empty then."""
    told = [f"{one.name}: {one.reason}" for one in broken]
    broken.clear()
    return told


def look(name: str = "look") -> Tool:
    async def execute(arguments: object, call: ToolInvocation) -> str:
        return "seen"

    return Tool(name, f"The tool {name}.", {"type": "object"}, execute)


# requests


@pytest.mark.parametrize(
    "change",
    [
        lambda it: replace(it, system="Something else."),
        lambda it: replace(it, tools=()),
        lambda it: replace(it, conversation=Conversation([*it.conversation][1:])),
        lambda it: replace(it, config=structs.replace(it.config, effort="high")),
        lambda it: replace(it, config=structs.replace(it.config, temperature=0.5)),
    ],
    ids=["system", "tools", "messages", "effort", "parameters"],
)
async def test_a_request_that_is_not_what_the_log_derives_is_not_sent(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    broken_invariants: list[InvariantBroken],
    change: Callable[[LlmRequest], LlmRequest],
) -> None:
    model = ScriptedModel(["one", "two"])
    made = Thread.request

    def changed(self: Thread, header: RequestHeader, conversation: Conversation) -> LlmRequest:
        return change(made(self, header, conversation))

    async with agent_stack(tmp_path, model) as stack:
        stack.tools.register(stack.ctx, look())
        agent = await stack.agents.create(AgentSpec(persona="You test."))
        await asked(agent)
        monkeypatch.setattr(Thread, "request", changed)
        await asked(agent)
        assert len(model.requests) == 1
        assert len([*agent.session.of(RequestSent)]) == 1
        (told,) = taken(broken_invariants)
        assert told.startswith("loop/derived-requests: ")


async def test_a_prompt_that_was_kept_too_long_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken_invariants: list[InvariantBroken]
) -> None:
    model = ScriptedModel(["one", "two"])
    stale = Assembled("What it was before.", (), "0")
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec(persona="You test."))
        await asked(agent)
        monkeypatch.setattr(Epoch, "current", lambda self: stale)
        await asked(agent)
        assert len(model.requests) == 1
        assert taken(broken_invariants) == [
            "prompt/assembled: its system text is not what the prompt sections of the agent give"
        ]


# streams


@dataclass(frozen=True)
class Loose:
    """A provider that streams what it is told, whatever the grammar says."""

    events: tuple[StreamEvent, ...]
    provider: str = "loose"

    def info(self, model: str) -> ModelInfo:
        return ModelInfo(model)

    def prepare(self, request: LlmRequest) -> PreparedCall:
        return LooseCall(ScriptedModel().prepare(request).digest, self.events)


@dataclass(frozen=True)
class LooseCall:
    digest: str
    events: tuple[StreamEvent, ...]

    async def stream(self, *, idempotency_key: str | None = None) -> AsyncGenerator[StreamEvent, None]:
        for event in self.events:
            yield event


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ((TextDelta("a"),), "it ends without a finish"),
        ((Finish("done"), TextDelta("a")), "TextDelta comes behind the finish 'done'"),
        ((Finish("done"), Finish("done")), "Finish comes behind the finish 'done'"),
        ((Finish("error"),), "the finish 'error' does not say what failed"),
        ((Finish("done", Stop("AUTH", "no key")),), "the finish 'done' names a failure: AUTH"),
        ((TextDelta(""),), "a text delta without text"),
    ],
)
async def test_a_stream_that_breaks_the_grammar_ends_the_turn(
    tmp_path: Path, broken_invariants: list[InvariantBroken], events: tuple[StreamEvent, ...], told: str
) -> None:
    async with agent_stack(tmp_path, Loose(events)) as stack:
        agent = await stack.agents.create(AgentSpec(model=ModelRef("loose", "m")))
        await asked(agent)
        assert agent.last_turn_end is not None
        assert agent.last_turn_end.reason == "error"
        assert taken(broken_invariants) == [f"llm/streams: {told}"]


# agents


async def test_what_is_told_of_an_agent_is_so(
    tmp_path: Path, broken_invariants: list[InvariantBroken]
) -> None:
    async with agent_stack(tmp_path, ScriptedModel(["one"])) as stack:
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        agent.ctx.notice(AgentStatusChanged(agent, "idle"))
        agent.ctx.notice(TurnEnded(agent, TurnEnd(turn=1, reason="blocked")))
        agent.ctx.notice(AgentStatusChanged(agent, "running"))
        stack.ctx.notice(AgentDisposed(agent))
        agent.ctx.notice(AgentStatusChanged(agent, "running"))
        agent.ctx.notice(AgentStatusChanged(agent, "idle"))
        assert taken(broken_invariants) == [
            "agent/status: it becomes idle and is so already",
            "agent/status: the end of a turn is told, and is not the latest in its log",
            "agent/status: it is disposed of while it works",
            "agent/status: it goes to work after it was disposed of",
        ]


async def test_a_queue_that_is_not_what_the_log_says_is_told(
    tmp_path: Path, broken_invariants: list[InvariantBroken]
) -> None:
    async with agent_stack(tmp_path, ScriptedModel(["one"])) as stack:
        agent = await stack.agents.create(AgentSpec())
        message: UserMessage = agent.inject("first")
        assert not broken_invariants
        agent.inbox._queue.next_step.clear()  # pyright: ignore[reportPrivateUsage]
        agent.ctx.notice(InboxChanged(agent, "claimed", (message,)))
        assert taken(broken_invariants) == ["agent/queues: what waits in its inbox is not what its log says"]


async def test_a_child_has_a_live_parent_above_it_and_ends_before_it(
    tmp_path: Path, broken_invariants: list[InvariantBroken]
) -> None:
    async with agent_stack(tmp_path, ScriptedModel()) as stack:
        parent = await stack.agents.create(AgentSpec())
        child = await stack.agents.create(AgentSpec(parent=parent))
        assert not broken_invariants
        stack.ctx.notice(AgentDisposed(parent))
        child.spec = replace(child.spec, parent=child)
        stack.ctx.notice(AgentCreated(child))
        child.spec = replace(child.spec, parent=parent)
        await parent.dispose()
        stack.ctx.notice(AgentCreated(child))
        assert taken(broken_invariants) == [
            f"agent/family: it ends before {child.id}, which it started",
            "agent/family: it is 1 deep, its parent 1",
            f"agent/family: its parent {parent.id} is not alive",
        ]


async def test_a_child_that_sees_more_of_its_parents_tools_than_it_was_allowed_is_told(
    tmp_path: Path, broken_invariants: list[InvariantBroken]
) -> None:
    async with agent_stack(tmp_path, ScriptedModel(), plugins=[subagents.plugin]) as stack:
        for name in ("look", "write"):
            stack.tools.register(stack.ctx, look(name))
        parent = await stack.agents.create(AgentSpec())
        child = await stack.agents.create(AgentSpec(parent=parent, tools_allow=("look", "write")))
        assert not broken_invariants
        child.spec = replace(child.spec, tools_allow=("look",))
        stack.ctx.notice(AgentCreated(child))
        assert taken(broken_invariants) == [
            "subagent/allowed-tools: it sees write of its parent, which it was not allowed"
        ]


# tools


async def test_the_end_of_a_call_is_told_as_it_is_logged(
    tmp_path: Path, broken_invariants: list[InvariantBroken]
) -> None:
    async with agent_stack(tmp_path, ScriptedModel([Call("look"), "done"])) as stack:
        stack.tools.register(stack.ctx, look())
        told: list[ToolFinished] = []
        stack.ctx.on(ToolFinished, told.append)
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        (finished,) = told
        assert not broken_invariants
        caller = Caller(agent.ctx, agent.id, agent.session)
        outcome: ToolOutcome = replace(finished.outcome, content="something else")
        stack.ctx.notice(ToolFinished(finished.call, outcome))
        other = replace(finished.outcome, call_id="c-9")
        stack.ctx.notice(ToolFinished(ToolInvocation("c-9", "look", caller), other))
        call = finished.outcome.call_id
        assert taken(broken_invariants) == [
            f"tools/announced: call {call} is announced with another result than is logged",
            "tools/announced: call c-9 is announced, and its result is not logged",
        ]
