"""From the ledger to the result: numbers, source list, sentences, coverage, rendered prose."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from leadline.core.session.spending import Spending
from leadline.core.spend.money import dollars
from leadline.kernel.errors import LeadlineError
from leadline.research.events import (
    Quote,
    Report,
    RunStatus,
    RunUsage,
    Source,
    VerdictGiven,
)
from leadline.research.ledger.coverage import Coverage, coverage
from leadline.research.ledger.leaves import leaves
from leadline.research.ledger.ledger import Ledger
from leadline.research.report.evidence_list import evidence_list
from leadline.research.report.markdown import render_markdown
from leadline.research.report.numbering import Numbering, number
from leadline.research.report.result import (
    CITED_CONTEXT,
    Citation,
    ResearchResult,
    ResultSentence,
    ResultSource,
    ResultSpending,
    ResultUsage,
)
from leadline.research.sources.language import report_language
from leadline.research.verify.markup import plain

EXTRACTIVE = "extractive/"
"""Provider of the models that repeat passages and write nothing themselves."""

Metadata = Mapping[str, str | int | bool | None]


class ResultNotEnded(LeadlineError):
    """A result was asked of a ledger whose run has not ended."""

    def __init__(self) -> None:
        super().__init__("the run has not ended, so it has no result; wait for it, or resume it")


def build_result(
    ledger: Ledger,
    texts: Mapping[str, str],
    *,
    status: RunStatus,
    usage: RunUsage,
    metadata: Metadata,
    error: str | None = None,
    ended_at: str = "",
) -> ResearchResult:
    """The result of a run.

    Args:
        ledger: what the run knows; its draft is the report.
        texts: snapshot texts by sha256, for the words around each quote; one that is missing shows none.
        status: how the run ended.
        usage: what it used.
        metadata: facts beside those that the ledger has (they may not replace those).
        error: why it failed or is partial.
        ended_at: ISO time in UTC.

    The same arguments give the same bytes.

    Raises:
        CitationsDoNotMatch: a mark without an entry or an entry without a mark; a defect of the renderer.
    """
    draft = ledger.draft
    numbering = number(ledger, draft)
    result = ResearchResult(
        id=ledger.started.run if ledger.started else "",
        status=status,
        title=draft.title if draft else ledger.request.question,
        report="",
        sources=tuple(_source(source, numbering, ledger) for source in numbering.sources),
        citations=tuple(_citation(quote, numbering, texts) for quote in numbering.quotes),
        sentences=_sentences(ledger, draft, numbering) if draft else (),
        coverage=_without_addresses(coverage(ledger)),
        usage=ResultUsage(
            calls=usage.calls,
            tokens=usage.tokens,
            wall_s=usage.wall_s,
            cost=usage.cost,
            currency=usage.currency,
            cost_at_least=usage.cost_at_least,
            by=tuple(_spending(one) for one in usage.by),
        ),
        notes=ledger.notes,
        metadata=_metadata(ledger, metadata, ended_at),
        error=error,
    )
    return msgspec.structs.replace(result, report=render_markdown(result, draft)) if draft else result


def result_of(ledger: Ledger, texts: Mapping[str, str]) -> ResearchResult:
    """The result of a run that has ended, from its ledger alone.

    Raises:
        ResultNotEnded: the ledger has no Ended event.
    """
    ended = ledger.ended
    if ended is None:
        raise ResultNotEnded
    return build_result(
        ledger,
        texts,
        status=ended.status,
        usage=ended.usage,
        metadata=ended.metadata,
        error=ended.error,
        ended_at=ended.ended_at,
    )


def _spending(part: Spending) -> ResultSpending:
    return ResultSpending(
        purpose=part.purpose,
        model=part.what,
        calls=part.calls,
        tokens=part.tokens,
        cost=dollars(part.cost) if part.paid.complete else None,
    )


def _source(source: Source, numbering: Numbering, ledger: Ledger) -> ResultSource:
    older = {pair.older for pair in ledger.versions if pair.newer == source.id}
    return ResultSource(
        n=numbering.source_number(source.id),
        key=source.key,
        title=source.title,
        location=source.location,
        kind=source.kind,
        retrieved_at=source.retrieved_at,
        snapshot=source.snapshot,
        outcome=source.outcome,
        published=source.published,
        supersedes=tuple(sorted(numbering.source_number(one) for one in older if numbering.lists(one))),
        part=source.part,
        cited=source.id in numbering.cited,
        media_type=source.media_type,
    )


def _without_addresses(found: Coverage) -> Coverage:
    """What is unresolved is told in a model's words, which may hold no address or mark of its own either."""
    unresolved = tuple(text for one in found.unresolved if (text := plain(one)))
    return msgspec.structs.replace(found, unresolved=unresolved)


def _citation(quote: Quote, numbering: Numbering, texts: Mapping[str, str]) -> Citation:
    text = texts.get(quote.snapshot, "")
    anchored = text[quote.start : quote.end] == quote.text
    return Citation(
        n=numbering.quote_number(quote.id),
        source=numbering.source_number(quote.source),
        quote=quote.text,
        start=quote.start,
        end=quote.end,
        match=quote.match,
        page=quote.page,
        evidence=quote.id,
        before=_flat(text[max(0, quote.start - CITED_CONTEXT) : quote.start]) if anchored else "",
        after=_flat(text[quote.end : quote.end + CITED_CONTEXT]) if anchored else "",
    )


def _flat(text: str) -> str:
    return " ".join(text.split())


def _sentences(ledger: Ledger, draft: Report, numbering: Numbering) -> tuple[ResultSentence, ...]:
    return tuple(
        _sentence(section, leaf.text, leaf.label, numbering.marks(leaf.evidence), ledger.verdict(index))
        for index, (section, leaf) in enumerate(leaves(draft))
    )


def _sentence(
    section: str, text: str, label: str, marks: tuple[int, ...], given: VerdictGiven | None
) -> ResultSentence:
    return ResultSentence(
        text=text,
        section=section,
        citations=marks,
        label=label,
        verdict=given.verdict if given else "not_checked",
        reason=given.reason if given else "no check was run on this sentence",
        checks=given.checks if given else (),
        by=given.by if given else "nobody",
    )


def _written_by(ledger: Ledger) -> str | None:
    """`model`, `extraction` (passages put together without a language model) or `record` (a list of evidence)."""
    if ledger.draft is None or ledger.started is None:
        return None
    if ledger.quotes and ledger.draft == evidence_list(ledger):
        return "record"
    return "extraction" if ledger.started.writer.startswith(EXTRACTIVE) else "model"


def _metadata(ledger: Ledger, extra: Metadata, ended_at: str) -> dict[str, str | int | bool | None]:
    started = ledger.started
    known: dict[str, str | int | bool | None] = {
        "question": ledger.request.question,
        "format": ledger.request.format,
        "breadth": ledger.request.breadth,
        "language": ledger.request.language,
        "method": started.method if started else "",
        "model": started.writer if started else "",
        "checks_version": started.checks_version if started else "",
        "mode": started.mode if started else "direct",
        "started_at": started.started_at if started else "",
        "ended_at": ended_at,
        "report_language": report_language(ledger.request.language, ledger.request.question),
        "written_by": _written_by(ledger),
    }
    return {**{key: extra[key] for key in sorted(extra) if key not in known}, **known}
