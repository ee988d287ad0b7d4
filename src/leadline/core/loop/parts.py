"""What a request is made of, part by part, so that it can be told which one differs."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from leadline.core.llm.wire import CanonicalEncoder, encode_text
from leadline.core.session.events import RequestParts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.core.llm.messages import Conversation
    from leadline.core.session.events import RequestHeader, RequestSent

Part: TypeAlias = Literal["system", "tools", "messages", "parameters", "provider", "effort", "purpose"]
"""`provider`: the model's, or its configuration; `purpose`: its facts, which are on the wire of embedded models alone."""

_DIGITS = 16
_MESSAGES = CanonicalEncoder(b"")


def header_parts(header: RequestHeader) -> RequestParts:
    """The parts that a header gives; those of the messages are still to be filled in."""
    config = header.config
    parameters: list[object] = [config.max_tokens, config.temperature, config.tool_choice]
    if config.output is not None:
        parameters.append(config.output)
    return RequestParts(
        system=_digest(header.system),
        tools=_digest(header.tools),
        parameters=_digest(parameters),
        messages="",
        effort=config.effort,
    )


def request_parts(header: RequestParts, conversation: Conversation) -> RequestParts:
    """The parts of a request, given those of its header; costs the new messages only."""
    return msgspec.structs.replace(header, messages=conversation.digest(_MESSAGES)[:_DIGITS])


def differing(sent: RequestSent, header: RequestHeader, conversation: Conversation) -> Sequence[Part]:
    """The parts in which what the log gives now is not what was sent, as far as the log says what was."""
    found: list[Part] = []
    if str(header.config.model) != sent.model:
        found.append("provider")
    if sent.parts is not None:
        now = request_parts(header_parts(header), conversation)
        if now.system != sent.parts.system:
            found.append("system")
        if now.tools != sent.parts.tools:
            found.append("tools")
        if now.parameters != sent.parts.parameters:
            found.append("parameters")
        if now.effort != sent.parts.effort:
            found.append("effort")
        if now.messages != sent.parts.messages:
            found.append("messages")
    elif len(conversation) != sent.messages:
        found.append("messages")
    return found


def _digest(value: object) -> str:
    return sha256(encode_text(value)).hexdigest()[:_DIGITS]
