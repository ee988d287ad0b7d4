"""Mounts the model providers that a configuration names, beside the shipped ones."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from leadline.capabilities.models.providers.catalogue import SHIPPED, Catalogue, Setup
from leadline.capabilities.models.seam import ModelCatalogue
from leadline.core.clock import Clock
from leadline.core.config import ConfigParser
from leadline.core.home import Home
from leadline.core.llm.adapter import MODEL_ROLES, ModelRole, Models
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
    settings: Mapping[str, object] = {}
    """Fields of the profile to replace for this model."""


class ProviderConfig(BaseModel):
    """One provider of models."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    profile: str | None = None
    """Which kind of provider it is: a shipped profile, or one under `profiles`. None: the profile of the
    provider's own name where there is one, else `local`."""
    base_url: str | None = None
    """Where it is reached, up to and without `/chat/completions`."""
    api_key: SecretStr | None = None
    """The key; write `!env NAME` so that it stands in no file. It goes before every other place of a key."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key, read at each call. None: those of the profile. Where no
    variable is set, the key that `leadline login` stored. Where it is given, nothing is sent without a key, unless
    `settings` say `key_required: false`."""
    models: Mapping[str, ModelConfig] = {}
    """Facts about its models, by name."""
    settings: Mapping[str, object] = {}
    """Fields of the profile to replace."""


class RoleModels(BaseModel):
    """Which model does which kind of work; None: the default model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fast: str | None = None
    """For small things of which there are many, such as titles; as `provider/name`."""
    standard: str | None = None
    """For reading and searching: the researchers of a run; as `provider/name`."""
    strong: str | None = None
    """For thinking and writing: planner and writer of a run; as `provider/name`."""
    review: str | None = None
    """For judging what another model wrote; as `provider/name`."""


class ModelsConfig(BaseModel):
    """Configuration of the row `models`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    default: str | None = None
    """Model of requests that name none, as `provider/name`."""
    roles: RoleModels = RoleModels()
    """Models for single roles; what is not set is done by `default`."""
    providers: Mapping[str, ProviderConfig] = {}
    """Providers by name. One with a shipped name replaces the shipped one."""
    profiles: Mapping[str, Mapping[str, object]] = {}
    """Further profiles by name; `extends` names the one that they refine."""


def _setup(name: str, config: ProviderConfig) -> Setup:
    settings = dict(config.settings)
    if config.base_url is not None:
        settings["base_url"] = config.base_url
    if config.api_key_env is not None:
        settings["key_env"] = [config.api_key_env]
        settings.setdefault("key_required", True)
    models: dict[str, Mapping[str, object]] = {}
    for model, facts in config.models.items():
        told = {
            key: value for key, value in facts.model_dump(exclude={"settings"}).items() if value is not None
        }
        origin = {"origin": "configuration"} if told or facts.settings else {}
        models[model] = {**origin, **facts.settings, **told}
    return Setup(
        name=name,
        profile=config.profile,
        settings=settings,
        models=models,
        key=config.api_key,
        configured=True,
    )


def _ref(text: str, key: tuple[str, ...]) -> ModelRef:
    try:
        return ModelRef.parse(text)
    except BadModelRef as error:
        raise ConfigError(f"{'.'.join(key)}: {error}", key=key) from None


def _roles(config: RoleModels) -> dict[ModelRole, ModelRef]:
    found: dict[ModelRole, ModelRef] = {}
    for role in MODEL_ROLES:
        if model := getattr(config, role):
            found[role] = _ref(model, ("roles", role))
    return found


class _Parser(ConfigParser[ModelsConfig]):
    """Also refuses profiles that cannot be used, so that the loader says where they were written."""

    def __call__(self, raw: Mapping[str, object]) -> ModelsConfig:
        config = super().__call__(raw)
        if config.default:
            _ref(config.default, ("default",))
        _roles(config.roles)
        if config.providers or config.profiles:
            Catalogue.checked(
                [_setup(name, provider) for name, provider in config.providers.items()], config.profiles
            )
        return config


async def _apply(ctx: Context, config: ModelsConfig) -> None:
    default = _ref(config.default, ("default",)) if config.default else None
    roles = _roles(config.roles)
    home = ctx.find(Home)
    setups = {name: Setup(name=name) for name in SHIPPED}
    setups |= {name: _setup(name, provider) for name, provider in config.providers.items()}
    catalogue = Catalogue(setups, config.profiles, ctx.get(Clock), home.path if home else None)
    models = Models(default, roles)
    ctx.provide(Models, models)
    ctx.provide(ModelCatalogue, catalogue)
    ctx.defer("model http client", catalogue.aclose)
    for name in setups:
        models.offer(ctx, name, catalogue.maker(name))
    if any(ref.provider in setups for ref in (default, *roles.values()) if ref is not None):
        catalogue.load()


plugin: Plugin[ModelsConfig] = Plugin(
    "models",
    _apply,
    config=_Parser(ModelsConfig),
    needs=(Clock,),
    wants=(Home,),
    provides=(Models, ModelCatalogue),
)
