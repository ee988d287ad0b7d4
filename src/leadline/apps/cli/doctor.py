"""`leadline doctor`: what works here and what is missing, one line each."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path

import anyio

from leadline.apps.cli.exits import Exit, Quit
from leadline.apps.cli.running import booted
from leadline.apps.cli.streams import document
from leadline.apps.sdk.app import Leadline
from leadline.capabilities.models.seam import ModelCatalogue
from leadline.core.home import Home
from leadline.core.llm.adapter import Models
from leadline.core.llm.request import ModelRef
from leadline.version import __version__

_READERS = {
    "pypdfium2": "PDF",
    "mammoth": "DOCX",
    "trafilatura": "HTML",
    "charset_normalizer": "text in legacy encodings",
}
Finding = tuple[bool, str]
"""Whether it is well, and what it is."""


def run_doctor() -> Exit:
    """Print one line a finding; exit code 1 when something that the main job needs is missing."""
    findings = [*_machine(), *_readers(), *anyio.run(_composition)]
    document("\n".join(f"{'ok     ' if good else 'missing'}  {told}" for good, told in findings))
    return Exit.DONE if all(good for good, _ in findings) else Exit.FAILED


def _machine() -> Iterator[Finding]:
    yield True, f"leadline {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    with closing(sqlite3.connect(":memory:")) as database:
        fts5 = any("ENABLE_FTS5" in option for (option,) in database.execute("PRAGMA compile_options"))
    yield fts5, "full-text search in SQLite" + ("" if fts5 else ": install a Python whose SQLite has FTS5")
    home = Home.default().path
    writable = _writable(home)
    yield (
        writable,
        f"data directory {home}" + ("" if writable else ": not writable; set LEADLINE_HOME to one that is"),
    )


def _writable(home: Path) -> bool:
    """Whether `home` can be written, or made where it is not there."""
    try:
        present = next(path for path in (home, *home.parents) if path.exists())
        return present.is_dir() and os.access(present, os.W_OK)
    except OSError:
        return False


def _readers() -> Iterator[Finding]:
    for module, reads in _READERS.items():
        try:
            import_module(module)
        except ImportError as error:
            yield False, f"reading {reads}: {error}; install leadline again"
        else:
            yield True, f"reading {reads}"


async def _composition() -> list[Finding]:
    try:
        async with booted(Leadline()) as app:
            models, catalogue = app.ctx.get(Models), app.ctx.find(ModelCatalogue)
            return [*_models(models, catalogue), *_keys(catalogue)]
    except Quit as refusal:
        return [(False, refusal.message)]


def _models(models: Models, catalogue: ModelCatalogue | None) -> Iterator[Finding]:
    """The default model and those of roles, each with what it lacks."""
    wanted = {"default model": models.default}
    wanted |= {f"model for the role {role}": ref for role, ref in models.roles.items()}
    for what, ref in wanted.items():
        lacks = _lacks(ref, models, catalogue)
        yield lacks is None, f"{what} {ref}" + (f": {lacks}" if lacks else "")
    if models.default.provider not in (catalogue.names if catalogue else ()):
        yield (
            True,
            "no language model is the default: answers are extracted; to add one: "
            "leadline models add PROVIDER/NAME --default",
        )
    yield True, f"model providers {', '.join(models.providers)}; choose one with --model PROVIDER/NAME"


def _lacks(ref: ModelRef, models: Models, catalogue: ModelCatalogue | None) -> str | None:
    """What a model needs and has not, with the next step."""
    facts = catalogue.provider(ref.provider) if catalogue else None
    if facts is None:
        known = ref.provider in models.providers
        return None if known else f"no provider is called {ref.provider}; see: leadline models list --all"
    if not facts.addressed:
        return f"its address is unknown; leadline models add {ref} --base-url URL"
    if facts.key.source == "missing":
        if facts.key.problem:
            return facts.key.problem
        names = " or ".join(facts.key_env)
        return f"no key; leadline login {ref.provider}" + (f", or set {names}" if names else "")
    return None


def _keys(catalogue: ModelCatalogue | None) -> Iterator[Finding]:
    """The keys that are there, by where they come from, and a store that cannot be used."""
    facts = [one for name in catalogue.names if (one := catalogue.provider(name))] if catalogue else []
    there = [
        f"{one.name} ({one.key.variable or one.key.source})"
        for one in facts
        if one.key.source not in ("missing", "none")
    ]
    if there:
        yield True, f"keys for {', '.join(there)}"
    problems = dict.fromkeys(one.key.problem for one in facts if one.key.problem)
    for problem in problems:
        yield False, f"stored keys: {problem}"
