"""What the window writes to a log beside what it changes: failures, for people; they shape no request."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import msgspec

from leadline.core.session.events import Event

SummaryFault: TypeAlias = Literal[
    "timeout", "refused", "cut-off", "called-tools", "empty", "too-long", "not-asked"
]
"""`too-long`: no shorter than what it stands for; `not-asked`: the request could not be made, or failed."""


class SummaryFailed(Event, frozen=True, kw_only=True):
    """A summary was asked for and cannot be used. What the model sees is unchanged."""

    TYPE: ClassVar[str] = "window/summary-failed"

    fault: SummaryFault
    detail: str = ""
    attempt: int = 1
    child: str = ""
    """Id of the session in which it was asked for."""


class Filling(msgspec.Struct, frozen=True):
    """A part of what fills a window."""

    what: str
    tokens: int
    messages: int


class WindowFull(Event, frozen=True, kw_only=True):
    """A request does not fit, and nothing more can be left out."""

    TYPE: ClassVar[str] = "window/full"

    window: int | None
    """Tokens that the model takes; None: not known."""
    tokens: int
    """Estimated tokens of the request."""
    parts: tuple[Filling, ...]
    """The largest first."""


WINDOW_EVENTS: tuple[type[Event], ...] = (SummaryFailed, WindowFull)
