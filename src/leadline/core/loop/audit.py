"""Proves from a log alone what was sent: makes every request again and compares its digest.

What it needs beside the log is the adapter that the request went through, configured as it was then.
It makes no connection and asks for no key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from leadline.core.loop.parts import Part
from leadline.core.loop.proof import Differs, NotProvable, Proof
from leadline.core.loop.side_effects import SideEffect, side_effects
from leadline.core.session.approvals import AskedCall, asked_calls
from leadline.core.session.derive import Derived
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import AssistantSaid, RequestEnded, RequestSent
from leadline.core.session.in_flight import in_flight
from leadline.core.session.invariants import broken_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from leadline.core.llm.adapter import Models
    from leadline.core.session.codec import Logged
    from leadline.core.session.invariants import LiveInvariant, LogInvariant
    from leadline.core.session.log import Session


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that an audit could not confirm."""

    seq: int | None
    """Number of the event; None when it is the log as a whole."""
    reason: str
    parts: tuple[Part, ...] = ()
    """Which parts of a request differ, as far as that can be told."""

    def __str__(self) -> str:
        return self.reason if self.seq is None else f"event {self.seq}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """A request whose answer never came to the log."""

    seq: int
    turn: int | None
    step: int | None
    attempt: int
    model: str
    digest: str
    idempotency_key: str


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
    side_effects: tuple[SideEffect, ...] = ()
    """Every call that may have done more to the world than read, with what became of it."""
    approvals: tuple[AskedCall, ...] = ()
    """Every call that somebody was asked about, with what was decided; a call that was asked about again is there again."""
    in_flight: tuple[InFlight, ...] = ()
    """Requests that were sent and never answered; they may have been billed."""

    @property
    def ok(self) -> bool:
        """Whether everything was proved."""
        return not self.problems and not self.not_provable


Place: TypeAlias = "tuple[int | None, int | None, int]"
"""Turn, step and attempt."""


def audit(
    session: Session, models: Models, invariants: Iterable[LogInvariant[object] | LiveInvariant] = ()
) -> SessionAudit:
    """Make every request of `session` again and compare; total, whatever state the log is in.

    `invariants`: the log is held to those that need nothing but a log.
    """
    return _Audit(session, models).run(tuple(invariants))


def _in_flight(session: Session) -> Iterator[InFlight]:
    for line, sent in in_flight(session):
        yield InFlight(
            seq=line.seq,
            turn=sent.turn,
            step=sent.step,
            attempt=sent.attempt,
            model=sent.model,
            digest=sent.digest,
            idempotency_key=sent.idempotency_key,
        )


class _Audit:
    def __init__(self, session: Session, models: Models) -> None:
        self._session = session
        self._models = models
        self._derived = Derived(session.logged)
        self._proof = Proof(models)
        self._sent: dict[Place, RequestSent] = {}
        self._requests = 0
        self._proved = 0
        self._problems = [Finding(None, str(problem)) for problem in session.problems]
        self._not_provable: list[Finding] = []

    def run(self, invariants: Sequence[LogInvariant[object] | LiveInvariant]) -> SessionAudit:
        session = self._session
        obstacle = session.obstacle
        if obstacle is not None and not session.problems:
            self._problems.append(Finding(obstacle.seq, obstacle.missing))
        for line in session.logged:
            try:
                self._look(line)
            except EventUndecodable as error:
                self._problems.append(Finding(line.seq, str(error)))
            self._proof.add(line)
        done, unmeant = side_effects(session)
        self._problems += [Finding(seq, reason) for seq, reason in unmeant]
        self._problems += [
            Finding(seq, f"it breaks {broken.name}: {reason}")
            for seq, broken, reason in broken_in(session, invariants)
        ]
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
            side_effects=done,
            approvals=asked_calls(session.logged),
            in_flight=tuple(_in_flight(session)),
        )

    def _look(self, line: Logged) -> None:
        match line.type:
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
        self._sent[sent.turn, sent.step, sent.attempt] = sent
        try:
            self._proof.prove(sent, self._derived.at(seq), seq)
        except NotProvable as reason:
            self._not_provable.append(Finding(seq, str(reason)))
        except Differs as difference:
            self._problems.append(Finding(seq, str(difference), difference.parts))
        else:
            self._proved += 1

    def _answer(self, seq: int, place: Place, digest: str) -> None:
        """An answer, or the end of an attempt, has to name the request that it belongs to."""
        sent = self._sent.get(place)
        if sent is None and digest:
            self._problems.append(Finding(seq, f"it answers request {digest[:12]}, which is not in the log"))
        elif sent is not None and sent.digest != digest:
            self._problems.append(
                Finding(seq, f"it answers request {digest[:12] or 'none'}, but {sent.digest[:12]} was sent")
            )
