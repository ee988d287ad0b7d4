"""`leadline login`: a key from a prompt or from stdin to where only its owner can read it. It is never shown."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import anyio
import msgspec

from leadline.apps.cli.exits import Exit, Quit, refusing
from leadline.apps.cli.running import booted
from leadline.apps.cli.streams import document, say
from leadline.apps.sdk.app import Leadline
from leadline.capabilities.models.keys import KeyStore
from leadline.capabilities.models.seam import ModelCatalogue, ProviderFacts
from leadline.core.home import Home
from leadline.kernel.errors import did_you_mean

if TYPE_CHECKING:
    from leadline.apps.cli.parser import Given

_LONGEST = 10_000


def run_login(given: Given) -> Exit:
    """Store or forget a key.

    Raises:
        Quit: the provider is not there, no key came, or it could not be stored.
    """
    facts, home = anyio.run(_looked_up, given.provider, tuple(given.patch))
    store = KeyStore(home)
    with refusing():
        if given.remove:
            gone = store.remove(facts.name)
            _tell(given, {"provider": facts.name, "removed": gone}, _removed(facts.name, there_was=gone))
            return Exit.DONE
        key = _key_of(facts)
        place = store.put(facts.name, key, cast("Literal['keyring', 'file'] | None", given.store))
    where = "the keyring" if place == "keyring" else str(store.path)
    _tell(given, {"provider": facts.name, "stored": place}, f"the key of {facts.name} is stored in {where}")
    for name in (name for name in facts.key_env if os.environ.get(name, "").strip()):
        say(f"leadline: {name} is set in this environment and goes before the key that was stored")
    return Exit.DONE


async def _looked_up(name: str, patches: tuple[Path, ...]) -> tuple[ProviderFacts, Path]:
    async with booted(Leadline(profile="headless", patches=patches)) as app:
        catalogue = app.ctx.find(ModelCatalogue)
        if catalogue is None:
            raise Quit(Exit.USAGE, "the composition has no row `models`; see: leadline config show")
        facts = catalogue.provider(name)
        if facts is None:
            raise Quit(
                Exit.USAGE,
                f"there is no provider {name!r}{did_you_mean(name, catalogue.names)}; "
                f"to add one: leadline models add {name}/MODEL --base-url URL",
            )
        return facts, app.ctx.get(Home).path


def _key_of(facts: ProviderFacts) -> str:
    """The key, from a prompt that does not show it, or the first line of stdin."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - a process may be started without one
        raise Quit(Exit.USAGE, "there is no stdin to read the key from")
    if sys.stdin.isatty():
        import getpass

        if facts.key_page:
            say(f"Keys are at {facts.key_page}")
        try:
            word = getpass.getpass(f"Key of {facts.name}: ", sys.stderr)
        except EOFError:
            word = ""
    else:
        word = sys.stdin.readline(_LONGEST)
    key = word.strip()
    if not key:
        raise Quit(Exit.USAGE, "no key was given; nothing was stored")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise Quit(
            Exit.USAGE, "this is no key: it has spaces, or characters that no key has; nothing was stored"
        )
    return key


def _removed(name: str, *, there_was: bool) -> str:
    return f"the key of {name} is forgotten" if there_was else f"there was no stored key of {name}"


def _tell(given: Given, facts: dict[str, object], line: str) -> None:
    document(msgspec.json.encode(facts) if given.as_json else line)
