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
from leadline.core.home import Home
from leadline.core.llm.adapter import Models
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
            models = app.ctx.get(Models)
            return [
                (True, f"default model {models.default}"),
                (
                    True,
                    f"model providers {', '.join(models.providers)}; choose one with --model PROVIDER/NAME",
                ),
            ]
    except Quit as refusal:
        return [(False, refusal.message)]
