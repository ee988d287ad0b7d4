"""The result of a run: one value with the report, its sources, its citations and what is to be thought of them."""

from __future__ import annotations

import hashlib

import msgspec

from leadline.core.llm.usage import Usage
from leadline.research.events import CheckRecord, MatchKind, RunStatus, VerdictName
from leadline.research.ledger.coverage import Coverage

CITED_CONTEXT = 160
"""Code points of the snapshot that are shown on each side of a quote."""


class ResultSource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document that the report cites, or another version of one."""

    n: int
    key: str
    title: str
    location: str
    """Corpus-relative path, or an address."""
    kind: str
    retrieved_at: str
    snapshot: str
    outcome: str
    published: str | None = None
    supersedes: tuple[int, ...] = ()
    """Numbers of older versions of the same document."""
    part: str | None = None
    cited: bool = True
    """False for another version of a cited document that is not cited itself."""
    media_type: str = ""


class Citation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One quote; `n` is the number printed in the report."""

    n: int
    source: int
    quote: str
    start: int
    end: int
    match: MatchKind
    page: int | None = None
    evidence: str = ""
    """Evidence id in the ledger."""
    before: str = ""
    """Text of the snapshot in front of the quote."""
    after: str = ""


class ResultSentence(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence of the report with the verdict on it."""

    text: str
    section: str
    citations: tuple[int, ...]
    label: str
    verdict: VerdictName
    reason: str
    checks: tuple[CheckRecord, ...]
    by: str


class ResultSpending(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was used for one purpose on one model, or with one service."""

    purpose: str
    model: str
    calls: int
    tokens: Usage
    cost: float | None = None
    """Absent: not known."""


class ResultUsage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the run used; what is not known is absent."""

    calls: int
    tokens: Usage
    wall_s: float
    cost: float | None = None
    """All that was paid; absent where the price of a part is not known."""
    currency: str | None = None
    cost_at_least: float | None = None
    """The part that is known, where another is not."""
    by: tuple[ResultSpending, ...] = ()
    """By purpose and model."""


class ResearchResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything a run hands back. `to_json` is deterministic."""

    id: str
    status: RunStatus
    title: str
    report: str
    """Markdown; empty when there is no draft."""
    sources: tuple[ResultSource, ...]
    citations: tuple[Citation, ...]
    sentences: tuple[ResultSentence, ...]
    coverage: Coverage
    usage: ResultUsage
    notes: tuple[str, ...]
    error: str | None = None
    metadata: dict[str, str | int | bool | None]

    def to_json(self) -> bytes:
        """The result as one JSON object in UTF-8, fields in fixed order."""
        return msgspec.json.encode(self)

    @property
    def digest(self) -> str:
        """sha256 of `to_json()`."""
        return hashlib.sha256(self.to_json()).hexdigest()
