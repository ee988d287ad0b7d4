"""Where in a child's log a tool call stands, so that a fact of the run can cite it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import msgspec

from leadline.core.llm.jsonvalue import JsonValue
from leadline.core.llm.messages import ToolMessage
from leadline.core.session.events import ToolAnswered, ToolCalled, TurnResumed
from leadline.core.session.log import Session
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.outcome import Code

_STOPPED = frozenset((Code.ABORTED, Code.ABORTED_BEFORE_DISPATCH))


@dataclass(frozen=True)
class Cited:
    """One tool call as a fact names it."""

    child: str | None
    """The session that the call is logged in; None where it is not logged."""
    seq: int | None
    """Of its `tool/call` there."""
    call_id: str

    @classmethod
    def of(cls, call: ToolInvocation) -> Cited:
        """The call that a body runs for."""
        return cls(call.agent_id, call_seq(call), call.call_id)


@dataclass(frozen=True)
class MadeCall:
    """A tool call that a log has together with its result."""

    seq: int
    call_id: str
    name: str
    arguments: Mapping[str, JsonValue]
    value: Mapping[str, JsonValue]
    """The result for programs; empty where it is no object."""
    is_error: bool


def call_seq(call: ToolInvocation) -> int | None:
    """The sequence number of the call's `tool/call` event; None where the call is not logged."""
    if call.session is None:
        return None
    for logged in reversed(call.session.logged):
        if logged.type == ToolCalled.TYPE and logged.as_(ToolCalled).call_id == call.call_id:
            return logged.seq
    return None


def calls_of(session: Session) -> Iterator[MadeCall]:
    """Every call with a result that its tool gave and that counts, in the order of the calls.

    A call that was stopped is none, as it is made again when its turn goes on; one that was made again is told once,
    by the `tool/call` that its result came after.
    """
    void = {message for resumed in session.of(TurnResumed) for message in resumed.void}
    called: dict[str, tuple[int, ToolCalled]] = {}
    made: dict[int, MadeCall] = {}
    for line in session.logged:
        event = session.event(line) if line.type in (ToolCalled.TYPE, ToolAnswered.TYPE) else None
        if isinstance(event, ToolCalled):
            called[event.call_id] = line.seq, event
        elif isinstance(event, ToolAnswered) and _given(event) and event.message.id not in void:
            before = called.get(event.message.call_id)
            if before is not None:
                made[before[0]] = _made(*before, event.message)
    yield from (made[seq] for seq in sorted(made))


def _given(answered: ToolAnswered) -> bool:
    """Whether the tool itself gave the result."""
    return not answered.synthesised and answered.error_code not in _STOPPED


def _made(seq: int, called: ToolCalled, message: ToolMessage) -> MadeCall:
    return MadeCall(
        seq,
        called.call_id,
        called.name,
        _object(called.arguments.encode()),
        _object(bytes(message.value)) if isinstance(message.value, msgspec.Raw) else {},
        message.is_error,
    )


def _object(data: bytes) -> Mapping[str, JsonValue]:
    try:
        parsed: object = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError):
        return {}
    return cast("Mapping[str, JsonValue]", parsed) if isinstance(parsed, dict) else {}
