"""Amounts of money as integers, so that a sum is the same in whatever order it is made."""

from __future__ import annotations

from decimal import Decimal
from typing import Final, NewType

import msgspec

Money = NewType("Money", int)
"""Picodollars: 1e-12 US dollars. A price of whole micro-dollars for a million tokens is whole for each token."""

DOLLAR: Final = Money(10**12)
NOTHING: Final = Money(0)
SMALLEST: Final = 1e-12
"""Dollars: less than that is no amount."""


def money(dollars: float | str | Decimal) -> Money:
    """The amount nearest to so many US dollars; a float means the decimal that it is written as."""
    return Money(int((Decimal(str(dollars)) * DOLLAR).to_integral_value()))


def dollars(amount: Money | int) -> float:
    """The amount in US dollars, as near as a float comes."""
    return amount / DOLLAR


def shown(amount: Money | int) -> str:
    """The amount for people: cents from a dollar on, four decimals below, and never 0 for what is more than 0."""
    sign, amount = ("-", -amount) if amount < 0 else ("", amount)
    if amount and amount < DOLLAR // 20_000:
        return f"{sign}< $0.0001"
    decimals = 2 if amount == 0 or amount >= DOLLAR else 4
    unit = DOLLAR // 10**decimals
    whole, rest = divmod((amount + unit // 2) // unit, 10**decimals)
    return f"{sign}${whole:,}.{rest:0{decimals}}"


class Cost(msgspec.Struct, frozen=True, omit_defaults=True):
    """What something cost, and whether that is all of it."""

    known: Money = NOTHING
    """What is known to have been charged."""
    complete: bool = True
    """Whether every part has a price and was reported; otherwise it cost at least `known`."""

    @property
    def exact(self) -> Money | None:
        """All that it cost, as events have it; None where that is not known."""
        return self.known if self.complete else None

    def __add__(self, other: Cost) -> Cost:
        """Both together: complete only where both are."""
        return Cost(Money(self.known + other.known), self.complete and other.complete)

    def __str__(self) -> str:
        if self.complete:
            return shown(self.known)
        return f"at least {shown(self.known)}" if self.known else "not known"
