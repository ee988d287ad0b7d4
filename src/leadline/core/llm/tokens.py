"""Says how many tokens a text has, without a tokeniser: near enough to know what fits into a window."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from leadline.core.llm.messages import (
    AssistantMessage,
    Conversation,
    ImageRef,
    Message,
    Reasoning,
    Text,
    ToolMessage,
)
from leadline.core.llm.request import ToolSchema

IMAGE_TOKENS = 1200
"""What an image counts, whatever the size of its file: providers scale images down to about that."""

_MESSAGE = 4
"""Tokens around each message: role and marks."""
_CALL = 8
"""Tokens around each call of a tool and each schema of one."""


def text_tokens(text: str) -> int:
    """About how many tokens `text` has; 0 for none."""
    return round(len(text.encode("utf-8", "surrogatepass")) / 3.6 + 0.5) if text else 0


def least_tokens(text: str) -> int:
    """What no tokeniser in use goes below for `text`."""
    return len(text.split())


def message_tokens(message: Message) -> int:
    """About how many tokens a message has in a request."""
    if isinstance(message, ToolMessage):
        return _MESSAGE + _CALL + text_tokens(message.content)
    if isinstance(message, AssistantMessage):
        total = _MESSAGE
        for part in message.content:
            if isinstance(part, Text | Reasoning):
                total += text_tokens(part.text)
            else:
                total += _CALL + text_tokens(part.name) + text_tokens(part.arguments)
        return total
    return _MESSAGE + sum(
        IMAGE_TOKENS if isinstance(part, ImageRef) else text_tokens(part.text) for part in message.content
    )


def header_tokens(system: str, tools: Sequence[ToolSchema]) -> int:
    """About how many tokens a request has beside its messages."""
    total = _MESSAGE + text_tokens(system) if system else 0
    return total + sum(
        _CALL
        + text_tokens(tool.name)
        + text_tokens(tool.description)
        + text_tokens(msgspec.json.encode(tool.parameters).decode())
        for tool in tools
    )


class Estimate:
    """The size of the requests of one conversation: counts what is new, and learns from what is reported."""

    def __init__(self) -> None:
        self._header: tuple[str, Sequence[ToolSchema]] | None = None
        self._header_tokens = 0
        self._counted: Conversation | None = None
        self._tokens = 0
        """Of the settled messages of `_counted`."""
        self._ratios: dict[str, float] = {}

    def size(self, system: str, tools: Sequence[ToolSchema], conversation: Conversation) -> int:
        """About how many tokens the request has; costs the messages that were not counted the last time."""
        header = self._header
        if header is None or header[0] is not system or header[1] is not tools:
            self._header, self._header_tokens = (system, tools), header_tokens(system, tools)
        counted = self._counted
        start = 0
        if counted is not None and conversation.extends(counted):
            start = counted.settled
        else:
            self._tokens = 0
        settled = conversation.settled
        self._tokens += sum(message_tokens(conversation[at]) for at in range(start, settled))
        self._counted = conversation
        tail = sum(message_tokens(conversation[at]) for at in range(settled, len(conversation)))
        return self._header_tokens + self._tokens + tail

    def learn(self, model: str, raw: int, reported: int | None) -> None:
        """Take in what a provider reported for a prompt that was estimated at `raw` tokens; None: nothing."""
        if not reported or raw <= 0:
            return
        ratio = min(max(reported / raw, _LEAST_RATIO), _MOST_RATIO)
        known = self._ratios.get(model)
        self._ratios[model] = ratio if known is None else (known + ratio) / 2

    def corrected(self, raw: int, model: str) -> int:
        """The estimate `raw`, corrected by what was reported for earlier requests to the same model."""
        return round(raw * self._ratios.get(model, 1.0))

    def knows(self, model: str) -> bool:
        """Whether anything was reported for `model`."""
        return model in self._ratios


_LEAST_RATIO = 0.25
_MOST_RATIO = 4.0
