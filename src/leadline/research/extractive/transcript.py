"""What happened so far in a conversation, read from its calls and their structured results alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from leadline.core.llm.jsonvalue import JsonObject
from leadline.core.llm.messages import AssistantMessage, Conversation, ToolMessage


@dataclass(frozen=True)
class Done:
    """One call that was made, and what came of it."""

    name: str
    arguments: JsonObject
    value: JsonObject
    """The structured result; empty where there is none."""
    failed: bool


def calls_done(conversation: Conversation) -> tuple[Done, ...]:
    """Every answered call, in the order in which they were made."""
    results = {message.call_id: message for message in conversation if isinstance(message, ToolMessage)}
    return tuple(
        Done(call.name, _object(call.arguments.encode()), _value(results[call.id]), results[call.id].is_error)
        for message in conversation
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
        if call.id in results
    )


def _value(message: ToolMessage) -> JsonObject:
    if isinstance(message.value, msgspec.UnsetType):
        return _object(message.content.encode())
    return _object(bytes(message.value))


def _object(raw: bytes) -> JsonObject:
    try:
        found: object = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError):
        return {}
    return found if isinstance(found, Mapping) else {}  # pyright: ignore[reportUnknownVariableType] - JSON keys are text
