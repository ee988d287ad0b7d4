"""What a line knows of its provider without being told by its user: from headers and from refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

from leadline.core.llm.failure import LlmFailure, Wait
from leadline.core.llm.limits import Bucket, RateLimits
from leadline.core.spend.lines import WaitingFor

LONGEST_PAUSE_S = 900.0
"""Longest pause that one refusal makes, however long the provider asks to wait; then one call tries again."""
LONGEST_HOLD_S = 60.0
"""Longest time for which what a header said holds calls back; then one call tries again."""
REMEMBERED_S = 300.0
"""How long after the last refusal or the last header something is still known."""
_FIRST_BREATH_S = 0.25
_LONGEST_BREATH_S = 5.0


class Sent(NamedTuple):
    """Where among the calls of its line one was sent."""

    number: int
    """The how-manieth."""
    tokens: int
    """What all of them up to it were thought to take."""


NOT_SENT = Sent(0, 0)


@dataclass(slots=True)
class _Left:
    """What one bucket holds."""

    remaining: int
    limit: int | None
    reset_at: float
    """Monotonic seconds at which it is full again."""
    heard: float
    steady: bool
    used: int = 0
    """What was taken since."""

    def wait_s(self, amount: int, now: float) -> float:
        """Seconds until it holds `amount`, or all that it ever holds; zero where it does."""
        if now >= self.reset_at:
            if self.limit is None:
                return 0.0
            # Full again, and no fuller: until the next response tells, as much as there was at the last reset.
            self.remaining, self.used = self.limit, 0
            self.heard, self.reset_at = now, now + (self.reset_at - self.heard)
        need = amount if self.limit is None else min(amount, self.limit)
        missing = need - (self.remaining - self.used)
        if missing <= 0:
            return 0.0
        if self.steady and self.limit is not None and self.limit > self.remaining:
            per_second = (self.limit - self.remaining) / (self.reset_at - self.heard)
            return max(0.0, min(self.heard + missing / per_second, self.reset_at) - now)
        return self.reset_at - now


class Learned:
    """What refusals and headers taught one line. Times are monotonic seconds."""

    __slots__ = (
        "_halved_at",
        "_heard",
        "_reached",
        "_refused",
        "_streak",
        "ceiling",
        "heard_of",
        "latest",
        "paused_until",
        "requests",
        "tokens",
    )

    def __init__(self) -> None:
        self.paused_until = 0.0
        self.ceiling: float | None = None
        """Calls that may be under way at once."""
        self._reached = 0
        """Calls that were under way when the provider refused one."""
        self._halved_at = 0
        """The latest call that was sent before the ceiling was lowered."""
        self._streak = 0
        """Refusals since the last success."""
        self._refused = float("-inf")
        self.requests: _Left | None = None
        self.tokens: _Left | None = None
        self.heard_of = NOT_SENT
        """The call whose response said so."""
        self._heard = float("-inf")
        self.latest: RateLimits | None = None

    def knows(self, now: float) -> bool:
        """Whether there is anything that is still worth knowing."""
        return self.troubled(now) or (self.latest is not None and now < self._heard + REMEMBERED_S)

    def troubled(self, now: float) -> bool:
        """Whether the provider refused a call not long ago."""
        return now < self.paused_until or now < self._refused + REMEMBERED_S

    def blocks(self, tokens: int, active: int, now: float) -> tuple[WaitingFor, float | None] | None:
        """Why a call has to wait, and for how many seconds where that can be told; None: it may go."""
        if now < self.paused_until:
            return "paused", self.paused_until - now
        if self.ceiling is not None:
            if now >= self._refused + REMEMBERED_S:
                self.ceiling = None
            elif active >= int(self.ceiling):
                return "slots", None
        if self.requests is not None and (held := self._held(self.requests, 1, active, now)):
            return "requests", held
        if self.tokens is not None and (held := self._held(self.tokens, tokens, active, now)):
            return "tokens", held
        return None

    def _held(self, left: _Left, amount: int, active: int, now: float) -> float:
        wait_s = left.wait_s(amount, now)
        if not wait_s:
            return 0.0
        trial = left.heard + LONGEST_HOLD_S
        if now < trial:
            return min(wait_s, trial - now)
        # What was said is old: one call finds out whether it still holds.
        self.requests = self.tokens = None
        self._lower(1, now)
        return 0.0 if not active else LONGEST_HOLD_S

    def taken(self, requests: int, tokens: int) -> None:
        """Count what a call takes that was just sent, or correct what one was thought to take."""
        if self.requests is not None:
            self.requests.used += requests
        if self.tokens is not None:
            self.tokens.used += tokens

    def hear(self, limits: RateLimits, of: Sent, latest: Sent, now: float) -> None:
        """Take what the response to the call `of` said; what has been sent up to `latest` it may not know of."""
        if of.number < self.heard_of.number:
            return
        self.heard_of, self._heard, self.latest = of, now, limits
        self.requests = _left(limits.requests, now, latest.number - of.number) or self.requests
        self.tokens = _left(limits.tokens, now, latest.tokens - of.tokens) or self.tokens

    def refused(self, failure: Wait, of: Sent, latest: Sent, active: int, now: float) -> None:
        """Take a refusal of the call `of`. `active`: calls under way, the refused one included."""
        self._refused = now
        self._streak += 1
        pause_s = failure.retry_after_s or 0.0
        if failure.retry_after_s is None and self._streak > 1:
            pause_s = min(_LONGEST_BREATH_S, _FIRST_BREATH_S * 2.0 ** min(self._streak - 2, 10))
        self.paused_until = max(self.paused_until, now + min(pause_s, LONGEST_PAUSE_S))
        if of.number > self._halved_at:
            # Refusals of calls that were sent before are of the same crowd.
            self._halved_at = latest.number
            self._reached = active
            self._lower(max(1, min(active, int(self.ceiling or active)) // 2), now)

    def succeeded(self) -> None:
        """A call was answered: one more may be tried for each round of those that are allowed."""
        self._streak = 0
        if self.ceiling is not None:
            self.ceiling += 1 / self.ceiling
            if self.ceiling >= max(2 * self._reached, 4):
                self.ceiling = None

    def _lower(self, ceiling: int, now: float) -> None:
        self.ceiling = float(ceiling)
        self._refused = now

    def said(self, now: float) -> RateLimits | None:
        """What the provider said last, with the seconds until reset counted from `now`."""
        if self.latest is None:
            return None
        passed = now - self._heard
        return RateLimits(_later(self.latest.requests, passed), _later(self.latest.tokens, passed))


def speaks_of_limits(failure: LlmFailure) -> TypeGuard[Wait]:
    """Whether a failure says that too much was asked for at once."""
    return isinstance(failure, Wait) and failure.code in ("RATE_LIMIT", "OVERLOADED")


def _left(bucket: Bucket | None, now: float, used: int) -> _Left | None:
    if bucket is None or bucket.remaining is None or bucket.resets_in_s is None or bucket.resets_in_s <= 0:
        return None
    reset_at = now + bucket.resets_in_s
    return _Left(max(0, bucket.remaining), bucket.limit, reset_at, now, bucket.steady, used)


def _later(bucket: Bucket | None, passed: float) -> Bucket | None:
    if bucket is None or bucket.resets_in_s is None:
        return bucket
    return Bucket(bucket.limit, bucket.remaining, max(0.0, bucket.resets_in_s - passed), bucket.steady)
