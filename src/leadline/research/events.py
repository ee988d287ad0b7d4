"""The facts of a research run: the `research/*` events, and the values that they carry.

Every event holds the state after it (whole values, no deltas), so that the ledger is a fold of them. Only the
engine appends them, and only to the session of the run; what was done by a child agent names the child's
session and the sequence number there.

A run is, in this order: Started, Planned, then for each unit UnitStarted .. UnitEnded with the facts about
sources and quotes between, Drafted, one VerdictGiven a sentence, Ended. Several units interleave. Around each
piece of work that a role does stand RoleStarted and RoleEnded. A run that is taken up again has Resumed there,
behind which it goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

import msgspec

from leadline.core.llm.jsonvalue import JsonObject
from leadline.core.llm.usage import Usage
from leadline.core.session.events import Event
from leadline.core.session.spending import Spending

Outcome: TypeAlias = Literal[
    "ok", "partial", "thin", "blocked", "paywalled", "unsupported", "disallowed", "error"
]
"""How reading a source went. Only `ok` and `partial` can be evidence."""

USABLE_OUTCOMES: frozenset[str] = frozenset({"ok", "partial"})

RunStatus: TypeAlias = Literal["completed", "partial", "cancelled", "failed"]
RoleStatus: TypeAlias = Literal["completed", "partial", "cancelled", "failed"]
UnitStatus: TypeAlias = Literal["completed", "partial", "cancelled", "failed", "budget"]
"""`budget`: a ceiling of the run was reached before the unit had come to an end, or before it began."""
UNFINISHED: frozenset[UnitStatus] = frozenset({"failed", "cancelled", "budget"})
"""Units of a run that ended are tried again when it goes on."""
Polarity: TypeAlias = Literal["supporting", "opposing", "context"]
MatchKind: TypeAlias = Literal["exact", "normalised"]
Label: TypeAlias = Literal["finding", "analysis", "recommendation", "background"]
VerdictName: TypeAlias = Literal["supported", "contradicted", "not_established", "not_checked"]
CheckOutcome: TypeAlias = Literal["pass", "fail", "contradicts", "unsure", "not_applicable"]
CeilingName: TypeAlias = Literal["tokens", "cost", "calls", "seconds"]

BUDGET_REACHED = "budget_reached"
"""In the metadata of a run that a ceiling stopped: its name."""
KEEP = 0.15
"""Share of a budget that is kept for writing up, where nobody says another."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value inside an event. Fields that a later version adds are ignored by this one."""


# --- the request -------------------------------------------------------------------------------------------


class Request(Record, frozen=True, kw_only=True):
    """What the person asked for, as plain data."""

    question: str
    purpose: str | None = None
    context: str | None = None
    breadth: str = "balanced"
    format: str = "report"
    language: str | None = None
    """Language of the report; None: that of the question."""

    @property
    def words(self) -> str:
        """Everything the person said; it needs no evidence in the report."""
        return "\n".join(part for part in (self.question, self.purpose, self.context) if part)


class RunBudget(Record, frozen=True, kw_only=True):
    """Ceilings on a run, from its first call to its report; None is no ceiling."""

    tokens: int | None = None
    """All tokens of all calls, prompts included."""
    cost: float | None = None
    """US dollars."""
    calls: int | None = None
    """Calls that are paid for, failed attempts included."""
    seconds: float | None = None
    """Wall time that the run is at work."""
    keep: float | None = None
    """Share of each ceiling that only the writer may use; None: `KEEP`."""
    unit_share: float | None = None
    """Share of the rest that one unit may use; None: the same for every unit of the plan."""

    @property
    def kept(self) -> float:
        """Share of each ceiling that only the writer may use."""
        return KEEP if self.keep is None else self.keep

    @property
    def limited(self) -> bool:
        """Whether there is any ceiling."""
        return any(one is not None for one in (self.tokens, self.cost, self.calls, self.seconds))


NO_CEILINGS = RunBudget()


class Unit(Record, frozen=True, kw_only=True):
    """One part of the plan."""

    id: str
    """`u1`, `u2`, ... in plan order."""
    title: str
    question: str
    objective: str = ""


# --- sources and quotes ------------------------------------------------------------------------------------


class PageSpan(Record, frozen=True, kw_only=True):
    """Where a page lies in the extracted text, in Unicode code points; `end` is exclusive."""

    number: int
    start: int
    end: int


class FoundBy(Record, frozen=True, kw_only=True):
    """The tool call that first returned a source."""

    call: str
    query: str = ""
    rank: int | None = None
    """Position in the result list, from 1."""


class Source(Record, frozen=True, kw_only=True):
    """A document, whether or not it could be read."""

    id: str
    """As the tools name it; unique in the run."""
    key: str
    """Canonical key: what two finds of one document have in common."""
    title: str
    location: str
    """Corpus-relative path with `/`, or the full address that was fetched."""
    kind: str = "document"
    published: str | None = None
    """ISO date, or a prefix of one."""
    retrieved_at: str
    """ISO time in UTC."""
    outcome: Outcome
    reason: str = ""
    snapshot: str = ""
    """sha256 of the extracted text in UTF-8; empty when there is none."""
    bytes_sha256: str = ""
    media_type: str = ""
    method: str = ""
    method_version: str = ""
    pages: tuple[PageSpan, ...] = ()
    """Empty when the text has no known pages."""
    found_by: FoundBy | None = None
    part: str | None = None
    """`main`, `supplement`, ... where several files share one key."""


class Quote(Record, frozen=True, kw_only=True):
    """A span of a snapshot that was recorded as evidence."""

    id: str
    """`u1.e1`: the unit, then a number within the unit."""
    unit: str
    source: str
    snapshot: str
    start: int
    """In Unicode code points of the snapshot's text."""
    end: int
    text: str
    """Exactly the text of the span."""
    match: MatchKind
    page: int | None = None
    claim: str = ""
    polarity: Polarity = "supporting"


# --- the report as the writer returned it ------------------------------------------------------------------


class Leaf(Record, frozen=True, kw_only=True):
    """One sentence (or table cell) with the ids of its evidence."""

    text: str
    evidence: tuple[str, ...] = ()
    label: Label = "finding"


class Paragraph(Record, frozen=True, kw_only=True, tag_field="kind", tag="paragraph"):
    """Running sentences."""

    sentences: tuple[Leaf, ...]


class ItemList(Record, frozen=True, kw_only=True, tag_field="kind", tag="list"):
    """Items, each of one or more sentences."""

    items: tuple[tuple[Leaf, ...], ...]


class Table(Record, frozen=True, kw_only=True, tag_field="kind", tag="table"):
    """Rows of cells under a header."""

    header: tuple[str, ...]
    rows: tuple[tuple[Leaf, ...], ...]


Block: TypeAlias = Paragraph | ItemList | Table


class Section(Record, frozen=True, kw_only=True):
    """A heading and what stands under it."""

    heading: str
    blocks: tuple[Block, ...]


class Report(Record, frozen=True, kw_only=True):
    """What the writer returned: prose with evidence ids, without numbers, links or lists of sources."""

    title: str
    sections: tuple[Section, ...]
    unresolved: tuple[str, ...] = ()


# --- verdicts and usage ------------------------------------------------------------------------------------


class CheckRecord(Record, frozen=True, kw_only=True):
    """What one check said about one sentence."""

    name: str
    version: int
    outcome: CheckOutcome
    reason: str = ""


class RunUsage(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What the run used. Unknown is absent, never zero."""

    calls: int = 0
    """Calls to a model, failed attempts included."""
    tokens: Usage = Usage()
    cost: float | None = None
    """All that was paid; None: of a part of it the price is not known."""
    currency: str | None = None
    wall_s: float = 0.0
    cost_at_least: float | None = None
    """The part of the cost that is known, where another is not."""
    by: tuple[Spending, ...] = ()
    """By purpose and model."""


# --- events ------------------------------------------------------------------------------------------------


class Started(Event, frozen=True, kw_only=True):
    """The run exists. Appended before anything is asked of a model or a source."""

    TYPE: ClassVar[str] = "research/started"
    OPENS: ClassVar[str] = "run"

    run: str
    """Id of the run, which is the id of its session."""
    request: Request
    roots: tuple[str, ...] = ()
    """Names of the folders and files that may be searched (names, not paths of this machine)."""
    method: str = "adaptive"
    model: str = ""
    """`provider/name` of the model; what wrote the report, where `models` names no other writer."""
    models: Mapping[str, str] = {}
    """Roles that another model does, each with its `provider/name`."""
    windows: Mapping[str, int] = {}
    """Tokens that the model of each role takes, where that is known: what a role is given follows from it."""
    checks_version: str = ""
    mode: Literal["direct", "delegated"] = "direct"
    call: str | None = None
    """Id of the tool call on whose behalf the run is made, in the session of the parent."""
    of: str | None = None
    """Id of the run whose evidence and sources this one uses again."""
    budget: RunBudget = NO_CEILINGS
    """Its ceilings, configured ones included."""
    started_at: str = ""
    """ISO time in UTC."""

    @property
    def writer(self) -> str:
        """`provider/name` of the model that writes the report."""
        return self.models.get("writer", self.model)


class RoleStarted(Event, frozen=True, kw_only=True):
    """A role was given a piece of work; `child` is the session in which it does it."""

    TYPE: ClassVar[str] = "research/role-started"

    key: str
    """What the work is, unique in the run: the purpose, and the unit where it is about one."""
    attempt: int
    """From 1; a later attempt starts anew."""
    child: str


class RoleEnded(Event, frozen=True, kw_only=True):
    """What became of an attempt. One that came to an answer is a fact: nobody is asked for it again."""

    TYPE: ClassVar[str] = "research/role-ended"

    key: str
    attempt: int
    child: str
    status: RoleStatus
    value: JsonObject | None = None
    """What the role handed in, as its schema has it."""
    error: str | None = None
    unreachable: bool = False
    """Whether it failed because the model cannot be used at all."""
    exhausted: bool = False
    """Whether it used up what one role may spend."""
    ceiling: CeilingName | None = None
    """The ceiling of the run that stopped it; it goes on where the run does with a higher one."""
    calls: int = 0
    """Model calls of the attempt, failed ones included."""
    tokens: Usage = Usage()
    """What providers reported for them."""
    by: tuple[Spending, ...] = ()
    """All that it used, what its own children did included; empty in runs of earlier versions."""


class InFlight(Record, frozen=True, kw_only=True):
    """A model call that was sent and whose answer never came to the log."""

    child: str
    """The session that made it."""
    seq: int
    """Of its `request/sent` there."""
    purpose: str
    model: str
    idempotency_key: str
    """Under which it is sent again."""


class Resumed(Event, frozen=True, kw_only=True):
    """The run is taken up again, by a later process or after its end.

    An end that stands before it, and what was written for that end alone, counts no more.
    """

    TYPE: ClassVar[str] = "research/resumed"
    OPENS: ClassVar[str] = "run"

    resumed_at: str = ""
    """ISO time in UTC."""
    spent_s: float = 0.0
    """Seconds that the run had been at work before."""
    in_flight: tuple[InFlight, ...] = ()
    """Model calls that are sent again and may be billed twice."""
    budget: RunBudget | None = None
    """The ceilings from now on; None: as before."""


class Planned(Event, frozen=True, kw_only=True):
    """What will be researched. A later plan replaces an earlier one."""

    TYPE: ClassVar[str] = "research/planned"

    brief: str
    units: tuple[Unit, ...]
    fallback: bool = False
    """The planner gave nothing usable; the question stands for the plan."""
    notes: tuple[str, ...] = ()


class UnitStarted(Event, frozen=True, kw_only=True):
    """Work on a unit begins, by the child session that is named."""

    TYPE: ClassVar[str] = "research/unit-started"

    unit: Unit
    attempt: int = 1
    child: str | None = None


class Searched(Event, frozen=True, kw_only=True):
    """A query was answered. `sources` are the ids of its hits, best first."""

    TYPE: ClassVar[str] = "research/searched"

    unit: str | None
    query: str
    sources: tuple[str, ...] = ()
    child: str | None = None
    seq: int | None = None


class SourceFound(Event, frozen=True, kw_only=True):
    """What is known of a source. A later event about the same id replaces the earlier one."""

    TYPE: ClassVar[str] = "research/source-found"

    source: Source


class SourceRead(Event, frozen=True, kw_only=True):
    """Text of a source came back. `start` to `end` is the range, in code points of the snapshot."""

    TYPE: ClassVar[str] = "research/source-read"

    source: str
    start: int
    end: int
    unit: str | None = None
    child: str | None = None
    seq: int | None = None


class VersionFound(Event, frozen=True, kw_only=True):
    """Two sources are versions of one document; the newer supersedes the older."""

    TYPE: ClassVar[str] = "research/version-found"

    newer: str
    older: str
    reason: str = ""


class QuoteRecorded(Event, frozen=True, kw_only=True):
    """A quote was found in its snapshot and is evidence from now on."""

    TYPE: ClassVar[str] = "research/quote-recorded"

    quote: Quote
    child: str | None = None
    seq: int | None = None


class Withdrawn(Event, frozen=True, kw_only=True):
    """What the run had written down of calls that their own session does not know any more, as after a power cut.

    The child is asked again from there on; what it searches, reads and records then takes the place of this.
    """

    TYPE: ClassVar[str] = "research/withdrawn"

    child: str
    since: int
    """Number of the first event that the child's log lacks: facts that cite it or a later one count no more."""


class UnitEnded(Event, frozen=True, kw_only=True):
    """A unit is over; whatever its status, the quotes that it recorded stay evidence."""

    TYPE: ClassVar[str] = "research/unit-ended"

    unit: str
    status: UnitStatus
    findings: str = ""
    unresolved: tuple[str, ...] = ()
    limitations: str | None = None
    error: str | None = None


class Drafted(Event, frozen=True, kw_only=True):
    """The report as it will be rendered. A later draft replaces an earlier one and its verdicts."""

    TYPE: ClassVar[str] = "research/drafted"

    report: Report
    of_end: bool = False
    """Put together from the evidence because the run ended without a report; a run that goes on has none of it."""


class VerdictGiven(Event, frozen=True, kw_only=True):
    """What is to be thought of one sentence of the last draft, and who says so.

    Several may stand on one sentence (checks, then a model, then a person); the last one holds.
    """

    TYPE: ClassVar[str] = "research/verdict"

    sentence: int
    """Index of the leaf in the draft, in reading order, from 0."""
    verdict: VerdictName
    reason: str
    by: str = "checks"
    """`checks`, `model:<provider/name>` or `person:<name>`."""
    checks: tuple[CheckRecord, ...] = ()


class Noted(Event, frozen=True, kw_only=True):
    """Something that a reader of the report should know."""

    TYPE: ClassVar[str] = "research/noted"

    text: str
    of_end: bool = False
    """True of how the run ended; no longer true when it goes on."""
    of_draft: bool = False
    """True of the draft that follows; no longer true when another takes its place."""


def _no_metadata() -> dict[str, str | int | bool | None]:
    return {}


class Ended(Event, frozen=True, kw_only=True):
    """The run is over."""

    TYPE: ClassVar[str] = "research/ended"
    CLOSES: ClassVar[str] = "run"

    status: RunStatus
    error: str | None = None
    result_digest: str = ""
    """sha256 of the result JSON."""
    usage: RunUsage = RunUsage()
    ended_at: str = ""
    """ISO time in UTC."""
    metadata: dict[str, str | int | bool | None] = msgspec.field(default_factory=_no_metadata)
    """Further facts for `metadata` of the result."""


ResearchEvent: TypeAlias = (
    Started
    | RoleStarted
    | RoleEnded
    | Resumed
    | Planned
    | UnitStarted
    | Searched
    | SourceFound
    | SourceRead
    | VersionFound
    | QuoteRecorded
    | Withdrawn
    | UnitEnded
    | Drafted
    | VerdictGiven
    | Noted
    | Ended
)

RESEARCH_EVENTS: tuple[type[Event], ...] = (
    Started,
    RoleStarted,
    RoleEnded,
    Resumed,
    Planned,
    UnitStarted,
    Searched,
    SourceFound,
    SourceRead,
    VersionFound,
    QuoteRecorded,
    Withdrawn,
    UnitEnded,
    Drafted,
    VerdictGiven,
    Noted,
    Ended,
)
"""Every event type of this module, for registration with the session codec."""
