"""Sessions and real processes: killed while they write, contending for one session, many at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.core.clock import Clock
from leadline.core.session.errors import SessionLocked
from leadline.core.session.events import TurnEnd
from leadline.core.session.registry import EventTypes
from leadline.testing.conformance.session_store import Noted, header, whole_turn

pytestmark = pytest.mark.anyio

PRELUDE = """
import sys, anyio
from pathlib import Path
from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.core.clock import Clock
from leadline.core.ids import Ids
from leadline.core.session.events import TurnStart
from leadline.core.session.registry import EventTypes
from leadline.testing.conformance.session_store import Noted, header, whole_turn
store = JsonlSessions(Path(sys.argv[1]), clock=Clock(), types=EventTypes())
"""

APPEND_FOR_EVER = """
async def main():
    session = await store.create(header())
    session.append(TurnStart(turn=1))
    number = 0
    while True:
        session.append(Noted(text=str(number) + "x" * (number % 5000)))
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
    print(session.id)
anyio.run(main)
"""


def started(program: str, root: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(program), str(root)],
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


def store_in(root: Path) -> JsonlSessions:
    return JsonlSessions(root, clock=Clock(), types=EventTypes())


@pytest.mark.case("S46")
@pytest.mark.parametrize("count", [1, 50, 400])
async def test_what_was_appended_before_a_kill_is_there_and_the_session_goes_on(
    tmp_path: Path, count: int
) -> None:
    process = started(APPEND_FOR_EVER, tmp_path)
    last = -1
    for _ in range(count):
        last = int(line_of(process))
    killed(process)
    (entry,) = await store_in(tmp_path).list()
    assert entry.status == "interrupted"
    session = await store_in(tmp_path).open("s-1")
    texts = [event.text.rstrip("x") for event in session.of(Noted)]
    assert texts == [str(number) for number in range(len(texts))]
    assert len(texts) > last, "an append that had returned was lost"
    assert [event.reason for event in session.of(TurnEnd)] == ["interrupted"]
    session.append_all(whole_turn(2))
    await session.close()
    assert not [it for it in (await store_in(tmp_path).read("s-1")).problems if "moved" not in it.reason]


async def test_a_lease_holds_between_processes_and_dies_with_its_holder(tmp_path: Path) -> None:
    session = await store_in(tmp_path).create(header())
    session.append(Noted(text="x"))
    await session.close()
    process = started(HOLD, tmp_path)
    try:
        assert line_of(process) == "held"
        with pytest.raises(SessionLocked) as error:
            await store_in(tmp_path).open("s-1")
        assert error.value.pid == process.pid and error.value.host and error.value.since
        assert [it.status for it in await store_in(tmp_path).list()] == ["running"]
        assert len(await store_in(tmp_path).read("s-1")) == 1
    finally:
        killed(process)
    again = await store_in(tmp_path).open("s-1")
    assert again.append(Noted(text="y")).seq == 1
    await again.close()
    lock = json.loads((tmp_path / "s-1.lock").read_bytes())
    assert lock["epoch"] == 3 and lock["pid"] == os.getpid()


@pytest.mark.case("S26")
async def test_eight_processes_at_once_on_one_directory_all_complete(tmp_path: Path) -> None:
    processes = [started(ONE_SHOT, tmp_path / "new" / "sessions") for _ in range(8)]
    ids = {line_of(process) for process in processes}
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0] * 8
    store = store_in(tmp_path / "new" / "sessions")
    entries = await store.list()
    assert {it.id for it in entries} == ids and len(ids) == 8
    assert {it.status for it in entries} == {"finished"}
    for session_id in ids:
        session = await store.read(session_id)
        assert len(session) == 120 and not session.problems
