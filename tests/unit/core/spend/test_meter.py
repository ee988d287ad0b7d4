"""The meter: reserve, stand in line, settle; and what is charged for what was, and was not, reported."""

from __future__ import annotations

from random import Random

import anyio
import anyio.lowlevel
import pytest

from leadline.core.llm.failure import LlmFailure, Stop, Wait
from leadline.core.llm.usage import Usage
from leadline.core.session.events import Charged
from leadline.core.session.log import Session
from leadline.core.session.spending import session_spending, total
from leadline.core.spend.account import Account, Ceilings, Spent
from leadline.core.spend.limiter import Limiter, LimiterConfig
from leadline.core.spend.meter import (
    BudgetReached,
    Charge,
    Meter,
    MeterConfig,
    Opened,
    PaidCall,
    PriceConfig,
)
from leadline.core.spend.money import Cost, Money, money
from leadline.core.spend.prices import Prices
from leadline.kernel.errors import ConfigError
from leadline.testing.clock import ManualClock
from leadline.testing.sessions import memory_session

pytestmark = pytest.mark.anyio

MODEL = "a/b"
ROWS = (
    {"model": "a/*", "input": 1, "cached_input": 0.1, "output": 10},
    {"model": "free/*", "free": True},
    {"model": "finder", "call": 0.01},
)


def metering(**limits: int) -> tuple[Meter, Limiter]:
    clock = ManualClock()
    limiter = Limiter(
        clock, LimiterConfig.model_validate({"limits": [{"model": MODEL, **limits}]} if limits else {})
    )
    return Meter(limiter, clock, Prices(ROWS)), limiter


def paying(account: Account, what: str = MODEL, prompt: int = 100, output: int | None = 50) -> PaidCall:
    return PaidCall(account, what, "agent/turn", prompt_tokens=prompt, most_output=output)


async def opened(meter: Meter, call: PaidCall) -> Opened:
    answer = await meter.open(call)
    assert isinstance(answer, Opened), answer
    return answer


async def stopped(meter: Meter, call: PaidCall) -> Stop:
    answer = await meter.open(call)
    assert isinstance(answer, Stop), answer
    return answer


@pytest.mark.case("K13")
async def test_what_the_provider_reports_is_charged_and_not_the_estimate() -> None:
    meter, _ = metering()
    account = Account("run")
    call = await opened(meter, paying(account, prompt=900))
    cost = call.settle(Usage(input=1200, output=0), estimate=Usage(input=900, output=0))
    assert cost == Cost(money("0.0012"))
    assert account.spent == Spent(tokens=1200, cost=money("0.0012"), calls=1)


@pytest.mark.case("K17")
async def test_what_is_not_reported_is_charged_by_estimate_and_its_cost_is_not_known() -> None:
    meter, _ = metering()
    account = Account("run", Ceilings(tokens=10_000))
    call = await opened(meter, paying(account))
    assert call.settle(None, estimate=Usage(input=100, output=10)) is None
    assert account.spent == Spent(tokens=110, cost=money("0.0002"), calls=1)
    call = await opened(meter, paying(account))
    assert call.settle(Usage(input=200), estimate=Usage(input=100, output=10)) == Cost(money("0.0003"))
    assert account.spent.tokens == 320


async def test_the_cost_of_a_model_without_price_is_not_known_and_tokens_are_counted_all_the_same() -> None:
    meter, _ = metering()
    account = Account("run", Ceilings(tokens=10_000))
    call = await opened(meter, paying(account, "nobody/x"))
    assert call.settle(Usage(input=10, output=1)) is None
    assert account.spent == Spent(tokens=11, calls=1, unpriced=1)
    assert meter.price("nobody/x") is None
    assert meter.cost("nobody/x", Usage(input=1)) is None


async def test_where_cost_is_limited_nothing_without_a_price_may_be_called() -> None:
    meter, limiter = metering()
    account = Account("run", Ceilings(cost=money(1)))
    refused = await stopped(meter, paying(account, "nobody/x"))
    assert refused.code == "NO_PRICE"
    assert "leadline models price nobody/x" in str(refused.next_step)
    assert account.in_flight == 0
    assert limiter.lines() == ()
    (await opened(meter, paying(account, "free/x"))).settle(Usage(input=10**9, output=0))
    assert account.spent.cost == 0


async def test_a_ceiling_that_is_reached_stops_the_call_before_it_stands_in_line() -> None:
    meter, limiter = metering(max=1)
    account = Account("run", Ceilings(cost=money("0.0001")))
    (await opened(meter, paying(account))).settle(Usage(input=0, output=10))
    refused = await stopped(meter, paying(account))
    assert (refused.code, refused.message) == (
        "BUDGET",
        "the budget of run is used up: $0.0001 of $0.0001",
    )
    assert sum(line.active + line.waiting for line in limiter.lines()) == 0


async def test_whoever_is_cancelled_in_line_gives_back_what_was_reserved() -> None:
    meter, limiter = metering(max=1)
    account = Account("run", Ceilings(tokens=1000))
    first = await opened(meter, paying(account))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(meter.open, paying(account))
        await anyio.wait_all_tasks_blocked()
        assert account.in_flight == 2
        tasks.cancel_scope.cancel()
    assert account.in_flight == 1
    first.settle(Usage(input=100, output=5))
    assert account.spent == Spent(tokens=105, cost=money("0.00015"), calls=1)
    assert account.remaining.tokens == 895
    assert sum(line.active + line.waiting for line in limiter.lines()) == 0


async def test_a_call_is_settled_once() -> None:
    meter, limiter = metering(max=1)
    account = Account("run")
    call = await opened(meter, paying(account))
    cost = call.settle(Usage(input=10, output=1))
    assert call.settle(Usage(input=99, output=9)) == cost
    call.release()
    assert account.spent.calls == 1
    assert sum(line.active for line in limiter.lines()) == 0


async def test_a_call_that_was_not_made_is_not_charged() -> None:
    meter, limiter = metering(max=1)
    account = Account("run", Ceilings(calls=1))
    (await opened(meter, paying(account))).release()
    assert account.spent == Spent()
    (await opened(meter, paying(account))).release()
    assert sum(line.active for line in limiter.lines()) == 0


@pytest.mark.parametrize(
    ("failure", "known"),
    [
        (Wait("RATE_LIMIT", "slow down", status=429), True),
        (Wait("SERVER", "broken", status=500), True),
        (Stop("AUTH", "who are you", status=401), True),
        (Stop("MISSING_CREDENTIAL", "no key"), True),
        (Stop("REFUSED", "not that"), False),
        (Wait("TRANSPORT", "connection reset"), False),
        (Wait("TIMEOUT", "nothing came"), False),
        (Wait("STREAM_CLOSED", "cut off"), False),
    ],
)
async def test_only_a_call_that_was_turned_away_is_known_to_cost_nothing(
    failure: LlmFailure, known: bool
) -> None:
    meter, _ = metering()
    account = Account("run")
    call = await opened(meter, paying(account))
    assert call.settle(None, failure=failure, estimate=Usage()) == (Cost() if known else None)
    assert account.spent == Spent(calls=1, unpriced=int(not known))


@pytest.mark.case("K12")
async def test_a_failed_attempt_is_charged_what_it_reported() -> None:
    meter, _ = metering()
    account = Account("run")
    broken = Wait("SERVER", "broken", status=500)
    (await opened(meter, paying(account))).settle(Usage(input=10, output=500), failure=broken)
    (await opened(meter, paying(account))).settle(Usage(input=10, output=600))
    assert account.spent == Spent(tokens=1120, cost=money("0.01102"), calls=2)


@pytest.mark.case("K15")
async def test_every_call_of_a_search_that_asks_models_is_in_the_total() -> None:
    meter, _ = metering()
    account = Account("run", Ceilings(tokens=1_000_000, cost=money(10)))
    session = memory_session()

    async def search() -> None:
        for _ in range(3):
            call = PaidCall(account, MODEL, "search", prompt_tokens=5000, most_output=100)
            async with meter.paid(call, logging(session)) as paid:
                paid.usage = Usage(input=5000, output=0)

    for _ in range(10):
        await search()
    found = total(session_spending(session))
    assert (found.calls, found.tokens.prompt, found.cost) == (30, 150_000, money("0.15"))
    assert found.spent == account.spent


def logging(session: Session):
    def log(charge: Charge) -> None:
        session.append(
            Charged(
                what=charge.what,
                purpose=charge.purpose,
                usage=charge.usage,
                cost=charge.cost,
                state=charge.state,
            )
        )

    return log


async def test_a_search_is_paid_by_the_call_however_it_ends() -> None:
    meter, _ = metering()
    account = Account("run", Ceilings(cost=money("0.035")))
    told: list[Charge] = []
    call = PaidCall(account, "finder", "search", counted=False)
    async with meter.paid(call, told.append):
        pass
    with pytest.raises(OSError, match="unplugged"):
        async with meter.paid(call, told.append):
            raise OSError("unplugged")
    with anyio.CancelScope() as scope:
        async with meter.paid(call, told.append):
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    assert [charge.state for charge in told] == ["done", "failed", "cancelled"]
    assert {charge.cost for charge in told} == {money("0.01")}
    assert account.spent == Spent(cost=money("0.03"), calls=3)
    with pytest.raises(BudgetReached, match=r"\$0.0300 of \$0.0350"):
        async with meter.paid(call, told.append):
            raise AssertionError("it was called all the same")
    assert len(told) == 3


async def test_a_paid_call_inside_of_another_one_is_refused_where_it_would_wait_for_itself() -> None:
    meter, _ = metering()
    account = Account("run", Ceilings(tokens=1000))
    told: list[Charge] = []
    outer = PaidCall(account.child("a"), MODEL, "search", prompt_tokens=500, most_output=100)
    inner = PaidCall(account.child("b"), MODEL, "rank", prompt_tokens=300, most_output=100)
    async with meter.paid(outer, told.append) as paying:
        paying.usage = Usage(input=500, output=0)
        with pytest.raises(BudgetReached, match="would wait for itself"):
            async with meter.paid(inner, told.append):
                raise AssertionError("it was called all the same")
    async with meter.paid(inner, told.append) as paying:
        paying.usage = Usage(input=300, output=0)
    assert account.spent.tokens == 800
    assert len(told) == 2


async def test_an_answer_of_which_nobody_says_how_long_it_may_be_is_reserved_as_a_usual_one() -> None:
    meter, _ = metering()
    account = Account("run", Ceilings(tokens=100_000))
    await opened(meter, paying(account, prompt=1000, output=None))
    assert account.remaining.tokens == 100_000 - 1200 - 8192


async def test_sixteen_workers_with_two_slots_and_a_ceiling_on_cost_spend_what_they_are_billed() -> None:
    meter, limiter = metering(max=2)
    random = Random(7)
    root = Account("run", Ceilings(cost=money("0.05")))
    billed = largest = 0

    async def work(number: int) -> None:
        nonlocal billed, largest
        account = root.child(f"unit {number % 3}")
        while True:
            prompt = random.randint(50, 150)
            call = await meter.open(paying(account, prompt=prompt, output=50))
            if isinstance(call, Stop):
                assert call.code == "BUDGET"
                return
            assert sum(line.active for line in limiter.lines()) <= 2
            await anyio.lowlevel.checkpoint()
            outcome = random.random()
            if outcome < 0.2:
                call.settle(None, failure=Wait("SERVER", "broken", status=500))
                continue
            usage = Usage(input=prompt, output=random.randint(0, 50))
            cost = call.settle(usage, failure=Wait("STREAM_CLOSED", "cut") if outcome < 0.4 else None)
            assert cost is not None
            billed += cost.known
            largest = max(largest, cost.known)

    async with anyio.create_task_group() as tasks:
        for number in range(16):
            tasks.start_soon(work, number)
    assert root.spent.cost == billed
    assert root.spent.unpriced == 0
    assert root.in_flight == 0
    assert money("0.05") - Money(150 * 10**6) < billed <= money("0.05") + largest


@pytest.mark.parametrize(
    "row",
    [
        {"input": 1},
        {"output": 1},
        {},
        {"input": 1, "output": 1, "free": True},
        {"free": True, "like": "a/b"},
        {"input": -1, "output": 1},
        {"inptu": 1},
    ],
)
def test_a_price_that_says_nothing_or_two_things_is_refused(row: dict[str, object]) -> None:
    from leadline.core.spend.meter import plugin

    with pytest.raises(ConfigError):
        plugin.bind({"prices": {"a/b": row}})


def test_prices_of_ones_own_come_from_the_configuration() -> None:
    config = MeterConfig.model_validate({"prices": {"a/b": {"input": 1, "output": 2}, "c/*": {"free": True}}})
    assert config.prices["a/b"] == PriceConfig(input=1, output=2)
