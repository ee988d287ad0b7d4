"""The ledger is a fold: any order, any repetition, the same state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from leadline.core.session.events import Event
from leadline.research.events import (
    RESEARCH_EVENTS,
    Drafted,
    Ended,
    Leaf,
    Noted,
    PageSpan,
    Paragraph,
    Planned,
    Quote,
    QuoteRecorded,
    Report,
    Searched,
    Section,
    Source,
    SourceFound,
    SourceRead,
    Unit,
    UnitEnded,
    UnitStarted,
    VerdictGiven,
    Withdrawn,
)
from leadline.research.ledger.coverage import coverage
from leadline.research.ledger.ledger import Ledger, page_at

_UNIT = Unit(id="u1", title="t", question="What is it?")
_REPORT = Report(
    title="t",
    sections=(Section(heading="h", blocks=(Paragraph(sentences=(Leaf(text="one"), Leaf(text="two"))),)),),
)
_SOME: list[Event] = [
    Planned(brief="b", units=(_UNIT,), notes=("planned",)),
    UnitStarted(unit=_UNIT),
    UnitEnded(unit="u1", status="completed", findings="f", unresolved=("left",)),
    UnitEnded(unit="u9", status="failed", error="the model refused"),
    Drafted(report=_REPORT),
    VerdictGiven(sentence=0, verdict="supported", reason="r"),
    VerdictGiven(sentence=0, verdict="contradicted", reason="a person says so", by="person:ann"),
    Noted(text="n"),
    Noted(text="n"),
    SourceFound(source=Source(id="d", key="k", title="t", location="l", retrieved_at="", outcome="blocked")),
    Ended(status="partial"),
]


@given(st.lists(st.sampled_from(_SOME), max_size=30), st.integers(0, 30))
def test_adding_one_by_one_equals_folding_again(events: list[Event], cut: int) -> None:
    grown = Ledger.of(events[:cut])
    for event in events[cut:]:
        grown.add(event)
    assert grown == Ledger.of(events)


@given(st.lists(st.sampled_from(_SOME), max_size=30))
def test_coverage_of_any_ledger_can_be_told(events: list[Event]) -> None:
    found = coverage(Ledger.of(events))
    assert found.read <= found.found and found.cited <= found.found


def test_every_event_type_has_its_own_name() -> None:
    names = [event.TYPE for event in RESEARCH_EVENTS]
    assert len(set(names)) == len(names)
    assert all(name.startswith("research/") for name in names)


def test_the_last_verdict_on_a_sentence_holds_and_a_new_draft_clears_all() -> None:
    ledger = Ledger.of(_SOME)
    given_ = ledger.verdict(0)
    assert given_ is not None and given_.by == "person:ann"
    ledger.add(Drafted(report=_REPORT))
    assert ledger.verdict(0) is None


def test_a_unit_that_never_ended_is_unresolved_by_name() -> None:
    ledger = Ledger.of([UnitStarted(unit=_UNIT)])
    assert coverage(ledger).unresolved == ("What is it? (it was not finished)",)


def test_a_failed_unit_is_unresolved_with_its_cause() -> None:
    ledger = Ledger.of(
        [UnitStarted(unit=_UNIT), UnitEnded(unit="u1", status="failed", error="no tokens left")]
    )
    assert coverage(ledger).unresolved == ("What is it? (no tokens left)",)


def test_coverage_is_counted_from_events_and_prose_not_from_the_plan(pump: Any) -> None:
    found = coverage(pump.ledger)
    assert (found.asked, found.searched, found.found, found.read, found.blocked) == (1, 3, 3, 2, 1)
    assert (found.cited, found.quotes) == (2, 3)
    assert found.unresolved == ("What does servicing cost?",)
    assert found.blocked_sources[0].outcome == "blocked"


def test_evidence_ids_of_a_unit_do_not_depend_on_other_units(make_world: Callable[..., Any]) -> None:
    world = make_world()
    source = world.source("Alpha beta gamma delta.")
    assert world.quote(source, "Alpha beta") == "u1.e1"
    assert world.ledger.next_evidence_id("u1") == "u1.e2"
    assert world.ledger.next_evidence_id("u2") == "u2.e1"


def test_a_page_follows_from_the_offset_or_is_not_known() -> None:
    source = Source(
        id="d",
        key="k",
        title="t",
        location="l",
        retrieved_at="",
        outcome="ok",
        pages=(PageSpan(number=7, start=10, end=20),),
    )
    assert [page_at(source, start) for start in (9, 10, 19, 20)] == [None, 7, 7, None]


def test_a_source_that_was_blocked_or_is_unknown_is_not_usable(pump: Any) -> None:
    assert pump.ledger.usable("d-1")
    assert not pump.ledger.usable("d-3")
    assert not pump.ledger.usable("d-99")


@given(st.permutations(["u1", "u2", "u3"]), st.permutations(["u1", "u2", "u3"]))
def test_units_stand_in_the_order_of_the_plan_in_whatever_order_they_begin_and_end(
    begin: list[str], end: list[str]
) -> None:
    units = {one: Unit(id=one, title=one, question=f"{one}?") for one in ("u1", "u2", "u3")}
    ledger = Ledger.of(
        [
            Planned(brief="b", units=tuple(units.values())),
            *(UnitStarted(unit=units[one]) for one in begin),
            *(UnitEnded(unit=one, status="failed", error="no") for one in end),
            UnitEnded(unit="u9", status="failed", error="no plan"),
        ]
    )
    assert list(ledger.units) == ["u1", "u2", "u3", "u9"]
    begun = Ledger.of([Planned(brief="b", units=tuple(units.values()))])
    for one in begin:
        begun.add(UnitStarted(unit=units[one]))
    assert list(begun.units) == ["u1", "u2", "u3"]
    assert coverage(ledger).unresolved == ("u1? (no)", "u2? (no)", "u3? (no)", "u9 (no plan)")


def test_what_came_up_in_a_unit_is_what_it_searched_and_read_itself() -> None:
    ledger = Ledger.of(
        [
            Searched(unit="u1", query="q", sources=("d-2", "d-1")),
            Searched(unit="u2", query="q", sources=("d-3",)),
            SourceRead(source="d-4", start=0, end=1, unit="u1"),
        ]
    )
    assert ledger.came_up_in("u1") == ("d-1", "d-2", "d-4")
    assert ledger.came_up_in("u3") == ()


def test_what_a_child_no_longer_knows_counts_no_more() -> None:
    def quote(number: int, child: str, seq: int) -> QuoteRecorded:
        recorded = Quote(
            id=f"u1.e{number}",
            unit="u1",
            source="d",
            snapshot="s",
            start=0,
            end=1,
            text="x",
            match="exact",
        )
        return QuoteRecorded(quote=recorded, child=child, seq=seq)

    before: list[Event] = [
        Searched(unit="u1", query="kept", child="s-1", seq=5),
        quote(1, "s-1", 9),
        Searched(unit="u2", query="other", child="s-2", seq=12),
    ]
    lost: list[Event] = [
        Searched(unit="u1", query="lost", child="s-1", seq=10),
        SourceRead(source="d", start=0, end=5, unit="u1", child="s-1", seq=11),
        quote(2, "s-1", 12),
    ]
    ledger = Ledger.of([*before, *lost, Withdrawn(child="s-1", since=10)])
    assert [one.query for one in ledger.searches] == ["kept", "other"]
    assert ledger.reads == []
    assert list(ledger.quotes) == ["u1.e1"]
    assert ledger.next_evidence_id("u1") == "u1.e2"
