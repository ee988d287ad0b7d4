"""What a session paid for, from its log alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.llm.messages import AssistantMessage, Text
from leadline.core.llm.usage import Usage
from leadline.core.session.events import AssistantSaid, Charged, Event, RequestEnded, RequestSent, SeedEnded
from leadline.core.session.projection import checkpoint, fold, project
from leadline.core.session.spending import SPENDING, Spending, merged, session_spending, total
from leadline.core.spend.account import Spent
from leadline.core.spend.money import Cost, Money
from leadline.testing.sessions import memory_session


def sent(purpose: str = "agent/turn", model: str = "a/b", tokens: int | None = 100) -> RequestSent:
    return RequestSent(purpose=purpose, model=model, digest="d", messages=1, tokens=tokens)


def said(
    usage: Usage | None = None, cost: int | None = None, text: str = "Four words of text."
) -> AssistantSaid:
    return AssistantSaid(message=AssistantMessage("m", (Text(text),), "a/b"), usage=usage, cost=cost)


def ended(usage: Usage | None = None, cost: int | None = None) -> RequestEnded:
    return RequestEnded(digest="d", state="error", usage=usage, cost=cost)


def rows(*events: Event) -> tuple[Spending, ...]:
    return session_spending(memory_session(events=events))


@pytest.mark.case("K12")
def test_an_attempt_that_failed_counts_with_what_it_used() -> None:
    [row] = rows(
        sent(), ended(Usage(input=1000, output=500), 5), sent(), said(Usage(input=1000, output=600), 7)
    )
    assert (row.calls, row.tokens, row.paid) == (2, Usage(input=2000, output=1100), Cost(Money(12)))


@pytest.mark.case("K13")
@pytest.mark.case("K17")
def test_an_estimate_is_kept_apart_from_what_was_reported() -> None:
    [row] = rows(sent(tokens=900), said(Usage(input=1200, output=1), 1), sent(tokens=900), said())
    assert row.tokens == Usage(input=1200, output=1)
    assert row.estimated > 900
    assert row.paid == Cost(Money(1), complete=False)
    [silent] = rows(sent(), said())
    assert not silent.tokens.reported
    assert silent.spent.tokens == silent.estimated > 100
    assert str(silent.paid) == "not known"


@pytest.mark.case("K08")
def test_what_a_fork_took_over_is_billed_where_it_was_paid() -> None:
    turn = (sent(), said(Usage(input=10, output=1), 3))
    [row] = rows(*turn * 10, SeedEnded(), *turn)
    assert (row.calls, row.cost) == (1, 3)


@pytest.mark.case("K15")
def test_what_tools_paid_for_stands_beside_what_the_session_asked() -> None:
    search = Charged(what="finder/model", purpose="search", usage=Usage(input=5000, output=0), cost=50)
    found = rows(sent(), search, search, search, said(Usage(input=10, output=1), 3))
    assert [(row.purpose, row.what, row.calls, row.cost) for row in found] == [
        ("agent/turn", "a/b", 1, 3),
        ("search", "finder/model", 3, 150),
    ]
    assert total(found).spent == Spent(15_011, Money(153), 4)


def test_a_request_that_was_cut_off_may_have_been_billed() -> None:
    [row] = rows(sent(), sent(), said(Usage(input=10, output=1), 3))
    assert (row.calls, row.unanswered, row.unpriced, row.estimated) == (2, 1, 1, 100)
    [row] = rows(sent())
    assert (row.calls, row.unanswered) == (1, 1)


def test_what_failed_for_nothing_costs_nothing_and_that_is_known() -> None:
    [row] = rows(sent(), ended(cost=0))
    assert row.paid == Cost()
    assert row.calls == 1


usages = st.none() | st.builds(Usage, *[st.none() | st.integers(0, 9)] * 5)
costs = st.none() | st.integers(0, 99)
events = st.one_of(
    st.builds(sent, st.sampled_from(["p", "q"]), st.sampled_from(["a/b", "c/d"])),
    st.builds(said, usages, costs),
    st.builds(ended, usages, costs),
    st.builds(
        Charged,
        what=st.just("finder"),
        purpose=st.just("search"),
        calls=st.integers(1, 3),
        usage=usages,
        cost=costs,
    ),
)


@pytest.mark.case("K04")
@given(st.lists(events), st.integers(0, 30))
def test_the_rows_add_up_to_the_total_however_they_are_split_and_folded(log: list[Event], at: int) -> None:
    session, part = memory_session(events=log), memory_session(events=log[:at])
    found = project(SPENDING, session)
    kept = checkpoint(SPENDING, session.id, fold(SPENDING, part))
    assert SPENDING.view(fold(SPENDING, session, kept).state) == found
    assert total(found).calls == sum(row.calls for row in found)
    assert total(found).cost == sum(row.cost for row in found)
    assert total(found).tokens == sum((row.tokens for row in found), Usage())
    assert merged(found) == found
    assert merged([*found, *found]) == tuple(row + row for row in found)
    assert total(session_spending(session, session)) == total([*found, *found])
    assert sum(row.calls for row in found if row.purpose != "search") == sum(
        isinstance(event, RequestSent) for event in log
    )
