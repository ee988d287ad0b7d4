"""The text each role reads: its persona from a file, its task from the typed data of its purpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from leadline.core.llm.adapter import ModelRole
from leadline.core.tools.fence import fence
from leadline.core.tools.spec import description_from
from leadline.research.roles.purposes import (
    EvidenceItem,
    PlanningData,
    SynthesisData,
    UnitData,
    UnitReport,
)

Role = Literal["planner", "researcher", "writer"]

MODEL_ROLE: Mapping[Role, ModelRole] = {"planner": "strong", "researcher": "standard", "writer": "strong"}
"""What each role wants of a model; configuration says which model that is."""


def persona(role: Role) -> str:
    """The standing instructions of a role."""
    return description_from(__package__ or "", f"{role}.md")


def planning_task(data: PlanningData) -> str:
    """The planner's first message."""
    return _paragraphs(
        f"Question: {data.question}",
        _line("Purpose", data.purpose),
        _line("Context", data.context),
        f"At most {data.max_units} unit(s).",
        _line("May be searched", ", ".join(data.corpus)),
        _line("The report will be in", data.language),
        f"The report will be a {data.format}.",
    )


def unit_task(data: UnitData) -> str:
    """A researcher's first message."""
    return _paragraphs(
        f"The whole question: {data.question}",
        f"Brief: {data.brief}",
        f"Your unit ({data.unit.id}): {data.unit.title}",
        f"Unit question: {data.unit.question}",
        f"Objective: {data.unit.objective}",
        f"You may make {data.source_calls} source calls.",
        _line("Write findings in", data.language),
    )


def synthesis_task(data: SynthesisData, token: str, *, part: bool = False) -> str:
    """The writer's first message; findings and quotes stand behind a fence made with `token`.

    `part`: the data are those of one part of a report that is written part by part.
    """
    units = "\n\n".join(map(unit_entry, data.units))
    titles = {item.source.id: item.source.title for item in data.evidence}
    evidence = "\n\n".join(map(evidence_entry, data.evidence))
    versions = "; ".join(
        f"“{titles.get(pair.newer, pair.newer)}” is newer than “{titles.get(pair.older, pair.older)}” ({pair.reason})"
        for pair in data.versions
    )
    return _paragraphs(
        f"Question: {data.question}",
        _line("Purpose", data.purpose),
        _line("Context", data.context),
        f"Brief: {data.brief}",
        f"Form: {data.format}",
        f"Language: {data.language or 'that of the question'}",
        _instructions("part.md") if part else None,
        fence(f"{units}\n\nEvidence:\n\n{evidence}", token, "findings and quotes"),
        _line("Versions", versions),
        _line("Known to be unresolved", "; ".join(data.unresolved)),
    )


def opening_task(data: SynthesisData, sentences: str, token: str) -> str:
    """The message to a writer that opens a report whose sections are written; `sentences` are theirs."""
    return _paragraphs(
        f"Question: {data.question}",
        _line("Purpose", data.purpose),
        _line("Context", data.context),
        f"Brief: {data.brief}",
        f"Form: {data.format}",
        f"Language: {data.language or 'that of the question'}",
        _instructions("opening.md"),
        fence(sentences, token, "the sections of the report"),
    )


def unit_entry(unit: UnitReport) -> str:
    """What the writer reads of a unit."""
    return _paragraphs(
        f"Unit {unit.id}: {unit.title} ({unit.status})",
        _line("Findings", unit.findings),
        _line("Unresolved", "; ".join(unit.unresolved)),
        _line("Limitations", unit.limitations),
    )


def evidence_entry(item: EvidenceItem) -> str:
    """What the writer reads of a piece of evidence."""
    page = f", page {item.page}" if item.page else ""
    published = f", {item.source.published}" if item.source.published else ""
    return (
        f"{item.id} ({item.polarity}) from “{item.source.title}”, {item.source.location}{page}{published}\n"
        f"Claim: {item.claim}\nQuote: {item.quote}"
    )


def _instructions(name: str) -> str:
    return description_from(__package__ or "", name)


def _line(label: str, value: str | None) -> str | None:
    return f"{label}: {value}" if value else None


def _paragraphs(*parts: str | None) -> str:
    return "\n\n".join(part for part in parts if part)
