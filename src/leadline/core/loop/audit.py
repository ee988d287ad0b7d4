"""Proves from a log alone what was sent: makes every request again and compares its digest.

What it needs beside the log is the adapter that the request went through, configured as it was then.
It makes no connection and asks for no key.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leadline.core.llm.adapter import UnknownProvider
from leadline.core.llm.request import Purpose
from leadline.core.loop.thread import purpose_digest, request_of
from leadline.core.session.derive import Derived
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import AssistantSaid, RequestEnded, RequestHeader, RequestSent
from leadline.kernel.errors import LeadlineError

if TYPE_CHECKING:
    from leadline.core.llm.adapter import Models
    from leadline.core.llm.jsonvalue import JsonObject
    from leadline.core.llm.messages import Conversation
    from leadline.core.session.codec import Logged
    from leadline.core.session.log import Session


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that an audit could not confirm."""

    seq: int | None
    """Number of the event; None when it is the log as a whole."""
    reason: str

    def __str__(self) -> str:
        return self.reason if self.seq is None else f"event {self.seq}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class SessionAudit:
    """What the log of one session proves."""

    id: str
    kind: str
    parent: str | None
    events: int
    requests: int
    """How many `request/sent` it has."""
    proved: int
    """How many of them give their logged digest when they are made again."""
    chain: str
    """The end of the hash chain: it stands for every byte of the log that was read."""
    problems: tuple[Finding, ...] = ()
    """What does not hold."""
    not_provable: tuple[Finding, ...] = ()
    """Requests that cannot be made again here; nothing is said about them."""

    @property
    def ok(self) -> bool:
        """Whether everything was proved."""
        return not self.problems and not self.not_provable


class _NotProvable(LeadlineError):
    """A request that cannot be made again here."""


class _Differs(LeadlineError):
    """A request that is not what the log says it was."""


@dataclass
class _State:
    """What stands before the event that is looked at."""

    header: RequestHeader | None = None
    facts: dict[str, JsonObject] = field(default_factory=dict[str, "JsonObject"])
    """Facts of purposes by their digest."""
    sent: dict[tuple[int | None, int | None, int], RequestSent] = field(
        default_factory=dict[tuple[int | None, int | None, int], RequestSent]
    )
    """By turn, step and attempt."""
    proved_at: int | None = None
    """Number of the last request that was proved."""


def audit(session: Session, models: Models) -> SessionAudit:
    """Make every request of `session` again and compare; total, whatever state the log is in."""
    return _Audit(session, models).run()


class _Audit:
    def __init__(self, session: Session, models: Models) -> None:
        self._session = session
        self._models = models
        self._derived = Derived(session.logged)
        self._state = _State()
        self._requests = 0
        self._proved = 0
        self._problems = [Finding(None, str(problem)) for problem in session.problems]
        self._not_provable: list[Finding] = []

    def run(self) -> SessionAudit:
        session = self._session
        obstacle = session.obstacle
        if obstacle is not None and not session.problems:
            self._problems.append(Finding(obstacle.seq, obstacle.missing))
        for line in session.logged:
            try:
                self._look(line)
            except EventUndecodable as error:
                self._problems.append(Finding(line.seq, str(error)))
        header = session.header
        return SessionAudit(
            id=session.id,
            kind=header.kind,
            parent=header.parent,
            events=len(session),
            requests=self._requests,
            proved=self._proved,
            chain=session.digest,
            problems=tuple(self._problems),
            not_provable=tuple(self._not_provable),
        )

    def _look(self, line: Logged) -> None:
        match line.type:
            case RequestHeader.TYPE:
                # One that cannot be read leaves none in force: the one before it is not what was sent.
                self._state.header = None
                self._state.header = line.as_(RequestHeader)
            case RequestSent.TYPE:
                self._requests += 1
                self._request(line.seq, line.as_(RequestSent))
            case AssistantSaid.TYPE:
                said = line.as_(AssistantSaid)
                self._answer(line.seq, (said.turn, said.step, said.attempt), said.digest)
            case RequestEnded.TYPE:
                ended = line.as_(RequestEnded)
                self._answer(line.seq, (ended.turn, ended.step, ended.attempt), ended.digest)
            case _:
                pass

    def _request(self, seq: int, sent: RequestSent) -> None:
        self._state.sent[sent.turn, sent.step, sent.attempt] = sent
        try:
            self._prove(seq, sent)
        except _NotProvable as reason:
            self._not_provable.append(Finding(seq, str(reason)))
        except _Differs as reason:
            self._problems.append(Finding(seq, str(reason)))
        else:
            self._proved += 1
            self._state.proved_at = seq

    def _prove(self, seq: int, sent: RequestSent) -> None:
        header = self._state.header
        if header is None:
            raise _Differs("a request was sent, but no request/header that can be read stands before it")
        if str(header.config.model) != sent.model:
            raise _Differs(f"it was sent to {sent.model}, the request/header names {header.config.model}")
        conversation = self._derived.at(seq)
        if len(conversation) != sent.messages:
            raise _Differs(f"it had {sent.messages} messages, the log before it gives {len(conversation)}")
        rebuilt = self._digest(header, self._facts(sent), sent.purpose, conversation)
        if rebuilt == sent.digest:
            return
        if sent.purpose_digest and sent.purpose_digest not in self._state.facts:
            raise _NotProvable("the facts of its purpose are not in the log")
        raise _Differs(
            f"digest {sent.digest[:12]} is logged, the log before it gives {rebuilt[:12]}: "
            f"{self._where(seq)} was altered, or provider {header.config.model.provider} is configured "
            "otherwise than it was"
        )

    def _facts(self, sent: RequestSent) -> JsonObject:
        """The facts of its purpose; none where the log does not have them."""
        facts, known = sent.purpose_data, self._state.facts
        if facts is not None and sent.purpose_digest:
            if purpose_digest(Purpose(sent.purpose, facts)) != sent.purpose_digest:
                raise _Differs("the facts of its purpose do not have the digest that it names")
            known[sent.purpose_digest] = facts
        return facts if facts is not None else known.get(sent.purpose_digest, {})

    def _digest(
        self, header: RequestHeader, facts: JsonObject, purpose: str, conversation: Conversation
    ) -> str:
        provider = header.config.model.provider
        try:
            adapter = self._models.adapter(provider)
        except UnknownProvider:
            raise _NotProvable(f"provider {provider} is not configured") from None
        request = request_of(header, Purpose(purpose, facts), conversation)
        try:
            return adapter.prepare(request).digest
        except Exception as error:  # an adapter may choke on what was altered
            raise _Differs(f"it cannot be made again: {type(error).__name__}: {error}") from error

    def _where(self, seq: int) -> str:
        """Which part of the log is in doubt: what the last proved request rests on is not."""
        last = self._state.proved_at
        return (
            f"something before event {seq}" if last is None else f"something between events {last} and {seq}"
        )

    def _answer(self, seq: int, place: tuple[int | None, int | None, int], digest: str) -> None:
        """An answer, or the end of an attempt, has to name the request that it belongs to."""
        sent = self._state.sent.get(place)
        if sent is None and digest:
            self._problems.append(Finding(seq, f"it answers request {digest[:12]}, which is not in the log"))
        elif sent is not None and sent.digest != digest:
            self._problems.append(
                Finding(seq, f"it answers request {digest[:12] or 'none'}, but {sent.digest[:12]} was sent")
            )
