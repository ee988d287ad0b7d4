"""What was used within the last minute, and how long until more fits."""

from __future__ import annotations

from collections import deque

MINUTE_S = 60.0
_GRAIN_S = 0.25
"""What is used within this time counts as used at its end, so that a minute is a few hundred entries at most."""


class Use:
    """Something that was used, and can be corrected."""

    __slots__ = ("amount", "at", "begun")

    def __init__(self, at: float, amount: int) -> None:
        self.begun = at
        self.at = at
        self.amount = amount


class Minute:
    """A ceiling on what is used within any sixty seconds.

    Any sixty seconds, not those of the clock: it holds whether the provider counts by a window that slides,
    by one that begins anew, or by a bucket that fills up.
    """

    __slots__ = ("_used", "_uses", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._uses: deque[Use] = deque()
        self._used = 0

    def used(self, now: float) -> int:
        """What was used within the minute that ends `now` (monotonic seconds)."""
        uses = self._uses
        while uses and uses[0].at <= now - MINUTE_S:
            self._used -= uses.popleft().amount
        return self._used

    def wait_s(self, amount: int, now: float) -> float:
        """Seconds until `amount` fits; zero where it does. What never fits does as soon as nothing else is used."""
        excess = self.used(now) + min(amount, self.limit) - self.limit
        if excess <= 0:
            return 0.0
        for use in self._uses:
            excess -= use.amount
            if excess <= 0:
                return max(0.0, use.at + MINUTE_S - now)
        return 0.0

    def use(self, amount: int, now: float) -> Use:
        """Count `amount` as used."""
        self._used += amount
        last = self._uses[-1] if self._uses else None
        if last is not None and now - last.begun <= _GRAIN_S:
            last.amount += amount
            last.at = now
            return last
        use = Use(now, amount)
        self._uses.append(use)
        return use

    def correct(self, use: Use, amount: int, now: float) -> None:
        """Add `amount` (less than zero: take it away) to what `use` counted.

        More than was thought counts from `now`, since the provider did not know it before either; less counts as
        never used, unless that is over a minute ago.
        """
        if amount > 0:
            self.use(amount, now)
        elif use.at > now - MINUTE_S:
            use.amount += amount
            self._used += amount
