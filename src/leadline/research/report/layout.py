"""What both renderings share: the prose with its verdicts in reading order, and the wording of the lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from leadline.research.events import Block, ItemList, Paragraph, Report, Table, VerdictName
from leadline.research.ledger.coverage import Blocked, outcomes
from leadline.research.report.labels import Labels, labels
from leadline.research.report.result import Citation, ResearchResult, ResultSentence, ResultSource
from leadline.research.verify.blocks import TextBlock, blocks
from leadline.research.verify.check import bare, states_nothing

MARKS: dict[VerdictName, str] = {"not_established": "(?)", "contradicted": "(!)", "not_checked": "(~)"}
"""Mark after a sentence that is not supported."""

ROW_BORDER = " / "
"""Stands between the rows of a table and the entries of a list, where a quote is shown on one line."""
SHOWN_ENDS = (800, 300)
"""Characters that are shown of the beginning and the end of a quote that is longer than both with a margin."""
LONG_QUOTE = 300
"""Characters from which a quoted table is shown without the rows that nothing was taken from."""


@dataclass(frozen=True)
class LaidBlock:
    """A block with its sentences; `rows` of a paragraph is one row, of a list one row an item."""

    kind: str
    rows: tuple[tuple[LaidSentence, ...], ...]
    header: tuple[str, ...] = ()


@dataclass(frozen=True)
class LaidSentence:
    """A sentence and its index in the report, from 0."""

    index: int
    sentence: ResultSentence


@dataclass(frozen=True)
class LaidSection:
    """A section with its sentences."""

    heading: str
    blocks: tuple[LaidBlock, ...]


def laid_out(draft: Report, result: ResearchResult) -> tuple[LaidSection, ...]:
    """The sections of a draft, each leaf replaced by its sentence of the result."""
    rest = (LaidSentence(index, one) for index, one in enumerate(result.sentences))
    return tuple(
        LaidSection(section.heading, tuple(_laid(block, rest) for block in section.blocks))
        for section in draft.sections
    )


def _laid(block: Block, rest: Iterator[LaidSentence]) -> LaidBlock:
    match block:
        case Paragraph():
            return LaidBlock("paragraph", (tuple(next(rest) for _ in block.sentences),))
        case ItemList():
            return LaidBlock("list", tuple(tuple(next(rest) for _ in item) for item in block.items))
        case Table():
            rows = tuple(tuple(next(rest) for _ in row) for row in block.rows)
            return LaidBlock("table", rows, block.header)


def labels_of(result: ResearchResult) -> Labels:
    """The labels in the language of the report."""
    return labels(str(result.metadata.get("report_language") or "en"))


def status_line(result: ResearchResult) -> str | None:
    """What stands on top of a report that is not complete, with the reason; None where it is complete."""
    words = labels_of(result)
    line = {"partial": words.partial, "cancelled": words.cancelled, "failed": words.failed}.get(result.status)
    if line is None:
        return None
    told = " ".join((result.error or "").split())
    return (
        line if not told or told == result.status else f"{line}{words.gap}{words.reason}{words.colon}{told}"
    )


# --- marks -------------------------------------------------------------------------------------------------


def mark_of(sentence: ResultSentence) -> str:
    """The mark after a sentence; empty for a supported one, and for a cell in which nothing stands."""
    return "" if states_nothing(sentence.text) else MARKS.get(sentence.verdict, "")


def legend(result: ResearchResult) -> str | None:
    """What the marks in the prose mean, on one line; None for a report without sentences."""
    if not result.sentences:
        return None
    words = labels_of(result)
    used = {mark_of(sentence) for sentence in result.sentences}
    told = [words.unmarked]
    for verdict, mark in MARKS.items():
        if mark in used:
            name, meaning = _verdict_words(words, verdict)
            told.append(f"{mark} {name}{words.colon}{meaning}")
    return words.semicolon.join(told) + words.stop


def verdict_name(result: ResearchResult, verdict: VerdictName) -> str:
    """A verdict in the language of the report."""
    words = labels_of(result)
    return words.supported if verdict == "supported" else _verdict_words(words, verdict)[0]


def _verdict_words(words: Labels, verdict: VerdictName) -> tuple[str, str]:
    return {
        "not_established": words.not_established,
        "contradicted": words.contradicted,
        "not_checked": words.not_checked,
    }.get(verdict, (words.supported, ""))


# --- sources and quotes ------------------------------------------------------------------------------------


def citations_of(result: ResearchResult, source: ResultSource) -> list[Citation]:
    """The citations of one source, by number."""
    return [one for one in result.citations if one.source == source.n]


def shown_title(source: ResultSource) -> str:
    """The title as words; empty where it says no more than the location, which stands beside it."""
    title = bare(source.title) or source.title
    return "" if title in (source.location, source.location.rsplit("/", 1)[-1]) else title


def source_facts(source: ResultSource, result: ResearchResult) -> str:
    """What is known of a source beside title and location, in words."""
    words = labels_of(result)
    older = ", ".join(one.location for one in result.sources if one.n in source.supersedes)
    newer = ", ".join(one.location for one in result.sources if source.n in one.supersedes)
    facts = [
        source.kind if source.kind != "document" else "",
        source.part or "",
        words.published.format(date=source.published) if source.published else "",
        words.read_in_part if source.outcome == "partial" else "",
        words.supersedes.format(others=older) if older else "",
        words.superseded_by.format(others=newer) if newer else "",
        "" if source.cited else words.not_cited,
    ]
    return words.semicolon.join(fact for fact in facts if fact)


def page_of(citation: Citation, result: ResearchResult) -> str:
    """The page of a quote in words; empty where it is not known."""
    return labels_of(result).page.format(n=citation.page) if citation.page is not None else ""


def shown_quote(citation: Citation, result: ResearchResult) -> str:
    """A quote on one line, without marks of Markdown; of a long table the rows that were used, of a very long
    passage its beginning and end.

    The quote as it stands in the document is in `citations` of the result and, in its place, on the HTML page.
    """
    found = blocks(citation.quote)
    if sum(len(block.text) for block in found) > LONG_QUOTE:
        said = " ".join(one.text for one in result.sentences if citation.n in one.citations)
        found = _used_rows(found, said)
    shown = ROW_BORDER.join(block.text for block in found) or " ".join(citation.quote.split())
    begin, end = SHOWN_ENDS
    return shown if len(shown) <= begin + end + 100 else f"{shown[:begin]} ... {shown[-end:]}"


def _used_rows(found: tuple[TextBlock, ...], said: str) -> tuple[TextBlock, ...]:
    """The blocks without the rows, neither first nor last, of which no cell stands in what was said."""
    rows = [at for at, block in enumerate(found) if block.kind == "row"]
    flat = " ".join(said.casefold().split())

    def used(block: TextBlock) -> bool:
        return any(len(cell) > 1 and cell.casefold() in flat for cell in block.cells)

    dropped = {at for at in rows[1:-1] if not used(found[at])}
    kept: list[TextBlock] = []
    for at, block in enumerate(found):
        if at not in dropped:
            kept.append(block)
        elif at - 1 not in dropped:
            kept.append(TextBlock("row", "..."))
    return tuple(kept)


# --- coverage ----------------------------------------------------------------------------------------------


def coverage_lines(result: ResearchResult) -> list[str]:
    """Coverage, every number counted: what was done, what the checks found, what could not be used or answered."""
    words, found = labels_of(result), result.coverage
    counted = _counts(
        words,
        ((words.questions, found.asked), (words.searches, found.searched)),
    )
    opens, shuts = words.brackets
    kinds = words.comma.join(
        f"{_outcome(words, name)} {count}" for name, count in sorted(outcomes(found).items())
    )
    sources = words.semicolon.join(
        f"{name}{words.colon}{number}"
        for name, number in (
            (words.found, found.found),
            (words.read, found.read),
            (words.unusable, f"{found.blocked}{opens}{kinds}{shuts}" if kinds else found.blocked),
            (words.cited, found.cited),
        )
    )
    quoted = _counts(words, ((words.quotes, len(result.citations)),))
    lines = [words.gap.join((counted, f"{sources}{words.stop}", quoted))]
    stated = [one for one in result.sentences if not states_nothing(one.text)]
    if stated:
        verdicts = Counter(one.verdict for one in stated)
        names: tuple[VerdictName, ...] = ("supported", "contradicted", "not_established", "not_checked")
        told = words.comma.join(f"{verdict_name(result, name)} {verdicts[name]}" for name in names)
        lines.append(f"{words.sentences}{words.colon}{len(stated)}{opens}{told}{shuts}{words.stop}")
    lines += [f"{words.not_usable}{words.colon}{_blocked(words, one)}" for one in found.blocked_sources]
    return lines + [f"{words.open}{words.colon}{text}" for text in found.unresolved]


def _counts(words: Labels, pairs: tuple[tuple[str, int], ...]) -> str:
    return words.gap.join(f"{name}{words.colon}{number}{words.stop}" for name, number in pairs)


def _outcome(words: Labels, outcome: str) -> str:
    return words.outcomes.get(outcome, outcome)


def _blocked(words: Labels, one: Blocked) -> str:
    named = one.title if one.title == one.location else f"{one.title} ({one.location})"
    reason = f" ({one.reason})" if one.reason else ""
    return f"{named}{words.colon}{_outcome(words, one.outcome)}{reason}"


def made_by(result: ResearchResult, *, said: bool = False) -> str:
    """How the report was made, in a few sentences.

    Args:
        result: the result.
        said: the writer has said itself that it only repeats passages, so that code need not say it again.
    """
    words, known = labels_of(result), result.metadata
    by = str(known.get("written_by"))
    model = str(known.get("model") or "-")
    wrote = {"extraction": words.by_extraction, "record": words.by_record}.get(by, words.by_model)
    told = [] if said and by == "extraction" else [wrote.format(model=model)]
    told.append(
        words.by_code.format(
            method=known.get("method") or "-", model=model, checks=known.get("checks_version") or "-"
        )
    )
    return words.gap.join(told)
