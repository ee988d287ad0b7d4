"""A report that is written part by part, for a writer whose window does not hold the evidence at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from leadline.core.llm.tokens import text_tokens
from leadline.research.events import CeilingName, Report, Section
from leadline.research.ledger.leaves import leaves
from leadline.research.methods.adaptive.gate import WriterGate
from leadline.research.methods.adaptive.parts import Split, task_tokens
from leadline.research.methods.seam import RoleAnswer, RoleCall, Run
from leadline.research.report.draft import clean_report
from leadline.research.report.evidence_list import listed_evidence
from leadline.research.roles.prompts import opening_task, synthesis_task
from leadline.research.roles.purposes import SYNTHESIS, EvidenceItem, SynthesisData, purpose
from leadline.research.roles.schemas import REPORT_SCHEMA


@dataclass
class Written:
    """What was written, and how it went."""

    report: Report | None = None
    """None: no part of it could be written."""
    notes: list[str] = field(default_factory=list[str])
    """What a reader should know of it."""
    answer: RoleAnswer = field(default_factory=lambda: RoleAnswer(status="completed"))
    """Of all parts together: completed where each of them was."""


async def write_in_parts(run: Run, data: SynthesisData, split: Split) -> Written:
    """Ask for each part in turn, then for an opening; a part that is not written is listed by code.

    `data`: all that there is, as one writer would have been given it.
    """
    sections: list[Section] = []
    unresolved: list[str] = []
    notes: list[str] = []
    errors: list[str] = []
    written, title = 0, ""
    ceiling: CeilingName | None = None
    total = len(split.parts)
    for number, part in enumerate(split.parts, 1):
        report, told, answer = await _part(run, part, number, total)
        notes += told
        if answer.error is not None:
            errors.append(answer.error)
        ceiling = ceiling or answer.ceiling
        if report is None:
            sections += listed_evidence(run.ledger, [item.id for item in part.evidence])
            continue
        written += 1
        title = title or report.title
        sections += report.sections
        unresolved += report.unresolved
    notes += _not_written_about(split.left_out, len(data.evidence))
    error = "; ".join(dict.fromkeys(errors)) or None
    if not written:
        why = error or "no piece of the evidence fits the window of the writer"
        return Written(None, notes, RoleAnswer(status="failed", error=why, ceiling=ceiling))
    if total > 1:
        title = await _open(run, split.parts[0], sections, unresolved) or title
    whole = Report(
        title=title or data.question, sections=_joined(sections), unresolved=tuple(dict.fromkeys(unresolved))
    )
    cleaned, told = clean_report(whole, run.ledger)
    status = "completed" if error is None else "partial"
    return Written(cleaned, [*notes, *told], RoleAnswer(status=status, error=error, ceiling=ceiling))


async def _part(
    run: Run, part: SynthesisData, number: int, total: int
) -> tuple[Report | None, Sequence[str], RoleAnswer]:
    """The report of one part, notes on it, and how it went."""
    gate = WriterGate(run.ledger, _problem_tokens(run))
    ids = [item.id for item in part.evidence]
    # Named by its evidence: a part that has other evidence is other work.
    name = f"{ids[0]}-{ids[-1]}"
    answer = await run.ask(
        RoleCall(
            role="writer",
            label=f"write part {number} of {total}",
            purpose=purpose(SYNTHESIS, part),
            prompt=synthesis_task(part, run.token(f"{SYNTHESIS}/{name}"), part=True),
            schema=REPORT_SCHEMA,
            check=gate.problems,
            part=name,
        )
    )
    value = gate.last if answer.value is None and answer.ceiling is not None else answer.value
    report, told = gate.accepted(value) if value is not None else (None, ())
    if report is not None:
        return report, told, answer
    why = answer.error or "; ".join(told) or "the writer returned no report"
    note = f"Part {number} of {total} of the report was not written: {why}. Its evidence is listed instead."
    return None, (note,), RoleAnswer(status="failed", error=why, ceiling=answer.ceiling)


async def _open(run: Run, part: SynthesisData, sections: list[Section], unresolved: list[str]) -> str:
    """Put an opening before the sections, if the writer makes one; returns the title that it gave."""
    gate = WriterGate(run.ledger, _problem_tokens(run))
    data = msgspec.structs.replace(part, units=(), evidence=(), versions=(), unresolved=())
    sentences = _sentences(sections, run.window("writer"))
    answer = await run.ask(
        RoleCall(
            role="writer",
            label="write the opening",
            purpose=purpose(SYNTHESIS, data),
            prompt=opening_task(data, sentences, run.token(f"{SYNTHESIS}/opening")),
            schema=REPORT_SCHEMA,
            check=gate.problems,
            part="opening",
        )
    )
    report, _ = gate.accepted(answer.value) if answer.value is not None else (None, ())
    if report is None:
        return ""
    sections[:0] = report.sections[:1]
    unresolved += report.unresolved
    return report.title


def _sentences(sections: Sequence[Section], window: int | None) -> str:
    """The sentences of the sections with the ids of their evidence, as many as the window has room for.

    Of each section the first ones come before further ones of others, so that all of them are there in brief.
    """
    lines = [
        (place, at, f"{leaf.text} [{', '.join(leaf.evidence)}]")
        for at, section in enumerate(sections)
        for place, (_, leaf) in enumerate(leaves(Report(title="", sections=(section,))))
        if leaf.evidence
    ]
    left = None if window is None else task_tokens(window) * 2 // 3
    kept: list[tuple[int, int, str]] = []
    for place, at, line in sorted(lines):
        cost = text_tokens(line) + 2
        if left is not None and cost > left:
            break
        left = None if left is None else left - cost
        kept.append((at, place, line))
    return "\n".join(line for _, _, line in sorted(kept))


def _problem_tokens(run: Run) -> int | None:
    """Tokens of what a writer is told to mend at once."""
    window = run.window("writer")
    return None if window is None else window // 16


def _joined(sections: Sequence[Section]) -> tuple[Section, ...]:
    """The sections; neighbours under one heading, as where a unit has two parts, are one."""
    out: list[Section] = []
    for section in sections:
        if out and out[-1].heading == section.heading:
            out[-1] = Section(heading=section.heading, blocks=(*out[-1].blocks, *section.blocks))
        else:
            out.append(section)
    return tuple(out)


def _not_written_about(left_out: Sequence[EvidenceItem], total: int) -> list[str]:
    """What the report says of evidence that the writer was not given."""
    if not left_out:
        return []
    names = ", ".join(item.id for item in left_out)
    return [
        f"{len(left_out)} of {total} pieces of evidence did not fit the model's window and were not written about; "
        f"they are in the ledger: {names}."
    ]
