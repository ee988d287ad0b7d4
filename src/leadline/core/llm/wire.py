"""The wire of adapters that send nothing: canonical bytes whose digest identifies a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import msgspec

from leadline.core.llm.messages import (
    AssistantMessage,
    ImageRef,
    Message,
    ToolMessage,
    UserMessage,
    Wire,
    commas,
)
from leadline.core.llm.request import LlmRequest


@dataclass(frozen=True, slots=True)
class CanonicalEncoder:
    """Messages as the project's own JSON, without ids and other things a model does not see."""

    head: bytes
    close: bytes = b"]}"

    def encode(self, message: Message) -> bytes:
        """One message."""
        match message:
            case UserMessage():
                plain: dict[str, object] = {"role": "user", "content": message.content}
            case AssistantMessage():
                plain = {"role": "assistant", "content": message.content}
            case ToolMessage():
                plain = {
                    "role": "tool",
                    "call_id": message.call_id,
                    "content": message.content,
                    "is_error": message.is_error,
                }
        return encode_text(plain)

    def join(self, before: Message | None, after: Message | None) -> bytes:
        """A comma between messages."""
        return commas(self.head, before, after)


def canonical_wire(request: LlmRequest) -> Wire:
    """The canonical body of ``request``; the purpose is part of it, as such adapters act on it."""
    head = encode_text(
        {
            "config": request.config,
            "purpose": request.purpose,
            "system": request.system,
            "tools": request.tools,
        }
    )
    return request.conversation.wire(CanonicalEncoder(head[:-1] + b',"messages":['))


def encode_text(value: object) -> bytes:
    """``value`` as JSON in UTF-8; characters that UTF-8 cannot carry become question marks."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_replaced(msgspec.to_builtins(value, enc_hook=msgspec.json.decode)))


def _replaced(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return {str(_replaced(key)): _replaced(item) for key, item in members.items()}
    if isinstance(value, list | tuple):
        return [_replaced(item) for item in cast("Sequence[object]", value)]
    return value


def placeholder(image: ImageRef) -> str:
    """What a model that takes text only is told about an image; always the same for one image."""
    return f"[image {image.media_type}, sha256 {image.blob[:16]}: not shown to this model]"
