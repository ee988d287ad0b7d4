"""One call on its way through the pipeline, and how its owner learns what to log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from leadline.core.llm.messages import ToolCall
from leadline.core.session.derive import OUTCOME_UNKNOWN, OUTCOME_UNKNOWN_TEXT
from leadline.core.tools.approval import ApprovalDecision, ApprovalRequest
from leadline.core.tools.arguments import NO_ARGUMENTS, Arguments
from leadline.core.tools.earlier import NOTHING_EARLIER, Earlier, EarlierCall
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.outcome import ToolOutcome, aborted, failed
from leadline.core.tools.registry import Registered
from leadline.core.tools.spec import Tool, ToolOutput


async def _no_sync() -> None:
    """For callers without a log."""


def _ignore(*_: object) -> None:
    """For callers that log no calls."""


OnCall: TypeAlias = Callable[[ToolCall], None]
OnResult: TypeAlias = Callable[[ToolCall, ToolOutcome], None]
OnNestedCall: TypeAlias = Callable[[ToolInvocation, ToolCall], None]
OnNestedResult: TypeAlias = Callable[[ToolInvocation, ToolOutcome], None]
OnAsked: TypeAlias = Callable[[ApprovalRequest], None]
OnDecided: TypeAlias = Callable[[ApprovalRequest, ApprovalDecision], None]


@dataclass(frozen=True)
class CallLog:
    """Where calls are written down. All but one are synchronous: what they write is in order."""

    on_call: OnCall = _ignore
    """A model's call is about to be judged; in the model's order."""

    on_result: OnResult = _ignore
    """A model's call has its result; in the model's order, exactly once for each `on_call`."""

    before_side_effect: Callable[[], Awaitable[None]] = _no_sync
    """What was logged must now survive a power cut: the next body has side effects other than reads, or somebody is
    about to be asked."""

    on_nested_call: OnNestedCall = _ignore
    """A body, that of the first argument, calls another tool. No message of the model answers it."""

    on_nested_result: OnNestedResult = _ignore
    """A nested call, the first argument, has its result."""

    earlier: Earlier = NOTHING_EARLIER
    """What is written down already; a call that is in it is not given to `on_call` or `on_nested_call` again."""

    on_asked: OnAsked = _ignore
    """A call, nested or not, is about to be put before somebody."""

    on_decided: OnDecided = _ignore
    """What became of that; before the body may begin."""


SILENT = CallLog()


@dataclass(eq=False)
class Flight:
    """What is known so far of one call. Only the pipeline writes to it."""

    call: ToolInvocation
    log: CallLog
    entry: Registered | None = None
    arguments: Arguments = NO_ARGUMENTS

    past: EarlierCall | None = None
    """What an earlier process did of it."""

    refusal: ToolOutput | None = None
    """Why the body may not run."""

    unreviewed: bool = False
    """A listener failed, so post-execute listeners are not asked."""

    started: bool = False
    """Whether the body began."""

    output: ToolOutput | None = None
    """What the body gave, checked, before anything around it."""

    _accepted: list[object] = field(default_factory=list[object])

    def accept(self, tool: Tool) -> None:
        """Hold the arguments to the parameters of `tool`.

        Raises:
            Violations: they do not fit.
        """
        self._accepted[:] = [tool.takes.accept(self.arguments.text)]

    def accepted(self, tool: Tool) -> object:
        """The arguments as a body takes them: each time a value that nobody else has."""
        return self._accepted.pop() if self._accepted else tool.takes.accept(self.arguments.text)

    @property
    def tool(self) -> Tool | None:
        return self.entry.tool if self.entry else None

    def take_up(self, past: EarlierCall | None) -> None:
        """Start from what an earlier process did: a call whose repetition might do harm is not run."""
        if past is None:
            return
        self.past = past
        self.started = past.begun
        if not past.repeatable(self.tool):
            self.refusal = failed(OUTCOME_UNKNOWN, OUTCOME_UNKNOWN_TEXT)
            self.unreviewed = True

    def when_cancelled(self) -> ToolOutput:
        """What a cancellation makes of the call now: it replaces a success, never a specific error."""
        if self.refusal is not None:
            return self.refusal
        if self.output is not None and self.output.is_error:
            return self.output
        return aborted(started=self.started)
