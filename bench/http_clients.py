"""Compare HTTP clients for model calls against a loopback server in another process.

    python bench/http_clients.py

Three figures for each client: the gap that the server sees between the end of one reply and the
first byte of the next request (200 streamed tool rounds in a row), the wall time of 100 tasks of
10 requests each at 50 ms latency (0.5 s if the client cost nothing), and what importing the
client costs in time and resident memory. The last row is Leadline's own adapter, all in.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

ROUNDS, TASKS, PER_TASK = 200, 100, 10
BODY = json.dumps(
    {"model": "m", "stream": True, "messages": [{"role": "user", "content": "x" * 20_000}]}
).encode()
HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer k", "User-Agent": "bench"}
REPLY = {"text": "word " * 80, "chunk_chars": 20, "calls": [{"name": "search", "arguments": {"query": "q"}}]}

STATEMENTS = {
    "aiohttp": "import aiohttp",
    "httpx2": "import httpx2",
    "h11": "import h11",
    "adapter": "from leadline.capabilities.models import plugin; import aiohttp",
}
Post = Callable[[], Awaitable[None]]


@contextlib.contextmanager
def server(latency_s: float) -> Generator[str, None, None]:
    """The provider server in another process; its origin."""
    with tempfile.TemporaryDirectory() as folder:
        script, port = Path(folder, "script.json"), Path(folder, "port")
        script.write_text(json.dumps({"replies": [REPLY], "repeat": True, "latency_s": latency_s}))
        command = [sys.executable, "-m", "leadline.testing.provider_server"]
        process = subprocess.Popen([*command, "--script", str(script), "--port-file", str(port)])
        try:
            while not port.exists():
                time.sleep(0.02)
            yield f"http://127.0.0.1:{port.read_text().strip()}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


@contextlib.asynccontextmanager
async def aiohttp_client(origin: str) -> AsyncGenerator[Post, None]:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=True) as session:

        async def post() -> None:
            async with session.post(f"{origin}/v1/chat/completions", data=BODY, headers=HEADERS) as reply:
                async for _ in reply.content.iter_any():
                    pass

        yield post


@contextlib.asynccontextmanager
async def httpx2_client(origin: str) -> AsyncGenerator[Post, None]:
    import httpx2

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx2.AsyncClient(limits=limits, timeout=None) as client:

        async def post() -> None:
            url = f"{origin}/v1/chat/completions"
            async with client.stream("POST", url, content=BODY, headers=HEADERS) as reply:
                async for _ in reply.aiter_raw():
                    pass

        yield post


@contextlib.asynccontextmanager
async def h11_client(origin: str) -> AsyncGenerator[Post, None]:
    import h11

    host, _, port = origin.removeprefix("http://").partition(":")
    idle: list[tuple[Any, Any]] = []

    async def post() -> None:
        stream, state = (
            idle.pop() if idle else (await anyio.connect_tcp(host, int(port)), h11.Connection(h11.CLIENT))
        )
        headers = [*HEADERS.items(), ("Host", f"{host}:{port}"), ("Content-Length", str(len(BODY)))]
        head = state.send(h11.Request(method="POST", target="/v1/chat/completions", headers=headers))
        data = state.send(h11.Data(data=BODY))
        await stream.send(b"".join((head or b"", data or b"", state.send(h11.EndOfMessage()) or b"")))
        while True:
            event = state.next_event()
            if event is h11.NEED_DATA:
                state.receive_data(await stream.receive())
            elif isinstance(event, h11.EndOfMessage):
                break
        state.start_next_cycle()
        idle.append((stream, state))

    try:
        yield post
    finally:
        for stream, _ in idle:
            await stream.aclose()


@contextlib.asynccontextmanager
async def whole_adapter(origin: str) -> AsyncGenerator[Post, None]:
    """Everything Leadline does for a call: encode, hash, send, decode, filter, assemble."""
    from leadline.capabilities.models.providers.calling import Route
    from leadline.capabilities.models.providers.formats import adapter_for
    from leadline.capabilities.models.providers.http import HttpClient
    from leadline.capabilities.models.providers.profiles import build_profile, shipped_profiles
    from leadline.core.clock import Clock
    from leadline.core.llm.assembler import Assembler
    from leadline.core.llm.messages import Conversation, Text, UserMessage
    from leadline.core.llm.request import CHAT, CallConfig, LlmRequest, ModelRef, ToolSchema

    client = HttpClient()
    profile = build_profile("local", shipped_profiles(), {"base_url": f"{origin}/v1"})
    adapter = adapter_for(Route("p", profile, client, Clock(), lambda: "k"))
    tools = (ToolSchema("search", "Find.", {"type": "object"}),)
    conversation = Conversation([UserMessage("u", (Text("x" * 20_000),))])
    request = LlmRequest(CallConfig(ModelRef("p", "m")), CHAT, "", tools, conversation)

    async def post() -> None:
        assembler = Assembler()
        async for event in adapter.prepare(request).stream(idempotency_key="k"):
            assembler.add(event)
        assert assembler.completion().tool_calls

    try:
        yield post
    finally:
        await client.aclose()


CLIENTS = {"adapter": whole_adapter, "aiohttp": aiohttp_client, "httpx2": httpx2_client, "h11": h11_client}


def fetched(url: str) -> list[tuple[float, float, float]]:
    """The server's record: first byte, whole request, end of the reply."""
    with urllib.request.urlopen(url) as reply:
        return json.load(reply)


async def gap_ms(name: str) -> tuple[float, float]:
    """Median and 90th percentile of the gap between two requests, in milliseconds."""
    with server(0.0) as origin:
        async with CLIENTS[name](origin) as post:
            for _ in range(ROUNDS):
                await post()
        times = await anyio.to_thread.run_sync(lambda: fetched(f"{origin}/timings"))
    gaps = sorted(1000 * (later[0] - earlier[2]) for earlier, later in itertools.pairwise(times[20:]))
    return statistics.median(gaps), gaps[int(len(gaps) * 0.9)]


async def fan_out_s(name: str) -> float:
    """Wall time of the concurrent tasks, in seconds."""
    with server(0.05) as origin:
        async with CLIENTS[name](origin) as post:

            async def agent() -> None:
                for _ in range(PER_TASK):
                    await post()

            await post()
            started = time.perf_counter()
            async with anyio.create_task_group() as group:
                for _ in range(TASKS):
                    group.start_soon(agent)
            return time.perf_counter() - started


def import_cost(statement: str) -> tuple[float, float]:
    """Milliseconds and megabytes that an import adds to a Python with anyio loaded; best of five."""
    code = (
        "import anyio, asyncio, msgspec, time\n"
        "def rss():\n"
        "    return int(open('/proc/self/statm').read().split()[1]) * 4096 / 1e6\n"
        f"a, t = rss(), time.perf_counter()\n{statement}\n"
        "print((time.perf_counter() - t) * 1000, rss() - a)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True) for _ in range(5)]
    ms, mb = zip(*(map(float, run.stdout.split()) for run in runs), strict=True)
    return min(ms), min(mb)


def main() -> None:
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cores")
    print(f"{'client':10}{'gap p50 ms':>12}{'gap p90 ms':>12}{'100x10 s':>10}{'import ms':>11}{'RSS MB':>8}")
    for name, statement in STATEMENTS.items():
        middle, high = anyio.run(gap_ms, name)
        fan = min(anyio.run(fan_out_s, name) for _ in range(3))
        ms, mb = import_cost(statement)
        print(f"{name:10}{middle:12.3f}{high:12.3f}{fan:10.3f}{ms:11.0f}{mb:8.1f}")


if __name__ == "__main__":
    main()
