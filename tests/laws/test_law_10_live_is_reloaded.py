"""Law 10: what a person sees is a fold of the log by sequence number, so that the live view is the reloaded view."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import anyio
import msgspec
import pytest

from leadline import Leadline
from leadline.core.agent.agents import Agents
from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.messages import Text
from leadline.core.session.codec import Logged
from leadline.core.session.derive import derive
from leadline.core.session.events import Event, UserEntered
from leadline.core.session.log import Session, SessionAppended
from leadline.core.session.store import SessionStore
from leadline.core.tools.function import tool_from_function
from leadline.core.tools.registry import ToolRegistry
from leadline.research.events import RESEARCH_EVENTS
from leadline.research.ledger.ledger import Ledger
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.server import Received
from tests.composition.conftest import FakeResearcher
from tests.laws.conftest import QUESTION, Command, events, logs, running

pytestmark = pytest.mark.anyio

KINDS = {kind.TYPE: kind for kind in RESEARCH_EVENTS}


def facts_of(session: Session) -> list[Event]:
    """The facts of a run as a reloaded log has them."""
    return [line.as_(KINDS[line.type]) for line in session.logged if line.type in KINDS]


def lines(logged: Sequence[Logged]) -> list[bytes]:
    return [msgspec.json.encode(one) for one in logged]


async def test_the_facts_of_a_run_and_its_result_are_those_of_its_log(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.units = 2
    async with running(researcher) as (app, _):
        run = await app.start_research(QUESTION, corpus=[corpus], breadth="balanced")
        live: list[Event] = [fact async for fact in run.events()]
        result = await run.result()
        folded = run.ledger
        late: list[Event] = [fact async for fact in run.events()]
        await run.dispose()
    async with Leadline() as app:
        session = await app.session(run.id)
        assert live == late == facts_of(session)
        assert (await app.stored(run.id)).result().to_json() == result.to_json()
        again = Ledger.of(facts_of(session))
    assert (again.sources, again.quotes, again.verdicts, again.units) == (
        folded.sources,
        folded.quotes,
        folded.verdicts,
        folded.units,
    )


async def test_viewers_that_come_late_or_again_see_every_event_once_and_in_order(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    """Two viewers of each session; one follows from the start, one leaves and comes back at random."""
    seen: dict[str, list[Logged]] = {}
    async with running(researcher) as (app, _):
        app.ctx.on(SessionAppended, lambda told: seen.setdefault(told.session.id, []).append(told.logged))
        random = Random(7)
        run = await app.start_research(QUESTION, corpus=[corpus])
        session = app.ctx.get(Agents).get(run.id).session
        steady: list[Logged] = []
        restless: list[Logged] = []

        async def follow() -> None:
            async for one in session.follow():
                steady.append(one)

        async def come_and_go() -> None:
            while True:
                stay = random.randint(1, 5)
                async for one in session.follow(len(restless)):
                    restless.append(one)
                    stay -= 1
                    if not stay:
                        break
                else:
                    return
                await anyio.sleep(0.001)

        async with anyio.create_task_group() as viewers:
            viewers.start_soon(follow)
            viewers.start_soon(come_and_go)
            await run.result()
            await run.dispose()
        stored = {entry.id: await app.session(entry.id) for entry in await app.ctx.get(SessionStore).list()}
    assert lines(steady) == lines(restless) == lines(stored[run.id].logged)
    assert {session_id: lines(logged) for session_id, logged in seen.items()} == {
        session_id: lines(session.logged) for session_id, session in stored.items()
    }


async def test_what_the_model_saw_live_is_what_the_reloaded_log_derives(home: Path) -> None:
    async def look(what: str) -> str:
        """Look at something."""
        return f"{what}: ✓"

    def answer(request: Received) -> Behaviour:
        if request.messages[-1]["role"] == "tool":
            return Behaviour(text="Seen.", reasoning="hm")
        calls = (CallSpec("look", {"what": "a"}), CallSpec("look", {"what": "é"}))
        return Behaviour("tool_call_success", text="Looking.", calls=calls)

    async with running(answer) as (app, _):
        app.ctx.get(ToolRegistry).register(app.ctx, tool_from_function(look))
        agent = await app.ctx.get(Agents).create(AgentSpec())
        for prompt in ("first", "second"):
            agent.followup(prompt)
            await agent.when_idle()
        live = agent.session.derived().conversation
        await agent.dispose()
        assert derive((await app.session(agent.id)).logged) == live
    assert len(live) == 10


async def test_a_prompt_that_waits_is_still_waiting_after_a_reload(home: Path) -> None:
    async with running(lambda request: Behaviour(text="ok")) as (app, _):
        agent = await app.ctx.get(Agents).create(AgentSpec())
        agent.send("first", wake=False)
        agent.send("second", wake=False)
        waiting = [message.id for message in agent.inbox.next_turn]
        await agent.dispose()
    async with running(lambda request: Behaviour(text="ok")) as (app, _):
        again = await app.ctx.get(Agents).resume(agent.id)
        assert [message.id for message in again.inbox.next_turn] == waiting
        again.wake()
        await again.when_idle()
        texts = [
            part.text
            for one in again.session.of(UserEntered)
            for part in one.message.content
            if isinstance(part, Text)
        ]
        assert texts == ["first", "second"]
        await again.dispose()


def test_what_is_printed_is_what_is_in_the_file(home: Path, corpus: Path, command: Command) -> None:
    result = command("research", QUESTION, "--corpus", corpus, "--json").json
    assert command("show", result["id"], "--report").out == result["report"]
    assert json.loads(command("show", result["id"], "--report", "--json").out) == result
    for session_id, path in logs(home).items():
        shown = command("show", session_id, "--json").json
        assert shown["header"]["id"] == session_id
        assert [(one["seq"], one["type"], one["data"]) for one in shown["events"]] == [
            (one["seq"], one["type"], one["data"]) for one in events(path)
        ]
