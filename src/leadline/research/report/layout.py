"""What both renderings share: the prose with its verdicts in reading order, and the wording of the lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from leadline.research.events import Block, ItemList, Paragraph, Report, Table, VerdictName
from leadline.research.ledger.coverage import Coverage, outcomes
from leadline.research.report.result import Citation, ResearchResult, ResultSentence, ResultSource

MARKS: dict[VerdictName, tuple[str, str]] = {
    "not_established": ("(?)", "not established: the cited quotes, if any, do not say this in these words"),
    "contradicted": ("(!)", "contradicted: a cited quote says otherwise"),
    "not_checked": ("(~)", "not checked: the writer's own words, without figures or names to check"),
}
"""Mark after a sentence that is not supported, and what it means."""


@dataclass(frozen=True)
class LaidBlock:
    """A block with its sentences; `rows` of a paragraph is one row, of a list one row an item."""

    kind: str
    rows: tuple[tuple[ResultSentence, ...], ...]
    header: tuple[str, ...] = ()


@dataclass(frozen=True)
class LaidSection:
    """A section with its sentences."""

    heading: str
    blocks: tuple[LaidBlock, ...]


def laid_out(draft: Report, result: ResearchResult) -> tuple[LaidSection, ...]:
    """The sections of a draft, each leaf replaced by its sentence of the result."""
    rest = iter(result.sentences)
    return tuple(
        LaidSection(section.heading, tuple(_laid(block, rest) for block in section.blocks))
        for section in draft.sections
    )


def _laid(block: Block, rest: Iterator[ResultSentence]) -> LaidBlock:
    match block:
        case Paragraph():
            return LaidBlock("paragraph", (tuple(next(rest) for _ in block.sentences),))
        case ItemList():
            return LaidBlock("list", tuple(tuple(next(rest) for _ in item) for item in block.items))
        case Table():
            rows = tuple(tuple(next(rest) for _ in row) for row in block.rows)
            return LaidBlock("table", rows, block.header)


def used_marks(result: ResearchResult) -> list[tuple[str, str]]:
    """The marks that stand in the prose, with their meanings."""
    used = {sentence.verdict for sentence in result.sentences}
    return [mark for verdict, mark in MARKS.items() if verdict in used]


def mark_of(sentence: ResultSentence) -> str:
    """The mark after a sentence; empty for a supported one."""
    return MARKS[sentence.verdict][0] if sentence.verdict in MARKS else ""


def citations_of(result: ResearchResult, source: ResultSource) -> list[Citation]:
    """The citations of one source, by number."""
    return [one for one in result.citations if one.source == source.n]


def source_facts(source: ResultSource, result: ResearchResult) -> str:
    """What is known of a source beside title and location, in words."""
    older = [one for one in result.sources if one.n in source.supersedes]
    newer = [one for one in result.sources if source.n in one.supersedes]
    facts = [
        source.kind,
        source.part or "",
        f"published {source.published}" if source.published else "",
        "read in part" if source.outcome == "partial" else "",
        f"supersedes {', '.join(one.location for one in older)}" if older else "",
        f"superseded by {', '.join(one.location for one in newer)}" if newer else "",
        "" if source.cited else "not cited; listed as another version of a cited document",
    ]
    return ", ".join(fact for fact in facts if fact)


def coverage_lines(result: ResearchResult) -> list[str]:
    """Coverage in sentences, every number counted."""
    found = result.coverage
    verdicts = Counter(sentence.verdict for sentence in result.sentences)
    lines = [
        f"Asked: {_count(found.asked, 'question')}. Searched: {_count(found.searched, 'query', 'queries')}. "
        f"Found: {_count(found.found, 'source')}. Read: {found.read}. Blocked: {found.blocked}{_outcomes(found)}. "
        f"Cited: {_count(found.cited, 'source')}, {_count(len(result.citations), 'quote')}."
    ]
    if result.sentences:
        lines.append(
            f"Of {_count(len(result.sentences), 'sentence')}: {verdicts['supported']} supported, "
            f"{verdicts['contradicted']} contradicted, {verdicts['not_established']} not established, "
            f"{verdicts['not_checked']} not checked."
        )
    return lines


def _outcomes(found: Coverage) -> str:
    counted = ", ".join(f"{count} {name}" for name, count in sorted(outcomes(found).items()))
    return f" ({counted})" if counted else ""


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def made_by(result: ResearchResult) -> str:
    """How the report was made, in a sentence."""
    known = result.metadata
    return (
        f"Status {result.status}. Method {known.get('method') or 'unknown'}, model {known.get('model') or 'none'}, "
        f"checks version {known.get('checks_version') or 'unknown'}. Numbers, quotes, source list and coverage are "
        "made by code from the run's record; the prose is the model's."
    )
