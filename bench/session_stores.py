"""What sessions in one database cost beside sessions in files: appends, syncs, loads, lists.

Run it: `python -m bench session_stores`. Values are those of the database, floors those of the files in the same run.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import TypeAlias

import anyio
import anyio.lowlevel

from bench.session_append import turn
from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.capabilities.persistence.providers.sqlite import SqliteSessions
from leadline.core.clock import Clock
from leadline.core.session.codec import Header
from leadline.core.session.registry import EventTypes

ROUNDS, TURNS, SYNCS, LISTED = 3, 500, 200, 1000
CROWD, CROWD_TURNS = 100, 20
_ROLLBACK = "27 1 0:40 / / rw - nfs4 server:/home rw,vers=4.2,local_lock=none"

Store: TypeAlias = JsonlSessions | SqliteSessions
Make: TypeAlias = Callable[[Path], Store]
Work: TypeAlias = Callable[[Store], Awaitable[float]]


def _files(root: Path) -> Store:
    return JsonlSessions(root, clock=Clock(), types=EventTypes())


def _database(root: Path) -> Store:
    return SqliteSessions(root / "s.sqlite", clock=Clock(), types=EventTypes())


def _careful(root: Path) -> Store:
    """As on a network mount: each append is synced by itself."""
    return SqliteSessions(root / "s.sqlite", clock=Clock(), types=EventTypes(), table=lambda: _ROLLBACK)


def _header(number: int = 0) -> Header:
    return Header(id=f"s-{number}", kind="agent", created=0.0)


async def _append(store: Store) -> float:
    """Microseconds an event, one after the other."""
    session = await store.create(_header())
    events = [event for number in range(1, TURNS + 1) for event in turn(number)]
    began = time.perf_counter()
    for event in events:
        session.append(event)
    return (time.perf_counter() - began) / len(events) * 1e6


async def _sync(store: Store) -> float:
    """Milliseconds until one event more survives a power cut, the median."""
    session = await store.create(_header())
    took: list[float] = []
    for number in range(1, SYNCS + 1):
        session.append_all(turn(number)[:-1])
        began = time.perf_counter()
        session.append_all(turn(number)[-1:])
        await session.sync()
        took.append((time.perf_counter() - began) * 1e3)
    return median(took)


async def _load(store: Store) -> float:
    """Milliseconds for the events of `TURNS` turns."""
    session = await store.create(_header())
    for number in range(1, TURNS + 1):
        session.append_all(turn(number))
    await session.close()
    began = time.perf_counter()
    read = await store.read("s-0")
    took = (time.perf_counter() - began) * 1e3
    assert len(read) == TURNS * 8 and not read.problems
    return took


async def _list(store: Store) -> float:
    """Milliseconds for `LISTED` sessions."""
    for number in range(LISTED):
        session = await store.create(_header(number))
        session.append_all(turn(1))
        await session.close()
    began = time.perf_counter()
    found = await store.list()
    took = (time.perf_counter() - began) * 1e3
    assert len(found) == LISTED
    return took


def _crowd(*, synced: bool) -> Work:
    """Seconds in which many sessions at once have their turns."""

    async def work(store: Store) -> float:
        sessions = [await store.create(_header(number)) for number in range(CROWD)]

        async def one(at: int) -> None:
            for number in range(1, CROWD_TURNS + 1):
                for event in turn(number):
                    sessions[at].append(event)
                if synced:
                    await sessions[at].sync()
                await anyio.lowlevel.checkpoint()

        began = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for at in range(CROWD):
                tasks.start_soon(one, at)
        return time.perf_counter() - began

    return work


def _best(make: Make, work: Work) -> float:
    async def once(folder: Path) -> float:
        store = make(folder)
        try:
            return await work(store)
        finally:
            await store.close()

    def one() -> float:
        with tempfile.TemporaryDirectory() as folder:
            return anyio.run(once, Path(folder))

    return min(one() for _ in range(ROUNDS))


def measure() -> list[dict[str, object]]:
    """The rows of this bar."""
    many = f"{CROWD} sessions at once, {CROWD_TURNS} turns of 8 events each"
    beside: list[tuple[str, Work, str]] = [
        ("append of an event", _append, "us"),
        ("append and sync", _sync, "ms"),
        (f"load of {TURNS * 8} events", _load, "ms"),
        (f"list of {LISTED} sessions", _list, "ms"),
        (f"{many}, written", _crowd(synced=False), "s"),
        (f"{many}, each turn synced", _crowd(synced=True), "s"),
    ]
    rows = [
        _row(f"SQLite over files: {what}", _best(_database, work), unit, _best(_files, work))
        for what, work, unit in beside
    ]
    written, synced = rows[4]["value"], rows[5]["value"]
    assert isinstance(written, float) and isinstance(synced, float)
    return [
        *rows,
        _row(f"SQLite: {many}, each turn synced, over written (bar 3)", synced, "s", written),
        _row(
            "SQLite on a network mount over a local disk: append and sync",
            _best(_careful, _sync),
            "ms",
            _best(_database, _sync),
        ),
    ]


def _row(bar: str, value: float, unit: str, floor: float) -> dict[str, object]:
    return {"bar": bar, "value": value, "unit": unit, "floor": floor, "ratio": value / floor}


if __name__ == "__main__":
    for row in measure():
        print(row)
