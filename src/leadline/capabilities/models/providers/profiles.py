"""Profiles: what a provider's wire does differently, as validated data.

The shipped ones are in ``profiles.toml``. Nothing is ever derived from a provider's or a model's
name; a fact that is not in a profile or in the user's configuration is unknown.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Annotated, Literal, Self, TypeAlias, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from leadline.capabilities.models.providers.rate_limits import RateLimitHeaders
from leadline.kernel.errors import ConfigError

ReasoningReplay: TypeAlias = Literal["never", "with_tools", "always", "filler"]
Api: TypeAlias = Literal["openai-chat", "anthropic-messages", "gemini", "openai-responses", "bridge"]
StructuredOutput: TypeAlias = Literal["none", "tool", "json_object", "json_schema"]
FILE = "profiles.toml"


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    return pattern


def _is_a_variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        # The value is not said: whoever mixes the two up has written the key itself there.
        raise ValueError(
            "that is no name of an environment variable, such as WORK_KEY; a key itself is stored with: "
            "leadline login PROVIDER"
        )
    return name


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Variable: TypeAlias = Annotated[str, AfterValidator(_is_a_variable)]
Pattern: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_compiles)]


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
    bridge: str = ""
    """Whose models they are, as any-llm names it, where `api` is `bridge`; blank: the model says it, as
    `PROVIDER/MODEL`, and no key is given to it."""
    base_url: str = ""
    """Where it is reached; blank: it has to be configured."""
    base_url_env: tuple[str, ...] = ()
    """Environment variables that may hold the address; the first that is set counts. Configuration goes before."""
    base_url_suffix: str = ""
    """What belongs behind an address from the environment, where it is not there."""
    path: str = "/chat/completions"
    """What follows ``base_url``. ``{model}`` stands for the model, ``{method}`` for Gemini's method."""
    query: Mapping[str, str] = {}
    """What the address of every request has behind its question mark."""
    key_env: tuple[Variable, ...] = ()
    """Environment variables that may hold the key; the first that is set counts."""
    key_required: bool = True
    key_page: str = ""
    """Where the provider gives out keys."""
    key_header: str = "Authorization"
    """Header that carries the key."""
    key_scheme: str = "Bearer"
    """Word before the key in that header; may be empty."""
    headers: Mapping[str, str] = {}
    """Headers that go with every request; a key does not belong here."""
    discover: bool = False
    """Whether it is a server on one's own machine, which `models list --discover` looks for at ``base_url``."""
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
    """When the model can be made to call a tool: not at all, while it does not reason, or whenever it is asked to."""
    required_word: str = "required"
    """The choice that means that some tool has to be called."""
    named_tool_choice: bool = True
    """Whether one tool can be demanded by name; otherwise some tool is."""
    temperature: bool = True
    """Whether a temperature may be given."""
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
    reasoning_details_field: str = ""
    """Where a reply has reasoning in blocks that go back as they came, to the model that made them; blank: nowhere."""
    efforts: Mapping[str, Mapping[str, object]] = {}
    """Body fields of each effort the provider knows, weakest first."""
    efforts_without_reasoning: tuple[str, ...] = ("off",)
    """Those of ``efforts`` that switch reasoning off."""
    budget_field: str = ""
    """Where, in the fields of an effort, a count of thinking tokens stands that has to be below the output ceiling, as
    dotted path. A ceiling that is too low halves into thinking and answer, or switches reasoning off."""
    budget_least: int = Field(default=1024, gt=0)
    """The smallest such count that the provider takes."""
    effort_aliases: Mapping[str, str] = {}
    """Other words for an effort; an empty value leaves the effort to the provider."""
    stream_end: StreamEnd = StreamEnd()
    finish: FinishWords = FinishWords()
    usage: UsagePlaces = UsagePlaces()
    text_tool_calls: TextToolCalls = TextToolCalls()
    overflow_patterns: tuple[Pattern, ...] = ()
    """Regular expressions of messages that say the window is exceeded. A group `window` is the window that the message
    names."""
    quota_patterns: tuple[Pattern, ...] = ()
    """Regular expressions of codes and messages that say the account is used up."""
    rate_limit_patterns: tuple[Pattern, ...] = ()
    """Regular expressions of codes and messages that ask to slow down, whatever the status; they go before
    ``quota_patterns``."""
    rate_limits: RateLimitHeaders = RateLimitHeaders()
    """Headers that tell how much may still be asked for."""
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
    tried: str | None = None
    """Date on which the profile was tried with the provider itself; None: constructed from what it publishes."""
    models: Mapping[str, Mapping[str, object]] = {}
    """What is different for single models, by their exact name: fields of a profile."""
    extra_body: Mapping[str, object] = {}
    """Body fields that go with every request."""
    idle_timeout_s: float = Field(default=300.0, gt=0)
    """Longest silence while a read is waiting."""
    linger_s: float = Field(default=5.0, gt=0)
    """Longest silence behind the finish reason, where usage and the end mark may still come."""
    total_timeout_s: float = Field(default=3600.0, gt=0)
    """Longest duration of one attempt."""
    connect_timeout_s: float = Field(default=30.0, gt=0)

    @model_validator(mode="after")
    def _efforts_are_known(self) -> Self:
        for word, effort in self.effort_aliases.items():
            if effort and effort not in self.efforts and self.efforts:
                raise ValueError(f"effort_aliases.{word} means {effort!r}, which is not in efforts")
        return self

    def of_model(self, model: str) -> Profile:
        """The profile as it is for one model."""
        own = self.models.get(model)
        if own is None:
            return self
        return Profile.model_validate(_merged(self.model_dump(exclude={"models"}), own))

    def effort(self, asked: str | None) -> str | None:
        """The provider's own effort for ``asked``; None leaves the effort to the provider."""
        if asked is None:
            return None
        word = self.effort_aliases.get(asked, asked)
        return word if word in self.efforts else None


def shipped_profiles() -> dict[str, Mapping[str, object]]:
    """The raw profiles of the package by name, in a dictionary of the caller's own."""
    return dict(_shipped())


@cache
def _shipped() -> Mapping[str, Mapping[str, object]]:
    data = resources.files(__package__ or __name__).joinpath(FILE).read_text(encoding="utf-8")
    return cast("dict[str, Mapping[str, object]]", tomllib.loads(data))


def build_profile(
    name: str,
    raw: Mapping[str, Mapping[str, object]],
    settings: Mapping[str, object] | None = None,
    *,
    at: tuple[str, ...] = (),
) -> Profile:
    """The profile ``name`` of ``raw``, with ``settings`` laid over it.

    Args:
        name: which one.
        raw: all there are, shipped and configured.
        settings: fields to replace.
        at: key of the configuration that asks for it, for messages.

    Raises:
        ConfigError: there is no such profile, or a field is unknown or has a wrong value; names the key.
    """
    merged = _merged(_extended(name, raw, at), settings or {})
    try:
        profile = Profile.model_validate(merged)
    except ValidationError as error:
        raise _refused(name, error, at) from None
    for model in profile.models:
        try:
            profile.of_model(model)
        except ValidationError as error:
            raise _refused(name, error, at, f"models.{model}.") from None
    return profile


def _refused(name: str, error: ValidationError, at: tuple[str, ...], within: str = "") -> ConfigError:
    first = error.errors(include_url=False, include_context=False)[0]
    where = within + ".".join(str(part) for part in first["loc"])
    said = first["msg"].removeprefix("Value error, ")
    key = f"{where}: " if where else ""
    return ConfigError(
        f"model profile {name!r}: {key}{said[:1].lower()}{said[1:]}; see the fields of a profile in docs/models.md",
        key=at,
    )


def _extended(
    name: str, raw: Mapping[str, Mapping[str, object]], at: tuple[str, ...]
) -> Mapping[str, object]:
    found = raw.get(name)
    if found is None:
        raise ConfigError(f"there is no model profile {name!r}; there are: {', '.join(sorted(raw))}", key=at)
    own = {key: value for key, value in found.items() if key != "extends"}
    parent = found.get("extends")
    if parent is None:
        return own
    others = {key: value for key, value in raw.items() if key != name}
    return _merged(_extended(str(parent), others, at), own)


_WHOLE = frozenset({"efforts", "effort_aliases", "extra_body", "models"})
"""Tables that a model or a setting may have to replace as a whole: an empty one empties what is below."""


def _merged(under: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """``over`` laid on ``under``, table by table."""
    out = dict(under)
    for key, value in over.items():
        below = out.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping) and not (key in _WHOLE and not value):
            lower, upper = cast("Mapping[str, object]", below), cast("Mapping[str, object]", value)
            # The fields of one effort belong together: half of them would be another effort.
            value = {**lower, **upper} if key == "efforts" else _merged(lower, upper)
        out[key] = value
    return out
