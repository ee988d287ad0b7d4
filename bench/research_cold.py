"""One question over a folder of real files, by the program in a process of its own, to a verified bundle."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from bench.processes import PROGRAM, environment

QUESTION = "How many days of annual leave do employees have, and how many of them can be carried over?"
RUNS = 3


def measure() -> list[dict[str, object]]:
    """The rows of this bar; none where LEADLINE_DATA does not name a folder that has `company-share`."""
    data = os.environ.get("LEADLINE_DATA", "")
    corpus = Path(data, "company-share")
    if not data or not corpus.is_dir():
        print("research_cold is left out: LEADLINE_DATA does not name a folder that has company-share")
        return []
    with tempfile.TemporaryDirectory() as folder:
        env = environment(Path(folder))
        found = [_run(corpus, Path(folder, f"home-{number}"), env) for number in range(RUNS + 1)][1:]
    files = sum(one.is_file() for one in corpus.rglob("*"))
    asked, whole = min(asked for asked, _ in found), min(sum(both) for both in found)
    bar = f"company-share, {files} files, cold home"
    return [
        {"bar": f"{bar}: question to bundle", "value": asked, "unit": "s", "floor": None, "ratio": None},
        {"bar": f"{bar}: and verified", "value": whole, "unit": "s", "floor": None, "ratio": None},
    ]


def _run(corpus: Path, home: Path, env: Mapping[str, str]) -> tuple[float, float]:
    """Seconds until there is a bundle, and seconds that verifying it takes."""
    own, bundle = {**env, "LEADLINE_HOME": str(home)}, home.with_suffix(".leadline")
    began = time.perf_counter()
    asked = [PROGRAM, "research", QUESTION, "--corpus", corpus, "--bundle", bundle, "--json"]
    done = subprocess.run(asked, env=own, capture_output=True, check=False)
    asked_s = time.perf_counter() - began
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["status"] == "completed", done.stdout.decode()
    began = time.perf_counter()
    subprocess.run([PROGRAM, "verify", bundle], env=own, capture_output=True, check=True)
    return asked_s, time.perf_counter() - began


if __name__ == "__main__":
    for row in measure():
        print(row)
