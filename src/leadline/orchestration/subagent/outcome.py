"""Reads from a child's log what its work came to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.core.llm.failure import Stop
from leadline.core.llm.messages import Text
from leadline.core.llm.usage import Usage
from leadline.core.session.events import (
    AssistantChunk,
    AssistantSaid,
    InboxSpliced,
    RequestEnded,
    TurnEnd,
    TurnResumed,
)
from leadline.orchestration.subagent.seam import MAX_DIAGNOSTIC_BYTES, StopReason

if TYPE_CHECKING:
    from leadline.core.session.log import Session

_STOP_REASONS: dict[str, StopReason] = {
    "completed": "completed",
    "aborted": "aborted",
    "interrupted": "aborted",
    "blocked": "refusal",
    "refusal": "refusal",
    "max-tokens": "max-tokens",
}


def prompt_of(session: Session) -> str | None:
    """What the child was asked to do; None where that never reached it."""
    for spliced in session.of(InboxSpliced, session.lifecycle_start):
        for message in spliced.inserted:
            if message.source.kind == "agent":
                return "".join(part.text for part in message.content if isinstance(part, Text))
    return None


def output_of(session: Session) -> str:
    """The child's last words since its seed: the last answer with visible text, else what was streamed of the last."""
    since = session.lifecycle_start
    void = {message for resumed in session.of(TurnResumed, since) for message in resumed.void}
    output, streamed, attempt = "", "", None
    for said in session.of(AssistantSaid, since):
        if said.message.text.strip() and said.message.id not in void:
            output = said.message.text
    if not output:
        for chunk in session.of(AssistantChunk, since):
            # A later attempt makes what was streamed of earlier ones void.
            if attempt != (attempt := (chunk.turn, chunk.step, chunk.attempt)):
                streamed = ""
            streamed += chunk.text if chunk.channel == "text" else ""
    return output or streamed


def usage_of(session: Session) -> Usage:
    """Tokens of all model calls since the seed, failed attempts included."""
    total, since = Usage(), session.lifecycle_start
    for said in session.of(AssistantSaid, since):
        total += said.usage or Usage()
    for ended in session.of(RequestEnded, since):
        total += ended.usage or Usage()
    return total


def stop_reason_of(end: TurnEnd | None) -> StopReason:
    """How a turn's end reads as the end of a piece of work; no end at all is an abort."""
    return "aborted" if end is None else _STOP_REASONS.get(end.reason, "error")


def diagnosis_of(end: TurnEnd | None) -> str:
    """Why the turn did not complete, in one line."""
    if end is None:
        return "stopped before its first turn ended"
    if end.failure is not None:
        step = end.failure.next_step if isinstance(end.failure, Stop) else None
        message = f"{end.failure.code}: {end.failure.message}"
        return f"{message.removesuffix('.')}; {step}" if step else message
    if end.cause is not None:
        return f"{end.reason}: {end.cause.detail or end.cause.kind}"
    return f"{end.reason}: {end.error}" if end.error else end.reason


def bounded(diagnostic: str) -> str:
    """The text cut to what a result may carry, at a character's edge."""
    data = diagnostic.encode("utf-8", "replace")
    if len(data) <= MAX_DIAGNOSTIC_BYTES:
        return data.decode()
    mark = " …"
    return data[: MAX_DIAGNOSTIC_BYTES - len(mark.encode())].decode("utf-8", "ignore") + mark
