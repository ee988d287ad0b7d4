"""The purposes of a run's model calls, each with the typed data that goes with it.

A model adapter without a language model (see `leadline.research.extractive`) acts on these data alone;
a language model reads the same facts in its prompt.
"""

from __future__ import annotations

from typing import Literal, TypeVar

import msgspec

from leadline.core.llm.request import Purpose
from leadline.research.events import Polarity, Unit

PLANNING = "research/planning"
UNIT = "research/unit"
SYNTHESIS = "research/synthesis"

ReportFormat = Literal["report", "brief", "memo"]


class PlanningData(msgspec.Struct, frozen=True, kw_only=True):
    """What the planner is asked."""

    question: str
    max_units: int
    breadth: str = "balanced"
    purpose: str | None = None
    context: str | None = None
    format: ReportFormat = "report"
    language: str | None = None
    corpus: tuple[str, ...] = ()
    """Names of the folders and files that may be searched."""


class UnitData(msgspec.Struct, frozen=True, kw_only=True):
    """What one researcher is asked."""

    question: str
    brief: str
    unit: Unit
    source_calls: int
    """Calls of source tools that this unit may make, before the one recovery read."""
    language: str | None = None
    tools: tuple[str, ...] = ()


class EvidenceSource(msgspec.Struct, frozen=True, kw_only=True):
    """The document behind a piece of evidence, as the writer sees it."""

    id: str
    title: str
    location: str
    published: str | None = None


class EvidenceItem(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded quote, as the writer sees it."""

    id: str
    unit: str
    quote: str
    claim: str
    polarity: Polarity
    source: EvidenceSource
    page: int | None = None


class UnitReport(msgspec.Struct, frozen=True, kw_only=True):
    """How one unit ended."""

    id: str
    title: str
    question: str
    status: str
    findings: str = ""
    unresolved: tuple[str, ...] = ()
    limitations: str | None = None


class VersionPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two sources that are versions of one document."""

    newer: str
    older: str
    reason: str


class SynthesisData(msgspec.Struct, frozen=True, kw_only=True):
    """What the writer is asked."""

    question: str
    brief: str
    units: tuple[UnitReport, ...]
    evidence: tuple[EvidenceItem, ...]
    purpose: str | None = None
    context: str | None = None
    format: ReportFormat = "report"
    language: str | None = None
    versions: tuple[VersionPair, ...] = ()
    unresolved: tuple[str, ...] = ()


PurposeData = PlanningData | UnitData | SynthesisData
D = TypeVar("D", PlanningData, UnitData, SynthesisData)


def purpose(name: str, data: PurposeData) -> Purpose:
    """A purpose that carries `data` as plain JSON values."""
    return Purpose(name=name, data=msgspec.to_builtins(data))


def purpose_data(purpose: Purpose, kind: type[D]) -> D:
    """The typed data of a purpose.

    Raises:
        msgspec.ValidationError: the purpose was not made by `purpose()` for this kind.
    """
    return msgspec.convert(purpose.data, kind)
