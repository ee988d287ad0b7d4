"""What starting costs: heavy libraries are loaded by what uses them, not by `import leadline`."""

from __future__ import annotations

import subprocess
import sys

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
