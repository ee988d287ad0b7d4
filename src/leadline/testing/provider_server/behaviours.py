"""What the server does with one request, as data, and the bytes that doing so takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

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
    "malformed_json",
    "malformed_event",
    "error_event",
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


def reply_steps(behaviour: Behaviour, *, stream: bool, usage: Mapping[str, object], n: int) -> list[Step]:
    """The steps of playing ``behaviour`` as the ``n``-th reply."""
    steps: list[Step] = [Pause(behaviour.delay_s)] if behaviour.delay_s else []
    kind = behaviour.kind
    if kind in _ERRORS:
        return [*steps, Write(_error(behaviour))]
    fault = _fault(behaviour)
    if fault is not None:
        return [*steps, *fault]
    if not stream and kind != "raw":
        return [*steps, Write(_complete(behaviour, usage, n))]
    events = _events(behaviour, usage, n)
    if kind != "slow_success":
        return [*steps, Write(STREAM_HEAD + _chunk(b"".join(events)) + _LAST)]
    steps.append(Write(STREAM_HEAD))
    for event in events:
        steps += [Write(_chunk(event)), Pause(behaviour.delay_s)]
    return [*steps, Write(_LAST)]


def response(status: int, body: bytes, content_type: str, extra: Mapping[str, str] | None = None) -> bytes:
    """A whole HTTP response."""
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}", f"Content-Type: {content_type}"]
    lines += [f"{name}: {value}" for name, value in (extra or {}).items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
)
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


def _error(behaviour: Behaviour) -> bytes:
    status, code, message = _ERRORS[behaviour.kind]
    body = msgspec.json.encode(
        {"error": {"message": behaviour.message or message, "type": code, "code": code}}
    )
    extra = {"Retry-After": behaviour.retry_after} if behaviour.retry_after is not None else None
    return response(behaviour.status or status, body, "application/json", extra)


_DONE = b"data: [DONE]\n\n"
_PAGE = "<html><head><title>504 Gateway Time-out</title></head><body>\n" + "<hr>" * 500 + "</body></html>"


def _fault(behaviour: Behaviour) -> list[Step] | None:
    """The steps of a fault; None when the kind is a reply that ends properly."""
    kind = behaviour.kind
    if kind == "connection_reset":
        return [Drop(reset=True)]
    if kind == "empty_body":
        return [Write(response(200, b"", "text/event-stream"))]
    if kind == "wrong_content_type":
        return [Write(response(200, (behaviour.message or "all is well").encode(), "text/plain"))]
    if kind == "html_error":
        return [Write(response(behaviour.status or 504, (behaviour.message or _PAGE).encode(), "text/html"))]
    return _stream_fault(behaviour)


def _stream_fault(behaviour: Behaviour) -> list[Step] | None:
    partial = sse({"choices": [{"index": 0, "delta": {"content": behaviour.text or "par"}}]})
    failed = sse(
        {"error": {"message": behaviour.message or "upstream broke", "code": behaviour.status or 500}}
    )
    begun = STREAM_HEAD + _chunk(partial)
    match behaviour.kind:
        case "stream_disconnect":
            return [Write(STREAM_HEAD), Pause(0.005), Drop(reset=True)]
        case "partial_disconnect":
            return [Write(begun), Pause(0.005), Drop(reset=True)]
        case "stall":
            return [Write(begun), Hang()]
        case "stream_eof":
            return [Write(STREAM_HEAD + _LAST)]
        case "partial_eof":
            return [Write(begun + _LAST)]
        case "malformed_json":
            return [Write(STREAM_HEAD + _chunk(b'data: {"choices": [{"delta"\n\n' + _DONE) + _LAST)]
        case "malformed_event":
            return [Write(begun + _chunk(b"data: [1, 2]\n\n" + _DONE) + _LAST)]
        case "error_event":
            return [Write(begun + _chunk(failed + _DONE) + _LAST)]
        case _:
            return None


def _events(behaviour: Behaviour, usage: Mapping[str, object], n: int) -> list[bytes]:
    if behaviour.kind == "raw":
        return [behaviour.message.encode()]
    deltas = list(_deltas(behaviour, n))
    events = [_delta(delta, None, n) for delta in deltas]
    events.append(_delta({}, _finish(behaviour), n))
    if usage:
        events.append(sse({"id": f"reply-{n}", "choices": [], "usage": dict(usage)}))
    events.append(_DONE)
    return events


def _deltas(behaviour: Behaviour, n: int) -> Iterable[Mapping[str, object]]:
    yield {"role": "assistant", "content": ""}
    for part in _pieces(reasoning_of(behaviour), behaviour.chunk_chars):
        yield {"reasoning_content": part}
    for part in _pieces(text_of(behaviour), behaviour.chunk_chars):
        yield {"content": part}
    for at, call in enumerate(calls_of(behaviour)):
        opening = {"index": at, "id": call.id or f"call_{n}_{at}", "type": "function"}
        yield {"tool_calls": [{**opening, "function": {"name": call.name, "arguments": ""}}]}
        for part in _pieces(call.text(), behaviour.chunk_chars):
            yield {"tool_calls": [{"index": at, "function": {"arguments": part}}]}


def text_of(behaviour: Behaviour) -> str:
    """The visible text of the reply."""
    return "" if behaviour.kind == "empty" else behaviour.text or ("" if calls_of(behaviour) else "ok")


def reasoning_of(behaviour: Behaviour) -> str:
    """The reasoning of the reply."""
    return behaviour.reasoning or ("thinking" if behaviour.kind == "reasoning_success" else "")


def calls_of(behaviour: Behaviour) -> tuple[CallSpec, ...]:
    """The tool calls of the reply."""
    if behaviour.kind == "tool_call_success" and not behaviour.calls:
        return (CallSpec("lookup"),)
    return behaviour.calls


def _finish(behaviour: Behaviour) -> str:
    if behaviour.finish_reason is not None:
        return behaviour.finish_reason
    if behaviour.kind in ("max_tokens", "refused"):
        return {"max_tokens": "length", "refused": "content_filter"}[behaviour.kind]
    return "tool_calls" if calls_of(behaviour) else "stop"


def _complete(behaviour: Behaviour, usage: Mapping[str, object], n: int) -> bytes:
    message: dict[str, object] = {"role": "assistant", "content": text_of(behaviour)}
    if reasoning := reasoning_of(behaviour):
        message["reasoning_content"] = reasoning
    if calls_of(behaviour):
        message["tool_calls"] = [
            {
                "id": call.id or f"call_{n}_{at}",
                "type": "function",
                "function": {"name": call.name, "arguments": call.text()},
            }
            for at, call in enumerate(calls_of(behaviour))
        ]
    choice = {"index": 0, "message": message, "finish_reason": _finish(behaviour)}
    whole: dict[str, object] = {"id": f"reply-{n}", "object": "chat.completion", "choices": [choice]}
    if usage:
        whole["usage"] = dict(usage)
    return response(200, msgspec.json.encode(whole), "application/json")


def _delta(delta: Mapping[str, object], finish: str | None, n: int) -> bytes:
    return sse({"id": f"reply-{n}", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _pieces(text: str, size: int) -> Iterable[str]:
    if not text:
        return ()
    return (text,) if size <= 0 else [text[at : at + size] for at in range(0, len(text), size)]


def sse(value: object) -> bytes:
    """One server-sent event that carries ``value`` as JSON."""
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"
