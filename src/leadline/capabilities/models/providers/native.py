"""What the wire formats other than chat completions share when they write a request."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence

import msgspec

from leadline.capabilities.models.providers.profiles import Profile
from leadline.capabilities.models.providers.provider_json import as_count, as_object, at
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


@dataclasses.dataclass(frozen=True, slots=True)
class Effort:
    """How much reasoning a request asks for."""

    fields: Mapping[str, object]
    """Body fields that say so; none leaves it to the provider."""
    reasons: bool
    """Whether the model will reason, as far as the profile tells."""


def effort_of(config: CallConfig, profile: Profile, most_output: int | None) -> Effort:
    """The effort that may be sent beside an output ceiling, which a budget for thinking has to stay below.

    Half of a ceiling that is too low is left to the answer; where even that is less than the smallest budget, the
    model does not reason.
    """
    name = profile.effort(config.effort)
    if name is None:
        return Effort({}, profile.reasons_by_default)
    fields, reasons = profile.efforts[name], name not in profile.efforts_without_reasoning
    budget = as_count(at(fields, profile.budget_field)) if profile.budget_field else None
    if budget is None or most_output is None or budget < most_output:
        return Effort(fields, reasons)
    if most_output // 2 >= profile.budget_least:
        return Effort(_with(fields, profile.budget_field.split("."), most_output // 2), reasons)
    off = next((one for one in profile.efforts_without_reasoning if one in profile.efforts), None)
    return Effort({} if off is None else profile.efforts[off], off is None and profile.reasons_by_default)


def _with(fields: Mapping[str, object], path: Sequence[str], value: object) -> Mapping[str, object]:
    """`fields` with another value at a path."""
    inner = value if len(path) == 1 else _with(as_object(fields.get(path[0])), path[1:], value)
    return {**fields, path[0]: inner}


def offered(request: LlmRequest, profile: Profile) -> tuple[ToolSchema, ...]:
    """The tools that the provider is told about."""
    return request.tools if profile.tools else ()


def choice_of(request: LlmRequest, profile: Profile, *, reasons: bool) -> str | None:
    """The tool choice that may be sent: ``auto``, ``none``, ``required`` or a name; None: say nothing."""
    choice = request.config.tool_choice
    if choice in (None, "auto", "none"):
        return choice
    refused = profile.forced_tool_choice == "never" or (
        profile.forced_tool_choice == "without_reasoning" and reasons
    )
    return None if refused else choice


def shaped(request: LlmRequest, profile: Profile) -> LlmRequest:
    """``request`` with the form of its answer as a tool that has to be called, where the profile says so."""
    output = request.config.output
    if output is None or profile.structured_output != "tool":
        return request
    config = msgspec.structs.replace(request.config, tool_choice=output.name, output=None)
    if any(tool.name == output.name for tool in request.tools):
        return dataclasses.replace(request, config=config)
    tool = ToolSchema(output.name, output.description, output.schema)
    return dataclasses.replace(request, tools=(*request.tools, tool), config=config)


def form_of(config: CallConfig, profile: Profile) -> tuple[OutputSchema, bool] | None:
    """The form of the answer that the wire can state, and whether with its schema."""
    if config.output is None or profile.structured_output not in ("json_object", "json_schema"):
        return None
    return config.output, profile.structured_output == "json_schema"


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
