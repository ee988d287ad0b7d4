"""What starting costs: heavy libraries are loaded by what uses them, not by `import leadline`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HEAVY = (
    "aiohttp",
    "pydantic",
    "typer",
    "trafilatura",
    "pypdfium2",
    "mammoth",
    "lxml",
    "jsonschema",
    "sqlite3",
)


def _loaded(code: str) -> set[str]:
    probe = f"{code}\nimport sys\nprint(*sorted(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert _loaded("import leadline") == set()


def test_the_version_is_told_without_loading_the_commands() -> None:
    code = (
        "import sys; sys.argv = ['leadline', '--version']\nfrom leadline.apps.cli.entry import main\nmain()"
    )
    loaded = _loaded(code)
    assert loaded - {"leadline", "0.1.0"} == set()
    assert "leadline" in loaded, "the version was printed"


def test_the_api_is_loaded_when_it_is_first_named() -> None:
    assert _loaded("import leadline; leadline.Leadline") <= {"pydantic", "sqlite3"}


def _loaded_by(arguments: list[str], home: Path) -> set[str]:
    """Every module that is there when a command has ended."""
    code = (
        f"import atexit, sys; sys.argv = ['leadline', *{arguments!r}]\n"
        "atexit.register(lambda: print('\\n'.join(sys.modules), file=sys.stderr))\n"
        "from leadline.apps.cli.entry import main\nmain()"
    )
    environ = {**os.environ, "LEADLINE_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ
    )
    return set(done.stderr.split("\n"))


def test_listing_what_is_stored_loads_no_agents_and_no_research(tmp_path: Path) -> None:
    loaded = _loaded_by(["sessions", "list"], tmp_path)
    assert "leadline.capabilities.session_index.providers.local" in loaded, "it was listed"
    unused = ("leadline.core.agent", "leadline.core.loop", "leadline.core.prompt", "leadline.research.verify")
    assert sorted(name for name in loaded if name.startswith(unused)) == []
    assert loaded.isdisjoint({"aiohttp", "jsonschema", "leadline.research.engine.engine"})


def test_composing_a_research_program_loads_nothing_that_only_the_end_of_a_run_needs(tmp_path: Path) -> None:
    loaded = _loaded_by(["agent", "hi", "--profile", "research"], tmp_path)
    assert "leadline.research.engine.engine" in loaded, "it was composed"
    late = {"jsonschema", "leadline.research.bundle.write", "leadline.research.report.html"}
    assert loaded & late == set()


_COMPILED = """
import re, sys
from re import _compiler
compiled, made = [], _compiler.compile

def counting(pattern, flags=0):
    frame = sys._getframe(1)
    while frame.f_code.co_filename == re.__file__:
        frame = frame.f_back
    compiled.append(frame.f_globals["__name__"])
    return made(pattern, flags)

_compiler.compile = counting
import leadline.research.engine.plugin, leadline.research.extractive.plugin
print(*(name for name in compiled if name.startswith("leadline.research.")), sep="\\n")
"""


def test_importing_the_engine_and_the_embedded_model_compiles_no_pattern_of_research() -> None:
    done = subprocess.run([sys.executable, "-c", _COMPILED], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"leadline.research.engine.own_reports"}
