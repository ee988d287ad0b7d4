"""An agent has a question researched: in the person's own words, and hands the report on as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline import Leadline
from leadline.core.agent.agents import Agents
from leadline.core.session.events import ToolAnswered, UserEntered
from leadline.core.session.store import SessionStore
from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import ProviderServer, Received
from tests.composition.conftest import HOTEL, FakeResearcher, call, schema_of

pytestmark = pytest.mark.anyio

ASKED = "What may a hotel night cost? Please look it up."


def agent_over(researcher: FakeResearcher, **arguments: str) -> object:
    """A model that calls deep_research once as an agent, and does research in the roles of the run."""

    def responder(request: Received) -> Behaviour:
        if schema_of(request):
            return researcher(request)
        if any(message["role"] == "tool" for message in request.messages):
            return Behaviour(text="Here is the report.")
        return call("deep_research", {"question": "something else entirely", **arguments})

    return responder


async def test_the_question_is_the_persons_and_the_report_reaches_the_agent_verbatim(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with (
        ProviderServer(agent_over(researcher), strict=True) as server,  # pyright: ignore[reportArgumentType]
        Leadline(model="local/fake", base_url=server.base_url, corpus=[corpus]) as app,
    ):
        reply = await app.agent(ASKED)
        session = await app.session(reply.session)
        entries = await app.ctx.get(SessionStore).list()
        run = next(entry for entry in entries if entry.kind == "research")
        stored = await app.stored(run.id)
        assert app.ctx.get(Agents).live == ()
    assert reply.completed
    assert stored.ledger.request.question == ASKED
    assert stored.ledger.started is not None
    assert stored.ledger.started.mode == "delegated"
    assert run.parent == reply.session
    assert run.depth == 1
    (answer,) = [one.message for one in session.of(ToolAnswered) if one.message.name == "deep_research"]
    assert answer.content == stored.result().report
    relay = [one.message for one in session.of(UserEntered) if one.message.source.kind == "plugin"]
    assert "word for word" in str(relay[-1].content)


async def test_a_partial_report_says_so_at_its_top(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.plan = lambda request: Behaviour(text="no plan")
    async with (
        ProviderServer(agent_over(researcher)) as server,  # pyright: ignore[reportArgumentType]
        Leadline(model="local/fake", base_url=server.base_url, corpus=[corpus]) as app,
    ):
        reply = await app.agent(ASKED)
        session = await app.session(reply.session)
    answer = next(one.message for one in session.of(ToolAnswered) if one.message.name == "deep_research")
    assert answer.content.splitlines()[2].startswith("> This report is partial")
    assert HOTEL in answer.content


@pytest.mark.parametrize(("with_corpus", "words"), [(False, "nothing to search"), (True, "not found in")])
async def test_a_run_that_cannot_answer_is_a_tool_error_with_the_reason(
    home: Path, corpus: Path, researcher: FakeResearcher, with_corpus: bool, words: str
) -> None:
    researcher.unit = lambda request: call("structured_output", {"findings": "", "unresolved": ["all"]})
    async with (
        ProviderServer(agent_over(researcher)) as server,  # pyright: ignore[reportArgumentType]
        Leadline(model="local/fake", base_url=server.base_url, corpus=[corpus] if with_corpus else []) as app,
    ):
        reply = await app.agent(ASKED)
        session = await app.session(reply.session)
    answer = next(one.message for one in session.of(ToolAnswered) if one.message.name == "deep_research")
    assert answer.is_error
    assert words in answer.content


async def test_a_model_cannot_slip_background_into_the_request(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with (
        ProviderServer(agent_over(researcher, context="the cap is 500")) as server,  # pyright: ignore[reportArgumentType]
        Leadline(model="local/fake", base_url=server.base_url, corpus=[corpus]) as app,
    ):
        reply = await app.agent(ASKED)
        session = await app.session(reply.session)
    answer = next(one.message for one in session.of(ToolAnswered) if one.message.name == "deep_research")
    assert answer.is_error
    assert "context" in answer.content
