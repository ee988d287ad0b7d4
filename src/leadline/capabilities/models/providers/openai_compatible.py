"""Providers that speak chat completions: one adapter, everything special in its profile."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import NamedTuple

from leadline.capabilities.models.providers.decode import ChatDecoder
from leadline.capabilities.models.providers.encode import ChatEncoder, encoder_for
from leadline.capabilities.models.providers.failures import html_title, http_failure, looks_like_html
from leadline.capabilities.models.providers.http import HttpClient, Reply, proxy_for
from leadline.capabilities.models.providers.profiles import Profile
from leadline.core.clock import Clock
from leadline.core.llm.adapter import LlmAdapter, ModelInfo, PreparedCall
from leadline.core.llm.failure import LlmFailure, Stop, Wait
from leadline.core.llm.leaks import LeakFilter, LeakRules
from leadline.core.llm.messages import Wire
from leadline.core.llm.request import CallConfig, LlmRequest, ToolSchema
from leadline.core.llm.sse import SseDecoder
from leadline.core.llm.stream import Finish, StreamEvent
from leadline.version import __version__

KeySource = Callable[[], str | None]
_BODY_LIMIT = 64 << 20
_ERROR_BODY_LIMIT = 64 << 10
_DRAIN_S = 0.05


@dataclass(frozen=True, slots=True)
class Route:
    """How one provider is reached. The key is asked for at each call and kept nowhere."""

    provider: str
    profile: Profile
    client: HttpClient
    clock: Clock
    key: KeySource = field(repr=False)

    @property
    def url(self) -> str:
        """Where completions are asked for."""
        return self.profile.base_url.rstrip("/") + self.profile.path


class OpenAiCompatible:
    """A provider of chat completions."""

    def __init__(self, route: Route, models: Mapping[str, ModelInfo] | None = None) -> None:
        """Set up the provider.

        Args:
            route: how it is reached.
            models: what the user's configuration says about its models.
        """
        self._route = route
        self._models = dict(models or {})
        self._latest: tuple[_Head, ChatEncoder] | None = None

    @property
    def provider(self) -> str:
        """The name before the slash in ``provider/model``."""
        return self._route.provider

    def info(self, model: str) -> ModelInfo:
        """The user's facts about ``model``, else those of the profile."""
        return self._models.get(model) or profile_info(model, self._route.profile)

    def prepare(self, request: LlmRequest) -> PreparedCall:
        """Encode ``request`` for this provider."""
        conversation = request.conversation
        wire = conversation.wire(self._encoder(request))
        tools = frozenset(tool.name for tool in request.tools)
        return _ChatCall(self._route, wire, conversation.pairing_problem, tools)

    def _encoder(self, request: LlmRequest) -> ChatEncoder:
        """The encoder of `request`; that of the one before where both were made from the same head."""
        head = _Head(request.config, request.system, request.tools)
        if self._latest is not None and all(map(is_, self._latest[0], head)):
            return self._latest[1]
        encoder = encoder_for(request, self._route.profile)
        self._latest = head, encoder
        return encoder


class _Head(NamedTuple):
    """What of a request stands before its messages."""

    config: CallConfig
    system: str
    tools: tuple[ToolSchema, ...]


def profile_info(model: str, profile: Profile) -> ModelInfo:
    """What a profile says about any of its models."""
    return ModelInfo(
        model=model,
        context_window=profile.context_window,
        max_output=profile.max_output,
        efforts=tuple(profile.efforts),
        tools=profile.tools,
        forced_tool_choice=profile.forced_tool_choice == "always",
        structured_output=profile.structured_output,
        origin=profile.origin,
    )


@dataclass(frozen=True, slots=True)
class _ChatCall:
    route: Route
    wire: Wire = field(repr=False)
    problem: str | None
    tools: frozenset[str]

    @property
    def digest(self) -> str:
        """sha256 in hex of the body."""
        return self.wire.digest

    @property
    def body(self) -> bytes:
        """The bytes of the body."""
        return self.wire.body

    async def stream(self, *, idempotency_key: str | None = None) -> AsyncGenerator[StreamEvent, None]:
        """One attempt; see `PreparedCall.stream`."""
        profile = self.route.profile
        key = self.route.key()
        refused = self._refusal(key)
        if refused is not None:
            yield Finish("error", refused)
            return
        deadline = self.route.clock.monotonic() + profile.total_timeout_s
        reply = await self.route.client.post(
            self.route.url,
            self._headers(key, idempotency_key),
            self.wire.body,
            proxy=proxy_for(self.route.url),
            timeout_s=min(profile.idle_timeout_s, profile.total_timeout_s),
        )
        if isinstance(reply, Wait):
            yield Finish("error", reply)
            return
        exchange = _Exchange(self.route, reply, deadline)
        leaks = LeakFilter(self._leak_rules())
        try:
            while not exchange.ended:
                for event in await exchange.advance():
                    for passed in leaks.feed(event):
                        yield passed
        finally:
            reply.close()

    def _refusal(self, key: str | None) -> Stop | None:
        """Why the call is not made at all."""
        profile = self.route.profile
        if self.problem is not None:
            return Stop("INVALID_REQUEST", f"calls and results do not pair up: {self.problem}")
        if key is None and profile.key_required:
            names = " or ".join(profile.key_env) or "api_key"
            step = f"set {names}, or name the variable that holds the key as api_key_env of the provider"
            return Stop("MISSING_CREDENTIAL", f"provider {self.route.provider!r} needs a key", None, step)
        if key is not None and not (key.isascii() and key.isprintable()):
            step = "copy the key again; it may hold a line break or a typographic character"
            return Stop("AUTH", f"the key of provider {self.route.provider!r} cannot be sent", None, step)
        return None

    def _leak_rules(self) -> LeakRules:
        leaks = self.route.profile.text_tool_calls
        return LeakRules(leaks.tags, leaks.parse, self.tools)

    def _headers(self, key: str | None, idempotency_key: str | None) -> Mapping[str, str]:
        accept = "text/event-stream" if self.route.profile.streaming else "application/json"
        headers = {
            "Content-Type": "application/json",
            "Accept": accept,
            "Accept-Encoding": "identity",
            "User-Agent": f"leadline/{__version__}",
        }
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        return headers


class _Exchange:
    """Turns one response into events, a read at a time."""

    def __init__(self, route: Route, reply: Reply, deadline: float) -> None:
        self._profile, self._clock = route.profile, route.clock
        self._reply = reply
        self._deadline = deadline
        self._sse = SseDecoder()
        self._decoder = ChatDecoder(route.profile)
        self._headers = reply.headers
        self._media_type = self._headers.get("content-type", "").partition(";")[0].strip().lower()
        self._begun = False
        self.ended = False

    async def advance(self) -> Sequence[StreamEvent]:
        """The next events; with the `Finish` it is ended."""
        if self._reply.status != 200:
            self.ended = True
            return [Finish("error", await self._http_failure())]
        data = await self._reply.read(self._patience_s())
        if not self._begun:
            self._begun = True
            if not isinstance(data, Wait) and not self._is_stream(data):
                self.ended = True
                rest = await self._reply.read_all(self._profile.idle_timeout_s, _BODY_LIMIT)
                body = rest if isinstance(rest, Wait) else data + rest
                return _whole(self._decoder, body, self._media_type, self._profile.base_url)
        events = self._taken(data)
        if self._decoder.ended:
            self.ended = True
            await self._drain()
        return events

    def _is_stream(self, beginning: bytes) -> bool:
        """Whether the body is a stream of events: its first bytes say so before its media type does."""
        words = beginning.lstrip()
        if self._media_type == "text/event-stream":
            return not words.startswith(b"{")
        return words.startswith((b"data:", b"event:", b":"))

    async def _http_failure(self) -> LlmFailure:
        body = await self._reply.read_all(self._profile.idle_timeout_s, _ERROR_BODY_LIMIT)
        known = b"" if isinstance(body, Wait) else body
        return http_failure(self._profile, self._reply.status, self._headers, known, self._clock.now())

    def _patience_s(self) -> float:
        profile = self._profile
        silence_s = profile.linger_s if self._decoder.finish_seen else profile.idle_timeout_s
        return max(0.0, min(silence_s, self._deadline - self._clock.monotonic()))

    def _taken(self, data: bytes | Wait) -> list[StreamEvent]:
        if isinstance(data, Wait):
            if data.code == "TIMEOUT" and self._clock.monotonic() >= self._deadline:
                limit = f"{self._profile.total_timeout_s:g} s"
                data = Wait("TIMEOUT", f"the answer was not complete after {limit}")
            return self._decoder.cut(data)
        if not data:
            return self._decoder.close()
        if self._sse.pending > _BODY_LIMIT:
            return self._decoder.cut(
                Wait("MALFORMED_RESPONSE", "the stream holds an event that does not end")
            )
        return [event for part in self._sse.feed(data) for event in self._decoder.feed(part.data, part.event)]

    async def _drain(self) -> None:
        """Read what little may follow the end, so that the connection can be used again."""
        while not self._reply.at_end:
            data = await self._reply.read(_DRAIN_S)
            if isinstance(data, Wait) or not data:
                return


def _whole(decoder: ChatDecoder, body: bytes | Wait, media_type: str, base_url: str) -> Sequence[StreamEvent]:
    if isinstance(body, Wait):
        return decoder.cut(body)
    if not body.strip():
        return decoder.cut(Wait("EMPTY_RESPONSE", "the provider answered with an empty body", status=200))
    if media_type.endswith("json") or media_type == "text/event-stream":
        return decoder.whole(body)
    text = body[:_ERROR_BODY_LIMIT].decode("utf-8", "replace")
    what = (
        f'a web page, "{html_title(text)}"'
        if looks_like_html(media_type, text)
        else media_type or "something unnamed"
    )
    message = f"{base_url} answered with {what} where a completion was expected; check base_url"
    return decoder.cut(Wait("MALFORMED_RESPONSE", message, status=200))


_ADAPTER: type[LlmAdapter] = OpenAiCompatible
