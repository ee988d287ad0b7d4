"""Windows that providers name, truly and not: over real HTTP, from the refusal to the next agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline import Leadline
from leadline.core.agent.agent import Agent
from leadline.core.agent.agents import Agents
from leadline.core.agent.signals import Streamed
from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.stream import LimitsReport
from leadline.core.session.events import RequestEnded, WindowChanged
from leadline.core.spend.limiter import Limiter
from leadline.testing.provider_server import Behaviour, ProviderServer, ServerLimits, ServerWindow
from leadline.testing.provider_server.server import Received

pytestmark = pytest.mark.anyio

REFUSED = "This model's maximum context length is {} tokens. However, your messages resulted in more."


def refusal(tokens: int) -> Behaviour:
    return Behaviour("context_overflow", message=REFUSED.format(tokens))


async def said(agent: Agent, text: str) -> str:
    """How the turn ended that `text` began."""
    agent.send(text)
    await agent.when_idle()
    assert agent.last_turn_end is not None
    return agent.last_turn_end.reason


@pytest.mark.parametrize("named", [1, 16, 1_000])
async def test_a_window_that_was_named_wrongly_spoils_no_other_agent(home: Path, named: int) -> None:
    lies = True

    def answer(_: Received) -> Behaviour:
        return refusal(named) if lies else Behaviour(text="here I am")

    async with (
        ProviderServer(answer) as server,
        Leadline(profile="headless", model="local/m", base_url=server.base_url, home=home) as app,
    ):
        assert not (await app.agent("word " * 2_000)).completed
        lies = False
        reply = await app.agent("word " * 4_000)
        assert (reply.text, reply.completed) == ("here I am", True)


@pytest.mark.parametrize("named", [1, 16])
async def test_an_agent_whose_first_request_was_refused_oddly_may_be_asked_again(
    home: Path, named: int
) -> None:
    lies = True

    def answer(_: Received) -> Behaviour:
        return refusal(named) if lies else Behaviour(text="here I am")

    async with (
        ProviderServer(answer) as server,
        Leadline(profile="headless", model="local/m", base_url=server.base_url, home=home) as app,
    ):
        agent = await app.ctx.get(Agents).create(AgentSpec(persona="You count words. " * 20))
        assert await said(agent, "word " * 2_000) == "error"
        lies = False
        assert await said(agent, "and now?") == "completed"


@pytest.mark.parametrize("named", [1, 16, 1_000])
async def test_an_agent_that_was_answered_more_believes_no_smaller_window(home: Path, named: int) -> None:
    async with (
        ProviderServer(["first", refusal(named), "second", "third"]) as server,
        Leadline(profile="headless", model="local/m", base_url=server.base_url, home=home) as app,
    ):
        agent = await app.ctx.get(Agents).create(AgentSpec())
        assert await said(agent, "word " * 4_000) == "completed"
        assert await said(agent, "and now?") == "completed"
        assert await said(agent, "and then? " * 1_000) == "completed"
        assert len(server.requests) == 4


async def test_a_window_that_a_refusal_named_holds_after_a_resume(home: Path) -> None:
    async with (
        ProviderServer(lambda _: Behaviour(text="yes"), window=ServerWindow(tokens=12_000)) as server,
        Leadline(profile="headless", model="local/m", base_url=server.base_url, home=home) as app,
    ):
        agents = app.ctx.get(Agents)
        agent = await agents.create(AgentSpec())
        assert await said(agent, "word " * 5_000) == "completed"
        assert await said(agent, "more " * 5_000) == "completed"
        refused = [end for end in agent.session.of(RequestEnded) if end.failure is not None]
        assert refused
        await agent.dispose()
        again = await agents.resume(agent.session.id)
        assert await said(again, "last " * 5_000) == "completed"
        refused_again = [end for end in again.session.of(RequestEnded) if end.failure is not None]
        assert len(refused_again) == len(refused)


async def test_what_a_head_says_of_limits_is_shown_to_nobody_and_known_before_the_answer_ends(
    home: Path,
) -> None:
    shown: list[object] = []
    known: list[object] = []
    async with (
        ProviderServer(["one"], limits=ServerLimits(requests=50)) as server,
        Leadline(profile="headless", model="local/m", base_url=server.base_url, home=home) as app,
    ):

        def show(signal: Streamed) -> None:
            shown.append(signal.event)
            known.extend(line.learned for line in app.ctx.get(Limiter).lines())

        app.ctx.on(Streamed, show)
        assert (await app.agent("go")).completed
    assert shown
    assert not [event for event in shown if isinstance(event, LimitsReport)]
    assert known[0] is not None


async def test_a_provider_that_reports_only_what_is_new_to_its_cache_is_not_taken_for_one_that_cuts_off(
    home: Path,
) -> None:
    read = 0

    def answer(request: Received) -> Behaviour:
        nonlocal read
        new, read = max(1, len(request.raw) // 4 - read), len(request.raw) // 4
        return Behaviour(text="ok", usage={"prompt_tokens": new, "completion_tokens": 1})

    async with (
        ProviderServer(answer) as server,
        Leadline(profile="headless", model="local/m", base_url=server.base_url, home=home) as app,
    ):
        agents = app.ctx.get(Agents)
        agent = await agents.create(AgentSpec())
        for text in ("the quick brown fox " * 2_000, "and now?", "more", "the lazy dog " * 1_000, "so?"):
            assert await said(agent, text) == "completed"
        await agent.dispose()
        again = await agents.resume(agent.session.id)
        for text in ("and what else?", "the lazy dog " * 1_000):
            assert await said(again, text) == "completed"
        assert len(server.requests) == 7
        assert again.session.last(WindowChanged) is None
