"""How far a turn got that a process left open: read from the log, so that another one can go on with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec
from msgspec import structs

from leadline.core.agent.inbox import Queue
from leadline.core.session.approvals import Questions
from leadline.core.session.derive import NOT_STARTED, OUTCOME_UNKNOWN
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import (
    ApprovalAsked,
    ApprovalDecided,
    AssistantSaid,
    Event,
    InboxSpliced,
    LlmRetry,
    RequestEnded,
    RequestHeader,
    RequestSent,
    StepStart,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnLimits,
    TurnResumed,
    TurnStart,
    UserEntered,
)
from leadline.core.session.spending import spent_since
from leadline.core.spend.account import NOTHING_SPENT, Spent
from leadline.core.tools.approval import ApprovalDecision, EarlierQuestion
from leadline.core.tools.earlier import Earlier, EarlierCall
from leadline.core.tools.outcome import Code, ToolOutcome
from leadline.core.tools.spec import READS, SideEffect

if TYPE_CHECKING:
    from collections.abc import Callable

    from leadline.core.llm.messages import MessageSource
    from leadline.core.session.codec import Logged
    from leadline.core.session.log import Session

_E = TypeVar("_E", bound=Event)

_NULL = b"null"
_UNBEGUN = frozenset((Code.ABORTED_BEFORE_DISPATCH, NOT_STARTED))
_STOPPED = frozenset((Code.ABORTED, OUTCOME_UNKNOWN))

BROKEN_OFF = frozenset(("aborted", "interrupted", "error"))
"""Ends of a turn that may go on: it was stopped, its process died, or its provider failed."""


@dataclass
class CutStep:
    """The step that was open, or was last."""

    number: int = 0
    """0: the turn had none."""
    open: bool = False
    entered: bool = False
    """Whether any message entered it."""
    sent: RequestSent | None = None
    """Its latest request."""
    ended: RequestEnded | None = None
    """The end of that request; None while it was in flight, or was answered."""
    retry: tuple[float, float] | None = None
    """The wait before the next attempt: when it was decided, in seconds since 1970, and how long; None: it was not."""
    failures: int = 0
    """How many of its requests failed."""
    waited: float = 0.0
    """Seconds of waiting between its requests that were decided."""
    said: AssistantSaid | None = None
    told: list[MessageSource] = field(default_factory=list["MessageSource"])
    """Sources of what was queued after the answer."""
    calls: dict[str, ToolCalled] = field(default_factory=dict[str, ToolCalled])
    questions: Questions = field(default_factory=Questions)
    """Which of its calls were put before somebody."""
    answers: dict[str, ToolAnswered] = field(default_factory=dict[str, ToolAnswered])
    void: TurnResumed | None = None
    """What of a turn that was broken off counts no more, with `turn` and `step` still to be filled in."""

    def reopen(self) -> None:
        """Go back to where the step was before the turn was broken off."""
        if self.said is not None and self.said.state == "interrupted":
            void, calls, unbegun = [self.said.message.id], list[str](), list[str]()
        else:
            calls = [call_id for call_id, answered in self.answers.items() if self._undone(answered)]
            void = [self.answers[call_id].message.id for call_id in calls]
            unbegun = [call_id for call_id in calls if self.answers[call_id].error_code in _UNBEGUN]
        self.void = TurnResumed(turn=0, step=0, void=tuple(void), calls=tuple(calls), unbegun=tuple(unbegun))
        self.forget(self.void)
        self.open = self.number > 0 and (bool(void) or self.said is None)

    def forget(self, resumed: TurnResumed) -> None:
        """Leave out what is void, and what was done about requests that failed."""
        if self.said is not None and self.said.message.id in resumed.void:
            self.said = None
        for call_id in resumed.calls:
            self.answers.pop(call_id, None)
        for call_id in resumed.unbegun:
            self.calls.pop(call_id, None)
        self.questions.forget(resumed.unbegun)
        self.ended, self.retry, self.failures, self.waited = None, None, 0, 0.0

    def _undone(self, answered: ToolAnswered) -> bool:
        """Whether the call has no result but the news that it was stopped, and may be made again."""
        if answered.error_code in _UNBEGUN:
            return True
        called = self.calls.get(answered.message.call_id)
        return answered.error_code in _STOPPED and called is not None and set(called.side_effects) <= READS

    @property
    def stopping(self) -> bool:
        """Whether something in it tells that the turn was being stopped."""
        if self.said is not None:
            codes = {answered.error_code for answered in self.answers.values()}
            return self.said.state == "interrupted" or bool(codes & {*_UNBEGUN, Code.ABORTED})
        return self.ended is not None and self.ended.state == "cancelled"

    @property
    def in_flight(self) -> bool:
        """Whether its latest request was neither answered nor ended."""
        return self.sent is not None and self.ended is None and self.said is None

    @property
    def earlier(self) -> Earlier:
        """Its calls that were started."""
        return Earlier({call_id: self._earlier(called) for call_id, called in self.calls.items()})

    def _earlier(self, called: ToolCalled) -> EarlierCall:
        answered = self.answers.get(called.call_id)
        return EarlierCall(
            called.name,
            called.arguments,
            frozenset(called.side_effects),
            None if answered is None else _outcome(answered),
            self._question(called.call_id),
            self.questions.begun(called.call_id),
        )

    def _question(self, call_id: str) -> EarlierQuestion | None:
        question = self.questions.about(call_id)
        if question is None:
            return None
        asked, decided = question.asked, question.decided
        return EarlierQuestion(
            asked.digest, asked.reason, decided and ApprovalDecision(decided.outcome, decided.reason)
        )


@dataclass(frozen=True)
class Spoken:
    """An answer of the turn, and the ceiling on output that it was asked under."""

    said: AssistantSaid
    max_tokens: int | None


@dataclass
class CutTurn:
    """A turn that is open in a log nobody writes."""

    number: int
    proceeds: bool
    prompt: str | None
    """Id of the prompt that it was opened for, which may wait still; None where there was none."""
    seconds: float = 0.0
    """Wall time that was spent on it."""
    spent: Spent = NOTHING_SPENT
    """What its calls used, and what its tools paid for; by estimate where that is not in the log."""
    limits: TurnLimits | None = None
    """Ceilings that were set on it when it was opened."""
    refused: str | None = None
    """What a plugin said that did not let the turn's latest input enter."""
    spoken: list[Spoken] = field(default_factory=list[Spoken])
    """Its answers, that of the last step included."""
    step: CutStep = field(default_factory=CutStep)

    @property
    def resumed(self) -> TurnResumed:
        """The fact that somebody goes on with it."""
        void = self.step.void or TurnResumed(turn=0, step=0)
        return structs.replace(void, turn=self.number, step=self.step.number, seconds=round(self.seconds, 6))


def stopped_midway(session: Session) -> bool:
    """Whether the turn that is open was being stopped when its process died: some of its end is written, and not all."""
    cut = _latest(session) if session.place.turn_open else None
    return cut is not None and cut.step.stopping


def cut_turn(session: Session) -> CutTurn | None:
    """The latest turn, where it is open in the log, or was broken off and can go on; else None."""
    if session.place.turn_open:
        cut = _latest(session)
        if cut is not None:
            cut.step.open = session.place.step_open
        return cut
    end = _latest_end(session)
    if end is None or end.reason not in BROKEN_OFF:
        return None
    cut = _latest(session)
    if cut is None or cut.number != end.turn:
        return None
    cut.step.reopen()
    if cut.step.said is None and cut.spoken and cut.spoken[-1].said.state == "interrupted":
        cut.spoken.pop()
    # What came of an answer that is whole would come of it again.
    return None if end.reason == "error" and cut.step.said is not None else cut


def _latest(session: Session) -> CutTurn | None:
    for line in reversed(session.logged):
        if line.type == TurnStart.TYPE and (start := _decoded(line, TurnStart)) is not None:
            return _Fold(session, line, start).cut
    return None


def _latest_end(session: Session) -> TurnEnd | None:
    """The end of the latest turn; None where the log went on after it."""
    for line in reversed(session.since(session.lifecycle_start)):
        if line.type == TurnEnd.TYPE:
            return _decoded(line, TurnEnd)
        if line.derives:
            return None
    return None


class _Fold:
    """Takes in the events of one turn, in their order."""

    def __init__(self, session: Session, opened: Logged, start: TurnStart) -> None:
        waiting = Queue.of(session, before=opened.seq)
        prompt = waiting.next_turn[0].id if waiting.next_turn else None
        # A turn with nothing to say was asked for as such, also where an older version did not write it down.
        proceeds = start.proceeds or not (waiting.next_turn or waiting.next_step)
        self.cut = CutTurn(session.place.turn, proceeds, prompt, limits=start.limits)
        self._max_tokens = _ceiling_before(session, opened.seq)
        self._since = self._now = opened.t
        self._over = False
        folds: dict[type[Event], Callable[[Event], None]] = cast(
            "dict[type[Event], Callable[[Event], None]]",
            {
                TurnResumed: self._resumed,
                TurnEnd: self._end,
                StepStart: self._step,
                InboxSpliced: self._spliced,
                UserEntered: self._entered,
                RequestHeader: self._header,
                RequestSent: self._sent,
                RequestEnded: self._ended,
                LlmRetry: self._retry,
                AssistantSaid: self._said,
                ToolCalled: self._called,
                ApprovalAsked: self._questioned,
                ApprovalDecided: self._questioned,
                ToolAnswered: self._answered,
            },
        )
        kinds = {kind.TYPE: (kind, fold) for kind, fold in folds.items()}
        for line in session.since(opened.seq + 1):
            self._now = line.t
            kind, fold = kinds.get(line.type, (None, None))
            event = _decoded(line, kind) if kind is not None else None
            if fold is not None and event is not None:
                fold(event)
        self._count()
        self.cut.spent = spent_since(session, opened.seq)

    def _count(self) -> None:
        if not self._over:
            self.cut.seconds += max(0.0, self._now - self._since)

    def _end(self, event: TurnEnd) -> None:
        self._count()
        self._over = True

    def _resumed(self, event: TurnResumed) -> None:
        self.cut.seconds, self._since = event.seconds, self._now
        if self._over:
            self._over = False
            step = self.cut.step
            if step.said is not None and step.said.message.id in event.void:
                self.cut.spoken.pop()
            step.forget(event)
        self.cut.step.questions.add(event)

    def _step(self, event: StepStart) -> None:
        self.cut.step = CutStep(event.step)

    def _spliced(self, event: InboxSpliced) -> None:
        if event.refused is not None:
            self.cut.refused = event.refused
        if self.cut.step.said is not None:
            self.cut.step.told += [message.source for message in event.inserted]

    def _entered(self, event: UserEntered) -> None:
        self.cut.step.entered = True

    def _header(self, event: RequestHeader) -> None:
        self._max_tokens = event.config.max_tokens

    def _sent(self, event: RequestSent) -> None:
        step = self.cut.step
        step.sent, step.ended, step.retry = event, None, None

    def _ended(self, event: RequestEnded) -> None:
        self.cut.step.ended = event
        self.cut.step.failures += event.failure is not None

    def _retry(self, event: LlmRetry) -> None:
        self.cut.step.retry = (self._now, event.delay_s)
        self.cut.step.waited += event.delay_s

    def _said(self, event: AssistantSaid) -> None:
        self.cut.step.said = event
        self.cut.spoken.append(Spoken(event, self._max_tokens))

    def _called(self, event: ToolCalled) -> None:
        self.cut.step.calls[event.call_id] = event
        self.cut.step.questions.add(event)

    def _questioned(self, event: ApprovalAsked | ApprovalDecided) -> None:
        self.cut.step.questions.add(event)

    def _answered(self, event: ToolAnswered) -> None:
        self.cut.step.answers[event.message.call_id] = event


def _decoded(line: Logged, kind: type[_E]) -> _E | None:
    try:
        return line.as_(kind)
    except EventUndecodable:
        return None


def _ceiling_before(session: Session, seq: int) -> int | None:
    for line in reversed(session.logged[:seq]):
        if line.type == RequestHeader.TYPE and (header := _decoded(line, RequestHeader)) is not None:
            return header.config.max_tokens
    return None


def _outcome(answered: ToolAnswered) -> ToolOutcome:
    message = answered.message
    effects = cast("tuple[SideEffect, ...]", answered.side_effects)
    return ToolOutcome(
        call_id=message.call_id,
        root_call_id=answered.root_call_id or message.call_id,
        name=message.name,
        content=message.content,
        value=_NULL if isinstance(message.value, msgspec.UnsetType) else bytes(message.value),
        is_error=message.is_error,
        error_code=answered.error_code,
        concludes_turn=answered.concludes_turn,
        started=answered.started,
        side_effects=effects if answered.started else (),
    )
