"""Turns and steps: what is logged, in which order, and what decides where a turn goes."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from msgspec import structs

from leadline.core.agent.agent import Agent
from leadline.core.agent.signals import (
    Enter,
    PreStep,
    ProposeRequest,
    Reject,
    StepDecision,
    TurnStopping,
)
from leadline.core.agent.spec import AgentSpec, CallOptions, TurnBudget
from leadline.core.llm.adapter import Models
from leadline.core.llm.messages import Text, ToolMessage, UserMessage
from leadline.core.llm.request import CallConfig, LlmRequest, Purpose
from leadline.core.llm.usage import Usage
from leadline.core.loop.audit import audit
from leadline.core.loop.config import LoopConfig
from leadline.core.session.events import (
    AbortCause,
    AssistantSaid,
    InboxSpliced,
    RequestHeader,
    RequestSent,
    ToolAnswered,
    UserEntered,
)
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import SideEffect, Tool, ToolOutput
from leadline.testing.agents import AgentStack, agent_stack
from leadline.testing.clock import ManualClock
from leadline.testing.scripted import Call, Playable, Reply, ScriptedModel

pytestmark = pytest.mark.anyio

Next = Callable[[PreStep], Awaitable[StepDecision]]


def add_tool(
    stack: AgentStack,
    name: str,
    body: Callable[[object, ToolInvocation], Awaitable[object]] | None = None,
    effects: frozenset[SideEffect] = frozenset(),
) -> None:
    async def ok(args: object, call: ToolInvocation) -> str:
        return "ok"

    stack.tools.register(
        stack.ctx,
        Tool(name, f"The tool {name}.", {"type": "object"}, body or ok, side_effects=effects),  # pyright: ignore[reportArgumentType]
    )


async def asked(agent: Agent, text: str = "go") -> None:
    agent.send(text)
    await agent.when_idle()


def reason(agent: Agent) -> str:
    assert agent.last_turn_end is not None
    return agent.last_turn_end.reason


def types(agent: Agent) -> list[str]:
    return [line.type for line in agent.session.logged]


def texts(request: LlmRequest) -> list[str]:
    return [
        "".join(part.text for part in message.content if isinstance(part, Text))
        for message in request.conversation
        if isinstance(message, UserMessage)
    ]


async def test_a_turn_is_logged_in_the_order_in_which_it_happens(tmp_path: Path) -> None:
    model = ScriptedModel([Reply("looking", (Call("look"), Call("look"))), "done"])
    async with agent_stack(tmp_path, model) as stack:
        add_tool(stack, "look")
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        assert types(agent) == [
            "agent/inbox/spliced",
            "turn/start",
            "step/start",
            "user/message",
            "request/header",
            "request/sent",
            "assistant/message",
            "tool/call",
            "tool/result",
            "tool/call",
            "tool/result",
            "step/end",
            "step/start",
            "request/sent",
            "assistant/message",
            "step/end",
            "turn/end",
        ]
        assert reason(agent) == "completed"


async def test_every_request_is_in_the_log_before_its_first_byte(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    def respond(request: LlmRequest) -> Playable:
        last = agent.session.logged[-1]
        assert last.type == RequestSent.TYPE
        sent = last.as_(RequestSent)
        seen.append((sent.digest, sent.purpose))
        return "ok"

    model = ScriptedModel(respond)
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec(purpose=Purpose("test/asking", {"n": 1})))
        await asked(agent)
        assert seen == [(model.digests[0], "test/asking")]
        assert next(agent.session.of(RequestSent)).purpose_data == {"n": 1}


async def test_every_request_can_be_made_again_from_the_log_on_disk(tmp_path: Path) -> None:
    model = ScriptedModel(
        [Reply("é\u2028", (Call("look", {"q": "ü"}),)), "one", Reply("two", reasoning="hm"), "three"]
    )
    async with agent_stack(tmp_path, model) as stack:
        add_tool(stack, "look")
        agent = await stack.agents.create(
            AgentSpec(
                persona="You test.",
                options=CallOptions(max_tokens=99),
                purpose=Purpose("test/audit", {"n": 1}),
            )
        )
        await asked(agent)
        add_tool(stack, "late")
        await asked(agent, "again")
        await asked(agent, "and again")
        await agent.dispose()
        read = await stack.sessions.read(agent.id)
        found = audit(read, stack.ctx.get(Models))
        assert [it.digest for it in read.of(RequestSent)] == model.digests
        assert found.ok, found
        assert found.proved == len(model.digests)
        assert [it.purpose_data for it in read.of(RequestSent)] == [{"n": 1}, None, None, None]


async def test_an_audit_finds_a_request_that_the_log_does_not_stand_for(tmp_path: Path) -> None:
    model = ScriptedModel(["one"])
    async with agent_stack(tmp_path, model, invariants=False) as stack:
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        agent.session.append(
            RequestSent(purpose="forged", model=str(model.ref), digest=model.digests[0], messages=1)
        )
        found = audit(agent.session, stack.ctx.get(Models))
        assert (found.proved, found.requests) == (1, 2)
        assert "it had 1 messages, the log before it gives 2" in str(found.problems[0])


async def test_the_header_is_written_only_when_it_changes(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel(lambda request: "ok")) as stack:
        agent = await stack.agents.create(AgentSpec())
        other = await stack.agents.create(AgentSpec(persona="Someone else."))
        await asked(agent)
        add_tool(stack, "look")
        await asked(agent)
        await asked(other)
        await asked(agent)
        assert [it.reason for it in agent.session.of(RequestHeader)] == ["initial", "change"]
        session_id = agent.id
        await agent.dispose()
        again = await stack.agents.resume(session_id)
        await asked(again)
        assert len(list(again.session.of(RequestHeader))) == 2


async def test_requests_of_one_conversation_extend_each_other(tmp_path: Path) -> None:
    model = ScriptedModel([Call("look"), "a", "b"])
    async with agent_stack(tmp_path, model) as stack:
        add_tool(stack, "look")
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        await asked(agent)
        before, *later = [list(request.conversation) for request in model.requests]
        for now in later:
            assert now[: len(before)] == before
            before = now


async def test_each_successful_call_leaves_one_answer_even_if_it_is_empty(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel(["", "now"])) as stack:
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        said = list(agent.session.of(AssistantSaid))
        assert [it.message.text for it in said] == ["", "now"]
        assert [m.id for m in agent.session.derived().conversation if m.id in {said[0].message.id}] == []


# what plugins decide about the input


async def test_a_rejected_prompt_ends_its_turn_blocked_and_does_not_park_the_next(tmp_path: Path) -> None:
    model = ScriptedModel(["fine"])
    async with agent_stack(tmp_path, model) as stack:

        async def no_secrets(signal: PreStep, call_next: Next) -> StepDecision:
            if "secret" in str(signal.messages):
                return Reject("no secrets here")
            return await call_next(signal)

        stack.ctx.on(PreStep, no_secrets)
        agent = await stack.agents.create(AgentSpec())
        agent.send("a secret")
        agent.send("a question")
        await agent.when_idle()
        ends = [line.json() for line in agent.session.logged if line.type == "turn/end"]
        assert [it["reason"] for it in ends] == ["blocked", "completed"]
        assert ends[0]["cause"] == {"kind": "plugin", "detail": "no secrets here"}
        assert [it.outcome for it in agent.session.of(InboxSpliced) if it.removed] == ["dropped"]
        assert texts(model.requests[0]) == ["a question"]


async def test_input_can_be_rewritten_extended_and_merged(tmp_path: Path) -> None:
    model = ScriptedModel(["fine"])
    async with agent_stack(tmp_path, model) as stack:

        async def merge(signal: PreStep, call_next: Next) -> StepDecision:
            merged = agent.message(
                " + ".join(part.text for m in signal.messages for part in m.content if isinstance(part, Text))
            )
            return await call_next(replace(signal, messages=(merged, agent.message("a hint"))))

        stack.ctx.on(PreStep, merge)
        agent = await stack.agents.create(AgentSpec())
        first = agent.inject("one")
        second = agent.send("two")
        await agent.when_idle()
        assert texts(model.requests[0]) == ["one + two", "a hint"]
        assert [it.claims for it in agent.session.of(UserEntered)] == [(first.id, second.id), ()]
        assert len(agent.inbox) == 0


async def test_input_rewritten_to_nothing_completes_the_turn_without_a_step(tmp_path: Path) -> None:
    model = ScriptedModel()
    async with agent_stack(tmp_path, model) as stack:

        async def swallow(signal: PreStep, call_next: Next) -> StepDecision:
            return Enter(())

        stack.ctx.on(PreStep, swallow)
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        assert types(agent)[1:] == ["turn/start", "agent/inbox/spliced", "turn/end"]
        assert reason(agent) == "completed"


async def test_what_is_cancelled_while_plugins_decide_does_not_enter(tmp_path: Path) -> None:
    model = ScriptedModel(["fine"])
    async with agent_stack(tmp_path, model) as stack:

        async def slow(signal: PreStep, call_next: Next) -> StepDecision:
            agent.inbox.cancel(hint.id)
            return await call_next(signal)

        effect = stack.ctx.on(PreStep, slow)
        agent = await stack.agents.create(AgentSpec())
        hint = agent.inject("hint")
        await asked(agent, "question")
        await effect.dispose()
        assert texts(model.requests[0]) == ["question"]


async def test_a_prompt_is_not_lost_when_the_turn_is_cancelled_before_it_entered(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel()) as stack:
        deciding = anyio.Event()

        async def forever(signal: PreStep, call_next: Next) -> StepDecision:
            deciding.set()
            await anyio.sleep_forever()
            raise AssertionError

        stack.ctx.on(PreStep, forever)
        agent = await stack.agents.create(AgentSpec())
        agent.send("keep me")
        await deciding.wait()
        await agent.cancel()
        assert [m.content[0] for m in agent.inbox.next_turn] == [Text("keep me")]
        assert reason(agent) == "aborted"


async def test_a_prompt_is_not_lost_when_the_prompt_template_is_broken(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel(["fine"])) as stack:
        agent = await stack.agents.create(AgentSpec())
        effect = stack.prompt.section(stack.ctx, "broken", 5, "uses {{nothing}}")
        await asked(agent, "keep me")
        assert reason(agent) == "error"
        await effect.dispose()
        await asked(agent, "go on")
        assert [it.message.content[0] for it in agent.session.of(UserEntered)] == [
            Text("keep me"),
            Text("go on"),
        ]


async def test_no_kill_at_any_line_loses_a_prompt(tmp_path: Path) -> None:
    """Every prefix of the log has each prompt that was sent exactly once: queued, or entered."""
    async with agent_stack(tmp_path / "a", ScriptedModel(["one", "two"])) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.inject("hint")
        agent.send("first")
        agent.send("second")
        await agent.when_idle()
        session_id, log = agent.id, (tmp_path / "a" / "sessions" / f"{agent.id}.jsonl").read_bytes()
    lines = log.splitlines(keepends=True)
    for cut in range(4, len(lines) + 1):
        folder = tmp_path / f"cut{cut}"
        (folder / "sessions").mkdir(parents=True)
        (folder / "sessions" / f"{session_id}.jsonl").write_bytes(b"".join(lines[:cut]))
        async with agent_stack(folder, ScriptedModel()) as stack:
            agent = await stack.agents.resume(session_id)
            entered = [it.message.id for it in agent.session.of(UserEntered)]
            queued = [m.id for m in (*agent.inbox.next_step, *agent.inbox.next_turn)]
            assert len({*entered, *queued}) == len(entered) + len(queued) == 3
        shutil.rmtree(folder)


# steering, stopping, concluding


async def test_steering_during_a_turn_joins_its_next_step(tmp_path: Path) -> None:
    model = ScriptedModel([Call("look"), "done"])
    async with agent_stack(tmp_path, model) as stack:

        async def steer(args: object, call: ToolInvocation) -> str:
            agent.steer("also this")
            return "ok"

        add_tool(stack, "look", steer)
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        assert agent.session.place.turn == 1
        assert texts(model.requests[1]) == ["go", "also this"]
        assert isinstance(model.requests[1].conversation[2], ToolMessage)


async def test_whoever_objects_to_the_end_does_so_by_steering(tmp_path: Path) -> None:
    model = ScriptedModel(["first", "second"])
    async with agent_stack(tmp_path, model) as stack:
        asked_at: list[int] = []

        async def object_once(signal: TurnStopping) -> None:
            asked_at.append(signal.step)
            if len(asked_at) == 1:
                signal.agent.steer("not yet")

        stack.ctx.on(TurnStopping, object_once)
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        assert asked_at == [1, 2]
        assert agent.session.place.turn == 1
        assert reason(agent) == "completed"


async def test_a_tool_can_conclude_the_turn_but_not_skip_what_waits(tmp_path: Path) -> None:
    model = ScriptedModel([Call("finish"), "after all"])
    async with agent_stack(tmp_path, model) as stack:

        async def finish(args: object, call: ToolInvocation) -> ToolOutput:
            if len(model.requests) == 1:
                agent.inject("wait")
            return ToolOutput("bye", concludes_turn=True)

        add_tool(stack, "finish", finish)
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        assert len(model.requests) == 2
        model.push(Call("finish"))
        await asked(agent)
        assert len(model.requests) == 3
        assert reason(agent) == "completed"


async def test_a_plugin_that_fails_ends_the_turn_and_never_the_loop(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel(["a", "b"])) as stack:

        async def fail(signal: TurnStopping) -> None:
            if signal.turn == 1:
                raise RuntimeError("cannot stop")

        stack.ctx.on(TurnStopping, fail)
        agent = await stack.agents.create(AgentSpec())
        agent.send("one")
        agent.send("two")
        await agent.when_idle()
        ends = [line.json() for line in agent.session.logged if line.type == "turn/end"]
        assert [it["reason"] for it in ends] == ["error", "completed"]
        assert "cannot stop" in str(ends[0]["error"])


async def test_the_request_can_be_replaced_by_a_listener(tmp_path: Path) -> None:
    model = ScriptedModel(["ok", "ok"])
    async with agent_stack(tmp_path, model) as stack:

        async def warmer(
            signal: ProposeRequest, call_next: Callable[[ProposeRequest], Awaitable[CallConfig]]
        ) -> CallConfig:
            agent.inject("joins the next request")
            return structs.replace(await call_next(signal), temperature=0.5)

        effect = stack.ctx.on(ProposeRequest, warmer)
        agent = await stack.agents.create(AgentSpec())
        agent.send("go")
        await agent.when_idle()
        await effect.dispose()
        assert model.requests[0].config.temperature == 0.5
        assert texts(model.requests[1]) == ["go", "joins the next request"]


# budgets


async def test_a_turn_ends_typed_when_its_steps_are_used(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel(lambda request: Call("look"))) as stack:
        add_tool(stack, "look")
        agent = await stack.agents.create(AgentSpec(budget=TurnBudget(max_steps=3)))
        await asked(agent)
        assert agent.last_turn_end is not None
        assert agent.last_turn_end.reason == "budget"
        assert agent.last_turn_end.cause == AbortCause(
            "budget", "max_steps: all 3 steps of the turn are used"
        )
        assert len(list(agent.session.of(AssistantSaid))) == 3


async def test_a_turn_ends_typed_when_its_tokens_are_used(tmp_path: Path) -> None:
    reply = Reply(calls=(Call("look"),), usage=Usage(input=60, output=10))
    async with agent_stack(tmp_path, ScriptedModel(lambda request: reply)) as stack:
        add_tool(stack, "look")
        agent = await stack.agents.create(AgentSpec(budget=TurnBudget(max_tokens=300)))
        await asked(agent)
        assert agent.last_turn_end is not None
        cause = agent.last_turn_end.cause
        assert cause is not None
        assert cause.kind == "budget"
        assert cause.detail.startswith("the budget of turn 1 is used up: ")
        assert "of 300 tokens" in cause.detail
        assert agent.account.spent.tokens == 70 * len(list(agent.session.of(AssistantSaid)))
        assert 70 <= agent.account.spent.tokens <= 300 + 70


async def test_a_turn_ends_typed_when_its_time_is_used(tmp_path: Path) -> None:
    clock = ManualClock()
    model = ScriptedModel([Reply("slowly", hang=True)])
    async with agent_stack(tmp_path, model, clock_service=clock) as stack:
        agent = await stack.agents.create(AgentSpec(budget=TurnBudget(max_seconds=60)))
        agent.send("go")
        await clock.until_sleeping()
        await anyio.wait_all_tasks_blocked()
        await clock.advance(61)
        await agent.when_idle()
        assert reason(agent) == "budget"
        assert next(agent.session.of(AssistantSaid)).state == "interrupted"
        assert clock.sleepers == 0


# current facts


async def test_current_facts_are_told_only_when_they_change(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: "ok")
    async with agent_stack(tmp_path, model) as stack:
        facts: list[str] = ["branch main"]

        async def provider(scope: object) -> str:
            return facts[0]

        effect = stack.prompt.context(stack.ctx, "git", 0, provider)
        agent = await stack.agents.create(AgentSpec())
        for _ in range(2):
            await asked(agent)
        facts[0] = "branch topic"
        await asked(agent)
        await effect.dispose()
        await asked(agent)
        told = [it.message for it in agent.session.of(UserEntered) if it.message.source.form == "snapshot"]
        assert len(told) == 3
        assert (
            "branch main" in str(told[0]) and "branch topic" in str(told[1]) and "no longer" in str(told[2])
        )
        session_id = agent.id
        await agent.dispose()
        again = await stack.agents.resume(session_id)
        await asked(again)
        assert len([it for it in again.session.of(UserEntered) if it.message.source.form == "snapshot"]) == 3


# side effects


@pytest.mark.case("S25")
@pytest.mark.parametrize(
    "effects",
    [frozenset[SideEffect](), frozenset[SideEffect](("reads",)), frozenset[SideEffect](("writes",))],
)
async def test_the_intent_is_synced_before_a_side_effect_other_than_reads(
    tmp_path: Path, effects: frozenset[SideEffect], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel([Call("act"), "done"])
    async with agent_stack(tmp_path, model) as stack:
        order: list[str] = []

        async def act(args: object, call: ToolInvocation) -> str:
            order.append("act")
            return "ok"

        add_tool(stack, "act", act, effects)
        agent = await stack.agents.create(AgentSpec())
        sync = type(agent.session).sync

        async def noted(session: object) -> None:
            order.append("sync after " + agent.session.logged[-1].type)
            await sync(agent.session)

        monkeypatch.setattr(type(agent.session), "sync", noted)
        await asked(agent)
        before = ["sync after tool/call"] if "writes" in effects else []
        assert order == [*before, "act", "sync after turn/end"]


async def test_results_stand_in_the_models_order_whatever_ends_first(tmp_path: Path) -> None:
    model = ScriptedModel([Reply(calls=tuple(Call("wait", {"n": n}) for n in range(3))), "done"])
    async with agent_stack(tmp_path, model) as stack:
        released: list[int] = []
        turns = [anyio.Event() for _ in range(4)]
        turns[3].set()

        async def wait(args: dict[str, int], call: ToolInvocation) -> str:
            await turns[args["n"] + 1].wait()
            released.append(args["n"])
            turns[args["n"]].set()
            return f"result {args['n']}"

        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        stack.tools.register(stack.ctx, Tool("wait", "Waits.", schema, wait, parallel=True))
        agent = await stack.agents.create(AgentSpec())
        with anyio.fail_after(5):
            await asked(agent)
        assert released == [2, 1, 0]
        assert [it.message.content for it in agent.session.of(ToolAnswered)] == [
            "result 0",
            "result 1",
            "result 2",
        ]


async def test_synced_durability_also_syncs_before_each_model_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def respond(request: LlmRequest) -> Playable:
        order.append("asked")
        return "ok"

    async with agent_stack(tmp_path, ScriptedModel(respond), loop=LoopConfig(durability="synced")) as stack:
        agent = await stack.agents.create(AgentSpec())

        async def noted(session: object) -> None:
            order.append("synced " + agent.session.logged[-1].type)

        monkeypatch.setattr(type(agent.session), "sync", noted)
        await asked(agent)
        assert order == ["synced request/sent", "asked", "synced turn/end"]
