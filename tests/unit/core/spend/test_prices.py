from __future__ import annotations

from datetime import UTC, date, datetime
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.llm.usage import Usage
from leadline.core.spend.money import Cost, money
from leadline.core.spend.prices import BadPrice, Prices, read_list

LISTS = sorted(
    Path(str(one)).stem
    for one in (files("leadline.core.spend") / "price_lists").iterdir()
    if one.name.endswith(".toml")
)
buckets = st.none() | st.integers(0, 10**8)
usages = st.builds(Usage, buckets, buckets, buckets, buckets, buckets)
TABLE = (
    {"model": "a/*", "input": 2, "cached_input": 0.2, "cache_write": 2.5, "output": 10, "reasoning": 12},
)


@pytest.mark.case("K01")
def test_cached_tokens_are_charged_once_at_their_own_price() -> None:
    price = Prices(table=TABLE)("a/b")
    assert price is not None
    usage = Usage(input=2049, cached_input=10_880, output=40)
    assert price.cost(usage) == Cost(money((2049 * 2 + 10_880 * 0.2 + 40 * 10) / 1_000_000))


@pytest.mark.case("K04")
@given(usages, usages)
def test_what_two_calls_cost_together_is_the_sum_of_what_each_costs(one: Usage, other: Usage) -> None:
    price = Prices(table=TABLE)("a/b")
    assert price is not None
    assert price.cost(one).known + price.cost(other).known == price.cost(one + other).known


def test_the_price_of_what_is_in_no_list_is_not_known() -> None:
    prices = Prices()
    for what in ("nobody/nothing", "openai/gpt-4o-1999-01-01", "openai/gpt-4", "tavily", "../../etc/passwd"):
        assert (prices(what) is None) is (what != "openai/gpt-4")


def test_a_dated_name_has_the_price_that_the_list_gives_it() -> None:
    prices = Prices()
    assert prices("openai/gpt-4o-2024-08-06") == prices("openai/gpt-4o")
    older = prices("openai/gpt-4o-2024-05-13")
    assert older is not None
    assert older != prices("openai/gpt-4o")


def test_prices_of_ones_own_hold_before_the_lists() -> None:
    prices = Prices(
        [{"model": "openai/*", "input": 1, "output": 1}, {"model": "ollama/big", "unknown": True}]
    )
    price = prices("openai/gpt-4o")
    assert price is not None
    assert price.cost(Usage(input=1_000_000, output=0)) == Cost(money(1))
    assert prices("ollama/big") is None
    small = prices("ollama/small")
    assert small is not None
    assert small.free


def test_of_two_patterns_the_one_that_says_more_holds() -> None:
    prices = Prices(
        table=[
            {"model": "a/*", "input": 1, "output": 1},
            {"model": "a/big-*", "input": 2, "output": 2},
            {"model": "a/big-one", "input": 3, "output": 3},
            {"model": "a/big-####", "input": 4, "output": 4},
        ]
    )

    def dollars_of(what: str) -> float:
        price = prices(what)
        assert price is not None
        return price.cost(Usage(input=1_000_000, output=0)).known / money(1)

    assert [dollars_of(what) for what in ("a/x", "a/big-x", "a/big-one", "a/big-2026")] == [1, 2, 3, 4]


def test_a_model_may_cost_what_another_one_costs() -> None:
    prices = Prices(
        [{"model": "work/*", "like": "openai/*"}, {"model": "azure/mine", "like": "openai/gpt-4o"}]
    )
    assert prices("work/gpt-4o") == prices("azure/mine") == prices("openai/gpt-4o")
    assert prices("openai-responses/gpt-4o") == prices("openai/gpt-4o")
    assert prices("work/none") is None


def test_prices_that_refer_to_each_other_in_a_circle_are_refused() -> None:
    with pytest.raises(BadPrice, match="circle"):
        Prices([{"model": "a/*", "like": "b/*"}, {"model": "b/*", "like": "a/*"}])("a/x")


def test_a_long_prompt_has_the_rates_of_its_size() -> None:
    row = {
        "model": "a/b",
        "input": 1,
        "output": 10,
        "above": [{"tokens": 1000, "input": 2, "output": 20}, {"tokens": 2000, "input": 3, "output": 30}],
    }
    price = Prices(table=[row])("a/b")
    assert price is not None
    for tokens, rate in ((1000, 1), (1001, 2), (2000, 2), (2001, 3)):
        assert price.cost(Usage(input=tokens - 500, cached_input=500, output=0)) == Cost(
            money(tokens * rate / 1_000_000)
        )


def test_hours_at_which_less_is_charged_are_those_of_the_week_in_utc() -> None:
    price = Prices()("deepseek/deepseek-v4-pro")
    assert price is not None

    def at(day: int, hour: int, minute: int = 0) -> float:
        moment = datetime(2026, 11, day, hour, minute, tzinfo=UTC).timestamp()
        return price.cost(Usage(input=1_000_000, output=0), moment).known / money(1)

    assert (at(30, 1), at(30, 3, 59), at(30, 4), at(30, 6), at(30, 10)) == (1.32, 1.32, 0.66, 1.32, 0.66)
    assert (at(28, 2), at(29, 7)) == (0.66, 0.66)
    assert price.cost(Usage(input=1_000_000, output=0)).known == money(1.32)


def test_a_cost_is_not_complete_where_a_side_was_not_reported() -> None:
    price = Prices(table=TABLE)("a/b")
    assert price is not None
    assert price.cost(Usage(input=1000)) == Cost(money("0.002"), complete=False)
    assert price.cost(None) == Cost(complete=False)


def test_what_is_free_costs_nothing_whatever_was_reported() -> None:
    price = Prices()("extractive/extractive")
    assert price is not None
    assert price.cost(None) == Cost()
    assert price.most(1000, 1000) == price.least(1000) == 0


def test_a_service_is_paid_by_the_call() -> None:
    price = Prices([{"model": "finder", "call": 0.008}])("finder")
    assert price is not None
    assert price.cost(None, calls=3) == Cost(money("0.024"))


@given(usages.filter(lambda usage: usage.reported))
def test_no_call_costs_more_than_the_most_or_less_than_the_least(usage: Usage) -> None:
    price = Prices(table=TABLE)("a/b")
    assert price is not None
    prompt = usage.prompt or 0
    assert price.least(prompt) <= price.cost(usage).known <= price.most(prompt, usage.completion or 0)


@pytest.mark.parametrize("provider", LISTS)
def test_each_row_that_ships_says_when_and_where_it_was_read_and_names_one_price(provider: str) -> None:
    names: list[str] = []
    for row in read_list(provider):
        assert date.fromisoformat(row.as_of)
        assert row.source
        assert all(name.startswith(f"{provider}/") for name in (row.model, *row.also))
        names += (row.model, *row.also)
        priced = row.input is not None and row.output is not None
        assert priced + row.free + row.unknown + bool(row.like) == 1
        for tier in (row, *row.above):
            if tier.input is not None and tier.cached_input is not None:
                assert tier.cached_input <= tier.input
        if row.cheaper is not None and row.input is not None and row.output is not None:
            assert row.cheaper.input <= row.input
            assert row.cheaper.output <= row.output
    assert len(names) == len(set(names))


def test_each_price_is_whole_for_a_token() -> None:
    for provider in LISTS:
        for row in read_list(provider):
            for tier in (row, *row.above, *([row.cheaper] if row.cheaper else [])):
                for rate in (tier.input, tier.cached_input, tier.cache_write, tier.output, tier.reasoning):
                    assert rate is None or money(rate) % 1_000_000 == 0
