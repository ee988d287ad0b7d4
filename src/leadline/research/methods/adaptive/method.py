"""The adaptive method: a plan, one to three units in parallel, one synthesis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import anyio
import msgspec

from leadline.research.events import Drafted, Noted, Planned, Report, Unit, UnitEnded, UnitStatus
from leadline.research.ledger.ledger import Ledger
from leadline.research.methods.adaptive.gate import WriterGate
from leadline.research.methods.adaptive.parts import clipped, split
from leadline.research.methods.adaptive.plan import CheckedPlan, check_plan, fallback_plan
from leadline.research.methods.adaptive.writing import Written, write_in_parts
from leadline.research.methods.seam import MethodResult, RoleAnswer, RoleCall, Run
from leadline.research.report.evidence_list import evidence_list
from leadline.research.roles.prompts import planning_task, synthesis_task, unit_task
from leadline.research.roles.purposes import (
    PLANNING,
    SYNTHESIS,
    UNIT,
    EvidenceItem,
    EvidenceSource,
    PlanningData,
    SynthesisData,
    UnitData,
    UnitReport,
    VersionPair,
    purpose,
)
from leadline.research.roles.schemas import FINDING_SCHEMA, PLAN_SCHEMA, REPORT_SCHEMA, Finding, Plan

UNIT_ATTEMPTS = 2
_BRIEF_SHARE = 16
"""So many times the brief fits a researcher's window, at least."""


class Adaptive:
    """Plan → units in parallel → synthesis; what fails on the way lowers the status, not the evidence."""

    name = "adaptive"

    def __init__(self, max_parallel_units: int) -> None:
        self._max_parallel_units = max_parallel_units

    async def run(self, run: Run) -> MethodResult:
        planned = await self._plan(run)
        if isinstance(planned, MethodResult):
            return planned
        return await self._follow(run, planned)

    async def _follow(self, run: Run, plan: CheckedPlan) -> MethodResult:
        await self._research(run, plan)
        if not run.ledger.quotes:
            return MethodResult(status="failed", error=nothing_found(run))
        run.relate_versions()
        return await self._write(run, plan)

    async def _plan(self, run: Run) -> CheckedPlan | MethodResult:
        """The plan, or the end of the run where no model can be asked at all."""
        known = run.ledger.plan
        if known is not None:
            return CheckedPlan(known.brief, known.units, known.fallback, known.notes)
        request = run.request
        data = PlanningData(
            question=request.question,
            purpose=request.purpose,
            context=request.context,
            breadth=request.breadth,
            max_units=request.max_units,
            format=request.format,
            language=request.language,
            corpus=run.corpus_names,
        )
        answer = await run.ask(
            RoleCall(
                role="planner",
                label="plan",
                purpose=purpose(PLANNING, data),
                prompt=planning_task(data),
                schema=PLAN_SCHEMA,
            )
        )
        if answer.unreachable:
            return MethodResult(status="failed", error=answer.error)
        if answer.status == "completed":
            plan = check_plan(msgspec.convert(answer.value, Plan), request)
        else:
            plan = fallback_plan(request, answer.error or "planning did not complete")
        run.append(Planned(brief=plan.brief, units=plan.units, fallback=plan.fallback, notes=plan.notes))
        return plan

    async def _research(self, run: Run, plan: CheckedPlan) -> None:
        """Every unit of the plan, at most `max_parallel_units` at once; one that fails stops no other."""
        free = anyio.CapacityLimiter(max(1, self._max_parallel_units))

        async def bounded(unit: Unit) -> None:
            async with free:
                await self._unit(run, plan, unit)

        async with anyio.create_task_group() as units:
            for unit in plan.units:
                units.start_soon(bounded, unit)

    async def _unit(self, run: Run, plan: CheckedPlan, unit: Unit) -> None:
        known = run.ledger.units.get(unit.id)
        if known is not None and known.status != "running":
            return
        window = run.window("researcher")
        data = UnitData(
            question=run.request.question,
            brief=plan.brief if window is None else clipped(plan.brief, window // _BRIEF_SHARE),
            unit=unit,
            source_calls=run.source_calls,
            language=run.request.language,
        )
        call = RoleCall(
            role="researcher",
            label=unit.title,
            purpose=purpose(UNIT, data),
            prompt=unit_task(data),
            schema=FINDING_SCHEMA,
            unit=unit,
        )
        answer = RoleAnswer(status="failed")
        for _ in range(UNIT_ATTEMPTS):
            answer = await run.ask(call)
            if answer.status != "failed" or answer.unreachable or answer.exhausted:
                break
        run.append(_unit_ended(unit, answer))

    async def _write(self, run: Run, plan: CheckedPlan) -> MethodResult:
        data = synthesis_data(run, plan)
        parts = split(data, run.window("writer"))
        if len(parts.parts) != 1 or parts.left_out:
            return self._published(run, plan, await write_in_parts(run, data, parts))
        gate = WriterGate(run.ledger)
        answer = await run.ask(
            RoleCall(
                role="writer",
                label="write the report",
                purpose=purpose(SYNTHESIS, data),
                prompt=synthesis_task(data, run.token(SYNTHESIS)),
                schema=REPORT_SCHEMA,
                check=gate.problems,
            )
        )
        # A writer that had handed in something, and was stopped while it mended it, is not made to have written nothing.
        value = gate.last if answer.value is None and answer.ceiling is not None else answer.value
        report, told = gate.accepted(value) if value is not None else (None, ())
        if report is None:
            why = answer.error or "; ".join(told) or "the writer returned no report"
            answer = RoleAnswer(status="failed", error=why, ceiling=answer.ceiling)
        return self._published(run, plan, Written(report, list(told), answer))

    def _published(self, run: Run, plan: CheckedPlan, written: Written) -> MethodResult:
        """The end of a run whose writer wrote that, or nothing that can be shown."""
        answer = written.answer
        if written.report is None:
            note = f"The report was not written: {answer.error}. The evidence is listed instead."
            _publish(run, evidence_list(run.ledger), (note,), of_end=True)
            return MethodResult(status="partial", error=answer.error)
        # What a ceiling cut short is written anew when the run goes on with more.
        _publish(run, written.report, written.notes, of_end=answer.ceiling is not None)
        return MethodResult(
            status=_status(run.ledger, plan, answer), error=_shortfalls(run.ledger, plan, answer)
        )


def _publish(run: Run, report: Report, notes: Sequence[str], *, of_end: bool = False) -> None:
    """Write the report down, with what a reader should know of it, unless it was before the run was taken up."""
    if run.ledger.draft is not None and not run.ledger.draft_outdated:
        return
    for note in notes:
        run.append(Noted(text=note, of_end=of_end, of_draft=True))
    run.append(Drafted(report=report, of_end=of_end))


def synthesis_data(run: Run, plan: CheckedPlan) -> SynthesisData:
    """What the writer gets: findings in plan order and the evidence, never transcripts."""
    request, ledger = run.request, run.ledger
    units = tuple(
        UnitReport(
            id=unit.id,
            title=unit.title,
            question=unit.question,
            status=state.status,
            findings=state.findings,
            unresolved=state.unresolved,
            limitations=state.limitations,
        )
        for unit in plan.units
        if (state := ledger.units.get(unit.id)) is not None
    )
    order = {unit.id: at for at, unit in enumerate(plan.units)}
    quotes = sorted(ledger.quotes.values(), key=lambda quote: order.get(quote.unit, len(order)))
    return SynthesisData(
        question=request.question,
        brief=plan.brief,
        units=units,
        evidence=tuple(
            EvidenceItem(
                id=quote.id,
                unit=quote.unit,
                quote=quote.text,
                claim=quote.claim,
                polarity=quote.polarity,
                page=quote.page,
                source=EvidenceSource(
                    id=source.id, title=source.title, location=source.location, published=source.published
                ),
            )
            for quote in quotes
            if (source := ledger.sources.get(quote.source)) is not None
        ),
        purpose=request.purpose,
        context=request.context,
        format=request.format,
        language=request.language,
        versions=tuple(
            VersionPair(newer=pair.newer, older=pair.older, reason=pair.reason) for pair in ledger.versions
        ),
        unresolved=tuple(text for unit in units for text in unit.unresolved),
    )


def nothing_found(run: Run) -> str:
    """Why there is no report: what kept every unit from its work, or where was looked in vain."""
    ledger = run.ledger
    states = ledger.units.values()
    if states and all(state.status in ("failed", "budget") for state in states):
        return "; ".join(dict.fromkeys(state.error or f"unit {state.unit.id} failed" for state in states))
    where = ", ".join(run.corpus_names) or "no source was given"
    queries = list(dict.fromkeys(search.query for search in ledger.searches))
    tried = f"{len(queries)} search(es) and {len(ledger.reads)} read(s)"
    errors = [state.error for state in states if state.error]
    told = f"not found in {where}: {run.request.question} ({tried} gave no evidence"
    return f"{told}; {'; '.join(dict.fromkeys(errors))})" if errors else f"{told})"


def _unit_ended(unit: Unit, answer: RoleAnswer) -> UnitEnded:
    usable = answer.status in ("completed", "partial")
    finding = (
        msgspec.convert(answer.value, Finding)
        if usable and answer.value is not None
        else Finding(findings="")
    )
    status: UnitStatus = "budget" if answer.ceiling is not None else answer.status
    return UnitEnded(
        unit=unit.id,
        status=status,
        findings=finding.findings,
        unresolved=finding.unresolved,
        limitations=finding.limitations,
        error=answer.error,
    )


def _status(ledger: Ledger, plan: CheckedPlan, answer: RoleAnswer) -> Literal["completed", "partial"]:
    whole = all(state.status == "completed" for state in ledger.units.values())
    return "completed" if whole and not plan.fallback and answer.status == "completed" else "partial"


def _shortfalls(ledger: Ledger, plan: CheckedPlan, answer: RoleAnswer) -> str | None:
    told = [plan.notes[-1].rstrip(".")] if plan.fallback and plan.notes else list[str]()
    told += [
        f"unit {state.unit.id} ({state.unit.title}) {state.status}: {state.error or 'no reason given'}"
        for state in ledger.units.values()
        if state.status != "completed"
    ]
    told += [answer.error] if answer.error else []
    return "; ".join(told) or None
