"""What tools pay for is charged to their agent and stands in its log."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.usage import Usage
from leadline.core.session.events import Charged, ToolAnswered
from leadline.core.session.spending import session_spending, total
from leadline.core.spend.account import Account, Ceilings, Spent
from leadline.core.spend.meter import MeterConfig, PriceConfig
from leadline.core.spend.money import money
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.paid import paid
from leadline.core.tools.spec import Tool
from leadline.testing.agents import AgentStack, agent_stack
from leadline.testing.scripted import Call, Reply, ScriptedModel

pytestmark = pytest.mark.anyio

PRICES = MeterConfig(
    prices={
        "scripted/*": PriceConfig(input=1, output=1),
        "finder/model": PriceConfig(input=2, output=2),
        "finder": PriceConfig(call=0.01),
    }
)
ASKED = Usage(input=500, output=20)


async def searching(call: ToolInvocation) -> str:
    for _ in range(3):
        async with paid(call, "finder/model", counted=True, prompt_tokens=5000, most_output=0) as paying:
            paying.usage = Usage(input=5000, output=0)
    async with paid(call, "finder", purpose="search"):
        return "found"


def add_search(stack: AgentStack) -> None:
    async def body(args: object, call: ToolInvocation) -> str:
        return await searching(call)

    stack.tools.register(stack.ctx, Tool("search", "Finds.", {"type": "object"}, body))


async def run(stack: AgentStack, account: Account) -> tuple[ToolAnswered, ...]:
    add_search(stack)
    agent = await stack.agents.create(AgentSpec(account=account))
    agent.send("Search.")
    with anyio.fail_after(10):
        await agent.when_idle()
    found = total(session_spending(agent.session))
    assert found.spent == account.spent
    assert all(charge.turn == 1 and charge.call_id for charge in agent.session.of(Charged))
    return tuple(agent.session.of(ToolAnswered))


@pytest.mark.case("K15")
async def test_ten_searches_that_make_three_model_calls_each_are_thirty_calls_in_the_total(
    tmp_path: Path,
) -> None:
    replies = [Reply(calls=(Call("search"),), usage=ASKED) for _ in range(10)]
    model = ScriptedModel([*replies, Reply("Here.", usage=ASKED)])
    async with agent_stack(tmp_path, model, meter=PRICES) as stack:
        account = Account("all")
        await run(stack, account)
        tokens = 30 * 5000 + 11 * 520
        cost = money(30 * 0.01 + 10 * 0.01) + 11 * 520 * 10**6
        assert account.spent == Spent(tokens, cost, 11 + 30 + 10)  # pyright: ignore[reportArgumentType]


async def test_a_tool_whose_budget_is_used_up_says_so_to_the_model(tmp_path: Path) -> None:
    model = ScriptedModel([Reply(calls=(Call("search"),), usage=ASKED), Reply("Nothing.", usage=ASKED)])
    async with agent_stack(tmp_path, model, meter=PRICES) as stack:
        account = Account("the run", Ceilings(cost=money("0.035")))
        [answer] = await run(stack, account)
        assert answer.error_code == "BUDGET"
        assert (
            "search could not pay for what it needs: the budget of the run is used up"
            in answer.message.content
        )
        assert account.spent.calls == 5
