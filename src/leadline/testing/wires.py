"""Replies in every wire format, written after the providers' published references, for tests of adapters.

What a model says is one value, `Said`; each wire writes it its own way. Nothing here was taken from a live
provider: the bytes are constructed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from leadline.core.llm.usage import Usage


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Tokens as a provider counts them; None is left out of what it reports."""

    prompt: int | None = 100
    """All input, the cached part and what is written to the cache included."""
    cached: int | None = 64
    written: int | None = 6
    """Written to the cache; only Anthropic tells it."""
    completion: int | None = 20
    """All output, reasoning included."""
    reasoning: int | None = 8


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a model says in one reply."""

    reasoning: str = ""
    state: str = ""
    """Provider state that comes with the reasoning, or with the first call where the wire puts it there."""
    text: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    """Id, name and arguments as JSON."""
    end: Literal["done", "length", "refused"] = "done"
    usage: Literal["late", "early", "missing"] = "late"
    """``early`` is in the first event that can hold it, and in the last."""
    counted: Counted = Counted()
    """What the usage reports."""
    piece: int = 0
    """Characters of a fragment; 0 sends each thing whole."""
    grouped: int = 1
    """How many fragments one event holds, in wires where an event can hold several."""
    mixed: bool = False
    """Whether the fragments of parallel calls come by turns, in wires that tell them apart by their place."""
    word: str = ""
    """The provider's own word for the end, in place of the one that `end` comes to."""

    def ended(self, words: Mapping[str, str], with_calls: str | None = None) -> str:
        """The word for the end in a wire whose words are `words`."""
        if self.word:
            return self.word
        return with_calls if with_calls and self.calls and self.end == "done" else words[self.end]


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    data: str
    name: str = ""


@dataclass(frozen=True)
class WireSpeech:
    """How one wire format says things."""

    api: str
    events: Callable[[Said], list[Event]]
    """The events of a whole stream."""
    whole: Callable[[Said], bytes]
    """The body of a reply in one piece."""
    error: Callable[[str], Event]
    """An error inside a stream: ``overloaded``, ``rate_limit`` or ``overflow``."""
    usage: Usage
    """What the reported usage comes to."""
    settled: int
    """How many of the last events may be lost without losing the answer."""


def wire_bytes(events: Sequence[Event], *, line_end: str = "\n", comments: bool = False) -> bytes:
    """The events as the bytes of a stream."""
    out: list[str] = []
    for event in events:
        if comments:
            out += [": keep-alive", ""]
        if event.name:
            out.append(f"event: {event.name}")
        out += [f"data: {event.data}", ""]
    return line_end.join([*out, ""]).encode()


def pieces(text: str, size: int) -> list[str]:
    """``text`` in pieces of ``size`` characters; none for an empty one."""
    step = size or max(1, len(text))
    return [text[at : at + step] for at in range(0, len(text), step)]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _told(**members: object) -> dict[str, object]:
    """What of it is known."""
    return {name: value for name, value in members.items() if value not in (None, {})}


def _object(arguments: str) -> object:
    """Arguments as the object that a wire wants; the text itself where it is no JSON."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


# Chat completions.

_CHAT_ENDS = {"done": "stop", "length": "length", "refused": "content_filter"}


def chat_usage(counted: Counted) -> dict[str, object]:
    """The usage of a chat completion."""
    return _told(
        prompt_tokens=counted.prompt,
        completion_tokens=counted.completion,
        prompt_tokens_details=_told(cached_tokens=counted.cached),
        completion_tokens_details=_told(reasoning_tokens=counted.reasoning),
    )


def _chat_chunk(delta: Mapping[str, object], finish: str | None = None) -> Event:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return Event(_json({"object": "chat.completion.chunk", "choices": choices}))


def _chat_events(said: Said) -> list[Event]:
    opening = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    early: dict[str, object] = {"usage": chat_usage(said.counted)} if said.usage == "early" else {}
    out = [Event(_json({"object": "chat.completion.chunk", "choices": [opening], **early}))]
    deltas: list[Mapping[str, object]] = []
    deltas += [{"reasoning_content": part} for part in pieces(said.reasoning, said.piece)]
    deltas += [{"content": part} for part in pieces(said.text, said.piece)]
    for at, (id_, name, _) in enumerate(said.calls):
        opened = {"index": at, "id": id_, "type": "function", "function": {"name": name, "arguments": ""}}
        deltas.append({"tool_calls": [opened]})
    rest = [pieces(arguments, said.piece) for _, _, arguments in said.calls]
    while any(rest):  # the fragments of parallel calls interleaved
        for at, parts in enumerate(rest):
            if parts:
                fragment = {"index": at, "function": {"arguments": parts.pop(0)}}
                deltas.append({"tool_calls": [fragment]})
    for at in range(0, len(deltas), said.grouped):
        out.append(_chat_chunk(_together(deltas[at : at + said.grouped])))
    end = said.ended(_CHAT_ENDS, "tool_calls")
    out.append(_chat_chunk({}, end))
    if said.usage != "missing":
        out.append(Event(_json({"choices": [], "usage": chat_usage(said.counted)})))
    return [*out, Event("[DONE]")]


def _together(deltas: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Deltas as one: texts behind each other, calls in one array."""
    out: dict[str, object] = {}
    for delta in deltas:
        for key, value in delta.items():
            out[key] = value if key not in out else cast("str", out[key]) + cast("str", value)
    return out


def _chat_whole(said: Said) -> bytes:
    message: dict[str, object] = {"role": "assistant", "content": said.text or None}
    if said.reasoning:
        message["reasoning_content"] = said.reasoning
    if said.calls:
        message["tool_calls"] = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id_, name, arguments in said.calls
        ]
    end = said.ended(_CHAT_ENDS, "tool_calls")
    usage = {} if said.usage == "missing" else {"usage": chat_usage(said.counted)}
    return _json({"choices": [{"index": 0, "message": message, "finish_reason": end}], **usage}).encode()


_CHAT_ERRORS: Mapping[str, Mapping[str, object]] = {
    "overloaded": {"message": "The server is overloaded.", "code": 503},
    "rate_limit": {"message": "Rate limit reached, try again in 7s.", "code": "rate_limit_exceeded"},
    "overflow": {"message": "This model's maximum context length is 9 tokens.", "code": "400"},
}
CHAT = WireSpeech(
    "openai-chat",
    _chat_events,
    _chat_whole,
    lambda kind: Event(_json({"error": _CHAT_ERRORS[kind]})),
    Usage(input=36, cached_input=64, output=12, reasoning=8),
    settled=2,
)


# Anthropic Messages.

_MESSAGES_ENDS = {"done": "end_turn", "length": "max_tokens", "refused": "refusal"}


def _messages_input(counted: Counted) -> dict[str, object]:
    rest = None if counted.prompt is None else counted.prompt - (counted.cached or 0) - (counted.written or 0)
    return _told(
        input_tokens=rest,
        cache_read_input_tokens=counted.cached,
        cache_creation_input_tokens=counted.written,
    )


def _named(kind: str, **members: object) -> Event:
    return Event(_json({"type": kind, **members}), kind)


def _block(index: int, opened: Mapping[str, object], deltas: Sequence[Mapping[str, object]]) -> list[Event]:
    return [
        _named("content_block_start", index=index, content_block=opened),
        *(_named("content_block_delta", index=index, delta=delta) for delta in deltas),
        _named("content_block_stop", index=index),
    ]


def _messages_blocks(said: Said) -> list[list[Event]]:
    blocks: list[list[Event]] = []
    if said.reasoning or said.state:
        deltas = [{"type": "thinking_delta", "thinking": one} for one in pieces(said.reasoning, said.piece)]
        deltas += [{"type": "signature_delta", "signature": one} for one in pieces(said.state, said.piece)]
        blocks.append(_block(len(blocks), {"type": "thinking", "thinking": "", "signature": ""}, deltas))
    if said.text:
        deltas = [{"type": "text_delta", "text": one} for one in pieces(said.text, said.piece)]
        blocks.append(_block(len(blocks), {"type": "text", "text": ""}, deltas))
    for id_, name, arguments in said.calls:
        opened: dict[str, object] = {"type": "tool_use", "id": id_, "name": name, "input": {}}
        parts = ["", *pieces(arguments, said.piece)]
        deltas = [{"type": "input_json_delta", "partial_json": one} for one in parts]
        blocks.append(_block(len(blocks), opened, deltas))
    return blocks


def _by_turns(runs: Sequence[Sequence[Event]]) -> list[Event]:
    """Runs of events, the first of each, then the second of each, and so on."""
    longest = max(map(len, runs), default=0)
    return [run[at] for at in range(longest) for run in runs if at < len(run)]


def _messages_events(said: Said) -> list[Event]:
    early = {**_messages_input(said.counted), "output_tokens": 1}
    usage = {} if said.usage == "missing" else {"usage": early}
    start: dict[str, object] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
    }
    out = [_named("message_start", message={**start, **usage}), _named("ping")]
    blocks = _messages_blocks(said)
    apart = len(blocks) - len(said.calls) if said.mixed else len(blocks)
    for block in blocks[:apart]:
        out += block
    out += _by_turns(blocks[apart:])
    end = said.ended(_MESSAGES_ENDS, "tool_use")
    output = _told(output_tokens=said.counted.completion)
    late: dict[str, object] = {} if said.usage == "missing" else {"usage": output}
    out.append(_named("message_delta", delta={"stop_reason": end, "stop_sequence": None}, **late))
    return [*out, _named("message_stop")]


def _messages_whole(said: Said) -> bytes:
    content: list[Mapping[str, object]] = []
    if said.reasoning or said.state:
        content.append({"type": "thinking", "thinking": said.reasoning, "signature": said.state})
    if said.text:
        content.append({"type": "text", "text": said.text})
    for id_, name, arguments in said.calls:
        content.append({"type": "tool_use", "id": id_, "name": name, "input": _object(arguments)})
    end = said.ended(_MESSAGES_ENDS, "tool_use")
    counts = {**_messages_input(said.counted), **_told(output_tokens=said.counted.completion)}
    usage = {} if said.usage == "missing" else {"usage": counts}
    return _json({"type": "message", "content": content, "stop_reason": end, **usage}).encode()


_MESSAGES_ERRORS = {
    "overloaded": ("overloaded_error", "Overloaded"),
    "rate_limit": ("rate_limit_error", "This request would exceed your rate limit. Try again in 7 seconds."),
    "overflow": ("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
}


def _messages_error(kind: str) -> Event:
    code, message = _MESSAGES_ERRORS[kind]
    return _named("error", error={"type": code, "message": message})


MESSAGES = WireSpeech(
    "anthropic-messages",
    _messages_events,
    _messages_whole,
    _messages_error,
    Usage(input=30, cached_input=64, cache_write=6, output=20),
    settled=1,
)


# Gemini generateContent.

_GEMINI_ENDS = {"done": "STOP", "length": "MAX_TOKENS", "refused": "SAFETY"}


def _gemini_usage(counted: Counted) -> dict[str, object]:
    visible = None if counted.completion is None else counted.completion - (counted.reasoning or 0)
    return _told(
        promptTokenCount=counted.prompt,
        cachedContentTokenCount=counted.cached,
        candidatesTokenCount=visible,
        thoughtsTokenCount=counted.reasoning,
        totalTokenCount=(counted.prompt or 0) + (counted.completion or 0),
    )


def _gemini_parts(said: Said) -> list[Mapping[str, object]]:
    parts: list[Mapping[str, object]] = []
    parts += [{"text": one, "thought": True} for one in pieces(said.reasoning, said.piece)]
    parts += [{"text": one} for one in pieces(said.text, said.piece)]
    for at, (id_, name, arguments) in enumerate(said.calls):
        call = {"id": id_, "name": name, "args": _object(arguments)}
        signature = {"thoughtSignature": said.state} if said.state and at == 0 else {}
        parts.append({"functionCall": call, **signature})
    if said.state and not said.calls:
        parts.append({"text": "", "thoughtSignature": said.state})
    return parts


def _gemini_events(said: Said) -> list[Event]:
    out: list[Event] = []
    early = {"usageMetadata": _told(promptTokenCount=said.counted.prompt)} if said.usage == "early" else {}
    parts = _gemini_parts(said)
    for at in range(0, len(parts), said.grouped):
        content = {"role": "model", "parts": parts[at : at + said.grouped]}
        out.append(Event(_json({"candidates": [{"content": content, "index": 0}], **early})))
    last = {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": said.ended(_GEMINI_ENDS)}
    late = {} if said.usage == "missing" else {"usageMetadata": _gemini_usage(said.counted)}
    return [*out, Event(_json({"candidates": [last], **late}))]


def _gemini_whole(said: Said) -> bytes:
    content = {"role": "model", "parts": _gemini_parts(said)}
    late = {} if said.usage == "missing" else {"usageMetadata": _gemini_usage(said.counted)}
    candidate = {"content": content, "finishReason": said.ended(_GEMINI_ENDS)}
    return _json({"candidates": [candidate], **late}).encode()


_GEMINI_ERRORS = {
    "overloaded": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    "rate_limit": (429, "RESOURCE_EXHAUSTED", "Quota exceeded for metric: requests. Please retry in 7s."),
    "overflow": (400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens."),
}


def _gemini_error(kind: str) -> Event:
    code, status, message = _GEMINI_ERRORS[kind]
    return Event(_json({"error": {"code": code, "message": message, "status": status}}))


GEMINI = WireSpeech(
    "gemini",
    _gemini_events,
    _gemini_whole,
    _gemini_error,
    Usage(input=36, cached_input=64, output=12, reasoning=8),
    settled=0,
)


# OpenAI Responses.


def _responses_usage(counted: Counted) -> dict[str, object]:
    return _told(
        input_tokens=counted.prompt,
        input_tokens_details=_told(cached_tokens=counted.cached),
        output_tokens=counted.completion,
        output_tokens_details=_told(reasoning_tokens=counted.reasoning),
        total_tokens=(counted.prompt or 0) + (counted.completion or 0),
    )


def _reasoning_item(said: Said) -> dict[str, object]:
    summary = [{"type": "summary_text", "text": said.reasoning}] if said.reasoning else []
    return {"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": said.state}


def _message_item(said: Said) -> dict[str, object]:
    kind = "refusal" if said.end == "refused" else "text"
    part = {"type": "refusal" if kind == "refusal" else "output_text", kind: said.text}
    return {"id": "msg_1", "type": "message", "role": "assistant", "content": [part]}


def _call_item(call: tuple[str, str, str]) -> dict[str, object]:
    id_, name, arguments = call
    return {"id": f"fc_{id_}", "type": "function_call", "call_id": id_, "name": name, "arguments": arguments}


def _items(said: Said) -> list[dict[str, object]]:
    items: list[dict[str, object]] = []
    if said.reasoning or said.state:
        items.append(_reasoning_item(said))
    if said.text:
        items.append(_message_item(said))
    return [*items, *map(_call_item, said.calls)]


def _response(said: Said) -> dict[str, object]:
    status = "incomplete" if said.end == "length" else "completed"
    why = {"reason": "max_output_tokens"} if said.end == "length" else None
    usage = {} if said.usage == "missing" else {"usage": _responses_usage(said.counted)}
    return {"status": status, "incomplete_details": why, "output": _items(said), **usage}


def _item_events(index: int, item: Mapping[str, object], said: Said) -> list[Event]:
    bare: dict[str, object] = {**item, "status": "in_progress"}
    match item["type"]:
        case "reasoning":
            bare |= {"summary": [], "encrypted_content": ""}
            kind, text = "response.reasoning_summary_text.delta", said.reasoning
        case "message":
            bare |= {"content": []}
            refused = said.end == "refused"
            kind, text = "response.refusal.delta" if refused else "response.output_text.delta", said.text
        case _:
            bare |= {"arguments": ""}
            kind, text = "response.function_call_arguments.delta", str(item["arguments"])
    return [
        _named("response.output_item.added", output_index=index, item=bare),
        *(_named(kind, output_index=index, delta=part) for part in pieces(text, said.piece)),
        _named("response.output_item.done", output_index=index, item=item),
    ]


def _responses_events(said: Said) -> list[Event]:
    begun: dict[str, object] = {"status": "in_progress", "output": []}
    if said.usage == "early":
        begun["usage"] = None
    out = [_named("response.created", response=begun), _named("response.in_progress", response=begun)]
    runs = [_item_events(index, item, said) for index, item in enumerate(_items(said))]
    apart = len(runs) - len(said.calls) if said.mixed else len(runs)
    for run in runs[:apart]:
        out += run
    out += _by_turns(runs[apart:])
    response = _response(said)
    return [*out, _named(f"response.{response['status']}", response=response)]


_RESPONSES_ERRORS = {
    "overloaded": ("server_error", "The server is overloaded."),
    "rate_limit": ("rate_limit_exceeded", "Rate limit reached. Please try again in 7s."),
    "overflow": ("context_length_exceeded", "Your input exceeds the context window of this model."),
}


def _responses_error(kind: str) -> Event:
    code, message = _RESPONSES_ERRORS[kind]
    failed: dict[str, object] = {
        "status": "failed",
        "error": {"code": code, "message": message},
        "output": [],
    }
    return _named("response.failed", response=failed)


RESPONSES = WireSpeech(
    "openai-responses",
    _responses_events,
    lambda said: _json(_response(said)).encode(),
    _responses_error,
    Usage(input=36, cached_input=64, output=12, reasoning=8),
    settled=0,
)

WIRES: tuple[WireSpeech, ...] = (CHAT, MESSAGES, GEMINI, RESPONSES)
"""All of them."""
