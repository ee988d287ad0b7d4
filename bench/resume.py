"""What it takes to go on with a run of 200 tool calls: from starting the program to its first new model call."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal

from bench.processes import PROGRAM, environment
from bench.research_path import QUESTION, QUOTE
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.server import ProviderServer, Received

UNITS, CALLS = 2, 100
RUNS = 7
PATCH = f"- id: research\n  merge: {{source_calls: {2 * CALLS}, max_steps: {2 * CALLS}}}\n"
TEXT = f"# Opening hours\n\n{QUOTE}\n\n" + "The lighthouse stands on a rock in front of the harbour.\n" * 20


class Researcher:
    """Two units of a hundred tool calls each; the last one of the second unit, or the writer, never answers."""

    def __init__(self, stalls_in: str) -> None:
        self.stalls_in = stalls_in
        self.stalled = threading.Event()
        self.asked_at: list[float] = []

    def __call__(self, request: Received) -> Behaviour:
        self.asked_at.append(request.received_at)
        properties = _handed_in(request)
        if "units" in properties:
            units = [
                {"title": f"t{n}", "question": f"{QUESTION} {n}", "objective": "o"} for n in range(UNITS)
            ]
            return _call("structured_output", {"brief": "b", "units": units})
        if "sections" in properties:
            return self._stall()
        return self._unit(request)

    def _unit(self, request: Received) -> Behaviour:
        answered = [str(message["content"]) for message in request.messages if message["role"] == "tool"]
        if not answered:
            return _call("corpus_search", {"query": "lantern room open"})
        source = re.findall(r"d-[0-9a-f]{10}", answered[0])[0]
        if len(answered) == CALLS - 2:
            return _call("record_evidence", {"source": source, "quote": QUOTE, "claim": "On Sundays."})
        if len(answered) < CALLS - 1:
            return _call("read", {"source": source, "start": len(answered), "limit": 400})
        if self.stalls_in == "unit":
            return self._stall()
        return _call("structured_output", {"findings": QUOTE, "unresolved": []})

    def _stall(self) -> Behaviour:
        self.stalled.set()
        return Behaviour("stall")


def _handed_in(request: Received) -> Mapping[str, object]:
    """What the schema of `structured_output` asks for."""
    tools: Any = request.body.get("tools") or ()
    named: dict[str, Any] = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
    return named["structured_output"]["properties"]


def _call(name: str, arguments: Mapping[str, object]) -> Behaviour:
    return Behaviour("tool_call_success", calls=(CallSpec(name, arguments),))


def measure() -> list[dict[str, object]]:
    """The best of several processes, beside `leadline --version`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = environment(folder)
        (folder / "patch.yml").write_text(PATCH)
        (folder / "corpus").mkdir()
        (folder / "corpus" / "hours.md").write_text(TEXT)
        floor = min(_version(env) for _ in range(RUNS))
        written = [_resumed(folder, env, where) for where in ("writer", "unit")]
    return [
        {
            "bar": f"resume of a run with {UNITS * CALLS} tool calls, cut in the {where}, to its first model call",
            "value": took,
            "unit": "ms",
            "floor": floor,
            "ratio": took / floor,
        }
        for where, took in zip(("writer", "units"), written, strict=True)
    ]


def _version(env: Mapping[str, str]) -> float:
    began = time.monotonic()
    subprocess.run([PROGRAM, "--version"], env=env, stdout=subprocess.DEVNULL, check=True)
    return (time.monotonic() - began) * 1000


def _resumed(folder: Path, env: Mapping[str, str], where: str) -> float:
    home = Path(env["LEADLINE_HOME"])
    shutil.rmtree(home, ignore_errors=True)
    with _provider(Researcher(where)) as (researcher, model):
        process = subprocess.Popen(
            [
                PROGRAM,
                "research",
                QUESTION,
                "--corpus",
                folder / "corpus",
                "--patch",
                folder / "patch.yml",
                *model,
            ],
            env=env,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        assert researcher.stalled.wait(120), "the run did not get that far"
        time.sleep(0.3)
        process.kill()
        told = process.communicate()[1]
        run = re.findall(r"^run (\S+?):? ", told, re.M)[0]
        cut = shutil.copytree(home, folder / f"cut-{where}")
        return min(_first_call(folder, env, home, cut, run, researcher, model) for _ in range(RUNS))


def _first_call(
    folder: Path,
    env: Mapping[str, str],
    home: Path,
    cut: Path,
    run: str,
    researcher: Researcher,
    model: list[str],
) -> float:
    shutil.rmtree(home)
    shutil.copytree(cut, home)
    researcher.stalled.clear()
    asked = len(researcher.asked_at)
    began = time.monotonic()
    process = subprocess.Popen(
        [PROGRAM, "resume", run, "--patch", folder / "patch.yml", *model],
        env=env,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    assert researcher.stalled.wait(60)
    process.kill()
    process.wait()
    return (researcher.asked_at[asked] - began) * 1000


@contextmanager
def _provider(researcher: Researcher) -> Generator[tuple[Researcher, list[str]]]:
    """A provider on loopback in a thread of its own, with the options that choose it."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(ProviderServer(researcher)) as server,
    ):
        yield researcher, ["--model", "local/fake", "--base-url", server.base_url]


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
