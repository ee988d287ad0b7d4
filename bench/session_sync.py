"""What it costs that sessions survive a power cut, beside what the disk itself takes to promise it.

Run it: `python -m bench session_sync`. Delays are those of the loop of agents between a reply and the next request
(`agent_loop` has their medians), here with their tail.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.lowlevel

from bench.agent_loop import SHORT, Durability, agent_rounds
from bench.loopback import ROUND, bare_rounds, gaps_ms, provider, timings
from bench.session_append import turn
from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.core.clock import Clock
from leadline.core.session.codec import Header
from leadline.core.session.registry import EventTypes

SESSIONS, TURNS, RUNS = 100, 20, 5
LINE = b"x" * 400


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def _disk_ms(root: Path) -> list[float]:
    """What the disk takes to keep one more line, with nothing else between."""
    fd = os.open(root / "disk", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    took: list[float] = []
    try:
        for _ in range(SHORT):
            os.write(fd, LINE)
            began = time.perf_counter()
            os.fdatasync(fd)
            took.append((time.perf_counter() - began) * 1000)
    finally:
        os.close(fd)
    return took


def _rounds_ms(durability: Durability | None) -> list[float]:
    """From each reply to the next request, of the run with the best median; None is a loop of 30 lines."""

    def once() -> list[float]:
        with provider([ROUND]) as origin:
            if durability is None:
                anyio.run(bare_rounds, origin, SHORT)
            else:
                anyio.run(agent_rounds, origin, SHORT, durability)
            return gaps_ms(timings(origin))

    return min((once() for _ in range(RUNS)), key=lambda gaps: _quantile(gaps, 0.5))


async def _many(root: Path, *, synced: bool) -> float:
    """Seconds in which many sessions at once have their turns, each synced at its end or not at all."""
    store = JsonlSessions(root, clock=Clock(), types=EventTypes())
    headers = [Header(id=f"s-{number}", kind="agent", created=0.0) for number in range(SESSIONS)]
    sessions = [await store.create(header) for header in headers]

    async def one(at: int) -> None:
        for number in range(1, TURNS + 1):
            for event in turn(number):
                sessions[at].append(event)
            if synced:
                await sessions[at].sync()
            await anyio.lowlevel.checkpoint()

    began = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for at in range(SESSIONS):
            tasks.start_soon(one, at)
    took = time.perf_counter() - began
    await store.close()
    return took


def _crowd(*, synced: bool) -> float:
    def once() -> float:
        with tempfile.TemporaryDirectory() as folder:
            return anyio.run(lambda: _many(Path(folder), synced=synced))

    return min(once() for _ in range(RUNS))


def measure() -> list[dict[str, object]]:
    """The rows of this bar."""
    with tempfile.TemporaryDirectory() as folder:
        disk = _disk_ms(Path(folder))
    least, written, synced = _rounds_ms(None), _rounds_ms("written"), _rounds_ms("synced")
    rows: list[dict[str, object]] = []
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        bare, kept = _quantile(least, share), _quantile(disk, share)
        rows += [
            _row(f"fdatasync of one line, {name}", kept, "ms", None),
            _row(f"reply to next request, written, {name}, over a loop of 30 lines", _quantile(written, share), "ms", bare),
            _row(f"reply to next request, synced, {name}, over that loop and one fdatasync", _quantile(synced, share), "ms", bare + kept),
        ]  # fmt: skip
    many = f"{SESSIONS} sessions at once, {TURNS} turns of 8 events each"
    both = _crowd(synced=True), _crowd(synced=False)
    return [*rows, _row(f"{many}, each turn synced, over written (bar 3)", both[0], "s", both[1])]


def _row(bar: str, value: float, unit: str, floor: float | None) -> dict[str, object]:
    return {
        "bar": bar,
        "value": value,
        "unit": unit,
        "floor": floor,
        "ratio": value / floor if floor else None,
    }


if __name__ == "__main__":
    for row in measure():
        print(row)
