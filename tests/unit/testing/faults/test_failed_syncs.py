"""After a failed sync the system forgets what it was to keep: what is then called kept has to have been written anew."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.capabilities.persistence.providers.sqlite import SqliteSessions
from leadline.core.clock import Clock
from leadline.core.session.errors import SessionWriteFailed
from leadline.core.session.registry import EventTypes
from leadline.testing.conformance.session_store import Noted, header
from leadline.testing.faults.images import Crash, crashes, images
from leadline.testing.faults.refusals import Refusal, RefusingDisk
from leadline.testing.faults.sqlite_tap import reachable
from leadline.testing.faults.tap import Tap, nothing

pytestmark = pytest.mark.anyio

Store = JsonlSessions | SqliteSessions
Make = Callable[[Path], Store]


def files(folder: Path) -> Store:
    return JsonlSessions(folder / "sessions", clock=Clock(), types=EventTypes())


def database(folder: Path) -> Store:
    return SqliteSessions(folder / "sessions.sqlite", clock=Clock(), types=EventTypes())


def test_a_second_sync_does_not_keep_what_the_first_failed_to_keep(tmp_path: Path) -> None:
    with Tap(tmp_path) as tap:
        fd = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
        folder = os.open(tmp_path, os.O_RDONLY)
        os.fsync(folder)
        os.write(fd, b"lost ")
        tap.obstacle = RefusingDisk(Refusal(0, "sync", errno.EIO))
        with pytest.raises(OSError, match="Input/output"):
            os.fsync(fd)
        os.write(fd, b"kept")
        os.fsync(fd)
        before = len(tap.journal.ops)
        os.pwrite(fd, b"again", 0)
        os.fsync(fd)
    first, second = images(tap.journal, [Crash(at, loss="dropped") for at in (before, len(tap.journal.ops))])
    assert first.contents.files == {"log": b"\0\0\0\0\0kept"}
    assert second.contents.files == {"log": b"againkept"}


@pytest.mark.parametrize(
    "make", [files, pytest.param(database, marks=pytest.mark.skipif(not reachable(), reason="no library"))]
)
async def test_a_store_that_calls_something_synced_after_a_failed_sync_has_written_it_anew(
    tmp_path: Path, make: Make
) -> None:
    (tmp_path / "whole").mkdir()
    with Tap(tmp_path / "whole") as tap:
        store = make(tmp_path / "whole")
        session = await store.create(header())
        session.append(Noted(text="early"))
        await session.sync()
        for n in range(3):
            session.append(Noted(text=f"before {n}"))
        tap.obstacle = RefusingDisk(Refusal(0, "sync", errno.EIO))
        with pytest.raises(SessionWriteFailed):
            await session.sync()
        tap.obstacle = nothing
        session.append(Noted(text="after"))
        await session.sync()
        promised = len(tap.journal.ops)
        session.append(Noted(text="late"))
        await session.close()
        await store.close()
    cuts = [one for one in crashes(tap.journal, kills=False, seed=3) if one.at >= promised]
    assert len(cuts) >= 6
    for number, image in enumerate(images(tap.journal, cuts)):
        image.write(tmp_path / f"{number}")
        after = make(tmp_path / f"{number}")
        texts = [event.text for event in (await after.read("s-1")).of(Noted)]
        await after.close()
        assert texts[:5] == ["early", "before 0", "before 1", "before 2", "after"], image.label
