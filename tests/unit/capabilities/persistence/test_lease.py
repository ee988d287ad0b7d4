"""The lease of a session in files: heartbeats, release, holders on other machines."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from leadline.capabilities.persistence.providers import jsonl
from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.capabilities.persistence.providers.lease import Lease
from leadline.core.session.errors import SessionLocked
from leadline.core.session.lease import STALE_S
from leadline.core.session.registry import EventTypes
from leadline.testing.agents import agent_stack
from leadline.testing.clock import START, ManualClock
from leadline.testing.conformance.session_store import Noted, asked, header
from leadline.testing.scripted import ScriptedModel

ELSEWHERE = {"epoch": 7, "host": "shore", "pid": 1, "boot": "boot-7", "started": START, "heartbeat": START}


def store_in(root: Path, clock: ManualClock | None = None) -> JsonlSessions:
    return JsonlSessions(root, clock=clock or ManualClock(), types=EventTypes())


async def left_open(root: Path, **holder: object) -> None:
    """A session inside a turn, whose lease says what `holder` says."""
    session = await store_in(root).create(header())
    session.append_all(asked())
    await session.close()
    (root / "s-1.lock").write_text(json.dumps({**ELSEWHERE, **holder}))


@pytest.mark.anyio
async def test_a_session_that_another_machine_writes_is_running_and_cannot_be_opened(tmp_path: Path) -> None:
    await left_open(tmp_path)
    entry = await store_in(tmp_path).entry("s-1")
    assert entry.status == "running" and entry.holder is not None and entry.holder.host == "shore"
    for doing in (store_in(tmp_path).open, store_in(tmp_path).delete, store_in(tmp_path).archive):
        with pytest.raises(SessionLocked) as error:
            await doing("s-1")
        assert (error.value.host, error.value.pid) == ("shore", 1)


@pytest.mark.anyio
async def test_a_machine_that_fell_silent_holds_nothing(tmp_path: Path) -> None:
    await left_open(tmp_path)
    clock = ManualClock()
    clock.jump(STALE_S + 1)
    entry = await store_in(tmp_path, clock).entry("s-1")
    assert entry.status == "interrupted" and entry.holder is None
    session = await store_in(tmp_path, clock).open("s-1")
    assert json.loads((tmp_path / "s-1.lock").read_bytes())["epoch"] == 8
    await session.close()


@pytest.mark.anyio
async def test_a_machine_that_gave_the_session_up_holds_nothing(tmp_path: Path) -> None:
    await left_open(tmp_path, released=True)
    assert (await store_in(tmp_path).entry("s-1")).status == "interrupted"
    await (await store_in(tmp_path).open("s-1")).close()


@pytest.mark.anyio
async def test_on_this_boot_a_free_lock_is_a_dead_holder_whatever_the_file_says(tmp_path: Path) -> None:
    session = await store_in(tmp_path).create(header())
    boot = json.loads((tmp_path / "s-1.lock").read_bytes())["boot"]
    await session.close()
    (tmp_path / "s-1.lock").write_text(json.dumps({**ELSEWHERE, "host": "container", "boot": boot}))
    assert (await store_in(tmp_path).entry("s-1")).holder is None
    await (await store_in(tmp_path).open("s-1")).close()


@pytest.mark.anyio
async def test_an_open_session_beats_and_goes_on_and_a_closed_one_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "BEAT_S", 0.001)
    clock = ManualClock()
    store = store_in(tmp_path, clock)
    session = await store.create(header())
    lock = tmp_path / "s-1.lock"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.beat)
        for beats in range(1, 4):
            clock.jump(100.0)
            with anyio.fail_after(10):
                while json.loads(lock.read_bytes())["heartbeat"] != START + beats * 100.0:  # noqa: ASYNC110 - a file is awaited
                    await anyio.sleep(0.001)
            session.append(Noted(text=f"after beat {beats}"))
        tasks.cancel_scope.cancel()
    holder = (await store.entry("s-1")).holder
    assert holder is not None and (holder.started, holder.heartbeat) == (START, START + 300.0)
    await session.close()
    said = json.loads(lock.read_bytes())
    assert said["released"] and said["epoch"] == 1


def test_a_holder_that_was_replaced_neither_beats_nor_releases_over_the_new_one(tmp_path: Path) -> None:
    lock = tmp_path / "s-1.lock"
    lease = Lease.acquire(lock, "s-1", START)
    lease.beat(START + 1.0)
    assert json.loads(lock.read_bytes())["heartbeat"] == START + 1.0
    lock.write_text(json.dumps(ELSEWHERE))
    lease.beat(START + 2.0)
    lease.release()
    lease.beat(START + 3.0)
    assert json.loads(lock.read_bytes()) == ELSEWHERE


@pytest.mark.anyio
async def test_the_plugin_beats_for_its_sessions_as_long_as_it_is_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "BEAT_S", 0.001)
    lock = tmp_path / "sessions" / "s-1.lock"
    async with agent_stack(tmp_path, ScriptedModel()) as stack:
        session = await stack.sessions.create(header())
        first = json.loads(lock.read_bytes())["heartbeat"]
        with anyio.fail_after(10):
            while json.loads(lock.read_bytes())["heartbeat"] == first:  # noqa: ASYNC110 - a file is awaited
                await anyio.sleep(0.001)
        assert session.writable
    assert not session.writable and json.loads(lock.read_bytes())["released"]
