"""Large events stay on disk: what a session holds in memory is bounded by how many events it has."""

from __future__ import annotations

import gzip
import os
import sys
import textwrap
from pathlib import Path

import anyio
import pytest

from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.core.session.codec import LARGE_BYTES, LoggedOutside
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.registry import EventTypes
from leadline.testing.clock import ManualClock
from leadline.testing.conformance.session_store import Noted, header, whole_turn

LARGE = "x" * (LARGE_BYTES + 1)

RESUME = """
import resource, sys, anyio
from pathlib import Path
from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.core.clock import Clock
from leadline.core.session.registry import EventTypes

async def main():
    store = JsonlSessions(Path(sys.argv[1]), clock=Clock(), types=EventTypes())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    session = await (store.open if sys.argv[2] == "open" else store.read)("s-1")
    assert not session.problems, session.problems[:1]
    session.derived().conversation
    print(len(session), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    await session.close()

anyio.run(main)
"""


def store_in(root: Path) -> JsonlSessions:
    return JsonlSessions(root, clock=ManualClock(), types=EventTypes())


@pytest.mark.anyio
@pytest.mark.case("S15")
@pytest.mark.parametrize("how", ["open", "read", "archived"])
async def test_resuming_a_log_with_large_records_needs_little_memory(tmp_path: Path, how: str) -> None:
    session = await store_in(tmp_path).create(header())
    for number in range(1, 101):
        session.append_all([*whole_turn(number), *(Noted(text=f"{it}") for it in range(20))])
        session.append(Noted(text="x" * 1_000_000))
    await session.close()
    if how == "archived":
        await store_in(tmp_path).archive("s-1")
    resumed = [sys.executable, "-c", textwrap.dedent(RESUME), str(tmp_path), how]
    done = await anyio.run_process(resumed)
    events, grown_kb = map(int, done.stdout.split())
    assert events == 2700
    assert grown_kb < 40_000, "a tenth of what the records alone would take"


@pytest.mark.anyio
@pytest.mark.parametrize("archived", [False, True])
async def test_a_large_event_is_read_when_it_is_asked_for(tmp_path: Path, archived: bool) -> None:
    session = await store_in(tmp_path).create(header())
    session.append_all([Noted(text="small"), Noted(text=LARGE, weight=1.0), Noted(text=LARGE + "é")])
    await session.close()
    if archived:
        await store_in(tmp_path).archive("s-1")
    read = await store_in(tmp_path).read("s-1")
    assert [isinstance(it, LoggedOutside) for it in read.logged] == [False, True, True]
    await store_in(tmp_path).delete("s-1")
    assert [it.text for it in read.of(Noted)] == ["small", LARGE, LARGE + "é"]
    assert [bytes(it.data) for it in read.logged] == [bytes(it.data) for it in session.logged]


@pytest.mark.anyio
async def test_large_events_are_forked_and_appended_after(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    session = await store.create(header())
    session.append_all([*whole_turn(), Noted(text=LARGE)])
    await session.close()
    again = await store.open("s-1")
    again.append(Noted(text="on"))
    fork = await store.fork(again, header("s-2"), 6)
    for one in (again, fork):
        await one.close()
    assert not (await store.read("s-1")).problems
    read = await store.read("s-2")
    assert [it.text for it in read.of(Noted)] == [LARGE] and not read.problems


@pytest.mark.anyio
async def test_a_large_event_that_was_altered_meanwhile_is_told_and_not_shown(tmp_path: Path) -> None:
    session = await store_in(tmp_path).create(header())
    session.append_all([Noted(text=LARGE), Noted(text=LARGE)])
    await session.close()
    read = await store_in(tmp_path).read("s-1")
    path = tmp_path / "s-1.jsonl"
    with path.open("r+b") as file:
        file.seek(path.stat().st_size - 1000)
        file.write(b"y")
    assert len(list(read.of(Noted))) == 1
    with pytest.raises(EventUndecodable, match=r"event 1 .* not in its log any more"):
        _ = read.logged[1].data
    os.truncate(path, 100)
    with pytest.raises(EventUndecodable):
        read.logged[0].as_(Noted)


@pytest.mark.anyio
async def test_large_lines_that_do_not_belong_are_told_and_readable(tmp_path: Path) -> None:
    session = await store_in(tmp_path).create(header())
    session.append_all([Noted(text="a"), Noted(text=LARGE), Noted(text="b"), Noted(text=LARGE + "c")])
    await session.close()
    path = tmp_path / "s-1.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], lines[2], *lines[4:]]))
    read = await store_in(tmp_path).read("s-1")
    assert [it.reason for it in read.quarantined] == ["event 1 again", "event 3, where event 2 was expected"]
    assert [it.event.as_(Noted).text for it in read.quarantined if it.event] == [LARGE, LARGE + "c"]
    path.with_name("s-1.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    archived = await store_in(tmp_path).read("s-1")
    assert [it.event.as_(Noted).text for it in archived.quarantined if it.event] == [LARGE, LARGE + "c"]
