"""The provider server in a process of its own, and a bare client as the floor of what calls cost."""

from __future__ import annotations

import contextlib
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import aiohttp
import msgspec

Timing = tuple[float, float, float | None]
Message = Mapping[str, object]

QUESTION = "Work through all the rounds."
CALL = {"name": "look_up", "arguments": {"query": "the same question as before"}}
ROUND = {"text": "Looking this up. ", "calls": [CALL]}


@contextlib.contextmanager
def provider(replies: Sequence[Mapping[str, object]], *, latency_s: float = 0.0) -> Generator[str]:
    """The origin of a server that plays `replies`, the last one for ever."""
    with tempfile.TemporaryDirectory() as folder:
        script, port = Path(folder, "script.json"), Path(folder, "port")
        script.write_text(json.dumps({"replies": replies, "repeat": True, "latency_s": latency_s}))
        command = [sys.executable, "-m", "leadline.testing.provider_server"]
        process = subprocess.Popen([*command, "--script", str(script), "--port-file", str(port)])
        try:
            while not port.exists():
                time.sleep(0.02)
            yield f"http://127.0.0.1:{port.read_text().strip()}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def timings(origin: str) -> list[Timing]:
    """First byte, last byte and end of reply of each request, as the server saw them, in seconds."""
    with urllib.request.urlopen(f"{origin}/timings", timeout=30) as reply:
        return msgspec.json.decode(reply.read(), type=list[Timing])


def gaps_ms(found: Sequence[Timing]) -> list[float]:
    """From the end of each reply to the first byte of the next request, in milliseconds."""
    return [(later[0] - earlier[2]) * 1000 for earlier, later in pairwise(found) if earlier[2] is not None]


def slope_us(gaps: Sequence[float]) -> float:
    """How much a gap grows with each round, in microseconds: Theil-Sen, which outliers do not move."""
    step = max(1, len(gaps) // 60)
    points = [(at, statistics.median(gaps[at : at + step])) for at in range(0, len(gaps) - step + 1, step)]
    slopes = [(b[1] - a[1]) * 1000 / (b[0] - a[0]) for n, a in enumerate(points) for b in points[n + 1 :]]
    return statistics.median(slopes)


async def bare_rounds(origin: str, rounds: int) -> None:
    """What a loop must do and nothing else: send the growing body, read the reply, append."""
    messages: list[Message] = [{"role": "user", "content": QUESTION}]
    head = b'{"model":"bench","stream":true,"messages":['
    wire = bytearray(head + msgspec.json.encode(messages[0]))
    arguments = json.dumps(CALL["arguments"])
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession() as client:
        for number in range(rounds):
            body = bytes(wire) + b"]}"
            async with client.post(f"{origin}/v1/chat/completions", data=body, headers=headers) as reply:
                async for _ in reply.content.iter_any():
                    pass
            call = {
                "id": f"c{number}",
                "type": "function",
                "function": {"name": "look_up", "arguments": arguments},
            }
            wire += b"," + msgspec.json.encode(
                {"role": "assistant", "content": ROUND["text"], "tool_calls": [call]}
            )
            wire += b"," + msgspec.json.encode(
                {"role": "tool", "tool_call_id": f"c{number}", "content": "found"}
            )


def best_of(runs: int, measured: Callable[[], float]) -> float:
    """The smallest of several measurements: what the machine's other work disturbs least."""
    return min(measured() for _ in range(runs))
