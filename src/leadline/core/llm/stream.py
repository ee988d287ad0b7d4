"""The one stream vocabulary: what an adapter yields while a model answers.

A stream is at most one `LimitsReport`, any number of deltas and at most one `UsageReport`, then
exactly one `Finish`.
Expected failure is the `Finish`; only cancellation and defects raise.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from leadline.core.llm.failure import LlmFailure
from leadline.core.llm.limits import RateLimits
from leadline.core.llm.usage import Usage

FinishState: TypeAlias = Literal["done", "length", "refused", "error", "incomplete"]


class TextDelta(msgspec.Struct, frozen=True, tag_field="event", tag="text"):
    """More visible text."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, tag_field="event", tag="reasoning", omit_defaults=True):
    """More reasoning."""

    text: str
    opaque: str | None = None
    """Provider state that completes the block."""


class ToolCallDelta(msgspec.Struct, frozen=True, tag_field="event", tag="tool_call", omit_defaults=True):
    """A fragment of a tool call, with whatever the provider said about where it belongs."""

    index: int | None = None
    """The provider's own index."""
    position: int | None = None
    """Place in the delta's array, when that array held more than one fragment."""
    id: str | None = None
    name: str | None = None
    arguments: str = ""


class UsageReport(msgspec.Struct, frozen=True, tag_field="event", tag="usage"):
    """What the provider says the call cost so far; a later one replaces an earlier one."""

    usage: Usage


class LimitsReport(msgspec.Struct, frozen=True, tag_field="event", tag="limits"):
    """What the head of the response says about rate limits; comes first, and only where it says something.

    Nobody is shown it and no log holds it: it is for those who decide when the next request may go.
    """

    limits: RateLimits


class Finish(msgspec.Struct, frozen=True, tag_field="event", tag="finish", omit_defaults=True):
    """The end of the stream."""

    state: FinishState
    """``done``: ended properly. ``length``: output ceiling. ``refused``: withheld by the provider.
    ``error``: failed. ``incomplete``: cut off before a proper end."""
    failure: LlmFailure | None = None
    """Set for ``error`` and ``incomplete``."""
    detail: str | None = None
    """The provider's own word for the end."""
    leaked_call: bool = False
    """The text ends with a tool call written as text: ask the model once to call the tool."""
    correction: str = ""
    """What the model is told of that call, in words of the adapter that know how it calls tools; blank: the usual."""


StreamEvent: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta | UsageReport | LimitsReport | Finish
