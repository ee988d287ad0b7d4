"""How far a run got: counts taken from its events and from the prose as written, never from the plan."""

from __future__ import annotations

from collections import Counter

import msgspec

from leadline.research.events import USABLE_OUTCOMES
from leadline.research.ledger.ledger import Ledger


class Blocked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A source that could not be used, and why."""

    title: str
    location: str
    outcome: str
    reason: str = ""


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """asked -> searched -> found -> read -> blocked -> cited -> unresolved."""

    asked: int
    """Units on which work was started."""
    searched: int
    """Queries that were answered."""
    found: int
    """Distinct sources that came up."""
    read: int
    """Distinct usable sources of which text was read."""
    blocked: int
    """Distinct sources that came up and could not be used as evidence."""
    cited: int
    """Distinct sources that the prose cites."""
    quotes: int
    """Quotes on record, cited or not."""
    unresolved: tuple[str, ...]
    """What was asked and is not answered, in words."""
    blocked_sources: tuple[Blocked, ...] = ()


def coverage(ledger: Ledger) -> Coverage:
    """The coverage of a run as it stands."""
    blocked = [source for source in ledger.sources.values() if source.outcome not in USABLE_OUTCOMES]
    read = {entry.source for entry in ledger.reads if ledger.usable(entry.source)}
    return Coverage(
        asked=sum(state.begun for state in ledger.units.values()),
        searched=len(ledger.searches),
        found=len(ledger.sources),
        read=len(read),
        blocked=len(blocked),
        cited=len(cited_sources(ledger)),
        quotes=len(ledger.quotes),
        unresolved=unresolved(ledger),
        blocked_sources=tuple(
            Blocked(title=one.title, location=one.location, outcome=one.outcome, reason=one.reason)
            for one in sorted(blocked, key=lambda source: (source.location, source.id))
        ),
    )


def cited_sources(ledger: Ledger) -> frozenset[str]:
    """Ids of the sources that the draft cites."""
    cited = (ledger.quotes.get(one) for leaf in ledger.sentences for one in leaf.evidence)
    return frozenset(quote.source for quote in cited if quote is not None)


def unresolved(ledger: Ledger) -> tuple[str, ...]:
    """What was asked and not answered: of each unit, then of the draft, each once."""
    told: list[str] = []
    for state in ledger.units.values():
        if state.status not in ("completed", "partial"):
            cause = state.error or ("it was not finished" if state.status == "running" else state.status)
            told.append(f"{state.unit.question or state.unit.title} ({cause})")
        told.extend(state.unresolved)
    if ledger.draft:
        told.extend(ledger.draft.unresolved)
    first: dict[str, str] = {}
    for text in told:
        if text.strip():
            first.setdefault(" ".join(text.casefold().split()), " ".join(text.split()))
    return tuple(first.values())


def outcomes(found: Coverage) -> dict[str, int]:
    """How many of the blocked sources had which outcome."""
    return dict(Counter(one.outcome for one in found.blocked_sources))
