"""A killed process: its log goes on where it stopped, in pairs, and no logged answer is paid for twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from leadline.core.agent.agent import Agent
from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.adapter import Models
from leadline.core.llm.messages import Conversation, ToolMessage
from leadline.core.loop.audit import audit
from leadline.core.session.errors import SessionWriteFailed
from leadline.core.session.events import (
    AssistantSaid,
    RequestSent,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    UserEntered,
)
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import Tool
from leadline.testing.agents import AgentStack, agent_stack
from leadline.testing.scripted import Call, Reply, ScriptedModel

pytestmark = pytest.mark.anyio


def add_tool(stack: AgentStack) -> list[str]:
    ran: list[str] = []

    async def body(args: object, call: ToolInvocation) -> str:
        ran.append(call.call_id)
        return f"result of {call.call_id}"

    stack.tools.register(
        stack.ctx, Tool("act", "Acts.", {"type": "object"}, body, side_effects=frozenset(("writes",)))
    )
    return ran


TWO_CALLS = Reply("acting", (Call("act", id="c1"), Call("act", id="c2")))


async def log_of(folder: Path, *replies: Reply | str) -> tuple[str, list[bytes]]:
    """A finished session's id and lines."""
    async with agent_stack(folder, ScriptedModel(replies)) as stack:
        add_tool(stack)
        agent = await stack.agents.create(AgentSpec())
        agent.send("go")
        await agent.when_idle()
        path = folder / "sessions" / f"{agent.id}.jsonl"
        return agent.id, path.read_bytes().splitlines(keepends=True)


def killed_at(folder: Path, session_id: str, lines: list[bytes], last: Callable[[bytes], bool]) -> None:
    """Leave the log as a process killed right behind the last line that `last` names would."""
    cut = max(at for at, line in enumerate(lines) if last(line))
    (folder / "sessions").mkdir(parents=True)
    (folder / "sessions" / f"{session_id}.jsonl").write_bytes(b"".join(lines[: cut + 1]))


def strict(conversation: Conversation) -> None:
    assert conversation.pairing_problem is None


async def prompted(agent: Agent, text: str) -> None:
    agent.send(text)
    await agent.when_idle()


@pytest.mark.case("S20")
async def test_a_call_that_was_under_way_gets_a_result_behind_its_sibling_once(tmp_path: Path) -> None:
    session_id, lines = await log_of(tmp_path / "a", TWO_CALLS, "done")
    folder = tmp_path / "b"
    killed_at(folder, session_id, lines, lambda line: b'"tool/call"' in line and b'"c2"' in line)
    model = ScriptedModel(["fine", "fine"])
    async with agent_stack(folder, model) as stack:
        ran = add_tool(stack)
        agent = await stack.agents.resume(session_id)
        await prompted(agent, "hi")
        await prompted(agent, "again")
        strict(model.requests[0].conversation)
        results = [m for m in model.requests[0].conversation if isinstance(m, ToolMessage)]
        assert [m.call_id for m in results] == ["c1", "c2"]
        assert "outcome is unknown" in results[1].content
        assert len([it for it in agent.session.of(ToolAnswered) if it.synthesised]) == 1
        assert ran == []
        assert audit(agent.session, stack.ctx.get(Models)).ok


async def test_a_call_that_had_not_started_says_so(tmp_path: Path) -> None:
    session_id, lines = await log_of(tmp_path / "a", TWO_CALLS, "done")
    folder = tmp_path / "b"
    killed_at(folder, session_id, lines, lambda line: b'"assistant/message"' in line and b"acting" in line)
    async with agent_stack(folder, ScriptedModel(["fine"])) as stack:
        agent = await stack.agents.resume(session_id)
        assert agent.session.place.turn_open, "a turn was closed before anybody said that it does not go on"
        await prompted(agent, "hi")
        assert [it.error_code for it in agent.session.of(ToolAnswered)] == ["TOOL_NOT_STARTED"] * 2
        assert [it.reason for it in agent.session.of(TurnEnd)] == ["interrupted", "completed"]


async def test_a_call_in_flight_at_the_kill_is_sent_again_under_the_same_key(tmp_path: Path) -> None:
    first = ScriptedModel([TWO_CALLS, "done"])
    folder = tmp_path / "a"
    async with agent_stack(folder, first) as stack:
        add_tool(stack)
        agent = await stack.agents.create(AgentSpec())
        await prompted(agent, "go")
        session_id = agent.id
    lines = (folder / "sessions" / f"{session_id}.jsonl").read_bytes().splitlines(keepends=True)
    killed_at(tmp_path / "b", session_id, lines, lambda line: b'"request/sent"' in line)
    model = ScriptedModel(["done at last"])
    async with agent_stack(tmp_path / "b", model) as stack:
        ran = add_tool(stack)
        agent = await stack.agents.resume(session_id)
        agent.proceed()
        await agent.when_idle()
        assert ran == []
        assert model.idempotency_keys == first.idempotency_keys[1:]
        assert model.digests == first.digests[1:]
        assert [it.message.text for it in agent.session.of(AssistantSaid)] == ["acting", "done at last"]
        assert len(list(agent.session.of(UserEntered))) == 1


async def test_proceeding_without_an_interruption_asks_once_more(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel(["one", "two"])) as stack:
        agent = await stack.agents.create(AgentSpec())
        await prompted(agent, "go")
        agent.proceed()
        await agent.when_idle()
        assert [it.message.text for it in agent.session.of(AssistantSaid)] == ["one", "two"]


async def test_every_prefix_of_a_log_resumes_and_answers(tmp_path: Path) -> None:
    session_id, lines = await log_of(tmp_path / "a", TWO_CALLS, "done")
    for cut in range(1, len(lines) + 1):
        folder = tmp_path / f"cut{cut}"
        (folder / "sessions").mkdir(parents=True)
        (folder / "sessions" / f"{session_id}.jsonl").write_bytes(b"".join(lines[:cut]))
        model = ScriptedModel(lambda request: "fine")
        async with agent_stack(folder, model) as stack:
            agent = await stack.agents.resume(session_id)
            await prompted(agent, "hi")
            for request in model.requests:
                strict(request.conversation)
            calls = [it.call_id for it in agent.session.of(ToolCalled)]
            assert len(calls) == len(set(calls))
            assert audit(agent.session, stack.ctx.get(Models)).ok


async def test_a_full_disk_is_told_and_the_agent_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with agent_stack(tmp_path, ScriptedModel([Call("act"), "fine"])) as stack:
        agent = await stack.agents.create(AgentSpec())
        full = False
        append_all = type(agent.session).append_all

        def maybe(session: object, events: object) -> object:
            if full:
                raise SessionWriteFailed("the log", "No space left on device", "free some")
            return append_all(agent.session, events)  # pyright: ignore[reportArgumentType]

        monkeypatch.setattr(type(agent.session), "append_all", maybe)

        async def body(args: object, call: ToolInvocation) -> str:
            nonlocal full
            full = True
            return "ok"

        stack.tools.register(stack.ctx, Tool("act", "Acts.", {"type": "object"}, body))
        agent.send("go")
        with anyio.fail_after(5):
            await agent.when_idle()
        assert any("No space left" in str(it.error) for it in stack.kernel.reports)
        assert agent.session.place.turn_open
        full = False
        await prompted(agent, "go on")
        assert [it.reason for it in agent.session.of(TurnEnd)] == ["interrupted", "completed"]
        strict(agent.session.derived().conversation)


async def test_a_request_that_was_sent_is_known_to_have_been(tmp_path: Path) -> None:
    session_id, lines = await log_of(tmp_path / "a", "done")
    killed_at(tmp_path / "b", session_id, lines, lambda line: b'"request/sent"' in line)
    async with agent_stack(tmp_path / "b", ScriptedModel()) as stack:
        read = await stack.sessions.read(session_id)
        assert len(list(read.of(RequestSent))) == 1
        assert list(read.of(AssistantSaid)) == []
