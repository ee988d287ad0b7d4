"""The HTTP server itself: reads requests, plays the replies, records both and keeps the bill."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeAlias, cast

import msgspec

from leadline.testing.provider_server.behaviours import (
    Behaviour,
    Drop,
    Hang,
    Pause,
    Step,
    Write,
    calls_of,
    reasoning_of,
    reply_steps,
    response,
    text_of,
)
from leadline.testing.provider_server.script import Script, offered_tools
from leadline.testing.provider_server.validate import ReasoningRule, refusal


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

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools the request offers."""
        return offered_tools(self.body)

    @property
    def messages(self) -> tuple[Mapping[str, object], ...]:
        """The messages of the request."""
        return tuple(cast("list[Mapping[str, object]]", self.body.get("messages") or []))


class Charge(msgspec.Struct, frozen=True):
    """One line of the bill."""

    n: int
    idempotency_key: str | None
    model: str
    kind: str
    prompt_tokens: int
    completion_tokens: int


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


class ProviderServer:
    """A chat-completions provider on 127.0.0.1.

    Use as an async context manager. Replies come from a list (first in, first out; a server
    error once it is used up), a `Script`, or a function of the request.

    Effects: listens on an ephemeral port until the context is left; connections are then cut.
    """

    def __init__(
        self,
        replies: Iterable[Behaviour | str] | Script | Responder = (),
        *,
        latency_s: float = 0.0,
        strict: bool = False,
        reasoning: ReasoningRule = "any",
    ) -> None:
        if callable(replies):
            self._script, self._responder = Script(), replies
        else:
            self._script = replies if isinstance(replies, Script) else Script(replies)
            self._responder: Responder = lambda request: self._script.next(request.body, request.raw)
        self._latency_s = latency_s
        self._strict = strict
        self._reasoning: ReasoningRule = reasoning
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
            "repeated_keys": sorted({key for key in keys if keys.count(key) > 1}),
        }
        return msgspec.json.encode(whole)

    def answer(self, request: Received) -> list[Step]:
        """Record ``request`` and choose what happens to it."""
        if request.method == "GET":
            return [Write(self._page(request.path))]
        request.n = len(self.requests)
        self.requests.append(request)
        behaviour = self._behaviour(request)
        usage = self._usage(behaviour, request)
        stream = bool(request.body.get("stream"))
        options = cast("Mapping[str, object]", request.body.get("stream_options") or {})
        shown: Mapping[str, object] = usage if not stream or options.get("include_usage") else {}
        steps = reply_steps(behaviour, stream=stream, usage=shown, n=request.n)
        if behaviour.kind in _BILLED:
            self.bill.append(
                Charge(
                    request.n,
                    request.headers.get("idempotency-key"),
                    str(request.body.get("model", "")),
                    behaviour.kind,
                    _count(usage, "prompt_tokens"),
                    _count(usage, "completion_tokens"),
                )
            )
        return [Pause(self._latency_s), *steps] if self._latency_s else steps

    def _behaviour(self, request: Received) -> Behaviour:
        if self._strict:
            reason = refusal(request.body, self._reasoning)
            if reason is not None:
                return Behaviour("invalid_request", message=reason)
        return self._responder(request)

    def _usage(self, behaviour: Behaviour, request: Received) -> Mapping[str, object]:
        if behaviour.usage is not None:
            return behaviour.usage
        written = len(text_of(behaviour)) + len(reasoning_of(behaviour))
        written += sum(len(call.name) + len(call.text()) for call in calls_of(behaviour))
        prompt, completion = max(1, len(request.raw) // 4), max(1, written // 4)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }

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
        self._current = None
        if self._buffer:
            self._read()


def _parsed(raw: bytes) -> Mapping[str, object]:
    try:
        return msgspec.json.decode(raw, type=dict[str, object])
    except msgspec.DecodeError:
        return {}
