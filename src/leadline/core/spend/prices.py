"""What a call costs: list prices as a table, a user's own over them, and the sum by whole numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, cast

import msgspec

from leadline.core.llm.usage import NOT_REPORTED, Usage
from leadline.core.spend.money import NOTHING, Cost, Money, money
from leadline.kernel.errors import LeadlineError

_MILLION: Final = 1_000_000
_DAY: Final = 86_400
_FILE_NAME: Final = re.compile(r"[a-z0-9_-]+")


class BadPrice(LeadlineError):
    """A row of prices cannot be used."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Money for one token of each bucket."""

    input: Money
    cached_input: Money
    cache_write: Money
    output: Money
    reasoning: Money


@dataclass(frozen=True, slots=True)
class Hours:
    """Times of a week, in UTC, at which other rates hold."""

    days: frozenset[int]
    """1 is Monday."""
    spans: tuple[tuple[int, int], ...]
    """Seconds of the day, from and to."""
    rates: Rates

    def hold(self, at: float) -> bool:
        """Whether they do at `at`, in seconds since 1970."""
        day, second = divmod(int(at), _DAY)
        return (day + 3) % 7 + 1 in self.days and any(start <= second < end for start, end in self.spans)


@dataclass(frozen=True, slots=True)
class Price:
    """What one model or service charges."""

    rates: Rates | None = None
    """None: nothing is charged for tokens."""
    call: Money = NOTHING
    """Money for each call."""
    above: tuple[tuple[int, Rates], ...] = ()
    """`(tokens, rates)`, ascending: where the prompt has more tokens, these hold for the whole call."""
    cheaper: tuple[Hours, ...] = ()
    """When less is charged for tokens."""
    free: bool = False
    """Whether it is known to cost nothing."""
    as_of: str = ""
    """Date of the price list."""
    source: str = ""
    """Where it was read."""

    @property
    def by_tokens(self) -> bool:
        """Whether what a call costs depends on what it used."""
        return self.rates is not None and not self.free

    def rates_of(self, prompt: int, at: float | None = None) -> Rates | None:
        """The rates of a call with a prompt of so many tokens that ends at `at`; None: whenever they are highest."""
        if at is not None:
            for hours in self.cheaper:
                if hours.hold(at):
                    return hours.rates
        rates = self.rates
        for tokens, higher in self.above:
            if prompt > tokens:
                rates = higher
        return rates

    def cost(self, usage: Usage | None, at: float | None = None, calls: int = 1) -> Cost:
        """What calls with that usage cost, together, if they end at `at` (seconds since 1970).

        The prompt and the answer have to be reported, where tokens are charged: otherwise the cost is not complete.
        """
        known = self.call * calls
        if self.free or self.rates is None:
            return Cost(Money(known))
        usage = usage or NOT_REPORTED
        rates = self.rates_of(usage.prompt or 0, at)
        assert rates is not None
        for tokens, rate in (
            (usage.input, rates.input),
            (usage.cached_input, rates.cached_input),
            (usage.cache_write, rates.cache_write),
            (usage.output, rates.output),
            (usage.reasoning, rates.reasoning),
        ):
            known += (tokens or 0) * rate
        return Cost(Money(known), usage.prompt is not None and usage.completion is not None)

    def most(self, prompt: int, output: int) -> Money:
        """The most that a call with such a prompt and answer costs, whatever comes from a cache."""
        rates = self.rates_of(prompt)
        if self.free or rates is None:
            return Money(0 if self.free else self.call)
        dearest_in = max(rates.input, rates.cache_write, rates.cached_input)
        return Money(self.call + prompt * dearest_in + output * max(rates.output, rates.reasoning))

    def least(self, prompt: int) -> Money:
        """The least that a call with such a prompt costs: all of it from a cache, and no answer."""
        if self.free or self.rates is None:
            return Money(0 if self.free else self.call)
        possible = (self.rates_of(prompt), *(hours.rates for hours in self.cheaper))
        least = min(min(one.input, one.cached_input, one.cache_write) for one in possible if one)
        return Money(self.call + prompt * least)


class Tier(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What holds for a call whose prompt has more than `tokens` tokens. Dollars for a million tokens."""

    tokens: int
    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None
    reasoning: float | None = None


class Times(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Days and hours, in UTC."""

    days: tuple[int, ...]
    """1 is Monday."""
    hours: tuple[str, ...]
    """Such as `04:00-06:00`; a day ends at `24:00`."""


class Cheaper(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What holds for a call that ends at certain times. Dollars for a million tokens."""

    times: tuple[Times, ...]
    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None
    reasoning: float | None = None


class PriceRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row, as it is written down. Dollars for a million tokens of each bucket."""

    model: str
    """`provider/model`, or a service. `#` stands for one digit, `*` for anything."""
    also: tuple[str, ...] = ()
    """Further names of the same, such as dated ones."""
    input: float | None = None
    output: float | None = None
    cached_input: float | None = None
    """None: as `input`."""
    cache_write: float | None = None
    """None: as `input`."""
    reasoning: float | None = None
    """None: as `output`."""
    above: tuple[Tier, ...] = ()
    cheaper: Cheaper | None = None
    call: float | None = None
    """Dollars for each call."""
    free: bool = False
    near: bool = False
    """It holds for a server of this machine or its own network alone."""
    unknown: bool = False
    """Nothing is known of its price, whatever a wider row says."""
    like: str = ""
    """Another model, whose price it has; ends with `/*` where the name behind the provider is the same."""
    as_of: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class _Row:
    pattern: re.Pattern[str]
    weight: int
    """Letters of the pattern that are not wildcards: of two that fit, the heavier holds."""
    price: Price | None
    """None: known to be unknown."""
    like: str
    near: bool


class Prices:
    """Prices by `provider/model`. What is in no row is not known, which is not the same as free.

    Args:
        overrides: rows that hold before those of the table; same fields.
        table: what holds else; None: the lists that ship, `price_lists/PROVIDER.toml`, each read when it is wanted.
        remote: whether a model is reached at an address that is not of this machine or its own network.
    """

    def __init__(
        self,
        overrides: Iterable[Mapping[str, object]] = (),
        table: Iterable[Mapping[str, object]] | None = None,
        remote: Callable[[str], bool] | None = None,
    ) -> None:
        self._remote = remote
        self._own = _rows(overrides)
        self._given = None if table is None else _rows(table)
        self._found: dict[str, Price | None] = {}

    def __call__(self, what: str) -> Price | None:
        """The price of a model (`provider/model`) or service; None where it is not known."""
        if what not in self._found:
            self._found[what] = self._look_up(what)
        return self._found[what]

    def _look_up(self, what: str, depth: int = 0) -> Price | None:
        provider = what.partition("/")[0].lower() if "/" in what else "services"
        table = _shipped(provider) if self._given is None else self._given
        row = _heaviest(self._own, what) or _heaviest(table, what)
        if row is None or (row.near and self._remote is not None and self._remote(what)):
            return None
        if not row.like:
            return row.price
        if depth == 8:
            raise BadPrice(f"the price of {what} is said to be that of {row.like}, and so on in a circle")
        named = what.partition("/")[2] if row.like.endswith("/*") else ""
        return self._look_up(row.like.removesuffix("*") + named if named else row.like, depth + 1)


@cache
def _shipped(provider: str) -> tuple[_Row, ...]:
    return tuple(one for row in read_list(provider) for one in _read(row))


def read_list(provider: str) -> tuple[PriceRow, ...]:
    """The price list that ships for a provider; what stands at its head holds for each row. Empty where none does."""
    if not _FILE_NAME.fullmatch(provider):
        return ()
    file = files("leadline.core.spend") / "price_lists" / f"{provider}.toml"
    if not file.is_file():
        return ()
    import tomllib  # noqa: PLC0415 - only where a list is read

    data: dict[str, object] = tomllib.loads(file.read_text("utf-8"))
    rows = cast("list[Mapping[str, object]]", data.pop("price"))
    return tuple(msgspec.convert({**data, **row}, PriceRow) for row in rows)


def _rows(rows: Iterable[Mapping[str, object]]) -> tuple[_Row, ...]:
    return tuple(one for row in rows for one in _read(msgspec.convert(row, PriceRow)))


def _read(row: PriceRow) -> Iterator[_Row]:
    price = None if row.unknown else _price(row)
    for pattern in (row.model, *row.also):
        weight = sum(char not in "*#" for char in pattern)
        if "*" not in pattern:
            weight += 10_000
        yield _Row(_compiled(pattern), weight, price, row.like, row.near)


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\#", "[0-9]"), re.IGNORECASE)


def _heaviest(rows: tuple[_Row, ...], what: str) -> _Row | None:
    fitting = (row for row in rows if row.pattern.fullmatch(what))
    return max(fitting, key=lambda row: row.weight, default=None)


def _price(row: PriceRow) -> Price:
    if row.free:
        return Price(free=True, as_of=row.as_of, source=row.source)
    return Price(
        _rates(row),
        money(row.call or 0),
        tuple((tier.tokens, _some(tier)) for tier in sorted(row.above, key=lambda tier: tier.tokens)),
        () if row.cheaper is None else tuple(_hours(row.cheaper)),
        as_of=row.as_of,
        source=row.source,
    )


def _hours(cheaper: Cheaper) -> Iterator[Hours]:
    for times in cheaper.times:
        spans = (span.split("-") for span in times.hours)
        yield Hours(
            frozenset(times.days),
            tuple((_second(start), _second(end)) for start, end in spans),
            _some(cheaper),
        )


def _second(time: str) -> int:
    hour, minute = time.split(":")
    return int(hour) * 3600 + int(minute) * 60


def _rates(row: PriceRow) -> Rates | None:
    if row.input is None or row.output is None:
        return None
    return _made(row.input, row.output, row)


def _some(row: Tier | Cheaper) -> Rates:
    return _made(row.input, row.output, row)


def _made(input_: float, output: float, row: PriceRow | Tier | Cheaper) -> Rates:
    return Rates(
        _each(input_),
        _each(input_ if row.cached_input is None else row.cached_input),
        _each(input_ if row.cache_write is None else row.cache_write),
        _each(output),
        _each(output if row.reasoning is None else row.reasoning),
    )


def _each(dollars_a_million: float) -> Money:
    return Money(money(dollars_a_million) // _MILLION)
