"""Invariants of runs: each is broken here on purpose, and told."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest
from msgspec import structs

from leadline.core.session.events import Event
from leadline.core.session.invariants import LogInvariant
from leadline.core.session.log import BeforeAppend
from leadline.research.engine.invariants import COURSE, EVIDENCE, quoted_text
from leadline.research.events import (
    Drafted,
    Ended,
    Leaf,
    Noted,
    Paragraph,
    Quote,
    QuoteRecorded,
    Report,
    Request,
    Resumed,
    RoleEnded,
    RoleStarted,
    Section,
    Source,
    SourceFound,
    Started,
    Unit,
    UnitEnded,
    UnitStarted,
    VerdictGiven,
    Withdrawn,
)
from leadline.testing.sessions import MemoryBlobs, memory_session

TEXT = "The channel is nine fathoms deep."
SNAPSHOT = hashlib.sha256(TEXT.encode()).hexdigest()
BEGUN = Started(run="s-1", request=Request(question="How deep?"))
UNIT = Unit(id="u1", title="Depth", question="How deep?")
SOURCE = Source(
    id="d-1", key="k", title="Chart", location="chart.md", retrieved_at="", outcome="ok", snapshot=SNAPSHOT
)
QUOTE = Quote(
    id="u1.e1",
    unit="u1",
    source="d-1",
    snapshot=SNAPSHOT,
    start=15,
    end=32,
    text="nine fathoms deep",
    match="exact",
)


def quoted(seq: int = 5, **changes: object) -> QuoteRecorded:
    return QuoteRecorded(quote=structs.replace(QUOTE, **changes), child="s-2", seq=seq)


def drafted(*evidence: str) -> Drafted:
    leaf = Leaf(text="It is deep.", evidence=evidence)
    return Drafted(
        report=Report(title="T", sections=(Section(heading="H", blocks=(Paragraph(sentences=(leaf,)),)),))
    )


def verdict(sentence: int) -> VerdictGiven:
    return VerdictGiven(sentence=sentence, verdict="supported", reason="")


def role(attempt: int = 1, child: str = "s-2") -> RoleStarted:
    return RoleStarted(key="research/unit u1", attempt=attempt, child=child)


def role_ended(child: str = "s-2") -> RoleEnded:
    return RoleEnded(key="research/unit u1", attempt=1, child=child, status="completed")


FOUND = SourceFound(source=SOURCE)
OVER = UnitEnded(unit="u1", status="completed")

BROKEN: list[tuple[LogInvariant[object], Sequence[Event], str]] = [
    (COURSE, [FOUND], "in front of the start"),
    (COURSE, [BEGUN, BEGUN], "a second time"),
    (COURSE, [BEGUN, Ended(status="completed"), FOUND], "behind the end"),
    (COURSE, [BEGUN, OVER], "unit u1 ends completed and was not started"),
    (COURSE, [BEGUN, UnitStarted(unit=UNIT), OVER, OVER], "unit u1 ends a second time"),
    (COURSE, [BEGUN, role(), role(child="s-3")], "starts a second time"),
    (COURSE, [BEGUN, role_ended()], "ends in s-2, it is made in None"),
    (COURSE, [BEGUN, role(), role_ended("s-3")], "ends in s-3, it is made in s-2"),
    (COURSE, [BEGUN, role(), role_ended(), role_ended()], "ends a second time"),
    (EVIDENCE, [quoted()], "is of source d-1, which was not found"),
    (EVIDENCE, [FOUND, quoted(id="u2.e1")], "has no id of unit u1"),
    (EVIDENCE, [FOUND, quoted(), quoted()], "there is a quote u1.e1 already"),
    (EVIDENCE, [FOUND, quoted(snapshot="0" * 64)], "of another text"),
    (EVIDENCE, [SourceFound(source=structs.replace(SOURCE, outcome="thin")), quoted()], "(thin)"),
    (EVIDENCE, [FOUND, quoted(end=40)], "has 17 code points, its span 25"),
    (EVIDENCE, [FOUND, quoted(), drafted("u1.e2")], "the draft names u1.e2"),
    (EVIDENCE, [verdict(0)], "there is no draft"),
    (EVIDENCE, [drafted(), verdict(1)], "on sentence 1, the draft has 1"),
    (EVIDENCE, [FOUND, quoted(), Withdrawn(child="s-2", since=5), drafted("u1.e1")], "names u1.e1"),
]  # pyright: ignore[reportAssignmentType]


def failing(rule: LogInvariant[object], events: Sequence[Event]) -> str | None:
    """What the rule says of the last event; the others must hold."""
    session = memory_session()
    known = rule.init(session.header)
    for seq, event in enumerate(events):
        reason = rule.check(known, BeforeAppend(session, event, seq))
        if reason is not None:
            assert seq == len(events) - 1, f"event {seq}: {reason}"
            return reason
        known = rule.apply(known, event)
    return None


@pytest.mark.parametrize(("rule", "events", "told"), BROKEN, ids=lambda it: getattr(it, "name", None))
def test_a_rule_tells_what_breaks_it(rule: LogInvariant[object], events: Sequence[Event], told: str) -> None:
    assert told in str(failing(rule, events))


@pytest.mark.parametrize("rule", [COURSE, EVIDENCE], ids=lambda rule: rule.name)
def test_a_run_that_ended_and_goes_on_breaks_no_rule(rule: LogInvariant[object]) -> None:
    events: list[Event] = [
        BEGUN,
        FOUND,
        role(),
        UnitStarted(unit=UNIT, child="s-2"),
        quoted(),
        role_ended(),
        UnitEnded(unit="u1", status="cancelled"),
        drafted("u1.e1"),
        verdict(0),
        Ended(status="cancelled"),
        Resumed(),
        Withdrawn(child="s-2", since=4),
        quoted(),
        role_ended(),
        OVER,
        UnitEnded(unit="u2", status="failed"),
        Noted(text="u2 could not be started."),
        drafted("u1.e1"),
        Ended(status="partial"),
    ]
    assert failing(rule, events) is None


def test_a_quote_stands_in_its_snapshot_letter_by_letter() -> None:
    blobs = MemoryBlobs()
    rule = quoted_text(blobs)

    def check(text: str = QUOTE.text) -> str | None:
        return rule.check(None, BeforeAppend(memory_session(), quoted(text=text), 0))

    assert "cannot be read" in str(check())
    blobs.put(TEXT.encode())
    assert check() is None
    assert "is not what its snapshot has from 15 to 32" in str(check(text="five fathoms deep"))
