"""The invariants of tool calls: each is asked for, meant, run and answered, in this order and once."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from leadline.core.llm.messages import ToolCall
from leadline.core.session.codec import Header
from leadline.core.session.events import (
    ApprovalAsked,
    ApprovalDecided,
    AssistantSaid,
    Event,
    SeedEnded,
    StepStart,
    ToolAnswered,
    ToolCalled,
    TurnResumed,
)
from leadline.core.session.invariants import Invariants, LiveInvariant, LogInvariant, Tell
from leadline.core.session.log import BeforeAppend
from leadline.core.tools.policy import ToolFinished
from leadline.kernel.context import Context


class Calls(msgspec.Struct, frozen=True):
    """The calls of one step, as far as they have got."""

    asked: tuple[ToolCall, ...] = ()
    """By the step's answer."""
    called: Mapping[str, str] = {}
    """Name of the tool by call, nested ones included."""
    answered: frozenset[str] = frozenset()
    asked_about: frozenset[str] = frozenset()
    """Those that wait for somebody's yes, or got a no."""
    last_called: int = -1
    """Place in the answer of the call that was written down last, since the step was taken up."""
    last_answered: int = -1

    def place(self, call_id: str) -> int | None:
        """Where the answer has the call."""
        return next((at for at, call in enumerate(self.asked) if call.id == call_id), None)


def _none(header: Header) -> Calls:
    return Calls()


def _after(calls: Calls, event: Event) -> Calls:
    match event:
        case StepStart() | SeedEnded():
            return Calls()
        case AssistantSaid():
            return Calls(event.message.tool_calls)
        case TurnResumed():
            return Calls(
                calls.asked,
                {one: name for one, name in calls.called.items() if one not in event.unbegun},
                calls.answered - set(event.calls),
                calls.asked_about - set(event.unbegun),
            )
        case ToolCalled():
            at = calls.place(event.call_id) if event.root_call_id is None else None
            return msgspec.structs.replace(
                calls,
                called={**calls.called, event.call_id: event.name},
                last_called=calls.last_called if at is None else at,
            )
        case ApprovalAsked():
            return msgspec.structs.replace(calls, asked_about=calls.asked_about | {event.call_id})
        case ApprovalDecided() if event.outcome == "allowed-once":
            return msgspec.structs.replace(calls, asked_about=calls.asked_about - {event.call_id})
        case ToolAnswered():
            at = calls.place(event.message.call_id) if event.root_call_id is None else None
            return msgspec.structs.replace(
                calls,
                answered=calls.answered | {event.message.call_id},
                last_answered=calls.last_answered if at is None else at,
            )
        case _:
            return calls


def _may_follow(calls: Calls, before: BeforeAppend) -> str | None:
    match before.event:
        case ToolCalled() as called if called.turn is not None:
            return _call(calls, called)
        case ToolAnswered() as answered if answered.turn is not None and not answered.synthesised:
            return _result(calls, answered)
        case ApprovalAsked() as asked if asked.turn is not None:
            return (
                None
                if _runs(calls, asked.call_id)
                else f"somebody is asked about call {asked.call_id}, which does not run"
            )
        case ApprovalDecided() as decided if decided.turn is not None:
            known = decided.call_id in calls.asked_about
            return None if known else f"an answer decides about call {decided.call_id}, and nobody was asked"
        case _:
            return None


def _call(calls: Calls, called: ToolCalled) -> str | None:
    root = called.root_call_id
    if root is not None:
        return (
            None
            if _runs(calls, root)
            else f"call {called.call_id} is made for call {root}, which does not run"
        )
    at = calls.place(called.call_id)
    if at is None:
        return f"call {called.call_id} of {called.name} was not asked for by the answer of the step"
    asked = calls.asked[at]
    if (asked.name, asked.arguments) != (called.name, called.arguments):
        return f"call {called.call_id} is not what the model asked for: {asked.name} with other arguments"
    if called.call_id in calls.called:
        return f"call {called.call_id} is made twice"
    if at < calls.last_called:
        return f"call {called.call_id} is made behind a later call of the answer"
    return None


def _runs(calls: Calls, call_id: str) -> bool:
    return call_id in calls.called and call_id not in calls.answered


def _result(calls: Calls, answered: ToolAnswered) -> str | None:
    message = answered.message
    name = calls.called.get(message.call_id)
    if name is None:
        return f"a result answers call {message.call_id}, which was not made in this step"
    if name != message.name:
        return f"the result of call {message.call_id} is of {message.name}, the call was of {name}"
    if message.call_id in calls.answered and answered.root_call_id is None:
        return f"call {message.call_id} has a second result"
    if (answered.error_code is not None) != message.is_error:
        return f"the result of call {message.call_id} is an error without a code, or has a code and is none"
    if not message.is_error and message.call_id in calls.asked_about:
        return f"call {message.call_id} ran, and nobody had allowed it"
    at = calls.place(message.call_id) if answered.root_call_id is None else None
    if at is not None and at < calls.last_answered:
        return f"the result of call {message.call_id} stands behind that of a later call of the answer"
    return None


CALLS = LogInvariant(
    name="tools/calls",
    holds="A call is one that the answer of its step asks for, and has one result behind it; both in the order of the "
    "answer. One that somebody was asked about succeeds only behind a yes.",
    init=_none,
    check=_may_follow,
    apply=_after,
    types=frozenset(
        kind.TYPE
        for kind in (
            StepStart,
            SeedEnded,
            AssistantSaid,
            TurnResumed,
            ToolCalled,
            ApprovalAsked,
            ApprovalDecided,
            ToolAnswered,
        )
    ),
)


def _watch(ctx: Context, tell: Tell) -> None:
    def finished(signal: ToolFinished) -> None:
        session, outcome = signal.call.caller.session, signal.outcome
        if session is None:
            return
        for line in reversed(session.logged):
            if line.type == ToolAnswered.TYPE:
                message = line.as_(ToolAnswered).message
                if message.call_id == outcome.call_id:
                    if message.content != outcome.content or message.is_error != outcome.is_error:
                        tell(
                            f"session {session.id}",
                            f"call {outcome.call_id} is announced with another result than is logged",
                        )
                    return
        tell(f"session {session.id}", f"call {outcome.call_id} is announced, and its result is not logged")

    ctx.on(ToolFinished, finished)


ANNOUNCED = LiveInvariant(
    name="tools/announced",
    holds="That a call has ended is told with the result that is in the log, and not before it is there.",
    watch=_watch,
)


def guard_calls(ctx: Context) -> None:
    """Register the invariants of tool calls, where there is a registry."""
    invariants = ctx.find(Invariants)
    if invariants is not None:
        invariants.register(ctx, CALLS, ANNOUNCED)
