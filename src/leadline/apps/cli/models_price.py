"""`leadline models price`: what a model costs, as the lists say or as a person says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import msgspec

from leadline.apps.cli.exits import Exit, Quit, refusing
from leadline.apps.cli.streams import document
from leadline.apps.sdk.models_file import ModelsFile, configured
from leadline.core.llm.request import ModelRef

if TYPE_CHECKING:
    from leadline.apps.cli.parser import Given
    from leadline.core.spend.prices import Price, Rates

Table = dict[str, object]


def run_price(given: Given) -> Exit:
    """Write down what a model costs, take that back, or tell what it costs.

    Raises:
        Quit: what was said makes no price, or its name no model; nothing was written.
    """
    what = given.model_id or ""
    with refusing():
        if "/" in what:
            ModelRef.parse(what)
        said = _said(given)
        if said or given.unset:
            file = ModelsFile.of()
            config = file.read("meter")
            prices = dict(cast("Mapping[str, object]", config.get("prices") or {}))
            if given.unset:
                if prices.pop(what, None) is None:
                    raise Quit(
                        Exit.USAGE,
                        f"no price was written down for {what!r}; see: leadline models price {what}",
                    )
            else:
                prices[what] = said
            _priced(what, prices)  # what is said in a circle is not written down: nothing could be asked then
            file.write({**config, "prices": prices} if prices else {}, "meter")
        price = _price(what)
    if given.as_json:
        document(msgspec.json.encode({"model": what, **_plain(price)}))
    else:
        document(f"{what}: {_told(price)}")
    return Exit.DONE


def _said(given: Given) -> Table:
    numbers = {
        "input": given.input_price,
        "output": given.output_price,
        "cached_input": given.cached_price,
        "cache_write": given.write_price,
        "reasoning": given.reasoning_price,
        "call": given.call_price,
    }
    said: Table = {name: number for name, number in numbers.items() if number is not None}
    if given.free:
        said["free"] = True
    if given.like:
        said["like"] = given.like
    if said and given.unset:
        raise Quit(Exit.USAGE, "--unset stands alone: it takes back what was said before")
    return said


def _price(what: str) -> Price | None:
    """What holds now."""
    return _priced(what, cast("Mapping[str, object]", configured("meter").get("prices") or {}))


def _priced(what: str, said: Mapping[str, object]) -> Price | None:
    """What holds with these prices of one's own."""
    from leadline.core.spend.prices import Prices

    rows = cast("Mapping[str, Mapping[str, object]]", said)
    return Prices([{"model": name, **row} for name, row in rows.items()])(what)


def _plain(price: Price | None) -> Table:
    if price is None:
        return {"known": False}
    if price.free:
        return {"known": True, "free": True, **_origin(price)}
    tiers = [{"above_tokens": tokens, **_dollars(rates)} for tokens, rates in price.above]
    return {
        "known": True,
        **(_dollars(price.rates) if price.rates else {}),
        **({"call": _number(price.call)} if price.call else {}),
        **({"above": tiers} if tiers else {}),
        **({"cheaper": [_dollars(hours.rates) for hours in price.cheaper]} if price.cheaper else {}),
        **_origin(price),
    }


def _dollars(rates: Rates) -> Table:
    names = ("input", "cached_input", "cache_write", "output", "reasoning")
    return {name: _number(getattr(rates, name) * 1_000_000) for name in names}


def _number(amount: int) -> float:
    from leadline.core.spend.money import Money, dollars

    return dollars(Money(amount))


def _origin(price: Price) -> Table:
    return {"as_of": price.as_of, "source": price.source} if price.source else {"source": "your own"}


def _told(price: Price | None) -> str:
    if price is None:
        return (
            "its price is not known; say it with --input and --output (US dollars for a million tokens), "
            "--free, or --like"
        )
    origin = f"list price of {price.as_of}, {price.source}" if price.source else "as you said"
    if price.free:
        return f"free ({price.source or origin})"
    parts = [_rates(price.rates)] if price.rates else []
    parts += [f"above {tokens:,} tokens {_rates(rates)}" for tokens, rates in price.above]
    parts += [f"at certain hours {_rates(price.cheaper[0].rates)}"] if price.cheaper else []
    per_call = f", ${_number(price.call):g} a call" if price.call else ""
    tokens = f"US dollars for a million tokens: {'; '.join(parts)}" if parts else "US dollars"
    return f"{tokens}{per_call} ({origin})"


def _rates(rates: Rates) -> str:
    shown = _dollars(rates)
    same = {"cached_input": "input", "cache_write": "input", "reasoning": "output"}
    return ", ".join(
        f"{name.replace('_', ' ')} {value:g}"
        for name, value in cast("dict[str, float]", shown).items()
        if name not in same or value != shown[same[name]]
    )
