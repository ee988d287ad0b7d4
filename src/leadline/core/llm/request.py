"""What one request to a model consists of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from leadline.core.llm.jsonvalue import JsonObject
from leadline.core.llm.messages import Conversation
from leadline.kernel.errors import LeadlineError


class BadModelRef(LeadlineError):
    """A model was named in a form other than ``provider/name``."""


class ModelRef(msgspec.Struct, frozen=True):
    """A model of a provider, written ``provider/name``."""

    provider: str
    model: str

    @classmethod
    def parse(cls, text: str) -> ModelRef:
        """Read ``provider/name``; the name may contain slashes.

        Raises:
            BadModelRef: there is no slash, or nothing before or behind it.
        """
        provider, _, model = text.strip().partition("/")
        if not provider or not model:
            raise BadModelRef(
                f"model {text!r} is not of the form provider/name; write for example deepseek/deepseek-chat"
            )
        return cls(provider, model)

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


class Purpose(msgspec.Struct, frozen=True):
    """Why a request is made; typed by its owner, logged with the request, never sent."""

    name: str
    """For example ``research/planning``."""
    data: Mapping[str, object] = {}
    """The owner's own facts; convert with ``msgspec.convert`` to the owner's type."""


CHAT = Purpose("agent/turn")


class ToolSchema(msgspec.Struct, frozen=True):
    """A tool as the model sees it."""

    name: str
    description: str
    parameters: JsonObject
    """JSON Schema of the arguments."""


class OutputSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """The form that an answer has to have."""

    name: str
    """Letters, digits, dashes and underscores."""
    schema: JsonObject
    """JSON Schema of an object."""
    description: str = ""


class CallConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the model is asked."""

    model: ModelRef
    max_tokens: int | None = None
    """Ceiling on output tokens; None leaves it to the provider."""
    temperature: float | None = None
    effort: str | None = None
    """Reasoning effort in the caller's words; each provider maps it to its own."""
    tool_choice: str | None = None
    """``auto``, ``none``, ``required`` or a tool's name; None leaves it to the provider."""
    output: OutputSchema | None = None
    """What the answer has to be. Said in the strongest way that the profile of the model allows
    (`ModelInfo.structured_output`): as a schema, as "JSON", as a tool that has to be called, or not at all. So
    the prompt has to say it too, and the answer has to be held against it."""


@dataclass(frozen=True, slots=True)
class LlmRequest:
    """One request: a pure function of a session log."""

    config: CallConfig
    purpose: Purpose
    system: str
    tools: tuple[ToolSchema, ...]
    conversation: Conversation
    session: str = ""
    """Id of the session whose log it is made from; part of no body and no digest."""
