"""The fault harness on a large run: crashes, refusing disks and killed processes, over both stores.

Run it: `python -m bench faults`, or `python bench/faults.py SHARE` for another share of all faults than 0.1 (1: every
one; hours). A value is how many faults were survived, its floor how many there were: the ratio has to be 1. What was not
survived is told on stderr, and its files are left to look at.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import anyio

from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.capabilities.persistence.providers.sqlite import SqliteSessions
from leadline.core.clock import Clock
from leadline.core.session.registry import EventTypes
from leadline.core.session.store import SessionStore
from leadline.testing.faults import Survival, Work, crashes, record, spread, survive
from leadline.testing.faults.kills import killed, let_be, within
from leadline.testing.faults.refusals import endure, refusals
from leadline.testing.faults.research_work import ResearchWork
from leadline.testing.faults.run_commands import RunCommands
from leadline.testing.faults.store_work import StoreWork
from leadline.testing.provider_server.server import ProviderServer
from leadline.testing.researcher import ScriptedResearcher, topics, write_corpus

SHARE = 0.1
KILLS = 50
TOPICS, SENTENCES, READS = 3, 16, 3
"""22 calls stand one behind the other, so that a third of an answer for each process is far from enough."""
LATENCY_S, WITHIN_S = 0.3, 0.45
DATABASE = Path(__file__).with_name("sqlite_store.yml")


class Row(TypedDict):
    """One measured figure of a bar."""

    bar: str
    value: float
    unit: str
    floor: float | None
    ratio: float | None


def files(folder: Path, types: EventTypes) -> JsonlSessions:
    """Session files."""
    return JsonlSessions(folder / "home" / "sessions", clock=Clock(), types=types)


def database(folder: Path, types: EventTypes) -> SqliteSessions:
    """Sessions in one database."""
    return SqliteSessions(folder / "home" / "sessions.sqlite", clock=Clock(), types=types)


async def close(store: SessionStore) -> None:
    """Close either."""
    assert isinstance(store, JsonlSessions | SqliteSessions)
    await store.close()


store_in_files = StoreWork(files, close)
store_in_database = StoreWork(database, close)
run_in_files = ResearchWork(sentences=4)
run_in_database = ResearchWork(sentences=4, patches=[DATABASE])
WORKS: dict[str, Work] = {
    "store_in_files": store_in_files,
    "store_in_database": store_in_database,
    "run_in_files": run_in_files,
    "run_in_database": run_in_database,
}


async def crashed(name: str, share: float, scratch: Path) -> Survival:
    """A work after kills and power cuts."""
    journal = record(f"{__file__}:{name}", scratch / "whole", timeout_s=600)
    every = crashes(journal)
    return await survive(WORKS[name], journal, scratch, spread(every, round(len(every) * share)))


async def refused(name: str, share: float, scratch: Path) -> Survival:
    """A work on a disk that refuses."""
    every, outcome = await refusals(WORKS[name], scratch / "whole")
    return await endure(WORKS[name], scratch, spread(every, round(len(every) * share)), outcome)


async def killed_fifty_times(patches: Sequence[Path], scratch: Path) -> tuple[int, int, int]:
    """A run whose process is killed at random moments.

    How often it was killed, how many calls were charged more than once, and how many of those had been in flight.
    """
    known = topics(TOPICS, SENTENCES)
    write_corpus(scratch / "corpus", known)
    async with ProviderServer(ScriptedResearcher(known, reads=READS, at_once=1), strict=True) as server:
        commands = RunCommands(scratch / "whole", scratch / "corpus", server.base_url, patches)
        whole = await let_be(commands.research(), env=commands.env)
    slow = ScriptedResearcher(known, reads=READS, at_once=1, delay_s=LATENCY_S)
    in_flight: set[str] = set()
    async with ProviderServer(slow, strict=True) as server:
        commands = RunCommands(scratch / "home", scratch / "corpus", server.base_url, patches)
        moment, seen = within(WITHIN_S, seed=1), 0

        async def after_a_sign_of_life(attempt: int) -> None:
            nonlocal seen
            while len(server.requests) == seen:  # noqa: ASYNC110 - the process has no event to wait for
                await anyio.sleep(0.002)
            await moment(attempt)
            seen = len(server.requests)

        async def next_one(attempt: int) -> list[str]:
            in_flight.update((await commands.asked()).in_flight)
            return await commands.next()

        found = await killed(next_one, KILLS, after_a_sign_of_life, env=commands.env)
        twice = {key for key, calls in server.by_key().items() if calls.charged > 1}
    if found.last.out != whole.out:
        print(f"another report after the kills, in {scratch}:\n{found.last.err}", file=sys.stderr)
        return 0, len(twice), len(twice & in_flight)
    return found.kills, len(twice), len(twice & in_flight)


async def _measured(share: float) -> list[Row]:
    rows: list[Row] = []
    for name in WORKS:
        for fault, put_through in (("crashes", crashed), ("refusals of the disk", refused)):
            scratch = Path(tempfile.mkdtemp(prefix="leadline-faults-"))
            found = await put_through(name, share, scratch)
            if not found.ok:
                print(f"{name}: {found}", file=sys.stderr)
            survived = found.tried - len(found.failures)
            rows.append(_row(f"{fault} survived, {name.replace('_', ' ')}", survived, found.tried))
    for store, patches in (("files", ()), ("database", (DATABASE,))):
        scratch = Path(tempfile.mkdtemp(prefix="leadline-kills-"))
        kills, twice, in_flight = await killed_fifty_times(patches, scratch)
        rows.append(_row(f"SIGKILLs after which a run in {store} came to the same report", kills, KILLS))
        rows.append(_row(f"calls charged twice that had been in flight, run in {store}", in_flight, twice))
    return rows


def _row(bar: str, value: int, of: int) -> Row:
    print(f"{bar}: {value} of {of}", file=sys.stderr, flush=True)
    return {"bar": bar, "value": value, "unit": "", "floor": of, "ratio": value / of if of else None}


def measure(share: float = SHARE) -> list[Row]:
    """Each kind of fault: how many were survived, of how many."""
    logging.disable(logging.CRITICAL)  # the disk refuses thousands of times, and each time is reported
    return anyio.run(_measured, share)


def main() -> None:
    """Measure, print one row a line."""
    for row in measure(float(sys.argv[1]) if len(sys.argv) > 1 else SHARE):
        print(f"{row['bar']:<84} {row['value']:>6.0f} of {row['floor']:.0f}")


if __name__ == "__main__":
    main()
