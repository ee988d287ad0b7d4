"""A small world for tests of the ledger and what follows from it: documents, quotes, a draft, a finished run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from leadline.core.llm.usage import Usage
from leadline.core.session.events import Event
from leadline.research.bundle.ledger_lines import encode_lines
from leadline.research.events import (
    Drafted,
    Ended,
    FoundBy,
    Leaf,
    Noted,
    PageSpan,
    Paragraph,
    Planned,
    Quote,
    QuoteRecorded,
    Report,
    Request,
    RunStatus,
    RunUsage,
    Searched,
    Section,
    Source,
    SourceFound,
    SourceRead,
    Started,
    Unit,
    UnitEnded,
    UnitStarted,
    VersionFound,
)
from leadline.research.ledger.ledger import Ledger, page_at
from leadline.research.report.build import build_result
from leadline.research.report.result import ResearchResult
from leadline.research.verify.judge import CHECKS_VERSION, judge
from leadline.research.verify.quote_match import Match, QuotedText


@dataclass
class World:
    """Builds the events of a run step by step. Everything about it is fixed, so that bytes can be compared."""

    question: str = "How far does the pump reach, and what does it cost?"
    events: list[Event] = field(default_factory=list[Event])
    texts: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        request = Request(question=self.question)
        self.events.append(
            Started(
                run="r-1",
                request=request,
                roots=("corpus",),
                model="test/scripted",
                checks_version=CHECKS_VERSION,
                started_at="2026-01-02T03:04:05Z",
            )
        )
        unit = Unit(id="u1", title="Reach", question="How far does it reach?", objective="A number")
        self.events.append(Planned(brief="Find the reach.", units=(unit,)))
        self.events.append(UnitStarted(unit=unit, child="s-child"))

    def source(
        self,
        text: str,
        *,
        name: str = "",
        outcome: str = "ok",
        reason: str = "",
        pages: Sequence[tuple[int, int, int]] = (),
        read: bool = True,
        **more: object,
    ) -> str:
        """Add a document; returns its id."""
        sha = hashlib.sha256(text.encode()).hexdigest()
        number = sum(isinstance(event, SourceFound) for event in self.events) + 1
        name = name or f"d-{number}"
        if outcome in ("ok", "partial", "thin"):
            self.texts[sha] = text
        fields: dict[str, object] = {
            "id": name,
            "key": f"{name}.md",
            "title": f"Document {number}",
            "location": f"folder/{name}.md",
            "retrieved_at": "2026-01-02T03:04:06Z",
            "outcome": outcome,
            "reason": reason,
            "snapshot": sha if outcome in ("ok", "partial", "thin") else "",
            "media_type": "text/markdown",
            "method": "markdown",
            "method_version": "1",
            "pages": tuple(PageSpan(number=n, start=a, end=b) for n, a, b in pages),
            "found_by": FoundBy(call="c-1", query="reach", rank=number),
            **more,
        }
        self.events.append(Searched(unit="u1", query="reach", sources=(name,), child="s-child", seq=number))
        self.events.append(SourceFound(source=Source(**fields)))  # type: ignore[arg-type]
        if read and outcome in ("ok", "partial"):
            self.events.append(SourceRead(source=name, start=0, end=len(text), unit="u1", child="s-child"))
        return name

    def quote(self, source: str, words: str, **more: object) -> str:
        """Record a quote by its words; returns its evidence id."""
        ledger = self.ledger
        found = ledger.sources[source]
        match = QuotedText(self.texts[found.snapshot]).find(words, min_word_characters=1)
        assert isinstance(match, Match), match
        evidence = ledger.next_evidence_id("u1")
        fields: dict[str, object] = {
            "id": evidence,
            "unit": "u1",
            "source": source,
            "snapshot": found.snapshot,
            "start": match.start,
            "end": match.end,
            "text": match.text,
            "match": match.kind,
            "page": page_at(found, match.start),
            **more,
        }
        self.events.append(QuoteRecorded(quote=Quote(**fields), child="s-child"))  # type: ignore[arg-type]
        return evidence

    def version(self, newer: str, older: str) -> None:
        self.events.append(VersionFound(newer=newer, older=older, reason="same title, later date"))

    def note(self, text: str) -> None:
        self.events.append(Noted(text=text))

    def end_unit(self, **fields: object) -> None:
        self.events.append(UnitEnded(unit="u1", **{"status": "completed", **fields}))  # type: ignore[arg-type]

    def draft(self, report: Report | Sequence[Leaf]) -> Report:
        """Draft a report, or one of a single paragraph; the checks give their verdicts."""
        if not isinstance(report, Report):
            paragraph = Paragraph(sentences=tuple(report))
            report = Report(title="The pump", sections=(Section(heading="Answer", blocks=(paragraph,)),))
        self.events.append(Drafted(report=report))
        self.events.extend(judge(report, self.ledger, self.texts))
        return report

    def result(self, status: RunStatus = "completed", error: str | None = None) -> ResearchResult:
        return build_result(
            self.ledger,
            self.texts,
            status=status,
            usage=self.usage,
            metadata={},
            error=error,
            ended_at="2026-01-02T03:05:00Z",
        )

    def end(self, status: RunStatus = "completed", error: str | None = None) -> None:
        digest = self.result(status, error).digest
        self.events.append(
            Ended(
                status=status,
                error=error,
                result_digest=digest,
                usage=self.usage,
                ended_at="2026-01-02T03:05:00Z",
            )
        )

    @property
    def usage(self) -> RunUsage:
        return RunUsage(calls=3, tokens=Usage(input=100, output=20), wall_s=1.5)

    @property
    def ledger(self) -> Ledger:
        return Ledger.of(self.events)

    @property
    def lines(self) -> list[bytes]:
        """The events as log lines, chained as the session log chains them."""
        lines: list[bytes] = []
        before = b"{}"
        for line in encode_lines(self.events):
            chained = line[:-1] + b',"prev":"' + hashlib.sha256(before).hexdigest()[:32].encode() + b'"}'
            lines.append(chained)
            before = chained
        return lines


REACH = "The VLX-500 reaches 420 km on one charge. It costs EUR 1,200 in 2024.\n\nSales rose 12 % in Asia."
PRICES = "Price list of 12 March 2025. The VLX-500 costs EUR 1,350. Delivery takes two weeks."


@pytest.fixture
def make_world() -> Callable[..., World]:
    """Makes an empty world for a question."""
    return World


@pytest.fixture
def pump() -> World:
    """A finished run with two documents, one blocked, three quotes and four sentences."""
    world = World()
    reach = world.source(REACH, published="2024-05-01", pages=[(1, 0, 41), (2, 41, len(REACH))])
    prices = world.source(PRICES, published="2025-03-12")
    world.source("", outcome="blocked", reason="a challenge page", title="Blocked page")
    world.quote(reach, "The VLX-500 reaches 420 km on one charge.")
    world.quote(reach, "It costs EUR 1,200 in 2024.")
    world.quote(prices, "The VLX-500 costs EUR 1,350.")
    world.version(prices, reach)
    world.end_unit(unresolved=("What does servicing cost?",))
    world.note("One document could not be read.")
    world.draft(
        [
            Leaf(text="The VLX-500 reaches 420 km on one charge.", evidence=("u1.e1",)),
            Leaf(text="The VLX-500 costs EUR 1,350.", evidence=("u1.e3", "u1.e1")),
            Leaf(text="It costs EUR 1,250 in 2024.", evidence=("u1.e2",)),
            Leaf(text="Together these make the pump fit for the task.", label="analysis"),
        ]
    )
    world.end()
    return world
