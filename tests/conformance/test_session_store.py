"""The stores that ship keep what the seam promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.capabilities.persistence.providers.sqlite import SqliteSessions
from leadline.core.session.registry import EventTypes
from leadline.testing.clock import ManualClock
from leadline.testing.conformance.session_store import CHECKS, Check, name_of
from leadline.testing.sessions import MemoryLog, MemorySessions


@pytest.mark.anyio
@pytest.mark.parametrize("check", CHECKS, ids=name_of)
async def test_the_store_of_files_keeps_the_promise(check: Check, tmp_path: Path) -> None:
    await check(lambda types: JsonlSessions(tmp_path / "sessions", clock=ManualClock(), types=types))


@pytest.mark.anyio
@pytest.mark.parametrize("check", CHECKS, ids=name_of)
async def test_the_store_in_a_database_keeps_the_promise(check: Check, tmp_path: Path) -> None:
    await check(lambda types: SqliteSessions(tmp_path / "s.sqlite", clock=ManualClock(), types=types))


@pytest.mark.anyio
@pytest.mark.parametrize("check", CHECKS, ids=name_of)
async def test_the_store_in_a_database_on_a_network_mount_keeps_the_promise(
    check: Check, tmp_path: Path
) -> None:
    def opened(types: EventTypes) -> SqliteSessions:
        return SqliteSessions(
            tmp_path / "s.sqlite",
            clock=ManualClock(),
            types=types,
            table=lambda: "30 1 0:40 / / rw,relatime - nfs4 server:/home rw,vers=4.2,local_lock=none",
        )

    await check(opened)


@pytest.mark.anyio
@pytest.mark.parametrize("check", CHECKS, ids=name_of)
async def test_the_store_in_memory_keeps_the_promise(check: Check) -> None:
    logs: dict[str, MemoryLog] = {}

    def opened(types: EventTypes) -> MemorySessions:
        store = MemorySessions(types=types)
        store.logs = logs
        return store

    await check(opened)
