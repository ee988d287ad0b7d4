"""What a list tells of the cost of any session."""

from __future__ import annotations

import pytest

from leadline.capabilities.session_index.providers.transcripts import TRANSCRIPTS
from leadline.capabilities.session_index.seam import Facts
from leadline.core.llm.messages import AssistantMessage
from leadline.core.llm.usage import Usage
from leadline.core.session.events import AssistantSaid, Charged, Event, RequestEnded, RequestSent, SeedEnded
from leadline.core.session.projection import project
from leadline.testing.sessions import memory_session

SENT = RequestSent(purpose="agent/turn", model="a/b", digest="d", messages=1)


def said(cost: int | None) -> AssistantSaid:
    return AssistantSaid(message=AssistantMessage("m", (), "a/b"), usage=Usage(input=9, output=1), cost=cost)


def facts(*events: Event) -> Facts:
    return project(TRANSCRIPTS.facts, memory_session(events=events))


def test_what_tools_paid_for_and_what_failed_is_in_the_cost() -> None:
    failed = RequestEnded(digest="d", state="error", usage=Usage(input=9, output=0), cost=10**12)
    search = Charged(what="finder", purpose="search", cost=10**12)
    told = facts(SENT, failed, SENT, search, said(2 * 10**12))
    assert (told.calls, told.tokens, told.cost, told.currency) == (3, 19, 4.0, "USD")


@pytest.mark.case("K08")
def test_a_fork_costs_what_it_did_by_itself() -> None:
    told = facts(*(SENT, said(10**12)) * 10, SeedEnded(), SENT, said(10**12))
    assert (told.calls, told.tokens, told.cost) == (1, 10, 1.0)


def test_a_cost_of_which_a_part_is_not_known_is_none() -> None:
    told = facts(SENT, said(10**12), SENT, said(None))
    assert (told.calls, told.cost, told.currency) == (2, None, None)
    assert facts().cost is None
