"""The seam of session indexes: lists and searches over all sessions, and what a plugin tells them of its own.

An index is a read model: it can be thrown away at any time and is made again from the logs. Where it
and a log disagree, the log is right, and the index is brought up to date before it answers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeAlias, TypeVar

import msgspec

from leadline.core.session.codec import Logged
from leadline.core.session.projection import Projection
from leadline.kernel.context import Context
from leadline.kernel.errors import LeadlineError
from leadline.kernel.services import Service

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

Status: TypeAlias = Literal[
    "running",
    "interrupted",
    "completed",
    "partial",
    "failed",
    "cancelled",
    "finished",
    "idle",
    "unreadable",
]
"""running: a live process writes it. interrupted: its writer died inside a turn or run. completed, partial,
failed, cancelled: how a run ended. finished: the last turn of an agent was closed. idle: it never had one.
unreadable: its log cannot be used; `reason` says why."""

STATUSES: tuple[Status, ...] = (
    "running",
    "interrupted",
    "completed",
    "partial",
    "failed",
    "cancelled",
    "finished",
    "idle",
    "unreadable",
)

Place: TypeAlias = Literal["title", "question", "report", "quote", "transcript"]
"""Where in a session words were found."""


class QueryRefused(LeadlineError):
    """What was asked of an index makes no sense: a time, a status or a cursor that is none. Names it."""


class AmbiguousId(LeadlineError):
    """Several sessions begin with what was given as an id; the message names some of them."""

    def __init__(self, prefix: str, found: tuple[str, ...], more: bool) -> None:
        named = ", ".join(found) + (", ..." if more else "")
        super().__init__(f"{prefix!r} is the beginning of several ids ({named}); give more of it")
        self.prefix = prefix
        self.found = found


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """Which sessions are asked for. What is given must all be true of a session."""

    kind: str | None = None
    """`agent`, `research`, ..."""
    status: tuple[str, ...] = ()
    """Any of these; none given: any status."""
    since: str | None = None
    """Created at this ISO date or time, or later. Without an offset it is UTC."""
    until: str | None = None
    """Created at this ISO date or time, or earlier; a date includes its day."""
    title: str | None = None
    """Letters that stand in the title, whatever their case."""
    corpus: str | None = None
    """Letters that stand in the name of something that a run may search."""
    model: str | None = None
    """Letters that stand in `provider/name` of a model that was used."""
    min_cost: float | None = None
    max_cost: float | None = None
    """Sessions whose cost is not known have none that could be compared."""
    text: str | None = None
    """Words of which all stand together somewhere in it or in a child of it."""
    parent: str | None = None
    """Only what was made for or forked from this session."""
    roots_only: bool = True
    """Leave out what an agent or a run started for itself. Has no effect when `parent` is given."""
    limit: int = 50
    """From 1 to 1,000."""
    cursor: str | None = None
    """`Page.cursor` of the page before, asked with the same query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One session in a list. What is not known is None or empty, never zero."""

    id: str
    kind: str
    status: Status
    created_at: str
    """ISO time in UTC, to the second; empty where the log cannot be read."""
    modified_at: str
    """ISO time in UTC of the last write."""
    title: str = ""
    """Given by a person, else by a model, else cut from the first words."""
    question: str = ""
    """What a run was asked, or an agent was told first; whole."""
    method: str = ""
    model: str = ""
    """`provider/name` that was used last."""
    corpora: tuple[str, ...] = ()
    """Names of the folders and files that a run may search."""
    turns: int = 0
    calls: int = 0
    """Calls to models, failed ones included; those of a run include its children's."""
    tokens: int | None = None
    """All tokens that providers reported."""
    cost: float | None = None
    """All that was paid; None: of a part of it the price is not known."""
    currency: str | None = None
    cost_at_least: float | None = None
    """The part of the cost that is known, where another is not."""
    parent: str | None = None
    depth: int = 0
    """How many delegations lie between it and a session that a person started."""
    size: int = 0
    """Bytes of its log."""
    archived: bool = False
    reason: str = ""
    """Why it is unreadable, and what to do."""
    holder: str = ""
    """Who writes it: `process 4711 on this-host`. Empty when nobody does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A session in which words were found; once, at its best place."""

    summary: Summary
    """The session that a person started; words of children are found under it."""
    session: str
    """Id of the session whose log has the words: that one, or a child of it."""
    place: Place
    snippet: str
    """Some of the text around the words, in one line."""
    marks: tuple[tuple[int, int], ...] = ()
    """Where the words stand in `snippet`: start and end in code points."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of what was asked for, in order."""

    items: tuple[T, ...]
    cursor: str | None = None
    """Gives the next page; None when this is the last."""


# --- what a plugin tells of its sessions -------------------------------------------------------------------


class Facts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one plugin knows of a session. What it leaves empty, others may know."""

    outcome: str = ""
    """`completed`, `partial`, `failed` or `cancelled`, of a run that has ended."""
    title: str = ""
    """Given by a person or a model."""
    question: str = ""
    method: str = ""
    model: str = ""
    corpora: tuple[str, ...] = ()
    turns: int | None = None
    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    currency: str | None = None
    cost_at_least: float | None = None


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """Text of an event that can be searched for."""

    place: Place
    text: str
    key: str = ""
    """A later passage of the same place and key replaces an earlier one. Empty: it replaces none."""


@dataclass(frozen=True)
class IndexSource(Generic[S]):
    """What a plugin tells an index of the sessions whose events it owns."""

    facts: Projection[S, Facts]
    """Its version covers `texts` as well."""
    texts: Mapping[str, Callable[[Logged], Iterable[Passage]]] = field(
        default_factory=dict[str, Callable[[Logged], Iterable[Passage]]]
    )
    """By type of event: its text. Pure and total, as a projection is."""


class SessionIndex(Service, key="session_index"):
    """All sessions of the store, to list and to search. Every answer is up to date with the logs."""

    @abstractmethod
    def register(self, ctx: Context, source: IndexSource[S]) -> None:
        """Read sessions with `source` as well, for as long as the owner of `ctx` lives.

        Raises:
            DuplicateName: another one has the key of its projection.
            FiberInactive: the owner is unloading or disposed.
        """

    @abstractmethod
    async def list(self, query: ListQuery | None = None) -> Page[Summary]:
        """The sessions that are asked for, newest first, those that cannot be read last.

        Raises:
            QueryRefused: a time, a status, the limit or the cursor is none.
        """

    @abstractmethod
    async def search(
        self, text: str, *, kind: str | None = None, limit: int = 20, cursor: str | None = None
    ) -> Page[Hit]:
        """Sessions in which all words of `text` stand together, best first; where there is none, any of them.

        Words of Chinese and Japanese need no spaces around them. Titles, questions, reports, quotes and
        transcripts are searched.

        Raises:
            QueryRefused: there is no word in `text`; the limit or the cursor is none.
        """

    @abstractmethod
    async def summary(self, session_id: str) -> Summary:
        """One session.

        Raises:
            SessionNotFound: there is none of that id.
        """

    @abstractmethod
    async def resolve(self, prefix: str) -> str:
        """The full id of the one session whose id is or begins with `prefix`.

        Raises:
            SessionNotFound: no id does.
            AmbiguousId: several do.
        """

    @abstractmethod
    async def rebuild(self) -> None:
        """Forget everything and read all logs again."""
