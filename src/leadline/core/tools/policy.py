"""The signals through which plugins decide about calls, wrap them, and look at what they gave.

In the order in which one call sends them: `PreExecute`, `AroundExecute`, `PostExecute`, `ToolFinished`.
Between the first two stand the approval (`approval.py`) and the guards (`registry.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.outcome import Code, ToolOutcome
from leadline.core.tools.spec import Tool, ToolOutput
from leadline.kernel.signals import Around, Gather, Notice


@dataclass(frozen=True)
class Allow:
    """The policy has nothing against the call."""


@dataclass(frozen=True)
class Deny:
    """The call must not run."""

    reason: str
    """Told to the model."""


@dataclass(frozen=True)
class Ask:
    """Somebody has to say yes first."""

    reason: str
    """Shown to who is asked."""


Decision: TypeAlias = Allow | Deny | Ask


@dataclass(frozen=True)
class PreExecute(Gather["Decision | None"]):
    """May this call run? Every policy is asked; one denial denies, else one question asks.

    So the order in which policies were mounted decides nothing. None means no opinion; a listener that
    raises, or answers anything else, denies. The arguments cannot be changed.
    """

    call: ToolInvocation
    tool: Tool


@dataclass(frozen=True)
class AroundExecute(Around[ToolOutput]):
    """Around the body: a deadline, a cache, a trace. Cancelling the caller ends the body all the same."""

    call: ToolInvocation
    tool: Tool


@dataclass(frozen=True)
class PostExecute(Around[ToolOutput]):
    """After the body, a failure or a denial: return what comes of it.

    Accept with `await call_next(signal)`, replace with a changed output, block with `signal.blocked`.
    An error stays an error, whatever is returned.
    """

    call: ToolInvocation
    tool: Tool | None
    """None where no tool of that name is visible."""

    output: ToolOutput

    def blocked(self, feedback: str) -> ToolOutput:
        """An error in place of the output; `feedback` is what the model is told."""
        return ToolOutput(
            value={"error": str(Code.DENIED), "message": feedback},
            content=feedback,
            is_error=True,
            error_code=Code.DENIED,
        )

    def replaced(self, content: str) -> PostExecute:
        """The same signal with another content, to pass to `call_next`."""
        return replace(self, output=replace(self.output, content=content))


@dataclass(frozen=True)
class ToolFinished(Notice):
    """A call, nested ones included, has come to its end."""

    call: ToolInvocation
    outcome: ToolOutcome
