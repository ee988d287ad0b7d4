"""`leadline models add|remove|default`: what is written down about models in the home directory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import msgspec

from leadline.apps.cli.exits import Exit, Quit, refusing
from leadline.apps.cli.streams import document, say
from leadline.apps.sdk.models_file import ModelsFile, in_force
from leadline.core.llm.request import ModelRef

if TYPE_CHECKING:
    from leadline.apps.cli.parser import Given
    from leadline.kernel.loader.compose import Composition

Table = dict[str, object]


def run_add(given: Given) -> Exit:
    """Add a model and write down what was said about it.

    Raises:
        Quit: it cannot be configured so; nothing was written.
    """
    with refusing():
        ref = ModelRef.parse(given.model_id or "")
        file = ModelsFile.of()
        config = file.read()
        if given.like is None and given.base_url is None:
            _check_provider(ref.provider)  # else it would be a server at an address that nobody named
        provider = _table(_table(config, "providers"), ref.provider)
        facts: Table = {}
        for key, value in (("context_window", given.context_window), ("max_output", given.max_output)):
            if value is not None:
                facts[key] = value
        if given.no_tools:
            facts["settings"] = {"tools": False}
        _table(provider, "models")[ref.model] = facts
        named = (("profile", given.like), ("base_url", given.base_url), ("api_key_env", given.key_env))
        provider.update({key: value for key, value in named if value is not None})
        if given.as_default:
            config["default"] = str(ref)
        for role in given.model_roles:
            _table(config, "roles")[role] = str(ref)
        composition = file.write(config)
    _tell(given, composition, f"added {ref}", {"added": str(ref)}, config)
    if not given.as_json:
        say(f"leadline: try it: leadline models test {ref}")
    return Exit.DONE


def run_remove(given: Given) -> Exit:
    """Remove a model or a provider, and what names it as default or for a role.

    Raises:
        Quit: it was not added here.
    """
    name = given.model_id or ""
    provider_name, _, model = name.partition("/")
    with refusing():
        file = ModelsFile.of()
        config = file.read()
        providers = _table(config, "providers")
        provider = _table(providers, provider_name) if provider_name in providers else None
        models = _table(provider, "models") if provider is not None else {}
        if provider is None or (model and model not in models):
            raise Quit(
                Exit.USAGE, f"{name!r} was not added with `leadline models add`; see: leadline models list"
            )
        models.pop(model, None)
        if not model or not models:
            providers.pop(provider_name)
        gone = _forget(config, provider_name, model)
        composition = file.write({key: value for key, value in config.items() if value})
    also = f"; nothing names it any more as {', '.join(gone)}" if gone else ""
    _tell(given, composition, f"removed {name}{also}", {"removed": name, "unset": gone}, config)
    return Exit.DONE


def _forget(config: Table, provider: str, model: str) -> list[str]:
    """Take the model out of default and roles; returns where it was."""

    def meant(value: object) -> bool:
        text = str(value)
        return text == f"{provider}/{model}" if model else text.startswith(f"{provider}/")

    gone: list[str] = []
    if meant(config.get("default")):
        del config["default"]
        gone.append("default")
    roles = _table(config, "roles")
    for role in [role for role, value in roles.items() if meant(value)]:
        del roles[role]
        gone.append(role)
    return gone


def run_default(given: Given) -> Exit:
    """Set, unset or tell the default model, or that of a role.

    Raises:
        Quit: the model is not of the form provider/name, or its provider is not there.
    """
    role = given.model_role
    with refusing():
        file = ModelsFile.of()
        config = file.read()
        where = _table(config, "roles") if role else config
        key = role or "default"
        if given.unset:
            where.pop(key, None)
        elif given.model_id:
            ref = ModelRef.parse(given.model_id)
            _check_provider(ref.provider)
            where[key] = str(ref)
        else:
            return _tell_current(given, role)
        composition = file.write({key: value for key, value in config.items() if value})
    _tell(given, composition, "written down", {}, config)
    return Exit.DONE


def _check_provider(name: str) -> None:
    """Refuse a model of a provider that nobody offers."""
    import anyio

    from leadline.apps.cli.running import booted
    from leadline.apps.sdk.app import Leadline
    from leadline.core.llm.adapter import Models

    async def check() -> None:
        async with booted(Leadline(profile="headless")) as app:
            app.ctx.get(Models).adapter(name)

    anyio.run(check)


def _tell_current(given: Given, role: str | None) -> Exit:
    from leadline.apps.sdk.composition import Options, composed

    facts = in_force(composed(Options(profile="headless")))
    roles = cast("Mapping[str, object]", facts.get("roles") or {})
    default = facts.get("default")
    if given.as_json:
        document(
            msgspec.json.encode(
                {"default": default, "roles": {key: one for key, one in roles.items() if one}}
            )
        )
    elif role:
        document(str(roles.get(role) or default))
    else:
        document("\n".join([f"{default}", *(f"{key}: {one}" for key, one in roles.items() if one)]))
    return Exit.DONE


def _tell(
    given: Given, composition: Composition, done: str, facts: Table, written: Mapping[str, object]
) -> None:
    """Say what was done, and where something else goes over it."""
    now = in_force(composition)
    roles = cast("Mapping[str, object]", now.get("roles") or {})
    if given.as_json:
        shown = {key: one for key, one in roles.items() if one}
        document(msgspec.json.encode({**facts, "default": now.get("default"), "roles": shown}))
    else:
        named = "".join(f"; {key}: {one}" for key, one in roles.items() if one)
        document(f"{done}; default model: {now.get('default')}{named}")
    overruled = [
        key
        for key, value in (
            ("default", written.get("default")),
            *cast("Table", written.get("roles") or {}).items(),
        )
        if value and value != (now.get("default") if key == "default" else roles.get(key))
    ]
    for key in overruled:
        say(f"leadline: leadline.yml in the home directory says something else for {key}, and goes over it")


def _table(within: Table, key: str) -> Table:
    """The table at a key; made where there is none."""
    found = within.get(key)
    if not isinstance(found, dict):
        found = within[key] = Table()
    return cast("Table", found)
