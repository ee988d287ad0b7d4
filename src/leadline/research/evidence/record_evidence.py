"""The tool with which a researcher makes a passage evidence: found in the stored text, or refused at once."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from leadline.core.session.log import Session
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import Tool, ToolOutput, description_from
from leadline.research.events import Quote, QuoteRecorded
from leadline.research.evidence.citing import Cited, calls_of
from leadline.research.evidence.shelf import SourceShelf
from leadline.research.ledger.ledger import page_at
from leadline.research.verify.quote_match import QuotedText, QuoteMiss


class RecordEvidence(BaseModel):
    """Arguments of `record_evidence`."""

    model_config = ConfigDict(extra="forbid")

    source: str = Field(description="Id of the source, as the search and read tools give it.")
    quote: str = Field(min_length=1, max_length=4000, description="The exact words of the source.")
    claim: str = Field(min_length=1, max_length=1000, description="One sentence: what the quote establishes.")
    polarity: Literal["supporting", "opposing", "context"] = Field(
        default="supporting",
        description="Whether the quote supports the claim, opposes it, or gives context.",
    )


NAME = "record_evidence"


def record_evidence_tool(unit: str, shelf: SourceShelf) -> Tool:
    """The tool for one unit; what it accepts is in the run's log when the model is told the id."""

    async def execute(arguments: RecordEvidence, call: ToolInvocation) -> ToolOutput:
        await shelf.keep(arguments.source)
        return _record(unit, shelf, arguments, Cited.of(call))

    return Tool(
        name=NAME,
        description=description_from(__package__ or "", "record_evidence.md"),
        parameters=RecordEvidence,
        execute=execute,
    )


def restore_evidence(unit: str, shelf: SourceShelf, child: Session) -> None:
    """Record again what `child` was told is evidence and the run's log does not have, as after a power cut."""
    for made in calls_of(child):
        if made.name == NAME and not made.is_error:
            asked = RecordEvidence.model_validate(dict(made.arguments))
            _record(unit, shelf, asked, Cited(child.id, made.seq, made.call_id))


def _record(unit: str, shelf: SourceShelf, asked: RecordEvidence, cited: Cited) -> ToolOutput:
    recorded = shelf.record.of_call(cited.child, cited.seq)
    if isinstance(recorded, QuoteRecorded):
        return _recorded(recorded.quote)
    ledger = shelf.record.ledger
    source = ledger.sources.get(asked.source)
    if source is None:
        known = ", ".join(ledger.came_up_in(unit)) or "none yet"
        return _refused("UNKNOWN_SOURCE", f"No source {asked.source!r} came up in this unit. Known: {known}.")
    if not ledger.usable(asked.source):
        return _refused(
            "NOT_EVIDENCE",
            f"{source.location} cannot be evidence: {source.outcome}, {source.reason or 'no text'}.",
        )
    match = QuotedText(shelf.corpus.text(asked.source)).find(asked.quote)
    if isinstance(match, QuoteMiss):
        return _refused(match.code.upper().replace("-", "_"), f"{source.location}: {match.message}")
    quote = Quote(
        id=ledger.next_evidence_id(unit),
        unit=unit,
        source=source.id,
        snapshot=source.snapshot,
        start=match.start,
        end=match.end,
        text=match.text,
        match=match.kind,
        page=page_at(source, match.start),
        claim=asked.claim.strip(),
        polarity=asked.polarity,
    )
    shelf.record.append(QuoteRecorded(quote=quote, child=cited.child, seq=cited.seq))
    return _recorded(quote)


def _recorded(quote: Quote) -> ToolOutput:
    return ToolOutput(
        {
            "evidence": quote.id,
            "source": quote.source,
            "start": quote.start,
            "end": quote.end,
            "match": quote.match,
            "page": quote.page,
        },
        f"Recorded as {quote.id}.",
    )


def _refused(code: str, message: str) -> ToolOutput:
    return ToolOutput({"refused": message}, message, is_error=True, error_code=code)
