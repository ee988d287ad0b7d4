"""What a role is told of its run when the older part of its conversation is replaced."""

from __future__ import annotations

from leadline.research.events import Planned, Quote, QuoteRecorded, Unit, UnitStarted
from leadline.research.evidence.carried import carried
from leadline.research.ledger.ledger import Ledger

UNITS = (
    Unit(id="u1", title="Tides", question="How high are the tides?"),
    Unit(id="u2", title="Breakwater", question="When was the breakwater built?"),
)


def quote(name: str, text: str = "It was finished in 1904.") -> QuoteRecorded:
    return QuoteRecorded(
        quote=Quote(
            id=name,
            unit=name.split(".")[0],
            source="d-1",
            snapshot="0" * 64,
            start=0,
            end=len(text),
            text=text,
            match="exact",
            claim="The breakwater is of 1904.",
        )
    )


def ledger(*events: object) -> Ledger:
    started = [UnitStarted(unit=unit, attempt=1, child=f"s-{unit.id}") for unit in UNITS]
    return Ledger.of([Planned(brief="The harbour.", units=UNITS), *started, *events])  # pyright: ignore[reportArgumentType]


def test_a_unit_is_told_its_question_and_its_own_evidence() -> None:
    told = carried(ledger(quote("u1.e1"), quote("u2.e1"), quote("u2.e2", "long " * 100)), "s-u2")
    assert told is not None
    assert "- u2 (running, this one is yours): When was the breakwater built?" in told
    assert "- u1 (running): Tides\n" in told
    assert "- u2.e1 (supporting, d-1): The breakwater is of 1904. “It was finished in 1904.”" in told
    assert "u2.e2" in told and "u1.e1" not in told
    assert len(told) < 1000


def test_another_role_is_told_of_all_evidence() -> None:
    told = carried(ledger(quote("u1.e1"), quote("u2.e1")), "s-writer")
    assert told is not None and "u1.e1" in told and "u2.e1" in told and "yours" not in told


def test_there_may_be_nothing_yet() -> None:
    assert carried(Ledger(), "s-u1") is None
    told = carried(ledger(), "s-u1")
    assert told is not None and "No evidence is recorded yet." in told
