"""What a role of a run still has to know when the older part of its conversation is replaced: facts of the ledger."""

from __future__ import annotations

from leadline.research.events import Quote
from leadline.research.ledger.ledger import Ledger

_QUOTE = 160
"""Characters of a quote that are shown; the whole is in the ledger."""


def carried(ledger: Ledger, child: str) -> str | None:
    """The plan, and what the unit that `child` works on has found and recorded; None before there is a plan.

    Args:
        ledger: of the run.
        child: id of the session that does the work.
    """
    if ledger.plan is None:
        return None
    own = next((state for state in ledger.units.values() if state.child == child), None)
    lines = ["The units of the run:"]
    for unit in ledger.plan.units:
        state = ledger.units.get(unit.id)
        status = "not begun" if state is None else state.status
        # The question of another unit would only lead astray.
        mine = own is not None and own.unit.id == unit.id
        lines.append(
            f"- {unit.id} ({status}, this one is yours): {unit.question}"
            if mine
            else f"- {unit.id} ({status}): {unit.title}"
        )
    quotes = tuple(ledger.quotes.values()) if own is None else ledger.evidence_of(own.unit.id)
    if quotes:
        lines += ["", "Evidence that is recorded; these ids stand, record none of it again:"]
        lines += [_evidence(ledger, quote) for quote in quotes]
    elif own is not None:
        lines += ["", "No evidence is recorded yet."]
    known = ledger.came_up_in(own.unit.id) if own is not None else ()
    if known:
        lines += ["", "Sources that came up:"]
        lines += [f"- {name}: {_place(ledger, name)}" for name in known]
    return "\n".join(lines)


def _evidence(ledger: Ledger, quote: Quote) -> str:
    text = " ".join(quote.text.split())
    short = text if len(text) <= _QUOTE else f"{text[:_QUOTE].rstrip()}…"
    return f"- {quote.id} ({quote.polarity}, {_place(ledger, quote.source)}): {quote.claim} “{short}”"


def _place(ledger: Ledger, source: str) -> str:
    found = ledger.sources.get(source)
    return source if found is None else f"{found.location} ({found.outcome})"
