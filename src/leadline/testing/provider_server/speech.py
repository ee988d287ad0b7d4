"""How the server reads and writes each wire format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, cast

import msgspec

from leadline.testing.provider_server.behaviours import (
    Behaviour,
    CallSpec,
    Reply,
    calls_of,
    reasoning_of,
    sse,
    text_of,
)
from leadline.testing.wires import (
    GEMINI,
    MESSAGES,
    RESPONSES,
    Counted,
    Event,
    Said,
    WireSpeech,
    chat_usage,
    pieces,
    wire_bytes,
)


class Speech(Protocol):
    """What the server needs of a wire format."""

    def events(self, reply: Reply) -> list[bytes]:
        """The server-sent events of a stream, its end mark included."""
        ...

    def whole(self, reply: Reply) -> bytes:
        """The body of a reply in one piece."""
        ...

    def settled(self, reply: Reply) -> int:
        """How many events come behind the one that says why the answer ended."""
        ...

    def error(self, status: int, code: str, message: str) -> Mapping[str, object]:
        """The body of a refusal."""
        ...

    def error_event(self, status: int, code: str, message: str) -> bytes:
        """A failure in the middle of a stream."""
        ...


_DONE = b"data: [DONE]\n\n"


def _finish(behaviour: Behaviour) -> str:
    if behaviour.finish_reason is not None:
        return behaviour.finish_reason
    if behaviour.kind in ("max_tokens", "refused"):
        return {"max_tokens": "length", "refused": "content_filter"}[behaviour.kind]
    return "tool_calls" if calls_of(behaviour) else "stop"


def _id(call: CallSpec, n: int, at: int) -> str:
    return call.id or f"call_{n}_{at}"


def _chat_count(counted: Counted) -> Mapping[str, object]:
    """The usage of a chat completion, without the details that are nought."""
    parts = Counted(
        prompt=counted.prompt,
        completion=counted.completion,
        cached=counted.cached or None,
        reasoning=counted.reasoning or None,
    )
    return {**chat_usage(parts), "total_tokens": (counted.prompt or 0) + (counted.completion or 0)}


class ChatSpeech:
    """Chat completions."""

    def events(self, reply: Reply) -> list[bytes]:
        """See `Speech.events`."""
        first = {"usage": _chat_count(reply.usage.first)} if reply.usage.first else {}
        head = _head(reply, "chat.completion.chunk")

        def chunk(delta: Mapping[str, object], finish: str | None, more: Mapping[str, object]) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return sse({**head, "choices": [choice], **more})

        events = [chunk(delta, None, {} if at else first) for at, delta in enumerate(_deltas(reply))]
        events.append(chunk({}, _finish(reply.behaviour), {}))
        events += [sse({**head, "choices": [], "usage": usage}) for usage in _shown(reply)]
        return [*events, _DONE]

    def whole(self, reply: Reply) -> bytes:
        """See `Speech.whole`."""
        behaviour, n = reply.behaviour, reply.n
        message: dict[str, object] = {"role": "assistant", "content": text_of(behaviour)}
        if reasoning := reasoning_of(behaviour):
            message["reasoning_content"] = reasoning
        if calls := calls_of(behaviour):
            message["tool_calls"] = [
                {
                    "id": _id(call, n, at),
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.text()},
                }
                for at, call in enumerate(calls)
            ]
        choice = {"index": 0, "message": message, "finish_reason": _finish(behaviour)}
        shown = _shown(reply)
        usage = {"usage": shown[-1]} if shown else {}
        return msgspec.json.encode({**_head(reply, "chat.completion"), "choices": [choice], **usage})

    def settled(self, reply: Reply) -> int:
        """See `Speech.settled`."""
        return len(_shown(reply)) + 1

    def error(self, status: int, code: str, message: str) -> Mapping[str, object]:
        """See `Speech.error`."""
        return {"error": {"message": message, "type": code, "code": code}}

    def error_event(self, status: int, code: str, message: str) -> bytes:
        """See `Speech.error_event`."""
        return sse({"error": {"message": message, "code": status}})


def _shown(reply: Reply) -> list[Mapping[str, object]]:
    if reply.usage.instead is not None:
        return [reply.usage.instead] if reply.usage.instead else []
    return [_chat_count(counted) for counted in reply.usage.last]


def _deltas(reply: Reply) -> Iterable[Mapping[str, object]]:
    behaviour, n = reply.behaviour, reply.n
    size = behaviour.chunk_chars
    yield {"role": "assistant", "content": ""}
    for part in pieces(reasoning_of(behaviour), size):
        yield {"reasoning_content": part}
    for part in pieces(text_of(behaviour), size):
        yield {"content": part}
    for at, call in enumerate(calls_of(behaviour)):
        opening = {"index": at, "id": _id(call, n, at), "type": "function"}
        yield {"tool_calls": [{**opening, "function": {"name": call.name, "arguments": ""}}]}
        for part in pieces(call.text(), size):
            yield {"tool_calls": [{"index": at, "function": {"arguments": part}}]}


def _head(reply: Reply, kind: str) -> Mapping[str, object]:
    return {"id": f"reply-{reply.n}", "object": kind, "created": 0, "model": reply.model}


@dataclass(frozen=True, slots=True)
class NativeSpeech:
    """A wire format of `leadline.testing.wires`. Of the usage that is shown it tells the last, and the first where it has a place."""

    wire: WireSpeech
    codes: Mapping[int, str]
    """Its own word for each HTTP status."""

    def events(self, reply: Reply) -> list[bytes]:
        """See `Speech.events`."""
        return [wire_bytes([event]) for event in self.wire.events(_said(reply))]

    def whole(self, reply: Reply) -> bytes:
        """See `Speech.whole`."""
        return self.wire.whole(_said(reply))

    def settled(self, reply: Reply) -> int:
        """See `Speech.settled`."""
        return self.wire.settled

    def error(self, status: int, code: str, message: str) -> Mapping[str, object]:
        """See `Speech.error`."""
        word = self.codes.get(status, code)
        error: dict[str, object] = {"type": word, "message": message}
        if self.wire is GEMINI:
            error = {"code": status, "message": message, "status": word}
        elif self.wire is RESPONSES:
            error |= {"code": code, "param": None}
        return {"type": "error", "error": error} if self.wire is MESSAGES else {"error": error}

    def error_event(self, status: int, code: str, message: str) -> bytes:
        """See `Speech.error_event`."""
        body: Mapping[str, object] = self.error(status, code, message)
        if self.wire is RESPONSES:
            failed: Mapping[str, object] = {
                "status": "failed",
                "error": {"code": "server_error", "message": message},
                "output": [],
            }
            body = {"type": "response.failed", "response": failed}
        data = msgspec.json.encode(body).decode()
        return wire_bytes([Event(data, str(body.get("type", "")))])


_ENDS: Mapping[str, Literal["length", "refused"]] = {"max_tokens": "length", "refused": "refused"}


def _said(reply: Reply) -> Said:
    behaviour, usage = reply.behaviour, reply.usage
    calls = tuple(
        (_id(call, reply.n, at), call.name, call.text()) for at, call in enumerate(calls_of(behaviour))
    )
    counted = usage.last[-1] if usage.last else Counted()
    if usage.first is not None:
        counted = Counted(
            prompt=usage.first.prompt,
            cached=usage.first.cached,
            written=usage.first.written,
            completion=counted.completion,
            reasoning=counted.reasoning,
        )
    return Said(
        reasoning=reasoning_of(behaviour),
        state=behaviour.state,
        text=text_of(behaviour),
        calls=calls,
        end=_ENDS.get(behaviour.kind, "done"),
        usage="missing" if usage.nothing else "early" if usage.first else "late",
        counted=counted,
        piece=behaviour.chunk_chars,
        word=behaviour.finish_reason or "",
    )


_MESSAGES_CODES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    429: "rate_limit_error",
    500: "api_error",
    503: "overloaded_error",
    529: "overloaded_error",
}
_GEMINI_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
_CHAT = ChatSpeech()
_MESSAGES = NativeSpeech(MESSAGES, _MESSAGES_CODES)
_GEMINI = NativeSpeech(GEMINI, _GEMINI_CODES)
_RESPONSES = NativeSpeech(RESPONSES, {})
_GEMINI_PATH = re.compile(r"/models/([^/]+):(generateContent|streamGenerateContent)$")


def speech_of(path: str) -> Speech:
    """The wire format that is spoken at a path."""
    path = path.partition("?")[0]
    if _GEMINI_PATH.search(path):
        return _GEMINI
    if path.endswith("/messages"):
        return _MESSAGES
    return _RESPONSES if path.endswith("/responses") else _CHAT


def model_of(path: str, body: Mapping[str, object]) -> str:
    """The model that a request names."""
    found = _GEMINI_PATH.search(path.partition("?")[0])
    return found.group(1) if found else str(body.get("model", ""))


def wants_stream(path: str, body: Mapping[str, object]) -> bool:
    """Whether the answer is to be a stream."""
    found = _GEMINI_PATH.search(path.partition("?")[0])
    return found.group(2) == "streamGenerateContent" if found else bool(body.get("stream"))


def wants_usage(path: str, body: Mapping[str, object]) -> bool:
    """Whether a stream tells its usage: chat completions do where they are asked to, the others always."""
    options = cast("Mapping[str, object]", body.get("stream_options") or {})
    return speech_of(path) is not _CHAT or not body.get("stream") or bool(options.get("include_usage"))


def most_output(body: Mapping[str, object]) -> int:
    """The output that a request may have; 0 where it names no ceiling."""
    config = cast("Mapping[str, object]", body.get("generationConfig") or {})
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    found = [body.get(name) for name in names] + [config.get("maxOutputTokens")]
    return next((value for value in found if isinstance(value, int)), 0)


_Objects = Sequence[Mapping[str, object]]


def offered(body: Mapping[str, object]) -> Mapping[str, Mapping[str, object]]:
    """The tools that a request offers, each with the schema of its arguments."""
    found: dict[str, Mapping[str, object]] = {}
    for tool in cast("_Objects", body.get("tools") or ()):
        inner = tool.get("function") or tool
        for one in cast("_Objects", tool.get("functionDeclarations") or (inner,)):
            schema = one.get("parameters") or one.get("input_schema") or one.get("parametersJsonSchema")
            found[str(one.get("name"))] = cast("Mapping[str, object]", schema or {})
    return found


def told(path: str, body: Mapping[str, object]) -> tuple[Mapping[str, object], ...]:
    """The messages of a request in the form of chat completions, whatever the wire: role, content, `tool_call_id`."""
    speech = speech_of(path)
    if speech is _CHAT:
        return tuple(cast("_Objects", body.get("messages") or ()))
    if speech is _MESSAGES:
        system = [{"role": "system", "content": _text(body["system"])}] if body.get("system") else []
        messages = cast("_Objects", body.get("messages") or ())
        return (*system, *(part for one in messages for part in _messages_parts(one)))
    if speech is _GEMINI:
        instruction = cast("Mapping[str, object]", body.get("systemInstruction") or {})
        system = [{"role": "system", "content": _text(instruction.get("parts"))}] if instruction else []
        contents = cast("_Objects", body.get("contents") or ())
        return (*system, *(part for one in contents for part in _gemini_parts(one)))
    instructions = body.get("instructions")
    system = [{"role": "system", "content": instructions}] if instructions else []
    return (*system, *map(_item, cast("_Objects", body.get("input") or ())))


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in cast("_Objects", content or ()))


def _messages_parts(message: Mapping[str, object]) -> Iterable[Mapping[str, object]]:
    content = message.get("content")
    parts = cast("_Objects", content if isinstance(content, list) else ())
    results = [part for part in parts if part.get("type") == "tool_result"]
    for part in results:
        yield {"role": "tool", "tool_call_id": part.get("tool_use_id"), "content": _text(part.get("content"))}
    if not results:
        yield {"role": message.get("role"), "content": _text(message.get("content"))}


def _gemini_parts(content: Mapping[str, object]) -> Iterable[Mapping[str, object]]:
    parts = cast("_Objects", content.get("parts") or ())
    answers = [
        cast("Mapping[str, object]", part["functionResponse"]) for part in parts if "functionResponse" in part
    ]
    for answer in answers:
        said = cast("Mapping[str, object]", answer.get("response") or {})
        text = "".join(one if isinstance(one, str) else json.dumps(one) for one in said.values())
        yield {"role": "tool", "tool_call_id": answer.get("id"), "content": text}
    if not answers:
        role = {"model": "assistant"}.get(str(content.get("role")), content.get("role"))
        yield {"role": role, "content": _text(parts)}


def _item(item: Mapping[str, object]) -> Mapping[str, object]:
    if item.get("type") == "function_call_output":
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": _text(item.get("output"))}
    return {"role": item.get("role", "assistant"), "content": _text(item.get("content"))}
