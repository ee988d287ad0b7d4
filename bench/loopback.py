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
from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import aiohttp
import msgspec

Timing = tuple[float, float, float | None]

QUESTION = "Work through all the rounds."
CALL = {"name": "look_up", "arguments": {"query": "the same question as before"}}
PARAMETERS = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
TOOL = {
    "type": "function",
    "function": {"name": "look_up", "description": "Looks something up.", "parameters": PARAMETERS},
}
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


async def bare_calls(origin: str, rounds: int) -> None:
    """What the HTTP client alone takes: a body that is ready, a reply that is read and thrown away."""
    body = json.dumps({"model": "model", "stream": True, "tools": [TOOL], "messages": []}).encode()
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession() as client:
        for _ in range(rounds):
            async with client.post(f"{origin}/v1/chat/completions", data=body, headers=headers) as reply:
                await reply.read()


async def bare_rounds(origin: str, rounds: int) -> None:
    """The least that an agent can be: messages as dicts, the whole body encoded anew each round, the
    streamed reply decoded and added up, its calls answered by a function. No log, no checks, no plugins."""
    messages: list[Mapping[str, object]] = [{"role": "user", "content": QUESTION}]
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession() as client:
        for _ in range(rounds):
            body = json.dumps({"model": "model", "stream": True, "tools": [TOOL], "messages": messages})
            text, calls = "", dict[int, dict[str, str]]()
            async with client.post(
                f"{origin}/v1/chat/completions", data=body.encode(), headers=headers
            ) as reply:
                async for line in reply.content:
                    data = line.removeprefix(b"data: ").strip()
                    if not data or data == b"[DONE]":
                        continue
                    for choice in json.loads(data)["choices"]:
                        delta = choice["delta"]
                        text += delta.get("content") or ""
                        for part in delta.get("tool_calls", ()):
                            call = calls.setdefault(part["index"], {"id": "", "name": "", "arguments": ""})
                            call["id"] = part.get("id") or call["id"]
                            call["name"] = part["function"].get("name") or call["name"]
                            call["arguments"] += part["function"].get("arguments") or ""
            messages.append({"role": "assistant", "content": text, "tool_calls": _said(calls.values())})
            messages += [
                {
                    "role": "tool",
                    "tool_call_id": call["id"],
                    "content": found(**json.loads(call["arguments"])),
                }
                for call in calls.values()
            ]


def _said(calls: Iterable[Mapping[str, str]]) -> list[dict[str, object]]:
    return [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": call["arguments"]},
        }
        for call in calls
    ]


def found(query: str) -> str:
    """What the tool of every round does."""
    return f"found {len(query)}"
