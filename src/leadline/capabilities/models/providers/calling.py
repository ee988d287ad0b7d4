"""Requests to a provider, whatever wire format it speaks: one adapter, one call."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from operator import is_
from typing import NamedTuple, Protocol
from urllib.parse import quote, urlencode

import msgspec

from leadline.capabilities.models.providers.ending import Decoder
from leadline.capabilities.models.providers.exchange import Exchange
from leadline.capabilities.models.providers.http import HttpClient, is_remote, proxy_for
from leadline.capabilities.models.providers.native import shaped
from leadline.capabilities.models.providers.profiles import Profile
from leadline.capabilities.models.providers.text_tools import (
    Rewriting,
    TextEncoder,
    TextTools,
    text_tools,
    with_text_tools,
)
from leadline.core.clock import Clock
from leadline.core.llm.adapter import LlmAdapter, ModelInfo, PreparedCall
from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.leaks import LeakFilter, LeakRules
from leadline.core.llm.messages import Wire, WireEncoder
from leadline.core.llm.request import CallConfig, LlmRequest, ToolSchema
from leadline.core.llm.room import within_window
from leadline.core.llm.stream import Finish, StreamEvent
from leadline.version import __version__

_KEPT_ENCODERS = 16
"""Roles of a run, and agents of other kinds beside it."""

KeySource = Callable[[], str | None]


class EncoderFor(Protocol):
    """Makes the encoder whose head says everything about a request but its messages."""

    def __call__(self, request: LlmRequest, profile: Profile, info: ModelInfo) -> WireEncoder:
        """Pure: equal arguments, equal encoders."""
        ...


class Sending(Protocol):
    """Sends a call and gives what comes, as it comes."""

    def __call__(
        self, call: ProviderCall, key: str | None, idempotency_key: str | None
    ) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """The events of one attempt, several at a time; the last one is a `Finish`."""
        ...


@dataclass(frozen=True, slots=True)
class WireFormat:
    """How requests are written and replies are read. The module of each format has one, `WIRE`."""

    encoder: EncoderFor
    decoder: Callable[[Profile], Decoder]
    as_text: Rewriting = TextEncoder
    """How calls and results are written for a model that cannot call tools."""
    send: Sending | None = None
    """How it is sent; None: over HTTP, to the address of the route."""


@dataclass(frozen=True, slots=True)
class Route:
    """How one provider is reached. The key is asked for at each call and kept nowhere."""

    provider: str
    profile: Profile
    client: HttpClient
    clock: Clock
    key: KeySource = field(repr=False)

    def url(self, model: str) -> str:
        """Where an answer of ``model`` is asked for."""
        profile = self.profile
        method = "streamGenerateContent?alt=sse" if profile.streaming else "generateContent"
        path = profile.path.replace("{model}", quote(model, safe="-._~")).replace("{method}", method)
        query = f"{'&' if '?' in path else '?'}{urlencode(profile.query)}" if profile.query else ""
        return profile.base_url.rstrip("/") + path + query

    def of_model(self, model: str) -> Route:
        """The same, with what is different for one model."""
        profile = self.profile.of_model(model)
        return self if profile is self.profile else replace(self, profile=profile)

    def refusal(self, key: str | None) -> Stop | None:
        """Why nothing is sent with this key."""
        if not self.profile.base_url and self.profile.api != "bridge":
            names = "".join(f", or set {name}" for name in self.profile.base_url_env)
            step = f"say it with: leadline models add {self.provider}/NAME --base-url URL{names}"
            return Stop(
                "INVALID_REQUEST", f"the address of provider {self.provider!r} is unknown", None, step
            )
        if key is None and self.profile.key_required:
            names = " or ".join(self.profile.key_env) or "api_key"
            step = f"set {names}, or store the key with: leadline login {self.provider}"
            return Stop("MISSING_CREDENTIAL", f"provider {self.provider!r} needs a key", None, step)
        if key is not None and not (key.isascii() and key.isprintable()):
            step = "copy the key again; it may hold a line break or a typographic character"
            return Stop("AUTH", f"the key of provider {self.provider!r} cannot be sent", None, step)
        return None

    def headers(self, key: str | None, *, accept: str) -> dict[str, str]:
        """Headers of every request."""
        headers = {
            "Content-Type": "application/json",
            "Accept": accept,
            "Accept-Encoding": "identity",
            "User-Agent": f"leadline/{__version__}",
            **self.profile.headers,
        }
        if key is not None:
            headers[self.profile.key_header] = f"{self.profile.key_scheme} {key}".lstrip()
        return headers


class ProviderAdapter:
    """A provider of models, in the wire format that its profile names."""

    def __init__(
        self, route: Route, wire_format: WireFormat, models: Mapping[str, ModelInfo] | None = None
    ) -> None:
        """Set up the provider; `adapter_for` of `formats` does it with the format that the profile names.

        Args:
            route: how it is reached.
            wire_format: what it speaks.
            models: what the user's configuration says about its models.
        """
        self._route = route
        self._format = wire_format
        self._models = dict(models or {})
        self._urls: dict[str, str] = {}
        self._tools: tuple[tuple[ToolSchema, ...], frozenset[str]] = ((), frozenset())
        """The tools of the latest request, and their names."""
        self._latest: list[tuple[_Head, TextTools | None, WireEncoder]] = []
        """Encoders that were made, the latest used first."""
        self._routes: dict[str, Route] = {}
        self._infos: dict[str, ModelInfo] = {}

    @property
    def provider(self) -> str:
        """The name before the slash in ``provider/model``."""
        return self._route.provider

    @property
    def wire_format(self) -> WireFormat:
        """What it speaks."""
        return self._format

    def info(self, model: str) -> ModelInfo:
        """The user's facts about ``model``, else those of the profile."""
        known = self._infos.get(model)
        if known is None:
            profile = self._of_model(model).profile
            known = self._models.get(model) or profile_info(model, profile)
            known = msgspec.structs.replace(known, remote=not profile.base_url or is_remote(profile.base_url))
            self._infos[model] = known
        return known

    def prepare(self, request: LlmRequest) -> PreparedCall:
        """Encode ``request`` for this provider."""
        conversation, model = request.conversation, request.config.model.model
        route = self._of_model(model)
        wanted = shaped(request, route.profile)
        text = None if route.profile.tools else text_tools(wanted)
        wire = conversation.wire(self._encoder(request, text))
        url = self._urls.get(model)
        if url is None:
            url = self._urls[model] = route.url(model)
        if self._tools[0] is not wanted.tools:
            self._tools = (wanted.tools, frozenset(tool.name for tool in wanted.tools))
        names = self._tools[1]
        return ProviderCall(route, self._format, url, wire, conversation.pairing_problem, names, text)

    def _of_model(self, model: str) -> Route:
        """The route of a model; one that has nothing of its own has that of the provider."""
        if model not in self._route.profile.models:
            return self._route
        if model not in self._routes:
            self._routes[model] = self._route.of_model(model)
        return self._routes[model]

    def _encoder(self, request: LlmRequest, text: TextTools | None) -> WireEncoder:
        """The encoder of `request`: one that was made from an equal head, of whichever agent, so that all agents of one
        kind have one head in memory."""
        head = _Head(request.config, request.system, request.tools)
        latest = self._latest
        if latest and all(map(is_, latest[0][0], head)) and latest[0][1] == text:
            return latest[0][2]
        for at, (known, its, encoder) in enumerate(latest):
            if known == head and its == text:
                del latest[at]
                # The objects of this request: it is known by them the next time.
                latest.insert(0, (head, text, encoder))
                return encoder
        model = request.config.model.model
        profile, info = self._of_model(model).profile, self.info(model)
        wanted = shaped(request, profile)
        if info.context_window is not None:
            wanted, info = _fitted(wanted, profile, info, info.context_window)
        if text is None:
            encoder = self._format.encoder(wanted, profile, info)
        else:
            plain = self._format.encoder(with_text_tools(wanted, text), profile, info)
            encoder = self._format.as_text(plain, text)
        latest.insert(0, (head, text, encoder))
        del latest[_KEPT_ENCODERS:]
        return encoder


def _fitted(
    request: LlmRequest, profile: Profile, info: ModelInfo, window: int
) -> tuple[LlmRequest, ModelInfo]:
    """Request and facts with ceilings on the answer that leave room for the prompt."""
    config = request.config
    asked = within_window(config.max_tokens, window)
    if asked != config.max_tokens:
        request = replace(request, config=msgspec.structs.replace(config, max_tokens=asked))
    most = info.max_output or profile.max_tokens_default
    return request, msgspec.structs.replace(info, max_output=within_window(most, window))


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
        forced_tool_choice=profile.tools and profile.forced_tool_choice == "always",
        structured_output=profile.structured_output,
        origin=profile.origin,
    )


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """One encoded request and how it is sent."""

    route: Route
    format: WireFormat
    url: str
    wire: Wire = field(repr=False)
    problem: str | None
    tools: frozenset[str]
    text: TextTools | None = None
    """How tools are called in text, where the model cannot call them otherwise."""

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
        key = self.route.key()
        refused = self._refusal(key)
        if refused is not None:
            yield Finish("error", refused)
            return
        leaks = LeakFilter(self._leak_rules())
        reader = self.text.reader() if self.text is not None else None
        send = self.format.send or over_http
        async with aclosing(send(self, key, idempotency_key)) as coming:
            async for events in coming:
                if reader is not None:
                    events = reader.read(events)
                for event in events:
                    for passed in leaks.feed(event):
                        yield passed if reader is None else reader.told(passed)

    def _refusal(self, key: str | None) -> Stop | None:
        """Why the call is not made at all."""
        if self.problem is not None:
            return Stop("INVALID_REQUEST", f"calls and results do not pair up: {self.problem}")
        return self.route.refusal(key)

    def _leak_rules(self) -> LeakRules:
        leaks = self.route.profile.text_tool_calls
        # Where tools are called in text, only the tags of the conversation make a call: a document may hold others.
        return LeakRules(leaks.tags, leaks.parse and self.text is None, self.tools)

    def headers(self, key: str | None, idempotency_key: str | None) -> Mapping[str, str]:
        """Headers of this request."""
        profile = self.route.profile
        accept = "text/event-stream" if profile.streaming else "application/json"
        headers = self.route.headers(key, accept=accept)
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        return headers


async def over_http(
    call: ProviderCall, key: str | None, idempotency_key: str | None
) -> AsyncGenerator[Sequence[StreamEvent], None]:
    """See `Sending`."""
    route, profile = call.route, call.route.profile
    deadline = route.clock.monotonic() + profile.total_timeout_s
    reply = await route.client.post(
        call.url,
        call.headers(key, idempotency_key),
        call.wire.body,
        proxy=proxy_for(call.url),
        timeout_s=min(profile.idle_timeout_s, profile.total_timeout_s),
    )
    if isinstance(reply, Wait):
        yield [Finish("error", reply)]
        return
    exchange = Exchange(profile, route.clock, call.format.decoder(profile), reply, deadline)
    try:
        while not exchange.ended:
            yield await exchange.advance()
    finally:
        reply.close()


_ADAPTER: type[LlmAdapter] = ProviderAdapter
