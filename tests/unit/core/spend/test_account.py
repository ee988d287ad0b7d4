from __future__ import annotations

import anyio
import pytest

from leadline.core.spend.account import Account, Ceilings, Exhausted, Hold, Reservation, Spent
from leadline.core.spend.money import Money, money
from leadline.testing.clock import ManualClock

pytestmark = pytest.mark.anyio


async def reserved(account: Account, hold: Hold) -> Reservation:
    answer = await account.reserve(hold)
    assert isinstance(answer, Reservation), answer
    return answer


async def refused(account: Account, hold: Hold) -> Exhausted:
    answer = await account.reserve(hold)
    assert isinstance(answer, Exhausted), answer
    return answer


async def test_what_a_call_used_is_booked_here_and_above() -> None:
    root = Account("run", Ceilings(tokens=1000))
    unit = root.child("unit")
    (await reserved(unit, Hold(tokens=300))).settle(Spent(tokens=200, calls=1))
    assert unit.spent == root.spent == Spent(tokens=200, calls=1)
    assert unit.remaining == root.remaining == Ceilings(tokens=800)


async def test_what_is_released_was_not_used() -> None:
    root = Account("run", Ceilings(tokens=1000, calls=1))
    held = await reserved(root, Hold(tokens=300))
    assert root.remaining == Ceilings(tokens=700, calls=0)
    held.release()
    assert root.remaining == Ceilings(tokens=1000, calls=1)
    assert root.spent == Spent()


async def test_a_reservation_ends_once() -> None:
    root = Account("run", Ceilings(tokens=1000))
    held = await reserved(root, Hold(tokens=300))
    held.settle(Spent(tokens=100, calls=1))
    held.settle(Spent(tokens=100, calls=1))
    held.release()
    assert root.spent == Spent(tokens=100, calls=1)
    assert root.in_flight == 0
    assert root.remaining == Ceilings(tokens=900)


async def test_more_than_was_reserved_is_booked_whole() -> None:
    root = Account("run", Ceilings(tokens=1000))
    (await reserved(root, Hold(tokens=300))).settle(Spent(tokens=5000, calls=1))
    assert root.spent.tokens == 5000
    assert root.remaining == Ceilings(tokens=0)
    assert (await refused(root, Hold(tokens=1))).what == "tokens"


@pytest.mark.case("K07")
async def test_a_child_has_what_its_parent_has_left_and_not_the_full_amount_anew() -> None:
    root = Account("run", Ceilings(cost=money(1)))
    (await reserved(root, Hold(cost=money(0.5)))).settle(Spent(cost=money(0.9), calls=1))
    assert root.child("unit").remaining.cost == money(0.1)
    assert root.child("unit", Ceilings(cost=money(5))).remaining.cost == money(0.1)


@pytest.mark.case("K07")
async def test_what_was_used_before_a_restart_stays_used() -> None:
    root = Account("run", Ceilings(cost=money(1), tokens=100)).restored(
        Spent(tokens=60, cost=money(0.9), calls=3)
    )
    assert root.remaining == Ceilings(cost=money(0.1), tokens=40)
    child = root.child("unit").restored(Spent(tokens=10, calls=1), above=False)
    assert (child.spent.tokens, root.spent.tokens) == (10, 60)
    root.child("other").restored(Spent(tokens=10, calls=1))
    assert root.spent == Spent(tokens=70, cost=money(0.9), calls=4)


async def test_a_share_is_a_part_of_what_is_left() -> None:
    root = Account("run", Ceilings(tokens=1000, calls=10)).restored(Spent(tokens=400, calls=4))
    assert root.child("unit", share=0.5).remaining == Ceilings(tokens=300, calls=3)
    assert root.child("unit", Ceilings(tokens=100), share=0.5).remaining == Ceilings(tokens=100, calls=3)


async def test_what_is_kept_can_be_used_by_the_parent_alone() -> None:
    root = Account("run", Ceilings(tokens=1000, calls=10))
    working = root.keep(0.15)
    assert working.remaining == Ceilings(tokens=850, calls=8)
    (await reserved(working, Hold(tokens=100))).settle(Spent(tokens=850, calls=1))
    exhausted = await refused(working, Hold(tokens=1))
    assert exhausted.message == (
        "the budget of run is used up: 850 tokens of 1,000 tokens, of which 150 tokens are kept for writing up"
    )
    (await reserved(root, Hold(tokens=150))).settle(Spent(tokens=150, calls=1))
    assert root.remaining.tokens == 0


async def test_as_much_is_kept_after_a_restart_as_before() -> None:
    root = Account("run", Ceilings(tokens=1000)).restored(Spent(tokens=800))
    assert root.keep(0.15).remaining == Ceilings(tokens=50)
    root = Account("run", Ceilings(tokens=1000)).restored(Spent(tokens=900))
    assert root.keep(0.15).remaining == Ceilings(tokens=0)


async def test_what_is_kept_is_left_also_where_the_tightest_ceiling_is_further_up() -> None:
    agent = Account("agent", Ceilings(tokens=1000))
    run = agent.child("run", Ceilings(tokens=5000))
    working = run.keep(0.2)
    assert working.child("unit").remaining == Ceilings(tokens=800)
    assert (await refused(working, Hold(tokens=900, least_tokens=900))).account == "agent"


async def test_a_run_of_one_call_keeps_none() -> None:
    assert Account("run", Ceilings(calls=1)).keep(0.15).remaining == Ceilings(calls=1)
    assert Account("run", Ceilings(calls=2)).keep(0.15).remaining == Ceilings(calls=1)


async def test_a_call_that_alone_may_pass_the_ceiling_is_let_in_if_its_prompt_fits() -> None:
    root = Account("run", Ceilings(tokens=1000))
    held = await reserved(root, Hold(tokens=5000, least_tokens=900))
    assert root.try_reserve(Hold(tokens=10, least_tokens=10)) is None
    held.settle(Spent(tokens=950, calls=1))
    exhausted = await refused(root, Hold(tokens=5000, least_tokens=100))
    assert exhausted.message.endswith(
        "950 tokens of 1,000 tokens, and the next call needs at least 100 tokens"
    )


async def test_what_does_not_fit_beside_others_waits_for_them() -> None:
    root = Account("run", Ceilings(tokens=1000))
    held = await reserved(root, Hold(tokens=800))
    order: list[str] = []

    async def ask(name: str, tokens: int) -> None:
        (await reserved(root, Hold(tokens=tokens))).settle(Spent(tokens=tokens, calls=1))
        order.append(name)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "large", 500)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(ask, "small", 100)
        await anyio.wait_all_tasks_blocked()
        assert order == []
        held.settle(Spent(tokens=300, calls=1))
    assert order == ["large", "small"]


async def test_who_waits_for_one_unit_keeps_nobody_of_another_from_going() -> None:
    root = Account("run", Ceilings(tokens=10_000))
    one, other = root.child("one", Ceilings(tokens=100)), root.child("other", Ceilings(tokens=100))
    held = await reserved(one, Hold(tokens=80))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.reserve, Hold(tokens=80))
        await anyio.wait_all_tasks_blocked()
        assert isinstance(other.try_reserve(Hold(tokens=80)), Reservation)
        assert one.try_reserve(Hold(tokens=1)) is None
        held.settle(Spent(tokens=10, calls=1))
    assert one.in_flight == 1


async def test_who_waits_is_told_when_it_turns_out_that_nothing_is_left() -> None:
    root = Account("run", Ceilings(calls=2))
    held = [await reserved(root, Hold()) for _ in range(2)]
    answers: list[object] = []

    async def ask() -> None:
        answers.append(await root.reserve(Hold()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        held[0].release()
        await anyio.wait_all_tasks_blocked()
        assert len(answers) == 1
        assert isinstance(answers[0], Reservation)
        held[1].settle(Spent(calls=1))
        answers[0].settle(Spent(calls=1))
    assert isinstance(answers[1], Exhausted)
    assert root.spent.calls == 2


async def test_who_is_cancelled_while_it_waits_leaves_nothing_and_lets_the_next_one_in() -> None:
    root = Account("run", Ceilings(tokens=1000))
    held = await reserved(root, Hold(tokens=800))
    let_in: list[Reservation] = []

    async def ask(tokens: int) -> None:
        let_in.append(await reserved(root, Hold(tokens=tokens)))

    scope = anyio.CancelScope()

    async def cancelled() -> None:
        with scope:
            await root.reserve(Hold(tokens=900))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancelled)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(ask, 100)
        await anyio.wait_all_tasks_blocked()
        assert let_in == []
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        assert len(let_in) == 1
    held.release()
    let_in[0].release()
    assert root.remaining == Ceilings(tokens=1000)
    assert root.in_flight == 0


async def test_the_place_of_who_left_the_line_bars_nobody() -> None:
    root = Account("run", Ceilings(tokens=1000))
    held = await reserved(root, Hold(tokens=800))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(root.reserve, Hold(tokens=900))
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert isinstance(root.try_reserve(Hold(tokens=200)), Reservation)
    held.release()


async def test_who_is_cancelled_in_the_moment_it_is_let_in_gives_it_back() -> None:
    root = Account("run", Ceilings(tokens=1000))
    held = await reserved(root, Hold(tokens=800))
    scope = anyio.CancelScope()

    async def ask() -> None:
        with scope:
            mine = await reserved(root, Hold(tokens=900))
            try:
                await anyio.sleep_forever()
            finally:
                mine.release()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        held.release()
        assert root.in_flight == 1
        scope.cancel()
    assert root.in_flight == 0
    assert root.remaining == Ceilings(tokens=1000)


async def test_a_ceiling_on_time_is_kept_by_the_clock() -> None:
    clock = ManualClock()
    root = Account("run", Ceilings(seconds=100), clock=clock.monotonic).restored(Spent(), 40)
    working = root.keep(0.2)
    await clock.advance(30)
    assert root.remaining.seconds == 30
    assert working.remaining.seconds == 10
    await clock.advance(10)
    exhausted = await refused(working.child("unit"), Hold())
    assert (exhausted.what, exhausted.message) == (
        "seconds",
        "the budget of run is used up: 80 s of 100 s, of which 20 s are kept for writing up",
    )
    (await reserved(root, Hold())).release()
    await clock.advance(20)
    assert (await refused(root, Hold())).what == "seconds"


async def test_seconds_need_a_clock() -> None:
    with pytest.raises(ValueError, match="needs a clock"):
        Account("run", Ceilings(seconds=1))


async def test_what_takes_nothing_of_what_is_limited_goes_on_when_that_is_used_up() -> None:
    root = Account("run", Ceilings(tokens=10, cost=Money(10))).restored(Spent(tokens=10, cost=Money(10)))
    (await reserved(root, Hold())).settle(Spent(calls=1))
    assert (await refused(root, Hold(cost=Money(1)))).what == "cost"


async def test_an_account_without_ceilings_never_says_no() -> None:
    root = Account("agent")
    held = [await reserved(root.child("turn"), Hold(tokens=10**12)) for _ in range(100)]
    assert root.in_flight == 100
    for one in held:
        one.settle(Spent(tokens=10**12, calls=1))
    assert not root.limited
    assert root.remaining == Ceilings()
