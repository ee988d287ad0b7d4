"""Whatever comes in whatever order: never more calls than may, and nobody waits while a place is free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.limits import Bucket, RateLimits
from leadline.core.spend.limiter import Limiter, Permit
from leadline.core.spend.limiter_config import LimiterConfig, LineConfig
from leadline.core.spend.lines import Ask, Waiting
from leadline.testing.clock import ManualClock

MODELS = ("bench/a", "bench/b", "bench/c")
TIMEOUT_S = 50.0
PER_MINUTE = 6
TOKENS_PER_MINUTE = 60


class Call:
    """One caller: it asks, and then it waits, holds a permit, or is over."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.permit: Permit | None = None
        self.stop: Stop | None = None
        self.cancelled = False
        self.told: list[Waiting] = []
        self.began: float | None = None
        """When it began, if it was made."""
        self.scope: anyio.CancelScope | None = None

    @property
    def waits(self) -> bool:
        return self.permit is None and self.stop is None and not self.cancelled

    def cancel(self) -> None:
        assert self.scope is not None
        self.scope.cancel()


class Lines(RuleBasedStateMachine):
    """Random callers of three models: one with few places, one with limits of the minute, one that only learns."""

    calls = Bundle("calls")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.rows = {
            MODELS[0]: LineConfig(model=MODELS[0], max=1),
            MODELS[1]: LineConfig(
                model=MODELS[1], requests_per_minute=PER_MINUTE, tokens_per_minute=TOKENS_PER_MINUTE
            ),
        }
        self.children = 2
        config = LimiterConfig(
            limits=tuple(self.rows.values()), children=self.children, queue_timeout_s=TIMEOUT_S
        )
        self.limiter = Limiter(self.clock, config)
        self.everybody: list[Call] = []
        self.over_limit: dict[str, int] = {}
        """Calls that were under way when a limit was lowered: they may be more than may."""
        self.tasks = [self.loop.create_task(self.limiter.keep_time())]
        self._run()

    def _run(self, *now: Callable[[], object]) -> None:
        async def settle() -> None:
            for one in now:
                one()
            await anyio.wait_all_tasks_blocked()

        self.loop.run_until_complete(settle())

    def teardown(self) -> None:
        async def stop() -> None:
            for task in self.tasks:
                task.cancel()
            await asyncio.gather(*self.tasks, return_exceptions=True)

        self.loop.run_until_complete(stop())
        self.loop.close()

    async def _call(self, call: Call) -> None:
        with anyio.CancelScope() as call.scope:
            found = await self.limiter.admit(call.ask, call.told.append)
            if isinstance(found, Stop):
                call.stop = found
            else:
                call.permit, call.began = found, self.clock.monotonic()
        if call.scope.cancelled_caught:
            call.cancelled = True

    @rule(
        target=calls,
        model=st.sampled_from(MODELS),
        child=st.booleans(),
        group=st.sampled_from("xyz"),
        priority=st.integers(0, 2),
        many=st.integers(1, 4),
        tokens=st.sampled_from((1, 10, 50, 100)),
    )
    def ask(self, model: str, child: bool, group: str, priority: int, many: int, tokens: int) -> object:
        made = [Call(Ask(model, tokens, group, priority, child)) for _ in range(many)]
        self.everybody += made

        def begin() -> None:
            self.tasks += [self.loop.create_task(self._call(call)) for call in made]

        self._run(begin)
        return multiple(*made)

    @rule(call=consumes(calls), tokens=st.none() | st.integers(0, 30))
    def done(self, call: Call, tokens: int | None) -> None:
        self._run(lambda: self._end(call, tokens))

    @rule(call=consumes(calls))
    def unmade(self, call: Call) -> None:
        if call.permit is not None:
            permit, call.permit, call.began, call.cancelled = call.permit, None, None, True
            self._run(permit.unmade)

    @rule(call=consumes(calls), after=st.floats(0, 30), code=st.sampled_from(("RATE_LIMIT", "OVERLOADED")))
    def refused(self, call: Call, after: float, code: str) -> None:
        failure = Wait("RATE_LIMIT" if code == "RATE_LIMIT" else "OVERLOADED", "no", retry_after_s=after)
        self._run(lambda: self._end(call, None, failure=failure))

    @rule(call=consumes(calls), remaining=st.integers(0, 3), reset=st.floats(0.1, 200), steady=st.booleans())
    def answered_with_headers(self, call: Call, remaining: int, reset: float, steady: bool) -> None:
        limits = RateLimits(requests=Bucket(10, remaining, reset, steady))
        self._run(lambda: self._end(call, 10, limits))

    def _end(
        self, call: Call, tokens: int | None, limits: RateLimits | None = None, failure: Wait | None = None
    ) -> None:
        if call.permit is not None:
            call.permit.done(tokens, limits, failure)
            call.permit, call.cancelled = None, True

    @rule(call=consumes(calls))
    def cancel(self, call: Call) -> None:
        self._run(call.cancel)

    @rule(leaving=consumes(calls), holding=consumes(calls))
    def cancel_in_the_moment_of_its_turn(self, leaving: Call, holding: Call) -> None:
        def both() -> None:
            if leaving.waits:
                leaving.cancel()
            self._end(holding, 5)

        self._run(both)

    @rule(seconds=st.sampled_from((0.5, 5.0, 20.0, 60.0)))
    def pass_time(self, seconds: float) -> None:
        self.loop.run_until_complete(self.clock.advance(seconds))

    @rule(most=st.none() | st.integers(1, 3), children=st.integers(1, 3))
    def change_limits(self, most: int | None, children: int) -> None:
        self.children = children
        self.rows[MODELS[0]] = LineConfig(model=MODELS[0], **({"max": most} if most else {}))
        for key, count, limit in (
            (MODELS[0], self._active(MODELS[0]), most),
            ("children", self._active_children(), children),
        ):
            self.over_limit[key] = count if limit is not None and count > limit else 0
        self._run(lambda: self.limiter.limit(tuple(self.rows.values()), children))

    def _active(self, model: str) -> int:
        return sum(call.permit is not None and call.ask.model == model for call in self.everybody)

    def _active_children(self) -> int:
        return sum(call.permit is not None and call.ask.child for call in self.everybody)

    @invariant()
    def never_more_than_may(self) -> None:
        active, most = self._active(MODELS[0]), self.rows[MODELS[0]].max
        self.over_limit = {key: min(count, self._now(key)) for key, count in self.over_limit.items()}
        assert most is None or active <= max(most, self.over_limit.get(MODELS[0], 0))
        assert self._active_children() <= max(self.children, self.over_limit.get("children", 0))

    def _now(self, key: str) -> int:
        return self._active_children() if key == "children" else self._active(key)

    @invariant()
    def never_more_within_a_minute_than_may(self) -> None:
        began = [call.began for call in self.everybody if call.ask.model == MODELS[1]]
        times = [at for at in began if at is not None]
        for at in times:
            assert sum(at <= other < at + 60 for other in times) <= PER_MINUTE

    @invariant()
    def the_books_are_right(self) -> None:
        states = {line.model: line for line in self.limiter.lines()}
        for model in MODELS:
            waiting = sum(call.waits and call.ask.model == model for call in self.everybody)
            state = states.get(model)
            assert (state.active, state.waiting) == (self._active(model), waiting) if state else not waiting
            assert state is not None or not self._active(model)

    @invariant()
    def nobody_waits_while_a_place_is_free(self) -> None:
        now = self.clock.monotonic()
        for model, line in self.limiter._lines.items():  # pyright: ignore[reportPrivateUsage]
            waiting = [call for call in self.everybody if call.waits and call.ask.model == model]
            assert all(call.told for call in waiting), "somebody waits and was not told"
            room = self._active_children() < self.children
            turn = line.order.next(children=room) if line.order is not None else None
            may = [call.ask for call in waiting if room or not call.ask.child]
            assert (turn is not None) == bool(may)
            if turn is not None:
                block = line.blocks(turn.ask, now)
                assert block is not None, f"it is the turn of {turn.ask}, and it waits for nothing"
                # Where a call of the line is under way, its end is when the line is looked at again.
                looked_at = block.again is None or line.active > 0 or line.due is not None
                assert looked_at, f"nobody looks at {model} again, where {turn.ask} waits for {block}"
                if block.again is not None and line.due is not None and not line.active:
                    assert line.due <= now + block.again + 0.01

    @invariant()
    def no_wait_is_longer_than_allowed(self) -> None:
        for call in self.everybody:
            if call.stop is not None:
                assert call.stop.code == "CAPACITY"
        first = next(iter(self.limiter._deadlines), None)  # pyright: ignore[reportPrivateUsage]
        assert first is None or first.deadline >= self.clock.monotonic()

    @invariant()
    def an_empty_line_that_knows_nothing_is_gone(self) -> None:
        if not any(call.waits or call.permit is not None for call in self.everybody):
            for line in self.limiter._lines.values():  # pyright: ignore[reportPrivateUsage]
                assert line.learned is not None or line.limited


Lines.TestCase.settings = settings(
    max_examples=20, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestLines = Lines.TestCase
