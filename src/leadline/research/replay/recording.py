"""What was asked and answered in a session and all that descend from it, read from their logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from leadline.core.llm.failure import LlmFailure
from leadline.core.llm.messages import Conversation
from leadline.core.llm.request import LlmRequest, Purpose
from leadline.core.loop.thread import request_of
from leadline.core.session.codec import Logged
from leadline.core.session.derive import Derived
from leadline.core.session.events import (
    AssistantSaid,
    LlmRetry,
    RequestEnded,
    RequestHeader,
    RequestSent,
    TurnEnd,
    UserEntered,
)
from leadline.core.session.log import Session
from leadline.core.session.store import SessionEntry, SessionStore
from leadline.research.engine.role_log import RoleLog
from leadline.research.evidence.record import facts_of

Outcome: TypeAlias = AssistantSaid | RequestEnded
_Place: TypeAlias = tuple[int | None, int | None, int]


@dataclass(frozen=True)
class RecordedAttempt:
    """One sending of a request, and what came of it."""

    seq: int
    """Number of its `request/sent`."""
    sent: RequestSent
    at: float
    """When its outcome was logged, else when it was sent; seconds since 1970, UTC."""
    outcome: Outcome | None = None
    """None: it was in flight when its process died."""
    final_failure: LlmFailure | None = None
    """With what the turn ended that this attempt was the last one of."""
    final_error: str = ""
    ended_turn: bool = False
    """Whether the turn was over with it, for the time being at least."""
    to_retry: bool = False
    """Whether it failed and was to be made again after a wait."""

    @property
    def is_open(self) -> bool:
        """Whether no answer and no failure came of it: it was cut off or cancelled."""
        match self.outcome:
            case AssistantSaid(state=state):
                return state == "interrupted"
            case RequestEnded(state=state):
                return state == "cancelled"
            case _:
                return True


@dataclass(frozen=True)
class RecordedAsk:
    """One question to the model, with every attempt at it that came to something."""

    turn: int | None
    step: int | None
    attempts: tuple[RecordedAttempt, ...]
    """Those that the turn stopped at, and that were made again when it was taken up, are left out."""

    @property
    def last(self) -> RecordedAttempt:
        return self.attempts[-1]

    @property
    def failed(self) -> bool:
        """Whether there is no answer."""
        return not isinstance(self.last.outcome, AssistantSaid) or self.last.is_open


@dataclass(frozen=True, eq=False)
class RecordedSession:
    """One session of a recording."""

    session: Session
    children: tuple[RecordedSession, ...] = ()
    """Those that it delegated to, the oldest first."""

    @property
    def id(self) -> str:
        return self.session.id

    @property
    def label(self) -> str:
        """What it was there for, in words."""
        return self.session.header.label

    @cached_property
    def purpose(self) -> tuple[str, str]:
        """Name and digest of the facts of what its requests were for; both empty where it sent none."""
        first = next(self.session.of(RequestSent, self.session.lifecycle_start), None)
        return (first.purpose, first.purpose_digest) if first else ("", "")

    @property
    def asks(self) -> tuple[RecordedAsk, ...]:
        """What it asked of its model, in order; what was asked again when it was taken up stands once."""
        return self._split[0]

    @cached_property
    def _split(self) -> tuple[tuple[RecordedAsk, ...], frozenset[str]]:
        """The asks, and the ids of messages that were cut off and then asked for again."""
        asks = tuple(_asks(self.session))
        counted = {attempt.seq for ask in asks for attempt in ask.attempts}
        left = [one.outcome for one in _attempts(self.session) if one.seq not in counted]
        return asks, frozenset(said.message.id for said in left if isinstance(said, AssistantSaid))

    def request(self, attempt: RecordedAttempt) -> LlmRequest | None:
        """The request that the log before `attempt` gives; None where what it consists of cannot be read.

        Words that were cut off before the session was taken up are left out: a replay is not cut off there.
        """
        header = next((one for line, one in reversed(self._headers) if line.seq < attempt.seq), None)
        if header is None:
            return None
        facts = self._facts.get(attempt.sent.purpose_digest, {})
        messages = self._derived.at(attempt.seq)
        if cut := self._split[1]:
            messages = Conversation(one for one in messages if one.id not in cut)
        return request_of(header, Purpose(attempt.sent.purpose, facts), messages, self.id)

    @cached_property
    def _derived(self) -> Derived:
        return Derived(self.session.logged)

    @cached_property
    def _headers(self) -> Sequence[tuple[Logged, RequestHeader]]:
        return tuple(self.session.logged_of(RequestHeader))

    @cached_property
    def _facts(self) -> Mapping[str, Mapping[str, object]]:
        """Facts of purposes by their digest."""
        sent = self.session.of(RequestSent)
        return {one.purpose_digest: one.purpose_data for one in sent if one.purpose_data is not None}

    def line(self) -> Iterator[RecordedSession]:
        """This one and everything below it, parents first."""
        yield self
        for child in self.children:
            yield from child.line()

    def counting(self) -> Iterator[RecordedSession]:
        """As `line`, without attempts at work of a run that was done anew when the run went on after an end."""
        void = RoleLog.of(facts_of(self.session)).void
        yield self
        for child in self.children:
            if child.id not in void:
                yield from child.counting()


async def load_recording(store: SessionStore, session_id: str) -> RecordedSession:
    """The session of that id and all that descend from it. Reads only.

    Raises:
        SessionNotFound: there is none.
    """
    root = await store.read(session_id)
    below: dict[str, list[SessionEntry]] = {}
    for entry in await store.list():
        if entry.parent is not None and entry.status != "unreadable":
            below.setdefault(entry.parent, []).append(entry)
    return await _loaded(store, root, below)


async def _loaded(
    store: SessionStore, session: Session, below: dict[str, list[SessionEntry]]
) -> RecordedSession:
    children: list[RecordedSession] = []
    for entry in below.get(session.id, ()):
        if entry.depth > session.header.depth:  # a fork that a person made stands beside, not below
            children.append(await _loaded(store, await store.read(entry.id), below))
    return RecordedSession(session, tuple(children))


def _asks(session: Session) -> Sequence[RecordedAsk]:
    """What was asked, without what was cut off or failed and was asked again when the session was taken up."""
    grouped: dict[tuple[int | None, int | None], list[RecordedAttempt]] = {}
    for attempt in _attempts(session):
        grouped.setdefault((attempt.sent.turn, attempt.sent.step), []).append(attempt)
    asks = [RecordedAsk(turn, step, _kept(attempts)) for (turn, step), attempts in grouped.items()]
    prompts = _prompts(session)
    return [ask for at, ask in enumerate(asks) if not _asked_again(ask, asks[at + 1 :], prompts)]


def _prompts(session: Session) -> Sequence[int]:
    """Where somebody told the session something new."""
    entered = session.logged_of(UserEntered, session.lifecycle_start)
    return [line.seq for line, one in entered if one.message.source.kind in ("user", "agent")]


def _kept(attempts: Sequence[RecordedAttempt]) -> tuple[RecordedAttempt, ...]:
    """What came behind the last attempt that ended the turn, if others follow it: tries are counted anew there."""
    ends = [at for at, one in enumerate(attempts[:-1], 1) if one.ended_turn]
    since = attempts[max(ends, default=0) :]
    return tuple(one for one in since if one is since[-1] or not one.is_open)


def _asked_again(ask: RecordedAsk, later: Sequence[RecordedAsk], prompts: Sequence[int]) -> bool:
    """Whether the session was taken up after this one came to nothing, and asked the same in a later turn."""
    if not later or not ask.failed:
        return False
    if any(ask.last.seq < prompt < later[0].attempts[0].seq for prompt in prompts):
        return False
    return ask.last.is_open or any(one.last.sent.digest == ask.last.sent.digest for one in later)


def _attempts(session: Session) -> Sequence[RecordedAttempt]:
    """Every sending in order, each with its outcome and, where it ended its turn, with the end."""
    made: dict[_Place, RecordedAttempt] = {}
    lost: list[RecordedAttempt] = []
    latest: _Place | None = None
    for line, event in _facts(session):
        match event:
            case RequestSent():
                latest = (event.turn, event.step, event.attempt)
                if latest in made:
                    lost.append(made[latest])
                made[latest] = RecordedAttempt(line.seq, event, line.t)
            case AssistantSaid() | RequestEnded():
                place = (event.turn, event.step, event.attempt)
                if place in made and made[place].outcome is None:
                    made[place] = replace(made[place], outcome=event, at=line.t)
            case LlmRetry() if latest is not None and latest in made:
                made[latest] = replace(made[latest], to_retry=True)
            case TurnEnd() if latest is not None and latest in made:
                made[latest] = replace(
                    made[latest], final_failure=event.failure, final_error=event.error, ended_turn=True
                )
            case _:
                pass
    return sorted([*lost, *made.values()], key=lambda one: one.seq)


def _facts(
    session: Session,
) -> Iterator[tuple[Logged, RequestSent | AssistantSaid | RequestEnded | LlmRetry | TurnEnd]]:
    since = session.lifecycle_start
    found = [
        (line, event)
        for kind in (RequestSent, AssistantSaid, RequestEnded, LlmRetry, TurnEnd)
        for line, event in session.logged_of(kind, since)
    ]
    yield from sorted(found, key=lambda one: one[0].seq)
