"""Gemini generateContent: requests. Constructed from the published reference of the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from leadline.capabilities.models.providers.calling import WireFormat
from leadline.capabilities.models.providers.gemini_decode import GeminiDecoder
from leadline.capabilities.models.providers.native import (
    NO_OUTPUT,
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

_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}


@dataclass(frozen=True, slots=True)
class GeminiEncoder:
    """Writes contents for one head; equal when it writes equal bytes."""

    head: bytes
    producer: str | None
    filler: str | None = None
    """Stands for the signature of a call that has none, as that of another model's."""
    close: bytes = b"]}"

    def encode(self, message: Message) -> bytes:
        """One content; a result is one part of a content that `join` makes."""
        match message:
            case UserMessage():
                text = spoken(message)
                return encode_text({"role": "user", "parts": [{"text": text}]}) if text else b""
            case AssistantMessage():
                return self._assistant(message)
            case ToolMessage():
                said = {"error" if message.is_error else "output": message.content or NO_OUTPUT}
                response = {"id": message.call_id, "name": safe_id(message.name), "response": said}
                return encode_text({"functionResponse": response})

    def join(self, before: Message | None, after: Message | None) -> bytes:
        """Results of one turn are one content: the API counts them against the calls."""
        was, comes = isinstance(before, ToolMessage), isinstance(after, ToolMessage)
        if was and comes:
            return b","
        end, begin = b"]}" if was else b"", b'{"role":"user","parts":[' if comes else b""
        return end + commas(self.head, before, after) + begin

    def _assistant(self, message: AssistantMessage) -> bytes:
        if not message.text.strip() and not message.tool_calls:
            return b""
        parts: list[Mapping[str, object]] = []
        signed: Mapping[str, object] = {}
        """The state that belongs to the part that comes next."""
        missing: Mapping[str, object] = {"thoughtSignature": self.filler} if self.filler else {}
        """What stands in for the signature of the first call; the others have none of their own."""
        for part in message.content:
            if isinstance(part, Reasoning):
                state = state_of(part, self.producer)
                signed, own = _placed(state, part.text)
                parts += own
            elif isinstance(part, Text):
                mark = _mark(signed, "text")
                signed = {}
                if part.text.strip() or mark:
                    parts.append({"text": part.text, **mark})
            else:
                call = {"id": part.id, "name": safe_id(part.name), "args": object_of(part.arguments)}
                parts.append({"functionCall": call, **(_mark(signed, "functionCall") or missing)})
                signed = missing = {}
        return encode_text({"role": "model", "parts": parts})


def _placed(
    state: Mapping[str, object], text: str
) -> tuple[Mapping[str, object], list[Mapping[str, object]]]:
    """What waits for the next part, and the parts that stand for themselves."""
    signature = {"thoughtSignature": state.get("thoughtSignature")}
    match state.get("part"):
        case "thought":
            return {}, [{"text": text, "thought": True, **signature}]
        case "empty":
            return {}, [{"text": "", **signature}]
        case _:
            return state, []


def _mark(state: Mapping[str, object], kind: str) -> Mapping[str, object]:
    return {"thoughtSignature": state["thoughtSignature"]} if state.get("part") == kind else {}


def _encoder(request: LlmRequest, profile: Profile, info: ModelInfo) -> GeminiEncoder:
    del info  # the wire needs nothing of it
    config = request.config
    body: dict[str, object] = dict(profile.extra_body)
    effort = effort_of(config, profile, config.max_tokens)
    generation: dict[str, object] = dict(effort.fields)
    if config.max_tokens is not None:
        generation[profile.max_tokens_field] = config.max_tokens
    if config.temperature is not None and profile.temperature:
        generation["temperature"] = config.temperature
    if (form := form_of(config, profile)) is not None:
        generation["responseMimeType"] = "application/json"
        if form[1]:
            generation["responseJsonSchema"] = form[0].schema
    if generation:
        body["generationConfig"] = generation
    if tools := offered(request, profile):
        body["tools"] = [{"functionDeclarations": [_tool(tool) for tool in tools]}]
        choice = choice_of(request, profile, reasons=effort.reasons)
        if choice is not None:
            mode = _MODES.get(choice)
            named = {"mode": "ANY", "allowedFunctionNames": [safe_id(choice)]}
            body["toolConfig"] = {"functionCallingConfig": {"mode": mode} if mode else named}
    if request.system.strip():
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    written = encode_text(body)[:-1]
    head = written + (b',"contents":[' if body else b'"contents":[')
    filler = profile.reasoning_filler if profile.reasoning_replay == "filler" else None
    return GeminiEncoder(head, producer_of(config, profile), filler)


def _tool(tool: ToolSchema) -> Mapping[str, object]:
    return {
        "name": safe_id(tool.name),
        "description": tool.description,
        "parametersJsonSchema": tool.parameters,
    }


WIRE = WireFormat(_encoder, GeminiDecoder)
