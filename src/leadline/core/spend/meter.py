"""The one way to anything that is paid for: reserve, stand in line, call, settle."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, Self

from msgspec import structs
from pydantic import BaseModel, ConfigDict, Field, model_validator

from leadline.core.clock import Clock
from leadline.core.config import ConfigParser
from leadline.core.llm.adapter import Models
from leadline.core.llm.failure import LlmFailure, Stop
from leadline.core.llm.limits import RateLimits
from leadline.core.llm.request import ModelRef
from leadline.core.llm.usage import Usage
from leadline.core.spend.account import Account, Exhausted, Hold, Reservation, Spent
from leadline.core.spend.limiter import Limiter, Permit
from leadline.core.spend.lines import Ask, Waiting
from leadline.core.spend.money import NOTHING, Cost
from leadline.core.spend.prices import Price, Prices
from leadline.kernel.context import Context
from leadline.kernel.errors import LeadlineError
from leadline.kernel.plugin import Plugin
from leadline.kernel.services import Service

SAFETY: Final = 5
"""A prompt is reserved with a fifth on top: an estimate is right within some 15 %."""

USUAL_OUTPUT: Final = 8_192
"""Tokens that are reserved for an answer of which nobody says how long it may be."""

_HTTP_REFUSED: Final = 400

_ITSELF: Final = (
    "too little is left of the budget for a call inside of another one, which would wait for itself"
)
_paying: ContextVar[frozenset[Account]] = ContextVar("paying", default=frozenset())
"""The roots of the accounts on which this task has a paid call of a tool under way."""


@dataclass(frozen=True, slots=True)
class PaidCall:
    """One call that is about to be made."""

    account: Account
    what: str
    """`provider/model`, or the name of a service."""
    purpose: str
    prompt_tokens: int = 0
    """Estimate of the prompt."""
    most_output: int | None = None
    """Tokens that the answer may have at most; None: nobody says."""
    group: str = ""
    """Id of the session at the root: runs take turns in a line."""
    priority: int = 0
    child: bool = False
    """Whether an agent with a parent makes it."""
    counted: bool = True
    """Whether tokens are counted; for a search they are not."""
    estimate: Usage | None = None
    """What a tool's call is charged where nothing is reported."""


class Opened:
    """A call that may be made now. `settle` has to be called, however it ends; the second time it does nothing."""

    __slots__ = ("_meter", "_permit", "_reservation", "call", "cost")

    def __init__(self, meter: Meter, call: PaidCall, reservation: Reservation, permit: Permit) -> None:
        self.call = call
        self.cost: Cost | None = None
        """What `settle` found."""
        self._meter = meter
        self._reservation = reservation
        self._permit = permit

    def heard(self, limits: RateLimits) -> None:
        """The head of the response said so: others who wait need not wait for the end of the answer to know it."""
        self._permit.heard(limits)

    def settle(
        self,
        usage: Usage | None = None,
        limits: RateLimits | None = None,
        failure: LlmFailure | None = None,
        estimate: Usage | None = None,
        floor: Usage | None = None,
    ) -> Cost | None:
        """The call has ended: the account is charged, the place in the line is free.

        Args:
            usage: what the provider reported; None, or nothing in it: it reported nothing.
            limits: what the response said about rate limits, where `heard` was not told.
            failure: how it failed.
            estimate: what is charged to the account where nothing was reported; None there: nothing was used.
            floor: what was used for certain. The account is charged no less, whatever was reported: a ceiling
                that held only as long as providers tell the truth would be none.

        Returns:
            What it cost for certain; None where that is not known: no price, or nothing reported. Nothing, where the
            provider turned the call away before it did any work.
        """
        if self._reservation.ended:
            return self.cost
        reported = usage if usage is not None and usage.reported else None
        charged = _filled(reported, estimate)
        if charged is None and failure is not None and _turned_away(failure):
            self._reservation.settle(Spent(calls=1))
            self.cost = Cost()
        else:
            self.cost = self._charge(reported, charged, _raised(charged, floor))
        self._permit.done(charged.total if charged else None, limits, failure)
        return self.cost

    def _charge(self, reported: Usage | None, charged: Usage | None, booked: Usage | None) -> Cost | None:
        """Charge the account for `booked`, and what is known for certain of the cost of `charged`."""
        meter, call = self._meter, self.call
        price, now = meter.prices(call.what), meter.clock.now()
        cost = None if price is None else price.cost(charged, now)
        ours = cost if price is None or booked is charged else price.cost(booked, now)
        tokens = (booked.total or 0) if booked else 0
        unpriced = int(ours is None or not ours.complete)
        self._reservation.settle(Spent(tokens, ours.known if ours else NOTHING, 1, unpriced))
        certain = reported is not None or (price is not None and not price.by_tokens)
        return cost if certain else None

    def release(self) -> None:
        """The call was not made: nothing is charged."""
        self._reservation.release()
        self._permit.unmade()


@dataclass(frozen=True, slots=True)
class Charge:
    """What was paid other than by a request of a session: the fields of a `spend/charged` event."""

    what: str
    purpose: str
    usage: Usage | None
    cost: int | None
    """Picodollars; None where it is not known."""
    state: Literal["done", "failed", "cancelled"]


class Paying:
    """What is being paid for, inside `Meter.paid`: say what it used."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        """As the service reported it."""
        self.failure: LlmFailure | None = None
        """How it failed, where that is a value."""
        self.limits: RateLimits | None = None


class BudgetReached(LeadlineError):
    """Something paid for may not be called now: a ceiling is reached, its price is not known, or the wait was too long."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.message + (f"; {stop.next_step}" if stop.next_step else ""))
        self.stop = stop


class Meter(Service, key="meter"):
    """The one client of everything that is paid for."""

    def __init__(self, limiter: Limiter, clock: Clock, prices: Prices | None = None) -> None:
        self.prices = prices or Prices()
        self.clock = clock
        self._limiter = limiter

    def price(self, what: str) -> Price | None:
        """The price of a model or service; None where it is not known."""
        return self.prices(what)

    def cost(self, what: str, usage: Usage | None) -> Cost | None:
        """What a call with that usage costs now; None where no price is known."""
        price = self.prices(what)
        return None if price is None else price.cost(usage, self.clock.now())

    async def open(self, call: PaidCall, waiting: Callable[[Waiting], None] | None = None) -> Opened | Stop:
        """The right to make `call`: what it may use is reserved, and it has its place in the line.

        Returns:
            A `Stop` where a ceiling is reached (`BUDGET`), where cost is limited and nobody knows the price
            (`NO_PRICE`), or where the wait in line was too long (`CAPACITY`); nothing is held then.
        """
        hold = self._hold(call)
        if isinstance(hold, Stop):
            return hold
        reservation = call.account.try_reserve(hold)
        if reservation is None:
            if waiting is not None:
                waiting(Waiting(call.what, "budget", call.account.in_flight, None))
            reservation = call.account.try_reserve(hold)
        if reservation is None:
            if call.account.root in _paying.get():
                return Stop("BUDGET", _ITSELF, next_step="end the paid call before the next one begins")
            reservation = await call.account.reserve(hold)
        if isinstance(reservation, Exhausted):
            return Stop("BUDGET", reservation.message, next_step="allow more, or work with what there is")
        # The line counts what is likely: with all that a long answer might have, one call would fill a minute.
        likely = min(hold.tokens, call.prompt_tokens + USUAL_OUTPUT)
        ask = Ask(call.what, likely, call.group, call.priority, call.child)
        try:
            permit = await self._limiter.admit(ask, waiting)
        except BaseException:
            reservation.release()
            raise
        if isinstance(permit, Stop):
            reservation.release()
            return permit
        return Opened(self, call, reservation, permit)

    @asynccontextmanager
    async def paid(
        self,
        call: PaidCall,
        log: Callable[[Charge], None],
        waiting: Callable[[Waiting], None] | None = None,
    ) -> AsyncGenerator[Paying]:
        """Make one paid call of a tool: a search, a reader, an embedding.

        It is charged when the body ends, however it ends, and `log` is told once: a call that failed or was
        cancelled may have been billed all the same.

        Raises:
            BudgetReached: it may not be made; nothing is charged, and `log` is not told.
        """
        opened = await self.open(call, waiting)
        if isinstance(opened, Stop):
            raise BudgetReached(opened)
        paying, state = Paying(), "failed"
        above = _paying.get()
        _paying.set(above | {call.account.root})
        try:
            yield paying
            state = "failed" if paying.failure else "done"
        except BaseException as error:
            state = "failed" if isinstance(error, Exception) else "cancelled"
            raise
        finally:
            _paying.set(above)
            cost = opened.settle(paying.usage, paying.limits, paying.failure, call.estimate)
            log(Charge(call.what, call.purpose, paying.usage, cost.exact if cost else None, state))

    def _hold(self, call: PaidCall) -> Hold | Stop:
        """What the call may use, on the safe side."""
        price = self.prices(call.what)
        if price is None and call.account.limits_cost:
            return Stop(
                "NO_PRICE",
                f"no price is known for {call.what}, so a ceiling on cost cannot be kept",
                next_step=f"say what it costs: leadline models price {call.what} --input DOLLARS --output DOLLARS "
                "(for a million tokens), or --free; or limit tokens instead of cost",
            )
        if not call.counted:
            each = NOTHING if price is None else price.most(0, 0)
            return Hold(0, each, 1, 0, each)
        prompt = call.prompt_tokens + call.prompt_tokens // SAFETY
        output = USUAL_OUTPUT if call.most_output is None else call.most_output
        if price is None or not call.account.limits_cost:
            return Hold(prompt + output, NOTHING, 1, call.prompt_tokens)
        most, least = price.most(prompt, output), price.least(call.prompt_tokens)
        return Hold(prompt + output, most, 1, call.prompt_tokens, least)


def _turned_away(failure: LlmFailure) -> bool:
    """Whether a provider that reported nothing and said nothing refused the call, for which none charges."""
    if (failure.status or 0) >= _HTTP_REFUSED:
        return True
    return isinstance(failure, Stop) and failure.code != "REFUSED"


def _filled(reported: Usage | None, estimate: Usage | None) -> Usage | None:
    """What is charged: what was reported, and the estimate where nothing was."""
    if estimate is None or not estimate.reported:
        return reported
    if reported is None:
        return estimate
    if reported.prompt is None:
        reported = structs.replace(reported, input=estimate.prompt)
    if reported.completion is None:
        reported = structs.replace(reported, output=estimate.completion)
    return reported


def _raised(charged: Usage | None, floor: Usage | None) -> Usage | None:
    """What is charged, and no less than `floor` of prompt or answer."""
    if floor is None:
        return charged
    charged = charged or floor
    short_in = (floor.prompt or 0) - (charged.prompt or 0)
    short_out = (floor.completion or 0) - (charged.completion or 0)
    if short_in > 0:
        charged = structs.replace(charged, input=(charged.input or 0) + short_in)
    if short_out > 0:
        charged = structs.replace(charged, output=(charged.output or 0) + short_out)
    return charged


class PriceConfig(BaseModel):
    """What a model or service costs. US dollars for a million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Of input tokens."""
    output: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Of output tokens."""
    cached_input: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Of input tokens that were read from a cache; null: as `input`."""
    cache_write: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Of input tokens that were written to a cache; null: as `input`."""
    reasoning: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Of reasoning tokens; null: as `output`."""
    call: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Dollars for each call, on top."""
    free: bool = False
    """It costs nothing: a server of one's own."""
    unknown: bool = False
    """Whatever the lists say, its price is not known."""
    like: str = ""
    """It costs what this one costs; ``openai/*`` where the name behind the provider is the same."""

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        tokens = self.input is not None and self.output is not None
        if (self.input is None) != (self.output is None):
            raise ValueError("say both `input` and `output`, in dollars for a million tokens")
        said = sum((tokens or self.call is not None, self.free, self.unknown, bool(self.like)))
        if said != 1:
            raise ValueError("say one of: `input` and `output` or `call`, `free`, `unknown`, `like`")
        return self


class MeterConfig(BaseModel):
    """What calls cost."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prices: dict[str, PriceConfig] = {}
    """Prices of one's own by ``provider/model`` or service; they hold before the lists that ship. In a name ``#``
    stands for one digit and ``*`` for anything."""


async def _apply(ctx: Context, config: MeterConfig) -> None:
    own = [{"model": what, **row.model_dump(exclude_none=True)} for what, row in config.prices.items()]
    models, plain = ctx.find(Models), Prices(own)
    for what, row in config.prices.items():
        if row.like:
            plain(what)  # what is said in a circle is told now, and not by the first call
    prices = Prices(own, remote=None if models is None else partial(_is_remote, models))
    ctx.provide(Meter, Meter(ctx.get(Limiter), ctx.get(Clock), prices))


def _is_remote(models: Models, what: str) -> bool:
    """Whether a model is asked far away; what names no model that can be asked is not."""
    try:
        adapter, model = models.resolve(ModelRef.parse(what))
    except LeadlineError:
        return False
    return adapter.info(model.model).remote


plugin: Plugin[MeterConfig] = Plugin(
    "meter",
    _apply,
    config=ConfigParser(MeterConfig),
    needs=(Clock, Limiter),
    wants=(Models,),
    provides=(Meter,),
)
