"""What it costs to start the program: time and memory of whole processes, byte code compiled as for a user."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.loopback import provider
from bench.processes import PROGRAM, environment

RUNS = 9
ANSWER = {"text": "Hello."}

BARE = """
import asyncio, aiohttp, json, sys

async def main(url):
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    async with aiohttp.ClientSession() as client, client.post(url, json=body) as reply:
        async for line in reply.content:
            pass

asyncio.run(main(sys.argv[1]))
"""

# A process counts the memory of the one that forked it as its own peak, so that one has to be small.
LAUNCH = """
import resource, subprocess, sys, time
began = time.perf_counter()
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def measure() -> list[dict[str, object]]:
    """The rows of this bar: the best time, and the median of the memory."""
    with tempfile.TemporaryDirectory() as folder, provider([ANSWER]) as origin:
        env = environment(Path(folder))
        agent = [PROGRAM, "agent", "hi", "--model", "local/model", "--base-url", f"{origin}/v1"]
        version, one, bare, python = (
            _measured(command, env)
            for command in (
                [PROGRAM, "--version"],
                agent,
                [sys.executable, "-c", BARE, f"{origin}/v1/chat/completions"],
                [sys.executable, "-c", ""],
            )
        )
    return [
        _row("leadline --version", version[0], "ms", python[0]),
        _row('leadline agent "hi"', one[0], "ms", bare[0]),
        _row('leadline agent "hi", memory', one[1], "MB", bare[1]),
    ]


def _measured(command: Sequence[str | Path], env: Mapping[str, str]) -> tuple[float, float]:
    """Milliseconds and megabytes (10^6 bytes) of the process, after a first run that does not count."""
    runs = [_run(command, env) for _ in range(RUNS + 1)][1:]
    return min(ms for ms, _ in runs), statistics.median(mb for _, mb in runs)


def _run(command: Sequence[str | Path], env: Mapping[str, str]) -> tuple[float, float]:
    launch = [sys.executable, "-I", "-S", "-c", LAUNCH, *command]
    done = subprocess.run(launch, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    took, kilobytes = done.stdout.split()[-2:]
    return float(took) * 1000, float(kilobytes) * 1024 / 1e6


def _row(bar: str, value: float, unit: str, floor: float) -> dict[str, object]:
    return {"bar": bar, "value": value, "unit": unit, "floor": floor, "ratio": value / floor}


if __name__ == "__main__":
    for row in measure():
        print(row)
