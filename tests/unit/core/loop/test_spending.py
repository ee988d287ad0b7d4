"""What the calls of agents cost, what they may cost, and what does not fit."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from leadline.core.agent.agent import Agent
from leadline.core.agent.signals import CallWaiting
from leadline.core.agent.spec import AgentSpec, CallOptions, TurnBudget
from leadline.core.llm.adapter import ModelInfo
from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.usage import Usage
from leadline.core.loop.config import LoopConfig, RetryConfig
from leadline.core.session.events import AssistantSaid, RequestEnded, RequestHeader, RequestSent, TurnEnd
from leadline.core.spend.account import Account, Ceilings
from leadline.core.spend.limiter import LimiterConfig, LineConfig
from leadline.core.spend.meter import MeterConfig, PriceConfig
from leadline.core.spend.money import DOLLAR, Money
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import Tool
from leadline.testing.agents import AgentStack, agent_stack
from leadline.testing.scripted import Call, Reply, ScriptedModel

pytestmark = pytest.mark.anyio

PRICED = MeterConfig(prices={"scripted/*": PriceConfig(input=1_000_000.0, output=2_000_000.0)})
"""A dollar for each token of the prompt, two for each of the answer."""

ANSWER = Reply("fine", usage=Usage(input=10, output=5))


def add_tool(stack: AgentStack, name: str) -> None:
    async def body(args: object, call: ToolInvocation) -> str:
        return "ok"

    stack.tools.register(stack.ctx, Tool(name, f"The tool {name}.", {"type": "object"}, body))


async def asked(agent: Agent, text: str = "go") -> TurnEnd:
    agent.send(text)
    with anyio.fail_after(10):
        await agent.when_idle()
    assert agent.last_turn_end is not None
    return agent.last_turn_end


async def test_an_answer_is_logged_with_what_it_cost(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel([ANSWER]), meter=PRICED) as stack:
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        said = agent.session.last(AssistantSaid)
        sent = agent.session.last(RequestSent)
        assert said is not None
        assert said.cost == 20 * DOLLAR
        assert sent is not None
        assert sent.tokens
        assert agent.account.spent.cost == 20 * DOLLAR


async def test_without_a_price_the_cost_is_not_known_and_not_zero(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel([ANSWER])) as stack:
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        said = agent.session.last(AssistantSaid)
        assert said is not None
        assert said.cost is None
        assert agent.account.spent.unpriced == 1


async def test_a_failed_attempt_is_charged_what_was_reported_for_it(tmp_path: Path) -> None:
    failed = Reply("half", usage=Usage(input=10, output=500), failure=Wait("STREAM_CLOSED", "cut"))
    model = ScriptedModel([failed, Reply("whole", usage=Usage(input=10, output=600))])
    loop = LoopConfig(retry=RetryConfig(first_s=0.001))
    async with agent_stack(tmp_path, model, loop=loop, meter=PRICED) as stack:
        agent = await stack.agents.create(AgentSpec())
        await asked(agent)
        ended = agent.session.last(RequestEnded)
        assert ended is not None
        assert ended.cost == 1_010 * DOLLAR
        assert agent.account.spent.tokens == 1_120
        assert agent.account.spent.cost == (1_010 + 1_210) * DOLLAR
        assert agent.account.spent.calls == 2


async def test_a_ceiling_on_money_ends_the_turn_before_it_is_passed_by_more_than_one_call(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(lambda request: Reply(calls=(Call("look"),), usage=Usage(input=100, output=50)))
    async with agent_stack(tmp_path, model, meter=PRICED) as stack:
        add_tool(stack, "look")
        agent = await stack.agents.create(AgentSpec(budget=TurnBudget(max_cost=1_000.0)))
        end = await asked(agent)
        assert end.reason == "budget"
        assert end.cause is not None
        assert "$1,000.00" in end.cause.detail
        assert 0 < agent.account.spent.cost <= 1_200 * DOLLAR


async def test_a_ceiling_on_money_lets_nothing_through_whose_price_nobody_knows(tmp_path: Path) -> None:
    model = ScriptedModel([ANSWER])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec(budget=TurnBudget(max_cost=1.0)))
        end = await asked(agent)
        assert isinstance(end.failure, Stop)
        assert end.failure.code == "NO_PRICE"
        assert "scripted/scripted" in end.failure.message
        assert not list(agent.session.of(RequestSent))


async def test_a_ceiling_on_calls_is_exact(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: Reply(calls=(Call("look"),)))
    async with agent_stack(tmp_path, model) as stack:
        add_tool(stack, "look")
        agent = await stack.agents.create(AgentSpec(budget=TurnBudget(max_calls=3)))
        end = await asked(agent)
        assert end.reason == "budget"
        assert len(list(agent.session.of(RequestSent))) == 3


@pytest.mark.case("K07")
async def test_a_child_draws_from_what_its_parent_has_left(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: Reply("fine", usage=Usage(input=10, output=35)))
    async with agent_stack(tmp_path, model, meter=PRICED) as stack:
        account = Account("all", Ceilings(cost=Money(100 * DOLLAR)))
        parent = await stack.agents.create(AgentSpec(account=account, options=CallOptions(max_tokens=40)))
        assert (await asked(parent)).reason == "completed"
        child = await stack.agents.create(AgentSpec(parent=parent, options=CallOptions(max_tokens=40)))
        assert child.account.remaining.cost == 20 * DOLLAR
        end = await asked(child, "a prompt of more than twenty tokens " * 10)
        assert end.reason == "budget"
        assert account.spent.calls == 1


async def test_answers_are_bounded_where_a_ceiling_on_tokens_holds(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel([ANSWER])) as stack:
        account = Account("all", Ceilings(tokens=100_000))
        agent = await stack.agents.create(AgentSpec(account=account))
        await asked(agent)
        header = agent.session.last(RequestHeader)
        assert header is not None
        assert header.config.max_tokens == 8_000


async def test_a_call_that_stands_in_line_is_told_and_what_was_held_is_logged_first(tmp_path: Path) -> None:
    model = ScriptedModel([Reply("slowly", hang=True), "next"])
    limiter = LimiterConfig(limits=(LineConfig(model="scripted/scripted", max=1),))
    async with agent_stack(tmp_path, model, limiter=limiter) as stack:
        told: list[CallWaiting] = []
        first, second = [await stack.agents.create(AgentSpec()) for _ in range(2)]
        stack.ctx.on(CallWaiting, told.append)
        first.send("one")
        await anyio.wait_all_tasks_blocked()
        second.send("two")
        await anyio.wait_all_tasks_blocked()
        assert [(one.agent, one.waiting.why, one.waiting.ahead) for one in told] == [(second, "slots", 0)]
        assert second.session.last(RequestHeader) is not None
        assert second.session.last(RequestSent) is None
        await first.cancel()
        await second.when_idle()
        assert second.session.last(AssistantSaid) is not None


async def test_what_does_not_fit_is_not_sent(tmp_path: Path) -> None:
    model = ScriptedModel([ANSWER], info=ModelInfo("model", context_window=1_000))
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())
        end = await asked(agent, "word " * 3_000)
        assert isinstance(end.failure, Stop)
        assert end.failure.code == "CONTEXT_WINDOW_EXCEEDED"
        assert "1,000" in end.failure.message
        assert not list(agent.session.of(RequestSent))


async def test_a_prompt_that_the_provider_cut_off_is_an_error(tmp_path: Path) -> None:
    model = ScriptedModel([Reply("sure", usage=Usage(input=2_048, output=5))])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())
        end = await asked(agent, "the quick brown fox jumps over " * 2_000)
        assert isinstance(end.failure, Stop)
        assert end.failure.code == "CONTEXT_WINDOW_EXCEEDED"
        assert "2,048" in end.failure.message
        assert end.failure.window_tokens == 2_048
        assert agent.session.last(AssistantSaid) is None
        ended = agent.session.last(RequestEnded)
        assert ended is not None
        assert ended.usage is not None
