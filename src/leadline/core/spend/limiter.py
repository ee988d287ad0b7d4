"""The one place that says when a call of a model may go: a line for each provider and model."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import anyio

from leadline.core.clock import Clock
from leadline.core.config import ConfigParser
from leadline.core.llm.failure import Stop
from leadline.core.spend.learned import speaks_of_limits
from leadline.core.spend.limiter_config import Ceilings, LimiterConfig, LineConfig
from leadline.core.spend.line import CHILDREN, FULL, Block, Line, Waiter
from leadline.core.spend.lines import Ask, LineState, Waiting
from leadline.core.spend.order import Order
from leadline.core.spend.refusals import full_up, timed_out, too_long_a_pause
from leadline.core.spend.shared import Held, Place, SharedLimits, SharedLines, SharedLinesUnusable
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.kernel.services import Service

if TYPE_CHECKING:
    from leadline.core.llm.failure import LlmFailure
    from leadline.core.llm.limits import RateLimits
    from leadline.core.spend.learned import Sent
    from leadline.core.spend.rates import Use

ASK_AGAIN_S = 0.1
"""How often other processes are asked whether one of their places is free, while somebody waits for it."""
_LOOK_AGAIN_S = 1.0
"""How often they are asked whether a wait whose end is known has become shorter."""
_TELL_EVERY_S = 5.0
_SOONEST_S = 0.001


class Permit:
    """The right to make one call. `done` has to be called, however the call ends."""

    __slots__ = ("_limiter", "ask", "line", "place", "request", "sent", "tokens")

    def __init__(
        self,
        limiter: Limiter,
        line: Line,
        ask: Ask,
        taken: tuple[Sent, Use | None, Use | None],
        place: Place | None,
    ) -> None:
        self._limiter: Limiter | None = limiter
        self.line = line
        self.ask = ask
        self.sent, self.request, self.tokens = taken
        self.place = place
        """What stands for it in the line of all processes."""

    def heard(self, limits: RateLimits) -> None:
        """The head of the response said so: known to all at once, and not only when the answer has ended."""
        if self._limiter is not None:
            self._limiter._hear(self, limits)  # pyright: ignore[reportPrivateUsage] - a part of it

    def done(
        self,
        tokens: int | None = None,
        limits: RateLimits | None = None,
        failure: LlmFailure | None = None,
    ) -> None:
        """The call has ended; the second time nothing happens. Never raises, never waits.

        Args:
            tokens: what it took in all, prompt and answer; None: not known, the estimate counts.
            limits: what the response said about rate limits, where `heard` was not told.
            failure: how it failed; None also where it was cancelled.
        """
        limiter, self._limiter = self._limiter, None
        if limiter is not None:
            limiter._end(self, tokens, limits, failure)  # pyright: ignore[reportPrivateUsage] - a part of it

    def unmade(self) -> None:
        """The call was not made after all: as if it had never been admitted. Like `done`, once."""
        limiter, self._limiter = self._limiter, None
        if limiter is not None:
            limiter._undo(self)  # pyright: ignore[reportPrivateUsage] - a part of it


class Limiter(Service, key="limiter"):
    """Admits calls of models. One for the whole process.

    Every decision is made at once and without waiting, in `_pump`; those who wait are told by an event. What
    comes by itself (a pause that ends, a minute that passes, a wait that was too long) comes through `keep_time`.
    """

    def __init__(
        self, clock: Clock, config: LimiterConfig | None = None, shared: SharedLines | None = None
    ) -> None:
        """A limiter without lines.

        Args:
            clock: measures minutes, pauses and waits.
            config: ceilings.
            shared: what other processes take part in; None: this process stands alone.
        """
        self._clock = clock
        self._config = config or LimiterConfig()
        self._ceilings = Ceilings(self._config.limits)
        self._most_children = self._config.children
        self._shared = shared if self._config.shared else None
        self._lines: dict[str, Line] = {}
        self._children = 0
        self._for_children: OrderedDict[str, Line] = OrderedDict()
        """Lines in which a child waits for others to end, in the order of their turns."""
        self._due: dict[str, Line] = {}
        """Lines that are to be looked at again at some time."""
        self._deadlines: OrderedDict[Waiter, None] = OrderedDict()
        """Everybody who waits, the first deadline first."""
        self._planned: float | None = None
        self._earlier: anyio.Event | None = None
        self.problem: str | None = None
        """Why this process does not share its lines with others although it is meant to."""

    async def admit(self, ask: Ask, waiting: Callable[[Waiting], None] | None = None) -> Permit | Stop:
        """A permit, as soon as it is this call's turn.

        Without anything to wait for it is there without a switch to another task. `waiting` is called, in the
        caller's task, when a wait begins and when its reason changes. Cancellation leaves the line and propagates.

        Returns:
            The permit, or a `Stop` (`CAPACITY`): after `queue_timeout_s`, or at once where the line is full or is
            known not to move until then.
        """
        line = self._lines.get(ask.model)
        if line is None:
            line = self._lines[ask.model] = Line(ask.model, self._ceilings.of(ask.model))
        if line.open and (not ask.child or self._children < self._most_children):
            self._children += ask.child
            return Permit(self, line, ask, line.take(ask, 0.0), None)
        now = self._clock.monotonic()
        if not line.order:
            found = self._try(line, ask, now)
            if isinstance(found, Permit):
                return found
        elif line.waiting >= self._config.max_queued:
            return full_up(ask.model, line.waiting)
        return await self._wait(line, ask, waiting, now)

    @property
    def limits(self) -> tuple[LineConfig, ...]:
        """What is configured."""
        return self._ceilings.rows

    def lines(self) -> tuple[LineState, ...]:
        """Every line that has somebody in it or knows something, by model."""
        now = self._clock.monotonic()
        shared = self._shared is not None
        return tuple(
            line.state(now, shared=shared and self._is_shared(line, now))
            for _, line in sorted(self._lines.items())
            if not line.forgettable(now)
        )

    def limit(self, limits: Sequence[LineConfig], children: int | None = None) -> None:
        """Replace what is configured, at once: who waits stays where they are, who is under way goes on."""
        self._ceilings = Ceilings(limits)
        if children is not None:
            self._most_children = children
        now = self._clock.monotonic()
        for line in tuple(self._lines.values()):
            row = self._ceilings.of(line.model)
            line.limit(*(row.max, row.requests_per_minute, row.tokens_per_minute) if row else (None,) * 3)
            self._pump(line, now)
        self._pump_children(now)

    async def keep_time(self) -> None:
        """Let time have its effect, for as long as this runs. The plugin runs it."""
        while True:
            self._earlier = anyio.Event()
            self._planned = due = self._next_due()
            if due is None:
                await self._earlier.wait()
            else:
                await self._until(due, self._earlier)
                self._on_time()

    # who waits

    async def _wait(
        self, line: Line, ask: Ask, tell: Callable[[Waiting], None] | None, now: float
    ) -> Permit | Stop:
        waiter = Waiter(line, ask, now, now + self._config.queue_timeout_s, tell)
        if line.order is None:
            line.order = Order()
        line.order.add(waiter)
        line.open = False
        self._deadlines[waiter] = None
        self._plan(waiter.deadline)
        try:
            self._pump(line, now)
            while True:
                event = waiter.event = anyio.Event()
                if waiter.outcome is not None:
                    return waiter.outcome
                if tell is not None and (why := self._reason(waiter)).why != waiter.told:
                    waiter.told = why.why
                    tell(Waiting(ask.model, why.why, line.order.ahead(waiter), why.seconds))
                await event.wait()
        except BaseException:
            self._leave(waiter)
            raise

    def _reason(self, waiter: Waiter) -> Block:
        """What holds `waiter` back."""
        return CHILDREN if waiter.ask.child and waiter.line.crowded else waiter.line.why

    def _leave(self, waiter: Waiter) -> None:
        """`waiter` is gone: it gives back what it may have been given meanwhile."""
        if isinstance(waiter.outcome, Permit):
            waiter.outcome.unmade()
        elif waiter.outcome is None and waiter.line.order is not None:
            waiter.line.order.remove(waiter)
            self._deadlines.pop(waiter, None)
            self._pump(waiter.line, self._clock.monotonic())

    def _settle(self, waiter: Waiter, outcome: Permit | Stop) -> None:
        """Tell `waiter` what has become of it; it waits no more."""
        waiter.outcome = outcome
        self._deadlines.pop(waiter, None)
        waiter.wake()

    # who goes

    def _try(self, line: Line, ask: Ask, now: float) -> Permit | Block:
        """A permit for a call whose turn it is, or why there is none."""
        if ask.child and self._children >= self._most_children:
            return CHILDREN
        block, place = line.blocks(ask, now), None
        if block is None and self._shared is not None and self._is_shared(line, now):
            found = self._take_place(self._shared, line, ask)
            block, place = (None, found) if found is None or isinstance(found, Place) else (found, None)
        elif block is not None and line.ticket:
            self._leave_shared(line)
        if block is not None:
            return block
        self._children += ask.child
        return Permit(self, line, ask, line.take(ask, now), place)

    def _pump(self, line: Line, now: float) -> None:
        """Admit whoever may go, in turn, until nobody waits or something holds the one whose turn it is."""
        order, block = line.order, None
        while order:
            waiter = order.next(children=self._children < self._most_children)
            if waiter is None:
                block = CHILDREN
                break
            found = self._try(line, waiter.ask, now)
            if not isinstance(found, Permit):
                block = found
                break
            order.take(waiter)
            self._settle(waiter, found)
        if block is not None and block.why == "paused" and block.seconds is not None:
            self._refuse_long_pause(line, now, block.seconds)
        if order:
            self._keep_waiting(line, block or FULL, now)
        else:
            self._emptied(line, now)

    def _pump_children(self, now: float) -> None:
        """Give places of children that are free to the lines in turn."""
        while self._children < self._most_children and self._for_children:
            _, line = self._for_children.popitem(last=False)
            self._pump(line, now)

    def _keep_waiting(self, line: Line, block: Block, now: float) -> None:
        """Note why those of `line` wait, when to look again, and tell whom it concerns."""
        order = line.order
        assert order is not None
        full = self._children >= self._most_children
        if full and order.children:
            self._for_children.setdefault(line.model, line)
        else:
            self._for_children.pop(line.model, None)
        before, line.why, line.crowded = (line.why.why, line.crowded), block, full
        if before != (block.why, full):
            for waiter in order:
                if waiter.tell is not None and waiter.told not in (None, self._reason(waiter).why):
                    waiter.wake()
        if block.again is None:
            line.due = None
            self._due.pop(line.model, None)
        else:
            line.due = now + max(block.again, _SOONEST_S)
            self._due[line.model] = line
            self._plan(line.due)

    def _emptied(self, line: Line, now: float) -> None:
        line.due = None
        self._due.pop(line.model, None)
        if not self._due and not self._deadlines and self._planned is not None and self._earlier is not None:
            self._earlier.set()  # nobody waits for a time any more, so nothing is to sleep until then
        self._for_children.pop(line.model, None)
        if line.ticket:
            self._leave_shared(line)
        line.settle()
        if line.forgettable(now):
            self._lines.pop(line.model, None)

    def _refuse_long_pause(self, line: Line, now: float, seconds: float) -> None:
        """Those whose time runs out before the pause does need not wait for that."""
        order = line.order
        for waiter in tuple(order or ()):
            if waiter.deadline < now + seconds:
                assert order is not None
                order.remove(waiter)
                self._settle(waiter, too_long_a_pause(line.model, seconds, self._config.queue_timeout_s))

    # what ends

    def _hear(self, permit: Permit, limits: RateLimits) -> None:
        now, line = self._clock.monotonic(), permit.line
        line.learn().hear(limits, permit.sent, line.sent, now)
        self._tell_others(line, now)
        self._pump(line, now)

    def _end(
        self, permit: Permit, tokens: int | None, limits: RateLimits | None, failure: LlmFailure | None
    ) -> None:
        line = permit.line
        if line.open and limits is None and failure is None and not self._for_children:
            line.active -= 1
            self._children -= permit.ask.child
            if not line.active:
                self._lines.pop(line.model, None)
            return
        now = self._clock.monotonic()
        if tokens is not None:
            line.correct(permit, tokens, now)
        if limits:
            line.learn().hear(limits, permit.sent, line.sent, now)
        if failure is not None:
            if speaks_of_limits(failure):
                line.learn().refused(failure, permit.sent, line.sent, line.active, now)
                line.told = float("-inf")
        elif line.learned is not None and tokens is not None:
            line.learned.succeeded()
        self._tell_others(line, now)
        self._free(permit, tokens, now)

    def _undo(self, permit: Permit) -> None:
        now = self._clock.monotonic()
        permit.line.unmade(permit, now)
        self._free(permit, None, now, made=False)

    def _free(self, permit: Permit, tokens: int | None, now: float, *, made: bool = True) -> None:
        line = permit.line
        line.active -= 1
        if permit.place is not None and self._shared is not None:
            try:
                self._shared.give_back(line.model, permit.place, tokens, made=made)
            except SharedLinesUnusable as error:
                self._stand_alone(error)
        if permit.ask.child:
            self._children -= 1
            self._pump_children(now)
        self._pump(line, now)

    # other processes

    def _is_shared(self, line: Line, now: float) -> bool:
        return line.limited or (line.learned is not None and line.learned.troubled(now))

    def _take_place(self, shared: SharedLines, line: Line, ask: Ask) -> Place | Block | None:
        limits = SharedLimits(line.max, line.requests_per_minute, line.tokens_per_minute)
        try:
            found = shared.take(line.model, limits, ask.tokens)
        except SharedLinesUnusable as error:
            self._stand_alone(error)
            return None
        line.ticket = isinstance(found, Held)
        if isinstance(found, Place):
            return found
        again = ASK_AGAIN_S if found.seconds is None else min(found.seconds, _LOOK_AGAIN_S)
        return Block(found.why, found.seconds, again)

    def _leave_shared(self, line: Line) -> None:
        line.ticket = False
        if self._shared is not None:
            try:
                self._shared.leave(line.model)
            except SharedLinesUnusable as error:
                self._stand_alone(error)

    def _tell_others(self, line: Line, now: float) -> None:
        learned = line.learned
        if self._shared is None or learned is None or now < line.told + _TELL_EVERY_S:
            return
        if not learned.knows(now):
            return
        line.told = now
        paused_s = learned.paused_until - now
        try:
            self._shared.tell(
                line.model,
                learned=learned.said(now),
                ceiling=int(learned.ceiling) if learned.ceiling is not None else None,
                paused_s=paused_s if paused_s > 0 else None,
            )
        except SharedLinesUnusable as error:
            self._stand_alone(error)

    def _stand_alone(self, error: SharedLinesUnusable) -> None:
        """Go on with what this process knows by itself: a file that cannot be used stops no call."""
        self._shared = None
        self.problem = str(error)
        for line in self._lines.values():
            line.ticket = False

    # time

    def _plan(self, due: float) -> None:
        if self._earlier is not None and (self._planned is None or due < self._planned):
            self._earlier.set()

    def _next_due(self) -> float | None:
        deadline = next(iter(self._deadlines)).deadline if self._deadlines else None
        dues = [line.due for line in self._due.values() if line.due is not None]
        return min([*dues, deadline] if deadline is not None else dues, default=None)

    async def _until(self, due: float, earlier: anyio.Event) -> None:
        """Return when `due` has come, or when something else comes before it."""
        async with anyio.create_task_group() as group:

            async def ring() -> None:
                await self._clock.sleep(due - self._clock.monotonic())
                group.cancel_scope.cancel()

            group.start_soon(ring)
            await earlier.wait()
            group.cancel_scope.cancel()

    def _on_time(self) -> None:
        now = self._clock.monotonic()
        for line in tuple(self._due.values()):
            if line.due is not None and line.due <= now:
                self._pump(line, now)
        while self._deadlines:
            waiter = next(iter(self._deadlines))
            if waiter.deadline > now:
                break
            line, order = waiter.line, waiter.line.order
            assert order is not None
            ahead = order.ahead(waiter)
            order.remove(waiter)
            waited_s, why = now - waiter.since, self._reason(waiter)
            self._settle(waiter, timed_out(line, why, ahead, waited_s, self._most_children))
            self._pump(line, now)


async def _apply(ctx: Context, config: LimiterConfig) -> None:
    limiter = Limiter(ctx.get(Clock), config, ctx.find(SharedLines))
    ctx.spawn(limiter.keep_time, name="time of the lines before models")
    ctx.provide(Limiter, limiter)


plugin: Plugin[LimiterConfig] = Plugin(
    "limiter",
    _apply,
    config=ConfigParser(LimiterConfig),
    needs=(Clock,),
    wants=(SharedLines,),
    provides=(Limiter,),
)
