"""OpenAI Responses: requests. Constructed from the published reference of the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from leadline.capabilities.models.providers.calling import WireFormat
from leadline.capabilities.models.providers.native import (
    NO_OUTPUT,
    choice_of,
    effort_of,
    form_of,
    offered,
    producer_of,
    safe_id,
    spoken,
    state_of,
)
from leadline.capabilities.models.providers.openai_responses_decode import ResponsesDecoder
from leadline.capabilities.models.providers.profiles import Profile
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


@dataclass(frozen=True, slots=True)
class ResponsesEncoder:
    """Writes input items for one head; equal when it writes equal bytes."""

    head: bytes
    producer: str | None
    close: bytes = b"]}"

    def encode(self, message: Message) -> bytes:
        """The items of one message, with commas between them."""
        match message:
            case UserMessage():
                text = spoken(message)
                return encode_text({"role": "user", "content": text}) if text else b""
            case AssistantMessage():
                return self._assistant(message)
            case ToolMessage():
                item = {"type": "function_call_output", "call_id": safe_id(message.call_id)}
                return encode_text({**item, "output": message.content or NO_OUTPUT})

    def join(self, before: Message | None, after: Message | None) -> bytes:
        """Every item stands for itself."""
        return commas(self.head, before, after)

    def _assistant(self, message: AssistantMessage) -> bytes:
        """Reasoning is sent as it was received, and only before what it led to: alone it is refused."""
        items: list[bytes] = []
        waiting: list[bytes] = []
        for part in message.content:
            match part:
                case Reasoning():
                    if part.opaque is not None and state_of(part, self.producer):
                        waiting.append(part.opaque.encode())
                    continue
                case Text(text):
                    if not text.strip():
                        continue
                    content = [{"type": "output_text", "text": text}]
                    item = encode_text({"type": "message", "role": "assistant", "content": content})
                case _:
                    call = {"type": "function_call", "call_id": safe_id(part.id), "name": safe_id(part.name)}
                    item = encode_text({**call, "arguments": part.arguments})
            items += [*waiting, item]
            waiting.clear()
        return b",".join(items)


def _encoder(request: LlmRequest, profile: Profile, info: ModelInfo) -> ResponsesEncoder:
    del info  # the wire needs nothing of it
    config = request.config
    body: dict[str, object] = {"model": config.model.model, **profile.extra_body}
    effort = effort_of(config, profile, config.max_tokens)
    body |= effort.fields
    if config.max_tokens is not None:
        body[profile.max_tokens_field] = config.max_tokens
    if config.temperature is not None and profile.temperature:
        body["temperature"] = config.temperature
    if (form := form_of(config, profile)) is not None:
        named = {"name": safe_id(form[0].name), "schema": form[0].schema, "strict": False}
        body["text"] = {"format": {"type": "json_schema", **named} if form[1] else {"type": "json_object"}}
    body["stream"] = profile.streaming
    if tools := offered(request, profile):
        body["tools"] = [_tool(tool) for tool in tools]
        choice = choice_of(request, profile, reasons=effort.reasons)
        if choice is not None:
            word = choice in ("auto", "none", "required")
            body["tool_choice"] = choice if word else {"type": "function", "name": safe_id(choice)}
    if request.system.strip():
        body["instructions"] = request.system
    head = encode_text(body)[:-1] + b',"input":['
    return ResponsesEncoder(head, producer_of(config, profile))


def _tool(tool: ToolSchema) -> Mapping[str, object]:
    # Strictness is on when it is left out, and refuses schemas with optional members.
    fixed = {"type": "function", "name": safe_id(tool.name), "description": tool.description, "strict": False}
    return {**fixed, "parameters": tool.parameters}


WIRE = WireFormat(_encoder, ResponsesDecoder)
