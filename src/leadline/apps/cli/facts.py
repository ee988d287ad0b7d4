"""The facts of a run as lines that a person can follow: the same while it goes and when it is read again."""

from __future__ import annotations

from leadline.core.session.events import Event
from leadline.core.spend.money import money, shown
from leadline.research.events import (
    Drafted,
    Ended,
    Noted,
    Planned,
    QuoteRecorded,
    Resumed,
    RunUsage,
    Searched,
    SourceFound,
    SourceRead,
    Started,
    UnitEnded,
    UnitStarted,
    VersionFound,
)
from leadline.research.ledger.ledger import Ledger
from leadline.research.report.result import ResultUsage


def told_usage(usage: RunUsage | ResultUsage) -> str:
    """Tokens and cost, to follow the count of calls; nothing where nothing is paid for."""
    total = usage.tokens.total
    told = f", {total:,} tokens" if total else ""
    if usage.cost:
        return f"{told}, {shown(money(usage.cost))}"
    if usage.cost_at_least:
        return f"{told}, at least {shown(money(usage.cost_at_least))}"
    return told if usage.cost is not None or not total else f"{told}, cost not known"


class Facts:
    """Folds the facts of one run and says each of them that matters."""

    def __init__(self) -> None:
        self.ledger = Ledger()

    def line(self, event: Event) -> str | None:
        """What to say about the next fact of the run; None: nothing."""
        self.ledger.add(event)
        said = self._of_run(event) or self._of_source(event)
        return " ".join(said.split()) if said else None

    def _of_run(self, event: Event) -> str | None:
        match event:
            case Started():
                return f"run {event.run}: {event.method} with {event.model}"
            case Resumed():
                return f"goes on after {event.spent_s:.1f} s"
            case Planned():
                return f"plan: {len(event.units)} unit(s): " + "; ".join(unit.title for unit in event.units)
            case UnitStarted():
                again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
                return f"{event.unit.id} researches: {event.unit.question}{again}"
            case UnitEnded():
                status = "stopped by the budget" if event.status == "budget" else event.status
                found = len(self.ledger.evidence_of(event.unit))
                why = f": {event.error}" if event.error else ""
                return f"{event.unit} {status}, {found} quote(s){why}"
            case Drafted():
                return "report drafted; checking every sentence"
            case Noted():
                return f"note: {event.text}"
            case Ended():
                return (
                    f"{event.status} after {event.usage.wall_s:.1f} s, {event.usage.calls} model call(s)"
                    f"{told_usage(event.usage)}"
                )
            case _:
                return None

    def _of_source(self, event: Event) -> str | None:
        match event:
            case Searched():
                return f"{event.unit} searched “{event.query}”: {len(event.sources)} hit(s)"
            case SourceRead():
                return f"{event.unit} read {self._name(event.source)}"
            case QuoteRecorded():
                return f"{event.quote.id} from {self._name(event.quote.source)}"
            case VersionFound():
                return f"{self._name(event.newer)} is a newer version of {self._name(event.older)}"
            case SourceFound() if not self.ledger.usable(event.source.id):
                return f"cannot use {event.source.location}: {event.source.reason}"
            case _:
                return None

    def _name(self, source_id: str) -> str:
        source = self.ledger.sources.get(source_id)
        return source.location if source else source_id
