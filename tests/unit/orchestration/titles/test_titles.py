"""A title by a model: one call after the first turn, logged like any other, and nobody's loss if it fails."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from leadline.core.agent.agent import Agent
from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.adapter import Models
from leadline.core.llm.failure import Stop
from leadline.core.loop.audit import audit
from leadline.core.session.events import RequestSent, Titled
from leadline.orchestration.titles.plugin import plugin
from leadline.orchestration.titles.titler import MAX_TITLE, cleaned
from leadline.testing.agents import AgentStack, agent_stack
from leadline.testing.clock import ManualClock
from leadline.testing.scripted import Playable, Reply, ScriptedModel

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def titled(
    folder: Path, titler: ScriptedModel, *replies: Playable, model: str = "small/any"
) -> AsyncGenerator[tuple[AgentStack, Agent]]:
    async with agent_stack(folder, ScriptedModel(replies), titler) as stack:
        await stack.ctx.mount(plugin, {"model": model})
        agent = await stack.agents.create(AgentSpec())
        yield stack, agent


def small(*replies: Playable) -> ScriptedModel:
    return ScriptedModel(replies, provider="small")


async def told(agent: Agent, *texts: str) -> None:
    for text in texts:
        agent.send(text)
        await agent.when_idle()


async def titles_of(stack: AgentStack, session_id: str) -> list[tuple[str, str]]:
    return [(one.title, one.source) for one in (await stack.sessions.read(session_id)).of(Titled)]


async def test_a_session_gets_its_title_once_and_a_program_that_ends_waits_for_it(tmp_path: Path) -> None:
    titler = small("“Hotel caps of 2026.”\n")
    async with titled(tmp_path, titler, "EUR 180.", "USD 240.") as (stack, agent):
        await told(agent, "What may a night in the EU cost?", "And in the US?")
        await agent.dispose()
        assert await titles_of(stack, agent.id) == [("Hotel caps of 2026", "model")]
    (request,) = titler.requests
    shown = str(request.conversation[0])
    assert "What may a night in the EU cost?" in shown
    assert "EUR 180." in shown
    assert request.tools == ()


async def test_the_call_for_a_title_is_a_child_session_that_can_be_audited(tmp_path: Path) -> None:
    async with titled(tmp_path, small("A title"), "answer") as (stack, agent):
        await told(agent, "question")
        await agent.dispose()
        entries = {one.kind: one for one in await stack.sessions.list()}
        child = await stack.sessions.read(entries["title"].id)
        assert (child.header.parent, child.header.depth) == (agent.id, 1)
        assert [one.purpose for one in child.of(RequestSent)] == ["session/title"]
        for session in (child, await stack.sessions.read(agent.id)):
            assert audit(session, stack.ctx.get(Models)).ok


@pytest.mark.case("K15")
async def test_the_call_for_a_title_is_charged_to_the_agent(tmp_path: Path) -> None:
    async with titled(tmp_path, small("A title"), "answer") as (_, agent):
        await told(agent, "question")
        await agent.dispose()
        assert agent.account.spent.calls == 2


async def test_the_title_of_a_person_is_not_asked_again(tmp_path: Path) -> None:
    titler = small()
    async with titled(tmp_path, titler, "answer") as (stack, agent):
        agent.session.append(Titled(title="mine", source="user"))
        await told(agent, "question")
        await agent.dispose()
        assert await titles_of(stack, agent.id) == [("mine", "user")]
    assert titler.requests == []


async def test_children_get_no_title(tmp_path: Path) -> None:
    titler = small()
    async with titled(tmp_path, titler, "answer") as (stack, agent):
        child = await stack.agents.create(AgentSpec(parent=agent))
        await told(child, "question")
    assert titler.requests == []


@pytest.mark.parametrize("answer", [Stop("AUTH", "no key"), "  \n…", ""])
async def test_a_model_that_gives_no_title_costs_the_turn_nothing(tmp_path: Path, answer: Playable) -> None:
    async with titled(tmp_path, small(answer), "answer") as (stack, agent):
        await told(agent, "question")
        assert agent.last_turn_end is not None
        assert agent.last_turn_end.reason == "completed"
        await agent.dispose()
        assert await titles_of(stack, agent.id) == []


async def test_a_model_that_is_not_there_is_reported_and_costs_the_turn_nothing(tmp_path: Path) -> None:
    async with titled(tmp_path, small(), "answer", model="nobody/x") as (stack, agent):
        await told(agent, "question")
        assert agent.last_turn_end is not None
        assert agent.last_turn_end.reason == "completed"
        (report,) = stack.kernel.reports
    assert "nobody" in str(report.error)


async def test_the_plugin_leaves_no_trace_even_while_a_model_thinks_of_a_title(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel(["answer"]), small(Reply("…", hang=True))) as stack:
        before = stack.kernel.snapshot()
        fiber = await stack.ctx.mount(plugin, {"model": "small/any"})
        agent = await stack.agents.create(AgentSpec())
        await told(agent, "question")
        assert len(stack.agents) == 2
        await fiber.dispose()
        assert stack.agents.live == (agent,)
        await agent.dispose()
        assert await titles_of(stack, agent.id) == []
        assert stack.kernel.snapshot() == before


async def test_a_program_that_ends_waits_no_longer_than_it_was_told(tmp_path: Path) -> None:
    clock = ManualClock()
    titler = small(Reply("…", hang=True))
    async with agent_stack(tmp_path, ScriptedModel(["answer"]), titler, clock_service=clock) as stack:
        await stack.ctx.mount(plugin, {"model": "small/any", "timeout_s": 7})
        agent = await stack.agents.create(AgentSpec())
        await told(agent, "question")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.dispose)
            while not agent.disposed:
                await checkpoint()
            await clock.advance(8)
        assert await titles_of(stack, agent.id) == []


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Title: **Hotel caps**", "Hotel caps"),
        ("\n\n# 酒店费用上限。", "酒店费用上限"),
        ("标题:「酒店费用」", "酒店费用"),
        ("C# or F#?", "C# or F#?".strip("#")),
        ("...", ""),
        ("x" * 200, "x" * (MAX_TITLE - 1) + "…"),
    ],
)
async def test_an_answer_is_cleaned_of_its_decoration(answer: str, title: str) -> None:
    assert cleaned(answer) == title
