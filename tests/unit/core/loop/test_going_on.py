"""A process dies at any border between two events; the next one goes on, and it ends as if nobody had died."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import anyio
import pytest

from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.core.agent.agent import Agent
from leadline.core.agent.signals import Enter, PreStep, Reject, StepDecision, TurnStopping
from leadline.core.agent.spec import AgentSpec, CallOptions, TurnBudget
from leadline.core.clock import Clock
from leadline.core.llm.adapter import Models
from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.messages import AssistantMessage, MessageSource, Text, ToolMessage, UserMessage
from leadline.core.llm.request import LlmRequest
from leadline.core.loop.audit import audit
from leadline.core.loop.config import LoopConfig, RetryConfig
from leadline.core.session.derive import OUTCOME_UNKNOWN_TEXT, derive
from leadline.core.session.errors import SessionWriteFailed
from leadline.core.session.events import (
    ApprovalAsked,
    ApprovalDecided,
    ApprovalOutcome,
    AssistantSaid,
    Event,
    InboxSpliced,
    RequestEnded,
    RequestSent,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnResumed,
    TurnStart,
)
from leadline.core.session.log import Session
from leadline.core.session.registry import EventTypes
from leadline.core.tools.approval import ApprovalDecision, ApprovalRequest, Approvals
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.policy import Ask, PreExecute
from leadline.core.tools.spec import SideEffect, Tool, ToolOutput
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.testing.agents import AgentStack, agent_stack
from leadline.testing.clock import ManualClock
from leadline.testing.ids import SeededIds
from leadline.testing.scripted import Call, Playable, Reply, ScriptedModel

pytestmark = pytest.mark.anyio

OBJECT = {"type": "object", "properties": {"q": {"type": "integer"}}}
Body: TypeAlias = Callable[[ToolInvocation], Awaitable[ToolOutput | str]]
QUICK = RetryConfig(first_s=1e-6, attempts=3)
BUSY = Wait("OVERLOADED", "busy")


@dataclass(frozen=True)
class Story:
    """What a model says, answer by answer, and what it is asked."""

    name: str
    answers: Sequence[Playable | Sequence[Playable]]
    """An answer that is a sequence takes as many attempts."""
    prompts: Sequence[str] = ("go",)
    spec: AgentSpec = field(default_factory=AgentSpec)
    setup: Callable[[AgentStack], None] = lambda stack: None
    loop: LoopConfig = field(default_factory=lambda: LoopConfig(retry=QUICK))
    asks: Mapping[str, ApprovalOutcome] = field(default_factory=dict[str, ApprovalOutcome])
    """Tools that somebody is asked about, and what they answer."""


@dataclass
class Life:
    """What one process did."""

    ran: list[str] = field(default_factory=list[str])
    """Ids of the calls whose bodies ran."""
    repeated: list[str] = field(default_factory=list[str])
    asked: list[str] = field(default_factory=list[str])
    """Ids of the calls that somebody was asked about."""
    digests: list[str] = field(default_factory=list[str])
    keys: list[str | None] = field(default_factory=list["str | None"])
    lines: list[bytes] = field(default_factory=list[bytes])
    session: Session | None = None
    proved: bool = False
    done: int = 0
    """Requests and bodies that were begun."""
    hung: bool = False


def add_tools(stack: AgentStack, life: Life, hang: int = 0) -> None:
    def tool(name: str, *effects: SideEffect, parallel: bool = False, body: Body | None = None) -> None:
        async def run(args: object, call: ToolInvocation) -> ToolOutput | str:
            life.ran.append(call.call_id)
            if call.repeated:
                life.repeated.append(call.call_id)
            life.done += 1
            if life.done == hang:
                await anyio.sleep_forever()
            return f"{name} {call.call_id}" if body is None else await body(call)

        stack.tools.register(
            stack.ctx,
            Tool(name, f"{name}.", OBJECT, run, side_effects=frozenset(effects), parallel=parallel),  # pyright: ignore[reportArgumentType]
        )

    async def nest(call: ToolInvocation) -> str:
        looked = await call.invoke("look", {"q": 1})
        acted = await call.invoke("act", {"q": 2})
        again = await call.invoke("look", {"q": 3})
        return " / ".join(one.content for one in (looked, acted, again))

    async def steer(call: ToolInvocation) -> str:
        agent = stack.agents.get(str(call.agent_id))
        if not any(message.source.name == "steer" for message in queued(agent.session)):
            agent.inject(agent.message("mind the gap", notice("steer")))
        return "steered"

    async def finish(call: ToolInvocation) -> ToolOutput:
        return ToolOutput("finished", concludes_turn=True)

    tool("look", "reads", parallel=True)
    tool("compute", parallel=True)
    tool("act", "writes")
    tool("call_home", "network")
    tool("nest", "reads", body=nest)
    tool("steer", "reads", body=steer)
    tool("finish", body=finish)


async def add_approver(stack: AgentStack, life: Life, story: Story) -> None:
    class Somebody(Approvals):
        async def decide(self, request: ApprovalRequest) -> ApprovalDecision:
            life.asked.append(request.call_id)
            return ApprovalDecision(story.asks[request.tool])

    async def provide(ctx: Context, config: None) -> None:
        ctx.provide(Approvals, Somebody())

    async def ask(signal: PreExecute) -> Ask | None:
        return Ask("sure?") if signal.call.name in story.asks else None

    stack.ctx.on(PreExecute, ask)
    await stack.ctx.mount(Plugin("somebody", provide, provides=(Approvals,)))


def notice(name: str) -> MessageSource:
    return MessageSource("plugin", name, "notice")


def queued(session: Session) -> list[UserMessage]:
    return [message for spliced in session.of(InboxSpliced) for message in spliced.inserted]


def speaker(story: Story, agents: list[Agent]) -> Callable[[LlmRequest], Playable]:
    """The model: what it says depends on what the log has of it, as a recorded one's answers do."""

    def respond(request: LlmRequest) -> Playable:
        said, failed = 0, 0
        for line in agents[0].session.logged:
            if line.type == AssistantSaid.TYPE and line.as_(AssistantSaid).state != "interrupted":
                said, failed = said + 1, 0
            failed += line.type == RequestEnded.TYPE and line.as_(RequestEnded).failure is not None
        answer = story.answers[said]
        return answer if isinstance(answer, (Reply, Call, str, Wait, Stop)) else answer[failed]

    return respond


async def live(
    folder: Path, story: Story, session_id: str | None = None, *, proceed: bool = False, hang: int = 0
) -> Life:
    """One process: it starts the story, or goes on with it, and ends it.

    `hang`: which thing that it does, a request or a body, does not end until the agent is cancelled.
    """
    life, agents = Life(), list[Agent]()
    speak = speaker(story, agents)

    def respond(request: LlmRequest) -> Playable:
        life.done += 1
        return Reply("I am just about", hang=True) if life.done == hang else speak(request)

    model = ScriptedModel(respond)
    seed = len(list((folder / "sessions").glob("*"))) if session_id is None else folder.name
    async with agent_stack(folder, model, loop=story.loop, ids_service=SeededIds(seed)) as stack:
        add_tools(stack, life, hang)
        if story.asks:
            await add_approver(stack, life, story)
        story.setup(stack)
        if session_id is None:
            agent = await stack.agents.create(story.spec)
        else:
            agent = await stack.agents.resume(session_id, story.spec)
        agents.append(agent)
        prompts = [message for message in queued(agent.session) if message.source.kind == "user"]
        for prompt in story.prompts[len(prompts) :]:
            agent.send(prompt, wake=False)
        if agent.session.place.turn_open or proceed:
            agent.proceed()
        else:
            agent.wake()
        if hang:
            await anyio.wait_all_tasks_blocked()
            life.hung = agent.status == "running"
            await agent.cancel()
        await agent.when_idle()
        life.digests, life.keys = model.digests, model.idempotency_keys
        life.session = await stack.sessions.read(agent.id)
        found = audit(life.session, stack.ctx.get(Models))
        life.proved = found.proved == found.requests and len(found.problems) == len(life.session.problems)
        assert not stack.kernel.reports, stack.kernel.reports
        await agent.dispose()
    path = folder / "sessions" / f"{life.session.id}.jsonl"
    life.lines = path.read_bytes().splitlines(keepends=True)
    return life


def told(session: Session) -> list[object]:
    """What a model reads of it in the end."""
    out: list[object] = []
    for message in session.derived().conversation:
        match message:
            case UserMessage():
                text = "".join(part.text for part in message.content if isinstance(part, Text))
                out.append(("user", text, message.source.kind, message.source.name))
            case AssistantMessage():
                out.append(("assistant", message.content))
            case ToolMessage():
                out.append(("tool", message.call_id, message.content))
    return out


def ends(session: Session) -> list[object]:
    return [
        (it.turn, it.reason, it.cause, it.failure and it.failure.code, it.error) for it in session.of(TurnEnd)
    ]


def cut(folder: Path, session_id: str, lines: Sequence[bytes]) -> Path:
    (folder / "sessions").mkdir(parents=True)
    (folder / "sessions" / f"{session_id}.jsonl").write_bytes(b"".join(lines))
    return folder


async def read(folder: Path, session_id: str) -> Session:
    return await JsonlSessions(folder / "sessions", clock=Clock(), types=EventTypes()).read(session_id)


def without_unknown(conversation: list[object], unknown: set[str]) -> list[object]:
    """The conversation with the results of the calls whose outcome nobody knows as such, nested ones included."""
    out: list[object] = []
    for one in conversation:
        match one:
            case ("tool", str(call_id), _) if call_id in unknown:
                out.append(("tool", call_id, "unknown"))
            case _:
                out.append(one)
    return out


def check(story: Story, whole: Life, before: Session, after: Life) -> None:
    """What holds wherever the process died."""
    session = after.session
    assert session is not None
    assert whole.session is not None
    assert after.proved, "a request is not what the log derives"
    called = {it.call_id: it for it in before.of(ToolCalled)}
    answered = {it.message.call_id for it in before.of(ToolAnswered)}
    said = {it.digest for it in before.of(AssistantSaid)}
    started = {call_id for call_id in called if call_id not in answered}
    decided = {it.call_id: it.outcome for it in before.of(ApprovalDecided)}
    asked = {it.call_id for it in before.of(ApprovalAsked)}
    unbegun = {it for it in started & asked if decided.get(it) != "allowed-once"}
    begun = started - unbegun
    unsafe = {call_id for call_id in begun if not set(called[call_id].side_effects) <= {"reads"}}
    assert len(after.asked) == len(set(after.asked)), "somebody was asked twice"
    assert not set(decided) & set(after.asked), "somebody was asked what they had answered"
    assert unbegun - set(decided) <= set(after.asked), "nobody was asked again about a call that waited"
    assert not {it for it, outcome in decided.items() if outcome != "allowed-once"} & set(after.ran)
    assert not said & set(after.digests), "an answer that is logged was asked for again"
    assert not answered & set(after.ran), "a call that has its result was run again"
    assert not unsafe & set(after.ran), "a side effect was repeated"
    assert set(after.repeated) == {it for it in begun - unsafe if it in after.ran}
    flights = [it for it in before.of(RequestSent) if it.digest not in said]
    ended = {(it.turn, it.step, it.attempt) for it in before.of(RequestEnded)}
    if flights and (flights[-1].turn, flights[-1].step, flights[-1].attempt) not in ended:
        assert after.digests[0] == flights[-1].digest, "what was in flight was not sent again as it was"
        assert after.keys[0] == flights[-1].idempotency_key
    synthesised = {it.message.call_id for it in session.of(ToolAnswered) if it.synthesised}
    assert synthesised == unsafe | {it.message.call_id for it in before.of(ToolAnswered) if it.synthesised}
    unknown = {it.rpartition(":")[0] or it for it in synthesised}
    assert without_unknown(told(session), unknown) == without_unknown(told(whole.session), unknown)
    for call_id in unsafe:
        (result,) = [it for it in session.of(ToolAnswered) if it.message.call_id == call_id]
        assert result.synthesised
        assert result.message.content == OUTCOME_UNKNOWN_TEXT
    assert ends(session) == ends(whole.session)
    assert len([*session.of(TurnStart)]) == len([*whole.session.of(TurnStart)]), "a new turn was opened"
    ids = [it.call_id for it in session.of(ToolCalled)]
    assert len(ids) == len(set(ids))


def gate(decide: Callable[[PreStep], StepDecision | None]) -> Callable[[AgentStack], None]:
    def setup(stack: AgentStack) -> None:
        async def listen(
            signal: PreStep, call_next: Callable[[PreStep], Awaitable[StepDecision]]
        ) -> StepDecision:
            return decide(signal) or await call_next(signal)

        stack.ctx.on(PreStep, listen)

    return setup


def refuse(signal: PreStep) -> StepDecision | None:
    return Reject("not today") if signal.step == 1 and signal.turn == 1 else None


def refuse_later(signal: PreStep) -> StepDecision | None:
    return Reject("no more") if signal.step == 2 else None


def merge(signal: PreStep) -> StepDecision | None:
    if len(signal.messages) < 2:
        return None
    first = signal.messages[0]
    return Enter((UserMessage(f"{first.id}-merged", (Text("both"),), first.source),))


def swallow(signal: PreStep) -> StepDecision | None:
    return Enter(())


def object_once(stack: AgentStack) -> None:
    async def listen(signal: TurnStopping) -> None:
        if not any(message.source.name == "critic" for message in queued(signal.agent.session)):
            signal.agent.inject(signal.agent.message("are you sure?", notice("critic")))

    stack.ctx.on(TurnStopping, listen)


def facts(stack: AgentStack) -> None:
    async def weather(scope: object) -> str:
        return "it rains"

    stack.prompt.context(stack.ctx, "weather", 10, weather)


PARALLEL = Reply(
    "looking", tuple(Call(name, id=f"c{n}") for n, name in enumerate(("look", "compute", "look")))
)
MIXED = Reply(
    "doing",
    tuple(Call(name, id=f"m{n}") for n, name in enumerate(("look", "act", "look", "call_home", "nothing"))),
)
STORIES = [
    Story("a word", ["done"]),
    Story("two turns", ["one", Call("look", id="c1"), "two"], prompts=("go", "go on")),
    Story("parallel reads", [PARALLEL, "done"]),
    Story("reads and side effects", [MIXED, Call("act", id="w"), "done"]),
    Story(
        "asked about",
        [MIXED, "done"],
        asks={"look": "allowed-once", "act": "allowed-once", "call_home": "denied"},
    ),
    Story("nobody answers", [Call("act", id="w"), "done"], asks={"act": "expired"}),
    Story(
        "asked about nested calls",
        [Call("nest", id="n"), "done"],
        asks={"look": "denied", "act": "allowed-once"},
    ),
    Story("busy", [[BUSY, BUSY, Call("look", id="c1")], [BUSY, "done"]]),
    Story("gives up", [Call("look", id="c1"), [BUSY, BUSY, BUSY]]),
    Story("stopped", [Call("look", id="c1"), Stop("AUTH", "no key")]),
    Story("nested", [Reply(calls=(Call("nest", id="n1"), Call("nest", id="n2"))), "done"]),
    Story(
        "corrected",
        ["", Reply("{call}", leaked_call=True), Call("look", id="c1"), Reply("", state="done"), "done"],
    ),
    Story("useless twice", ["", ""]),
    Story(
        "cut in a call",
        [
            Reply("a", (Call("act", id="a1"),), state="length"),
            Reply("b", (Call("act", id="b1"),), state="length"),
            "done",
        ],
        spec=AgentSpec(options=CallOptions(max_tokens=77)),
    ),
    Story(
        "cut in a call too often",
        [Reply(str(n), (Call("act", id=f"a{n}"),), state="length") for n in range(3)],
    ),
    Story("cut in words", [Reply("and then", state="length")]),
    Story("cut in words, then told more", [Reply("x", state="length"), "y"], setup=object_once),
    Story("refused", [Reply("no", state="refused", failure=Stop("REFUSED", "not this"))]),
    Story("concludes", [Reply(calls=(Call("look", id="c1"), Call("finish", id="f")))]),
    Story("steered", [Reply(calls=(Call("steer", id="s1"),)), "done"]),
    Story("an objection", ["done", "sure"], setup=object_once),
    Story("blocked", ["fine"], prompts=("go", "go on"), setup=gate(refuse)),
    Story("blocked later", [Call("look", id="c1"), "never"], setup=gate(refuse_later)),
    Story("merged", [Reply(calls=(Call("steer", id="s1"),)), "done"], setup=gate(merge)),
    Story("swallowed", ["never"], setup=gate(swallow)),
    Story("with facts", [Call("look", id="c1"), "done"], setup=facts),
    Story(
        "out of steps",
        [Call("look", id="c1"), Call("look", id="c2"), "never"],
        spec=AgentSpec(budget=TurnBudget(max_steps=2)),
    ),
    Story(
        "out of tokens",
        [Call("look", id="c1"), Call("look", id="c2"), Call("look", id="c3"), "never"],
        spec=AgentSpec(budget=TurnBudget(max_tokens=120)),
    ),
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
async def test_wherever_a_process_dies_the_next_one_ends_the_same(tmp_path: Path, story: Story) -> None:
    whole = await live(tmp_path / "whole", story)
    assert whole.session is not None
    for border in range(1, len(whole.lines) + 1):
        folder = cut(tmp_path / f"cut{border}", whole.session.id, whole.lines[:border])
        before = await read(folder, whole.session.id)
        after = await live(folder, story, whole.session.id)
        check(story, whole, before, after)


async def test_a_line_that_was_half_written_is_no_fact(tmp_path: Path) -> None:
    story = next(story for story in STORIES if story.name == "reads and side effects")
    whole = await live(tmp_path / "whole", story)
    assert whole.session is not None
    for border, (_, torn) in enumerate(pairwise(whole.lines), 1):
        lines = [*whole.lines[:border], torn[: len(torn) // 2]]
        folder = cut(tmp_path / f"cut{border}", whole.session.id, lines)
        before = await read(folder, whole.session.id)
        check(story, whole, before, await live(folder, story, whole.session.id))


@pytest.mark.parametrize("stride", [3, 4, 5])
@pytest.mark.parametrize(
    "story",
    [it for it in STORIES if it.name not in ("gives up", "out of tokens")],
    ids=lambda story: story.name,
)
async def test_processes_that_die_one_after_the_other_get_it_done(
    tmp_path: Path, story: Story, stride: int
) -> None:
    whole = await live(tmp_path / "whole", story)
    assert whole.session is not None
    lines, session_id = whole.lines[:1], whole.session.id
    for death in range(200):
        folder = cut(tmp_path / f"life{death}", session_id, lines)
        before = await read(folder, session_id)
        after = await live(folder, story, session_id)
        check(story, whole, before, after)
        reached = len(lines) + stride
        if reached >= len(after.lines):
            break
        lines = after.lines[:reached]
    else:
        pytest.fail("it never ended")
    assert after.session is not None
    assert ends(after.session) == ends(whole.session)
    texts = [it.message.text for it in after.session.of(AssistantSaid)]
    assert texts == [it.message.text for it in whole.session.of(AssistantSaid)]


async def killed(folder: Path, story: Story, behind: str, nth: int = -1) -> tuple[Path, str]:
    """A folder as a process leaves it that dies right behind an event of a type."""
    whole = await live(folder / "whole", story)
    assert whole.session is not None
    at = [number for number, line in enumerate(whole.lines) if f'"type":"{behind}"'.encode() in line][nth]
    return cut(folder / "cut", whole.session.id, whole.lines[: at + 1]), whole.session.id


async def test_a_turn_that_was_cut_off_ends_as_interrupted_when_somebody_says_something_else(
    tmp_path: Path,
) -> None:
    folder, session_id = await killed(tmp_path, Story("", [MIXED, "done"]), "tool/call", 1)
    async with agent_stack(folder, ScriptedModel(["as you like"])) as stack:
        agent = await stack.agents.resume(session_id)
        agent.send("stop that")
        await agent.when_idle()
        assert [it.reason for it in agent.session.of(TurnEnd)] == ["interrupted", "completed"]
        assert [it.error_code for it in agent.session.of(ToolAnswered) if it.synthesised] == [
            "TOOL_OUTCOME_UNKNOWN",
            "TOOL_NOT_STARTED",
            "TOOL_NOT_STARTED",
            "TOOL_NOT_STARTED",
        ]


async def test_a_session_that_is_only_looked_at_stays_as_it_is(tmp_path: Path) -> None:
    folder, session_id = await killed(tmp_path, Story("", [MIXED, "done"]), "request/sent")
    path = folder / "sessions" / f"{session_id}.jsonl"
    before = path.read_bytes()
    async with agent_stack(folder, ScriptedModel()) as stack:
        agent = await stack.agents.resume(session_id)
        assert agent.status == "idle"
        assert agent.last_turn_end is None
        agent.wake()
        await agent.when_idle()
        await agent.dispose()
        assert path.read_bytes() == before
        (entry,) = await stack.sessions.list()
        assert entry.status == "interrupted"


async def test_how_the_latest_turn_ended_is_known_again(tmp_path: Path) -> None:
    story = Story("", [Stop("AUTH", "no key")])
    whole = await live(tmp_path, story)
    assert whole.session is not None
    async with agent_stack(tmp_path, ScriptedModel()) as stack:
        agent = await stack.agents.resume(whole.session.id)
        assert agent.last_turn_end is not None
        assert agent.last_turn_end.failure == Stop("AUTH", "no key")


@pytest.mark.parametrize(("passed", "left"), [(4.0, 6.0), (60.0, 0.0), (-60.0, 10.0)])
async def test_of_a_wait_between_attempts_the_rest_is_waited(
    tmp_path: Path, passed: float, left: float
) -> None:
    clock = ManualClock()
    model = ScriptedModel([Wait("RATE_LIMIT", "slow down", retry_after_s=10.0)])
    async with agent_stack(tmp_path / "a", model, clock_service=clock) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.send("go")
        await clock.until_sleeping()
        lines = (tmp_path / "a" / "sessions" / f"{agent.id}.jsonl").read_bytes().splitlines(keepends=True)
        clock.jump(passed)
    folder = cut(tmp_path / "b", agent.id, lines)
    clock = ManualClock(clock.now())
    async with agent_stack(folder, ScriptedModel(["done"]), clock_service=clock) as stack:
        agent = await stack.agents.resume(agent.id)
        agent.proceed()
        with anyio.fail_after(5):
            while agent.status == "running":
                await anyio.wait_all_tasks_blocked()
                await clock.advance(10.0)
        assert clock.slept[0] == pytest.approx(left)
        assert [it.attempt for it in agent.session.of(RequestSent)] == [1, 2]


async def test_a_turn_has_the_seconds_that_are_left_of_its_budget(tmp_path: Path) -> None:
    clock = ManualClock()
    spec = AgentSpec(budget=TurnBudget(max_seconds=100.0))
    async with agent_stack(tmp_path / "a", ScriptedModel([Reply(hang=True)]), clock_service=clock) as stack:
        agent = await stack.agents.create(spec)
        agent.send("go")
        await anyio.wait_all_tasks_blocked()
        await clock.advance(70.0)
        agent.inject("by the way")
        lines = (tmp_path / "a" / "sessions" / f"{agent.id}.jsonl").read_bytes().splitlines(keepends=True)
    folder = cut(tmp_path / "b", agent.id, lines)
    clock = ManualClock(clock.now() + 5000)
    async with agent_stack(folder, ScriptedModel([Reply(hang=True)]), clock_service=clock) as stack:
        agent = await stack.agents.resume(agent.id, spec)
        agent.proceed()
        await anyio.wait_all_tasks_blocked()
        await clock.advance(29.0)
        assert agent.status == "running"
        await clock.advance(2.0)
        await agent.when_idle()
        (end,) = agent.session.of(TurnEnd)
        assert end.reason == "budget"
        (resumed,) = agent.session.of(TurnResumed)
        assert resumed.seconds == pytest.approx(70.0)


async def test_retries_are_counted_by_failures_and_not_by_deaths(tmp_path: Path) -> None:
    """An attempt that a kill cut off says nothing about the provider."""
    folder, session_id = await killed(tmp_path, Story("", ["done"]), "request/sent")
    for death in range(5):
        model = ScriptedModel([Reply(hang=True)])
        async with agent_stack(folder, model, loop=LoopConfig(retry=QUICK)) as stack:
            agent = await stack.agents.resume(session_id)
            agent.proceed()
            await anyio.wait_all_tasks_blocked()
            lines = (folder / "sessions" / f"{session_id}.jsonl").read_bytes().splitlines(keepends=True)
        folder = cut(tmp_path / f"death{death}", session_id, lines)
    async with agent_stack(
        folder, ScriptedModel([BUSY, BUSY, "done"]), loop=LoopConfig(retry=QUICK)
    ) as stack:
        agent = await stack.agents.resume(session_id)
        agent.proceed()
        await agent.when_idle()
        assert [it.reason for it in agent.session.of(TurnEnd)] == ["completed"]
        sent = [*agent.session.of(RequestSent)]
        assert [it.attempt for it in sent] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
        assert len({it.idempotency_key for it in sent}) == 1
        assert audit(agent.session, stack.ctx.get(Models)).ok


async def test_what_was_in_flight_is_sent_as_it_was_although_the_tools_are_others_now(tmp_path: Path) -> None:
    story = Story("", [Call("look", id="c1"), "done"])
    folder, session_id = await killed(tmp_path, story, "request/sent")
    model = ScriptedModel(["done", "more"])
    async with agent_stack(folder, model) as stack:
        agent = await stack.agents.resume(session_id)
        (_, sent) = agent.session.of(RequestSent)
        agent.proceed()
        await agent.when_idle()
        agent.send("and now?")
        await agent.when_idle()
        assert model.digests[0] == sent.digest
        assert model.idempotency_keys[0] == sent.idempotency_key
        assert model.requests[1].tools == ()
        assert audit(agent.session, stack.ctx.get(Models)).ok


@pytest.mark.parametrize("hang", ["model", "tool"])
async def test_a_turn_that_died_while_it_was_being_cancelled_can_go_on(tmp_path: Path, hang: str) -> None:
    async def stuck(args: object, call: ToolInvocation) -> str:
        await anyio.sleep_forever()
        return ""

    answers = (
        [Reply("thinking", hang=True)] if hang == "model" else [Reply(calls=(Call("stuck"), Call("stuck")))]
    )
    tool = Tool("stuck", "Stuck.", OBJECT, stuck, side_effects=frozenset(("writes",)))
    async with agent_stack(tmp_path / "a", ScriptedModel(answers)) as stack:
        stack.tools.register(stack.ctx, tool)
        agent = await stack.agents.create(AgentSpec())
        agent.send("go")
        await anyio.wait_all_tasks_blocked()
        await agent.cancel()
        lines = (tmp_path / "a" / "sessions" / f"{agent.id}.jsonl").read_bytes().splitlines(keepends=True)
    for border in range(3, len(lines) + 1):
        folder = cut(tmp_path / f"cut{border}", agent.id, lines[:border])
        async with agent_stack(folder, ScriptedModel(lambda request: "done")) as stack:
            again = await stack.agents.resume(agent.id)
            again.proceed()
            await again.when_idle()
            assert [it.reason for it in again.session.of(TurnEnd)][-1] == "completed"
            assert again.session.derived().conversation.pairing_problem is None
            assert audit(again.session, stack.ctx.get(Models)).ok


async def test_a_live_turn_that_the_disk_left_open_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with agent_stack(tmp_path, ScriptedModel(lambda request: "done")) as stack:
        agent = await stack.agents.create(AgentSpec())
        append_all, full = type(agent.session).append_all, False

        def maybe(session: Session, events: Sequence[Event]) -> object:
            if full or any(isinstance(event, RequestSent) for event in events):
                raise SessionWriteFailed("the log", "No space left on device", "free some")
            return append_all(session, events)

        monkeypatch.setattr(Session, "append_all", maybe)
        agent.send("go")
        full = False
        await agent.when_idle()
        monkeypatch.undo()
        agent.proceed()
        await agent.when_idle()
        assert [it.reason for it in agent.session.of(TurnEnd)][-1] == "completed"
        assert audit(agent.session, stack.ctx.get(Models)).ok


SAFE = [
    it
    for it in STORIES
    if it.name in ("two turns", "parallel reads", "corrected", "nested", "steered", "concludes")
]


@pytest.mark.parametrize("story", [*SAFE, STORIES[3]], ids=lambda story: story.name)
async def test_a_turn_that_was_cancelled_goes_on_as_if_it_had_not_been(tmp_path: Path, story: Story) -> None:
    whole = await live(tmp_path / "whole", story)
    assert whole.session is not None
    for at in range(1, whole.done + 1):
        folder = tmp_path / f"hang{at}"
        stopped = await live(folder, story, hang=at)
        assert stopped.session is not None
        assert stopped.hung
        session_id = stopped.session.id
        lines = stopped.lines
        after = await live(folder, story, session_id, proceed=True)
        for border in range(len(lines), len(after.lines) + 1):
            again = cut(tmp_path / f"hang{at}cut{border}", session_id, after.lines[:border])
            last = await live(again, story, session_id, proceed=border == len(lines))
            assert last.session is not None
            assert last.proved
            spoilt = {it.rpartition(":")[0] or it for it in lost(last.session) | lost(stopped.session)}
            assert without_unknown(told(last.session), spoilt) == without_unknown(told(whole.session), spoilt)
            assert ends(last.session)[-1] == ends(whole.session)[-1]
            assert last.session.place.turn == whole.session.place.turn
            unsafe = {it.call_id for it in stopped.session.of(ToolCalled) if "writes" in it.side_effects}
            begun = {it.message.call_id for it in stopped.session.of(ToolAnswered) if it.started}
            assert not unsafe & begun & set(last.ran), "a side effect was repeated"


def lost(session: Session) -> set[str]:
    """Calls with side effects of which nobody knows what they did."""
    return {
        it.message.call_id
        for it in session.of(ToolAnswered)
        if it.started
        and it.error_code in ("ABORTED", "TOOL_OUTCOME_UNKNOWN")
        and set(it.side_effects) - {"reads"}
    }


async def test_what_is_void_is_left_out_from_there_on_and_no_sooner(tmp_path: Path) -> None:
    story = Story("", ["done"])
    stopped = await live(tmp_path, story, hang=1)
    assert stopped.session is not None
    after = await live(tmp_path, story, stopped.session.id, proceed=True)
    assert after.session is not None
    (resumed,) = after.session.logged_of(TurnResumed)
    derived = after.session.derived()
    assert [it[-1] for it in told(after.session) if isinstance(it, tuple)][1:] == [(Text("done"),)]
    assert len(derived.at(resumed[0].seq)) == 2, "the beginning of the answer was read at the time"
    assert len(derived.at(resumed[0].seq + 1)) == 1
    assert derived.conversation == derive(after.session.logged)
    assert [it.reason for it in after.session.of(TurnEnd)] == ["aborted", "completed"]
    assert [it.turn for it in after.session.of(TurnEnd)] == [1, 1]
    assert [(it.step, it.attempt) for it in after.session.of(RequestSent)] == [(1, 1), (1, 2)]
    assert len({it.digest for it in after.session.of(RequestSent)}) == 1


async def test_a_turn_that_its_provider_left_goes_on_in_the_same_step(tmp_path: Path) -> None:
    model = ScriptedModel([Call("look", id="c1"), BUSY, BUSY, BUSY, BUSY, BUSY, "done"])
    async with agent_stack(tmp_path, model, loop=LoopConfig(retry=QUICK)) as stack:
        add_tools(stack, Life())
        agent = await stack.agents.create(AgentSpec())
        agent.send("go")
        await agent.when_idle()
        assert agent.last_turn_end is not None and agent.last_turn_end.reason == "error"
        session_id = agent.id
        await agent.dispose()
        again = await stack.agents.resume(session_id)
        again.proceed()
        await again.when_idle()
        assert [(it.turn, it.reason) for it in again.session.of(TurnEnd)] == [(1, "error"), (1, "completed")]
        assert [it.attempt for it in again.session.of(RequestSent)] == [1, 1, 2, 3, 4, 5, 6]
        assert audit(again.session, stack.ctx.get(Models)).ok


async def test_a_new_word_after_a_cancelled_turn_opens_a_new_one_that_has_read_its_beginning(
    tmp_path: Path,
) -> None:
    stopped = await live(tmp_path, Story("", ["done"]), hang=1)
    assert stopped.session is not None
    model = ScriptedModel(["fine"])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.resume(stopped.session.id)
        agent.send("never mind")
        await agent.when_idle()
        assert [it.turn for it in agent.session.of(TurnStart)] == [1, 2]
        assert len(model.requests[0].conversation) == 3


async def test_a_call_that_had_not_begun_is_told_so_also_behind_a_turn_that_was_taken_up(
    tmp_path: Path,
) -> None:
    story = Story("", [Reply(calls=(Call("look", id="a"), Call("act", id="b")))])
    stopped = await live(tmp_path / "a", story, hang=2)
    assert stopped.session is not None
    after = await live(tmp_path / "a", Story("", [*story.answers, "done"]), stopped.session.id, proceed=True)
    session_id = stopped.session.id
    folder = cut(tmp_path / "b", session_id, after.lines[: len(stopped.lines) + 1])
    async with agent_stack(folder, ScriptedModel(["I see"])) as stack:
        agent = await stack.agents.resume(session_id)
        agent.send("stop")
        await agent.when_idle()
        told = [it for it in agent.session.of(ToolAnswered) if it.synthesised]
        assert [(it.message.call_id, it.error_code) for it in told] == [
            ("a", "TOOL_OUTCOME_UNKNOWN"),
            ("b", "TOOL_NOT_STARTED"),
        ]


@pytest.mark.parametrize("story", SAFE, ids=lambda story: story.name)
async def test_a_process_that_died_while_it_stopped_a_turn_has_stopped_nothing(
    tmp_path: Path, story: Story
) -> None:
    whole = await live(tmp_path / "whole", story)
    assert whole.session is not None
    for at in range(1, whole.done + 1):
        stopped = await live(tmp_path / f"hang{at}", story, hang=at)
        assert stopped.session is not None
        last_end = max(n for n, line in enumerate(stopped.lines) if b'"turn/end"' in line)
        for border in range(max(1, last_end - 4), last_end + 1):
            if not any(b'"turn/start"' in line for line in stopped.lines[:border]):
                continue
            folder = cut(tmp_path / f"hang{at}cut{border}", stopped.session.id, stopped.lines[:border])
            last = await live(folder, story, stopped.session.id, proceed=True)
            assert last.session is not None
            assert last.proved
            spoilt = {it.rpartition(":")[0] or it for it in lost(last.session)}
            assert without_unknown(told(last.session), spoilt) == without_unknown(told(whole.session), spoilt)
            assert ends(last.session)[-1] == ends(whole.session)[-1]
            assert last.session.place.turn == whole.session.place.turn
