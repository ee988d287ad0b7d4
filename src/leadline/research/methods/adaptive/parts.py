"""What a writer is given, in parts that fit its window; what fits none of them is named, and stays in the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from leadline.core.llm.tokens import text_tokens
from leadline.core.tools.budget import longest
from leadline.research.roles.prompts import evidence_entry, synthesis_task, unit_entry
from leadline.research.roles.purposes import EvidenceItem, SynthesisData, UnitReport

MOST_PARTS = 12
"""Parts of one report; of evidence that would need more, what comes first in each unit is written about."""

_ENTRY = 4
"""Tokens between two entries."""
_ANY_TOKEN = "0" * 18
_CUT = " […]"


@dataclass(frozen=True)
class Split:
    """The parts of a report, in order."""

    parts: tuple[SynthesisData, ...]
    left_out: tuple[EvidenceItem, ...] = ()
    """What no part has: it is too long by itself, or there was too much of it."""


def task_tokens(window: int) -> int:
    """Tokens of what a writer is told at once: its answers and their corrections need the rest of the window."""
    return window // 4


def clipped(text: str, tokens: int) -> str:
    """`text`, cut to about so many tokens, with a mark where it was cut."""
    if text_tokens(text) <= tokens:
        return text
    return text[: longest(lambda size: text[:size], len(text), max(1, tokens - 2))].rstrip() + _CUT


def split(data: SynthesisData, window: int | None) -> Split:
    """What a writer with a window of so many tokens is asked: at once where that fits, else part by part.

    Parts follow the order of the evidence, which is that of the units. None: the window is not known.
    """
    if window is None or text_tokens(synthesis_task(data, _ANY_TOKEN)) <= task_tokens(window):
        return Split((data,))
    room = task_tokens(window)
    slim = msgspec.structs.replace(
        data,
        brief=clipped(data.brief, room // 6),
        context=data.context and clipped(data.context, room // 6),
        units=(),
        evidence=(),
        versions=(),
        unresolved=(),
    )
    free = max(room - text_tokens(synthesis_task(slim, _ANY_TOKEN, part=True)), room // 3)
    units = {unit.id: _shortened(unit, free) for unit in data.units}
    taken, left_out = _chosen(data.evidence, free)
    parts = tuple(_part(slim, data, units, evidence) for evidence in _grouped(taken, units, free))
    return Split(parts, left_out)


def _shortened(unit: UnitReport, free: int) -> UnitReport:
    """A unit as a part tells of it: evidence matters more than what was made of it."""
    unresolved = clipped("; ".join(unit.unresolved), free // 10)
    return msgspec.structs.replace(
        unit,
        findings=clipped(unit.findings, free // 5),
        limitations=unit.limitations and clipped(unit.limitations, free // 10),
        unresolved=(unresolved,) if unresolved else (),
    )


def _cost(item: EvidenceItem) -> int:
    return text_tokens(evidence_entry(item)) + _ENTRY


def _chosen(
    evidence: Sequence[EvidenceItem], free: int
) -> tuple[tuple[EvidenceItem, ...], tuple[EvidenceItem, ...]]:
    """What is written about, in its order, and what is not."""
    most = free // 2
    """A part has a unit's findings beside its evidence."""
    budget = MOST_PARTS * most
    place: Counter[str] = Counter()
    ranked: list[tuple[bool, int, int]] = []
    for at, item in enumerate(evidence):
        ranked.append((item.polarity == "context", place[item.unit], at))
        place[item.unit] += 1
    taken: set[int] = set()
    for _, _, at in sorted(ranked):
        cost = _cost(evidence[at])
        if cost <= most and cost <= budget:
            taken.add(at)
            budget -= cost
    return (
        tuple(item for at, item in enumerate(evidence) if at in taken),
        tuple(item for at, item in enumerate(evidence) if at not in taken),
    )


def _grouped(
    evidence: Sequence[EvidenceItem], units: Mapping[str, UnitReport], free: int
) -> list[list[EvidenceItem]]:
    """The evidence in parts, each with room for what is told of its units."""
    groups: list[list[EvidenceItem]] = []
    left = 0
    for item in evidence:
        cost = _cost(item)
        told = text_tokens(unit_entry(units[item.unit])) + _ENTRY if item.unit in units else 0
        beside = 0 if groups and groups[-1][-1].unit == item.unit else told
        if not groups or cost + beside > left:
            groups.append([])
            left, beside = free, told
        groups[-1].append(item)
        left -= cost + beside
    return groups


def _part(
    slim: SynthesisData,
    data: SynthesisData,
    units: Mapping[str, UnitReport],
    evidence: Sequence[EvidenceItem],
) -> SynthesisData:
    """One part: its evidence, and of the rest what has to do with it."""
    here = dict.fromkeys(item.unit for item in evidence)
    sources = {item.source.id for item in evidence}
    return msgspec.structs.replace(
        slim,
        units=tuple(units[unit] for unit in here if unit in units),
        evidence=tuple(evidence),
        versions=tuple(pair for pair in data.versions if {pair.newer, pair.older} <= sources),
    )
