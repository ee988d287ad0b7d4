"""Anthropic Messages: requests. Constructed from the published reference of the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from leadline.capabilities.models.providers.anthropic_decode import MessagesDecoder
from leadline.capabilities.models.providers.calling import WireFormat
from leadline.capabilities.models.providers.native import (
    NO_OUTPUT,
    ceiling,
    choice_of,
    effort_of,
    form_of,
    object_of,
    offered,
    producer_of,
    safe_id,
    spoken,
    state_of,
)
from leadline.capabilities.models.providers.profiles import Profile
from leadline.capabilities.models.providers.provider_json import as_object
from leadline.core.llm.adapter import ModelInfo
from leadline.core.llm.messages import (
    AssistantMessage,
    Message,
    Reasoning,
    Text,
    ToolMessage,
    UserMessage,
    commas,
)
from leadline.core.llm.request import LlmRequest, ToolSchema
from leadline.core.llm.wire import encode_text

_WORDS = {"auto": "auto", "none": "none", "required": "any"}


@dataclass(frozen=True, slots=True)
class MessagesEncoder:
    """Writes messages for one head; equal when it writes equal bytes."""

    head: bytes
    producer: str | None
    close: bytes = b"]}"

    def encode(self, message: Message) -> bytes:
        """One message; a result is one block of a message that `join` makes."""
        match message:
            case UserMessage():
                text = spoken(message)
                return encode_text({"role": "user", "content": text}) if text else b""
            case AssistantMessage():
                return self._assistant(message)
            case ToolMessage():
                block: dict[str, object] = {
                    "type": "tool_result",
                    "tool_use_id": safe_id(message.call_id),
                    "content": message.content if message.content.strip() else NO_OUTPUT,
                }
                if message.is_error:
                    block["is_error"] = True
                return encode_text(block)

    def join(self, before: Message | None, after: Message | None) -> bytes:
        """Results that follow each other are one message, as the API asks for parallel calls."""
        was, comes = isinstance(before, ToolMessage), isinstance(after, ToolMessage)
        if was and comes:
            return b","
        end, begin = b"]}" if was else b"", b'{"role":"user","content":[' if comes else b""
        return end + commas(self.head, before, after) + begin

    def _assistant(self, message: AssistantMessage) -> bytes:
        if not message.text.strip() and not message.tool_calls:
            return b""
        blocks: list[Mapping[str, object]] = []
        for part in message.content:
            match part:
                case Text(text):
                    if text.strip():
                        blocks.append({"type": "text", "text": text})
                case Reasoning():
                    blocks += self._thinking(part)
                case _:
                    use = {"type": "tool_use", "id": safe_id(part.id), "name": safe_id(part.name)}
                    blocks.append({**use, "input": object_of(part.arguments)})
        return encode_text({"role": "assistant", "content": blocks})

    def _thinking(self, part: Reasoning) -> list[Mapping[str, object]]:
        """The block as it was received; nothing where it was not whole or is another model's."""
        state = state_of(part, self.producer)
        match state.get("type"):
            case "thinking":
                return [{"type": "thinking", "thinking": part.text, "signature": state.get("signature")}]
            case "redacted_thinking":
                return [{"type": "redacted_thinking", "data": state.get("data")}]
            case _:
                return []


def _encoder(request: LlmRequest, profile: Profile, info: ModelInfo) -> MessagesEncoder:
    config = request.config
    body: dict[str, object] = {"model": config.model.model, **profile.extra_body}
    most_output = ceiling(config, profile, info)
    effort = effort_of(config, profile, most_output)
    body |= effort.fields
    form = form_of(config, profile)
    if form is not None and form[1]:
        said = {"format": {"type": "json_schema", "schema": form[0].schema}}
        body["output_config"] = {**as_object(body.get("output_config")), **said}
    body[profile.max_tokens_field] = most_output
    if config.temperature is not None and profile.temperature and not effort.reasons:
        body["temperature"] = config.temperature
    body["stream"] = profile.streaming
    marked = {place: {"cache_control": profile.cache_marker} for place in profile.cache_markers}
    if tools := offered(request, profile):
        last = len(tools) - 1
        body["tools"] = [
            {**_tool(tool), **(marked.get("tools", {}) if at == last else {})}
            for at, tool in enumerate(tools)
        ]
        choice = choice_of(request, profile, reasons=effort.reasons)
        if choice is not None:
            word = _WORDS.get(choice)
            body["tool_choice"] = {"type": word} if word else {"type": "tool", "name": safe_id(choice)}
    # The mark at the top is moved along by the provider, so that bodies still extend each other.
    body |= marked.get("conversation", {})
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, **marked.get("system", {})}]
    head = encode_text(body)[:-1] + b',"messages":['
    return MessagesEncoder(head, producer_of(config, profile))


def _tool(tool: ToolSchema) -> Mapping[str, object]:
    return {"name": safe_id(tool.name), "description": tool.description, "input_schema": tool.parameters}


WIRE = WireFormat(_encoder, MessagesDecoder)
