"""A whole run whose model takes its time: what the engine adds to the longest chain of calls.

Planner, three units at once with four calls each, writer: six calls stand one behind the other. The
model is a server in another process that answers after a fixed time.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from pathlib import Path

import anyio

from bench.processes import environment
from leadline import Leadline
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.server import ProviderServer, Received

UNIT_QUESTIONS = ("When is the lantern room open?", "Who may climb the tower?", "What does the tour cost?")
LATENCY_S, UNITS, UNIT_CALLS = 0.2, len(UNIT_QUESTIONS), 4
CHAIN_S = (1 + UNIT_CALLS + 1) * LATENCY_S
PROCESSES, WARM_RUNS = 3, 3
QUOTE = "The lantern room is open on the first Sunday of each month."
QUESTION = "When is the lantern room open?"


def answer(request: Received) -> Behaviour:
    """What the model says: it plans, searches, reads, quotes, reports and writes."""
    properties = _structure(request)
    if "units" in properties:
        units = [{"title": asked, "question": asked, "objective": "find"} for asked in UNIT_QUESTIONS]
        return _call("structured_output", {"brief": "the hours", "units": units})
    if "sections" in properties:
        leaf = {"text": QUOTE, "evidence": ["u1.e1"], "label": "finding"}
        section = {"heading": "Answer", "blocks": [{"kind": "paragraph", "sentences": [leaf]}]}
        return _call("structured_output", {"title": "Hours", "sections": [section]})
    answered = [str(message["content"]) for message in request.messages if message["role"] == "tool"]
    if not answered:
        return _call("corpus_search", {"query": "lantern room open"})
    (source, *_) = re.findall(r"d-[0-9a-f]{10}", answered[0])
    if len(answered) == 1:
        return _call("read", {"source": source})
    if len(answered) == 2:
        return _call("record_evidence", {"source": source, "quote": QUOTE, "claim": "It opens on Sundays."})
    return _call("structured_output", {"findings": QUOTE, "unresolved": []})


def _structure(request: Received) -> Mapping[str, object]:
    tools: list[Mapping[str, Mapping[str, object]]] = list(request.body.get("tools") or ())  # type: ignore[call-overload]
    for tool in tools:
        if tool["function"]["name"] == "structured_output":
            parameters: Mapping[str, Mapping[str, object]] = tool["function"]["parameters"]  # type: ignore[assignment]
            return parameters["properties"]
    return {}


def _call(name: str, arguments: Mapping[str, object]) -> Behaviour:
    return Behaviour("tool_call_success", calls=(CallSpec(name, arguments),))


async def _serve(port_file: Path) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async with ProviderServer(answer, latency_s=LATENCY_S) as server:
            port_file.with_suffix(".new").write_text(str(server.port), encoding="utf-8")
            port_file.with_suffix(".new").replace(port_file)
            async for _ in signals:
                return


@contextlib.contextmanager
def _model() -> Generator[str]:
    with tempfile.TemporaryDirectory() as folder:
        port = Path(folder, "port")
        process = subprocess.Popen([sys.executable, "-m", "bench.research_path", "serve", port])
        try:
            while not port.exists():
                time.sleep(0.02)
            yield f"http://127.0.0.1:{port.read_text(encoding='utf-8')}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


async def _runs(origin: str, durability: str) -> list[float]:
    """Seconds of each run of one program: the first finds nothing loaded and no index."""
    took: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        corpus, patch = _prepared(Path(folder), durability)
        app = Leadline(
            model="local/model", base_url=f"{origin}/v1", home=Path(folder, "home"), patches=[patch]
        )
        async with app:
            for _ in range(1 + WARM_RUNS):
                began = time.perf_counter()
                result = await app.research(QUESTION, corpus=[corpus], breadth="broad")
                took.append(time.perf_counter() - began)
                assert result.status == "completed", result.error
                assert result.usage.calls == 2 + UNITS * UNIT_CALLS, result.usage
    return took


def _prepared(folder: Path, durability: str) -> tuple[Path, Path]:
    """A corpus of one file, and a patch that sets the durability."""
    corpus, patch = folder / "corpus", folder / "patch.yml"
    corpus.mkdir()
    corpus.joinpath("hours.md").write_text(f"# Hours\n\n{QUOTE}\n", encoding="utf-8")
    patch.write_text(f"- id: loop\n  config: {{durability: {durability}}}\n", encoding="utf-8")
    return corpus, patch


async def _bare(origin: str) -> list[float]:
    """The same calls with nothing between them."""
    import aiohttp  # not at the top: a program that uses Leadline has not loaded it before

    took: list[float] = []
    async with aiohttp.ClientSession() as client:

        async def calls(count: int) -> None:
            for _ in range(count):
                body = {
                    "stream": True,
                    "messages": [],
                    "tools": [
                        {
                            "function": {
                                "name": "structured_output",
                                "parameters": {"properties": {"units": {}}},
                            }
                        }
                    ],
                }
                async with client.post(f"{origin}/v1/chat/completions", json=body) as reply:
                    await reply.read()

        for _ in range(1 + WARM_RUNS):
            began = time.perf_counter()
            await calls(1)
            async with anyio.create_task_group() as group:
                for _ in range(UNITS):
                    group.start_soon(calls, UNIT_CALLS)
            await calls(1)
            took.append(time.perf_counter() - began)
    return took


def _in_own_process(env: Mapping[str, str], *what: str) -> list[float]:
    with _model() as origin:
        command = [sys.executable, "-m", "bench.research_path", *what, origin]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=env)
    return json.loads(done.stdout.splitlines()[-1])


def measure() -> list[dict[str, object]]:
    """Rows for the first run of a program and for later ones, beside the chain's own time."""
    with tempfile.TemporaryDirectory() as folder:
        env = environment(Path(folder))
        bare = [_in_own_process(env, "bare") for _ in range(2)]
        rows = [_row("the calls alone", min(min(runs[1:]) for runs in bare))]
        for durability in ("written", "synced"):
            found = [_in_own_process(env, "run", durability) for _ in range(PROCESSES)]
            rows.append(_row(f"a run, {durability}", min(min(runs[1:]) for runs in found)))
            rows.append(_row(f"the first run of a program, {durability}", min(runs[0] for runs in found)))
        return rows


def _row(what: str, seconds: float) -> dict[str, object]:
    bar = f"{what}: 1 + {UNITS} x {UNIT_CALLS} + 1 calls at {LATENCY_S * 1000:g} ms"
    return {"bar": bar, "value": seconds, "unit": "s", "floor": CHAIN_S, "ratio": seconds / CHAIN_S}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", port_file]:
            anyio.run(_serve, Path(port_file))
        case ["run", durability, origin]:
            print(json.dumps(anyio.run(_runs, origin, durability)))
        case ["bare", origin]:
            print(json.dumps(anyio.run(_bare, origin)))
        case _:
            for row in measure():
                print(row)
