"""The recorded model: answers the requests of a replay from the log, and notes where they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio
from anyio.lowlevel import checkpoint

from leadline.core.agent.agents import Agents
from leadline.core.llm.adapter import LlmAdapter, ModelInfo, Models, PreparedCall, UnknownProvider
from leadline.core.llm.failure import LlmFailure, Stop, Wait
from leadline.core.llm.messages import Reasoning, Text, ToolCall
from leadline.core.llm.stream import (
    Finish,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageReport,
)
from leadline.core.llm.wire import canonical_wire
from leadline.core.session.events import AssistantSaid, RequestEnded, RequestSent
from leadline.research.replay.binding import Binding
from leadline.research.replay.differences import PartDifference, request_differences
from leadline.research.roles.purposes import PLANNING, SYNTHESIS, UNIT

if TYPE_CHECKING:
    from leadline.core.llm.request import LlmRequest
    from leadline.kernel.context import Context
    from leadline.research.replay.recording import RecordedAsk, RecordedAttempt, RecordedSession

ROLES = {PLANNING: "planner", UNIT: "researcher", SYNTHESIS: "writer"}
"""Roles of a run by the purpose of their requests."""

Leaves: TypeAlias = Literal["never", "unrecorded", "always"]
Live: TypeAlias = "Callable[[LlmRequest], Leaves]"
"""Which requests go to their provider: none, those that have no recorded answer to just them, or all."""


def nothing_live(request: LlmRequest) -> Leaves:
    """No request leaves: the rule of a replay."""
    return "never"


@dataclass(frozen=True, kw_only=True)
class AskedRequest:
    """One request of a replay, and what it has to do with the recording."""

    role: str
    """`planner`, `researcher`, `writer`, or the name of the purpose."""
    label: str
    """What its agent is there for, in words."""
    session: str
    """Id of the recorded session; that of the live one where nothing like it was recorded."""
    turn: int | None
    step: int | None
    attempt: int
    answered: str
    """`recorded`, `live`, `missing` (no answer is on record), or `cut off` (the recording ends there)."""
    differences: tuple[PartDifference, ...] = ()

    @property
    def place(self) -> str:
        """Which request it is, for a person."""
        return _place(self) + (f", attempt {self.attempt}" if self.attempt > 1 else "")


@dataclass(frozen=True, kw_only=True)
class UnaskedRequest:
    """A recorded answer that the replay never asked for."""

    role: str
    label: str
    session: str
    turn: int | None
    step: int | None

    @property
    def place(self) -> str:
        """Which request it is, for a person."""
        return _place(self)


def _place(one: AskedRequest | UnaskedRequest) -> str:
    named = f"{one.role} ({one.label})" if one.label else one.role
    return f"{named}, turn {one.turn}, step {one.step}"


class Player:
    """Stands between the loop and the providers, for the agents of one replay."""

    def __init__(
        self,
        agents: Agents,
        root: RecordedSession,
        *,
        live: Live = nothing_live,
        answered: Callable[[float], None] | None = None,
        adopt: bool = False,
        cut_short: bool = False,
        cut_off: Callable[[str], None] | None = None,
    ) -> None:
        """`answered` is told the recorded time of each answer that is played. With `adopt` the first agent without
        a parent that has the root's kind stands for the root. With `cut_short` a request that the recording does
        not have waits, since what was recorded was stopped there."""
        self._agents = agents
        self._root = root
        self._live = live
        self._answered = answered
        self._adopt = adopt
        self._cut_short = cut_short
        self._cut_off = cut_off
        self._bound = Binding(agents, root)
        self._steps: dict[str, list[tuple[int | None, int | None]]] = {}
        self._tries: Counter[tuple[str, int]] = Counter()
        self._played: set[tuple[str, int]] = set()
        self._waiting = 0
        self.asked: list[AskedRequest] = []
        """Every request of the replay, as they came."""

    def mount(self, ctx: Context) -> None:
        """Answer for every provider as long as `ctx` lives; requests of other agents pass."""
        ctx.get(Models).wrap(ctx, self._wrapped)

    def bind(self, session_id: str) -> None:
        """Let a live session stand for the root of the recording; its children follow by lineage."""
        self._bound.bind_root(session_id)

    @property
    def unasked(self) -> tuple[UnaskedRequest, ...]:
        """Recorded answers that were not asked for, so far."""
        return tuple(
            UnaskedRequest(
                role=_role(ask.last.sent.purpose),
                label=session.label,
                session=session.id,
                turn=ask.turn,
                step=ask.step,
            )
            for session in self._root.counting()
            for ask in session.asks
            if not ask.last.is_open and (session.id, ask.last.seq) not in self._played
        )

    @property
    def at_the_end(self) -> bool:
        """Whether every recorded answer was played, and all who are at work wait for one that never came."""
        busy = sum(agent.status == "running" for agent in self._agents.live)
        return 0 < self._waiting == busy and not self.unasked

    def _wrapped(self, provider: str, adapter: LlmAdapter | None) -> LlmAdapter:
        return _RecordedAdapter(self, provider, adapter)

    def concerns(self, session_id: str) -> bool:
        """Whether a session takes part in the replay."""
        if self._adopt and not self._bound.rooted:
            top = self._top(session_id)
            if top is not None:
                self._bound.bind_root(top)
        return self._bound.belongs(session_id)

    def _top(self, session_id: str) -> str | None:
        """The session above all others of a line, where it has the kind of the root."""
        agent = self._agents.find(session_id)
        while agent is not None and agent.session.header.parent is not None:
            agent = self._agents.find(agent.session.header.parent)
        kind = self._root.session.header.kind
        return agent.id if agent is not None and agent.session.header.kind == kind else None

    async def stream(
        self, request: LlmRequest, digest: str, call: PreparedCall | None, key: str | None
    ) -> AsyncGenerator[StreamEvent, None]:
        """The answer of one request of the replay."""
        sent = self._sent(request)
        session = self._bound.of(request.session)
        ask = self._ask(session, sent, request, digest) if session else None
        attempt = self._attempt(session, ask) if session and ask else None
        differences = self._differences(session, attempt, request, digest) if session and attempt else ()
        if self._goes_out(request, attempt, differences):
            self._note(request, sent, session, "live", differences)
            async for event in _live(call, request, key):
                yield event
        elif self._ends_here(ask, attempt):
            self._note(request, sent, session, "cut off", differences)
            for event in _begun(attempt):
                yield event
            await self._wait(request.session)
        elif session is None or ask is None or attempt is None:
            self._note(request, sent, session, "missing")
            yield Finish("error", _missing(self.asked[-1]))
        else:
            self._note(request, sent, session, "recorded", differences)
            self._played.add((session.id, attempt.seq))
            if self._answered is not None:
                self._answered(attempt.at)
            await checkpoint()
            for event in _events(ask, attempt):
                yield event

    def _goes_out(
        self, request: LlmRequest, attempt: RecordedAttempt | None, differences: tuple[PartDifference, ...]
    ) -> bool:
        leaves = self._live(request)
        if leaves != "unrecorded":
            return leaves == "always"
        return attempt is None or attempt.is_open or bool(differences)

    def _ends_here(self, ask: RecordedAsk | None, attempt: RecordedAttempt | None) -> bool:
        """Whether what was recorded was stopped while it waited for this answer, or before it asked for it."""
        if attempt is not None:
            return attempt.is_open
        return self._cut_short or (ask is not None and ask.last.to_retry)

    async def _wait(self, session: str) -> None:
        """Say nothing more until whoever waits is stopped."""
        if self._cut_off is not None:
            self._cut_off(session)
        self._waiting += 1
        try:
            await anyio.sleep_forever()
        finally:
            self._waiting -= 1

    def _sent(self, request: LlmRequest) -> RequestSent | None:
        agent = self._agents.find(request.session)
        return agent.session.last(RequestSent) if agent else None

    def _ask(
        self, session: RecordedSession, sent: RequestSent | None, request: LlmRequest, digest: str
    ) -> RecordedAsk | None:
        """The recorded question: the one with this very request, else the one in the same place."""
        place = (sent.turn, sent.step) if sent else (None, None)
        steps = self._steps.setdefault(request.session, [])
        if place not in steps:
            steps.append(place)
        at = steps.index(place)
        here = session.asks[at] if at < len(session.asks) else None
        if here is not None and here.last.sent.digest == digest:
            return here
        same = [one for one in session.asks if one.last.sent.digest == digest]
        return same[0] if len(same) == 1 else here

    def _attempt(self, session: RecordedSession, ask: RecordedAsk) -> RecordedAttempt | None:
        at = self._tries[session.id, ask.last.seq]
        self._tries[session.id, ask.last.seq] += 1
        return ask.attempts[at] if at < len(ask.attempts) else None

    def _differences(
        self, session: RecordedSession, attempt: RecordedAttempt, request: LlmRequest, digest: str
    ) -> tuple[PartDifference, ...]:
        if attempt.sent.digest == digest:
            return ()
        was = session.request(attempt)
        return () if was is None else request_differences(was, request)

    def _note(
        self,
        request: LlmRequest,
        sent: RequestSent | None,
        session: RecordedSession | None,
        answered: str,
        differences: tuple[PartDifference, ...] = (),
    ) -> None:
        agent = self._agents.find(request.session)
        self.asked.append(
            AskedRequest(
                role=_role(request.purpose.name),
                label=agent.session.header.label if agent else "",
                session=session.id if session else request.session,
                turn=sent.turn if sent else None,
                step=sent.step if sent else None,
                attempt=sent.attempt if sent else 1,
                answered=answered,
                differences=differences,
            )
        )


@dataclass(frozen=True)
class _RecordedAdapter:
    """In the place of one provider, mounted or not."""

    player: Player
    provider: str
    inner: LlmAdapter | None

    def info(self, model: str) -> ModelInfo:
        return self.inner.info(model) if self.inner else ModelInfo(model, origin="recording")

    def prepare(self, request: LlmRequest) -> PreparedCall:
        call = self.inner.prepare(request) if self.inner else None
        if self.player.concerns(request.session):
            digest = call.digest if call is not None else canonical_wire(request).digest
            return _RecordedCall(self.player, request, call, digest)
        if call is None:
            raise UnknownProvider(f"no model provider is called {self.provider!r}")
        return call


@dataclass(frozen=True)
class _RecordedCall:
    player: Player
    request: LlmRequest
    call: PreparedCall | None
    digest: str

    def stream(self, *, idempotency_key: str | None = None) -> AsyncGenerator[StreamEvent, None]:
        return self.player.stream(self.request, self.digest, self.call, idempotency_key)


async def _live(
    call: PreparedCall | None, request: LlmRequest, key: str | None
) -> AsyncGenerator[StreamEvent, None]:
    if call is None:
        provider = request.config.model.provider
        yield Finish("error", Stop("NOT_FOUND", f"provider {provider} is not configured"))
        return
    async with aclosing(call.stream(idempotency_key=key)) as events:
        async for event in events:
            yield event


def _missing(asked: AskedRequest) -> Stop:
    return Stop(
        "NOT_FOUND",
        f"no answer is on record for the {asked.place}",
        next_step="the recording has no more than it shows; ask a model with --model",
    )


def _role(purpose: str) -> str:
    return ROLES.get(purpose, purpose)


def _events(ask: RecordedAsk, attempt: RecordedAttempt) -> list[StreamEvent]:
    """A recorded outcome as the stream that it came from."""
    outcome = attempt.outcome
    usage = [UsageReport(outcome.usage)] if outcome is not None and outcome.usage is not None else []
    if isinstance(outcome, AssistantSaid):
        return [*_said(outcome), *usage, _end_of(outcome, attempt)]
    failure = _failure(ask, attempt, outcome)
    incomplete = outcome is not None and outcome.state == "incomplete"
    return [*usage, Finish("incomplete" if incomplete else "error", failure)]


def _said(said: AssistantSaid) -> list[StreamEvent]:
    events: list[StreamEvent] = []
    for part in said.message.content:
        match part:
            case Text(text):
                events.append(TextDelta(text))
            case Reasoning(text, opaque):
                events.append(ReasoningDelta(text, opaque))
            case ToolCall(id, name, arguments):
                events.append(ToolCallDelta(index=len(events), id=id, name=name, arguments=arguments))
    for name in said.cut_calls:
        events.append(ToolCallDelta(index=len(events), name=name, arguments="{"))
    return events


def _begun(attempt: RecordedAttempt | None) -> list[StreamEvent]:
    """What could be read of an answer before it was cut off."""
    outcome = attempt.outcome if attempt is not None else None
    return _said(outcome) if isinstance(outcome, AssistantSaid) else []


def _end_of(said: AssistantSaid, attempt: RecordedAttempt) -> Finish:
    if said.state == "refused":
        return Finish("refused", attempt.final_failure, detail=attempt.final_error or None)
    return Finish(
        "length" if said.state == "length" else "done",
        leaked_call=said.leaked_call,
        correction=said.correction,
    )


def _failure(ask: RecordedAsk, attempt: RecordedAttempt, ended: RequestEnded | None) -> LlmFailure:
    """How the attempt failed: so that it is tried again where it was, at once, and not where it was not."""
    failure = (ended.failure if ended else None) or Wait("STREAM_CLOSED", "the answer ended before its end")
    if attempt is ask.last and not attempt.to_retry:
        final = attempt.final_failure or failure
        return final if isinstance(final, Stop) else Stop("GAVE_UP", final.message, status=final.status)
    if isinstance(failure, Wait):
        return Wait(failure.code, failure.message, status=failure.status, request_id=failure.request_id)
    return failure
