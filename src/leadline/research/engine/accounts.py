"""Who of a run may spend what: the run, its working part, and an account for each unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from leadline.core.llm.usage import Usage
from leadline.core.spend.account import Account, Ceilings, Hold, Spent, counted, duration
from leadline.core.spend.meter import Meter
from leadline.core.spend.money import Money, money, shown
from leadline.core.spend.prices import Price
from leadline.research.engine.shares import LEAST, USUAL, Shares, UnitUse
from leadline.research.events import CeilingName, RunBudget
from leadline.research.request import RequestRefused

RUN = "the run"
_ANSWER = 100
"""Tokens of a short answer, such as a call of a tool."""
_ONE = Hold(tokens=1, cost=Money(1), calls=1)


@dataclass(frozen=True)
class Reached:
    """A ceiling of a run that is reached."""

    ceiling: CeilingName
    message: str
    """What is used up, of how much, and whose it was."""


class RunAccounts:
    """The accounts of one run. Its planner and its units draw on the working part, its writer on the whole.

    What is left of the working part, once there is a plan, is divided among the units.
    """

    def __init__(
        self,
        budget: RunBudget,
        parent: Account | None,
        clock: Callable[[], float],
        *,
        spent: Spent,
        seconds: float = 0.0,
        by_unit: Mapping[str, Spent] | None = None,
        price: Price | None = None,
    ) -> None:
        """`spent`, `seconds` and `by_unit` are what logs say that the run used before, in all and for its units;
        `price` is that of the model that works on units."""
        self.budget = budget
        self.run = Account(RUN, _ceilings(budget), parent, clock=clock).restored(spent, seconds)
        self.working = self.run.keep(budget.kept, RUN)
        usual, least = (_priced(use, price) for use in (USUAL, LEAST))
        self._least = least
        self.shares = Shares(self.working, budget.unit_share, by_unit or {}, usual=usual, least=least)
        self.reached: Reached | None = None
        """The first ceiling that was reached."""

    def spent_out(self, account: Account) -> Reached | None:
        """The ceiling that leaves nothing at all of `account`, if one does."""
        found = account.exhausted(_ONE)
        return None if found is None else Reached(found.what, found.message)

    def stopped(self, account: Account, message: str) -> Reached:
        """The ceiling that stopped a role, which the message of the stop names in words."""
        return self.spent_out(account) or Reached(_named(account, message), message)

    def note(self, reached: Reached) -> None:
        """Remember that something was left undone since a ceiling was reached."""
        self.reached = self.reached or reached

    def too_little(self) -> Reached:
        """The ceiling of which so little is left that no further unit would find anything."""
        left, need = self.working.remaining, self._least
        rows: list[tuple[float, CeilingName, str]] = []
        if left.tokens is not None:
            rows.append(
                (
                    left.tokens / need.tokens,
                    "tokens",
                    f"{counted(left.tokens, 'tokens')} left, and it needs about {need.tokens:,}",
                )
            )
        if left.cost is not None and need.cost:
            rows.append(
                (
                    left.cost / need.cost,
                    "cost",
                    f"{shown(left.cost)} left, and it needs about {shown(need.cost)}",
                )
            )
        if left.calls is not None:
            rows.append(
                (
                    left.calls / need.calls,
                    "calls",
                    f"{counted(left.calls, 'calls')} left, and it needs at least {need.calls}",
                )
            )
        _, name, told = min(rows)
        return Reached(name, f"the budget does not pay for another unit: {told}")

    def seconds_left(self, account: Account) -> float | None:
        """Seconds for which roles on `account` may be at work; None: no end is set."""
        return account.remaining.seconds

    def out_of_time(self, account: Account) -> Reached:
        """The ceiling on time, which stopped a role."""
        return Reached("seconds", f"the time of {account.name} is up")

    def told(self) -> str | None:
        """For the reader of the report: which ceiling was reached, and what that means; None where none was."""
        if self.reached is None:
            return None
        kind = self.reached.ceiling
        used, whole = self.run.spent, self.run.ceilings
        amounts: dict[CeilingName, tuple[str, str | None]] = {
            "tokens": (f"{used.tokens:,}", None if whole.tokens is None else f"{whole.tokens:,} tokens"),
            "cost": (shown(used.cost), None if whole.cost is None else shown(whole.cost)),
            "calls": (f"{used.calls:,}", None if whole.calls is None else f"{whole.calls:,} calls"),
            "seconds": (
                duration(self.run.seconds),
                None if whole.seconds is None else f"{whole.seconds:g} s",
            ),
        }
        name = "time" if kind == "seconds" else kind
        spent, ceiling = amounts[kind]
        if ceiling is None:
            return f"The budget that the run drew on was used up ({name}): {self.reached.message}.{self._left_out()}"
        kept = (
            f", of which {self.budget.kept * 100:.0f} % are kept for the report" if self.budget.kept else ""
        )
        return f"The run reached its ceiling on {name}: {spent} of {ceiling} used{kept}.{self._left_out()}"

    def _left_out(self) -> str:
        """How many units nobody began; blank where there are none."""
        shares = self.shares
        if not shares.not_begun:
            return ""
        return f" Units that were not begun because of that: {len(shares.not_begun)} of {shares.planned}."


def check_prices(meter: Meter, max_cost: float | None, models: Iterable[str]) -> None:
    """Refuse a ceiling on cost for a model whose price nobody knows: it could not be kept.

    Raises:
        RequestRefused: there is such a ceiling and such a model.
    """
    if max_cost is None:
        return
    unknown = [name for name in models if meter.price(name) is None]
    if unknown:
        raise RequestRefused(
            "max_cost",
            f"no price is known for {' and '.join(unknown)}, so a ceiling on cost cannot be kept",
            f"Say what it costs: leadline models price {unknown[0]} --input DOLLARS --output DOLLARS (for a million "
            "tokens), or --free; or limit tokens instead: --max-tokens.",
        )


def _priced(use: UnitUse, price: Price | None) -> UnitUse:
    """What a unit uses, with what that costs."""
    if price is None:
        return use
    usage = Usage(input=use.tokens - use.calls * _ANSWER, output=use.calls * _ANSWER)
    return replace(use, cost=price.cost(usage, calls=use.calls).known)


def _ceilings(budget: RunBudget) -> Ceilings:
    cost = None if budget.cost is None else money(budget.cost)
    return Ceilings(budget.tokens, cost, budget.calls, budget.seconds)


def _named(account: Account, message: str) -> CeilingName:
    """The ceiling that a message speaks of: one call was too much for what is left of it."""
    if "$" in message:
        return "cost"
    if " tokens" in message:
        return "tokens"
    left = account.remaining
    if left.tokens is not None:
        return "tokens"
    if left.cost is not None:
        return "cost"
    return "calls" if left.calls is not None else "seconds"
