"""Words of the lines that calls of models stand in: what asks, what it waits for, what a line looks like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from leadline.core.llm.limits import RateLimits

WaitingFor: TypeAlias = Literal["slots", "requests", "tokens", "paused", "children", "budget"]
"""slots: all calls that may be under way are. requests, tokens: what a minute allows is used. paused: the
provider asked to wait. children: as many calls of agents with a parent are under way as may be. budget: what is left of
one is reserved by calls that are under way."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One call that wants to be made."""

    model: str
    """``provider/model``: whose line it stands in."""
    tokens: int = 0
    """Estimate of what it takes of the tokens of a minute, answer included."""
    group: str = ""
    """Whose turn it is: groups (the session at the root of a run) are served in turn, within one the first first."""
    priority: int = 0
    """Higher goes first, though never for ever."""
    child: bool = False
    """Whether it is made for an agent with a parent; those share one ceiling over all models."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a call that stands in line is told."""

    model: str
    why: WaitingFor
    ahead: int
    """Calls of the same line that may go before it, as it looks now."""
    seconds: float | None
    """Seconds until it can go on at the earliest; None where that depends on others."""


@dataclass(frozen=True, slots=True)
class LineState:
    """One line, as it is now."""

    model: str
    active: int
    """Calls of this process that are under way."""
    waiting: int
    """Calls of this process that stand in line."""
    max: int | None = None
    """Calls that may be under way at once, as configured."""
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    requests_used: int | None = None
    """Calls of the last minute, where they are counted."""
    tokens_used: int | None = None
    """Tokens of the last minute, where they are counted."""
    ceiling: int | None = None
    """Calls that may be under way at once, as learned from refusals."""
    learned: RateLimits | None = None
    """What the provider said last, with the seconds until reset counted from now."""
    paused_s: float | None = None
    """Seconds for which nobody of the line goes on."""
    shared: bool = False
    """Whether other processes of this machine keep to it too."""
