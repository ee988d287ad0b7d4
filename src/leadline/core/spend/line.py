"""One line: who is under way, who waits, and what holds them. Nothing here waits or tells the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import anyio

from leadline.core.spend.learned import Learned, Sent
from leadline.core.spend.lines import Ask, LineState, Waiting, WaitingFor
from leadline.core.spend.order import Order
from leadline.core.spend.rates import Minute, Use

if TYPE_CHECKING:
    from leadline.core.llm.failure import Stop
    from leadline.core.spend.limiter import Permit
    from leadline.core.spend.limiter_config import LineConfig


class Block(NamedTuple):
    """Why nobody of a line goes on."""

    why: WaitingFor
    seconds: float | None = None
    """Seconds until somebody may, where that can be told."""
    again: float | None = None
    """Seconds after which it is to be looked at again, whatever happens; None: when something happens."""


FULL = Block("slots")
CHILDREN = Block("children")


class Waiter:
    """One call that stands in line."""

    __slots__ = ("ask", "deadline", "event", "line", "outcome", "since", "tell", "told")

    def __init__(
        self, line: Line, ask: Ask, since: float, deadline: float, tell: Callable[[Waiting], None] | None
    ) -> None:
        self.line = line
        self.ask = ask
        self.since = since
        self.deadline = deadline
        self.tell = tell
        self.event: anyio.Event | None = None
        self.told: WaitingFor | None = None
        """The reason that it was told last."""
        self.outcome: Permit | Stop | None = None

    def wake(self) -> None:
        """Let it look at what has become of it."""
        if self.event is not None:
            self.event.set()


class Line:
    """What is known of the calls of one model in this process."""

    __slots__ = (
        "_max",
        "_requests",
        "_tokens",
        "active",
        "crowded",
        "due",
        "learned",
        "model",
        "open",
        "order",
        "sent",
        "ticket",
        "told",
        "why",
    )

    def __init__(self, model: str, config: LineConfig | None) -> None:
        self.model = model
        self.active = 0
        self.sent = Sent(0, 0)
        self.learned: Learned | None = None
        self.order: Order[Waiter] | None = None
        """Those who wait; None while nobody ever did."""
        self.open = True
        """Whether nothing at all holds a call back that does not come from a child."""
        self.due: float | None = None
        """Monotonic seconds at which somebody may go on without anything else happening."""
        self.why: Block = FULL
        """What held those who wait when it was looked at last."""
        self.crowded = False
        """Whether as many calls for children as may be were under way then."""
        self.ticket = False
        """Whether this process waits for others in it."""
        self.told = float("-inf")
        """When others were told last what it learned."""
        self._max: int | None = None
        self._requests: Minute | None = None
        self._tokens: Minute | None = None
        if config is not None:
            self.limit(config.max, config.requests_per_minute, config.tokens_per_minute)

    @property
    def max(self) -> int | None:
        """Calls that may be under way at once, as configured."""
        return self._max

    @property
    def requests_per_minute(self) -> int | None:
        """As configured."""
        return self._requests.limit if self._requests is not None else None

    @property
    def tokens_per_minute(self) -> int | None:
        """As configured."""
        return self._tokens.limit if self._tokens is not None else None

    @property
    def limited(self) -> bool:
        """Whether it has a ceiling that somebody wrote down."""
        return self._max is not None or self._requests is not None or self._tokens is not None

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self.order) if self.order is not None else 0

    def limit(self, most: int | None, requests_per_minute: int | None, tokens_per_minute: int | None) -> None:
        """Change what is configured; what is under way and what was used within the minute still counts."""
        self._max = most
        self._requests = _minute(self._requests, requests_per_minute)
        self._tokens = _minute(self._tokens, tokens_per_minute)
        self.settle()

    def settle(self) -> None:
        """Find out anew whether it is open."""
        self.open = not self.limited and self.learned is None and not self.order

    def learn(self) -> Learned:
        """What it has learned, made where there is nothing yet."""
        if self.learned is None:
            self.learned = Learned()
            self.open = False
        return self.learned

    def blocks(self, ask: Ask, now: float) -> Block | None:
        """What holds back a call whose turn it is; None: it may go."""
        if self._max is not None and self.active >= self._max:
            return FULL
        if self._requests is not None and (wait_s := self._requests.wait_s(1, now)):
            return Block("requests", wait_s, wait_s)
        if self._tokens is not None and (wait_s := self._tokens.wait_s(ask.tokens, now)):
            return Block("tokens", wait_s, wait_s)
        found = self.learned.blocks(ask.tokens, self.active, now) if self.learned is not None else None
        return Block(found[0], found[1], found[1]) if found is not None else None

    def take(self, ask: Ask, now: float) -> tuple[Sent, Use | None, Use | None]:
        """Count a call as under way: its number, and what it uses of the minute."""
        self.active += 1
        self.sent = sent = Sent(self.sent.number + 1, self.sent.tokens + ask.tokens)
        if self.learned is not None:
            self.learned.taken(1, ask.tokens)
        return (
            sent,
            self._requests.use(1, now) if self._requests is not None else None,
            self._tokens.use(ask.tokens, now) if self._tokens is not None else None,
        )

    def correct(self, permit: Permit, tokens: int, now: float) -> None:
        """A call took `tokens` in all, and not what was thought."""
        excess = tokens - permit.ask.tokens
        if not excess:
            return
        if self._tokens is not None and permit.tokens is not None:
            self._tokens.correct(permit.tokens, excess, now)
        if self.learned is not None and permit.sent.number > self.learned.heard_of.number:
            self.learned.taken(0, excess)

    def unmade(self, permit: Permit, now: float) -> None:
        """A call was admitted and not made: it took nothing."""
        if self._requests is not None and permit.request is not None:
            self._requests.correct(permit.request, -1, now)
        if self.learned is not None and permit.sent.number > self.learned.heard_of.number:
            self.learned.taken(-1, 0)
        self.correct(permit, 0, now)

    def forgettable(self, now: float) -> bool:
        """Whether it is empty and knows nothing."""
        if self.active or self.order:
            return False
        if self.learned is not None and self.learned.knows(now):
            return False
        minutes = (self._requests, self._tokens)
        return not any(minute is not None and minute.used(now) for minute in minutes)

    def state(self, now: float, *, shared: bool) -> LineState:
        """It as it is."""
        learned = self.learned
        paused_s = learned.paused_until - now if learned is not None else 0.0
        return LineState(
            model=self.model,
            active=self.active,
            waiting=self.waiting,
            max=self._max,
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
            requests_used=self._requests.used(now) if self._requests is not None else None,
            tokens_used=self._tokens.used(now) if self._tokens is not None else None,
            ceiling=int(learned.ceiling) if learned is not None and learned.ceiling is not None else None,
            learned=learned.said(now) if learned is not None else None,
            paused_s=paused_s if paused_s > 0 else None,
            shared=shared,
        )


def _minute(before: Minute | None, limit: int | None) -> Minute | None:
    if limit is None:
        return None
    if before is None:
        return Minute(limit)
    before.limit = limit
    return before
