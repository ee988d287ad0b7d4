"""What became of a call: always a value, ready for the log and the wire."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from leadline.core.llm.jsonvalue import JsonValue
from leadline.core.llm.messages import ToolMessage
from leadline.core.session.events import Spilled
from leadline.core.tools.spec import SideEffect, ToolOutput


class Code(StrEnum):
    """Why a call failed, as far as the pipeline knows; a tool may give codes of its own."""

    UNKNOWN_TOOL = "UNKNOWN_TOOL"
    INVALID_ARGS = "INVALID_ARGS"
    DENIED = "DENIED"
    TOOL_FAILED = "TOOL_FAILED"
    BUDGET = "BUDGET"
    TOOL_TIMEOUT = "TOOL_TIMEOUT"
    INVALID_TOOL_OUTPUT = "INVALID_TOOL_OUTPUT"
    ABORTED = "ABORTED"
    ABORTED_BEFORE_DISPATCH = "ABORTED_BEFORE_DISPATCH"


@dataclass(frozen=True)
class Truncation:
    """How much of a content was left out."""

    total_chars: int
    omitted_chars: int
    blob: str | None
    """sha256 of the whole content in the blob store, if there is one."""
    head_chars: int
    """How much of its beginning is shown."""
    tail_chars: int
    """How much of its end is shown."""


@dataclass(frozen=True)
class ToolOutcome:
    """The end of one call."""

    call_id: str
    root_call_id: str
    name: str
    content: str
    """What the model reads; sanitised, never empty."""

    value: bytes
    """The result for programs, as canonical JSON; null where it is too large for the log."""

    is_error: bool = False
    error_code: str | None = None
    concludes_turn: bool = False
    started: bool = False
    """Whether the body ran at all."""

    side_effects: tuple[SideEffect, ...] = ()
    """What the body may have done to the world, sorted; empty where it did not run."""

    truncation: Truncation | None = None

    @property
    def spilled(self) -> Spilled | None:
        """Where the whole of a content is that was cut; None where nothing was cut or it could not be stored."""
        cut = self.truncation
        if cut is None or cut.blob is None:
            return None
        return Spilled(blob=cut.blob, chars=cut.total_chars, head=cut.head_chars, tail=cut.tail_chars)

    def message(self, message_id: str) -> ToolMessage:
        """The outcome in the vocabulary of messages."""
        return ToolMessage(
            id=message_id,
            call_id=self.call_id,
            name=self.name,
            content=self.content,
            is_error=self.is_error,
            value=msgspec.Raw(self.value),
        )


def canonical(value: JsonValue) -> bytes:
    """`value` as JSON with sorted keys and no blanks: equal values give equal bytes."""
    return msgspec.json.encode(value, order="deterministic")


def failed(code: str, content: str) -> ToolOutput:
    """An output that tells a model why there is no result."""
    return ToolOutput(
        value={"error": str(code), "message": content}, content=content, is_error=True, error_code=code
    )


def aborted(*, started: bool) -> ToolOutput:
    """The output of a call that a cancellation ended."""
    if started:
        return failed(Code.ABORTED, "The call was cancelled while it ran; it may have done part of its work.")
    return failed(Code.ABORTED_BEFORE_DISPATCH, "The call was cancelled before it started; it did nothing.")
