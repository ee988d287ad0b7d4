"""The examples of the documentation run as they are printed, offline, and give what they say they give.

A block is run when the line above it is `<!-- run -->`. The blocks of a page run in order in one folder, beside
the examples. In a console block a line that begins with `$ ` is a command, and what follows is its output, in
which `…` stands for anything.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^<!-- run -->\n```(\w+)\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Step:
    """One command and the output that the page shows for it."""

    words: list[str]
    shown: str


def steps(page: Path) -> list[Step]:
    found: list[Step] = []
    for kind, body in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            found.append(Step([sys.executable, "-W", "error", "-c", body], ""))
            continue
        assert kind == "console", f"{page.name}: a block of {kind} cannot be run"
        for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
            command, _, shown = part.partition("\n")
            found.append(Step(["bash", "-euo", "pipefail", "-c", command], shown))
    return found


def pattern(shown: str) -> str:
    return re.escape(shown.strip()).replace("…", ".*")


RUNNABLE = [page for page in PAGES if steps(page)]


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_the_examples_of_a_page_run_as_they_are_printed(page: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "LEADLINE_HOME": str(tmp_path / "home"),
    }
    for step in steps(page):
        done = subprocess.run(
            step.words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{step.words[-1]}\n{done.stderr}"
        if step.shown:
            assert re.fullmatch(pattern(step.shown), done.stdout.strip(), re.S), done.stdout


def test_there_are_examples_to_run() -> None:
    assert [page.name for page in RUNNABLE] == ["README.md", "api.md", "cli.md", "plugins.md", "replay.md"]
