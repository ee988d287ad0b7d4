"""The ledger of a run: everything known, as a fold of the run's events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from leadline.core.session.events import Event
from leadline.research.events import (
    UNFINISHED,
    USABLE_OUTCOMES,
    Drafted,
    Ended,
    Leaf,
    Noted,
    Planned,
    Quote,
    QuoteRecorded,
    Report,
    Request,
    Resumed,
    RunBudget,
    RunStatus,
    Searched,
    Source,
    SourceFound,
    SourceRead,
    Started,
    Unit,
    UnitEnded,
    UnitStarted,
    UnitStatus,
    VerdictGiven,
    VersionFound,
    Withdrawn,
)
from leadline.research.ledger.leaves import leaves

LedgerStatus: TypeAlias = RunStatus | Literal["pending", "running"]


@dataclass(frozen=True)
class UnitState:
    """A unit that was started, and how far it got."""

    unit: Unit
    attempt: int = 1
    child: str | None = None
    status: UnitStatus | Literal["running"] = "running"
    findings: str = ""
    unresolved: tuple[str, ...] = ()
    limitations: str | None = None
    error: str | None = None
    begun: bool = True
    """False where it was over before anybody was set to work on it."""


def _no_units() -> dict[str, UnitState]:
    return {}


@dataclass
class Ledger:
    """What a run knows. Read it; it changes through `add` alone.

    The state is a pure function of the events in their order: adding them one by one and folding them all
    again give equal ledgers. Events of other packages are passed over. Folding never fails, whatever the order.
    """

    started: Started | None = None
    plan: Planned | None = None
    units: dict[str, UnitState] = field(default_factory=_no_units)
    """Units that were started, in the order of the plan; others behind them as they came."""
    searches: list[Searched] = field(default_factory=list[Searched])
    sources: dict[str, Source] = field(default_factory=dict[str, Source])
    """By id, in the order in which they were first found."""
    reads: list[SourceRead] = field(default_factory=list[SourceRead])
    versions: list[VersionFound] = field(default_factory=list[VersionFound])
    quotes: dict[str, Quote] = field(default_factory=dict[str, Quote])
    """By evidence id, in the order of recording."""
    cited: dict[str, QuoteRecorded] = field(default_factory=dict[str, QuoteRecorded])
    """The fact that recorded each quote, by evidence id; it names the call."""
    draft: Report | None = None
    verdicts: dict[int, tuple[VerdictGiven, ...]] = field(default_factory=dict[int, tuple[VerdictGiven, ...]])
    """By sentence index of the draft; the last one of a sentence holds."""
    draft_outdated: bool = False
    """Whether units that had failed when it was drafted were tried again since: the next draft takes its place."""
    draft_of_end: bool = False
    """Whether the draft is only what an end without a report put together."""
    noted: list[Noted] = field(default_factory=list[Noted])
    resumed: list[Resumed] = field(default_factory=list[Resumed])
    """Each time the run was taken up again."""
    ended: Ended | None = None

    @classmethod
    def of(cls, events: Iterable[Event]) -> Ledger:
        """The ledger after these events."""
        ledger = cls()
        for event in events:
            ledger.add(event)
        return ledger

    def add(self, event: Event) -> None:
        """Fold one more event into the state."""
        match event:
            case Started():
                self.started = event
            case Planned():
                self.plan = event
            case UnitStarted():
                self._set_unit(UnitState(event.unit, event.attempt, event.child))
            case UnitEnded():
                self._end_unit(event)
            case Drafted():
                self.draft, self.draft_of_end, self.verdicts = event.report, event.of_end, {}
                self.draft_outdated = False
            case VerdictGiven():
                self.verdicts[event.sentence] = (*self.verdicts.get(event.sentence, ()), event)
            case Noted():
                self.noted.append(event)
            case Ended():
                self.ended = event
            case Resumed():
                self._resume(event)
            case _:
                self._add_source_event(event)

    def _add_source_event(self, event: Event) -> None:
        match event:
            case Searched():
                self.searches.append(event)
            case SourceFound():
                self.sources[event.source.id] = event.source
            case SourceRead():
                self.reads.append(event)
            case VersionFound():
                if event not in self.versions:
                    self.versions.append(event)
            case QuoteRecorded():
                self.quotes[event.quote.id] = event.quote
                self.cited[event.quote.id] = event
            case Withdrawn():
                self._withdraw(event)
            case _:
                pass

    def _withdraw(self, event: Withdrawn) -> None:
        self.searches = [one for one in self.searches if not withdrawn(one, event)]
        self.reads = [one for one in self.reads if not withdrawn(one, event)]
        for evidence in [id_ for id_, fact in self.cited.items() if withdrawn(fact, event)]:
            del self.cited[evidence], self.quotes[evidence]

    def _resume(self, event: Resumed) -> None:
        """The run goes on: what was true of its end alone is true no more, and what failed may be tried again."""
        if self.ended is not None:
            again = [state for state in self.units.values() if state.status in UNFINISHED]
            for state in again:
                self.units[state.unit.id] = UnitState(
                    state.unit, state.attempt, state.child, begun=state.begun
                )
            if again and self.draft is not None:
                self.draft_outdated = True
                self.noted = [note for note in self.noted if not note.of_draft]
        self.ended = None
        self.resumed.append(event)
        self.noted = [note for note in self.noted if not note.of_end]
        if self.draft_of_end:
            self.draft, self.draft_of_end, self.verdicts = None, False, {}
            self.draft_outdated = False

    def _end_unit(self, event: UnitEnded) -> None:
        known = self.units.get(event.unit)
        planned = self.plan.units if self.plan else ()
        unit = known.unit if known else next((one for one in planned if one.id == event.unit), None)
        self._set_unit(
            UnitState(
                unit=unit or Unit(id=event.unit, title=event.unit, question=""),
                attempt=known.attempt if known else 1,
                child=known.child if known else None,
                status=event.status,
                findings=event.findings,
                unresolved=event.unresolved,
                limitations=event.limitations,
                error=event.error,
                begun=known is not None and known.begun,
            )
        )

    def _set_unit(self, state: UnitState) -> None:
        """Units that are at work at once begin in any order; a report tells of them in that of the plan."""
        known = {**self.units, state.unit.id: state}
        planned = [unit.id for unit in self.plan.units] if self.plan else []
        order = {unit: at for at, unit in enumerate(planned)}
        self.units = {one: known[one] for one in sorted(known, key=lambda one: order.get(one, len(order)))}

    # --- questions to the state ---

    @property
    def request(self) -> Request:
        """What was asked; an empty request before the run was started."""
        return self.started.request if self.started else Request(question="")

    @property
    def budget(self) -> RunBudget:
        """The ceilings that hold now."""
        given = [one.budget for one in self.resumed if one.budget is not None]
        return given[-1] if given else self.started.budget if self.started else RunBudget()

    @property
    def status(self) -> LedgerStatus:
        """`pending` before Started, `running` until Ended, then the status of the run."""
        if self.ended:
            return self.ended.status
        return "running" if self.started else "pending"

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the plan, then the run's, each once."""
        planned = self.plan.notes if self.plan else ()
        return tuple(dict.fromkeys((*planned, *(note.text for note in self.noted))))

    @property
    def sentences(self) -> tuple[Leaf, ...]:
        """The leaves of the draft in reading order: what a sentence index counts."""
        return tuple(leaf for _, leaf in leaves(self.draft)) if self.draft else ()

    def verdict(self, sentence: int) -> VerdictGiven | None:
        """The verdict that holds for a sentence."""
        given = self.verdicts.get(sentence)
        return given[-1] if given else None

    def usable(self, source: str) -> bool:
        """Whether a source was retrieved with an outcome that may be evidence."""
        found = self.sources.get(source)
        return found is not None and found.outcome in USABLE_OUTCOMES and bool(found.snapshot)

    def came_up_in(self, unit: str) -> tuple[str, ...]:
        """Ids of the sources that searches and reads of one unit gave, sorted."""
        found = {source for search in self.searches if search.unit == unit for source in search.sources}
        return tuple(sorted(found | {read.source for read in self.reads if read.unit == unit}))

    def evidence_of(self, unit: str) -> tuple[Quote, ...]:
        """The quotes of one unit, in the order of recording."""
        return tuple(quote for quote in self.quotes.values() if quote.unit == unit)

    def next_evidence_id(self, unit: str) -> str:
        """The id for the next quote of a unit; it does not depend on what other units do."""
        return f"{unit}.e{len(self.evidence_of(unit)) + 1}"


def withdrawn(fact: Searched | SourceRead | QuoteRecorded, by: Withdrawn) -> bool:
    """Whether a fact of a call counts no more."""
    return fact.child == by.child and fact.seq is not None and fact.seq >= by.since


def page_at(source: Source, start: int) -> int | None:
    """The page on which an offset of the snapshot lies; None where the pages are not known."""
    for page in source.pages:
        if page.start <= start < page.end:
            return page.number
    return None
