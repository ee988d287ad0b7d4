"""Which calls of a step were put before somebody, what was decided, and whose bodies may have begun."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import ApprovalAsked, ApprovalDecided, StepStart, ToolCalled, TurnResumed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from leadline.core.session.codec import Logged
    from leadline.core.session.events import ApprovalOutcome, Event


@dataclass(frozen=True)
class Question:
    """The latest question about a call, and its answer."""

    asked: ApprovalAsked
    decided: ApprovalDecided | None = None
    """None: nobody has answered yet."""

    @property
    def allowed(self) -> bool:
        """Whether the answer lets the call run."""
        return self.decided is not None and self.decided.outcome == "allowed-once"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """One question to somebody, and its answer."""

    seq: int
    """Number of its `approval/asked`."""
    call_id: str
    tool: str
    """Empty where the log does not have the call."""
    reason: str
    digest: str
    """Of what was decided about; see `ApprovalAsked.digest`."""
    outcome: ApprovalOutcome | None = None
    """None: nobody has answered; the process died first, or the turn was stopped."""
    answer: str = ""
    """What whoever decided said to it."""
    answer_seq: int | None = None
    """Number of its `approval/decided`."""


def asked_calls(logged: Iterable[Logged]) -> tuple[AskedCall, ...]:
    """Every question in a log, in its order; total."""
    found: list[AskedCall] = []
    tools: dict[str, str] = {}
    latest: dict[str, int] = {}
    for line in logged:
        kind = _KINDS.get(line.type)
        if kind is None:
            continue
        try:
            event = line.as_(kind)
        except EventUndecodable:
            continue
        match event:
            case ToolCalled():
                tools[event.call_id] = event.name
            case ApprovalAsked():
                latest[event.call_id] = len(found)
                tool = tools.get(event.call_id, "")
                found.append(
                    AskedCall(
                        seq=line.seq,
                        call_id=event.call_id,
                        tool=tool,
                        reason=event.reason,
                        digest=event.digest,
                    )
                )
            case ApprovalDecided() if (at := latest.pop(event.call_id, None)) is not None:
                found[at] = replace(
                    found[at], outcome=event.outcome, answer=event.reason, answer_seq=line.seq
                )
            case _:
                pass
    return tuple(found)


class Questions:
    """A fold of the calls of one step."""

    def __init__(self) -> None:
        self._asked: dict[str, Question] = {}
        self._called: set[str] = set()
        self._begun: set[str] = set()
        """Calls that a process which died may have begun: whatever is asked about them later, they were."""

    def add(self, event: Event) -> None:
        """Take in the next event; one that has nothing to do with this changes nothing."""
        match event:
            case ToolCalled():
                self._called.add(event.call_id)
            case ApprovalAsked():
                self._asked[event.call_id] = Question(event)
            case ApprovalDecided() if (question := self._asked.get(event.call_id)) is not None:
                self._asked[event.call_id] = Question(question.asked, event)
            case TurnResumed():
                self.forget(event.unbegun)
                self._begun.update(call_id for call_id in self._called if self.begun(call_id))
            case _:
                pass

    def forget(self, unbegun: Iterable[str]) -> None:
        """Leave out calls that count as never made."""
        for call_id in unbegun:
            self._called.discard(call_id)
            self._begun.discard(call_id)
            self._asked.pop(call_id, None)

    def about(self, call_id: str) -> Question | None:
        """The latest question about a call; None where nobody was asked."""
        return self._asked.get(call_id)

    def begun(self, call_id: str) -> bool:
        """Whether the body of a call that is logged may have begun."""
        question = self._asked.get(call_id)
        return call_id in self._begun or question is None or question.allowed


_KINDS: dict[str, type[Event]] = {
    kind.TYPE: kind for kind in (StepStart, ToolCalled, ApprovalAsked, ApprovalDecided, TurnResumed)
}


def questions(logged: Iterable[Logged]) -> Questions:
    """Those of the last step of a log; total."""
    found = Questions()
    for line in logged:
        kind = _KINDS.get(line.type)
        if kind is StepStart:
            found = Questions()
        elif kind is not None:
            try:
                found.add(line.as_(kind))
            except EventUndecodable:
                continue
    return found
