"""The invariants of delegation: what a child may use is what its parent may, and one result is handed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from leadline.core.agent.signals import AgentCreated
from leadline.core.session.events import Event, SeedEnded, StepStart, ToolAnswered, TurnResumed
from leadline.core.session.invariants import Invariants, LiveInvariant, LogInvariant, Tell
from leadline.core.tools.registry import ToolRegistry
from leadline.orchestration.subagent.capture import TOOL_NAME

if TYPE_CHECKING:
    from leadline.core.session.codec import Header
    from leadline.core.session.log import BeforeAppend
    from leadline.kernel.context import Context


class HandedIn(msgspec.Struct, frozen=True):
    """Whether a child has handed in what was asked of it."""

    done: bool = False


def _nothing(header: Header) -> HandedIn:
    return HandedIn()


def _hands_in(known: HandedIn, event: Event) -> HandedIn:
    match event:
        case SeedEnded():
            return HandedIn()
        case TurnResumed():
            return HandedIn(known.done and not event.void)
        case ToolAnswered() if _accepted(event):
            return HandedIn(done=True)
        case _:
            return known


def _may_hand_in(known: HandedIn, before: BeforeAppend) -> str | None:
    event = before.event
    if isinstance(event, ToolAnswered) and _accepted(event) and known.done:
        return f"call {event.message.call_id} hands in a second result"
    return None


def _accepted(event: ToolAnswered) -> bool:
    return event.message.name == TOOL_NAME and not event.message.is_error and event.root_call_id is None


ONE_RESULT = LogInvariant(
    name="subagent/one-result",
    holds="A child hands in one result; no later one is accepted.",
    init=_nothing,
    check=_may_hand_in,
    apply=_hands_in,
    types=frozenset(kind.TYPE for kind in (SeedEnded, StepStart, TurnResumed, ToolAnswered)),
)


def _watch_tools(ctx: Context, tell: Tell) -> None:
    tools = ctx.get(ToolRegistry)

    def created(signal: AgentCreated) -> None:
        agent, parent = signal.agent, signal.agent.spec.parent
        if parent is None or agent.spec.tools_allow is None:
            return
        mine, above = tools.view(agent.ctx.scope), tools.view(parent.ctx.scope)
        more = sorted(
            name
            for name, tool in mine.items()
            if above.get(name) is tool and name not in agent.spec.tools_allow
        )
        if more:
            tell(f"agent {agent.id}", f"it sees {', '.join(more)} of its parent, which it was not allowed")

    ctx.on(AgentCreated, created)


ALLOWED = LiveInvariant(
    name="subagent/allowed-tools",
    holds="Of its parent's tools a child sees those that it was allowed, and no other.",
    watch=_watch_tools,
)


def guard_children(ctx: Context) -> None:
    """Register the invariants of delegation, where there is a registry."""
    invariants = ctx.find(Invariants)
    if invariants is not None:
        invariants.register(ctx, ONE_RESULT)
        invariants.register(ctx, ALLOWED)
