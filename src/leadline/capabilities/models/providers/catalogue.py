"""Makes the adapter of each provider when it is first wanted, and tells what is known of providers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import anyio
from pydantic import SecretStr

from leadline.capabilities.models.keys import KeyStore
from leadline.capabilities.models.providers.http import HttpClient, is_loopback
from leadline.capabilities.models.seam import Found, KeyState, KeyStoreError, ModelCatalogue, ProviderFacts
from leadline.core.clock import Clock
from leadline.core.llm.adapter import LlmAdapter
from leadline.kernel.errors import ConfigError

if TYPE_CHECKING:
    from leadline.capabilities.models.providers.profiles import Profile

SHIPPED = (
    "anthropic",
    "azure",
    "bridge",
    "deepseek",
    "gemini",
    "groq",
    "llamacpp",
    "lmstudio",
    "local",
    "mistral",
    "moonshot",
    "ollama",
    "openai",
    "openai-compatible",
    "openai-responses",
    "openrouter",
    "qwen",
    "together",
    "vllm",
    "xai",
)
"""The providers that are there without configuration; a profile has the name of its provider."""

_PROFILE_OF = {"openai-compatible": "local"}
_ANSWER_LIMIT = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What the configuration says about one provider."""

    name: str
    profile: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    models: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])
    """Fields of the profile that are different for single models."""
    key: SecretStr | None = field(default=None, repr=False)
    configured: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """Finds a provider's key when it is needed: configuration, environment, what was stored. Shows it to nobody."""

    provider: str
    given: SecretStr | None = field(repr=False)
    names: tuple[str, ...]
    required: bool
    store: KeyStore | None = field(default=None, repr=False)

    def __call__(self) -> str | None:
        return self._found()[1]

    def state(self) -> KeyState:
        """Where the key comes from."""
        problem = None
        if self.store is not None:
            try:
                self.store.get(self.provider)
            except KeyStoreError as error:
                problem = str(error)
        where, _, variable = self._found()
        if where is not None:
            return KeyState(source=where, variable=variable)
        return KeyState(source="missing" if self.required else "none", problem=problem)

    def _found(
        self,
    ) -> tuple[Literal["configuration", "environment", "keyring", "file"] | None, str | None, str | None]:
        """Where it is, what it is, and the variable that holds it."""
        given = self.given.get_secret_value().strip() if self.given is not None else ""
        if given:
            return "configuration", given, None
        for name in self.names:
            if key := os.environ.get(name, "").strip():
                return "environment", key, name
        try:
            stored = self.store.get(self.provider) if self.store is not None else None
        except KeyStoreError:
            stored = None  # told by `state` and by the refusal of the call, which names `leadline login`
        if stored is not None:
            return stored.place, stored.key, None
        return None, None, None


class Catalogue(ModelCatalogue):
    """See `ModelCatalogue`."""

    def __init__(
        self,
        setups: Mapping[str, Setup],
        profiles: Mapping[str, Mapping[str, object]],
        clock: Clock,
        home: Path | None,
    ) -> None:
        self._setups = dict(setups)
        self._configured = dict(profiles)
        self._clock = clock
        self._client = HttpClient()
        self._store = KeyStore(home) if home is not None else None
        self._built: dict[str, Profile] = {}

    @classmethod
    def checked(cls, setups: Iterable[Setup], profiles: Mapping[str, Mapping[str, object]]) -> None:
        """Refuse what cannot be used.

        Raises:
            ConfigError: a profile or a provider is wrong; names the key.
        """
        from leadline.capabilities.models.providers.profiles import (  # noqa: PLC0415  needed only where something is configured
            build_profile,
            shipped_profiles,
        )

        raw = {**shipped_profiles(), **profiles}
        for name in profiles:
            build_profile(name, raw, at=("profiles", name))
        for setup in setups:
            _profile_of(setup, raw)

    @property
    def names(self) -> tuple[str, ...]:
        """See `ModelCatalogue.names`."""
        return tuple(sorted(self._setups))

    @property
    def profiles(self) -> tuple[str, ...]:
        """See `ModelCatalogue.profiles`."""
        return tuple(sorted(self._raw()))

    def provider(self, name: str) -> ProviderFacts | None:
        """See `ModelCatalogue.provider`."""
        setup = self._setups.get(name)
        if setup is None:
            return None
        from leadline.capabilities.models.providers.calling import profile_info  # noqa: PLC0415  as above

        profile = self._profile(name)
        return ProviderFacts(
            name=name,
            profile=_kind(setup, self._raw()),
            api=profile.api,
            base_url=profile.base_url,
            key=self._key(name).state(),
            key_env=profile.key_env,
            key_required=profile.key_required,
            key_page=profile.key_page,
            tried=profile.tried,
            configured=setup.configured,
            local=profile.discover,
            models=tuple(profile_info(model, profile.of_model(model)) for model in profile.models),
            added=tuple(setup.models),
        )

    def maker(self, name: str) -> Callable[[], LlmAdapter]:
        """What makes the adapter of a provider."""

        def make() -> LlmAdapter:
            from leadline.capabilities.models.providers.calling import Route  # noqa: PLC0415  as above
            from leadline.capabilities.models.providers.formats import adapter_for  # noqa: PLC0415  as above

            return adapter_for(Route(name, self._profile(name), self._client, self._clock, self._key(name)))

        return make

    def load(self) -> None:
        """Import what calls need; see `HttpClient.load`."""
        self._client.load()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    async def discover(self, timeout_s: float) -> Sequence[Found]:
        """See `ModelCatalogue.discover`."""
        found: list[Found] = []

        async def ask(name: str, base_url: str) -> None:
            found.append(await self._asked(name, base_url, timeout_s))

        async with anyio.create_task_group() as asking:
            for name in self.names:
                profile = self._profile(name)
                if profile.discover and is_loopback(urlsplit(profile.base_url).hostname or ""):
                    asking.start_soon(ask, name, profile.base_url)
        return sorted(found, key=lambda one: one.provider)

    async def _asked(self, name: str, base_url: str, timeout_s: float) -> Found:
        from leadline.capabilities.models.providers.provider_json import (  # noqa: PLC0415
            JsonReader,
            as_list,
            as_object,
            as_text,
        )
        from leadline.core.llm.failure import Wait  # noqa: PLC0415

        with anyio.move_on_after(timeout_s):
            reply = await self._client.get(
                f"{base_url.rstrip('/')}/models", {"Accept": "application/json"}, timeout_s=timeout_s
            )
            if isinstance(reply, Wait):
                return Found(provider=name, base_url=base_url, problem="nothing answers there")
            try:
                body = await reply.read_all(timeout_s, _ANSWER_LIMIT)
            finally:
                reply.close()
            if isinstance(body, Wait) or reply.status != 200:
                return Found(provider=name, base_url=base_url, problem=f"answered with HTTP {reply.status}")
            rows: Sequence[object] = ()
            with suppress(ValueError):
                rows = as_list(as_object(JsonReader().read(body)).get("data"))
            models = tuple(model for row in rows if (model := as_text(as_object(row).get("id"))))
            problem = None if models else "what answers there lists no models"
            return Found(provider=name, base_url=base_url, models=models, problem=problem)
        return Found(provider=name, base_url=base_url, problem=f"did not answer within {timeout_s:g} s")

    def _raw(self) -> Mapping[str, Mapping[str, object]]:
        from leadline.capabilities.models.providers.profiles import shipped_profiles  # noqa: PLC0415  as above

        return {**shipped_profiles(), **self._configured}

    def _profile(self, name: str) -> Profile:
        if name not in self._built:
            self._built[name] = _profile_of(self._setups[name], self._raw())
        return self._built[name]

    def _key(self, name: str) -> Key:
        profile = self._profile(name)
        return Key(name, self._setups[name].key, profile.key_env, profile.key_required, self._store)


def _kind(setup: Setup, raw: Mapping[str, Mapping[str, object]]) -> str:
    known = _PROFILE_OF.get(setup.name, setup.name)
    return setup.profile or (known if known in raw else "local")


def _profile_of(setup: Setup, raw: Mapping[str, Mapping[str, object]]) -> Profile:
    from leadline.capabilities.models.providers.profiles import build_profile  # noqa: PLC0415  see Catalogue.checked

    at = ("providers", setup.name)
    kind = _kind(setup, raw)
    settings = {**setup.settings, "models": setup.models} if setup.models else setup.settings
    profile = build_profile(kind, raw, settings, at=at)
    if "base_url" not in setup.settings and (named := _address(profile)):
        profile = profile.model_copy(update={"base_url": named})
    if profile.base_url and not profile.base_url.startswith(("http://", "https://")):
        raise ConfigError(
            f"provider {setup.name!r}: base_url {profile.base_url!r} has to begin with http:// or https://",
            key=at,
        )
    if "@" in profile.base_url:
        raise ConfigError(
            f"provider {setup.name!r}: base_url holds credentials; give them as api_key_env instead", key=at
        )
    return profile


def _address(profile: Profile) -> str | None:
    """The address that the environment names."""
    for name in profile.base_url_env:
        if value := os.environ.get(name, "").strip().rstrip("/"):
            suffix = profile.base_url_suffix
            return value if not suffix or value.endswith(suffix) else value + suffix
    return None
