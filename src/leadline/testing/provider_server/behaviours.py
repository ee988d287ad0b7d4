"""What the server does with one request, as data, and the bytes that doing so takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from leadline.testing.provider_server.counting import Lie, Reported

if TYPE_CHECKING:
    from leadline.testing.provider_server.speech import Speech

Kind: TypeAlias = Literal[
    "success",
    "slow_success",
    "reasoning_success",
    "tool_call_success",
    "max_tokens",
    "refused",
    "empty",
    "empty_body",
    "stream_eof",
    "partial_eof",
    "stream_disconnect",
    "partial_disconnect",
    "connection_reset",
    "stall",
    "stall_before_headers",
    "stall_after_finish",
    "truncated",
    "truncated_after_finish",
    "malformed_json",
    "malformed_event",
    "error_event",
    "error_body",
    "wrong_content_type",
    "html_error",
    "rate_limit",
    "server_error",
    "service_unavailable",
    "auth_error",
    "invalid_request",
    "context_overflow",
    "quota_exceeded",
    "raw",
]
"""What the reply is, or how it fails.

Proper replies: ``success``, ``slow_success`` (a pause of `delay_s` between fragments), ``reasoning_success``,
``tool_call_success``, ``max_tokens``, ``refused``, ``empty``; ``raw`` sends `message` as the stream.
Stalls, for `stall_s` or for ever: ``stall_before_headers``, ``stall`` (part of the answer has come),
``stall_after_finish`` (the answer is there, what usually follows it is not).
Cut off: ``stream_eof`` and ``stream_disconnect`` (nothing has come), ``partial_eof`` and ``partial_disconnect``
(all of the answer but its end has come), ``truncated`` (half of it has come), ``truncated_after_finish``,
``connection_reset`` (before headers), ``empty_body``.
Wrong: ``malformed_json``, ``malformed_event``, ``wrong_content_type``, ``html_error``.
Success with an error inside: ``error_event`` in the stream, ``error_body`` in place of it.
Refusals: ``rate_limit``, ``server_error``, ``service_unavailable``, ``auth_error``, ``invalid_request``,
``context_overflow``, ``quota_exceeded``.
"""


class CallSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call that the scripted model makes."""

    name: str
    arguments: Mapping[str, object] | str = {}
    """An object, or raw text where the text itself is the subject."""
    id: str | None = None

    def text(self) -> str:
        """The arguments as they stand in the reply."""
        if isinstance(self.arguments, str):
            return self.arguments
        return msgspec.json.encode(self.arguments).decode()


class Behaviour(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reply. Fields that a kind does not use are ignored."""

    kind: Kind = "success"
    text: str = ""
    reasoning: str = ""
    state: str = ""
    """Opaque state of the provider that comes with the reasoning, in wires that have such."""
    calls: tuple[CallSpec, ...] = ()
    chunk_chars: int = 0
    """Length of a text or argument fragment; 0 sends each in one piece."""
    delay_s: float = 0.0
    """Pause before the reply, and between fragments for ``slow_success``."""
    retry_after: str | None = None
    """Value of the Retry-After header."""
    status: int | None = None
    """Replaces the status of an error kind."""
    message: str = ""
    """Replaces the message of an error kind, or the body of ``html_error`` and ``raw``."""
    finish_reason: str | None = None
    usage: Mapping[str, object] | None = None
    """Replaces the usage that the server works out; an empty object reports none."""
    lie: Lie | None = None
    """Reports another usage than it charges for."""
    stall_s: float = 0.0
    """How long a stalling kind is silent before it goes on as if nothing were; 0 is for ever."""
    billed: bool | None = None
    """Whether it is charged for; None: proper replies are, the others are not."""


@dataclass(frozen=True, slots=True)
class Write:
    """Send these bytes."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Pause:
    """Send nothing for this long."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Hang:
    """Send nothing more and keep the connection open."""


@dataclass(frozen=True, slots=True)
class Drop:
    """End the connection: politely, or with a reset."""

    reset: bool = False


Step: TypeAlias = Write | Pause | Hang | Drop

_ERRORS: Mapping[str, tuple[int, str, str]] = {
    "rate_limit": (429, "rate_limit_exceeded", "Rate limit reached, slow down."),
    "server_error": (500, "internal_error", "The server had an error."),
    "service_unavailable": (503, "overloaded", "The service is overloaded."),
    "auth_error": (401, "invalid_api_key", "Incorrect API key provided."),
    "invalid_request": (400, "invalid_request_error", "Invalid value for a parameter."),
    "context_overflow": (
        400,
        "context_length_exceeded",
        "This model's maximum context length is 1000 tokens. However, your messages resulted in 2000 tokens.",
    ),
    "quota_exceeded": (402, "insufficient_quota", "Insufficient Balance"),
}


@dataclass(frozen=True, slots=True)
class Reply:
    """A behaviour as the ``n``-th reply, with the usage that it shows and the headers that it has."""

    behaviour: Behaviour
    usage: Reported
    n: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    model: str = ""


def reply_steps(speech: Speech, reply: Reply, *, stream: bool) -> list[Step]:
    """The steps of playing a reply in the words of one wire."""
    behaviour = reply.behaviour
    steps: list[Step] = [Pause(behaviour.delay_s)] if behaviour.delay_s else []
    if behaviour.kind == "stall_before_headers":
        steps.append(Pause(behaviour.stall_s) if behaviour.stall_s else Hang())
    kind = behaviour.kind
    if kind in _ERRORS:
        return [*steps, Write(_error(speech, reply))]
    fault = _fault(speech, reply) or _stream_fault(speech, reply)
    if fault is not None:
        return [*steps, *fault]
    if not stream and kind != "raw":
        body = speech.whole(reply)
        return [*steps, Write(response(200, body, "application/json", reply.headers))]
    events = [behaviour.message.encode()] if kind == "raw" else speech.events(reply)
    if kind != "slow_success":
        return [*steps, Write(_head(reply) + _chunk(b"".join(events)) + _LAST)]
    steps.append(Write(_head(reply)))
    for event in events:
        steps += [Write(_chunk(event)), Pause(behaviour.delay_s)]
    return [*steps, Write(_LAST)]


def response(status: int, body: bytes, content_type: str, extra: Mapping[str, str] | None = None) -> bytes:
    """A whole HTTP response."""
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}", f"Content-Type: {content_type}"]
    lines += [f"{name}: {value}" for name, value in (extra or {}).items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def _head(reply: Reply) -> bytes:
    more = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
    return (
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
        f"Cache-Control: no-cache\r\n{more}Transfer-Encoding: chunked\r\n\r\n"
    ).encode()


_LAST = b"0\r\n\r\n"
_REASONS: Mapping[int, str] = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    402: "Payment Required",
    404: "Not Found",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
    504: "Gateway Time-out",
}


def _error(speech: Speech, reply: Reply) -> bytes:
    behaviour = reply.behaviour
    known, code, message = _ERRORS[behaviour.kind]
    status = behaviour.status or known
    body = msgspec.json.encode(speech.error(status, code, behaviour.message or message))
    extra = dict(reply.headers)
    if behaviour.retry_after is not None:
        extra["Retry-After"] = behaviour.retry_after
    return response(status, body, "application/json", extra)


_PAGE = "<html><head><title>504 Gateway Time-out</title></head><body>\n" + "<hr>" * 500 + "</body></html>"


def _fault(speech: Speech, reply: Reply) -> list[Step] | None:
    """The steps of a fault before any event; None when the kind is another."""
    behaviour = reply.behaviour
    kind = behaviour.kind
    if kind == "connection_reset":
        return [Drop(reset=True)]
    if kind == "empty_body":
        return [Write(response(200, b"", "text/event-stream"))]
    if kind == "error_body":
        message = behaviour.message or "upstream broke"
        body = speech.error(behaviour.status or 500, "internal_error", message)
        return [Write(response(200, msgspec.json.encode(body), "application/json"))]
    if kind == "wrong_content_type":
        return [Write(response(200, (behaviour.message or "all is well").encode(), "text/plain"))]
    if kind == "html_error":
        return [Write(response(behaviour.status or 504, (behaviour.message or _PAGE).encode(), "text/html"))]
    return None


def _stream_fault(speech: Speech, reply: Reply) -> list[Step] | None:
    """The steps of a fault in the stream; None when the kind is a reply that ends properly."""
    behaviour, head = reply.behaviour, _head(reply)
    if behaviour.kind not in _IN_STREAM:
        return None
    events = speech.events(reply)
    end = len(events) - speech.settled(reply)
    begun = head + _chunk(b"".join(events[: end - 1]))
    hang = Pause(behaviour.stall_s) if behaviour.stall_s else Hang()
    match behaviour.kind:
        case "stream_disconnect":
            return [Write(head), Pause(0.005), Drop(reset=True)]
        case "partial_disconnect":
            return [Write(begun), Pause(0.005), Drop(reset=True)]
        case "stall":
            return [Write(begun), hang, Write(_chunks(events[end - 1 :]) + _LAST)]
        case "stall_after_finish":
            return [Write(head + _chunks(events[:end])), hang, Write(_chunks(events[end:]) + _LAST)]
        case "stream_eof":
            return [Write(head + _LAST)]
        case "partial_eof":
            return [Write(begun + _LAST)]
        case "truncated":
            return [Write(head + _chunks(events[: max(1, end // 2)]) + _LAST)]
        case "truncated_after_finish":
            return [Write(head + _chunks(events[:end]) + _LAST)]
        case "malformed_json":
            return [Write(head + _chunks([b'data: {"choices": [{"delta"\n\n', events[-1]]) + _LAST)]
        case "malformed_event":
            return [Write(begun + _chunks([b"data: [1, 2]\n\n", events[-1]]) + _LAST)]
        case _:
            message = behaviour.message or "upstream broke"
            failed = speech.error_event(behaviour.status or 500, "internal_error", message)
            return [Write(begun + _chunks([failed, *events[end:]]) + _LAST)]


_IN_STREAM = frozenset(
    [
        "stream_disconnect",
        "partial_disconnect",
        "stall",
        "stall_after_finish",
        "stream_eof",
        "partial_eof",
        "truncated",
        "truncated_after_finish",
        "malformed_json",
        "malformed_event",
        "error_event",
    ]
)


def text_of(behaviour: Behaviour) -> str:
    """The visible text of the reply."""
    if behaviour.kind == "empty":
        return ""
    usual = "par" if behaviour.kind in _IN_STREAM else "ok"
    return behaviour.text or ("" if calls_of(behaviour) else usual)


def reasoning_of(behaviour: Behaviour) -> str:
    """The reasoning of the reply."""
    return behaviour.reasoning or ("thinking" if behaviour.kind == "reasoning_success" else "")


def calls_of(behaviour: Behaviour) -> tuple[CallSpec, ...]:
    """The tool calls of the reply."""
    if behaviour.kind == "tool_call_success" and not behaviour.calls:
        return (CallSpec("lookup"),)
    return behaviour.calls


def sse(value: object) -> bytes:
    """One server-sent event that carries ``value`` as JSON."""
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _chunks(events: Sequence[bytes]) -> bytes:
    return _chunk(b"".join(events)) if events else b""
