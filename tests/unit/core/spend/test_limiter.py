"""Calls of models stand in line: who goes, who waits, what they are told, what ends a wait."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import TaskGroup

from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.limits import Bucket, RateLimits
from leadline.core.spend.limiter import Limiter, Permit
from leadline.core.spend.limiter_config import LimiterConfig, LineConfig
from leadline.core.spend.lines import Ask, Waiting
from leadline.testing.clock import ManualClock

pytestmark = pytest.mark.anyio

MODEL = "bench/model"
ONE = LineConfig(model=MODEL, max=1)


class Scene:
    """A limiter on a clock that stands still, and callers that say what becomes of them."""

    def __init__(self, limiter: Limiter, clock: ManualClock, group: TaskGroup) -> None:
        self.limiter = limiter
        self.clock = clock
        self.group = group
        self.admitted: list[str] = []
        self.permits: dict[str, Permit] = {}
        self.stops: dict[str, Stop] = {}
        self.told: dict[str, list[Waiting]] = {}
        self._scopes: dict[str, anyio.CancelScope] = {}

    async def ask(self, name: str, ask: Ask | None = None) -> None:
        """Let a caller `name` ask, and everything happen that follows at once."""

        async def call() -> None:
            told = self.told.setdefault(name, [])
            with anyio.CancelScope() as self._scopes[name]:
                found = await self.limiter.admit(ask or Ask(MODEL), told.append)
                if isinstance(found, Stop):
                    self.stops[name] = found
                else:
                    self.admitted.append(name)
                    self.permits[name] = found

        self.group.start_soon(call)
        await anyio.wait_all_tasks_blocked()

    async def done(self, name: str, *args: object, **kwargs: object) -> None:
        self.permits.pop(name).done(*args, **kwargs)  # pyright: ignore[reportArgumentType]
        await anyio.wait_all_tasks_blocked()

    async def cancel(self, name: str) -> None:
        self._scopes[name].cancel()
        await anyio.wait_all_tasks_blocked()

    def state(self, model: str = MODEL) -> tuple[int, int]:
        """Calls under way and calls that wait."""
        line = next((line for line in self.limiter.lines() if line.model == model), None)
        return (line.active, line.waiting) if line is not None else (0, 0)


@asynccontextmanager
async def scene(*limits: LineConfig, **config: object) -> AsyncGenerator[Scene]:
    clock = ManualClock()
    limiter = Limiter(clock, LimiterConfig.model_validate({"limits": limits, **config}))
    async with anyio.create_task_group() as group:
        group.start_soon(limiter.keep_time)
        await anyio.wait_all_tasks_blocked()
        yield Scene(limiter, clock, group)
        group.cancel_scope.cancel()


async def test_when_nobody_waits_any_more_nothing_sleeps_until_their_time() -> None:
    async with scene(ONE) as made:
        for name in ("first", "second", "third"):
            await made.ask(name)
        assert made.clock.sleepers == 1
        await made.cancel("third")
        await made.done("first")
        await made.done("second", failure=Wait("RATE_LIMIT", "no", retry_after_s=5.0))
        assert made.clock.sleepers == 0


async def test_a_model_without_limits_is_never_waited_for() -> None:
    async with scene() as made:
        for number in range(100):
            await made.ask(str(number))
        assert len(made.admitted) == 100
        assert not any(made.told.values())
        assert made.state() == (100, 0)


async def test_an_admission_without_a_wait_does_not_let_go_of_the_task() -> None:
    limiter = Limiter(ManualClock(), LimiterConfig(limits=(ONE,)))
    for model in (MODEL, "other/model"):
        coroutine = limiter.admit(Ask(model))
        with pytest.raises(StopIteration) as ended:
            coroutine.send(None)
        assert isinstance(ended.value.value, Permit)


@pytest.mark.case("research-3.7-9")
async def test_one_place_admits_one_call_however_often_the_last_holder_leaves() -> None:
    async with scene(ONE) as made:
        for name in "abcde":
            await made.ask(name)
        assert made.admitted == ["a"]
        for number, name in enumerate("abcd", start=2):
            await made.done(name)
            assert made.admitted == list("abcde"[:number])
            assert made.state() == (1, 5 - number)
        await made.done("e")
        assert made.limiter.lines() == ()


@pytest.mark.case("research-3.6-spawn")
async def test_one_freed_place_of_children_admits_one_child_over_all_models() -> None:
    async with scene(children=2) as made:
        for number in range(6):
            await made.ask(f"c{number}", Ask(f"bench/m{number % 3}", child=True))
        assert made.admitted == ["c0", "c1"]
        assert made.told["c2"][-1].why == "children"
        for number in range(4):
            await made.done(f"c{number}")
            assert len(made.permits) == 2
        assert len(made.admitted) == 6


async def test_a_parent_goes_past_children_that_wait_for_each_other() -> None:
    async with scene(LineConfig(model=MODEL, max=3), children=1) as made:
        await made.ask("first child", Ask(MODEL, child=True))
        await made.ask("second child", Ask(MODEL, child=True))
        await made.ask("parent")
        assert made.admitted == ["first child", "parent"]
        await made.done("parent")
        assert made.state() == (1, 1)
        await made.done("first child")
        assert made.admitted[-1] == "second child"


async def test_places_of_children_go_to_the_lines_in_turn() -> None:
    async with scene(children=1) as made:
        await made.ask("a0", Ask("bench/a", child=True))
        for number in range(1, 5):
            await made.ask(f"a{number}", Ask("bench/a", child=True))
        await made.ask("b0", Ask("bench/b", child=True))
        while len(made.admitted) < 6:
            await made.done(made.admitted[-1])
        assert made.admitted.index("b0") <= 2, "a line with much to do holds up the other by a turn"


async def test_who_comes_first_goes_first_within_a_group() -> None:
    async with scene(ONE) as made:
        for number in range(6):
            await made.ask(str(number), Ask(MODEL, group="run"))
        while len(made.admitted) < 6:
            await made.done(made.admitted[-1])
        assert made.admitted == [str(number) for number in range(6)]


async def test_a_run_with_many_calls_holds_up_another_by_one_turn() -> None:
    async with scene(ONE) as made:
        for number in range(20):
            await made.ask(f"big{number}", Ask(MODEL, group="big"))
        for number in range(3):
            await made.ask(f"small{number}", Ask(MODEL, group="small"))
        while len(made.admitted) < 10:
            await made.done(made.admitted[-1])
        assert [made.admitted.index(f"small{number}") for number in range(3)] == [2, 4, 6]


async def test_a_higher_priority_goes_first_and_a_lower_one_not_never() -> None:
    async with scene(ONE) as made:
        await made.ask("held")
        await made.ask("low", Ask(MODEL, priority=-1))
        for number in range(40):
            await made.ask(f"high{number}", Ask(MODEL, priority=5))
        await made.done("held")
        assert made.admitted[-1] == "high0"
        while "low" not in made.admitted:
            await made.done(made.admitted[-1])
        assert len(made.admitted) <= 11


async def test_a_wait_tells_what_holds_it_and_how_many_go_before() -> None:
    async with scene(ONE) as made:
        await made.ask("a")
        await made.ask("b")
        await made.ask("c")
        assert made.told["a"] == []
        assert made.told["b"] == [Waiting(MODEL, "slots", 0, None)]
        assert made.told["c"] == [Waiting(MODEL, "slots", 1, None)]


async def test_a_wait_tells_again_when_its_reason_changes() -> None:
    async with scene(ONE) as made:
        await made.ask("a")
        await made.ask("b")
        await made.done("a", failure=Wait("RATE_LIMIT", "slow down", retry_after_s=20))
        assert [one.why for one in made.told["b"]] == ["slots", "paused"]
        assert made.told["b"][-1].seconds == 20


async def test_a_call_that_is_cancelled_in_line_leaves_it() -> None:
    async with scene(ONE) as made:
        await made.ask("a")
        await made.ask("b")
        await made.ask("c")
        await made.cancel("b")
        assert made.state() == (1, 1)
        await made.done("a")
        assert made.admitted == ["a", "c"]


async def test_a_call_that_is_cancelled_in_the_moment_of_its_turn_passes_it_on() -> None:
    async with scene(LineConfig(model=MODEL, max=1, requests_per_minute=2)) as made:
        for name in "abc":
            await made.ask(name)
        made._scopes["b"].cancel()  # pyright: ignore[reportPrivateUsage]
        made.permits["a"].done()
        await anyio.wait_all_tasks_blocked()
        assert made.admitted == ["a", "c"], "b was given its turn, and passed it on as if it had never had it"
        assert made.state() == (1, 0)


async def test_when_the_call_whose_turn_it_is_goes_away_the_next_one_goes_at_once() -> None:
    async with scene(LineConfig(model=MODEL, tokens_per_minute=100), queue_timeout_s=30) as made:
        await made.ask("a", Ask(MODEL, tokens=60))
        await made.ask("cancelled", Ask(MODEL, tokens=70))
        await made.ask("late", Ask(MODEL, tokens=70))
        await made.clock.advance(20)
        await made.ask("small", Ask(MODEL, tokens=20))
        await made.cancel("cancelled")
        assert made.admitted == ["a"]
        await made.clock.advance(10)
        assert list(made.stops) == ["late"]
        assert made.admitted == ["a", "small"]


async def test_a_wait_ends_when_it_lasts_too_long_and_says_what_to_do() -> None:
    async with scene(ONE, queue_timeout_s=90) as made:
        await made.ask("a")
        await made.ask("b")
        await made.clock.advance(60)
        await made.ask("c")
        await made.clock.advance(29)
        assert made.stops == {}
        await made.clock.advance(1)
        assert list(made.stops) == ["b"]
        stop = made.stops["b"]
        assert stop.code == "CAPACITY"
        for said in (MODEL, "1 min 30 s", "1 call may be under way at once"):
            assert said in stop.message
        assert stop.next_step is not None
        assert "raise max of bench/model" in stop.next_step
        await made.done("a")
        assert made.admitted == ["a", "c"]


async def test_a_line_that_is_full_refuses_at_once() -> None:
    async with scene(ONE, max_queued=2) as made:
        for name in "abcd":
            await made.ask(name)
        assert list(made.stops) == ["d"]
        assert "max_queued" in (made.stops["d"].next_step or "")


async def test_done_counts_once() -> None:
    async with scene(LineConfig(model=MODEL, max=2)) as made:
        for name in "abc":
            await made.ask(name)
        permit = made.permits["a"]
        permit.done()
        permit.done()
        permit.unmade()
        await made.ask("d")
        assert made.state() == (2, 1)


async def test_lowering_a_limit_keeps_those_who_wait_and_raising_it_lets_them_go() -> None:
    async with scene(LineConfig(model=MODEL, max=3)) as made:
        for name in "abcde":
            await made.ask(name)
        made.limiter.limit([ONE])
        await anyio.wait_all_tasks_blocked()
        assert made.state() == (3, 2)
        await made.done("a")
        await made.done("b")
        assert made.state() == (1, 2), "three were too many, so two may end before one begins"
        made.limiter.limit([LineConfig(model=MODEL, max=2)])
        await anyio.wait_all_tasks_blocked()
        assert made.state() == (2, 1)
        made.limiter.limit([])
        await anyio.wait_all_tasks_blocked()
        assert made.state() == (3, 0)


async def test_raising_the_ceiling_on_children_lets_those_of_all_lines_go() -> None:
    async with scene(children=1) as made:
        for number in range(4):
            await made.ask(str(number), Ask(f"bench/m{number}", child=True))
        assert made.admitted == ["0"]
        made.limiter.limit([], 3)
        await anyio.wait_all_tasks_blocked()
        assert made.admitted == ["0", "1", "2"]


async def test_after_a_reset_a_bucket_is_as_full_as_its_limit_and_no_fuller() -> None:
    async with scene() as made:
        await made.ask("a")
        await made.done("a", 10, _said(0, 20, 2))
        for name in "bcd":
            await made.ask(name)
        await made.clock.advance(20)
        assert made.admitted == ["a", "b", "c"]
        await made.clock.advance(20)
        assert made.admitted == ["a", "b", "c", "d"]


async def test_a_row_for_all_models_of_a_provider_gives_each_a_line_of_its_own() -> None:
    async with scene(LineConfig(model="bench/*", max=1), LineConfig(model="bench/big", max=2)) as made:
        for number, model in enumerate(
            ("bench/a", "bench/a", "bench/b", "bench/big", "bench/big", "x/a", "x/a")
        ):
            await made.ask(str(number), Ask(model))
        assert made.admitted == ["0", "2", "3", "4", "5", "6"]


async def test_no_more_calls_begin_within_any_minute_than_may() -> None:
    async with scene(LineConfig(model=MODEL, requests_per_minute=3)) as made:
        for number in range(8):
            await made.ask(str(number))
            await made.clock.advance(10)
        while len(made.admitted) < 8:
            await made.clock.advance(1)
        assert made.clock.monotonic() <= 150
        assert made.told["3"][0].why == "requests"
        assert made.told["3"][0].seconds == 30


async def test_tokens_are_held_back_when_a_call_begins_and_corrected_when_it_ends() -> None:
    async with scene(LineConfig(model=MODEL, tokens_per_minute=1000)) as made:
        await made.ask("a", Ask(MODEL, tokens=800))
        await made.ask("b", Ask(MODEL, tokens=400))
        assert made.told["b"] == [Waiting(MODEL, "tokens", 0, 60.0)]
        await made.done("a", 500)
        assert made.admitted == ["a", "b"]
        await made.done("b", 900)
        await made.ask("c", Ask(MODEL, tokens=1))
        assert made.admitted == ["a", "b"], "b took more than was thought"
        await made.clock.advance(60)
        assert made.admitted == ["a", "b", "c"]


async def test_a_call_larger_than_a_minute_allows_goes_alone_and_not_never() -> None:
    async with scene(LineConfig(model=MODEL, tokens_per_minute=1000)) as made:
        await made.ask("small", Ask(MODEL, tokens=10))
        await made.ask("large", Ask(MODEL, tokens=5000))
        await made.ask("behind", Ask(MODEL, tokens=10))
        assert made.admitted == ["small"], "the large one is not overtaken for ever"
        await made.clock.advance(60)
        assert made.admitted == ["small", "large"]
        await made.clock.advance(60)
        assert made.admitted == ["small", "large", "behind"]


async def test_a_call_that_was_not_made_takes_nothing_of_the_minute() -> None:
    async with scene(LineConfig(model=MODEL, requests_per_minute=1, tokens_per_minute=100)) as made:
        await made.ask("a", Ask(MODEL, tokens=100))
        made.permits["a"].unmade()
        await made.ask("b", Ask(MODEL, tokens=100))
        assert made.admitted == ["a", "b"]


async def test_an_empty_line_that_knows_nothing_is_forgotten() -> None:
    async with scene(ONE) as made:
        await made.ask("a")
        await made.ask("b")
        await made.done("a")
        await made.cancel("b")
        await made.done("b")
        assert made.limiter.lines() == ()
        assert made.limiter._lines == {}  # pyright: ignore[reportPrivateUsage]


async def test_a_pause_that_the_provider_asks_for_holds_for_everybody_in_the_line() -> None:
    async with scene() as made:
        for name in "abc":
            await made.ask(name)
        await made.done("a", failure=Wait("RATE_LIMIT", "slow down", retry_after_s=30))
        await made.ask("d")
        await made.ask("other", Ask("bench/other"))
        assert made.admitted == ["a", "b", "c", "other"]
        assert made.told["d"][0].why == "paused"
        await made.done("b", 10)
        await made.clock.advance(29)
        assert "d" not in made.admitted
        await made.clock.advance(1)
        assert "d" in made.admitted


async def test_who_cannot_outlast_a_pause_is_told_so_at_once() -> None:
    async with scene(queue_timeout_s=60) as made:
        await made.ask("a")
        await made.ask("b")
        await made.done("a", failure=Wait("OVERLOADED", "come back later", retry_after_s=7200))
        await made.ask("c")
        stop = made.stops["c"]
        assert stop.code == "CAPACITY"
        assert stop.resets_in_s == 900, "a pause is bounded, whatever the provider asks for"
        await made.clock.advance(900)
        await made.done("b", 1)
        await made.ask("d")
        assert made.admitted == ["a", "b", "d"]


async def test_refusals_halve_what_may_be_under_way_once_for_each_crowd_and_success_raises_it() -> None:
    async with scene() as made:
        for number in range(8):
            await made.ask(str(number))
        for number in range(4):
            await made.done(str(number), failure=Wait("RATE_LIMIT", "no", retry_after_s=0))
        (line,) = made.limiter.lines()
        assert line.ceiling == 4, "the four that were refused went out together"
        for number in range(8, 12):
            await made.ask(str(number))
        assert made.state() == (4, 4)
        for number in range(4, 8):
            await made.done(str(number), 10)
        (line,) = made.limiter.lines()
        assert line.ceiling == 4
        assert made.state() == (4, 0)
        await made.done("8", 10)
        (line,) = made.limiter.lines()
        assert line.ceiling == 5, "one round of successes, one more"


async def test_refusals_in_a_row_that_name_no_time_pause_the_line_for_longer_each_time() -> None:
    async with scene() as made:
        pauses: list[float | None] = []
        for number in range(9):
            await made.ask(str(number))
            await made.done(str(number), failure=Wait("OVERLOADED", "no"))
            (line,) = made.limiter.lines()
            pauses.append(line.paused_s)
            await made.clock.advance(line.paused_s or 0)
        assert pauses == [None, 0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0]
        await made.ask("answered")
        await made.done("answered", 10)
        await made.ask("refused")
        await made.done("refused", failure=Wait("OVERLOADED", "no"))
        (line,) = made.limiter.lines()
        assert line.paused_s is None


async def test_a_failure_that_says_nothing_of_limits_teaches_nothing() -> None:
    async with scene() as made:
        for name in "ab":
            await made.ask(name)
        await made.done("a", failure=Wait("SERVER", "oops"))
        await made.done("b", failure=Stop("AUTH", "no"))
        assert made.limiter.lines() == ()


async def test_what_a_refusal_taught_is_forgotten_in_time() -> None:
    async with scene() as made:
        for name in "ab":
            await made.ask(name)
        for name in "ab":
            await made.done(name, failure=Wait("RATE_LIMIT", "no", retry_after_s=1))
        await made.clock.advance(301)
        assert made.limiter.lines() == ()
        await made.ask("c")
        await made.ask("d")
        assert made.state() == (2, 0)


def _said(
    remaining: int, resets_in_s: float, limit: int | None = None, *, steady: bool = False
) -> RateLimits:
    return RateLimits(requests=Bucket(limit, remaining, resets_in_s, steady))


async def test_what_a_header_leaves_is_used_up_and_then_waited_for() -> None:
    async with scene() as made:
        await made.ask("a")
        await made.done("a", 10, _said(2, 20))
        for name in "bcd":
            await made.ask(name)
        assert made.admitted == ["a", "b", "c"]
        assert made.told["d"] == [Waiting(MODEL, "requests", 0, 20.0)]
        await made.clock.advance(20)
        assert made.admitted[-1] == "d"


async def test_calls_under_way_that_a_header_may_not_know_of_count_against_it() -> None:
    async with scene() as made:
        for name in "abc":
            await made.ask(name)
        made.permits["a"].heard(_said(3, 20))
        await made.ask("d")
        await made.ask("e")
        assert made.admitted == ["a", "b", "c", "d"], "three were left, and b and c may be two of them"


async def test_the_answer_to_an_earlier_call_does_not_replace_what_a_later_one_said() -> None:
    async with scene() as made:
        await made.ask("a")
        await made.ask("b")
        await made.done("b", 10, _said(0, 20))
        await made.done("a", 10, _said(50, 20))
        await made.ask("c")
        assert "c" not in made.admitted


async def test_a_bucket_that_fills_steadily_is_waited_for_only_as_long_as_needed() -> None:
    tokens = RateLimits(tokens=Bucket(1000, 0, 50.0, steady=True))
    async with scene() as made:
        await made.ask("a")
        await made.done("a", 10, tokens)
        await made.ask("b", Ask(MODEL, tokens=100))
        assert made.told["b"] == [Waiting(MODEL, "tokens", 0, 5.0)]
        await made.clock.advance(5)
        assert made.admitted == ["a", "b"]


async def test_a_header_that_promises_nothing_for_hours_is_put_to_the_test_by_one_call() -> None:
    async with scene() as made:
        await made.ask("a")
        await made.done("a", 10, _said(0, 6 * 3600))
        for name in "bcd":
            await made.ask(name)
        assert made.told["b"][0].seconds == 60
        await made.clock.advance(60)
        assert made.admitted == ["a", "b"]
        await made.done("b", failure=Wait("RATE_LIMIT", "still none", retry_after_s=120))
        await made.clock.advance(119)
        assert made.admitted == ["a", "b"]


async def test_lines_show_what_is_known() -> None:
    async with scene(LineConfig(model=MODEL, max=2, tokens_per_minute=500)) as made:
        await made.ask("a", Ask(MODEL, tokens=100))
        await made.ask("b", Ask(MODEL, tokens=100))
        await made.ask("c", Ask(MODEL, tokens=100))
        await made.done("a", 50, RateLimits(requests=Bucket(60, 58, 30.0)))
        await made.clock.advance(10)
        (line,) = made.limiter.lines()
        assert (line.active, line.waiting, line.max, line.tokens_per_minute, line.tokens_used) == (
            2,
            0,
            2,
            500,
            250,
        )
        assert line.learned == RateLimits(requests=Bucket(60, 58, 20.0))
        assert line.paused_s is None


async def test_what_a_caller_does_wrong_when_told_of_its_wait_concerns_only_it() -> None:
    async with scene(ONE) as made:
        await made.ask("a")

        def broken(waiting: Waiting) -> None:
            raise RuntimeError("the viewer is gone")

        with pytest.raises(RuntimeError):
            await made.limiter.admit(Ask(MODEL), broken)
        await made.ask("c")
        assert made.state() == (1, 1)
        await made.done("a")
        assert made.admitted == ["a", "c"]


async def test_five_hundred_callers_of_sixteen_places_all_get_their_turn() -> None:
    limiter = Limiter(ManualClock(), LimiterConfig(limits=(LineConfig(model=MODEL, max=16),)))
    most = under_way = calls = 0

    async def one(name: str) -> None:
        nonlocal most, under_way, calls
        for _ in range(4):
            permit = await limiter.admit(Ask(MODEL, group=name))
            assert isinstance(permit, Permit)
            under_way, calls = under_way + 1, calls + 1
            most = max(most, under_way)
            await anyio.lowlevel.checkpoint()
            under_way -= 1
            permit.done(1)

    async with anyio.create_task_group() as group:
        for number in range(500):
            group.start_soon(one, str(number))
    assert (most, calls) == (16, 2000)
    assert limiter.lines() == ()


@pytest.mark.parametrize(
    "row",
    [
        {"model": MODEL, "max": None},
        {"model": MODEL, "max": ""},
        {"model": MODEL, "max": " 3"},
        {"model": MODEL, "max": 0},
        {"model": MODEL, "max": -1},
        {"model": MODEL, "max": True},
        {"model": MODEL, "max": 1.5},
        {"model": MODEL, "max": "1e3"},
        {"model": MODEL, "requests_per_minute": "null"},
        {"model": MODEL, "tokens_per_minute": float("nan")},
        {"model": "model"},
        {"model": "*/model"},
        {"model": "bench/"},
    ],
)
def test_what_is_not_a_limit_is_refused(row: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        LimiterConfig.model_validate({"limits": [row]})


@pytest.mark.parametrize("key", ["children", "queue_timeout_s", "max_queued"])
@pytest.mark.parametrize("value", [None, "", 0, False, float("inf"), float("nan")])
def test_a_blank_never_becomes_a_number(key: str, value: object) -> None:
    with pytest.raises(ValueError, match=key):
        LimiterConfig.model_validate({key: value})


def test_a_limit_may_come_from_the_environment() -> None:
    found = LimiterConfig.model_validate({"limits": [{"model": MODEL, "max": "3"}]})
    assert found.limits == (LineConfig(model=MODEL, max=3),)


def test_two_rows_of_one_model_are_refused() -> None:
    rows: Sequence[LineConfig] = (ONE, ONE)
    with pytest.raises(ValueError, match="two rows"):
        LimiterConfig.model_validate({"limits": rows})
