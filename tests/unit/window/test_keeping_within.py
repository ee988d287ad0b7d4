"""A conversation stays within its model's window however long it gets, and the log keeps all of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.adapter import Models
from leadline.core.llm.messages import AssistantMessage, ImageRef, Text, ToolMessage, UserMessage
from leadline.core.loop.audit import audit
from leadline.core.session.codec import Header
from leadline.core.session.events import (
    AssistantSaid,
    RequestSent,
    ToolAnswered,
    UserEntered,
    WindowChanged,
)
from leadline.core.session.forks import fork_point
from leadline.testing.long_work import PAGE, LongWork, long_work, size_of, text_of
from leadline.window.compact import SUMMARY
from leadline.window.config import CompactConfig, ModelWindow, PruneConfig, WindowConfig
from leadline.window.summary import KIND
from leadline.window.window import WindowError, standing_changes

pytestmark = pytest.mark.anyio

SUMMARIES = WindowConfig(prune=PruneConfig(enabled=False))
NO_SUMMARIES = WindowConfig(compact=CompactConfig(enabled=False))
ONLY_TRIM = WindowConfig(compact=CompactConfig(enabled=False), prune=PruneConfig(enabled=False))


@pytest.mark.parametrize(
    "config", [WindowConfig(), NO_SUMMARIES, ONLY_TRIM], ids=["all", "pruned", "trimmed"]
)
async def test_two_hundred_rounds_in_a_small_window_never_overflow(
    tmp_path: Path, config: WindowConfig
) -> None:
    work = LongWork(200)
    async with long_work(tmp_path, work, config, invariants=False) as desk:
        await desk.ask()
        assert desk.end == "completed"
        assert work.refused == []
        assert len(work.own) == 201
        # Room is made seldom, and a request extends the one before it everywhere else, byte for byte.
        assert 2 < len(desk.changes) < 40
        assert 0 < work.breaks() <= len(desk.changes)
        assert all(change.after < change.before for change in desk.changes)
        assert audit(desk.agent.session, desk.stack.ctx.get(Models)).ok
        again = await desk.stack.sessions.read(desk.agent.id)
        assert tuple(again.derived().conversation) == tuple(desk.agent.session.derived().conversation)


async def test_a_window_that_nobody_told_is_learned_from_the_refusal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "leadline")
    work = LongWork(120, told=False)
    async with long_work(tmp_path, work) as desk:
        await desk.ask()
        assert desk.end == "completed"
        told = [one for one in caplog.records if "is not known" in one.getMessage()]
        assert len(told) == 1 and "scripted/scripted" in told[0].getMessage()
        assert len(work.refused) == 1
        assert desk.changes


async def test_a_request_that_is_refused_for_no_told_reason_is_made_smaller(tmp_path: Path) -> None:
    """A server whose window is half of what it says."""
    work = LongWork(60, window=16_000)
    work.window = 8_000
    async with long_work(tmp_path, work) as desk:
        await desk.ask()
        assert desk.end == "completed"
        assert 1 <= len(work.refused) <= 3


async def test_old_results_become_stubs_that_name_them_and_new_ones_stay(tmp_path: Path) -> None:
    work = LongWork(12, window=16_000)
    async with long_work(tmp_path, work, page=PAGE * 50) as desk:
        await desk.ask()
        first, *_ = desk.changes
        assert first.cause == "prune"
        results = {one.message.id: one.message for one in desk.agent.session.of(ToolAnswered)}
        for stub in first.stubs:
            assert "[result of read, " in stub.text and "is left out here" in stub.text
            assert results[stub.message_id].content == PAGE * 50
        seen = [one for one in work.own[-1].conversation if isinstance(one, ToolMessage)]
        assert seen[-1].content == PAGE * 50
        assert any(one.content != results[one.id].content for one in seen)
        # Nothing is replaced twice.
        ids = [stub.message_id for change in desk.changes for stub in change.stubs]
        assert len(ids) == len(set(ids))


@pytest.mark.case("K10")
async def test_results_are_replaced_in_large_batches_and_not_with_every_step(tmp_path: Path) -> None:
    work = LongWork(80, window=16_000)
    async with long_work(tmp_path, work, NO_SUMMARIES, page=PAGE * 30, invariants=False) as desk:
        await desk.ask()
        batches = [len(change.stubs) for change in desk.changes if change.cause == "prune"]
        assert len(batches) < 20
        assert min(batches) >= 3
        assert work.breaks() <= len(desk.changes)


async def test_a_result_that_was_not_answered_yet_is_never_replaced(tmp_path: Path) -> None:
    work = LongWork(6, window=8_000)
    async with long_work(tmp_path, work, page=PAGE * 90) as desk:
        await desk.ask()
        for request in work.own[1:]:
            last = request.conversation[-1]
            assert isinstance(last, ToolMessage) and last.content == PAGE * 90
        assert desk.changes


async def test_a_summary_request_extends_the_last_request_by_one_message(tmp_path: Path) -> None:
    work = LongWork(40)
    async with long_work(
        tmp_path, work, SUMMARIES, spec=AgentSpec(persona="You are a careful reader.")
    ) as desk:
        await desk.ask()
        asked = work.for_summaries[0]
        at = work.model.requests.index(asked)
        before = work.model.requests[at - 1]
        assert (asked.system, asked.tools, asked.config) == (before.system, before.tools, before.config)
        shared = len(before.conversation)
        assert tuple(asked.conversation)[:shared] == tuple(before.conversation)
        # What is new beside the instruction is what the next request of the work begins to read.
        assert len(asked.conversation) == shared + 3
        sent = next(iter((await desk.stack.sessions.read(desk.changes[0].child)).of(RequestSent)))
        assert sent.purpose == "window/compacting"


async def test_the_child_of_a_summary_is_audited_like_any_session(tmp_path: Path) -> None:
    work = LongWork(40)
    async with long_work(tmp_path, work, SUMMARIES) as desk:
        await desk.ask()
        child = await desk.stack.sessions.read(desk.changes[0].child)
        assert (child.header.kind, child.header.parent) == (KIND, desk.agent.id)
        done = audit(child, desk.stack.ctx.get(Models))
        assert done.ok and done.proved == 1


@pytest.mark.case("K15")
async def test_a_summary_is_charged_to_the_agent(tmp_path: Path) -> None:
    work = LongWork(40)
    async with long_work(tmp_path, work, SUMMARIES) as desk:
        await desk.ask()
        assert work.for_summaries
        assert desk.agent.account.spent.calls == len(work.model.requests)


@pytest.mark.case("C11")
@pytest.mark.case("C08")
async def test_wording_and_instructions_survive_every_summary_unchanged(tmp_path: Path) -> None:
    work = LongWork(120)
    spec = AgentSpec(persona="Begin each answer with ZX-.")
    async with long_work(tmp_path, work, SUMMARIES, spec=spec) as desk:
        await desk.ask("Use exactly: 'Ships on Tuesdays.'")
        assert len([one for one in desk.changes if one.cause == "compact"]) >= 2
        work.left = 30
        await desk.ask("And name the pilot: 'Captain Ødegård'.")
        last, first = work.own[-1], work.own[0]
        assert "Begin each answer with ZX-." in last.system
        assert (last.system, last.tools, last.config) == (first.system, first.tools, first.config)
        seen = "\n".join(map(text_of, last.conversation))
        assert "Use exactly: 'Ships on Tuesdays.'" in seen
        assert "Captain Ødegård" in seen


@pytest.mark.case("C10")
async def test_an_agent_in_the_middle_of_its_work_goes_on_and_the_summary_is_nobodys_words(
    tmp_path: Path,
) -> None:
    work = LongWork(60)
    async with long_work(tmp_path, work, SUMMARIES) as desk:
        await desk.ask()
        assert work.left == 0 and desk.end == "completed"
        assert desk.agent.session.place.turn == 1
        summary = work.own[-1].conversation[0]
        assert isinstance(summary, UserMessage) and summary.source == SUMMARY
        assert summary.source.kind != "user"
        assert summary.id not in {one.message.id for one in desk.agent.session.of(UserEntered)}


@pytest.mark.case("C10")
async def test_an_agent_at_rest_stays_at_rest(tmp_path: Path) -> None:
    work = LongWork(15)
    async with long_work(tmp_path, work) as desk:
        await desk.ask()
        asked, turn = len(work.model.requests), desk.agent.session.place.turn
        outcome = await desk.window.compact(desk.agent)
        assert isinstance(outcome, WindowChanged) and outcome.cause == "compact"
        assert desk.agent.status == "idle"
        assert len(work.model.requests) == asked + 1
        assert desk.agent.session.place.turn == turn
        await desk.ask("And now?")
        assert desk.end == "completed"
        assert text_of(work.own[-1].conversation[-1]) == "And now?"


async def test_there_may_be_nothing_to_summarise(tmp_path: Path) -> None:
    async with long_work(tmp_path, LongWork(0)) as desk:
        assert await desk.window.compact(desk.agent) == "nothing"
        await desk.ask("Hello.")
        assert await desk.window.compact(desk.agent) == "nothing"
        assert desk.changes == []


@pytest.mark.case("S17")
async def test_a_log_grows_by_what_is_new_however_often_it_was_summarised(tmp_path: Path) -> None:
    work = LongWork(60)
    async with long_work(tmp_path, work, SUMMARIES) as desk:
        await desk.ask()
        for _ in range(3):
            work.left = 3
            await desk.ask("Go on.")
        await desk.window.compact(desk.agent)
        entered = Counter(
            event.message.id
            for kind in (UserEntered, AssistantSaid, ToolAnswered)
            for event in desk.agent.session.of(kind)
        )
        assert set(entered.values()) == {1}
        assert len([*desk.agent.session.of(ToolAnswered)]) == 69
        for change in desk.changes:
            child = await desk.stack.sessions.read(change.child)
            said = [one.message.id for one in child.of(ToolAnswered)]
            assert len(said) == len(set(said)) < 69


@pytest.mark.case("S32")
async def test_what_is_done_to_the_window_of_a_child_is_nothing_to_its_parent(tmp_path: Path) -> None:
    work = LongWork(5)
    async with long_work(tmp_path, work, SUMMARIES) as desk:
        await desk.ask()
        before = len(desk.agent.session)
        child = await desk.stack.agents.create(AgentSpec(parent=desk.agent))
        work.left = 80
        child.send("Read the other book.")
        await child.when_idle()
        changes = [*child.session.of(WindowChanged)]
        assert len(changes) >= 2
        assert len(desk.agent.session) == before and desk.changes == []
        for change in changes:
            assert (await desk.stack.sessions.read(change.child)).header.parent == child.id
        parent = await desk.stack.sessions.read(desk.agent.id)
        assert tuple(parent.derived().conversation) == tuple(desk.agent.session.derived().conversation)


async def test_a_fork_and_a_seeded_child_see_what_the_parent_sees(tmp_path: Path) -> None:
    work = LongWork(40)
    async with long_work(tmp_path, work, SUMMARIES) as desk:
        await desk.ask()
        session = desk.agent.session
        fork = await desk.stack.sessions.fork(
            session, Header(id="f", kind="agent", created=0.0), fork_point(session)
        )
        assert tuple(fork.derived().conversation) == tuple(session.derived().conversation)
        await fork.close()
        child = await desk.stack.agents.create(AgentSpec(parent=desk.agent, seed_turns=True))
        assert tuple(child.session.derived().conversation) == tuple(session.derived().conversation)
        child.send("And now?")
        await child.when_idle()
        assert audit(child.session, desk.stack.ctx.get(Models)).ok


@pytest.mark.case("C16")
async def test_a_session_that_is_opened_again_goes_on_with_the_same_window(tmp_path: Path) -> None:
    work = LongWork(60)
    async with long_work(tmp_path, work, SUMMARIES) as desk:
        await desk.ask()
        seen = tuple(desk.agent.session.derived().conversation)
        name = desk.agent.id
    work.left = 40
    async with long_work(tmp_path, work) as desk:
        agent = await desk.stack.agents.resume(name)
        assert tuple(agent.session.derived().conversation) == seen
        agent.send("Go on.")
        await agent.when_idle()
        assert agent.last_turn_end is not None and agent.last_turn_end.reason == "completed"
        assert work.refused == []
        assert audit(agent.session, desk.stack.ctx.get(Models)).ok


async def test_a_change_is_undone_and_the_model_sees_again_what_it_hid(tmp_path: Path) -> None:
    work = LongWork(15)
    async with long_work(tmp_path, work) as desk:
        await desk.ask()
        session = desk.agent.session
        before = tuple(session.derived().conversation)
        await desk.window.compact(desk.agent)
        assert tuple(session.derived().conversation) != before
        undone = desk.window.undo(session)
        assert undone.after > undone.before
        assert tuple(session.derived().conversation) == before
        assert standing_changes(session) == {}
        with pytest.raises(WindowError, match="no change of its window"):
            desk.window.undo(session)
        with pytest.raises(WindowError, match="event 3"):
            desk.window.undo(session, 3)
        again = desk.window.undo(session, len(session) - 1)
        assert again.after < again.before
        assert len(standing_changes(session)) == 1
        desk.window.undo(session)
        assert tuple(session.derived().conversation) == before
        await desk.ask("And now?")
        assert audit(session, desk.stack.ctx.get(Models)).ok


@pytest.mark.case("C15")
async def test_a_picture_counts_as_a_picture(tmp_path: Path) -> None:
    work = LongWork(0)
    async with long_work(tmp_path, work) as desk:
        picture = UserMessage("m-picture", (Text("What is this?"), ImageRef("0" * 64, "image/png")))
        desk.agent.send(picture)
        await desk.agent.when_idle()
        assert desk.end == "completed" and desk.changes == []
        assert size_of(work.own[0]) < 2_000


async def test_a_model_may_have_limits_of_its_own(tmp_path: Path) -> None:
    work = LongWork(20, window=100_000)
    config = WindowConfig(models=(ModelWindow(model="scripted/*", window=6_000, ratio=0.5),))
    async with long_work(tmp_path, work, config) as desk:
        await desk.ask()
        assert desk.changes
        assert max(map(size_of, work.own)) < 4_000


@given(
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=60),
    at_once=st.integers(1, 4),
)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_whatever_is_read_no_request_is_too_large_and_no_pair_is_split(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], at_once: int
) -> None:
    work = LongWork(0, window=10_000)
    async with long_work(tmp_path_factory.mktemp("work"), work) as desk:
        for size in sizes:
            await desk.ask(PAGE * size + "?")
            assert desk.end == "completed"
        assert work.refused == []
        assert all(isinstance(one.conversation[-1], UserMessage | ToolMessage) for one in work.own)
        assert not any(isinstance(one.conversation[0], AssistantMessage) for one in work.own)
