"""Many files that are synced at once: each is, errors find their file, slow disks get every file at once."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import anyio
import pytest

from leadline.capabilities.persistence.providers import syncing
from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.capabilities.persistence.providers.syncing import Syncing
from leadline.core.session.errors import SessionWriteFailed
from leadline.core.session.registry import EventTypes
from leadline.testing.clock import ManualClock
from leadline.testing.conformance.session_store import Noted, header

pytestmark = pytest.mark.anyio


class Disk:
    """Stands for `os.fdatasync`: notes what was asked, refuses some, waits until it is let go."""

    def __init__(self, refused: set[int] | None = None, gate: threading.Event | None = None) -> None:
        self.asked: list[int] = []
        self.at_once = 0
        self._now = 0
        self._refused = refused or set()
        self._gate = gate
        self._lock = threading.Lock()
        self.crowded = threading.Event()

    def __call__(self, fd: int) -> None:
        with self._lock:
            self.asked.append(fd)
            self._now += 1
            self.at_once = max(self.at_once, self._now)
            if self._now == 20:
                self.crowded.set()
        if self._gate is not None:
            self._gate.wait(10)
        with self._lock:
            self._now -= 1
        if fd in self._refused:
            raise OSError(errno.EIO, "Input/output error")


async def all_of(many: Syncing, fds: list[int]) -> set[int]:
    """Sync every one at once; those that were refused."""
    refused: set[int] = set()

    async def one(fd: int) -> None:
        try:
            await many.sync(fd)
        except OSError:
            refused.add(fd)

    async with anyio.create_task_group() as tasks:
        for fd in fds:
            tasks.start_soon(one, fd)
    return refused


@pytest.mark.parametrize("fast", [True, False])
async def test_each_file_is_synced_once_and_told_of_its_own_error(
    monkeypatch: pytest.MonkeyPatch, fast: bool
) -> None:
    disk = Disk(refused={3, 77})
    monkeypatch.setattr(syncing.os, "fdatasync", disk)
    monkeypatch.setattr(syncing, "_FAST_S", 1000.0 if fast else 0.0)
    assert await all_of(Syncing(), list(range(100))) == {3, 77}
    assert sorted(disk.asked) == list(range(100))


async def test_a_slow_disk_is_asked_for_many_files_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    disk = Disk(gate=gate)
    monkeypatch.setattr(syncing.os, "fdatasync", disk)
    monkeypatch.setattr(syncing, "_FAST_S", 0.0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(all_of, Syncing(), list(range(200)))
        with anyio.fail_after(10):
            await anyio.to_thread.run_sync(disk.crowded.wait)
        gate.set()
    assert 20 <= disk.at_once <= 64


async def test_who_is_cancelled_leaves_no_file_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    disk = Disk(gate=gate)
    monkeypatch.setattr(syncing.os, "fdatasync", disk)
    many = Syncing()
    async with anyio.create_task_group() as tasks:
        for fd in range(10):
            tasks.start_soon(many.sync, fd)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
        gate.set()
    assert sorted(disk.asked) == list(range(10))


async def test_sessions_that_are_closed_while_others_sync_are_all_kept(tmp_path: Path) -> None:
    store = JsonlSessions(tmp_path, clock=ManualClock(), types=EventTypes())

    async def one(number: int) -> None:
        session = await store.create(header(f"s-{number}"))
        for text in "abc":
            session.append(Noted(text=text))
            await session.sync()
        await session.close()

    async with anyio.create_task_group() as tasks:
        for number in range(60):
            tasks.start_soon(one, number)
    assert {len(await store.read(one.id)) for one in await store.list()} == {3}


async def test_the_names_of_files_are_synced_once_for_all_that_were_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories: list[Path] = []
    sync_place = syncing.sync_place

    def noted(path: Path) -> None:
        directories.append(path)
        sync_place(path)

    monkeypatch.setattr(syncing, "sync_place", noted)
    store = JsonlSessions(tmp_path, clock=ManualClock(), types=EventTypes())
    sessions = [await store.create(header(f"s-{number}")) for number in range(5)]
    for session in sessions:
        await session.sync()
    assert directories == [tmp_path]
    later = await store.create(header("s-later"))
    await later.sync()
    assert directories == [tmp_path] * 2
    for session in (*sessions, later):
        await session.close()


async def test_a_session_whose_name_is_not_kept_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    store = JsonlSessions(tmp_path, clock=ManualClock(), types=EventTypes())
    session = await store.create(header())
    with monkeypatch.context() as patched:
        patched.setattr(syncing, "sync_directory", refuse)
        with pytest.raises(SessionWriteFailed, match="does not promise"):
            await session.sync()
    await session.sync()
    await session.close()
