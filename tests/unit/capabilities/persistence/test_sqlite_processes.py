"""Sessions in a database and real processes: killed while they write, contending, many at once, on a full disk."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from leadline.capabilities.persistence.providers.sqlite import SqliteSessions
from leadline.core.clock import Clock
from leadline.core.session.errors import SessionLocked
from leadline.core.session.events import TurnEnd
from leadline.core.session.registry import EventTypes
from leadline.testing.conformance.session_store import Noted, header, whole_turn

pytestmark = pytest.mark.anyio

LOCAL = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw"
NETWORK = "27 1 0:40 / / rw,relatime - nfs4 server:/home rw,vers=4.2,local_lock=none"

PRELUDE = """
import os, resource, signal, sys, anyio
from pathlib import Path
from leadline.capabilities.persistence.providers.sqlite import SqliteSessions
from leadline.core.clock import Clock
from leadline.core.ids import Ids
from leadline.core.session.errors import SessionWriteFailed
from leadline.core.session.events import TurnStart
from leadline.core.session.registry import EventTypes
from leadline.testing.conformance.session_store import Noted, header, whole_turn
store = SqliteSessions(Path(sys.argv[1]), clock=Clock(), types=EventTypes(), table=lambda: sys.argv[2])
"""

APPEND_FOR_EVER = """
async def main():
    session = await store.create(header())
    session.append(TurnStart(turn=1))
    number = 0
    while True:
        session.append(Noted(text=str(number) + "x" * (number % 5000)))
        if number % 7 == 0:
            await session.sync()
        print(number, flush=True)
        number += 1
anyio.run(main)
"""

HOLD = """
async def main():
    session = await store.open("s-1")
    print("held", flush=True)
    sys.stdin.read()
anyio.run(main)
"""

ONE_SHOT = """
async def main():
    session = await store.create(header(Ids().new("s")))
    for number in range(1, 21):
        session.append_all(whole_turn(number))
        await session.sync()
    await session.close()
    await store.close()
    print(session.id)
anyio.run(main)
"""

UNTIL_FULL = """
async def main():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    session = await store.create(header())
    session.append(Noted(text="first"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
    kept = 0
    try:
        while True:
            session.append(Noted(text=f"{kept} " + "x" * 3000))
            kept += 1
    except SessionWriteFailed as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    session.append(Noted(text="last"))
    await session.sync()
    await session.close()
    await store.close()
    print(kept)
anyio.run(main)
"""


def started(program: str, path: Path, table: str = LOCAL) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(program), str(path), table],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def killed(process: subprocess.Popen[str]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


def store_in(path: Path, table: str = LOCAL) -> SqliteSessions:
    return SqliteSessions(path, clock=Clock(), types=EventTypes(), table=lambda: table)


def is_sound(path: Path) -> bool:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()


def listed(folder: Path) -> list[Path]:
    return [*folder.iterdir()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "s.sqlite"


@pytest.mark.case("S46")
@pytest.mark.parametrize("table", [LOCAL, NETWORK], ids=["wal", "rollback"])
@pytest.mark.parametrize("count", [1, 50, 400])
async def test_what_was_appended_before_a_kill_is_there_and_the_session_goes_on(
    path: Path, count: int, table: str
) -> None:
    process = started(APPEND_FOR_EVER, path, table)
    last = -1
    for _ in range(count):
        last = int(line_of(process))
    killed(process)
    store = store_in(path, table)
    (entry,) = await store.list()
    assert entry.status == "interrupted" and entry.holder is None
    session = await store.open("s-1")
    assert not session.problems
    texts = [event.text.rstrip("x") for event in session.of(Noted)]
    assert texts == [str(number) for number in range(len(texts))]
    assert len(texts) > last, "an append that had returned was lost"
    assert [event.reason for event in session.of(TurnEnd)] == ["interrupted"]
    session.append_all(whole_turn(2))
    await session.close()
    assert not (await store.read("s-1")).problems
    await store.close()
    assert is_sound(path)


async def test_a_process_killed_again_and_again_leaves_a_sound_database(path: Path) -> None:
    again = APPEND_FOR_EVER.replace("store.create(header())", 'store.open("s-1", repair=False)').replace(
        "session.append(TurnStart(turn=1))", "pass"
    )
    first = await store_in(path).create(header())
    await first.close()
    acknowledged = 0
    for round_ in range(8):
        process = started(again, path)
        for _ in range(5 + 40 * round_):
            line_of(process)
            acknowledged += 1
        killed(process)
    session = await store_in(path).read("s-1")
    assert not session.problems and len(session) >= acknowledged
    assert is_sound(path)


async def test_a_lease_holds_between_processes_and_dies_with_its_holder(path: Path) -> None:
    first = store_in(path)
    session = await first.create(header())
    session.append(Noted(text="x"))
    await first.close()
    process = started(HOLD, path)
    try:
        assert line_of(process) == "held"
        other = store_in(path)
        with pytest.raises(SessionLocked) as error:
            await other.open("s-1")
        await other.close()
        assert error.value.pid == process.pid and error.value.host and error.value.since
        assert [it.status for it in await store_in(path).list()] == ["running"]
        assert len(await store_in(path).read("s-1")) == 1
    finally:
        killed(process)
    assert [it.status for it in await store_in(path).list()] == ["idle"]
    store = store_in(path)
    again = await store.open("s-1")
    assert again.append(Noted(text="y")).seq == 1
    holder = (await store.entry("s-1")).holder
    assert holder is not None and holder.epoch == 3 and holder.pid == os.getpid()
    await store.close()
    assert listed(path.with_name("s.sqlite-writers")) == [], "the file of the dead writer stayed"


@pytest.mark.case("S26")
@pytest.mark.parametrize("table", [LOCAL, NETWORK], ids=["wal", "rollback"])
async def test_eight_processes_at_once_on_one_database_all_complete(path: Path, table: str) -> None:
    processes = [started(ONE_SHOT, path, table) for _ in range(8)]
    ids = {line_of(process) for process in processes}
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0] * 8
    store = store_in(path, table)
    entries = await store.list()
    assert {it.id for it in entries} == ids and len(ids) == 8
    assert {it.status for it in entries} == {"finished"}
    for session_id in ids:
        session = await store.read(session_id)
        assert len(session) == 120 and not session.problems
    await store.close()
    assert is_sound(path)


@pytest.mark.parametrize("table", [LOCAL, NETWORK], ids=["wal", "rollback"])
async def test_a_real_size_limit_of_the_system_is_survived(path: Path, table: str) -> None:
    process = started(UNTIL_FULL, path, table)
    out, _ = process.communicate()
    told, kept = out.splitlines()
    assert "cannot write session log" in told and "try again" in told
    store = store_in(path, table)
    session = await store.read("s-1")
    texts = [event.text.split()[0] for event in session.of(Noted)]
    assert not session.problems and int(kept) > 10
    assert texts == ["first", *map(str, range(int(kept))), "last"]
    await store.close()
    assert is_sound(path)
