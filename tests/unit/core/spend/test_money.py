from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leadline.core.spend.money import Cost, Money, dollars, money, shown

amounts = st.integers(0, 10**18).map(Money)


def test_a_decimal_amount_is_exact_however_it_is_written() -> None:
    assert money(0.1) == money("0.1") == 100_000_000_000
    assert money(0.000_028) == 28_000_000
    assert dollars(money(1.25)) == 1.25


def test_what_is_shown_is_never_nothing_for_something() -> None:
    assert shown(0) == "$0.00"
    assert shown(1) == "< $0.0001"
    assert shown(money("0.00004999")) == "< $0.0001"
    assert shown(money("0.00005")) == "$0.0001"
    assert shown(money("0.0123")) == "$0.0123"
    assert shown(money("0.99996")) == "$1.0000"
    assert shown(money("1234.567")) == "$1,234.57"
    assert shown(-money("0.5")) == "-$0.5000"


@given(st.lists(st.builds(Cost, amounts, st.booleans())))
def test_a_sum_of_costs_is_the_same_in_any_order_and_complete_only_where_all_are(costs: list[Cost]) -> None:
    forwards, backwards = sum(costs, Cost()), sum(reversed(costs), Cost())
    assert forwards == backwards
    assert forwards.complete is all(cost.complete for cost in costs)
    assert forwards.known == sum(cost.known for cost in costs)


def test_a_cost_says_in_words_how_much_of_it_is_known() -> None:
    assert str(Cost(money(2))) == "$2.00"
    assert str(Cost(money(2), complete=False)) == "at least $2.00"
    assert str(Cost(complete=False)) == "not known"
    assert Cost(money(2), complete=False).exact is None
    assert Cost().exact == 0
