"""Divides what units may use between them, and what is left over when they have all stopped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import anyio

from leadline.core.spend.account import Account, Ceilings, Spent
from leadline.core.spend.money import NOTHING, Money


@dataclass(frozen=True, slots=True)
class UnitUse:
    """What a unit uses."""

    tokens: int
    calls: int
    cost: Money = NOTHING
    """Nothing where its model has no price."""

    def times(self, left: Ceilings) -> int:
        """How many such units `left` pays for; a large number where nothing is limited."""
        amounts = ((left.tokens, self.tokens), (left.cost, self.cost), (left.calls, self.calls))
        return min((have // need for have, need in amounts if have is not None and need), default=_ANY_NUMBER)


_ANY_NUMBER: Final = 1_000_000
USUAL: Final = UnitUse(tokens=9_000, calls=4)
"""A unit that searches, reads, records and hands in, once each: a share that is smaller may come to nothing."""
LEAST: Final = UnitUse(tokens=7_000, calls=3)
"""With less, no unit has anything on record; a unit that is begun with it may at least have evidence."""


class Shares:
    """Accounts of units. Each has a share of the working part, so that none can use up what the others need.

    There are no more shares than the working part can pay for at what a unit uses. Units that have none wait until
    the others are over, and begin one after the other for as long as what is left can pay for them.

    A unit whose share is used up waits until the others have come to an end or used up theirs. Then the first of
    those that wait, in the order of the plan, may use what is left over, once; then the next. So what a unit is
    given does not depend on which of them is faster.
    """

    def __init__(
        self,
        working: Account,
        share: float | None,
        before: Mapping[str, Spent],
        *,
        usual: UnitUse | None = None,
        least: UnitUse | None = None,
    ) -> None:
        """What is to be divided, and how.

        Args:
            working: what all units draw on.
            share: that of one unit; None: the same for each.
            before: what units used in earlier processes.
            usual: what a unit uses; None: there is a share for every unit.
            least: what a unit without a share needs to be begun.
        """
        self._working = working
        self._share = share
        self._before = before
        self._planned: Sequence[str] = ()
        self._each: Ceilings | None = None
        self._usual, self._least = usual, least
        self._shares = 0
        """How many there are, once the first unit has asked."""
        self._later: dict[str, anyio.Event] = {}
        """Units without a share, that wait for their turn."""
        self.not_begun: set[str] = set()
        """Units for which nothing was left."""
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
            whole = Ceilings(
                None if left.tokens is None else left.tokens + used.tokens,
                None if left.cost is None else Money(left.cost + used.cost),
                None if left.calls is None else left.calls + used.calls,
            )
            paid_for = len(self._planned) if self._usual is None else self._usual.times(whole)
            self._shares = min(len(self._planned), max(1, paid_for))
            share = self._share or 1 / self._shares
            self._each = Ceilings(
                None if whole.tokens is None else _some(whole.tokens * share),
                None if whole.cost is None else Money(_some(whole.cost * share)),
                None if whole.calls is None else _some(whole.calls * share),
            )
        return self._each

    @property
    def planned(self) -> int:
        """Units of the plan."""
        return len(self._planned)

    async def turn(self, unit: str) -> bool:
        """Wait until a unit may begin: at once where there is a share for it; whether what is left pays for it.

        Call `account` first, and `end` once it was True.
        """
        if unit in self._begun or unit in self._before or self._shared < self._shares:
            self.begin(unit)
            return True
        event = self._later[unit] = anyio.Event()
        self._serve()
        try:
            await event.wait()
        except BaseException:
            if self._later.pop(unit, None) is None:
                self.end(unit)
            raise
        return unit not in self.not_begun

    @property
    def _shared(self) -> int:
        """Units that have a share, or had one."""
        return len(self._begun | self._before.keys())

    def begin(self, unit: str) -> None:
        """A unit goes to work."""
        self._begun.add(unit)
        self._live.add(unit)
        self.not_begun.discard(unit)

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
        if self._live - self._waiting.keys():
            return
        for unit in self._in_order(self._waiting):
            if self._grant(unit):
                self._granted.add(unit)
                self._waiting.pop(unit).set()
                return
        for served in self._waiting.values():
            served.set()
        if not self._waiting:
            self._begin_next()

    def _begin_next(self) -> None:
        """Let the first unit without a share begin, with all that is left; or tell all of them that it is too little."""
        for unit in self._in_order(self._later):
            if self._least is None or self._least.times(self._working.remaining):
                self.begin(unit)
                self._granted.add(unit)
                self._grant(unit)
                self._later.pop(unit).set()
                return
        while self._later:
            unit, event = self._later.popitem()
            self.not_begun.add(unit)
            event.set()

    def _in_order(self, units: Iterable[str]) -> list[str]:
        """Units in the order of the plan."""
        order = {one: at for at, one in enumerate(self._planned)}
        return sorted(units, key=lambda one: order.get(one, len(order)))

    def _grant(self, unit: str) -> bool:
        """Give a unit what is left, but for the shares of units that have not begun; whether that is anything."""
        account, left, each = self._accounts[unit], self._working.remaining, self._part
        others = max(0, self._shares - self._shared)
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
