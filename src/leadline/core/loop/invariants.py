"""The invariants of requests: each is what the log derives, its attempts follow each other, its stream ends once."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from leadline.core.agent.signals import AgentCreated, AgentDisposed
from leadline.core.llm.adapter import LlmAdapter, ModelInfo, Models, PreparedCall
from leadline.core.llm.failure import Wait
from leadline.core.llm.grammar import StreamGrammar
from leadline.core.loop.proof import Differs, NotProvable, Proof
from leadline.core.prompt.errors import PromptError
from leadline.core.prompt.sections import PromptSections
from leadline.core.session.derive import Derived
from leadline.core.session.events import (
    AssistantChunk,
    AssistantSaid,
    Event,
    LlmRetry,
    RequestEnded,
    RequestHeader,
    RequestSent,
    SeedEnded,
    StepStart,
    TurnResumed,
)
from leadline.core.session.invariants import (
    Invariants,
    LiveInvariant,
    LogInvariant,
    Tell,
    rule_of_one_event,
)
from leadline.core.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from leadline.core.agent.agent import Agent
    from leadline.core.llm.request import LlmRequest
    from leadline.core.llm.stream import StreamEvent
    from leadline.core.session.codec import Header
    from leadline.core.session.log import BeforeAppend
    from leadline.kernel.context import Context

# --- attempts ----------------------------------------------------------------------------------------------


class Attempts(msgspec.Struct, frozen=True):
    """The requests of one step."""

    number: int = 0
    """Of the latest."""
    digest: str = ""
    open: bool = False
    """Whether the latest has neither an answer nor an end."""
    said: bool = False
    failed: bool = False
    """Whether the latest ended with a failure that may pass, and no retry was written since."""
    resumed: bool = False
    """Whether the step was taken up since the latest was sent."""


def _no_attempt(header: Header) -> Attempts:
    return Attempts()


def _attempted(tries: Attempts, event: Event) -> Attempts:
    match event:
        case StepStart() | SeedEnded():
            return Attempts()
        case TurnResumed():
            return msgspec.structs.replace(
                tries, resumed=True, said=tries.said and bool(event.calls or not event.void)
            )
        case RequestSent() if event.turn is not None:
            return Attempts(event.attempt, event.digest, open=True)
        case AssistantSaid() if event.turn is not None:
            return msgspec.structs.replace(tries, open=False, said=True)
        case RequestEnded() if event.turn is not None:
            return msgspec.structs.replace(tries, open=False, failed=isinstance(event.failure, Wait))
        case LlmRetry() if event.turn is not None:
            return msgspec.structs.replace(tries, failed=False)
        case _:
            return tries


def _attempt_follows(tries: Attempts, before: BeforeAppend) -> str | None:
    event = before.event
    match event:
        case RequestSent() | RequestEnded() | AssistantSaid() | LlmRetry() | AssistantChunk() if (
            event.turn is None
        ):
            return None
        case RequestSent():
            return _sending(tries, event)
        case RequestEnded() | AssistantSaid():
            return _ending(tries, event)
        case LlmRetry():
            return _retrying(tries, event)
        case AssistantChunk() if not tries.open or event.attempt != tries.number:
            return f"text of attempt {event.attempt} arrives, {_latest(tries)}"
        case _:
            return None


def _sending(tries: Attempts, event: RequestSent) -> str | None:
    if event.attempt != tries.number + 1:
        return f"attempt {event.attempt} follows attempt {tries.number}"
    if tries.said:
        return f"attempt {event.attempt} is sent in a step that has its answer"
    if tries.open and not tries.resumed:
        return f"attempt {event.attempt} is sent while attempt {tries.number} is in flight"
    return None


def _ending(tries: Attempts, event: RequestEnded | AssistantSaid) -> str | None:
    if not tries.open or event.attempt != tries.number:
        return f"{event.TYPE} ends attempt {event.attempt}, {_latest(tries)}"
    if event.digest != tries.digest:
        return (
            f"{event.TYPE} is of request {event.digest[:12]}, attempt {tries.number} sent {tries.digest[:12]}"
        )
    return None


def _retrying(tries: Attempts, event: LlmRetry) -> str | None:
    if event.attempt != tries.number or tries.open:
        return f"a retry of attempt {event.attempt} is announced, {_latest(tries)}"
    if not tries.failed and not tries.resumed:
        return f"a retry is announced, and attempt {tries.number} did not fail in a way that may pass"
    if not isinstance(event.failure, Wait) or event.delay_s < 0:
        return f"a retry of attempt {tries.number} waits {event.delay_s:g} s for {event.failure.code}"
    return None


def _latest(tries: Attempts) -> str:
    return f"the latest is {tries.number} and {'in flight' if tries.open else 'at its end'}"


ATTEMPTS = LogInvariant(
    name="loop/attempts",
    holds="Attempts of a step are numbered from 1 by one; each ends, under its own digest, before the next is sent; "
    "a retry follows a failure that may pass.",
    init=_no_attempt,
    check=_attempt_follows,
    apply=_attempted,
    types=frozenset(
        kind.TYPE
        for kind in (
            StepStart,
            SeedEnded,
            TurnResumed,
            RequestSent,
            RequestEnded,
            LlmRetry,
            AssistantChunk,
            AssistantSaid,
        )
    ),
)

# --- headers -----------------------------------------------------------------------------------------------


def _no_header(header: Header) -> RequestHeader | None:
    return None


def _header(latest: RequestHeader | None, event: Event) -> RequestHeader | None:
    return event if isinstance(event, RequestHeader) else latest


def _header_follows(latest: RequestHeader | None, before: BeforeAppend) -> str | None:
    event = before.event
    if not isinstance(event, RequestHeader):
        return None
    names = [tool.name for tool in event.tools]
    if not all(names) or names != sorted(set(names)):
        return f"its tools are not in order, or not unique: {', '.join(names)}"
    if (latest is None) != (event.reason == "initial"):
        return f"a header with the reason {event.reason!r} is {'the first' if latest is None else 'not the first'}"
    if latest is not None and (latest.config, latest.system, latest.tools) == (
        event.config,
        event.system,
        event.tools,
    ):
        return "it says what the latest header says"
    return None


HEADERS = LogInvariant(
    name="prompt/headers",
    holds="A request/header is written only where something in it changed, with tools that are unique and in order.",
    init=_no_header,
    check=_header_follows,
    apply=_header,
    types=frozenset((RequestHeader.TYPE,)),
)


def assembled_now(ctx: Context) -> LogInvariant[None]:
    """That a header which an agent writes is what the registries give for its scope at that moment, without any cache."""
    live: dict[str, Agent] = {}

    def created(signal: AgentCreated) -> None:
        live[signal.agent.id] = signal.agent

    def disposed(signal: AgentDisposed) -> None:
        live.pop(signal.agent.id, None)

    ctx.on(AgentCreated, created)
    ctx.on(AgentDisposed, disposed)
    prompt, tools = ctx.get(PromptSections), ctx.get(ToolRegistry)

    def check(before: BeforeAppend) -> str | None:
        agent, event = live.get(before.session.id), before.event
        if agent is None or agent.session is not before.session or not isinstance(event, RequestHeader):
            return None
        scope = agent.ctx.scope
        try:
            now = prompt.assemble(scope, tools.schemas(scope))
        except PromptError as error:
            return f"what the registries hold cannot be assembled: {error}"
        if event.system != now.system:
            return "its system text is not what the prompt sections of the agent give"
        return (
            None
            if event.tools == now.tools
            else "its tools are not what the registry of tools gives the agent"
        )

    return rule_of_one_event(
        "prompt/assembled",
        "A header has the system text and the tools that the registries give the agent.",
        check,
        RequestHeader,
        stored=False,
    )


# --- requests ----------------------------------------------------------------------------------------------


def derived_requests(models: Models, every: int) -> LogInvariant[int]:
    """That every `every`-th request of a session is what a new fold of its whole log gives, byte for byte."""

    def check(sent: int, before: BeforeAppend) -> str | None:
        event = before.event
        if not isinstance(event, RequestSent) or sent % every:
            return None
        log = before.log
        proof = Proof(models, before.session.id)
        for line in log:
            proof.add(line)
        try:
            proof.prove(event, Derived(log).at(before.seq))
        except NotProvable:
            return None
        except Differs as difference:
            return str(difference)
        return None

    def count(sent: int, event: Event) -> int:
        return sent + 1

    def none(header: Header) -> int:
        return 0

    return LogInvariant(
        name="loop/derived-requests",
        holds="A request has the bytes that the log gives: system text, tools, messages, parameters, provider and effort.",
        init=none,
        check=check,
        apply=count,
        types=frozenset((RequestSent.TYPE,)),
        stored=False,
    )


# --- streams -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _HeldCall:
    inner: PreparedCall
    provider: str
    tell: Tell

    @property
    def digest(self) -> str:
        return self.inner.digest

    async def stream(self, *, idempotency_key: str | None = None) -> AsyncGenerator[StreamEvent, None]:
        grammar, where = StreamGrammar(), f"a stream of {self.provider}"
        async with aclosing(self.inner.stream(idempotency_key=idempotency_key)) as events:
            async for event in events:
                self._hold(where, grammar.event(event))
                yield event
        self._hold(where, grammar.closed())

    def _hold(self, where: str, problem: str | None) -> None:
        error = self.tell(where, problem) if problem is not None else None
        if error is not None:
            raise error


@dataclass(frozen=True)
class _HeldAdapter:
    inner: LlmAdapter
    tell: Tell

    @property
    def provider(self) -> str:
        return self.inner.provider

    def info(self, model: str) -> ModelInfo:
        return self.inner.info(model)

    def prepare(self, request: LlmRequest) -> PreparedCall:
        return _HeldCall(self.inner.prepare(request), self.provider, self.tell)


def _watch_streams(ctx: Context, tell: Tell) -> None:
    def held(provider: str, adapter: LlmAdapter | None) -> LlmAdapter | None:
        return None if adapter is None else _HeldAdapter(adapter, tell)

    ctx.get(Models).wrap(ctx, held)


STREAMS = LiveInvariant(
    name="llm/streams",
    holds="A stream has one finish, which is its last event and says what failed where something did.",
    watch=_watch_streams,
)


def guard_requests(ctx: Context) -> None:
    """Register the invariants of requests, where there is a registry."""
    invariants = ctx.find(Invariants)
    if invariants is not None:
        invariants.register(ctx, ATTEMPTS)
        invariants.register(ctx, HEADERS)
        invariants.register(ctx, STREAMS)
        if invariants.on("prompt/assembled"):
            invariants.register(ctx, assembled_now(ctx))
        if invariants.on("loop/derived-requests"):
            invariants.register(ctx, derived_requests(ctx.get(Models), invariants.requests_every))
