"""What a check is: it looks at one sentence, its quotes and the ledger, and says what it can establish."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from leadline.core.patterns import lazy_pattern
from leadline.research.events import CheckOutcome, CheckRecord, Label, Quote, Source
from leadline.research.ledger.ledger import Ledger
from leadline.research.verify.attribution import Attribution
from leadline.research.verify.blocks import BORDER, unmarked
from leadline.research.verify.csv_records import MARKS, Records, csv_records
from leadline.research.verify.markup import plain

_SENTENCE_END = lazy_pattern(r"(?<=[.!?])[\"')\]]*\s+(?=[^\W_a-z]|[\"'(])|(?<=[。！？])")


@dataclass(frozen=True, kw_only=True)
class Cited:
    """A quote that a sentence cites, with what is known of it."""

    quote: Quote
    source: Source | None
    """None: the ledger does not know the source."""
    text: str | None
    """The snapshot; None when it is not at hand."""


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """One leaf of the report, as the checks see it."""

    text: str
    """Without its leading attribution, if it has one."""
    label: Label = "finding"
    evidence: tuple[str, ...] = ()
    is_cell: bool = False
    """Whether it is a cell of a table rather than a sentence."""
    frame: tuple[str, ...] = ()
    """Of a table cell: its column heading and its row's first cell, without which it says nothing."""
    attribution: Attribution | None = None
    """What it says of where it comes from, in front of what it says."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Its sentences, should it hold more than one."""
        return split_sentences(self.text)


@dataclass(frozen=True)
class CheckResult:
    """What a check says.

    `pass`: what it can establish holds. `fail`: it does not hold. `contradicts`: a quote says the opposite.
    `unsure`: it cannot tell. `not_applicable`: there is nothing for it to look at.
    """

    outcome: CheckOutcome
    reason: str = ""


class Check(Protocol):
    """One deterministic question about a sentence."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int:
        """Goes up with every change that can change an outcome."""
        ...

    @property
    def establishes(self) -> str:
        """What a pass establishes and what it cannot, for readers of a report."""
        ...

    def run(self, sentence: Sentence, cited: Sequence[Cited], ledger: Ledger) -> CheckResult:
        """Look at a sentence. The same arguments always give the same result; nothing is changed."""
        ...


def split_sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, split where a capital or a quotation mark follows a full stop."""
    parts: list[str] = []
    for part in _SENTENCE_END.split(text):
        if parts and _ABBREVIATION.search(parts[-1]):
            parts[-1] = f"{parts[-1]} {part.strip()}"
        elif part.strip():
            parts.append(part.strip())
    return tuple(parts)


_ABBREVIATION = lazy_pattern(
    r"(?:\b(?:mio|mrd|tsd|mn|bn|approx|ca|vs|no|nr|dr|mr|mrs|ms|prof|st|fig|cf|al|etc|inc|ltd|co|corp|gmbh|art|vol|pp|p"
    r"|sec|eq|jan|feb|mar|apr|aug|sept|sep|oct|nov|dec|bzw|evtl|inkl|max|min)|\b[a-z]|\b\w\.\w)\.$",
    re.IGNORECASE,
)


def cited_by(sentence: Sentence, ledger: Ledger, texts: Mapping[str, str]) -> tuple[Cited, ...]:
    """The quotes that a sentence cites; ids that the ledger does not know are left out."""
    found: list[Cited] = []
    for evidence in dict.fromkeys(sentence.evidence):
        quote = ledger.quotes.get(evidence)
        if quote:
            source = ledger.sources.get(quote.source)
            found.append(Cited(quote=quote, source=source, text=texts.get(quote.snapshot)))
    return tuple(found)


def record(check: Check, result: CheckResult) -> CheckRecord:
    """The result as it is logged."""
    return CheckRecord(name=check.name, version=check.version, outcome=result.outcome, reason=result.reason)


def source_words(cited: Sequence[Cited]) -> str:
    """What code knows of the cited sources and a sentence may therefore say: title and date."""
    known = (part for one in cited if one.source for part in (one.source.title, one.source.published))
    return "\n".join(part for part in known if part)


def quote_words(cited: Sequence[Cited]) -> str:
    """The cited quotes as a report would show them (no addresses, no marks of footnotes or Markdown), one a line.

    Lines of CSV are there twice: as they stand, and with their cells apart.
    """
    shown = [bare(one.quote.text) for one in cited]
    return "\n".join((*shown, *(row for one in cited for row in csv_statements(one))))


def records_of(one: Cited) -> Records | None:
    """The records of a document in CSV; None for any other."""
    if one.text is None or one.source is None or one.source.media_type not in MARKS:
        return None
    return csv_records(one.text, one.source.media_type)


def csv_statements(one: Cited) -> tuple[str, ...]:
    """Each whole line of CSV that is quoted, with a border between its cells; none for other quotes."""
    records = records_of(one)
    covered = records.whole(one.quote.start, one.quote.end) if records else None
    if records is None or covered is None:
        return ()
    return tuple(BORDER.join(records.cells(number)) for number in covered)


def bare(text: str) -> str:
    """The words of a text alone: without addresses, footnote marks and marks of Markdown, on one line."""
    return plain(unmarked(text))


def states_nothing(text: str) -> bool:
    """Whether a text is only the dashes or dots that stand for an empty cell."""
    return not text.strip(" \t\n\u00a0-\u2010\u2011\u2012\u2013\u2014\u2015\u2212./\u2026")


def listed(items: Sequence[str]) -> str:
    """Items in quotation marks, the first five."""
    shown = ", ".join(f"“{item}”" for item in items[:5])
    return shown + (f" and {len(items) - 5} more" if len(items) > 5 else "")
