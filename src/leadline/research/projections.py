"""What an index of sessions is told of runs: what was asked and found, how it ended, what it cost.

A row of its own, so that runs can be listed and searched where nothing can be researched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec import structs

from leadline.capabilities.session_index.seam import Facts, IndexSource, Passage, SessionIndex
from leadline.core.session.codec import Header, Logged
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.projection import Projection
from leadline.core.session.registry import EventTypes
from leadline.core.session.spending import Spending, merged, total
from leadline.core.spend.money import dollars
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.research.events import (
    RESEARCH_EVENTS,
    Drafted,
    Ended,
    Planned,
    QuoteRecorded,
    Resumed,
    RoleEnded,
    Started,
    UnitEnded,
)
from leadline.research.ledger.leaves import leaves


class RunFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of the fold."""

    facts: Facts = Facts()
    by: tuple[Spending, ...] = ()
    """Of the roles that are done, until the end tells the whole."""


def _begin(header: Header) -> RunFacts:
    return RunFacts()


def _apply(state: RunFacts, logged: Logged) -> RunFacts:
    try:
        match logged.type:
            case Started.TYPE:
                return structs.replace(state, facts=_started(logged.as_(Started)))
            case RoleEnded.TYPE:
                return _role_ended(state, logged.as_(RoleEnded))
            case Resumed.TYPE:
                return structs.replace(state, facts=structs.replace(state.facts, outcome=""))
            case Ended.TYPE:
                return structs.replace(state, facts=_ended(state.facts, logged.as_(Ended)))
            case _:
                return state
    except EventUndecodable:
        return state


def _started(event: Started) -> Facts:
    return Facts(question=event.request.question, method=event.method, model=event.model, corpora=event.roots)


def _role_ended(state: RunFacts, event: RoleEnded) -> RunFacts:
    of_earlier_versions = Spending(
        purpose="", what="", calls=event.calls, tokens=event.tokens, unpriced=event.calls
    )
    by = merged((*state.by, *(event.by or (of_earlier_versions,))))
    used = total(by)
    facts = structs.replace(
        state.facts,
        calls=used.calls,
        tokens=used.tokens.total,
        cost=dollars(used.cost) if used.paid.complete else None,
        currency="USD" if used.paid.complete or used.cost else None,
        cost_at_least=dollars(used.cost) if used.cost and not used.paid.complete else None,
    )
    return RunFacts(facts, by)


def _ended(facts: Facts, event: Ended) -> Facts:
    used = event.usage
    return structs.replace(
        facts,
        outcome=event.status,
        calls=used.calls,
        tokens=used.tokens.total,
        cost=used.cost,
        currency=used.currency,
        cost_at_least=used.cost_at_least,
    )


def _asked(logged: Logged) -> Iterable[Passage]:
    request = logged.as_(Started).request
    text = "\n".join(part for part in (request.purpose, request.context) if part)
    yield Passage(place="question", text=text, key="context")


def _planned(logged: Logged) -> Iterable[Passage]:
    units = logged.as_(Planned).units
    text = "\n".join(f"{unit.title}\n{unit.question}\n{unit.objective}" for unit in units)
    yield Passage(place="transcript", text=text, key="plan")


def _found(logged: Logged) -> Iterable[Passage]:
    event = logged.as_(UnitEnded)
    yield Passage(place="transcript", text=event.findings, key=f"findings of {event.unit}")


def _quoted(logged: Logged) -> Iterable[Passage]:
    quote = logged.as_(QuoteRecorded).quote
    yield Passage(place="quote", text=f"{quote.text}\n{quote.claim}", key=quote.id)


def _drafted(logged: Logged) -> Iterable[Passage]:
    report = logged.as_(Drafted).report
    lines = [report.title]
    heading = ""
    for section, leaf in leaves(report):
        if section != heading:
            heading = section
            lines.append(heading)
        lines.append(leaf.text)
    yield Passage(place="report", text="\n".join((*lines, *report.unresolved)), key="report")


_TEXTS: Mapping[str, Callable[[Logged], Iterable[Passage]]] = {
    Started.TYPE: _asked,
    Planned.TYPE: _planned,
    UnitEnded.TYPE: _found,
    QuoteRecorded.TYPE: _quoted,
    Drafted.TYPE: _drafted,
}

RUNS: IndexSource[RunFacts] = IndexSource(
    facts=Projection(
        key="research/facts",
        version=2,
        state=RunFacts,
        init=_begin,
        apply=_apply,
        view=lambda state: state.facts,
        types=frozenset({Started.TYPE, RoleEnded.TYPE, Resumed.TYPE, Ended.TYPE}),
    ),
    texts=_TEXTS,
)
"""What the events of research say of a session."""


async def _mount(ctx: Context, config: None) -> None:
    ctx.get(EventTypes).register(ctx, *RESEARCH_EVENTS)
    ctx.get(SessionIndex).register(ctx, RUNS)


plugin: Plugin[None] = Plugin("runs-in-index", _mount, needs=(EventTypes, SessionIndex))
