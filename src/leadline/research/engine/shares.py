"""Divides what units may use between them, and what is left over when they have all stopped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import anyio

from leadline.core.spend.account import Account, Ceilings, Spent
from leadline.core.spend.money import Money


class Shares:
    """Accounts of units. Each has a share of the working part, so that none can use up what the others need.

    A unit whose share is used up waits until the others have come to an end or used up theirs. Then the first of
    those that wait, in the order of the plan, may use what is left over, once; then the next. So what a unit is
    given does not depend on which of them is faster.
    """

    def __init__(self, working: Account, share: float | None, before: Mapping[str, Spent]) -> None:
        """`share`: that of one unit; None: the same for each. `before`: what units used in earlier processes."""
        self._working = working
        self._share = share
        self._before = before
        self._planned: Sequence[str] = ()
        self._each: Ceilings | None = None
        self._accounts: dict[str, Account] = {}
        self._begun: set[str] = set()
        self._live: set[str] = set()
        self._waiting: dict[str, anyio.Event] = {}
        self._granted: set[str] = set()

    def account(self, unit: str, planned: Sequence[str]) -> Account:
        """The account of a unit of the plan."""
        self._planned = planned or (unit,)
        if unit not in self._accounts:
            account = self._working.child(f"unit {unit}", self._part)
            before = self._before.get(unit)
            self._accounts[unit] = account if before is None else account.restored(before, above=False)
        return self._accounts[unit]

    @property
    def _part(self) -> Ceilings:
        """What one unit may use: its share of what is left of the working part when the first of them begins, and of
        what units used before. Rounded down, so that no unit can use up what is another's; time is not divided."""
        if self._each is None:
            left, used = self._working.remaining, Spent()
            for one in self._before.values():
                used += one
            share = self._share or 1 / len(self._planned)
            self._each = Ceilings(
                None if left.tokens is None else _some((left.tokens + used.tokens) * share),
                None if left.cost is None else Money(_some((left.cost + used.cost) * share)),
                None if left.calls is None else _some((left.calls + used.calls) * share),
            )
        return self._each

    def begin(self, unit: str) -> None:
        """A unit goes to work."""
        self._begun.add(unit)
        self._live.add(unit)

    def end(self, unit: str) -> None:
        """A unit is over, or is not worked on any more."""
        self._live.discard(unit)
        self._waiting.pop(unit, None)
        self._serve()

    async def more(self, unit: str) -> bool:
        """Wait for what the others leave over; whether the unit may go on with it."""
        if unit in self._granted:
            return False
        served = self._waiting[unit] = anyio.Event()
        self._serve()
        try:
            await served.wait()
        finally:
            self._waiting.pop(unit, None)
        return unit in self._granted

    def _serve(self) -> None:
        if not self._waiting or self._live - self._waiting.keys():
            return
        order = {one: at for at, one in enumerate(self._planned)}
        for unit in sorted(self._waiting, key=lambda one: order.get(one, len(order))):
            if self._grant(unit):
                self._granted.add(unit)
                self._waiting.pop(unit).set()
                return
        for served in self._waiting.values():
            served.set()

    def _grant(self, unit: str) -> bool:
        """Give a unit what is left, but for the shares of units that have not begun; whether that is anything."""
        account, left, each = self._accounts[unit], self._working.remaining, self._part
        others = sum(one not in self._begun for one in self._planned)
        used = account.spent
        tokens = _over(left.tokens, each.tokens, others)
        cost = _over(left.cost, each.cost, others)
        calls = _over(left.calls, each.calls, others)
        if 0 in (tokens, cost, calls):
            return False
        account.ceilings = Ceilings(
            None if tokens is None else used.tokens + tokens,
            None if cost is None else Money(used.cost + cost),
            None if calls is None else used.calls + calls,
        )
        return True


def _some(amount: float) -> int:
    """At least 1: with less no unit could begin."""
    return max(1, math.floor(amount + 1e-9))


def _over(left: int | None, each: int | None, others: int) -> int | None:
    return None if left is None else max(0, left - (each or 0) * others)
