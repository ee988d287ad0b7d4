"""Which plugins a program is made of: a shipped profile, the user's own layer, patches and options."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from leadline.core.home import Home
from leadline.core.llm.request import ModelRef
from leadline.kernel.errors import ConfigError, did_you_mean
from leadline.kernel.loader.compose import Composition, Layer, compose
from leadline.kernel.loader.document import Table
from leadline.kernel.loader.patch import all_rows

PROFILES: dict[str, tuple[str, ...]] = {
    "base": ("base",),
    "headless": ("base", "headless"),
    "research": ("base", "headless", "research"),
}
"""The shipped profiles and the layers that each consists of, first to last."""

SHIPPED_LAYERS = ("base", "headless", "research")
"""Every layer that ships, first to last."""

HOME_LAYER = "leadline.yml"
"""Rows and patches of the user's own, in the home directory; applied to every profile."""

MODELS_LAYER = "models.yml"
"""What `leadline models` wrote down, in the home directory; `leadline.yml` goes over it."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a program asks of its composition."""

    profile: str | Path = "research"
    """A shipped profile, or a YAML file of rows that stands alone."""
    patches: Sequence[Path] = ()
    model: str | None = None
    """`provider/name`; the default of requests that name none."""
    base_url: str | None = None
    """Address of an OpenAI-compatible server for the provider of `model`."""
    home: Path | None = None
    """Data directory; None: `LEADLINE_HOME`, else `~/.leadline`."""
    corpus: Sequence[Path] = ()
    """What the tool `deep_research` may search."""


def composed(options: Options, added: Layer | None = None) -> Composition:
    """The composition that the options ask for; `added` takes the place of what `leadline models` wrote down.

    Raises:
        ConfigError: an unknown profile, an unreadable file, or a layer that cannot be used; with file and line.
        BadModelRef: the model is not of the form provider/name.
    """
    composition = compose(_profile(options.profile))
    home = options.home or Home.default().path
    if added is not None:
        composition = _with_own(composition, added)
    elif _is_file(home / MODELS_LAYER):
        composition = _with_own(composition, Layer.read(home / MODELS_LAYER))
    if _is_file(home / HOME_LAYER):
        composition = _with_own(composition, Layer.read(home / HOME_LAYER))
    composition = compose([Layer.read(path) for path in options.patches], composition)
    return compose(_option_layers(options, composition), composition)


def _with_own(composition: Composition, layer: Layer) -> Composition:
    """The user's layer over a profile. It may speak of every shipped row, also of those that this profile lacks."""
    present = {row.id for row in all_rows(composition.rows)}
    lacking = tuple(row for row in compose(_shipped(*SHIPPED_LAYERS)).rows if row.id not in present)
    rows = compose([layer], Composition((*composition.rows, *lacking))).rows
    absent = {row.id for row in lacking}
    return Composition(tuple(row for row in rows if row.id not in absent))


def _profile(profile: str | Path) -> list[Layer]:
    if isinstance(profile, str) and profile in PROFILES:
        return _shipped(*PROFILES[profile])
    path = Path(profile)
    if not _is_file(path):
        raise ConfigError(
            f"there is no profile {str(profile)!r}{did_you_mean(str(profile), PROFILES)}; or name a YAML file"
        )
    return [Layer.read(path)]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _shipped(*names: str) -> list[Layer]:
    folder = files("leadline") / "profiles"
    return [
        Layer(f"profiles/{name}.yml", (folder / f"{name}.yml").read_text(encoding="utf-8")) for name in names
    ]


def _routed_roles(composition: Composition) -> list[str]:
    """The roles to which the composition gives a model of their own."""
    row = next((row for row in all_rows(composition.rows) if row.id == "models"), None)
    roles = row.config.content.get("roles") if row is not None else None
    return list(roles.content) if isinstance(roles, Table) else []


def _option_layers(options: Options, composition: Composition) -> list[Layer]:
    """Options as patches, so that `config show` tells where their values come from."""
    patches: list[dict[str, object]] = []
    if options.model is not None:
        provider = ModelRef.parse(options.model).provider
        models: dict[str, object] = {"default": options.model}
        if routed := _routed_roles(composition):
            models["roles"] = dict.fromkeys(routed)  # a model that was named is asked for everything
        if options.base_url is not None:
            models["providers"] = {provider: {"base_url": options.base_url}}
        patches.append({"id": "models", "merge": models})
    elif options.base_url is not None:
        raise ConfigError("a base URL needs a model to go with it; add --model PROVIDER/NAME")
    if options.home is not None:
        patches.append({"id": "home", "merge": {"path": str(options.home)}})
    if options.corpus:
        corpus = [str(path.absolute()) for path in options.corpus]
        patches.append({"id": "deep_research", "merge": {"corpus": corpus}})
    # JSON is YAML, so a layer made by code is read by the same parser as one that a person wrote.
    return [Layer("options", json.dumps(patches, indent=0))] if patches else []
