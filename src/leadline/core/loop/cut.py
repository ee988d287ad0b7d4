"""How far a turn got that a process left open: read from the log, so that another one can go on with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec

from leadline.core.agent.inbox import Queue
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import (
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
    TurnResumed,
    TurnStart,
    UserEntered,
)
from leadline.core.tools.earlier import Earlier, EarlierCall
from leadline.core.tools.outcome import ToolOutcome
from leadline.core.tools.spec import SideEffect

if TYPE_CHECKING:
    from collections.abc import Callable

    from leadline.core.llm.messages import MessageSource
    from leadline.core.session.codec import Logged
    from leadline.core.session.log import Session

_E = TypeVar("_E", bound=Event)

_NULL = b"null"


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
    answers: dict[str, ToolAnswered] = field(default_factory=dict[str, ToolAnswered])

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
    tokens: int = 0
    """Tokens that providers reported for it."""
    refused: str | None = None
    """What a plugin said that did not let the turn's latest input enter."""
    spoken: list[Spoken] = field(default_factory=list[Spoken])
    """Its answers, that of the last step included."""
    step: CutStep = field(default_factory=CutStep)


def cut_turn(session: Session) -> CutTurn | None:
    """The turn that `session` left open; None where none is."""
    place = session.place
    if not place.turn_open:
        return None
    for line in reversed(session.logged):
        if line.type == TurnStart.TYPE and (start := _decoded(line, TurnStart)) is not None:
            cut = _Fold(session, line, start).cut
            cut.step.open = place.step_open
            return cut
    return None


class _Fold:
    """Takes in the events of one turn, in their order."""

    def __init__(self, session: Session, opened: Logged, start: TurnStart) -> None:
        waiting = Queue.of(session, before=opened.seq)
        prompt = waiting.next_turn[0].id if waiting.next_turn else None
        # A turn with nothing to say was asked for as such, also where an older version did not write it down.
        proceeds = start.proceeds or not (waiting.next_turn or waiting.next_step)
        self.cut = CutTurn(session.place.turn, proceeds, prompt)
        self._max_tokens = _ceiling_before(session, opened.seq)
        self._since = self._now = opened.t
        folds: dict[type[Event], Callable[[Event], None]] = cast(
            "dict[type[Event], Callable[[Event], None]]",
            {
                TurnResumed: self._resumed,
                StepStart: self._step,
                InboxSpliced: self._spliced,
                UserEntered: self._entered,
                RequestHeader: self._header,
                RequestSent: self._sent,
                RequestEnded: self._ended,
                LlmRetry: self._retry,
                AssistantSaid: self._said,
                ToolCalled: self._called,
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
        self.cut.seconds += max(0.0, self._now - self._since)

    def _resumed(self, event: TurnResumed) -> None:
        self.cut.seconds, self._since = event.seconds, self._now

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
        self.cut.tokens += (event.usage and event.usage.total) or 0

    def _retry(self, event: LlmRetry) -> None:
        self.cut.step.retry = (self._now, event.delay_s)
        self.cut.step.waited += event.delay_s

    def _said(self, event: AssistantSaid) -> None:
        self.cut.step.said = event
        self.cut.spoken.append(Spoken(event, self._max_tokens))
        self.cut.tokens += (event.usage and event.usage.total) or 0

    def _called(self, event: ToolCalled) -> None:
        self.cut.step.calls[event.call_id] = event

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
