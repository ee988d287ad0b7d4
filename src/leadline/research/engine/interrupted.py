"""A run in the store that is to go on: whether it can, what was asked of it, and what was in flight when it stopped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, cast

from leadline.core.llm.request import ModelRef
from leadline.core.session.errors import SessionNotFound
from leadline.core.session.events import Event
from leadline.core.session.in_flight import in_flight
from leadline.core.session.log import Session
from leadline.core.session.store import SessionStore
from leadline.core.spend.account import Spent
from leadline.core.spend.money import dollars
from leadline.kernel.errors import LeadlineError
from leadline.research.engine.role_log import RoleLog
from leadline.research.events import (
    BUDGET_REACHED,
    Ended,
    InFlight,
    Resumed,
    RunBudget,
    Started,
    Withdrawn,
)
from leadline.research.evidence.record import OF_A_CALL, facts_of
from leadline.research.request import Breadth, ResearchRequest
from leadline.research.roles.purposes import ReportFormat

RUN_KIND = "research"


class Placed(Event, frozen=True, kw_only=True):
    """Where on this machine the corpus of a run is. Stays in the log: no bundle shows a path."""

    TYPE: ClassVar[str] = "run/placed"

    corpus: tuple[str, ...]
    """Absolute paths, as the run was given them."""
    listing: str = ""
    """sha256 of the blob with the list of its documents as they were then; empty in runs of earlier versions."""
    base_url: str = ""
    """Where the model was reached, where the run was given an address; without a name and a password in it."""


class NotResumable(LeadlineError):
    """The session is no run that could go on; says why, and what to do instead."""


@dataclass(frozen=True)
class Interrupted:
    """What the log of a run says about how to go on with it."""

    started: Started
    request: ResearchRequest
    facts: Sequence[Event]
    spent_s: float
    """Seconds that it was at work, in all the processes that it had."""
    budget: RunBudget
    """The ceilings that it had last."""
    stopped_by: str
    """The ceiling that ended it; empty where none did."""

    @property
    def model(self) -> ModelRef:
        """The model that it was started with."""
        return ModelRef.parse(self.started.model)


def interrupted(session: Session) -> Interrupted:
    """The run in `session`, if it can go on.

    Raises:
        NotResumable: it is no run, was never started, or is complete.
        SessionNotContinuable: its log cannot be written on, such as one of a newer format.
    """
    if session.header.kind != RUN_KIND:
        raise NotResumable(
            f"session {session.id} is of kind {session.header.kind!r}, not a run; `leadline resume {session.id}` "
            "goes on with an agent"
        )
    if session.obstacle is not None:
        raise session.obstacle
    facts = tuple(facts_of(session))
    started = next((fact for fact in facts if isinstance(fact, Started)), None)
    if started is None:
        raise NotResumable(
            f"run {session.id} stopped before it was started: nothing was asked of a model or a source; ask again"
        )
    last = next((fact for fact in reversed(facts) if isinstance(fact, Ended | Resumed)), None)
    if isinstance(last, Ended) and last.status == "completed":
        raise NotResumable(
            f"run {session.id} is complete; its report is at: leadline show {session.id} --report"
        )
    budgets = [fact.budget for fact in facts if isinstance(fact, Resumed) and fact.budget is not None]
    return Interrupted(
        started,
        _request(session, started),
        facts,
        _spent(session),
        budgets[-1] if budgets else started.budget,
        str(last.metadata.get(BUDGET_REACHED) or "") if isinstance(last, Ended) else "",
    )


def check_budget(run_id: str, before: Interrupted, budget: RunBudget, used: Spent) -> None:
    """Refuse to go on with a run that its budget ended while there is no more than there was.

    Raises:
        NotResumable: the ceiling that ended it was not raised above what is used.
    """
    raised: Mapping[str, tuple[str, float, float | None, float | None]] = {
        "tokens": ("--max-tokens", used.tokens, before.budget.tokens, budget.tokens),
        "cost": ("--max-cost", dollars(used.cost), before.budget.cost, budget.cost),
        "calls": ("--max-calls", used.calls, before.budget.calls, budget.calls),
        "seconds": ("--max-time", before.spent_s, before.budget.seconds, budget.seconds),
    }
    if before.stopped_by not in raised:
        return
    option, spent, had, has = raised[before.stopped_by]
    if had is None or has is None or (has > had and has > spent):
        return
    if budget.kept < before.budget.kept and has > spent:
        return
    raise NotResumable(
        f"run {run_id}: its budget is used up ({before.stopped_by}: the ceiling is {had:g}); "
        f"to go on, allow more in all: leadline resume {run_id} {option} {_twice(option, max(spent, had))}"
    )


def _twice(option: str, amount: float) -> str:
    """Twice the amount as it is typed behind an option: money as it is, all else whole."""
    if option == "--max-cost":
        return f"{amount * 2:.4g}"
    return f"{math.ceil(amount * 2)}{'s' if option == '--max-time' else ''}"


def _request(session: Session, started: Started) -> ResearchRequest:
    asked = started.request
    placed = session.last(Placed)
    return ResearchRequest(
        question=asked.question,
        corpus=tuple(Path(path) for path in placed.corpus) if placed else (),
        method=started.method,
        breadth=cast("Breadth", asked.breadth),
        format=cast("ReportFormat", asked.format),
        language=asked.language,
        purpose=asked.purpose,
        context=asked.context,
        model=ModelRef.parse(started.model),
    )


def _spent(session: Session) -> float:
    """From the first fact, and each time it was taken up, to the last one before the run stopped."""
    spent, began, before = 0.0, None, None
    for line in session.logged:
        if began is None or before is None:
            began = line.t
        elif line.type == Resumed.TYPE:
            spent, began = spent + before - began, line.t
        before = line.t
    return max(0.0, spent + (before - began if began is not None and before is not None else 0.0))


async def lost_calls(store: SessionStore, facts: Sequence[Event]) -> tuple[Withdrawn, ...]:
    """What was written down of calls that the sessions of roles which go on do not have: a power cut took them."""
    ends = {attempt.child: 0 for attempt in RoleLog.of(facts).unsettled if attempt.child is not None}
    cited = dict.fromkeys(ends, -1)
    for fact in facts:
        if isinstance(fact, OF_A_CALL) and fact.child in cited and fact.seq is not None:
            cited[fact.child] = max(cited[fact.child], fact.seq)
    for child in [one for one, seq in cited.items() if seq >= 0]:
        with suppress(SessionNotFound):
            ends[child] = len(await store.read(child))
    return tuple(Withdrawn(child=child, since=end) for child, end in ends.items() if cited[child] >= end)


async def calls_in_flight(store: SessionStore, facts: Sequence[Event]) -> tuple[InFlight, ...]:
    """The model calls that were sent for roles which were cut off, and never answered; each is told once."""
    found: list[InFlight] = []
    told = {(one.child, one.seq) for fact in facts if isinstance(fact, Resumed) for one in fact.in_flight}
    for attempt in RoleLog.of(facts).unsettled:
        if attempt.child is None:
            continue
        try:
            child = await store.read(attempt.child)
        except SessionNotFound:
            continue
        found.extend(
            InFlight(
                child=child.id,
                seq=line.seq,
                purpose=sent.purpose,
                model=sent.model,
                idempotency_key=sent.idempotency_key,
            )
            for line, sent in in_flight(child)
            if (child.id, line.seq) not in told
        )
    return tuple(found)
