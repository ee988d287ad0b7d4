"""Whatever becomes of a summary: the work goes on, history is as it was, and the log says what happened."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from leadline.core.agent.spec import AgentSpec, CallOptions
from leadline.core.llm.adapter import Models
from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.messages import ToolMessage, UserMessage
from leadline.core.llm.request import LlmRequest
from leadline.core.loop.audit import audit
from leadline.core.loop.config import LoopConfig, RetryConfig
from leadline.core.loop.thread import SNAPSHOT
from leadline.core.session.events import AssistantSaid, ToolCalled, WindowChanged
from leadline.core.spend.account import Account, Ceilings
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import Tool
from leadline.testing.clock import ManualClock
from leadline.testing.long_work import PAGE, LongWork, long_work, size_of, text_of
from leadline.testing.scripted import Call, Playable, Reply
from leadline.window.carry import Carry
from leadline.window.compact import SUMMARY
from leadline.window.config import CompactConfig, PruneConfig, WindowConfig
from leadline.window.events import SummaryFailed, WindowFull
from leadline.window.summary import KIND, NoSummary

pytestmark = pytest.mark.anyio

SUMMARIES = WindowConfig(prune=PruneConfig(enabled=False))

BAD: dict[str, tuple[Playable, str]] = {
    "calls a tool": (Call("read", {"page": 1}), "called-tools"),
    "calls a tool beside text": (Reply("In short", calls=(Call("read", {"page": 1}),)), "called-tools"),
    "says nothing": (Reply(""), "empty"),
    "only thinks": (Reply("", reasoning="The user wants a summary of it all."), "empty"),
    "is cut off": (Reply("The first part of the", state="length"), "cut-off"),
    "refuses": (Reply("", state="refused"), "refused"),
    "is longer than what it stands for": (Reply(PAGE * 400), "too-long"),
    "is refused": (Stop("INVALID_REQUEST", "no"), "not-asked"),
    "times out": (Wait("TIMEOUT", "nothing came for 60 s"), "timeout"),
}


@pytest.mark.case("C06")
@pytest.mark.parametrize(("reply", "fault"), BAD.values(), ids=BAD.keys())
async def test_a_summary_that_is_none_changes_nothing_that_the_model_sees(
    tmp_path: Path, reply: Playable, fault: str
) -> None:
    work = LongWork(15, summary=reply)
    loop = LoopConfig(retry=RetryConfig(attempts=1))
    async with long_work(tmp_path, work, SUMMARIES, loop=loop) as desk:
        await desk.ask()
        session, called = desk.agent.session, len([*desk.agent.session.of(ToolCalled)])
        before = tuple(session.derived().conversation)
        for _ in range(5):
            outcome = await desk.window.compact(desk.agent)
            assert isinstance(outcome, NoSummary) and outcome.fault == fault
        assert tuple(session.derived().conversation) == before
        assert desk.changes == []
        failed = [*session.of(SummaryFailed)]
        assert {one.fault for one in failed} == {fault}
        assert len(failed) == (5 if fault == "timeout" else 10)
        # No tool ran because of it, neither here nor in the sessions in which it was asked for.
        assert len([*session.of(ToolCalled)]) == called
        assert desk.stack.agents.live == (desk.agent,)
        await desk.ask("And now?")
        assert desk.end == "completed"
        assert audit(session, desk.stack.ctx.get(Models)).ok


async def test_a_second_attempt_may_succeed(tmp_path: Path) -> None:
    replies: list[Playable] = [Reply(""), "So far: the office was founded in 1887."]
    work = LongWork(15, summary=lambda request: replies.pop(0))
    async with long_work(tmp_path, work, SUMMARIES) as desk:
        await desk.ask()
        assert isinstance(await desk.window.compact(desk.agent), WindowChanged)
        assert [one.fault for one in desk.agent.session.of(SummaryFailed)] == ["empty"]


async def test_work_whose_summaries_always_fail_is_cut_and_goes_on(tmp_path: Path) -> None:
    work = LongWork(80, summary=Reply(""))
    async with long_work(tmp_path, work, SUMMARIES) as desk:
        await desk.ask()
        assert desk.end == "completed" and work.refused == []
        assert {one.cause for one in desk.changes} == {"trim"}
        # It is not asked for with every step either.
        assert len(work.for_summaries) < 20
        first = work.own[-1].conversation[0]
        assert isinstance(first, UserMessage) and first.source == SUMMARY
        assert "Read the book, page by page." in text_of(first)


@pytest.mark.case("C12")
async def test_a_summary_that_takes_too_long_is_told_as_a_timeout_and_not_as_an_overflow(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    work = LongWork(30, summary=Reply("So far", hang=True))
    config = WindowConfig(prune=PruneConfig(enabled=False), compact=CompactConfig(timeout_s=90))
    async with long_work(tmp_path, work, config, clock=clock) as desk:
        desk.agent.send("Read the book, page by page.")
        async with anyio.create_task_group() as turning:

            async def turn() -> None:
                while True:
                    await clock.until_sleeping()
                    await clock.advance(90)

            turning.start_soon(turn)
            await desk.agent.when_idle()
            turning.cancel_scope.cancel()
        assert desk.end == "completed"
        failed = [*desk.agent.session.of(SummaryFailed)]
        assert failed and {one.fault for one in failed} == {"timeout"}
        assert "90" in failed[0].detail
        assert work.refused == []


@pytest.mark.case("C17")
async def test_a_child_that_works_is_not_disturbed_by_a_summary_of_its_parent(tmp_path: Path) -> None:
    work = LongWork(30)
    async with long_work(tmp_path, work, SUMMARIES) as desk:
        begun, may_end = anyio.Event(), anyio.Event()

        async def slow(args: object, call: ToolInvocation) -> str:
            begun.set()
            await may_end.wait()
            return "the tide table"

        desk.stack.tools.register(desk.stack.ctx, Tool("slow", "Takes long.", {"type": "object"}, slow))
        answers: list[Playable] = [Call("slow"), "The tide table is here."]

        child = await desk.stack.agents.create(AgentSpec(parent=desk.agent, label="child"))
        work.first = lambda request: answers.pop(0) if request.session == child.id else None
        child.send("Fetch the tide table.")
        await begun.wait()
        await desk.ask()
        assert [one.cause for one in desk.changes] and child.status == "running"
        may_end.set()
        await child.when_idle()
        assert child.last_turn_end is not None and child.last_turn_end.reason == "completed"
        said = child.session.last(AssistantSaid)
        assert said is not None and said.message.text == "The tide table is here."


@pytest.mark.case("C19")
async def test_a_summary_is_asked_for_under_the_same_ceilings_as_the_work(tmp_path: Path) -> None:
    work = LongWork(40, window=40_000)
    spec = AgentSpec(options=CallOptions(max_tokens=13_107, effort="high"))
    async with long_work(tmp_path, work, SUMMARIES, page=PAGE * 60, spec=spec) as desk:
        await desk.ask()
        asked = work.for_summaries
        assert asked and asked[0].config == work.own[0].config
        assert asked[0].config.effort == "high" and (asked[0].config.max_tokens or 0) >= 10_000
        assert max(map(size_of, work.own)) <= 40_000 - (asked[0].config.max_tokens or 0)


async def test_a_turn_that_is_stopped_during_a_summary_leaves_nothing_behind(tmp_path: Path) -> None:
    asked = anyio.Event()

    def never(request: LlmRequest) -> Playable:
        asked.set()
        return Reply("So", hang=True)

    work = LongWork(60, summary=never)
    async with long_work(tmp_path, work, SUMMARIES) as desk:
        desk.agent.send("Read the book, page by page.")
        await asked.wait()
        await desk.agent.cancel()
        assert desk.end == "aborted"
        assert desk.stack.agents.live == (desk.agent,)
        assert desk.changes == []
        assert desk.agent.session.derived().conversation.pairing_problem is None


async def test_a_summary_that_the_agents_account_does_not_bear_is_not_asked_for(tmp_path: Path) -> None:
    work = LongWork(15)
    account = Account("work", Ceilings(calls=16))
    async with long_work(tmp_path, work, SUMMARIES, spec=AgentSpec(account=account)) as desk:
        await desk.ask()
        assert desk.end == "completed" and account.spent.calls == 16
        outcome = await desk.window.compact(desk.agent)
        assert isinstance(outcome, NoSummary) and outcome.fault == "not-asked"
        assert account.spent.calls == 16


async def test_what_does_not_fit_at_all_ends_the_turn_with_what_fills_the_window(tmp_path: Path) -> None:
    work = LongWork(0)
    async with long_work(tmp_path, work) as desk:
        await desk.ask(PAGE * 600)
        assert desk.end == "error"
        assert desk.agent.last_turn_end is not None
        failure = desk.agent.last_turn_end.failure
        assert isinstance(failure, Stop) and failure.code == "CONTEXT_WINDOW_EXCEEDED"
        assert "user's messages (1 message)" in failure.message and "tokens" in failure.message
        full = desk.agent.session.last(WindowFull)
        assert full is not None and full.parts[0].what == "user's messages" and full.window == 8_000
        assert work.model.requests == []


async def test_two_who_ask_for_a_summary_get_one_after_the_other(tmp_path: Path) -> None:
    most, now = 0, 0

    def counted(request: LlmRequest) -> Playable:
        nonlocal most
        most = max(most, len([one for one in desk.stack.agents.live if one.spec.kind == KIND]))
        return "So far: the office was founded in 1887."

    work = LongWork(15, summary=counted)
    async with long_work(tmp_path, work, SUMMARIES) as desk:
        await desk.ask()
        outcomes: list[object] = []

        async def ask() -> None:
            outcomes.append(await desk.window.compact(desk.agent))

        async with anyio.create_task_group() as asking:
            for _ in range(3):
                asking.start_soon(ask)
        assert most == 1 and now == 0
        assert len(desk.changes) == 1
        assert [one for one in outcomes if one == "nothing"] == ["nothing", "nothing"]


async def test_a_summary_that_is_asked_for_while_the_agent_works_is_made_before_its_next_request(
    tmp_path: Path,
) -> None:
    work = LongWork(10)
    outcomes: list[object] = []
    async with long_work(tmp_path, work, SUMMARIES) as desk, anyio.create_task_group() as asking:

        async def ask() -> None:
            outcomes.append(await desk.window.compact(desk.agent))

        def at_the_eighth(request: LlmRequest) -> None:
            if len(work.model.requests) == 8:
                asking.start_soon(ask)

        work.first = at_the_eighth
        await desk.ask()
        assert desk.end == "completed"
        assert len(outcomes) == 1 and isinstance(outcomes[0], WindowChanged)
        assert len(desk.changes) == 1 and work.breaks() == 1


async def test_owners_say_from_their_own_state_what_must_not_get_lost(tmp_path: Path) -> None:
    work = LongWork(40)
    async with long_work(tmp_path, work, SUMMARIES) as desk:

        async def plan(signal: Carry) -> str | None:
            return "Plan: 1. the tides (done) 2. the breakwater (open)"

        async def nothing(signal: Carry) -> str | None:
            return None

        async def broken(signal: Carry) -> str | None:
            raise RuntimeError("the plan is not there")

        desk.stack.ctx.on(Carry, nothing)
        desk.stack.ctx.on(Carry, plan)
        await desk.ask()
        first = text_of(work.own[-1].conversation[0])
        assert "## As it stands now\n\nPlan: 1. the tides (done) 2. the breakwater (open)" in first
        desk.stack.ctx.on(Carry, broken)
        work.left = 30
        await desk.ask("Go on.")
        assert desk.end == "completed" and work.refused == []


async def test_current_facts_are_told_again_when_they_were_summarised_away(tmp_path: Path) -> None:
    work = LongWork(40)
    async with long_work(tmp_path, work, SUMMARIES) as desk:

        async def tide(scope: object) -> str:
            return "The tide is low."

        desk.stack.prompt.context(desk.stack.ctx, "tide", 10, tide)
        await desk.ask()
        assert desk.changes
        for request in work.own:
            told = [
                one for one in request.conversation if isinstance(one, UserMessage) and one.source == SNAPSHOT
            ]
            assert len(told) == 1 and "The tide is low." in text_of(told[0])


async def test_what_is_left_out_says_where_it_is_only_where_it_can_be_looked_up(tmp_path: Path) -> None:
    work = LongWork(12, window=16_000)
    async with long_work(tmp_path, work, page=PAGE * 50) as desk:

        async def recall(args: object, call: ToolInvocation) -> str:
            return "nothing"

        desk.stack.tools.register(desk.stack.ctx, Tool("recall", "Looks up.", {"type": "object"}, recall))
        await desk.ask()
        stub = desk.changes[0].stubs[0]
        assert stub.text.endswith(f'recall it with id "{stub.message_id}"]')
        assert any(
            isinstance(one, ToolMessage) and one.content == stub.text for one in work.own[-1].conversation
        )
