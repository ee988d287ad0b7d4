"""Mounts the registry of invariants, with those of every session log: numbers of turns and steps, and what stands in them."""

from __future__ import annotations

import msgspec

from leadline.core.config import ConfigParser
from leadline.core.session.codec import Header
from leadline.core.session.events import (
    ApprovalAsked,
    ApprovalDecided,
    AssistantChunk,
    AssistantSaid,
    Event,
    LlmRetry,
    RequestEnded,
    RequestSent,
    SeedEnded,
    StepEnd,
    StepStart,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnResumed,
    TurnStart,
    UserEntered,
)
from leadline.core.session.invariants import Invariants, InvariantsConfig, LogInvariant
from leadline.core.session.log import BeforeAppend
from leadline.core.session.store import SessionStore
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin

_EDGES = (TurnStart, TurnResumed, TurnEnd, StepStart, StepEnd, SeedEnded)
_INSIDE = (
    UserEntered,
    RequestSent,
    RequestEnded,
    LlmRetry,
    AssistantChunk,
    AssistantSaid,
    ToolCalled,
    ApprovalAsked,
    ApprovalDecided,
    ToolAnswered,
)


class Stand(msgspec.Struct, frozen=True):
    """Which turn and step a log is in."""

    turn: int = 0
    open: bool = False
    step: int = 0
    step_open: bool | None = False
    """None: behind a turn/resumed that may have opened it again."""


def _stand(header: Header) -> Stand:
    return Stand()


def stands(stand: Stand, event: Event) -> Stand:
    """Where the log stands after `event`; believes whatever it says."""
    match event:
        case TurnStart():
            return Stand(max(stand.turn, event.turn), open=True)
        case TurnEnd():
            return msgspec.structs.replace(
                stand, turn=max(stand.turn, event.turn), open=False, step_open=False
            )
        case TurnResumed():
            step_open = stand.step_open if stand.open else None
            return msgspec.structs.replace(stand, open=True, step_open=step_open)
        case StepStart():
            return msgspec.structs.replace(stand, step=event.step, step_open=True)
        case StepEnd():
            return msgspec.structs.replace(stand, step_open=False)
        case SeedEnded():
            return Stand(stand.turn)
        case _:
            return stand


def _follows(stand: Stand, before: BeforeAppend) -> str | None:
    event = before.event
    match event:
        case TurnStart() if stand.open:
            return f"turn {event.turn} starts while turn {stand.turn} is open"
        case TurnStart() if event.turn != stand.turn + 1:
            return f"turn {event.turn} starts behind turn {stand.turn}"
        case TurnEnd() | TurnResumed() if event.turn != stand.turn:
            return f"{event.TYPE} names turn {event.turn}, the latest is {stand.turn}"
        case TurnEnd() if not stand.open or stand.step_open:
            return (
                f"turn {event.turn} ends, and {'is not open' if not stand.open else f'step {stand.step} is'}"
            )
        case StepStart() if not stand.open or event.turn != stand.turn or stand.step_open:
            return f"step {event.step} of turn {event.turn} starts while {_told(stand)}"
        case StepStart() if event.step != stand.step + 1:
            return f"step {event.step} starts behind step {stand.step}"
        case StepEnd() if (event.turn, event.step) != (stand.turn, stand.step) or stand.step_open is False:
            return f"step {event.step} of turn {event.turn} ends while {_told(stand)}"
        case _:
            return None


def _within(stand: Stand, before: BeforeAppend) -> str | None:
    event = before.event
    if not isinstance(event, _INSIDE) or event.turn is None:
        return None
    if isinstance(event, ToolAnswered) and event.synthesised:
        return None  # a repair: it closes what another writer left open, wherever that was
    if (
        stand.open
        and stand.step_open is not False
        and (event.turn, event.step)
        == (
            stand.turn,
            stand.step,
        )
    ):
        return None
    return f"{event.TYPE} names step {event.step} of turn {event.turn} while {_told(stand)}"


def _told(stand: Stand) -> str:
    if not stand.open:
        return f"no turn is open behind turn {stand.turn}"
    return f"step {stand.step} of turn {stand.turn} is {'closed' if stand.step_open is False else 'open'}"


TURNS = LogInvariant(
    name="session/turns",
    holds="Turns are numbered from 1 and steps from 1 in each turn, by one, and none overlaps another.",
    init=_stand,
    check=_follows,
    apply=stands,
    types=frozenset(kind.TYPE for kind in _EDGES),
)

INSIDE_STEP = LogInvariant(
    name="session/inside-step",
    holds="What names a turn and a step is written while that step is open.",
    init=_stand,
    check=_within,
    apply=stands,
    types=frozenset(kind.TYPE for kind in (*_EDGES, *_INSIDE)),
)

SESSION_INVARIANTS = (TURNS, INSIDE_STEP)


async def _apply(ctx: Context, config: InvariantsConfig) -> None:
    invariants = Invariants(ctx, config)
    ctx.provide(Invariants, invariants)
    invariants.register(ctx, *SESSION_INVARIANTS)
    if config.enabled:
        ctx.get(SessionStore).veto(ctx, invariants.veto)


plugin: Plugin[InvariantsConfig] = Plugin(
    "invariants",
    _apply,
    config=ConfigParser(InvariantsConfig),
    needs=(SessionStore,),
    provides=(Invariants,),
)
