"""What it costs to load long and large sessions: time, and memory beside the size of the file.

Run it: `python -m bench session_load`. Each measurement has a process of its own, so that memory of earlier ones
does not count. The floor of loading is to read the lines, decode each as JSON and hash it, nothing else.
"""

from __future__ import annotations

import hashlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import anyio
import msgspec

from bench.session_append import turn
from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.core.clock import Clock
from leadline.core.session.codec import Header, chain, compose, encode_header
from leadline.core.session.derive import derive
from leadline.core.session.events import Event
from leadline.core.session.load import load
from leadline.core.session.registry import EventTypes

EVENTS = 100_000
SMALL, RECORDS, RECORD_BYTES, LIMIT_MB = 200_000, 500, 1_000_000, 512.0
RUNS = 3


class Compacted(Event, frozen=True, kw_only=True):
    """A record that embeds a history, as logs of other harnesses hold them."""

    TYPE: ClassVar[str] = "bench/compacted"

    history: str


def _long() -> Iterator[Event]:
    for number in range(1, EVENTS // 8 + 1):
        yield from turn(number)


def _large() -> Iterator[Event]:
    turns = SMALL // 8
    for number in range(1, turns + 1):
        yield from turn(number)
        if number % (turns // RECORDS) == 0:
            yield Compacted(history="A line of the history. " * (RECORD_BYTES // 23))


def _write(path: Path, events: Iterator[Event]) -> None:
    """The log of a session with `events`, written without holding them."""
    with path.open("wb") as file:
        head = encode_header(Header(id=path.stem, kind="agent", created=0.0))
        file.write(head)
        digest = chain(head[:-1])
        for seq, event in enumerate(events):
            line, _, digest = compose(event, seq, float(seq), digest)
            file.write(line)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _loaded(path: Path) -> tuple[float, float]:
    """Seconds to load and derive a log, and the MB that it took at most."""
    before, began = _peak_mb(), time.perf_counter()
    with path.open("rb") as file:
        loaded = load(file)
    conversation = derive(loaded.logged)
    took = time.perf_counter() - began
    assert len(loaded.logged) == EVENTS and len(conversation) == 3 * EVENTS // 8
    return took, _peak_mb() - before


def _floor(path: Path) -> tuple[float, float]:
    began = time.perf_counter()
    with path.open("rb") as file:
        for line in file:
            msgspec.json.decode(line)
            hashlib.sha256(line).digest()
    return time.perf_counter() - began, 0.0


async def _opened(path: Path) -> tuple[float, float]:
    """Seconds until a session is open for writing, and the MB that the process took at most."""
    store = JsonlSessions(path.parent, clock=Clock(), types=EventTypes())
    began = time.perf_counter()
    session = await store.open(path.stem)
    took = time.perf_counter() - began
    assert not session.problems
    await session.close()
    return took, _peak_mb()


def _in_own_process(what: str, path: Path) -> tuple[float, float]:
    command = [sys.executable, "-m", "bench.session_load", what, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, memory = map(float, done.stdout.split())
    return seconds, memory


def _best(what: str, path: Path) -> tuple[float, float]:
    runs = [_in_own_process(what, path) for _ in range(RUNS)]
    return min(seconds for seconds, _ in runs), max(memory for _, memory in runs)


def measure() -> list[dict[str, object]]:
    """The rows of this bar."""
    with tempfile.TemporaryDirectory() as folder:
        long, large = Path(folder, "s-long.jsonl"), Path(folder, "s-large.jsonl")
        _write(long, _long())
        _write(large, _large())
        long_mb = long.stat().st_size / 1e6
        seconds, memory = _best("load", long)
        floor, _ = _best("floor", long)
        opened, _ = _best("open", long)
        resumed, peak = _in_own_process("open", large)
        large_mb = large.stat().st_size / 1e6
    bar = f"{EVENTS:,} events ({long_mb:.0f} MB)"
    return [
        _row(f"load and derive {bar}, over the bar of 1.5 s", seconds, "s", 1.5),
        _row(f"load and derive {bar}, over decoding and hashing its lines", seconds, "s", floor),
        _row(f"memory to load and derive {bar}, over its size", memory, "MB", long_mb),
        _row(f"open {bar} for writing, over decoding and hashing its lines", opened, "s", floor),
        _row(f"memory of a process that resumes {large_mb:.0f} MB with {RECORDS} records of 1 MB, over 512 MB", peak, "MB", LIMIT_MB),
        _row("the same, time, over the bar of 1.5 s for 100,000 events", resumed, "s", 1.5),
    ]  # fmt: skip


def _row(bar: str, value: float, unit: str, floor: float) -> dict[str, object]:
    return {"bar": bar, "value": value, "unit": unit, "floor": floor, "ratio": value / floor}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["load", path]:
            print(*_loaded(Path(path)))
        case ["floor", path]:
            print(*_floor(Path(path)))
        case ["open", path]:
            print(*anyio.run(_opened, Path(path)))
        case _:
            for row in measure():
                print(row)
