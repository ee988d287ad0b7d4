"""From what the planner returned to the units that are run: trimmed, deduplicated, never thrown away."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from leadline.research.events import Unit
from leadline.research.request import ResearchRequest
from leadline.research.roles.schemas import Plan
from leadline.research.verify.markup import plain


@dataclass(frozen=True)
class CheckedPlan:
    """The units of a run, in plan order."""

    brief: str
    units: tuple[Unit, ...]
    fallback: bool = False
    """True when the planner gave nothing usable; the run is then partial at best."""
    notes: tuple[str, ...] = ()
    """What was changed about the planner's answer, for the report."""


def dedup_key(question: str) -> str:
    """A key under which two spellings of one question are equal, in any script (NFKC, casefold)."""
    folded = unicodedata.normalize("NFKC", question).casefold()
    return " ".join("".join(c if c.isalnum() else " " for c in folded).split()) or folded.strip()


def check_plan(plan: Plan, request: ResearchRequest) -> CheckedPlan:
    """The plan with blank and duplicate units dropped and surplus ones cut, each with a note.

    A plan of which nothing is left becomes the fallback plan.
    """
    seen: set[str] = set()
    kept: list[Unit] = []
    notes: list[str] = []
    for unit in plan.units:
        # Titles and notes are shown, and no address that a model wrote is; the question itself is only asked.
        title, question, objective = plain(unit.title), unit.question.strip(), unit.objective.strip()
        shown = plain(question)
        if not question:
            notes.append(f"The plan had a unit without a question ({title or 'untitled'}); it was left out.")
            continue
        key = dedup_key(question)
        if key in seen:
            notes.append(f"The plan asked twice: “{shown}”; it was researched once.")
            continue
        if len(kept) == request.max_units:
            notes.append(f"The plan had more than {request.max_units} unit(s); not researched: “{shown}”.")
            continue
        seen.add(key)
        kept.append(
            Unit(
                id=f"u{len(kept) + 1}",
                title=title or shown or question,
                question=question,
                objective=objective or question,
            )
        )
    if not kept:
        return fallback_plan(request, "the planner returned no usable unit", notes=tuple(notes))
    return CheckedPlan(plan.brief.strip() or request.question, tuple(kept), notes=tuple(notes))


def fallback_plan(request: ResearchRequest, reason: str, *, notes: tuple[str, ...] = ()) -> CheckedPlan:
    """One unit that asks the question as it is."""
    unit = Unit(
        id="u1",
        title=request.question,
        question=request.question,
        objective=request.purpose or "Answer the question directly, with evidence.",
    )
    told = f"The question was researched as one unit, without a plan: {reason}."
    return CheckedPlan(request.words, (unit,), fallback=True, notes=(*notes, told))
