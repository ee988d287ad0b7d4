"""Works on sessions in a database, recorded in processes of their own."""

from __future__ import annotations

from pathlib import Path

from leadline.capabilities.persistence.providers.sqlite import SqliteSessions
from leadline.core.clock import Clock
from leadline.core.session.registry import EventTypes
from leadline.core.session.store import SessionStore
from leadline.testing.faults.store_work import StoreWork

LOCAL = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw"
NETWORK = "27 1 0:40 / / rw,relatime - nfs4 server:/home rw,vers=4.2,local_lock=none"


def wal(folder: Path, types: EventTypes) -> SessionStore:
    return SqliteSessions(folder / "home" / "s.sqlite", clock=Clock(), types=types, table=lambda: LOCAL)


def rollback(folder: Path, types: EventTypes) -> SessionStore:
    return SqliteSessions(folder / "home" / "s.sqlite", clock=Clock(), types=types, table=lambda: NETWORK)


async def close(store: SessionStore) -> None:
    assert isinstance(store, SqliteSessions)
    await store.close()


on_a_disk = StoreWork(wal, close)
on_a_mount = StoreWork(rollback, close)
