"""Law 8: what the meter counts is what the provider bills, with children, forks, retries and failures; ceilings hold."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import anyio
import pytest

from leadline import Leadline
from leadline.core.agent.agent import Agent
from leadline.core.agent.agents import Agents
from leadline.core.agent.signals import Streamed
from leadline.core.agent.spec import AgentSpec, CallOptions
from leadline.core.llm.request import ModelRef
from leadline.core.session.spending import Spending, session_spending, total
from leadline.core.session.store import SessionStore
from leadline.core.spend.account import Account, Ceilings, Spent
from leadline.core.spend.money import Money, money
from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.counting import ServerPrice
from leadline.testing.provider_server.server import ProviderServer, Received

pytestmark = pytest.mark.anyio

CHEAP = ServerPrice(input=0.3, cached_input=0.03, output=1.2)
DEAR = ServerPrice(input=5, cached_input=0.5, output=30, reasoning=40)
PATCH = """\
- id: meter
  merge:
    prices:
      local/cheap: {input: 0.3, cached_input: 0.03, output: 1.2}
      local/dear: {input: 5, cached_input: 0.5, output: 30, reasoning: 40}
- id: loop
  merge: {retry: {first_s: 0.001, max_s: 0.002}}
- id: limiter
  merge: {limits: [{model: local/cheap, max: 4}]}
"""
MODELS = ("cheap", "dear")


@asynccontextmanager
async def priced(
    tmp_path: Path, answers: object, *, caching: bool = False
) -> AsyncGenerator[tuple[Leadline, ProviderServer]]:
    patch = tmp_path / "priced.yml"
    patch.write_text(PATCH)
    prices = {"cheap": CHEAP, "dear": DEAR}
    async with (
        ProviderServer(answers, prices=prices, caching=caching) as server,  # pyright: ignore[reportArgumentType]
        Leadline(profile="headless", model="local/cheap", base_url=server.base_url, patches=[patch]) as app,
    ):
        yield app, server


def noisy(random: Random):
    """Answers of every kind that a provider charges for, and failures of those that it does not."""

    def answer(request: Received) -> Behaviour:
        chance = random.random()
        if chance < 0.1:
            return Behaviour("server_error")
        if chance < 0.2:
            return Behaviour("rate_limit", retry_after="0")
        if chance < 0.3:
            return Behaviour("empty")
        if chance < 0.5:
            return Behaviour("reasoning_success", text="So it is.", reasoning="hm " * random.randint(1, 40))
        if chance < 0.6:
            return Behaviour("max_tokens", text="And then " * random.randint(1, 20))
        return Behaviour(text="word " * random.randint(1, 60))

    return answer


async def turn(agent: Agent, text: str) -> None:
    agent.send(text)
    with anyio.fail_after(60):
        await agent.when_idle()


async def every_row(app: Leadline) -> tuple[Spending, ...]:
    """What all the logs of the store say was paid."""
    store = app.ctx.get(SessionStore)
    return session_spending(*[await store.read(entry.id) for entry in await store.list()])


@pytest.mark.case("K08")
@pytest.mark.case("K12")
@pytest.mark.parametrize("seed", range(4))
async def test_every_account_and_every_log_adds_up_to_the_bill(home: Path, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    async with priced(tmp_path, noisy(random), caching=True) as (app, server):
        agents = app.ctx.get(Agents)
        run = Account("the run", Ceilings(tokens=10**9, cost=money(1000)))
        parent = await agents.create(AgentSpec(account=run))
        await turn(parent, "Begin.")

        async def child(number: int) -> None:
            spec = AgentSpec(
                parent=parent,
                model=ModelRef("local", random.choice(MODELS)),
                seed_turns=number % 2 == 0,
                label=f"child {number}",
            )
            agent = await agents.create(spec)
            for step in range(random.randint(1, 3)):
                await turn(agent, f"Go on with {step} of {number}.")

        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(child, number)
        await turn(parent, "End.")
        whole = total(await every_row(app))
        assert server.bill
        assert whole.cost == server.cost == run.spent.cost
        assert whole.calls == len(server.requests) == run.spent.calls
        assert whole.tokens.prompt == sum(line.prompt_tokens for line in server.bill)
        assert whole.tokens.completion == sum(line.completion_tokens for line in server.bill)
        assert (whole.unpriced, whole.estimated, run.in_flight) == (0, 0, 0)
        assert run.spent == whole.spent
        for row in await every_row(app):
            named = [line for line in server.bill if f"local/{line.model}" == row.what]
            assert row.cost == sum(line.cost or 0 for line in named)


@pytest.mark.parametrize(
    "ceilings", [Ceilings(cost=money("0.02")), Ceilings(tokens=20_000), Ceilings(calls=37)]
)
async def test_sixteen_agents_on_one_budget_are_billed_one_call_more_at_most(
    home: Path, tmp_path: Path, ceilings: Ceilings
) -> None:
    random = Random(3)

    def answer(request: Received) -> Behaviour:
        return Behaviour(text="word " * random.randint(1, 100), delay_s=random.random() / 500)

    async with priced(tmp_path, answer) as (app, server):
        agents = app.ctx.get(Agents)
        run = Account("the run", ceilings)
        ended: list[str] = []

        async def work(number: int) -> None:
            spec = AgentSpec(
                account=run.child(f"unit {number}"),
                model=ModelRef("local", MODELS[number % 2]),
                options=CallOptions(max_tokens=200),
            )
            agent = await agents.create(spec)
            for step in range(100):
                await turn(agent, f"Step {step}: " + "look again at every part of it. " * 10)
                assert agent.last_turn_end is not None
                if agent.last_turn_end.reason == "budget":
                    ended.append(agent.id)
                    return

        async with anyio.create_task_group() as tasks:
            for number in range(16):
                tasks.start_soon(work, number)
        assert len(ended) == 16
        assert run.spent.cost == server.cost
        assert run.spent.calls == len(server.bill)
        largest = max(line.cost or 0 for line in server.bill)
        if ceilings.cost is not None:
            assert Money(ceilings.cost - largest) < run.spent.cost <= ceilings.cost + largest
        if ceilings.tokens is not None:
            most = max(line.prompt_tokens + line.completion_tokens for line in server.bill)
            assert ceilings.tokens - most < run.spent.tokens <= ceilings.tokens + most
        if ceilings.calls is not None:
            assert run.spent.calls == ceilings.calls


async def test_a_call_that_was_cut_off_is_charged_by_estimate_and_told_apart(
    home: Path, tmp_path: Path
) -> None:
    answers = [Behaviour("stall", text="one two three four " * 20, chunk_chars=8), Behaviour(text="Well.")]
    async with priced(tmp_path, answers) as (app, server):
        agents = app.ctx.get(Agents)
        agent = await agents.create(AgentSpec())
        begun = anyio.Event()
        agent.ctx.on(Streamed, lambda signal: begun.set())
        agent.send("Count.")
        with anyio.fail_after(10):
            await begun.wait()
        await agent.cancel()
        [row] = session_spending(agent.session)
        assert (row.calls, row.unpriced, row.tokens.reported) == (1, 1, False)
        assert row.estimated > 0
        assert agent.account.spent.tokens == pytest.approx(row.estimated, rel=0.3)
        assert agent.account.in_flight == 0
        await turn(agent, "Again.")
        [row] = session_spending(agent.session)
        assert (row.calls, row.unpriced) == (2, 1)
        assert row.cost == server.cost


async def test_a_free_model_costs_nothing_and_that_is_known(home: Path, tmp_path: Path) -> None:
    async with (
        ProviderServer(["fine"]) as server,
        Leadline(profile="headless", model="ollama/any", base_url=server.base_url) as app,
    ):
        agents = app.ctx.get(Agents)
        account = Account("all", Ceilings(cost=money("0.01")))
        agent = await agents.create(AgentSpec(account=account))
        await turn(agent, "Hello.")
        [row] = session_spending(agent.session)
        assert row.paid.exact == 0
        assert row.tokens.total
        assert account.spent == Spent(row.tokens.total, calls=1)
