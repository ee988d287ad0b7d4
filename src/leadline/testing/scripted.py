"""A model that plays a script: replies as Python values, or a function of the request."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import anyio
import anyio.lowlevel
import msgspec
from pydantic import BaseModel, ConfigDict

from leadline.core.config import ConfigParser
from leadline.core.llm.adapter import LlmAdapter, ModelInfo, Models, PreparedCall
from leadline.core.llm.failure import LlmFailure, Stop, Wait
from leadline.core.llm.messages import Wire
from leadline.core.llm.request import LlmRequest, ModelRef
from leadline.core.llm.stream import (
    Finish,
    FinishState,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageReport,
)
from leadline.core.llm.usage import Usage
from leadline.core.llm.wire import canonical_wire
from leadline.kernel.context import Context
from leadline.kernel.errors import LeadlineError
from leadline.kernel.plugin import Plugin


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call the model makes."""

    name: str
    arguments: Mapping[str, object] | str = field(default_factory=dict[str, object])
    """An object, or raw text where the text itself is the subject."""
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model answers to one request."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    state: FinishState = "done"
    failure: LlmFailure | None = None
    """Ends the reply, after its text and calls."""
    usage: Usage | None = None
    """None: worked out from the lengths, at four characters a token."""
    pieces: int = 1
    """In how many deltas the text comes."""
    hang: bool = False
    """Never end: wait behind the text until cancelled."""
    leaked_call: bool = False


Playable: TypeAlias = Reply | Call | str | LlmFailure
"""A text and a failure stand for the reply that is just that; a call for the reply that makes it."""
Responder: TypeAlias = Callable[[LlmRequest], Playable]


class ScriptExhausted(LeadlineError, AssertionError):
    """The model was asked more often than the script has replies."""


class ScriptedModel:
    """An adapter that plays replies and remembers what it was asked."""

    def __init__(
        self,
        replies: Iterable[Playable] | Responder = (),
        *,
        provider: str = "scripted",
        info: ModelInfo | None = None,
    ) -> None:
        self._provider = provider
        self._info = info or ModelInfo("scripted", context_window=100_000, max_output=8_000, origin="script")
        self._responder = replies if callable(replies) else None
        self._left: deque[Playable] = deque(() if callable(replies) else replies)
        self.requests: list[LlmRequest] = []
        """Requests that were sent, in order; one that was sent again is in it again."""
        self.idempotency_keys: list[str | None] = []
        self.digests: list[str] = []

    @property
    def provider(self) -> str:
        """The name before the slash in ``provider/model``."""
        return self._provider

    @property
    def ref(self) -> ModelRef:
        """A model of this provider."""
        return ModelRef(self._provider, self._info.model)

    def info(self, model: str) -> ModelInfo:
        """The same facts for every model."""
        return msgspec.structs.replace(self._info, model=model)

    def prepare(self, request: LlmRequest) -> PreparedCall:
        """A call whose digest is that of the canonical wire."""
        return _ScriptedCall(self, request, canonical_wire(request))

    def push(self, *replies: Playable) -> None:
        """Add replies at the end of the script."""
        self._left.extend(replies)

    def assert_consumed(self) -> None:
        """Fail unless every scripted reply was played."""
        assert not self._left, (
            f"{len(self._left)} scripted replies were never asked for: {list(self._left)!r}"
        )

    def play(self, call: _ScriptedCall, idempotency_key: str | None) -> Reply:
        """Note the request and take its reply.

        Raises:
            ScriptExhausted: there is none.
        """
        self.requests.append(call.request)
        self.idempotency_keys.append(idempotency_key)
        self.digests.append(call.digest)
        if self._responder is not None:
            return _as_reply(self._responder(call.request))
        if not self._left:
            raise ScriptExhausted(
                f"request {len(self.requests)} ({call.request.purpose.name}) has no scripted reply"
            )
        return _as_reply(self._left.popleft())


def _as_reply(playable: Playable) -> Reply:
    match playable:
        case Reply():
            return playable
        case str():
            return Reply(playable)
        case Call():
            return Reply(calls=(playable,))
        case Wait() | Stop():
            return Reply(failure=playable, state="error")


@dataclass(frozen=True, slots=True)
class _ScriptedCall:
    model: ScriptedModel
    request: LlmRequest
    wire: Wire

    @property
    def digest(self) -> str:
        return self.wire.digest

    async def stream(self, *, idempotency_key: str | None = None) -> AsyncGenerator[StreamEvent, None]:
        number = len(self.model.requests)
        reply = self.model.play(self, idempotency_key)
        await anyio.lowlevel.checkpoint()
        if reply.reasoning:
            yield ReasoningDelta(reply.reasoning)
        for piece in _pieces(reply.text, reply.pieces):
            yield TextDelta(piece)
        for index, call in enumerate(reply.calls):
            yield ToolCallDelta(index, None, call.id or f"call-{number}-{index}", call.name, _arguments(call))
        if reply.hang:
            await anyio.sleep_forever()
        if reply.failure is None or reply.usage is not None:
            yield UsageReport(reply.usage or self._usage(reply))
        state = "error" if reply.failure is not None and reply.state == "done" else reply.state
        failure = reply.failure
        if failure is None and state in ("error", "incomplete"):
            failure = Wait("STREAM_CLOSED", "the script ends the stream here")
        yield Finish(state, failure, leaked_call=reply.leaked_call)

    def _usage(self, reply: Reply) -> Usage:
        written = len(reply.text) + sum(len(call.name) + len(_arguments(call)) for call in reply.calls)
        reasoning = len(reply.reasoning) // 4 if reply.reasoning else None
        return Usage(input=len(self.wire.body) // 4, output=max(1, written // 4), reasoning=reasoning)


def _arguments(call: Call) -> str:
    if isinstance(call.arguments, str):
        return call.arguments
    return msgspec.json.encode(call.arguments).decode()


def _pieces(text: str, count: int) -> Iterable[str]:
    if not text:
        return ()
    size = max(1, -(-len(text) // max(1, count)))
    return [text[at : at + size] for at in range(0, len(text), size)]


class ScriptedReplyConfig(BaseModel):
    """A reply in a configuration row."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str = ""
    """What the model says."""
    reasoning: str = ""
    """What it thinks before."""
    calls: tuple[tuple[str, Mapping[str, object]], ...] = ()
    """Tool calls as pairs of name and arguments."""
    state: Literal["done", "length", "refused"] = "done"
    """How the reply ends."""


class ScriptedConfig(BaseModel):
    """Configuration of a row that mounts a scripted provider."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    provider: str = "scripted"
    """Name of the provider."""
    replies: tuple[ScriptedReplyConfig, ...] = ()
    """Replies in the order they are played."""


async def _apply(ctx: Context, config: ScriptedConfig) -> None:
    replies = [
        Reply(
            reply.text,
            tuple(Call(name, arguments) for name, arguments in reply.calls),
            reply.reasoning,
            reply.state,
        )
        for reply in config.replies
    ]
    ctx.get(Models).register(ctx, ScriptedModel(replies, provider=config.provider))


plugin: Plugin[ScriptedConfig] = Plugin(
    "scripted-model", _apply, config=ConfigParser(ScriptedConfig), needs=(Models,)
)


def models_of(*adapters: LlmAdapter, default: ModelRef | None = None) -> Plugin[None]:
    """A plugin that provides `Models` with just these adapters.

    Args:
        adapters: the providers.
        default: the default model; None takes the first scripted one.
    """
    scripted = next((adapter.ref for adapter in adapters if isinstance(adapter, ScriptedModel)), None)

    async def apply(ctx: Context, config: None) -> None:
        models = Models(default or scripted)
        ctx.provide(Models, models)
        for adapter in adapters:
            models.register(ctx, adapter)

    return Plugin("scripted-models", apply, provides=(Models,))


_ADAPTER: type[LlmAdapter] = ScriptedModel
