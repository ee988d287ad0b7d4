"""Requests as chat-completions bodies: fixed key order, messages last, each message encoded alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from leadline.capabilities.models.providers.native import effort_of, form_of, producer_of
from leadline.capabilities.models.providers.profiles import Profile, ReasoningReplay
from leadline.core.llm.messages import (
    AssistantMessage,
    ImageRef,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
    commas,
)
from leadline.core.llm.request import LlmRequest, ToolSchema
from leadline.core.llm.wire import encode_text, placeholder


@dataclass(frozen=True, slots=True)
class ChatEncoder:
    """Writes messages for one head; equal when it writes equal bytes."""

    head: bytes
    replay: ReasoningReplay
    reasoning_field: str
    filler: str
    empty_content: str
    details_field: str = ""
    producer: str | None = None
    """Whose blocks of reasoning go back."""
    close: bytes = b"]}"

    def encode(self, message: Message) -> bytes:
        """One message; empty when there is nothing in it that may stand on the wire."""
        match message:
            case UserMessage():
                content = "\n\n".join(filter(None, map(_plain, message.content)))
                return encode_text({"role": "user", "content": content}) if content else b""
            case AssistantMessage():
                return self._assistant(message)
            case ToolMessage():
                content = message.content or "(no output)"
                return encode_text({"role": "tool", "tool_call_id": message.call_id, "content": content})

    def join(self, before: Message | None, after: Message | None) -> bytes:
        """A comma between messages."""
        return commas(self.head, before, after)

    def _assistant(self, message: AssistantMessage) -> bytes:
        text, calls = message.text, message.tool_calls
        if not text and not calls:
            return b""
        wire: dict[str, object] = {"role": "assistant"}
        if text or self.empty_content != "omit":
            wire["content"] = text or (None if self.empty_content == "null" else "")
        if details := self._details(message):
            wire[self.details_field] = details
        elif reasoning := self._reasoning(message):
            wire[self.reasoning_field] = reasoning
        if calls:
            wire["tool_calls"] = [_call(call) for call in calls]
        return encode_text(wire)

    def _replayed(self, message: AssistantMessage) -> bool:
        return self.replay != "never" and (self.replay != "with_tools" or bool(message.tool_calls))

    def _details(self, message: AssistantMessage) -> list[msgspec.Raw]:
        """The blocks as they came, of the model that is asked."""
        if not self.details_field or not self._replayed(message):
            return []
        parts = [part for part in message.content if isinstance(part, Reasoning)]
        kept = [part.opaque for part in parts if part.opaque and part.producer == self.producer]
        return [block for opaque in kept for block in _blocks(opaque)]

    def _reasoning(self, message: AssistantMessage) -> str:
        if not self._replayed(message):
            return ""
        text = "".join(part.text for part in message.content if isinstance(part, Reasoning))
        return text or (self.filler if self.replay == "filler" else "")


def _blocks(opaque: str) -> list[msgspec.Raw]:
    try:
        return msgspec.json.decode(opaque, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return []


def _plain(part: Text | ImageRef) -> str:
    return part.text if isinstance(part, Text) else placeholder(part)


def _call(call: ToolCall) -> Mapping[str, object]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def encoder_for(request: LlmRequest, profile: Profile) -> ChatEncoder:
    """The encoder whose head says everything about ``request`` but its messages."""
    config = request.config
    effort = effort_of(config, profile, config.max_tokens)
    body: dict[str, object] = {"model": config.model.model, **profile.extra_body, **effort.fields}
    if config.max_tokens is not None:
        body[profile.max_tokens_field] = config.max_tokens
    if config.temperature is not None and profile.temperature:
        body["temperature"] = config.temperature
    if (form := form_of(config, profile)) is not None:
        named = {"name": form[0].name, "schema": form[0].schema, "strict": False}
        schema = {"type": "json_schema", "json_schema": named}
        body["response_format"] = schema if form[1] else {"type": "json_object"}
    body["stream"] = profile.streaming
    if profile.streaming and profile.include_usage:
        body["stream_options"] = {"include_usage": True}
    body |= _tools(request, profile, reasons=effort.reasons)
    system = (
        encode_text({"role": "system", "content": _system(request.system, profile)})
        if request.system
        else b""
    )
    head = encode_text(body)[:-1] + b',"messages":[' + system
    return ChatEncoder(
        head,
        profile.reasoning_replay,
        profile.reasoning_field,
        profile.reasoning_filler,
        profile.empty_content,
        profile.reasoning_details_field,
        producer_of(config, profile),
    )


def _system(text: str, profile: Profile) -> object:
    """The system text, marked as what should be kept where the provider wants that."""
    if "system" not in profile.cache_markers:
        return text
    return [{"type": "text", "text": text, "cache_control": profile.cache_marker}]


def _tools(request: LlmRequest, profile: Profile, *, reasons: bool) -> Mapping[str, object]:
    if not request.tools or not profile.tools:
        return {}
    fields: dict[str, object] = {"tools": [_tool(tool) for tool in request.tools]}
    choice = request.config.tool_choice
    forced = profile.forced_tool_choice
    if choice is None or (choice == "auto" and forced != "always"):
        return fields
    if forced == "never" or (forced == "without_reasoning" and reasons):
        # Such a provider refuses the field; "none" is said by offering nothing.
        return {} if choice == "none" else fields
    if choice not in ("auto", "none", "required") and profile.named_tool_choice:
        fields["tool_choice"] = {"type": "function", "function": {"name": choice}}
    else:
        fields["tool_choice"] = choice if choice in ("auto", "none") else profile.required_word
    return fields


def _tool(tool: ToolSchema) -> Mapping[str, object]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}
