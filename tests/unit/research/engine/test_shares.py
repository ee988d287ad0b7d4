"""Units have a share each, and what is left over when all have stopped."""

from __future__ import annotations

import anyio
import pytest

from leadline.core.spend.account import Account, Ceilings, Hold, Reservation, Spent
from leadline.research.engine.shares import Shares, UnitUse

pytestmark = pytest.mark.anyio

PLAN = ("u1", "u2", "u3")


def working(calls: int) -> Account:
    return Account("the run", Ceilings(calls=calls))


async def use(account: Account, calls: int) -> int:
    """How many of so many calls `account` lets be made."""
    made = 0
    for _ in range(calls):
        taken = await account.reserve(Hold(calls=1))
        if not isinstance(taken, Reservation):
            return made
        taken.settle(Spent(calls=1))
        made += 1
    return made


async def test_no_unit_can_use_up_what_is_anothers() -> None:
    run = working(10)
    shares = Shares(run, None, {})
    accounts = [shares.account(unit, PLAN) for unit in PLAN]
    assert [await use(account, 20) for account in accounts] == [3, 3, 3]


async def test_with_less_than_one_call_each_they_can_still_begin() -> None:
    run = working(2)
    shares = Shares(run, None, {})
    assert [await use(shares.account(unit, PLAN), 5) for unit in PLAN] == [1, 1, 0]


async def test_what_the_others_leave_goes_to_the_first_of_the_plan_that_waits_once() -> None:
    run = working(12)
    shares = Shares(run, None, {})
    accounts = {unit: shares.account(unit, PLAN) for unit in PLAN}
    told: list[tuple[str, bool]] = []

    async def ask(unit: str) -> None:
        more = await shares.more(unit)
        told.append((unit, more))
        if more:
            await use(accounts[unit], 1)
            told.append((unit, await shares.more(unit)))
        shares.end(unit)

    for unit in PLAN:
        shares.begin(unit)
    await use(accounts["u3"], 4)
    await use(accounts["u2"], 4)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "u3")
        tasks.start_soon(ask, "u2")
        await anyio.wait_all_tasks_blocked()
        assert told == []
        await use(accounts["u1"], 2)
        shares.end("u1")
    assert told == [("u2", True), ("u2", False), ("u3", True), ("u3", False)]
    assert run.spent.calls == 12


async def test_the_share_of_a_unit_that_nobody_began_is_not_given_away() -> None:
    run = working(9)
    shares = Shares(run, None, {})
    account = shares.account("u1", PLAN)
    shares.begin("u1")
    await use(account, 5)
    assert not await shares.more("u1")
    shares.end("u1")
    assert await use(shares.account("u2", PLAN), 5) == 3


async def test_what_a_unit_used_before_the_run_was_taken_up_is_of_its_share() -> None:
    run = working(9).restored(Spent(calls=2))
    shares = Shares(run, None, {"u1": Spent(calls=2)})
    assert await use(shares.account("u1", PLAN), 5) == 1
    assert await use(shares.account("u2", PLAN), 5) == 3


async def test_units_beyond_what_can_be_paid_for_begin_one_by_one_with_what_is_left() -> None:
    run = working(9)
    shares = Shares(run, None, {}, usual=UnitUse(0, 5), least=UnitUse(0, 3))
    made: dict[str, int] = {}

    async def work(unit: str, wanted: int) -> None:
        account = shares.account(unit, PLAN)
        if await shares.turn(unit):
            made[unit] = await use(account, wanted)
            await anyio.wait_all_tasks_blocked()
            shares.end(unit)

    async with anyio.create_task_group() as tasks:
        # Whoever asks first has the share, so that nobody waits for one that never asks.
        for unit in reversed(PLAN):
            tasks.start_soon(work, unit, 4)
    assert made == {"u3": 4, "u1": 4}
    assert shares.not_begun == {"u2"}


async def test_one_that_is_cancelled_while_it_waits_for_its_turn_holds_nobody_up() -> None:
    shares = Shares(working(9), None, {}, usual=UnitUse(0, 9), least=UnitUse(0, 3))
    for unit in PLAN:
        shares.account(unit, PLAN)
    assert await shares.turn("u1")
    with anyio.move_on_after(0):
        await shares.turn("u2")
    turns: list[bool] = []

    async def wait() -> None:
        turns.append(await shares.turn("u3"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        shares.end("u1")
    assert turns == [True]
