"""Profiles: what a provider's wire does differently, as validated data.

The shipped ones are in ``profiles.toml``. Nothing is ever derived from a provider's or a model's
name; a fact that is not in a profile or in the user's configuration is unknown.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Annotated, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from leadline.kernel.errors import ConfigError

ReasoningReplay: TypeAlias = Literal["never", "with_tools", "always", "filler"]
Api: TypeAlias = Literal["openai-chat", "anthropic-messages", "gemini", "openai-responses"]
StructuredOutput: TypeAlias = Literal["none", "tool", "json_object", "json_schema"]
Pattern: TypeAlias = Annotated[str, Field(min_length=1)]


class Section(BaseModel):
    """A part of a profile: frozen, and strict about unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class StreamEnd(Section):
    """What counts as a proper end of a stream."""

    done_required: bool = False
    """Whether ``[DONE]`` has to come."""
    finish_required: bool = True
    """Whether a finish reason has to come."""


class FinishWords(Section):
    """The provider's finish reasons by what they mean. A word that is in no list is an error."""

    done: tuple[str, ...] = ("stop", "tool_calls")
    length: tuple[str, ...] = ("length",)
    refused: tuple[str, ...] = ("content_filter",)
    error: tuple[str, ...] = ()


class UsagePlaces(Section):
    """Where the provider puts its token counts: dotted paths, the first that is there counts."""

    paths: tuple[str, ...] = ("usage",)
    """Places of the usage object in a chunk."""
    prompt: str = "prompt_tokens"
    completion: str = "completion_tokens"
    cached: tuple[str, ...] = ()
    """Tokens read from a cache; they are part of ``prompt``."""
    cache_write: tuple[str, ...] = ()
    """Tokens written to a cache; they are part of ``prompt``."""
    cached_in_prompt: bool = True
    """Whether ``prompt`` includes what was read from a cache and written to one."""
    reasoning: tuple[str, ...] = ()
    reasoning_in_output: bool = True
    """Whether ``completion`` includes the reasoning."""


class TextToolCalls(Section):
    """Tool calls that the model writes as text."""

    parse: bool = False
    """Whether such a call is run; otherwise the model is asked once to call the tool."""
    tags: tuple[tuple[str, str], ...] = (("<tool_call>", "</tool_call>"),)
    """Opening and closing tags. A closing tag may be empty."""


class Profile(Section):
    """One kind of provider."""

    api: Api = "openai-chat"
    """The wire format that it speaks."""
    base_url: str
    path: str = "/chat/completions"
    """What follows ``base_url``. ``{model}`` stands for the model, ``{method}`` for Gemini's method."""
    key_env: tuple[str, ...] = ()
    """Environment variables that may hold the key; the first that is set counts."""
    key_required: bool = True
    key_header: str = "Authorization"
    """Header that carries the key."""
    key_scheme: str = "Bearer"
    """Word before the key in that header; may be empty."""
    headers: Mapping[str, str] = {}
    """Headers that go with every request."""
    streaming: bool = True
    include_usage: bool = True
    """Whether the usage of a stream is asked for with ``stream_options``."""
    max_tokens_field: str = "max_tokens"
    max_tokens_default: int | None = Field(default=None, gt=0)
    """Output ceiling that is sent when none is asked for and none is known, where the API demands one."""
    empty_content: Literal["null", "empty", "omit"] = "null"
    """How an assistant message that only calls tools gives its content."""
    tools: bool = True
    forced_tool_choice: Literal["never", "without_reasoning", "always"] = "always"
    reasons_by_default: bool = False
    """Whether the model reasons when no effort is named."""
    structured_output: StructuredOutput = "none"
    cache_markers: tuple[Literal["tools", "system", "conversation"], ...] = ()
    """Ends of prefixes that the provider is asked to cache, where its API wants them marked."""
    cache_marker: Mapping[str, object] = {"type": "ephemeral"}
    """The mark itself."""
    reasoning_replay: ReasoningReplay = "never"
    """Which assistant messages carry their reasoning when they are sent again: none, those with
    tool calls, all that have some, or all, with ``reasoning_filler`` where there is none."""
    reasoning_field: str = "reasoning_content"
    """Where reasoning is written in a request."""
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning")
    """Where reasoning is read in a reply."""
    reasoning_filler: str = " "
    efforts: Mapping[str, Mapping[str, object]] = {}
    """Body fields of each effort the provider knows, weakest first."""
    efforts_without_reasoning: tuple[str, ...] = ("off",)
    """Those of ``efforts`` that switch reasoning off."""
    effort_aliases: Mapping[str, str] = {}
    """Other words for an effort; an empty value leaves the effort to the provider."""
    stream_end: StreamEnd = StreamEnd()
    finish: FinishWords = FinishWords()
    usage: UsagePlaces = UsagePlaces()
    text_tool_calls: TextToolCalls = TextToolCalls()
    overflow_patterns: tuple[Pattern, ...] = ()
    """Regular expressions of messages that say the window is exceeded."""
    quota_patterns: tuple[Pattern, ...] = ()
    """Regular expressions of codes and messages that say the account is used up."""
    auth_patterns: tuple[Pattern, ...] = ()
    """Regular expressions of codes and messages that say the key is not accepted, whatever the status."""
    error_statuses: Mapping[str, int] = {}
    """HTTP statuses of the error codes that come inside a stream, where no status comes with them."""
    context_window: int | None = Field(default=None, gt=0)
    """Tokens; None is unknown."""
    max_output: int | None = Field(default=None, gt=0)
    """Tokens; None is unknown."""
    origin: str = "profile"
    """Where these facts come from."""
    extra_body: Mapping[str, object] = {}
    """Body fields that go with every request."""
    idle_timeout_s: float = Field(default=300.0, gt=0)
    """Longest silence while a read is waiting."""
    linger_s: float = Field(default=5.0, gt=0)
    """Longest silence behind the finish reason, where usage and the end mark may still come."""
    total_timeout_s: float = Field(default=3600.0, gt=0)
    """Longest duration of one attempt."""
    connect_timeout_s: float = Field(default=30.0, gt=0)

    def effort(self, asked: str | None) -> str | None:
        """The provider's own effort for ``asked``; None leaves the effort to the provider."""
        if asked is None:
            return None
        word = self.effort_aliases.get(asked, asked)
        return word if word in self.efforts else None


def shipped_profiles() -> dict[str, Mapping[str, object]]:
    """The raw profiles of the package by name."""
    data = resources.files(__package__ or __name__).joinpath("profiles.toml").read_text(encoding="utf-8")
    return cast("dict[str, Mapping[str, object]]", tomllib.loads(data))


def build_profile(
    name: str, raw: Mapping[str, Mapping[str, object]], settings: Mapping[str, object] | None = None
) -> Profile:
    """The profile ``name`` of ``raw``, with ``settings`` laid over it.

    Raises:
        ConfigError: there is no such profile, or a field is unknown or has a wrong value.
    """
    merged = _merged(_extended(name, raw), settings or {})
    try:
        return Profile.model_validate(merged)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"model profile {name!r}: {where}: {first['msg'].lower()}; see the fields of a profile in the docs"
        ) from None


def _extended(name: str, raw: Mapping[str, Mapping[str, object]]) -> Mapping[str, object]:
    found = raw.get(name)
    if found is None:
        raise ConfigError(f"there is no model profile {name!r}; there are: {', '.join(sorted(raw))}")
    own = {key: value for key, value in found.items() if key != "extends"}
    parent = found.get("extends")
    if parent is None:
        return own
    others = {key: value for key, value in raw.items() if key != name}
    return _merged(_extended(str(parent), others), own)


def _merged(under: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """``over`` laid on ``under``, table by table."""
    out = dict(under)
    for key, value in over.items():
        below = out.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            value = _merged(cast("dict[str, object]", below), cast("dict[str, object]", value))
        out[key] = value
    return out
