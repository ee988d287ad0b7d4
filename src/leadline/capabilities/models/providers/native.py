"""What the wire formats other than chat completions share when they write a request."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping

import msgspec

from leadline.capabilities.models.providers.lookup import as_object
from leadline.capabilities.models.providers.profiles import Profile
from leadline.core.llm.adapter import ModelInfo
from leadline.core.llm.messages import Reasoning, Text, UserMessage
from leadline.core.llm.request import CallConfig, LlmRequest, OutputSchema, ToolSchema
from leadline.core.llm.wire import placeholder

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_ID = 64
NO_OUTPUT = "(no output)"


def producer_of(config: CallConfig, profile: Profile) -> str | None:
    """Whose provider state is sent back: that of the model that is asked; None: nobody's."""
    return None if profile.reasoning_replay == "never" else str(config.model)


def reasons(config: CallConfig, profile: Profile) -> bool:
    """Whether the model will reason, as far as the profile tells."""
    effort = profile.effort(config.effort)
    return profile.reasons_by_default if effort is None else effort not in profile.efforts_without_reasoning


def offered(request: LlmRequest, profile: Profile) -> tuple[ToolSchema, ...]:
    """The tools that the provider is told about."""
    return request.tools if profile.tools else ()


def choice_of(request: LlmRequest, profile: Profile) -> str | None:
    """The tool choice that may be sent: ``auto``, ``none``, ``required`` or a name; None: say nothing."""
    choice = request.config.tool_choice
    if choice in (None, "auto", "none"):
        return choice
    refused = profile.forced_tool_choice == "never" or (
        profile.forced_tool_choice == "without_reasoning" and reasons(request.config, profile)
    )
    return None if refused else choice


def shaped(request: LlmRequest, profile: Profile) -> LlmRequest:
    """``request`` with the form of its answer as a tool that has to be called, where the profile says so."""
    output = request.config.output
    if output is None or profile.structured_output != "tool":
        return request
    tool = ToolSchema(output.name, output.description, output.schema)
    config = msgspec.structs.replace(request.config, tool_choice=output.name, output=None)
    return dataclasses.replace(request, tools=(*request.tools, tool), config=config)


def form_of(config: CallConfig, profile: Profile) -> tuple[OutputSchema, bool] | None:
    """The form of the answer that the wire can state, and whether with its schema."""
    if config.output is None or profile.structured_output not in ("json_object", "json_schema"):
        return None
    return config.output, profile.structured_output == "json_schema"


def effort_fields(config: CallConfig, profile: Profile) -> Mapping[str, object]:
    """Body fields of the effort that is asked for."""
    effort = profile.effort(config.effort)
    return {} if effort is None else profile.efforts[effort]


def ceiling(config: CallConfig, profile: Profile, info: ModelInfo) -> int | None:
    """The output ceiling where one has to be sent: what is asked for, else what is known, else the default."""
    return config.max_tokens or info.max_output or profile.max_tokens_default


def spoken(message: UserMessage) -> str:
    """The words of a message to the model; blank ones are left out."""
    parts = (part.text if isinstance(part, Text) else placeholder(part) for part in message.content)
    return "\n\n".join(part for part in parts if part.strip())


def state_of(part: Reasoning, producer: str | None) -> Mapping[str, object]:
    """The provider state in ``part`` as an object; empty where it belongs to another model or is none."""
    if part.opaque is None or part.producer != producer:
        return {}
    try:
        return as_object(msgspec.json.decode(part.opaque))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}


def object_of(arguments: str) -> object:
    """Arguments of a call where the wire wants an object: as received if they are one, else wrapped."""
    try:
        if isinstance(msgspec.json.decode(arguments), dict):
            return msgspec.Raw(arguments.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    return {"unparsed": arguments}


def safe_id(text: str) -> str:
    """An id or name in the letters that every provider takes; distinct ones stay distinct."""
    if text and len(text) <= _LONGEST_ID and not _UNSAFE.search(text):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{_UNSAFE.sub('_', text)[: _LONGEST_ID - 9]}_{digest}"
