"""`leadline doctor`: what works here and what is missing, one line each."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Iterator
from importlib import import_module

import anyio

from leadline.version import __version__
from leadline.apps.cli.exits import Exit, document, leave
from leadline.apps.sdk.app import Leadline
from leadline.core.home import Home
from leadline.core.llm.adapter import Models
from leadline.kernel.errors import LeadlineError

_READERS = {
    "pypdfium2": "PDF",
    "mammoth": "DOCX",
    "trafilatura": "HTML",
    "charset_normalizer": "text in legacy encodings",
}


def run_doctor() -> None:
    """Print one line a finding; exit 1 when something that the main job needs is missing."""
    findings = [*_machine(), *_readers(), *anyio.run(_composition)]
    document("\n".join(f"{'ok     ' if good else 'missing'}  {told}" for good, told in findings))
    leave(Exit.DONE if all(good for good, _ in findings) else Exit.FAILED)


def _machine() -> Iterator[tuple[bool, str]]:
    yield True, f"leadline {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    with sqlite3.connect(":memory:") as database:
        fts5 = any("ENABLE_FTS5" in option for (option,) in database.execute("PRAGMA compile_options"))
    database.close()
    yield (
        fts5,
        "full-text search in SQLite" if fts5 else "SQLite without FTS5: install a Python whose SQLite has it",
    )
    home = Home.default().path
    writable = os.access(home if home.exists() else home.parent, os.W_OK)
    yield (
        writable,
        f"data directory {home}" + ("" if writable else ": not writable; set LEADLINE_HOME to one that is"),
    )


def _readers() -> Iterator[tuple[bool, str]]:
    for module, reads in _READERS.items():
        try:
            import_module(module)
        except ImportError as error:
            yield False, f"reading {reads}: {error}; reinstall leadline"
        else:
            yield True, f"reading {reads}"


async def _composition() -> list[tuple[bool, str]]:
    try:
        async with Leadline() as app:
            models = app.ctx.get(Models)
            default = models.default
            return [
                (True, f"default model {default}"),
                (
                    True,
                    f"model providers {', '.join(models.providers)}; choose one with --model PROVIDER/NAME",
                ),
            ]
    except LeadlineError as error:
        return [(False, f"the composition does not start: {error}")]
