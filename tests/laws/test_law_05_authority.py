"""Law 5: a child never has more than its parent; no answer, no channel, an error in a policy: denied, with the reason."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from leadline import Leadline
from leadline.core.agent.agent import Agent
from leadline.core.agent.agents import Agents
from leadline.core.agent.spec import AgentSpec
from leadline.core.session.events import ToolAnswered
from leadline.core.tools.approval import ApprovalDecision, ApprovalOutcome, ApprovalRequest, Approvals
from leadline.core.tools.function import tool_from_function
from leadline.core.tools.policy import Ask, Decision, Deny, PreExecute
from leadline.core.tools.registry import ToolRegistry
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.orchestration.subagent.seam import SubagentRequest, Subagents
from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import ProviderServer, Received
from tests.composition.conftest import call
from tests.laws.conftest import running

pytestmark = pytest.mark.anyio


@pytest.fixture
def ran() -> list[str]:
    """Names of the tools that ran."""
    return []


def with_tools(app: Leadline, ran: list[str], *names: str) -> None:
    """Give the program tools that say that they ran."""
    for name in names:

        async def body(name: str = name) -> str:
            ran.append(name)
            return "ran"

        tool = tool_from_function(body, name=name, description=f"The tool {name}.")
        app.ctx.get(ToolRegistry).register(app.ctx, tool)


def asking_for(name: str) -> Callable[[Received], Behaviour]:
    """A model that calls a tool, whether or not it is offered, and then stops."""

    def answer(request: Received) -> Behaviour:
        return Behaviour(text="done") if request.messages[-1]["role"] == "tool" else call(name, {})

    return answer


async def result_of(agent: Agent) -> ToolAnswered:
    """The result of the one call that a turn of the agent makes."""
    agent.followup("go")
    await agent.when_idle()
    (answer,) = agent.session.of(ToolAnswered)
    return answer


async def child_of(app: Leadline, parent: Agent, tools: tuple[str, ...] | None) -> Agent:
    run = await app.ctx.get(Subagents).start(SubagentRequest(parent=parent, prompt="go", tools=tools))
    await run.result()
    assert run.agent is not None
    return run.agent


async def test_a_child_and_its_child_have_what_every_ancestor_may_use_and_asked_for(
    home: Path, ran: list[str]
) -> None:
    async with running(lambda request: Behaviour(text="ok")) as (app, server):
        with_tools(app, ran, "read_a", "read_b", "write_c")
        parent = await app.ctx.get(Agents).create(AgentSpec(tools_allow=("read_a", "read_b")))
        child = await child_of(app, parent, None)
        assert server.requests[-1].tools == ("read_a", "read_b")
        grandchild = await child_of(app, child, ("read_b",))
        assert server.requests[-1].tools == ("read_b",)
        great = await child_of(app, grandchild, None)
        assert server.requests[-1].tools == ("read_b",)
        assert great.depth == 3
        await parent.dispose()
        assert app.ctx.get(Agents).live == ()


async def test_a_child_cannot_be_given_what_its_parent_does_not_have(home: Path, ran: list[str]) -> None:
    async with running(asking_for("write_c")) as (app, server):
        with_tools(app, ran, "read_a", "write_c")
        parent = await app.ctx.get(Agents).create(AgentSpec(tools_allow=("read_a",)))
        with pytest.raises(Exception, match="write_c"):
            await app.ctx.get(Subagents).start(
                SubagentRequest(parent=parent, prompt="go", tools=("read_a", "write_c"))
            )
        assert app.ctx.get(Agents).live == (parent,)
        assert server.requests == []
        child = await child_of(app, parent, None)
        (answer,) = child.session.of(ToolAnswered)
        assert answer.error_code == "UNKNOWN_TOOL"
        assert ran == []
        await parent.dispose()


async def test_what_forbids_the_parent_forbids_its_children(home: Path, ran: list[str]) -> None:
    async def never(signal: PreExecute) -> Decision | None:
        return Deny("the policy of the parent") if signal.tool.name == "write_c" else None

    async with running(asking_for("write_c")) as (app, _):
        with_tools(app, ran, "write_c", "delete_d")
        parent = await app.ctx.get(Agents).create(AgentSpec())
        parent.ctx.on(PreExecute, never)
        child = await child_of(app, await child_of(app, parent, None), None)
        (answer,) = child.session.of(ToolAnswered)
        assert answer.error_code == "DENIED"
        assert "the policy of the parent" in answer.message.content
        assert ran == []
        other = await app.ctx.get(Agents).create(AgentSpec())
        assert not (await result_of(other)).message.is_error, "a policy of one agent reached another"
        await other.dispose()
        await parent.dispose()


async def test_a_guard_over_the_parent_holds_for_its_children(home: Path, ran: list[str]) -> None:
    async with running(asking_for("write_c")) as (app, _):
        with_tools(app, ran, "write_c")
        parent = await app.ctx.get(Agents).create(AgentSpec())
        app.ctx.get(ToolRegistry).guard(parent.ctx, "no writing", lambda invocation: "guarded")
        child = await child_of(app, parent, None)
        (answer,) = child.session.of(ToolAnswered)
        assert (answer.error_code, "guarded" in answer.message.content) == ("DENIED", True)
        assert ran == []
        await parent.dispose()


class Broken(Exception):
    pass


async def fails(signal: PreExecute) -> Decision | None:
    raise Broken("the policy is broken")


async def asks(signal: PreExecute) -> Decision | None:
    return Ask("this is dangerous")


async def nonsense(signal: PreExecute) -> Decision | None:
    return True  # type: ignore[return-value]


def failing_guard(invocation: object) -> str | None:
    raise Broken("the guard is broken")


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (fails, "the policy is broken"),
        (nonsense, "a policy answered True"),
        (asks, "needs approval, and nobody here can give it"),
    ],
    ids=["fails", "nonsense", "asks with nobody there"],
)
async def test_a_policy_that_gives_no_yes_is_a_no_and_the_model_reads_why(
    home: Path, ran: list[str], policy: Callable[[PreExecute], Awaitable[Decision | None]], told: str
) -> None:
    async with running(asking_for("write_c")) as (app, server):
        with_tools(app, ran, "write_c")
        app.ctx.on(PreExecute, policy)
        agent = await app.ctx.get(Agents).create(AgentSpec())
        answer = await result_of(agent)
        assert answer.error_code == "DENIED"
        assert not answer.started
        assert told in str(results_in(server)[0]["content"])
        await agent.dispose()
    assert ran == []


async def test_a_guard_that_fails_denies(home: Path, ran: list[str]) -> None:
    async with running(asking_for("write_c")) as (app, server):
        with_tools(app, ran, "write_c")
        app.ctx.get(ToolRegistry).guard(app.ctx, "broken", failing_guard)
        agent = await app.ctx.get(Agents).create(AgentSpec())
        assert (await result_of(agent)).error_code == "DENIED"
        assert "the guard is broken" in str(results_in(server)[0]["content"])
        await agent.dispose()
    assert ran == []


def results_in(server: ProviderServer) -> list[dict[str, object]]:
    return [dict(message) for message in server.requests[-1].messages if message["role"] == "tool"]


class Approver(Approvals):
    """Somebody who is asked."""

    def __init__(self, outcome: ApprovalOutcome | Exception | None) -> None:
        self.outcome = outcome
        self.asked: list[ApprovalRequest] = []

    async def decide(self, request: ApprovalRequest) -> ApprovalDecision:
        self.asked.append(request)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return None if self.outcome is None else ApprovalDecision(self.outcome)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("outcome", "runs"),
    [
        ("allowed-once", True),
        ("denied", False),
        ("expired", False),
        ("cancelled", False),
        ("no-approver", False),
        (Broken("the channel is gone"), False),
        (None, False),
    ],
    ids=str,
)
async def test_only_a_yes_lets_a_call_run_and_it_holds_once(
    home: Path, ran: list[str], outcome: ApprovalOutcome | Exception | None, runs: bool
) -> None:
    approver = Approver(outcome)

    async def provide(ctx: Context, config: None) -> None:
        ctx.provide(Approvals, approver)

    async with running(asking_for("write_c")) as (app, _):
        with_tools(app, ran, "write_c")
        app.ctx.on(PreExecute, asks)
        await app.ctx.mount(Plugin("approver", provide, provides=(Approvals,)))
        agent = await app.ctx.get(Agents).create(AgentSpec())
        answer = await result_of(agent)
        assert answer.error_code == (None if runs else "DENIED")
        agent.followup("again")
        await agent.when_idle()
        await agent.dispose()
    assert ran == ["write_c"] * (2 if runs else 0)
    assert [one.tool for one in approver.asked] == ["write_c"] * 2, "one yes was taken for two"
