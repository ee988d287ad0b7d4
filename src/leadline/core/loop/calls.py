"""Writes down the tool calls of one step: the intent before the body, the result as soon as there is one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from leadline.core.llm.messages import ToolCall, ToolMessage
from leadline.core.session.derive import OUTCOME_UNKNOWN
from leadline.core.session.events import ApprovalAsked, ApprovalDecided, ToolAnswered, ToolCalled
from leadline.core.tools.earlier import NOTHING_EARLIER, Earlier
from leadline.core.tools.flight import CallLog
from leadline.core.tools.outcome import Code

if TYPE_CHECKING:
    from leadline.core.agent.agent import Agent
    from leadline.core.loop.driver import Loop
    from leadline.core.loop.record import Record
    from leadline.core.tools.approval import ApprovalDecision, ApprovalRequest
    from leadline.core.tools.invocation import ToolInvocation
    from leadline.core.tools.outcome import ToolOutcome

_NOT_STARTED = frozenset((Code.UNKNOWN_TOOL, Code.INVALID_ARGS, Code.DENIED, Code.ABORTED_BEFORE_DISPATCH))


class StepCalls:
    """The log that the tool pipeline of one agent's turn writes to."""

    def __init__(self, loop: Loop, agent: Agent, record: Record) -> None:
        self._loop = loop
        self._agent = agent
        self._record = record
        self._began: dict[str, float] = {}
        self._earlier = NOTHING_EARLIER
        self._log = CallLog(
            on_call=self._called,
            on_result=self._answered,
            before_side_effect=record.session.sync,
            on_nested_call=self._nested_called,
            on_nested_result=self._nested_answered,
            on_asked=self._asked,
            on_decided=self._decided,
        )

    def log(self, earlier: Earlier = NOTHING_EARLIER) -> CallLog:
        """Where the calls of the step that is open are written down; `earlier` is what it has of them already."""
        self._earlier = earlier
        return self._log if earlier is NOTHING_EARLIER else replace(self._log, earlier=earlier)

    def _called(self, call: ToolCall, root: str | None = None) -> None:
        self._began[call.id] = self._loop.clock.monotonic()
        self._record.write(
            ToolCalled(
                turn=self._record.turn,
                step=self._record.step,
                call_id=call.id,
                name=call.name,
                arguments=call.arguments,
                side_effects=self._effects(call.name),
                root_call_id=root,
            )
        )

    def _asked(self, request: ApprovalRequest) -> None:
        self._record.write(
            ApprovalAsked(
                turn=self._record.turn,
                step=self._record.step,
                call_id=request.call_id,
                reason=request.reason,
                digest=request.digest,
            )
        )

    def _decided(self, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        self._record.write(
            ApprovalDecided(
                turn=self._record.turn,
                step=self._record.step,
                call_id=request.call_id,
                outcome=decision.outcome,
                reason=decision.reason,
            )
        )

    def _answered(self, call: ToolCall, outcome: ToolOutcome, root: str | None = None) -> None:
        if outcome.error_code == OUTCOME_UNKNOWN:
            self._record.write(self._unknown(outcome, root))
            return
        began = self._began.pop(call.id, None)
        self._record.write(
            ToolAnswered(
                turn=self._record.turn,
                step=self._record.step,
                message=outcome.message(self._loop.ids.new("m")),
                error_code=outcome.error_code,
                started=outcome.error_code not in _NOT_STARTED,
                side_effects=self._effects(call.name),
                duration_s=None if began is None else round(self._loop.clock.monotonic() - began, 6),
                root_call_id=root,
                concludes_turn=outcome.concludes_turn,
                spilled=outcome.spilled,
            )
        )

    def _unknown(self, outcome: ToolOutcome, root: str | None) -> ToolAnswered:
        """What stands for the result of a call that a process which died had started."""
        past = self._earlier.call(outcome.call_id)
        return ToolAnswered(
            turn=self._record.turn,
            step=self._record.step,
            message=ToolMessage(
                self._loop.ids.new("m"), outcome.call_id, outcome.name, outcome.content, is_error=True
            ),
            error_code=OUTCOME_UNKNOWN,
            synthesised=True,
            side_effects=tuple(sorted(past.side_effects)) if past else (),
            root_call_id=root,
        )

    def _nested_called(self, outer: ToolInvocation, call: ToolCall) -> None:
        self._called(call, outer.root_call_id)

    def _nested_answered(self, inner: ToolInvocation, outcome: ToolOutcome) -> None:
        self._answered(ToolCall(inner.call_id, inner.name, "{}"), outcome, inner.root_call_id)

    def _effects(self, name: str) -> tuple[str, ...]:
        tool = self._loop.tools.get(name, self._agent.ctx.scope)
        return tuple(sorted(tool.side_effects)) if tool else ()
