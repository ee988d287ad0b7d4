"""Mounts the model providers that a configuration names, beside the shipped ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from leadline.capabilities.models.providers.http import HttpClient
from leadline.capabilities.models.providers.openai_compatible import OpenAiCompatible, Route, profile_info
from leadline.capabilities.models.providers.profiles import Profile, build_profile, shipped_profiles
from leadline.core.clock import Clock
from leadline.core.config import ConfigParser
from leadline.core.llm.adapter import ModelInfo, Models
from leadline.core.llm.request import BadModelRef, ModelRef
from leadline.kernel.context import Context
from leadline.kernel.errors import ConfigError
from leadline.kernel.plugin import Plugin


class ModelConfig(BaseModel):
    """What the user knows about one model; what is left out is taken from the profile."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    context_window: int | None = Field(default=None, gt=0)
    """Tokens that fit the model's window."""
    max_output: int | None = Field(default=None, gt=0)
    """Most tokens the model writes in one answer."""


class ProviderConfig(BaseModel):
    """One provider of models."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    profile: str | None = None
    """Which kind of provider it is: a shipped profile, or one under `profiles`. None: the profile of the
    provider's own name where there is one, else `local`."""
    base_url: str | None = None
    """Where it is reached, up to and without `/chat/completions`."""
    api_key: SecretStr | None = None
    """The key; write `!env NAME` so that it stands in no file."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key, read at each call."""
    models: Mapping[str, ModelConfig] = {}
    """Facts about its models, by name."""
    settings: Mapping[str, object] = {}
    """Fields of the profile to replace."""


_SHIPPED: Mapping[str, ProviderConfig] = {
    "deepseek": ProviderConfig(profile="deepseek"),
    "local": ProviderConfig(profile="local"),
    "openai-compatible": ProviderConfig(profile="local"),
}


class ModelsConfig(BaseModel):
    """Configuration of the row `models`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    default: str | None = None
    """Model of requests that name none, as `provider/name`."""
    providers: Mapping[str, ProviderConfig] = {}
    """Providers by name. One with a shipped name replaces the shipped one."""
    profiles: Mapping[str, Mapping[str, object]] = {}
    """Further profiles by name; `extends` names the one that they refine."""


@dataclass(frozen=True, slots=True)
class _Key:
    """Finds a provider's key when it is needed; shows it to nobody."""

    given: SecretStr | None = field(repr=False)
    names: tuple[str, ...]

    def __call__(self) -> str | None:
        given = self.given.get_secret_value() if self.given is not None else ""
        candidates = (given, *(os.environ.get(name, "") for name in self.names))
        return next((key for key in map(str.strip, candidates) if key), None)


def _profile(name: str, config: ProviderConfig, raw: Mapping[str, Mapping[str, object]]) -> Profile:
    settings = dict(config.settings)
    if config.base_url is not None:
        settings["base_url"] = config.base_url
    if config.api_key_env is not None:
        settings["key_env"] = [config.api_key_env]
    kind = config.profile or (name if name in raw else "local")
    profile = build_profile(kind, raw, settings)
    if not profile.base_url.startswith(("http://", "https://")):
        raise ConfigError(
            f"provider {name!r}: base_url {profile.base_url!r} has to begin with http:// or https://"
        )
    if "@" in profile.base_url:
        raise ConfigError(f"provider {name!r}: base_url holds credentials; give them as api_key_env instead")
    return profile


def _models(config: ProviderConfig, profile: Profile) -> dict[str, ModelInfo]:
    out: dict[str, ModelInfo] = {}
    for name, facts in config.models.items():
        changed = {key: value for key, value in facts.model_dump().items() if value is not None}
        refined = profile.model_copy(update={**changed, "origin": "configuration"})
        out[name] = profile_info(name, refined)
    return out


async def _apply(ctx: Context, config: ModelsConfig) -> None:
    try:
        default = ModelRef.parse(config.default) if config.default else None
    except BadModelRef as error:
        raise ConfigError(f"default: {error}") from None
    raw = {**shipped_profiles(), **config.profiles}
    models, client, clock = Models(default), HttpClient(), ctx.get(Clock)
    ctx.provide(Models, models)
    ctx.defer("model http client", client.aclose)
    for name, provider in {**_SHIPPED, **config.providers}.items():
        profile = _profile(name, provider, raw)
        key = _Key(provider.api_key, profile.key_env)
        route = Route(name, profile, client, clock, key)
        models.register(ctx, OpenAiCompatible(route, _models(provider, profile)))
        if default is not None and default.provider == name:
            client.load()


plugin: Plugin[ModelsConfig] = Plugin(
    "models", _apply, config=ConfigParser(ModelsConfig), needs=(Clock,), provides=(Models,)
)
