"""`app.sessions`: what is stored, from a program."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from anyio.lowlevel import checkpoint

from leadline import Leadline, SyncLeadline
from leadline.apps.sdk.app import NotRunning, take_turn
from leadline.apps.sdk.sessions import BadTitle
from leadline.core.agent.agents import Agents
from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.messages import Text
from leadline.core.session.codec import Header
from leadline.core.session.errors import ForkRefused, SessionNotFound
from leadline.core.session.events import TurnEnd, TurnStart
from leadline.core.session.log import Session
from leadline.core.session.store import SessionStore
from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import ProviderServer

QUESTION = "What may a hotel night cost?"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "share"
    folder.mkdir()
    (folder / "expenses.md").write_text("# Expenses\n\nA hotel night may cost EUR 180.\n")
    return folder


@asynccontextmanager
async def answering(home: Path, answers: Sequence[Behaviour | str]) -> AsyncGenerator[Leadline]:
    async with (
        ProviderServer(answers) as server,
        Leadline(profile="headless", home=home, model="local/fake", base_url=server.base_url) as app,
    ):
        yield app


async def talked(app: Leadline, *tasks: str) -> str:
    async with app.open_agent(label="talk") as agent:
        for task in tasks:
            await take_turn(agent, task)
        return agent.id


def said(session: Session) -> list[str]:
    return [
        "".join(p.text for p in one.content if isinstance(p, Text)) for one in session.derived().conversation
    ]


@pytest.mark.anyio
async def test_a_fork_goes_its_own_way_from_the_turn_that_is_named(home: Path) -> None:
    async with answering(home, ["a1", "a2", "a3", "b2"]) as app:
        source = await talked(app, "q1", "q2", "q3")
        fork = await app.sessions.fork(source, turn=1)
        async with app.open_agent(resume=fork) as agent:
            assert str(agent.model) == "local/fake"
            reply = await take_turn(agent, "other")
        assert reply.text == "b2"
        assert said(await app.session(fork)) == ["q1", "a1", "other", "b2"]
        assert said(await app.session(source)) == ["q1", "a1", "q2", "a2", "q3", "a3"]
        header = (await app.session(fork)).header
        assert (header.parent, header.depth, header.label, header.kind) == (source, 0, "talk", "agent")
        assert [end.turn for end in (await app.session(fork)).of(TurnEnd)] == [1, 2]


@pytest.mark.anyio
async def test_a_fork_does_not_inherit_what_waits_in_the_inbox(home: Path) -> None:
    async with answering(home, ["a1", "b2"]) as app, app.open_agent() as agent:
        await take_turn(agent, "q1")
        agent.send("waits", wake=False)
        fork = await app.sessions.fork(agent.id)
        async with app.open_agent(resume=fork) as other:
            assert len(other.inbox) == 0
            await take_turn(other, "q2")
        assert len(agent.inbox) == 1
        assert said(await app.session(fork)) == ["q1", "a1", "q2", "b2"]


@pytest.mark.anyio
async def test_a_fork_of_what_an_agent_started_is_a_person_s_own(home: Path) -> None:
    async with answering(home, ["a1"]) as app:
        agents = app.ctx.get(Agents)
        parent = await agents.create(AgentSpec())
        child = await agents.create(AgentSpec(parent=parent))
        await take_turn(child, "q1")
        fork = (await app.session(await app.sessions.fork(child.id))).header
        assert (child.depth, fork.depth, fork.parent) == (1, 0, child.id)


@pytest.mark.anyio
async def test_a_child_that_began_with_its_parent_s_turns_goes_with_it_and_a_fork_does_not(
    home: Path,
) -> None:
    async with answering(home, ["a1", "b1"]) as app:
        async with app.open_agent() as parent:
            await take_turn(parent, "q1")
            child = await app.ctx.get(Agents).create(AgentSpec(parent=parent, seed_turns=True))
            await take_turn(child, "sub")
        fork = await app.sessions.fork(parent.id)
        assert {one.id for one in (await app.sessions.list()).items} == {parent.id, fork}
        gone = await app.sessions.delete(parent.id)
        assert [one.id for one in gone.parts] == [child.id, parent.id]
        assert [one.id for one in (await app.sessions.list(roots_only=False)).items] == [fork]
        assert said(await app.session(fork)) == ["q1", "a1"]


@pytest.mark.anyio
async def test_a_fork_without_a_turn_leaves_out_the_one_that_goes_on(home: Path) -> None:
    async with answering(home, ["a1", Behaviour("stall")]) as app, app.open_agent() as agent:
        await take_turn(agent, "q1")
        agent.send("q2")
        while agent.session.place.turn < 2:
            await checkpoint()
        fork = await app.sessions.fork(agent.id)
        with pytest.raises(ForkRefused, match="still in turn 2"):
            await app.sessions.fork(agent.id, turn=2)
        assert said(await app.session(fork)) == ["q1", "a1"]
        await agent.cancel()


@pytest.mark.anyio
async def test_a_run_is_not_forked_and_no_session_is_left_behind(home: Path, corpus: Path) -> None:
    async with Leadline(home=home) as app:
        run = await app.research(QUESTION, corpus=[corpus])
        before = sorted((home / "sessions").iterdir())
        with pytest.raises(ForkRefused, match="leadline replay"):
            await app.sessions.fork(run.id)
        with pytest.raises(BadTitle):
            await app.sessions.fork(run.id, title=" \n")
        with pytest.raises(SessionNotFound):
            await app.sessions.fork("s-none")
        assert sorted((home / "sessions").iterdir()) == before


@pytest.mark.anyio
async def test_an_agent_that_is_at_work_here_can_be_renamed(home: Path) -> None:
    async with answering(home, ["a1", Behaviour("stall")]) as app, app.open_agent() as agent:
        await take_turn(agent, "q1")
        agent.send("q2")
        while agent.session.place.turn < 2:
            await checkpoint()
        renamed = await app.sessions.rename(agent.id[:9], "  two\nlines ")
        assert (renamed.id, renamed.title, renamed.status) == (agent.id, "two lines", "running")
        with pytest.raises(BadTitle):
            await app.sessions.rename(agent.id, "\n")
        await agent.cancel()


@pytest.mark.anyio
async def test_a_turn_that_was_cut_off_is_still_open_after_a_new_title(home: Path) -> None:
    async with answering(home, ["a1"]) as app:
        store = app.ctx.get(SessionStore)
        session = await store.create(Header(id="s-cut", kind="agent", created=1.0))
        session.append(TurnStart(turn=1))
        await session.close()
        assert (await app.sessions.rename("s-cut", "cut")).status == "interrupted"
        assert (await app.session("s-cut")).place.turn_open


def test_the_synchronous_twin_keeps_and_removes_as_well(home: Path, corpus: Path, tmp_path: Path) -> None:
    with SyncLeadline(home=home) as app:
        run = app.research(QUESTION, corpus=[corpus])
        sessions = app.sessions
        assert [one.id for one in sessions.list(kind="research", status="completed").items] == [run.id]
        (hit,) = sessions.search("hotel").items
        assert sessions.resolve(run.id[:7]) == hit.summary.id == run.id
        assert sessions.rename(run.id, "named").title == sessions.summary(run.id).title == "named"
        assert sessions.archive(run.id).parts
        report = sessions.export(run.id, tmp_path / "x")
        gone = sessions.delete(run.id)
        assert {one.id for one in gone.parts} == {one.id for one in report.parts}
        assert sessions.collect(dry_run=True, grace_s=0.0).blobs
        assert sessions.import_(tmp_path / "x").root == run.id
        assert sessions.read(run.id).header.kind == "research"
        assert [one.root for one in sessions.prune(0.0).deleted] == [run.id]
        assert sessions.list(roots_only=False).items == ()


def test_a_filter_that_does_not_exist_is_refused_and_one_value_stands_for_a_list(home: Path) -> None:
    with SyncLeadline(profile="headless", home=home) as app:
        session = app.agent("Hello").session
        with pytest.raises(TypeError, match=r"stauts.*'status'"):
            app.sessions.list(stauts="failed")  # pyright: ignore[reportCallIssue]
        (one,) = app.sessions.list(since=date(2020, 1, 1)).items
        assert app.sessions.list(until=datetime(2020, 1, 1, tzinfo=UTC)).items == ()
        assert app.sessions.prune(0.0, kinds="research").deleted == ()
        assert [it.root for it in app.sessions.prune(0.0, kinds="agent").deleted] == [one.id] == [session]


def test_nothing_is_stored_outside_of_the_block(home: Path) -> None:
    app = SyncLeadline(home=home)
    with pytest.raises(NotRunning):
        app.sessions.list()
