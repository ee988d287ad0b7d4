"""What may still be spent, and who has taken what of it: ceilings, reservations, children that draw from their parent.

Pure and in memory; one event loop. An account says no or keeps the caller waiting; it never stops anybody.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar

import anyio
import msgspec

from leadline.core.spend.money import NOTHING, Money, shown

N = TypeVar("N", int, float)
CeilingKind: TypeAlias = Literal["tokens", "cost", "calls", "seconds"]
Elapsed: TypeAlias = Callable[[], float]
"""A clock that never goes back, in seconds: `Clock.monotonic`."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Limits on one account; None is no limit."""

    tokens: int | None = None
    cost: Money | None = None
    calls: int | None = None
    seconds: float | None = None
    """Wall time from the making of the account."""

    @property
    def none(self) -> bool:
        """Whether nothing is limited."""
        return self == UNLIMITED


UNLIMITED: Final = Ceilings()


class Spent(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was used up."""

    tokens: int = 0
    cost: Money = NOTHING
    """What is known of it."""
    calls: int = 0
    unpriced: int = 0
    """Calls whose cost is not known; it is not in `cost`."""

    def __add__(self, other: Spent) -> Spent:
        """Both together."""
        return Spent(
            self.tokens + other.tokens,
            Money(self.cost + other.cost),
            self.calls + other.calls,
            self.unpriced + other.unpriced,
        )


NOTHING_SPENT: Final = Spent()


@dataclass(frozen=True, slots=True)
class Hold:
    """What one call may use: at most, and at least."""

    tokens: int = 0
    cost: Money = NOTHING
    calls: int = 1
    least_tokens: int = 0
    """What it uses in any case: its prompt."""
    least_cost: Money = NOTHING


@dataclass(frozen=True, slots=True)
class Exhausted:
    """A ceiling is reached: what was asked for will never fit."""

    account: str
    what: CeilingKind
    used: float
    """In tokens, picodollars, calls or seconds."""
    ceiling: float
    kept: float = 0
    """What of the ceiling is kept for others, in the same unit."""
    least: float = 0
    """What the call that was refused needs at least."""

    @property
    def message(self) -> str:
        """What is used up, and of how much, in a sentence."""
        used, ceiling = _amount(self.what, self.used), _amount(self.what, self.ceiling)
        text = f"the budget of {self.account} is used up: {used} of {ceiling}"
        if self.kept > 0:
            verb = "is" if self.kept == 1 else "are"
            text += f", of which {_amount(self.what, self.kept)} {verb} kept for writing up"
        if self.least > 0 and self.used < self.ceiling - self.kept:
            text += f", and the next call needs at least {_amount(self.what, self.least)}"
        return text


@dataclass(slots=True)
class _Held:
    """What reservations hold of one account."""

    tokens: int = 0
    cost: int = 0
    calls: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class _Kept:
    """What an account leaves to its parent, or has to be left in one."""

    tokens: int = 0
    cost: int = 0
    calls: int = 0
    seconds: float = 0.0

    def __add__(self, other: _Kept) -> _Kept:
        return _Kept(
            self.tokens + other.tokens,
            self.cost + other.cost,
            self.calls + other.calls,
            self.seconds + other.seconds,
        )


@dataclass(eq=False, slots=True)
class _Waiter:
    account: Account
    hold: Hold
    event: anyio.Event
    answer: Reservation | Exhausted | None = None


_NO_KEPT: Final = _Kept()


class Reservation:
    """What one call has taken, until it says what it used. Ended by the first `settle` or `release`."""

    __slots__ = ("_account", "_ended", "hold")

    def __init__(self, account: Account, hold: Hold) -> None:
        self.hold = hold
        self._account = account
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether it was settled or released."""
        return self._ended

    def settle(self, spent: Spent) -> None:
        """Book what the call used, all of it, even where that is more than was reserved. Ended already: nothing."""
        if not self._ended:
            self._ended = True
            self._account._end(self.hold, spent)  # pyright: ignore[reportPrivateUsage]  # one mechanism in two classes

    def release(self) -> None:
        """Give all of it back: nothing was used. Ended already: nothing."""
        if not self._ended:
            self._ended = True
            self._account._end(self.hold, None)  # pyright: ignore[reportPrivateUsage]


class Account:
    """What somebody may spend: a run, a unit, an agent. What a child spends, its parent spends.

    Args:
        name: for people: it stands in messages about its ceilings.
        ceilings: its own; those of the accounts above hold too.
        parent: what it draws from.
        spent: what was used before, booked here and above.
        clock: needed where seconds are limited, here or below; without one, the parent's.

    Raises:
        ValueError: seconds are limited, and there is no clock.
    """

    __slots__ = (
        "_chain",
        "_clock",
        "_held",
        "_kept",
        "_limits",
        "_line",
        "_since",
        "_spent",
        "ceilings",
        "limited",
        "limits_cost",
        "name",
        "parent",
    )

    def __init__(
        self,
        name: str,
        ceilings: Ceilings = UNLIMITED,
        parent: Account | None = None,
        spent: Spent = NOTHING_SPENT,
        *,
        clock: Elapsed | None = None,
        _kept: _Kept = _NO_KEPT,
    ) -> None:
        self._clock = clock or (parent._clock if parent else None)
        if ceilings.seconds is not None and self._clock is None:
            raise ValueError(f"account {name} limits seconds and so needs a clock")
        self.name = name
        self.ceilings = ceilings
        self.parent = parent
        self._chain: tuple[Account, ...] = (self, *(parent._chain if parent else ()))
        self._kept = _kept
        self._limits = tuple(_limits(self._chain))
        self.limits_cost = any(one.ceilings.cost is not None for one, _ in self._limits)
        """Whether cost has a ceiling, here or above: then nothing may be called whose price is not known."""
        self.limited = self.limits_cost or any(one.ceilings.tokens is not None for one, _ in self._limits)
        """Whether tokens or cost have a ceiling, here or above."""
        self._spent = NOTHING_SPENT
        self._held = _Held()
        self._line: _Line = _Line(self) if parent is None else parent._line
        self._since = self._clock() if self._clock else 0.0
        if spent is not NOTHING_SPENT:
            self.restored(spent)

    # --- making accounts -----------------------------------------------------------------------------------

    def child(self, name: str, ceilings: Ceilings = UNLIMITED, share: float = 1.0) -> Account:
        """An account that draws from what this one has left, and from nothing else.

        Args:
            name: for people.
            ceilings: its own, on top of those from here upwards.
            share: the part of what is left here now that it gets at most.
        """
        if share < 1.0:
            left = self.remaining
            ceilings = Ceilings(
                _lower(ceilings.tokens, _part(left.tokens, share)),
                _money(_lower(ceilings.cost, _part(left.cost, share))),
                _lower(ceilings.calls, _part(left.calls, share)),
                _lower(ceilings.seconds, None if left.seconds is None else left.seconds * share),
            )
        return Account(name, ceilings, self)

    def keep(self, share: float, name: str = "") -> Account:
        """A child that leaves `share` of the whole that this account may use: for work that others write up.

        The whole is what is used and what is left, so that an account that was restored keeps as much as before.
        """
        left, used, held = self.remaining, self._spent, self._held
        calls = None if left.calls is None else left.calls + used.calls + held.calls
        kept = _Kept(
            _share(left.tokens, used.tokens + held.tokens, share),
            _share(left.cost, used.cost + held.cost, share),
            0 if calls is None else min(math.ceil(calls * share), max(0, calls - 1)),
            0.0 if left.seconds is None else (left.seconds + self.seconds) * share,
        )
        return Account(name or self.name, UNLIMITED, self, _kept=kept)

    def restored(self, spent: Spent, seconds: float = 0.0, *, above: bool = True) -> Account:
        """This account, told what was used before it was made, such as by a process that died.

        Args:
            spent: as logs tell it.
            seconds: wall time that was used.
            above: whether the accounts above have not been told of it yet.
        """
        for account in self._chain if above else (self,):
            account._spent += spent
        self._since -= seconds
        self._line.serve()
        return self

    # --- reading -------------------------------------------------------------------------------------------

    @property
    def root(self) -> Account:
        """The account at the top."""
        return self._chain[-1]

    @property
    def spent(self) -> Spent:
        """What was used, here and below."""
        return self._spent

    @property
    def seconds(self) -> float:
        """Wall time since it was made, and what it was restored with; 0 without a clock."""
        return self._clock() - self._since if self._clock else 0.0

    @property
    def in_flight(self) -> int:
        """Reservations that have not ended, here and below."""
        return self._held.count

    @property
    def remaining(self) -> Ceilings:
        """What is neither used nor reserved, by the tightest ceiling from here upwards; None: no ceiling."""
        tokens: int | None = None
        cost: int | None = None
        calls: int | None = None
        seconds: float | None = None
        for account, kept in self._limits:
            top, used, held = account.ceilings, account._spent, account._held
            if top.tokens is not None:
                tokens = _lower(tokens, max(0, top.tokens - kept.tokens - used.tokens - held.tokens))
            if top.cost is not None:
                cost = _lower(cost, max(0, top.cost - kept.cost - used.cost - held.cost))
            if top.calls is not None:
                calls = _lower(calls, max(0, top.calls - kept.calls - used.calls - held.calls))
            if top.seconds is not None:
                seconds = _lower(seconds, max(0.0, top.seconds - kept.seconds - account.seconds))
        return Ceilings(tokens, _money(cost), calls, seconds)

    def exhausted(self, hold: Hold) -> Exhausted | None:
        """Why `hold` will never fit, whatever becomes of what is in flight; None where it may."""
        for account, kept in self._limits:
            found = account._exceeded(hold, kept)
            if found is not None:
                return found
        return None

    # --- reserving -----------------------------------------------------------------------------------------

    async def reserve(self, hold: Hold) -> Reservation | Exhausted:
        """Take `hold` of this account and of all above it.

        What does not fit beside what others have in flight waits for them, first come, first served. What is alone
        in flight is let in as soon as its least fits: so a ceiling is passed by one call at most. Cancelled while it
        waits, it leaves nothing behind.

        Whoever holds a reservation must not wait for another one of the same tree: it may wait for itself.
        """
        answer = self.try_reserve(hold)
        if answer is not None:
            return answer
        waiter = _Waiter(self, hold, anyio.Event())
        self._line.join(waiter)
        try:
            await waiter.event.wait()
        except BaseException:
            if isinstance(waiter.answer, Reservation):
                waiter.answer.release()
            elif waiter.answer is None:
                self._line.leave(waiter)
            raise
        assert waiter.answer is not None
        return waiter.answer

    def try_reserve(self, hold: Hold) -> Reservation | Exhausted | None:
        """As `reserve`, at once; None where it would wait."""
        if self._limits:
            found = self.exhausted(hold)
            if found is not None:
                return found
            if self._blocked_by(hold, self._line.barred) is not None:
                return None
        for account in self._chain:
            held = account._held
            held.tokens += hold.tokens
            held.cost += hold.cost
            held.calls += hold.calls
            held.count += 1
        return Reservation(self, hold)

    def _exceeded(self, hold: Hold, kept: _Kept) -> Exhausted | None:
        top, used = self.ceilings, self._spent
        if top.tokens is not None and hold.tokens:
            least = max(1, hold.least_tokens)
            if used.tokens + least > top.tokens - kept.tokens:
                return Exhausted(self.name, "tokens", used.tokens, top.tokens, kept.tokens, least)
        if top.cost is not None and hold.cost:
            least = max(1, hold.least_cost)
            if used.cost + least > top.cost - kept.cost:
                return Exhausted(self.name, "cost", used.cost, top.cost, kept.cost, least)
        if top.calls is not None and used.calls + hold.calls > top.calls - kept.calls:
            return Exhausted(self.name, "calls", used.calls, top.calls, kept.calls, hold.calls)
        if top.seconds is not None and self.seconds >= top.seconds - kept.seconds:
            return Exhausted(self.name, "seconds", self.seconds, top.seconds, kept.seconds)
        return None

    def _blocked_by(self, hold: Hold, barred: set[Account]) -> Account | None:
        """The first account in which others have to end before `hold` fits; alone it fits if its least does."""
        for account, kept in self._limits:
            if account in barred:
                return account
            top, used, held = account.ceilings, account._spent, account._held
            if (
                _full(top.tokens, kept.tokens, used.tokens, held.tokens, hold.tokens)
                or _full(top.cost, kept.cost, used.cost, held.cost, hold.cost)
                or _full(top.calls, kept.calls, used.calls, held.calls, hold.calls)
            ):
                return account
        return None

    def _end(self, hold: Hold, spent: Spent | None) -> None:
        for account in self._chain:
            held = account._held
            held.tokens -= hold.tokens
            held.cost -= hold.cost
            held.calls -= hold.calls
            held.count -= 1
            if spent is not None:
                account._spent += spent
        self._line.serve()


class _Line:
    """Who waits for something in one tree of accounts, in the order in which they came."""

    __slots__ = ("_root", "barred", "queue")

    def __init__(self, root: Account) -> None:
        self._root = root
        self.queue: list[_Waiter] = []
        self.barred: set[Account] = set()
        """The accounts at which somebody waits, so that nobody passes there."""

    def join(self, waiter: _Waiter) -> None:
        self.queue.append(waiter)
        blocked = waiter.account._blocked_by(waiter.hold, self.barred)  # pyright: ignore[reportPrivateUsage]
        assert blocked is not None, "who waits waits for somebody"
        self.barred.add(blocked)

    def leave(self, waiter: _Waiter) -> None:
        self.queue.remove(waiter)
        self.serve()

    def serve(self) -> None:
        """Let in who fits now, and tell who never will."""
        if not self.barred:
            return
        queue, self.queue, self.barred = self.queue, [], set()
        for place, waiter in enumerate(queue):
            if self._root in self.barred:
                self.queue += queue[place:]
                return
            waiter.answer = waiter.account.try_reserve(waiter.hold)
            if waiter.answer is not None:
                waiter.event.set()
            else:
                self.join(waiter)


_WHOLE_S: Final = 10


def _limits(chain: tuple[Account, ...]) -> Iterator[tuple[Account, _Kept]]:
    """The accounts of `chain` that have ceilings, each with what those below leave in it."""
    kept = _NO_KEPT
    for account in chain:
        if not account.ceilings.none:
            yield account, kept
        kept += account._kept  # pyright: ignore[reportPrivateUsage]  # one mechanism


def _full(ceiling: int | None, kept: int, used: int, held: int, wanted: int) -> bool:
    """Whether `wanted` has to wait for what is held; with nothing held it is let in."""
    return ceiling is not None and held > 0 and wanted > 0 and used + held + wanted > ceiling - kept


def _lower(one: N | None, other: N | None) -> N | None:
    if one is None:
        return other
    return one if other is None else min(one, other)


def _part(left: int | None, share: float) -> int | None:
    return None if left is None else int(left * share)


def _share(left: int | None, used: int, share: float) -> int:
    return 0 if left is None else math.ceil((left + used) * share)


def _money(amount: int | None) -> Money | None:
    return None if amount is None else Money(amount)


def _amount(what: CeilingKind, value: float) -> str:
    match what:
        case "cost":
            return shown(round(value))
        case "seconds":
            return duration(value)
        case "tokens" | "calls":
            return counted(round(value), what)


def duration(seconds: float) -> str:
    """Seconds for people: whole ones, and tenths below ten."""
    return f"{seconds:.0f} s" if seconds >= _WHOLE_S else f"{round(seconds, 1):g} s"


def counted(number: int, what: Literal["tokens", "calls"]) -> str:
    """So many tokens or calls."""
    return f"{number:,} {what.removesuffix('s') if number == 1 else what}"
