"""Which calls of a log may have done something to the world: what was meant, and what is known to have come of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from leadline.core.session.derive import OUTCOME_UNKNOWN
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import ToolAnswered, ToolCalled
from leadline.core.tools.spec import READS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from leadline.core.session.log import Session

Became: TypeAlias = Literal["done", "failed", "not-started", "unknown", "open"]
"""`done`: it succeeded. `failed`: it ran and reported an error, so that part of it may be done. `not-started`: it was
refused or stopped before anything was done. `unknown`: its process died in it. `open`: the log ends before its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideEffect:
    """One call that declares more than reading."""

    seq: int
    """Number of its `tool/call`: the intent, which was durable before anything was done."""
    call_id: str
    tool: str
    effects: tuple[str, ...]
    """What the tool declares."""
    arguments: str
    """As the model wrote them."""
    turn: int | None
    step: int | None
    root_call_id: str | None
    """The model's call on whose behalf it was made; None where it is the model's own."""
    result_seq: int | None = None
    """Number of its `tool/result`; None where there is none."""
    became: Became = "open"
    error_code: str | None = None


def side_effects(session: Session) -> tuple[tuple[SideEffect, ...], Sequence[tuple[int, str]]]:
    """Every call that declares more than reading, in the order of the log; and results of such that nobody meant.

    Where a call was made again after its result was declared void, the latest result counts.
    """
    found: dict[tuple[int | None, int | None, str], SideEffect] = {}
    called: set[tuple[int | None, int | None, str]] = set()
    again: list[SideEffect] = []
    unmeant: list[tuple[int, str]] = []
    for line in session.logged:
        try:
            if line.type == ToolCalled.TYPE:
                call = line.as_(ToolCalled)
                place = (call.turn, call.step, call.call_id)
                called.add(place)
                if changes(call.side_effects):
                    if place in found:
                        again.append(found[place])
                    found[place] = _meant(line.seq, call)
            elif line.type == ToolAnswered.TYPE:
                answered = line.as_(ToolAnswered)
                place = (answered.turn, answered.step, answered.message.call_id)
                if place in found:
                    found[place] = replace(
                        found[place],
                        result_seq=line.seq,
                        became=_became(answered),
                        error_code=answered.error_code,
                    )
                elif place not in called and answered.started and changes(answered.side_effects):
                    reason = (
                        f"call {place[2]} of {answered.message.name} was run without an intent in the log"
                    )
                    unmeant.append((line.seq, reason))
        except EventUndecodable:
            continue
    return tuple(sorted([*found.values(), *again], key=lambda one: one.seq)), unmeant


def changes(effects: Iterable[str]) -> bool:
    """Whether declared effects are more than reading."""
    return not READS.issuperset(effects)


def _meant(seq: int, call: ToolCalled) -> SideEffect:
    return SideEffect(
        seq=seq,
        call_id=call.call_id,
        tool=call.name,
        effects=call.side_effects,
        arguments=call.arguments,
        turn=call.turn,
        step=call.step,
        root_call_id=call.root_call_id,
    )


def _became(answered: ToolAnswered) -> Became:
    if answered.error_code == OUTCOME_UNKNOWN:
        return "unknown"
    if not answered.started:
        return "not-started"
    return "failed" if answered.message.is_error else "done"
