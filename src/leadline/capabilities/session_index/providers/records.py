"""What the index keeps and gives, and the error that says that it cannot."""

from __future__ import annotations

from dataclasses import dataclass

from leadline.capabilities.session_index.providers.reading import Progress
from leadline.capabilities.session_index.seam import Place
from leadline.kernel.errors import LeadlineError

_MOST = (1 << 63) - 1


class IndexUnusable(LeadlineError):
    """The file of the index cannot be used; it is made anew or done without, so nobody else sees this."""

    def __init__(self, reason: str, *, damaged: bool) -> None:
        super().__init__(
            f"the index of sessions cannot be used: {reason}; delete its file to have it made anew"
        )
        self.damaged = damaged
        """Whether its content is at fault, and not the disk or a lock."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a store says of a session, and the stamp of its log at that time."""

    id: str
    stamp: str
    """Empty where it may change unseen, as while somebody writes it."""
    resting: str
    """Its status, as far as the store can tell."""
    kind: str
    created: float
    modified: float
    parent: str | None
    depth: int
    label: str
    size: int
    archived: bool
    reason: str
    holder: str


@dataclass(frozen=True, slots=True)
class Unread:
    """A session whose log has to be read."""

    id: str
    size: int
    seen: str
    """How the log was when it was looked at."""
    progress: Progress | None
    """How far it was read."""


@dataclass(frozen=True, slots=True)
class Row:
    """What the index knows of a session."""

    n: int
    id: str
    kind: str
    status: str
    created: float
    modified: float
    title: str
    label: str
    question: str
    method: str
    model: str
    corpora: str
    turns: int
    calls: int
    tokens: int | None
    cost: float | None
    currency: str | None
    cost_at_least: float | None
    parent: str | None
    depth: int
    size: int
    archived: int
    reason: str
    holder: str
    known: str


@dataclass(frozen=True, slots=True)
class Match:
    """A passage that matches."""

    row: int
    session: int
    place: Place


def bounded(number: int) -> int:
    """`number`, or the nearest that can be kept: a log that was altered may hold any."""
    return max(-_MOST, min(number, _MOST))
