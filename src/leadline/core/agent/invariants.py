"""The invariants of agents: what waits is what the log says, work alternates with rest, children end first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from leadline.core.agent.inbox import Queue
from leadline.core.agent.signals import (
    AgentCreated,
    AgentDisposed,
    AgentStatusChanged,
    InboxChanged,
    TurnEnded,
)
from leadline.core.session.events import Event, InboxSpliced, SeedEnded, TurnEnd, UserEntered
from leadline.core.session.invariants import Invariants, LiveInvariant, LogInvariant, Tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.core.agent.agent import Agent
    from leadline.core.agent.agents import Agents
    from leadline.core.llm.messages import UserMessage
    from leadline.core.session.codec import Header
    from leadline.core.session.log import BeforeAppend
    from leadline.kernel.context import Context


class Waiting(msgspec.Struct, frozen=True):
    """Ids of the messages that wait, in their order."""

    turn: tuple[str, ...] = ()
    step: tuple[str, ...] = ()

    def without(self, ids: tuple[str, ...]) -> Waiting:
        return Waiting(
            tuple(one for one in self.turn if one not in ids),
            tuple(one for one in self.step if one not in ids),
        )


def _empty(header: Header) -> Waiting:
    return Waiting()


def _waits(waiting: Waiting, event: Event) -> Waiting:
    match event:
        case SeedEnded():
            return Waiting()
        case UserEntered():
            return waiting.without((event.message.id, *event.claims))
        case InboxSpliced():
            left = waiting.without(event.removed)
            queued = left.turn if event.target == "next-turn" else left.step
            at = len(queued) if event.position is None else event.position
            queued = (*queued[:at], *(one.id for one in event.inserted), *queued[at:])
            return Waiting(queued, left.step) if event.target == "next-turn" else Waiting(left.turn, queued)
        case _:
            return waiting


def _may_move(waiting: Waiting, before: BeforeAppend) -> str | None:
    event = before.event
    queued = {*waiting.turn, *waiting.step}
    match event:
        case UserEntered():
            lost = set(event.claims) - queued
            return (
                f"message {event.message.id} claims {', '.join(sorted(lost))}, not queued" if lost else None
            )
        case InboxSpliced():
            return _spliced(waiting, queued, event)
        case _:
            return None


def _spliced(waiting: Waiting, queued: set[str], event: InboxSpliced) -> str | None:
    absent = set(event.removed) - queued
    if absent:
        return f"{', '.join(sorted(absent))} leave the queue without being in it"
    if bool(event.removed) != (event.outcome is not None):
        return "messages leave without an outcome, or there is one and none leaves"
    twice = {one.id for one in event.inserted} & (queued - set(event.removed))
    if twice:
        return f"{', '.join(sorted(twice))} enter the queue a second time"
    left = waiting.without(event.removed)
    room = len(left.turn if event.target == "next-turn" else left.step)
    if event.position is not None and not 0 <= event.position <= room:
        return f"position {event.position} is not one of a queue of {room}"
    return None


INBOX = LogInvariant(
    name="agent/inbox",
    holds="What leaves the queue, or is claimed from it, is in it; nothing is in it twice.",
    init=_empty,
    check=_may_move,
    apply=_waits,
    types=frozenset((InboxSpliced.TYPE, UserEntered.TYPE, SeedEnded.TYPE)),
)


def _watch_queues(ctx: Context, tell: Tell) -> None:
    def changed(signal: InboxChanged) -> None:
        agent = signal.agent
        logged = Queue.of(agent.session)
        if not same(agent.inbox.next_turn, logged.next_turn) or not same(
            agent.inbox.next_step, logged.next_step
        ):
            tell(f"agent {agent.id}", "what waits in its inbox is not what its log says")

    def same(some: Sequence[UserMessage], others: Sequence[UserMessage]) -> bool:
        return [one.id for one in some] == [one.id for one in others]

    ctx.on(InboxChanged, changed)


QUEUES = LiveInvariant(
    name="agent/queues",
    holds="After every change the queues of an agent are those that a new fold of its log gives.",
    watch=_watch_queues,
)


def _watch_status(ctx: Context, tell: Tell) -> None:
    running: set[str] = set()
    gone: set[str] = set()

    def changed(signal: AgentStatusChanged) -> None:
        agent, runs = signal.agent, signal.status == "running"
        if runs == (agent.id in running):
            tell(f"agent {agent.id}", f"it becomes {signal.status} and is so already")
        if runs and agent.id in gone:
            tell(f"agent {agent.id}", "it goes to work after it was disposed of")
        (running.add if runs else running.discard)(agent.id)

    def created(signal: AgentCreated) -> None:
        gone.discard(signal.agent.id)

    def disposed(signal: AgentDisposed) -> None:
        if signal.agent.id in running:
            tell(f"agent {signal.agent.id}", "it is disposed of while it works")
        gone.add(signal.agent.id)
        running.discard(signal.agent.id)

    def ended(signal: TurnEnded) -> None:
        latest = signal.agent.session.last(TurnEnd)
        if latest != signal.end:
            tell(f"agent {signal.agent.id}", "the end of a turn is told, and is not the latest in its log")

    ctx.on(AgentStatusChanged, changed)
    ctx.on(AgentCreated, created)
    ctx.on(AgentDisposed, disposed)
    ctx.on(TurnEnded, ended)


STATUS = LiveInvariant(
    name="agent/status",
    holds="An agent works and rests in turn, rests when it is disposed of, and tells of no turn's end that is not logged.",
    watch=_watch_status,
)


def family(agents: Agents) -> LiveInvariant:
    """That a child belongs to a live parent, one deeper, and ends before it."""

    def watch(ctx: Context, tell: Tell) -> None:
        def created(signal: AgentCreated) -> None:
            problem = _unrelated(signal.agent, agents)
            if problem is not None:
                tell(f"agent {signal.agent.id}", problem)

        def disposed(signal: AgentDisposed) -> None:
            gone = signal.agent
            left = [one.id for one in agents.live if one.spec.parent is gone]
            if left:
                tell(f"agent {gone.id}", f"it ends before {', '.join(left)}, which it started")

        ctx.on(AgentCreated, created)
        ctx.on(AgentDisposed, disposed)

    return LiveInvariant(
        name="agent/family",
        holds="A child is one deeper than its parent, which is alive when it comes and when it goes.",
        watch=watch,
    )


def _unrelated(agent: Agent, agents: Agents) -> str | None:
    parent, header = agent.spec.parent, agent.session.header
    if parent is None:
        return None
    if agents.find(parent.id) is not parent:
        return f"its parent {parent.id} is not alive"
    if header.depth != parent.depth + 1:
        return f"it is {header.depth} deep, its parent {parent.depth}"
    if header.parent != parent.id:
        return f"its log names {header.parent} as its parent, it is a child of {parent.id}"
    return None


def guard_agents(ctx: Context, agents: Agents) -> None:
    """Register the invariants of agents, where there is a registry."""
    invariants = ctx.find(Invariants)
    if invariants is not None:
        invariants.register(ctx, INBOX)
        invariants.register(ctx, QUEUES, STATUS, family(agents))
