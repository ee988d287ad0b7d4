"""A process dies while a child works; the next one goes on with the child, and its result is the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from leadline.core.agent.agent import Agent
from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.jsonvalue import JsonObject, JsonValue
from leadline.core.llm.request import LlmRequest
from leadline.core.loop.config import LoopConfig, RetryConfig
from leadline.core.session.errors import SessionLocked, SessionNotFound
from leadline.core.session.events import (
    AbortCause,
    AssistantSaid,
    InboxSpliced,
    RequestEnded,
    RequestSent,
    ToolAnswered,
    TurnEnd,
)
from leadline.core.session.log import Session
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import Tool
from leadline.orchestration.subagent import plugin
from leadline.orchestration.subagent.errors import SubagentDepthError, UnsupportedCapability
from leadline.orchestration.subagent.handed_in import CORRECTION
from leadline.orchestration.subagent.seam import (
    Check,
    SubagentDriver,
    SubagentRequest,
    SubagentResult,
    SubagentRun,
    Subagents,
)
from leadline.testing.agents import agent_stack
from leadline.testing.scripted import Call, Playable, Reply, ScriptedModel

pytestmark = pytest.mark.anyio

SCHEMA: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
QUICK = LoopConfig(retry=RetryConfig(first_s=1e-6, attempts=2))
BUSY = Wait("OVERLOADED", "busy")


def output(value: JsonValue, call_id: str = "") -> Call:
    return Call("structured_output", value, call_id or f"o-{value}")  # pyright: ignore[reportArgumentType]


def strict(times: int) -> Callable[[], Check]:
    """Checks that find fault with the first values they are shown, and count them."""

    def make() -> Check:
        shown: list[JsonValue] = []

        def check(value: JsonValue) -> Sequence[str]:
            shown.append(value)
            return [f"not good enough, {len(shown)}"] if len(shown) <= times else []

        return check

    return make


@dataclass(frozen=True)
class Story:
    """What a child says, answer by answer."""

    name: str
    answers: Sequence[Playable | Sequence[Playable]]
    schema: JsonObject | None = field(default_factory=lambda: SCHEMA)
    check: Callable[[], Check] | None = None
    mode: str = "spawn"


STORIES = [
    Story("words", ["the answer"], schema=None),
    Story("words that are checked", ["no", "yes"], schema=None, check=strict(1)),
    Story("words that are never right", ["no", "no"], schema=None, check=strict(9)),
    Story("handed in", [Call("look", id="l"), output({"n": 1})]),
    Story("handed in wrong at first", [output({"n": "x"}), output({"m": 1}), output({"n": 1})]),
    Story(
        "a check that counts",
        [output({"n": 1}), output({"n": "x"}), output({"n": 2}), output({"n": 3}), output({"n": 4})],
        check=strict(3),
    ),
    Story("said instead", ['Here: {"n": 5}']),
    Story("corrected", ["I think it is one.", output({"n": 1})]),
    Story(
        "corrected, with a check that counts",
        ['{"n": 1}', output({"n": 2}), output({"n": 3})],
        check=strict(2),
    ),
    Story("never handed in", ["one", "two"]),
    Story("handed in by another tool", [Call("relay", id="r"), "never asked"]),
    Story(
        "handed in by another tool, wrong at first",
        [Call("relay", id="r"), output({"n": 3})],
        check=strict(1),
    ),
    Story(
        "more behind it", [Reply(calls=(output({"n": 1}, "o"), Call("act", id="a"), Call("look", id="l")))]
    ),
    Story("busy", [[BUSY, Call("look", id="l")], [BUSY, output({"n": 1})]]),
    Story("a provider that fails", [Call("look", id="l"), Stop("AUTH", "no key")]),
    Story("a fork", [output({"n": 1})], mode="fork"),
]


@dataclass
class Life:
    result: SubagentResult
    session: Session
    digests: list[str]
    ran: list[str]
    lines: list[bytes]


def own_tools(ran: list[str]) -> tuple[Tool, ...]:
    async def look(args: object, call: ToolInvocation) -> str:
        ran.append(call.call_id)
        return "seen"

    async def relay(args: object, call: ToolInvocation) -> str:
        ran.append(call.call_id)
        looked = await call.invoke("look")
        handed_in = await call.invoke("structured_output", {"n": 7})
        return f"{looked.content}, {handed_in.content}"

    return (
        Tool("look", "Looks.", {"type": "object"}, look, side_effects=frozenset(("reads",))),
        Tool("act", "Acts.", {"type": "object"}, look, side_effects=frozenset(("writes",))),
        Tool("relay", "Relays.", {"type": "object"}, relay),
    )


def speaker(story: Story, children: list[Agent]) -> Callable[[LlmRequest], Playable]:
    def respond(request: LlmRequest) -> Playable:
        if not children:
            return "the parent speaks"
        said, failed, session = 0, 0, children[0].session
        for line in session.since(session.lifecycle_start):
            if line.type == AssistantSaid.TYPE:
                said, failed = said + 1, 0
            failed += line.type == RequestEnded.TYPE
        answer = story.answers[said]
        return answer if isinstance(answer, (Reply, Call, str, Wait, Stop)) else answer[failed]

    return respond


async def live(folder: Path, story: Story, parent_id: str = "", child_id: str = "") -> Life:
    """One process: it starts the child, or goes on with it."""
    children: list[Agent] = []
    ran: list[str] = []
    model = ScriptedModel(speaker(story, children))
    async with agent_stack(folder, model, loop=QUICK, plugins=(plugin.plugin,)) as stack:
        if parent_id:
            parent = await stack.agents.resume(parent_id)
        else:
            parent = await stack.agents.create(AgentSpec())
            parent.send("speak")
            await parent.when_idle()
        asked = len(model.digests)
        request = SubagentRequest(
            parent=parent,
            prompt="work",
            output_schema=story.schema,
            check=story.check() if story.check else None,
            own_tools=own_tools(ran),
            mode="fork" if story.mode == "fork" else "spawn",
        )
        subagents = stack.ctx.get(Subagents)
        run = await (subagents.resume(request, child_id) if child_id else subagents.start(request))
        assert run.agent is not None
        children.append(run.agent)
        with anyio.fail_after(10):
            result = await run.result()
        await run.dispose()
        assert not stack.kernel.reports, stack.kernel.reports
        session = await stack.sessions.read(run.session_id)
        await parent.dispose()
        lines = (folder / "sessions" / f"{run.session_id}.jsonl").read_bytes().splitlines(keepends=True)
        return Life(result, session, model.digests[asked:], ran, lines)


def cut(whole: Path, folder: Path, child_id: str, lines: Sequence[bytes]) -> Path:
    (folder / "sessions").mkdir(parents=True)
    for log in (whole / "sessions").glob("*.jsonl"):
        shutil.copy(log, folder / "sessions" / log.name)
    (folder / "sessions" / f"{child_id}.jsonl").write_bytes(b"".join(lines))
    return folder


def corrections(session: Session) -> int:
    return sum(message.source == CORRECTION for it in session.of(InboxSpliced) for message in it.inserted)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
async def test_wherever_a_process_dies_the_child_comes_to_the_same(tmp_path: Path, story: Story) -> None:
    whole = await live(tmp_path / "whole", story)
    parent_id, child_id = whole.session.header.parent or "", whole.session.id
    first = 1 + whole.session.lifecycle_start
    for border in range(first, len(whole.lines) + 1):
        folder = cut(tmp_path / "whole", tmp_path / f"cut{border}", child_id, whole.lines[:border])
        after = await live(folder, story, parent_id, child_id)
        dead_on_failure = whole.result.failure is not None and border == len(whole.lines)
        if not dead_on_failure:
            assert after.result == whole.result, whole.lines[border - 1]
            assert [it.reason for it in after.session.of(TurnEnd)] == [
                it.reason for it in whole.session.of(TurnEnd)
            ]
        assert corrections(after.session) == corrections(whole.session)
        seen = [line.seq for line, _ in after.session.logged_of(AssistantSaid)][: border - 1]
        answered = {it.digest for line, it in after.session.logged_of(AssistantSaid) if line.seq < border - 1}
        assert not answered & set(after.digests), f"an answer was asked for again, of {seen}"
        results = {
            it.message.call_id for line, it in after.session.logged_of(ToolAnswered) if line.seq < border - 1
        }
        assert not results & set(after.ran)


async def a_child(folder: Path, story: Story) -> tuple[str, str]:
    whole = await live(folder, story)
    return whole.session.header.parent or "", whole.session.id


async def test_work_that_is_done_is_settled_without_a_call(tmp_path: Path) -> None:
    parent_id, child_id = await a_child(tmp_path, STORIES[3])
    after = await live(tmp_path, STORIES[3], parent_id, child_id)
    assert after.result.structured == {"n": 1}
    assert after.digests == []


@pytest.mark.parametrize("reason", ["aborted", "error"])
async def test_after_a_turn_that_was_broken_off_the_child_is_asked_to_go_on(
    tmp_path: Path, reason: str
) -> None:
    failing = Reply(hang=True) if reason == "aborted" else Stop("AUTH", "no key")
    model = ScriptedModel([Call("look", id="l"), failing, output({"n": 2})])
    ran: list[str] = []
    async with agent_stack(tmp_path, model, plugins=(plugin.plugin,)) as stack:
        parent = await stack.agents.create(AgentSpec())
        request = SubagentRequest(
            parent=parent, prompt="work", output_schema=SCHEMA, own_tools=own_tools(ran)
        )
        run = await stack.ctx.get(Subagents).start(request)
        await anyio.wait_all_tasks_blocked()
        await run.cancel("the run was stopped")
        assert (await run.result()).stop_reason == reason
        await run.dispose()
        again = await stack.ctx.get(Subagents).resume(request, run.session_id)
        result = await again.result()
        assert (result.stop_reason, result.structured) == ("completed", {"n": 2})
        assert ran == ["l"]
        assert again.agent is not None
        assert [it.reason for it in again.agent.session.of(TurnEnd)] == [reason, "completed"]
        assert len(model.requests[-1].conversation) == 3, "it was told something new"
        await again.dispose()


async def test_a_child_whose_prompt_was_taken_back_gets_it_again(tmp_path: Path) -> None:
    model = ScriptedModel([output({"n": 1})])
    async with agent_stack(tmp_path, model, plugins=(plugin.plugin,)) as stack:
        parent = await stack.agents.create(AgentSpec())
        child = await stack.agents.create(AgentSpec(parent=parent))
        child.send("work", wake=False)
        await child.cancel(AbortCause("parent"), keep_inbox=False)
        await child.dispose()
        request = SubagentRequest(parent=parent, prompt="work", output_schema=SCHEMA)
        run = await stack.ctx.get(Subagents).resume(request, child.id)
        assert (await run.result()).structured == {"n": 1}
        await run.dispose()


async def test_what_cannot_be_taken_up_is_told_and_stays_as_it_is(tmp_path: Path) -> None:
    class Simple(SubagentDriver):
        name = "simple"
        capabilities = frozenset(())

        async def start(self, request: SubagentRequest) -> SubagentRun:
            raise AssertionError("not reached")

    async with agent_stack(tmp_path, ScriptedModel(), plugins=(plugin.plugin,)) as stack:
        parent = await stack.agents.create(AgentSpec())
        subagents = stack.ctx.get(Subagents)
        request = SubagentRequest(parent=parent, prompt="work")
        with pytest.raises(SessionNotFound):
            await subagents.resume(request, "s-none")
        child = await stack.agents.create(AgentSpec(parent=parent))
        with pytest.raises(SessionLocked):
            await subagents.resume(request, child.id)
        with pytest.raises(SubagentDepthError):
            await subagents.resume(SubagentRequest(parent=parent, prompt="w", max_depth=0), child.id)
        subagents.register(stack.ctx, Simple())
        with pytest.raises(UnsupportedCapability, match="resume"):
            await subagents.resume(SubagentRequest(parent=parent, prompt="w", driver="simple"), child.id)
        assert stack.agents.find(child.id) is child


async def test_a_request_in_flight_is_all_that_is_sent_twice(tmp_path: Path) -> None:
    story = STORIES[3]
    whole = await live(tmp_path / "whole", story)
    for border, line in enumerate(whole.lines, 1):
        if b'"request/sent"' not in line:
            continue
        folder = cut(tmp_path / "whole", tmp_path / f"cut{border}", whole.session.id, whole.lines[:border])
        after = await live(folder, story, whole.session.header.parent or "", whole.session.id)
        sent = [*after.session.of(RequestSent)]
        twice = [it.idempotency_key for it in sent if it.attempt == 2]
        assert len(sent) == len([*whole.session.of(RequestSent)]) + 1
        assert len(twice) == 1 and len({it.idempotency_key for it in sent}) == len(sent) - 1
