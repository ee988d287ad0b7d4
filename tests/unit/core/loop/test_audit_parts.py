"""What an audit says beside yes and no: which part of a request differs, what side effects came to, what is in flight."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.laws.conftest import forge

from leadline.core.agent.spec import AgentSpec, CallOptions
from leadline.core.llm.adapter import LlmAdapter, ModelInfo, Models, PreparedCall
from leadline.core.llm.messages import ToolMessage
from leadline.core.llm.request import LlmRequest
from leadline.core.loop.audit import SessionAudit, audit
from leadline.core.session.derive import OUTCOME_UNKNOWN
from leadline.core.session.events import (
    Event,
    RequestSent,
    ToolAnswered,
    ToolCalled,
    TurnStart,
)
from leadline.core.session.invariants import Invariants
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import Tool
from leadline.kernel.context import Kernel
from leadline.testing.agents import AgentStack, agent_stack
from leadline.testing.scripted import Call, Reply, ScriptedModel
from leadline.testing.sessions import memory_session

pytestmark = pytest.mark.anyio


def add_tool(stack: AgentStack) -> None:
    async def body(args: object, call: ToolInvocation) -> str:
        return "done"

    stack.tools.register(
        stack.ctx, Tool("act", "Acts.", {"type": "object"}, body, side_effects=frozenset(("writes",)))
    )


async def audited(
    folder: Path, seq: int, edit: Callable[[dict[str, Any]], None], *replies: Reply | Call | str
) -> SessionAudit:
    """The audit of a session of one prompt in which one event was changed, the chain made to fit."""
    async with agent_stack(folder, ScriptedModel(replies)) as stack:
        add_tool(stack)
        agent = await stack.agents.create(
            AgentSpec(persona="You test.", options=CallOptions(effort="high", max_tokens=100))
        )
        agent.send("go")
        await agent.when_idle()
        types = [line.type for line in agent.session.logged]
        await agent.dispose()
        at = seq if seq >= 0 else types.index("request/header" if seq == -1 else "user/message")
        forge(folder / "sessions" / f"{agent.id}.jsonl", at, edit)
        return audit(await stack.sessions.read(agent.id), stack.ctx.get(Models), stack.ctx.get(Invariants))


HEADER, MESSAGE = -1, -2


def put(*path: str | int, value: object) -> Callable[[dict[str, Any]], None]:
    def edit(data: dict[str, Any]) -> None:
        where: Any = data
        for name in path[:-1]:
            where = where[name]
        where[path[-1]] = value

    return edit


@pytest.mark.parametrize(
    ("event", "edit", "parts", "told"),
    [
        (HEADER, put("system", value="You lie."), ("system",), "the system text differs"),
        (HEADER, put("tools", 0, "description", value="Reads."), ("tools",), "the tools differ"),
        (HEADER, put("config", "effort", value="low"), ("effort",), "the effort differs"),
        (HEADER, put("config", "max_tokens", value=7), ("parameters",), "the parameters differ"),
        (HEADER, put("config", "model", "model", value="other"), ("provider",), "it was sent to"),
        (MESSAGE, put("message", "content", 0, "text", value="stop"), ("messages",), "the messages differ"),
        (
            HEADER,
            lambda data: data.update(system="You lie.", config={**data["config"], "effort": "low"}),
            ("system", "effort"),
            "the system text and the effort differ",
        ),
    ],
    ids=["system", "tools", "effort", "parameters", "provider", "messages", "two"],
)
async def test_the_part_that_differs_is_named(
    tmp_path: Path, event: int, edit: Callable[[dict[str, Any]], None], parts: tuple[str, ...], told: str
) -> None:
    found = await audited(tmp_path, event, edit, "done")
    (problem,) = found.problems
    assert problem.parts == parts
    assert told in problem.reason


async def test_a_provider_that_is_configured_otherwise_is_told_apart_from_a_changed_log(
    tmp_path: Path,
) -> None:
    scripted = ScriptedModel(["done"])

    @dataclass(frozen=True)
    class Otherwise:
        provider: str

        def info(self, model: str) -> ModelInfo:
            return scripted.info(model)

        def prepare(self, request: LlmRequest) -> PreparedCall:
            return scripted.prepare(replace(request, system=f"{request.system} Be short."))

    def otherwise(provider: str, adapter: LlmAdapter | None) -> LlmAdapter:
        return Otherwise(provider)

    async with agent_stack(tmp_path, scripted) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.send("go")
        await agent.when_idle()
        stack.ctx.get(Models).wrap(stack.ctx, otherwise)
        (problem,) = audit(agent.session, stack.ctx.get(Models)).problems
        assert problem.parts == ("provider",)
        assert "no part of it differs, so that provider scripted is configured otherwise" in problem.reason


async def test_every_side_effect_is_listed_with_what_it_came_to(tmp_path: Path) -> None:
    found = await audited(tmp_path, 0, lambda data: None, Call("act"), "done")
    (one,) = found.side_effects
    assert found.ok
    assert (one.tool, one.effects, one.became, one.error_code) == ("act", ("writes",), "done", None)
    assert json.loads(one.arguments) == {}
    assert one.result_seq is not None
    assert one.result_seq > one.seq


async def of_log(*events: Event) -> SessionAudit:
    async with Kernel():
        return audit(memory_session(events=events), Models())


def called(id_: str, *effects: str) -> ToolCalled:
    return ToolCalled(call_id=id_, name="act", arguments="{}", side_effects=effects)


def answered(id_: str, code: str | None = None, *effects: str, started: bool = True) -> ToolAnswered:
    message = ToolMessage(f"r-{id_}", id_, "act", "text", is_error=code is not None)
    return ToolAnswered(message=message, error_code=code, started=started, side_effects=effects)


async def test_what_a_side_effect_came_to_is_said_as_far_as_it_is_known() -> None:
    found = await of_log(
        called("c1", "writes"),
        called("c2", "network", "reads"),
        called("c3", "reads"),
        called("c4", "writes"),
        called("c5", "writes"),
        called("c6", "writes"),
        answered("c1"),
        answered("c2", "TOOL_FAILED"),
        answered("c3"),
        answered("c4", "DENIED", started=False),
        answered("c5", OUTCOME_UNKNOWN),
    )
    assert [(one.call_id, one.became) for one in found.side_effects] == [
        ("c1", "done"),
        ("c2", "failed"),
        ("c4", "not-started"),
        ("c5", "unknown"),
        ("c6", "open"),
    ]
    assert found.ok


async def test_a_side_effect_that_nobody_meant_is_a_problem() -> None:
    found = await of_log(answered("c1", None, "writes"), answered("c2", None, "reads"))
    assert [str(one) for one in found.problems] == [
        "event 0: call c1 of act was run without an intent in the log"
    ]


async def test_requests_that_were_never_answered_are_listed() -> None:
    request = RequestSent(purpose="p", model="m/m", digest="d", messages=0, idempotency_key="k")
    found = await of_log(request)
    assert [(one.seq, one.model, one.attempt, one.idempotency_key) for one in found.in_flight] == [
        (0, "m/m", 1, "k")
    ]


async def test_a_log_that_breaks_a_rule_does_not_hold(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel()) as stack:
        session = memory_session(events=[TurnStart(turn=7)])
        found = audit(session, stack.ctx.get(Models), stack.ctx.get(Invariants))
        assert [str(one) for one in found.problems] == [
            "event 0: it breaks session/turns: turn 7 starts behind turn 0"
        ]
