"""From an answer to the quotes that are recorded for it: the passage, the head of its table, a note that it is old."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leadline.core.patterns import lazy_pattern
from leadline.research.extractive.answer import Match
from leadline.research.extractive.library import Document
from leadline.research.extractive.passages import MAX_QUOTE, Span
from leadline.research.extractive.phrases import COLUMNS, STATES
from leadline.research.extractive.plain import plain
from leadline.research.sources.dates import HEAD_CHARS
from leadline.research.sources.versions import is_superseded

QuoteRole = Literal["answer", "older", "context"]
_LINE_MARK = lazy_pattern(r"(?:[-*•>]|#{1,6})\s+")
_ONLY_RULES = lazy_pattern(r"[\s|:-]*")


@dataclass(frozen=True)
class Chosen:
    """A stretch of a document that will be recorded as evidence."""

    document: Document
    span: Span
    role: QuoteRole
    """`answer`; `older`: the answer of a superseded version; `context`: the columns of a table, or what a document
    says of its own state, for the answer before it."""
    claim: str
    """What stands over the quote and the quote in plain words, or what kind of context it is."""

    @property
    def text(self) -> str:
        return self.span.of(self.document.text)

    @property
    def plain(self) -> str:
        """The quote as a line of prose."""
        return plain(self.text)

    @property
    def polarity(self) -> str:
        return {"answer": "supporting", "older": "opposing", "context": "context"}[self.role]


def quoted(match: Match, role: QuoteRole = "answer", *, apart: bool = False) -> list[Chosen]:
    """A match with the head of its table: in one quote where it stands right under it, else as two.

    Args:
        match: what is quoted.
        role: what for.
        apart: never in one quote, as other rows of the table follow.
    """
    head, span = match.passage.head, match.passage.span
    if head is None:
        return [Chosen(match.document, span, role, claim_of(match))]
    between = match.document.text[head.end : span.start]
    if (
        not apart
        and span.end - head.start <= MAX_QUOTE
        and head.of(match.document.text).startswith("|")
        and _ONLY_RULES.fullmatch(between)
    ):
        return [Chosen(match.document, Span(head.start, span.end), role, claim_of(match))]
    return [
        Chosen(match.document, span, role, claim_of(match)),
        *_context(match.document, [head], COLUMNS),
    ]


def quoted_as_older(match: Match) -> list[Chosen]:
    """The answer of an older version, with the line in which its document says that it is no longer current."""
    return [*quoted(match, "older"), *_context(match.document, [superseding_line(match.document)], STATES)]


def _context(document: Document, spans: Sequence[Span | None], claim: str) -> list[Chosen]:
    return [
        Chosen(document, span, "context", claim)
        for span in spans
        if span and span.end - span.start <= MAX_QUOTE
    ]


def superseding_line(document: Document) -> Span | None:
    """The line in which a document says that it is no longer current, other than its title."""
    title = " ".join(document.title.split()).casefold()
    told = [
        span
        for span in _head_lines(document)
        if is_superseded(line := span.of(document.text)) and plain(line).casefold() != title
    ]
    return told[0] if told else None


def _head_lines(document: Document) -> list[Span]:
    """The lines at the beginning of a document, without the white space and the marks around them."""
    spans: list[Span] = []
    at = 0
    for line in document.text[:HEAD_CHARS].split("\n"):
        stripped = line.strip()
        if stripped:
            start = at + len(line) - len(line.lstrip())
            mark = _LINE_MARK.match(stripped)
            spans.append(Span(start + (mark.end() if mark else 0), start + len(stripped)))
        at += len(line) + 1
    return spans


def claim_of(match: Match) -> str:
    """What a quote establishes: the title and headings over it, then its own words."""
    over = [
        match.document.title,
        *(name for name in match.passage.headings if name not in match.document.title),
    ]
    if match.passage.lead and match.passage.kind != "row":
        over.append(plain(match.passage.lead).rstrip(":："))
    return f"{' › '.join(over)}: {plain(match.passage.text)}"[:1000]
