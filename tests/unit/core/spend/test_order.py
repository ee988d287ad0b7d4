"""Whose turn it is: nobody is forgotten, nobody waits for ever, and within a group the first goes first."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.core.spend.lines import Ask
from leadline.core.spend.order import PATIENCE, Order


@dataclass(eq=False)
class One:
    ask: Ask
    number: int = 0


def _one(group: str = "", priority: int = 0, *, child: bool = False, number: int = 0) -> One:
    return One(Ask("m/m", 0, group, priority, child), number)


def _taken(order: Order[One], count: int) -> list[One]:
    taken: list[One] = []
    for _ in range(count):
        one = order.next()
        assert one is not None
        order.take(one)
        taken.append(one)
    return taken


def test_groups_of_one_priority_are_served_in_turn() -> None:
    order: Order[One] = Order()
    for group, count in (("a", 4), ("b", 2), ("c", 1)):
        for _ in range(count):
            order.add(_one(group))
    assert "".join(one.ask.group for one in _taken(order, 7)) == "abcabaa"
    assert order.next() is None


def test_a_group_that_comes_back_stands_behind_the_others() -> None:
    order: Order[One] = Order()
    for group in "aab":
        order.add(_one(group))
    served = ""
    for _ in range(6):
        (one,) = _taken(order, 1)
        served += one.ask.group
        if one.ask.group == "b":
            order.add(_one("b"))
        else:
            order.add(_one("a"))
    assert served == "ababab"


def test_a_lower_priority_is_passed_over_a_bounded_number_of_times() -> None:
    order: Order[One] = Order()
    order.add(_one(priority=-5))
    order.add(_one(priority=0))
    for _ in range(30):
        order.add(_one(priority=5))
    priorities = [one.ask.priority for one in _taken(order, 12)]
    assert priorities[:PATIENCE] == [5] * PATIENCE
    assert sorted(priorities[PATIENCE : PATIENCE + 2]) == [-5, 0]


def test_children_can_be_passed_over() -> None:
    order: Order[One] = Order()
    child, adult = _one("a", 5, child=True), _one("a")
    order.add(child)
    order.add(adult)
    assert order.next() is child
    assert order.next(children=False) is adult
    assert (len(order), order.children) == (2, 1)
    order.remove(adult)
    order.remove(adult)
    assert order.next(children=False) is None
    assert (len(order), order.children) == (1, 1)


def test_who_waits_can_tell_how_many_go_before() -> None:
    order: Order[One] = Order()
    ones = [_one(group, priority) for group, priority in (("a", 0), ("a", 0), ("b", 0), ("b", 0), ("c", 1))]
    for one in ones:
        order.add(one)
    ahead = [order.ahead(one) for one in ones]
    assert ahead == [1, 3, 2, 4, 0]
    assert [ones.index(one) for one in _taken(order, 5)] == [4, 0, 2, 1, 3]
    assert order.ahead(ones[0]) == 0


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from("abc"), st.integers(0, 2), st.booleans()),
        st.tuples(st.just("take"), st.booleans()),
        st.tuples(st.just("leave"), st.integers(0, 30)),
    ),
    max_size=120,
)


@settings(max_examples=200, deadline=None)
@given(_STEPS)
def test_nobody_is_lost_and_nobody_waits_for_ever(steps: list[tuple[object, ...]]) -> None:
    order: Order[One] = Order()
    waiting: list[One] = []
    for number, step in enumerate(steps):
        if step[0] == "add":
            _, group, priority, child = step
            one = One(Ask("m/m", 0, str(group), int(str(priority)), bool(child)), number)
            order.add(one)
            waiting.append(one)
        elif step[0] == "leave" and waiting:
            one = waiting.pop(int(str(step[1])) % len(waiting))
            order.remove(one)
        elif step[0] == "take":
            children = bool(step[1])
            may = [one for one in waiting if children or not one.ask.child]
            one = order.next(children=children)
            assert (one is None) == (not may)
            if one is not None:
                same = [other for other in may if _place(other) == _place(one)]
                assert one is same[0], "within a group the first goes first"
                order.take(one)
                waiting.remove(one)
        assert len(order) == len(waiting)
        assert order.children == sum(one.ask.child for one in waiting)
        assert set(order) == set(waiting)
    # Whoever still waits is served within a bound: those of its group before it, the groups, and the priorities.
    left = [*waiting]
    for served, one in enumerate(_taken(order, len(left)), start=1):
        before = sum(_place(other) == _place(one) and other.number < one.number for other in left)
        assert served <= (before + 1) * 3 * (PATIENCE + 3)


def _place(one: One) -> tuple[str, int]:
    return one.ask.group, one.ask.priority
