"""The HTTP server itself: reads requests, plays the replies, records both and keeps the bill."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self, TypeAlias

import msgspec

from leadline.testing.provider_server.behaviours import (
    Behaviour,
    Drop,
    Hang,
    Pause,
    Reply,
    Step,
    Write,
    calls_of,
    reasoning_of,
    reply_steps,
    response,
    text_of,
)
from leadline.testing.provider_server.counting import Lie, Reported, ServerPrice, reported
from leadline.testing.provider_server.limits import Line, LineCount, ServerLimits, ServerWindow, TooMuch
from leadline.testing.provider_server.script import Script
from leadline.testing.provider_server.speech import (
    model_of,
    most_output,
    offered,
    speech_of,
    told,
    wants_stream,
    wants_usage,
)
from leadline.testing.provider_server.validate import ReasoningRule, refusal
from leadline.testing.wires import Counted


@dataclass(slots=True)
class Received:
    """One request as it arrived, and when its reply left."""

    n: int
    method: str
    path: str
    headers: Mapping[str, str]
    """Lower-case names."""
    raw: bytes
    """The body, byte for byte."""
    body: Mapping[str, object]
    """The body as JSON; empty when it is none."""
    first_byte_at: float
    """`time.monotonic` seconds."""
    received_at: float
    sent_at: float | None = None
    """Just before the last bytes of the reply were handed to the system; None if they never were.

    Before and not after: the client may be at work before this process runs again."""
    active: Line | None = field(default=None, repr=False)
    """The accounts in which it counts as being answered."""

    @property
    def model(self) -> str:
        """The model the request names."""
        return model_of(self.path, self.body)

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools the request offers."""
        return tuple(self.offered)

    @property
    def offered(self) -> Mapping[str, Mapping[str, object]]:
        """The tools the request offers, each with the schema of its arguments."""
        return offered(self.body)

    @property
    def messages(self) -> tuple[Mapping[str, object], ...]:
        """The messages of the request, in the form of chat completions whatever the wire."""
        return told(self.path, self.body)


class Charge(msgspec.Struct, frozen=True):
    """One line of the bill."""

    n: int
    idempotency_key: str | None
    model: str
    kind: str
    prompt_tokens: int
    """All input; the cached part and what is written to the cache are in it."""
    completion_tokens: int
    """All output; reasoning is in it."""
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: int | None = None
    """Picodollars (1e-12 USD); None where the server has no price for the model."""


class KeyedCalls(msgspec.Struct, frozen=True):
    """What became of the requests with one idempotency key."""

    requests: tuple[int, ...]
    """Numbers of the requests."""
    charged: int
    """How many of them a provider would charge for."""
    answered: int
    """Of how many the whole answer was handed to the system."""
    bodies: int
    """How many different bodies they had: more than one is a key that was used twice."""


Responder: TypeAlias = Callable[[Received], Behaviour]
_BILLED = frozenset(
    [
        "success",
        "slow_success",
        "reasoning_success",
        "tool_call_success",
        "max_tokens",
        "refused",
        "empty",
        "raw",
    ]
)


@dataclass(slots=True)
class _Record:
    requests: list[Received] = field(default_factory=list[Received])
    bill: list[Charge] = field(default_factory=list[Charge])
    lines: dict[str, Line] = field(default_factory=dict[str, Line])
    seen: dict[str, list[bytes]] = field(default_factory=dict[str, list[bytes]])
    """Bodies of the served requests of each model, where the server caches prompts."""


class ProviderServer:
    """A provider of models on 127.0.0.1 that speaks chat completions, Anthropic Messages, Gemini and OpenAI Responses.

    Use as an async context manager. Replies come from a list (first in, first out; a server
    error once it is used up), a `Script`, or a function of the request. A request that the server refuses by its
    limits or its window takes no reply.

    Effects: listens on an ephemeral port until the context is left; connections are then cut.
    """

    def __init__(
        self,
        replies: Iterable[Behaviour | str] | Script | Responder = (),
        *,
        latency_s: float = 0.0,
        strict: bool = False,
        reasoning: ReasoningRule = "any",
        limits: ServerLimits | None = None,
        window: ServerWindow | None = None,
        prices: ServerPrice | Mapping[str, ServerPrice] | None = None,
        lie: Lie | None = None,
        caching: bool = False,
    ) -> None:
        """Make a server.

        Args:
            replies: what it answers.
            latency_s: pause before each reply.
            strict: refuses chat completions that a strict provider would refuse.
            reasoning: the rule of a strict server on reasoning that is passed back.
            limits: what it serves of each model; None: everything, and tells no limits.
            window: the longest prompt, the same for each model.
            prices: what it charges, for every model or by model; ``*`` is any other. The bill has the money.
            lie: how every reply misreports its usage; the bill does not.
            caching: whether the part of a prompt that an earlier one of the model began with is counted as cached.
        """
        if callable(replies):
            self._script, self._responder = Script(), replies
        else:
            self._script = replies if isinstance(replies, Script) else Script(replies)
            self._responder: Responder = lambda request: self._script.next(request.body, request.raw)
        self._latency_s = latency_s
        self._strict = strict
        self._reasoning: ReasoningRule = reasoning
        self._limits = limits or ServerLimits(headers="none")
        self._window = window
        self._prices = {"*": prices} if isinstance(prices, ServerPrice) else dict(prices or {})
        self._lie: Lie | None = lie
        self._caching = caching
        self._record = _Record()
        self._connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def base_url(self) -> str:
        """What a client is given as base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> list[Received]:
        """Every request for a completion, in order of arrival."""
        return self._record.requests

    @property
    def bill(self) -> list[Charge]:
        """One line for each reply that a provider would charge for."""
        return self._record.bill

    @property
    def cost(self) -> int | None:
        """Picodollars (1e-12 USD) of the whole bill; None where a line of it has no price."""
        costs = [charge.cost for charge in self.bill]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    def line(self, model: str) -> LineCount:
        """What the server saw of a model: calls at once, calls that it refused."""
        return self._line(model).count()

    def by_key(self) -> dict[str, KeyedCalls]:
        """The bill by idempotency key, in order of the first request with each; requests without one are not in it."""
        found: dict[str, list[Received]] = {}
        for request in self.requests:
            key = request.headers.get("idempotency-key")
            if key:
                found.setdefault(key, []).append(request)
        charged = Counter(charge.idempotency_key for charge in self.bill)
        return {
            key: KeyedCalls(
                tuple(request.n for request in requests),
                charged[key],
                sum(request.sent_at is not None for request in requests),
                len({request.raw for request in requests}),
            )
            for key, requests in found.items()
        }

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    @property
    def unplayed(self) -> int:
        """How many scripted replies are left."""
        return self._script.left

    def push(self, *replies: Behaviour | str) -> None:
        """Add replies at the end of the script."""
        self._script.push(*replies)

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for connection in tuple(self._connections):
            connection.abort()
        await self._server.wait_closed()

    def bill_json(self) -> bytes:
        """The bill as ``GET /bill`` gives it."""
        keys = [charge.idempotency_key for charge in self.bill if charge.idempotency_key]
        whole = {
            "requests": len(self.requests),
            "calls": self.bill,
            "keys": self.by_key(),
            "prompt_tokens": sum(charge.prompt_tokens for charge in self.bill),
            "completion_tokens": sum(charge.completion_tokens for charge in self.bill),
            "cost": self.cost,
            "lines": {model: line.count() for model, line in self._record.lines.items()},
            "repeated_keys": sorted({key for key in keys if keys.count(key) > 1}),
        }
        return msgspec.json.encode(whole)

    def answer(self, request: Received) -> list[Step]:
        """Record ``request`` and choose what happens to it."""
        if request.method == "GET":
            return [Write(self._page(request.path))]
        request.n = len(self.requests)
        self.requests.append(request)
        line = self._line(request.model)
        counted = self._prompt(request)
        too_much = line.refusal(counted.prompt or 0, request.raw)
        if too_much is not None:
            return self._refused(request, line, too_much)
        behaviour = self._behaviour(request, counted.prompt or 0)
        counted = _answered(counted, behaviour)
        line.begin((counted.prompt or 0) + (counted.completion or 0))
        request.active = line
        self._charge(request, behaviour, counted)
        shown = reported(counted, behaviour.lie or self._lie)
        if behaviour.usage is not None:
            shown = Reported(instead=behaviour.usage)
        if not wants_usage(request.path, request.body):
            shown = Reported()
        reply = Reply(behaviour, shown, request.n, line.headers(), request.model)
        steps = self._steps(request, reply)
        return [Pause(self._latency_s), *steps] if self._latency_s else steps

    def _steps(self, request: Received, reply: Reply) -> list[Step]:
        stream = wants_stream(request.path, request.body)
        return reply_steps(speech_of(request.path), reply, stream=stream)

    def _line(self, model: str) -> Line:
        return self._record.lines.setdefault(model, Line(self._limits))

    def _refused(self, request: Received, line: Line, too_much: TooMuch) -> list[Step]:
        headers = {**line.headers(), **line.wait_headers(too_much.wait_s)}
        behaviour = Behaviour("rate_limit", message=too_much.message)
        return self._steps(request, Reply(behaviour, Reported(), request.n, headers))

    def _behaviour(self, request: Received, prompt: int) -> Behaviour:
        if self._strict and request.path.endswith("/chat/completions"):
            reason = refusal(request.body, self._reasoning)
            if reason is not None:
                return Behaviour("invalid_request", message=reason)
        if self._window is not None:
            reason = self._window.refusal(prompt, most_output(request.body))
            if reason is not None:
                return Behaviour("context_overflow", message=reason)
        return self._responder(request)

    def _prompt(self, request: Received) -> Counted:
        """What the prompt counts, before there is an answer."""
        window = self._window or ServerWindow(tokens=0, excess="truncate")
        prompt = window.estimate(request.raw)
        if self._window is not None and window.excess == "truncate":
            prompt = min(prompt, window.tokens)
        cached = 0
        if self._caching:
            seen = self._record.seen.setdefault(request.model, [])
            common = max((_common(request.raw, one) for one in seen), default=0)
            cached = min(prompt, int(common / window.bytes_per_token))
            seen.append(request.raw)
        return Counted(prompt=prompt, cached=cached, written=0, completion=0, reasoning=0)

    def _charge(self, request: Received, behaviour: Behaviour, counted: Counted) -> None:
        billed = behaviour.kind in _BILLED if behaviour.billed is None else behaviour.billed
        if not billed:
            return
        price = self._prices.get(request.model, self._prices.get("*"))
        prompt, completion = counted.prompt or 0, counted.completion or 0
        if behaviour.usage is not None:
            prompt = _count(behaviour.usage, "prompt_tokens")
            completion = _count(behaviour.usage, "completion_tokens")
            counted = Counted(prompt=prompt, cached=0, written=0, completion=completion, reasoning=0)
        self.bill.append(
            Charge(
                request.n,
                request.headers.get("idempotency-key"),
                request.model,
                behaviour.kind,
                prompt,
                completion,
                counted.cached or 0,
                counted.written or 0,
                counted.reasoning or 0,
                price.cost(counted) if price is not None else None,
            )
        )

    def _page(self, path: str) -> bytes:
        if path == "/bill":
            return response(200, self.bill_json(), "application/json")
        if path == "/requests":
            bodies = [{"n": request.n, "body": request.body} for request in self.requests]
            return response(200, msgspec.json.encode(bodies), "application/json")
        if path == "/timings":
            times = [
                (request.first_byte_at, request.received_at, request.sent_at) for request in self.requests
            ]
            return response(200, msgspec.json.encode(times), "application/json")
        if path == "/v1/models":
            return response(200, b'{"object":"list","data":[]}', "application/json")
        return response(404, b"not found", "text/plain")

    def opened(self, connection: _Connection) -> None:
        """Note a new connection."""
        self._connections.add(connection)

    def closed(self, connection: _Connection) -> None:
        """Forget a connection."""
        self._connections.discard(connection)


def _answered(prompt: Counted, behaviour: Behaviour) -> Counted:
    """The tokens of a whole call."""
    reasoning = reasoning_of(behaviour)
    written = len(text_of(behaviour)) + len(reasoning)
    written += sum(len(call.name) + len(call.text()) for call in calls_of(behaviour))
    return replace(prompt, completion=max(1, written // 4), reasoning=len(reasoning) // 4)


def _common(left: bytes, right: bytes) -> int:
    """Length of the prefix that both have."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _count(usage: Mapping[str, object], key: str) -> int:
    value = usage.get(key, 0)
    return value if isinstance(value, int) else 0


class _Connection(asyncio.Protocol):
    """Reads requests off one connection and plays their replies, one at a time."""

    def __init__(self, server: ProviderServer) -> None:
        self._server = server
        self._buffer = bytearray()
        self._first_byte_at = 0.0
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._steps: list[Step] = []
        self._current: Received | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._steps = []
        self._over()
        self._server.closed(self)

    def abort(self) -> None:
        """Cut the connection with a reset."""
        if self._transport is None:
            return
        raw = self._transport.get_extra_info("socket")
        if raw is not None and raw.fileno() >= 0:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if not self._buffer:
            self._first_byte_at = time.monotonic()
        self._buffer += data
        if self._current is None:
            self._read()

    def _read(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
        }
        size = int(headers.get("content-length", "0"))
        if len(self._buffer) < end + 4 + size:
            return
        raw = bytes(self._buffer[end + 4 : end + 4 + size])
        del self._buffer[: end + 4 + size]
        method, path, _ = first.split(" ", 2)
        request = Received(
            0, method, path, headers, raw, _parsed(raw), self._first_byte_at, received_at=time.monotonic()
        )
        self._current = request
        self._steps = self._server.answer(request)
        self._play()

    def _over(self) -> None:
        """The current call is answered, or its client is gone."""
        if self._current is not None and self._current.active is not None:
            self._current.active.end()
            self._current.active = None

    def _play(self) -> None:
        transport, request = self._transport, self._current
        assert transport is not None and request is not None
        written_at = time.monotonic()
        while self._steps:
            step = self._steps.pop(0)
            match step:
                case Write(data):
                    written_at = time.monotonic()
                    transport.write(data)
                case Pause(seconds):
                    loop = asyncio.get_running_loop()
                    self._timer = loop.call_later(seconds, self._play)
                    return
                case Hang():
                    return
                case Drop(reset):
                    _ = self.abort() if reset else transport.close()
                    return
        request.sent_at = written_at
        self._over()
        self._current = None
        if self._buffer:
            self._read()


def _parsed(raw: bytes) -> Mapping[str, object]:
    try:
        return msgspec.json.decode(raw, type=dict[str, object])
    except msgspec.DecodeError:
        return {}
