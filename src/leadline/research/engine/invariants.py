"""The invariants of runs: nothing is evidence, judged or over that the log of the run does not bear out."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from leadline.core.session.blobs import Blobs
from leadline.core.session.codec import Header
from leadline.core.session.errors import BlobError
from leadline.core.session.events import Event
from leadline.core.session.invariants import Invariants, LogInvariant, rule_of_one_event
from leadline.core.session.log import BeforeAppend
from leadline.kernel.context import Context
from leadline.research.events import (
    RESEARCH_EVENTS,
    USABLE_OUTCOMES,
    Drafted,
    Ended,
    QuoteRecorded,
    Resumed,
    RoleEnded,
    RoleStarted,
    Source,
    SourceFound,
    Started,
    UnitEnded,
    UnitStarted,
    VerdictGiven,
    Withdrawn,
)
from leadline.research.ledger.leaves import leaves

# --- the order of a run ------------------------------------------------------------------------------------


class Course(msgspec.Struct, frozen=True):
    """How far a run has got."""

    started: bool = False
    ended: bool = False
    units: Mapping[str, bool] = {}
    """Units that were started, and whether they are over."""
    roles: Mapping[tuple[str, int], tuple[str, bool]] = {}
    """By key and attempt: the child, and whether it has ended for good."""


def _no_course(header: Header) -> Course:
    return Course()


def _goes_on(course: Course, event: Event) -> Course:
    match event:
        case Started():
            return msgspec.structs.replace(course, started=True)
        case Ended():
            return msgspec.structs.replace(course, ended=True)
        case Resumed():
            # What ended may go on and end again.
            return msgspec.structs.replace(
                course,
                ended=False,
                units=dict.fromkeys(course.units, False),
                roles={key: (child, False) for key, (child, _) in course.roles.items()},
            )
        case UnitStarted():
            return msgspec.structs.replace(course, units={**course.units, event.unit.id: False})
        case UnitEnded():
            return msgspec.structs.replace(course, units={**course.units, event.unit: True})
        case RoleStarted():
            return msgspec.structs.replace(
                course, roles={**course.roles, (event.key, event.attempt): (event.child, False)}
            )
        case RoleEnded():
            return msgspec.structs.replace(
                course, roles={**course.roles, (event.key, event.attempt): (event.child, True)}
            )
        case _:
            return course


def _in_order(course: Course, before: BeforeAppend) -> str | None:
    event = before.event
    if isinstance(event, Started):
        return "the run starts a second time" if course.started else None
    if not course.started:
        return f"{event.TYPE} stands in front of the start of the run"
    if course.ended and not isinstance(event, Resumed):
        return f"{event.TYPE} stands behind the end of the run"
    return _piece(course, event)


def _piece(course: Course, event: Event) -> str | None:
    match event:
        case UnitEnded() if course.units.get(event.unit):
            return f"unit {event.unit} ends a second time"
        case UnitEnded() if event.unit not in course.units and event.status in ("completed", "partial"):
            return f"unit {event.unit} ends {event.status} and was not started"
        case RoleStarted() if (event.key, event.attempt) in course.roles:
            return f"attempt {event.attempt} at {event.key} starts a second time"
        case RoleEnded():
            child, over = course.roles.get((event.key, event.attempt), (None, False))
            if child != event.child:
                return f"attempt {event.attempt} at {event.key} ends in {event.child}, it is made in {child}"
            return f"attempt {event.attempt} at {event.key} ends a second time" if over else None
        case _:
            return None


COURSE = LogInvariant(
    name="research/course",
    holds="A run starts once and first and says nothing behind its end; units and roles end once, after they started.",
    init=_no_course,
    check=_in_order,
    apply=_goes_on,
    types=frozenset(kind.TYPE for kind in RESEARCH_EVENTS),
)

# --- evidence ----------------------------------------------------------------------------------------------


class Evidence(msgspec.Struct, frozen=True):
    """What a run has of sources and quotes."""

    sources: Mapping[str, Source] = {}
    quotes: Mapping[str, QuoteRecorded] = {}
    sentences: int | None = None
    """How many the latest draft has; None before there is one."""


def _no_evidence(header: Header) -> Evidence:
    return Evidence()


def _gathers(evidence: Evidence, event: Event) -> Evidence:
    match event:
        case SourceFound():
            return msgspec.structs.replace(
                evidence, sources={**evidence.sources, event.source.id: event.source}
            )
        case QuoteRecorded():
            return msgspec.structs.replace(evidence, quotes={**evidence.quotes, event.quote.id: event})
        case Withdrawn():
            kept = {id_: fact for id_, fact in evidence.quotes.items() if not _gone(fact, event)}
            return msgspec.structs.replace(evidence, quotes=kept)
        case Drafted():
            return msgspec.structs.replace(evidence, sentences=len(leaves(event.report)))
        case _:
            return evidence


def _gone(fact: QuoteRecorded, by: Withdrawn) -> bool:
    return fact.child == by.child and fact.seq is not None and fact.seq >= by.since


def _borne_out(evidence: Evidence, before: BeforeAppend) -> str | None:
    match before.event:
        case QuoteRecorded() as recorded:
            return _quoted(evidence, recorded)
        case Drafted() as drafted:
            named = {id_ for _, leaf in leaves(drafted.report) for id_ in leaf.evidence}
            unknown = sorted(named - evidence.quotes.keys())
            return (
                f"the draft names {', '.join(unknown)}, which is not evidence of the run" if unknown else None
            )
        case VerdictGiven() as verdict:
            if evidence.sentences is None:
                return "a verdict is given and there is no draft"
            if not 0 <= verdict.sentence < evidence.sentences:
                return (
                    f"a verdict is given on sentence {verdict.sentence}, the draft has {evidence.sentences}"
                )
            return None
        case _:
            return None


def _quoted(evidence: Evidence, recorded: QuoteRecorded) -> str | None:
    quote = recorded.quote
    if quote.id in evidence.quotes:
        return f"there is a quote {quote.id} already"
    unit, _, number = quote.id.rpartition(".e")
    if unit != quote.unit or not number.isdigit():
        return f"quote {quote.id} has no id of unit {quote.unit}"
    source = evidence.sources.get(quote.source)
    if source is None:
        return f"quote {quote.id} is of source {quote.source}, which was not found"
    if source.outcome not in USABLE_OUTCOMES or source.snapshot != quote.snapshot:
        return f"quote {quote.id} is of another text than the one that was read of {quote.source} ({source.outcome})"
    if len(quote.text) != quote.end - quote.start:
        return f"quote {quote.id} has {len(quote.text)} code points, its span {quote.end - quote.start}"
    return None


EVIDENCE = LogInvariant(
    name="research/evidence",
    holds="A quote is of a source that was read, under an id of its unit; a draft names quotes that are there, a verdict a "
    "sentence that is there.",
    init=_no_evidence,
    check=_borne_out,
    apply=_gathers,
    types=frozenset(kind.TYPE for kind in (SourceFound, QuoteRecorded, Withdrawn, Drafted, VerdictGiven)),
)


def quoted_text(blobs: Blobs) -> LogInvariant[None]:
    """That a quote stands in the stored snapshot at its span, letter by letter."""

    def check(before: BeforeAppend) -> str | None:
        if not isinstance(before.event, QuoteRecorded):
            return None
        quote = before.event.quote
        try:
            text = blobs.get(quote.snapshot).decode("utf-8", "surrogatepass")
        except (BlobError, UnicodeDecodeError) as error:
            return f"the snapshot of quote {quote.id} cannot be read: {error}"
        if text[quote.start : quote.end] != quote.text:
            return f"quote {quote.id} is not what its snapshot has from {quote.start} to {quote.end}"
        return None

    return rule_of_one_event(
        "research/quoted-text",
        "A quote is what its snapshot, which is stored, has at its span.",
        check,
        QuoteRecorded,
        stored=False,
    )


def guard_runs(ctx: Context) -> None:
    """Register the invariants of runs, where there is a registry."""
    invariants = ctx.find(Invariants)
    if invariants is not None:
        invariants.register(ctx, COURSE)
        invariants.register(ctx, EVIDENCE)
        invariants.register(ctx, quoted_text(ctx.get(Blobs)))
