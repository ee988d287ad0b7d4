"""A home with sessions and blobs, and retention over them, as a composition mounts it."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest

from leadline.capabilities.persistence import plugin as persistence
from leadline.capabilities.retention import plugin as retention
from leadline.capabilities.retention.seam import Retention, SessionsRemoved
from leadline.core import clock, home, ids
from leadline.core.clock import Clock
from leadline.core.session import registry
from leadline.core.session.blobs import Blobs
from leadline.core.session.codec import Header
from leadline.core.session.events import Event
from leadline.core.session.log import Session
from leadline.core.session.store import SessionStore
from leadline.kernel.context import Context, Kernel
from leadline.testing.conformance.session_store import Noted, whole_turn

DAY = 86_400.0


@dataclass
class Place:
    """One process on a home directory."""

    root: Path
    ctx: Context
    store: SessionStore
    blobs: Blobs
    retention: Retention
    clock: Clock
    removed: list[SessionsRemoved] = field(default_factory=list[SessionsRemoved])

    async def session(
        self,
        session_id: str,
        events: Sequence[Event] = (),
        *,
        parent: str | None = None,
        depth: int = 0,
        kind: str = "agent",
        blobs: Sequence[bytes] = (),
    ) -> str:
        """A session at rest with a turn, `events`, and a note of each of `blobs`."""
        header = Header(id=session_id, kind=kind, created=self.clock.now(), parent=parent, depth=depth)
        session = await self.store.create(header)
        notes = [Noted(text=f"see {self.blobs.put(data)}") for data in blobs]
        session.append_all([*whole_turn(), *events, *notes])
        await session.close()
        return session_id

    async def family(self) -> None:
        """A run `r` with two children and a grandchild, each with a blob of its own."""
        await self.session("r", [Noted(text="c1"), Noted(text="c2")], kind="research", blobs=[b"root blob"])
        await self.session("c1", parent="r", depth=1, blobs=[b"first blob", b"shared blob"])
        await self.session("c2", parent="r", depth=1, blobs=[b"second blob", b"shared blob"])
        await self.session("g", parent="c1", depth=2, blobs=[b"grand blob"])

    async def fork(self, source: str, fork_id: str, upto: int | None = None) -> Session:
        """A fork of `source`, open."""
        header = Header(id=fork_id, kind="agent", created=self.clock.now())
        return await self.store.fork(await self.store.read(source), header, upto)

    async def ids(self) -> set[str]:
        """Of all sessions."""
        return {one.id for one in await self.store.list()}

    async def log(self, session_id: str) -> bytes:
        """The bytes of a log."""
        return b"".join([chunk async for chunk in self.store.raw(session_id)])

    def age_blobs(self, seconds: float) -> None:
        """Make every blob look as if it had been used last so long ago."""
        when = self.clock.now() - seconds
        for path in (self.root / "blobs").rglob("*"):
            if path.is_file():
                os.utime(path, (when, when))


class Opener(Protocol):
    """Opens the home of a name, as often as it is asked; each time another process."""

    def __call__(
        self, name: str, config: Mapping[str, object] | None = None
    ) -> AbstractAsyncContextManager[Place]: ...


@pytest.fixture(params=["jsonl", "sqlite"])
def store_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(tmp_path: Path, store_kind: str) -> Opener:
    chosen = {"store": store_kind}

    @asynccontextmanager
    async def opener(name: str, config: Mapping[str, object] | None = None) -> AsyncGenerator[Place]:
        async with Kernel() as kernel:
            ctx = kernel.root
            await ctx.mount(clock.plugin)
            await ctx.mount(ids.plugin)
            await ctx.mount(home.plugin, {"path": str(tmp_path / name)})
            await ctx.mount(registry.plugin)
            await ctx.mount(persistence.plugin, config or chosen)
            await ctx.mount(retention.plugin)
            place = Place(
                tmp_path / name,
                ctx,
                ctx.get(SessionStore),
                ctx.get(Blobs),
                ctx.get(Retention),
                ctx.get(Clock),
            )

            async def hear(removed: SessionsRemoved) -> None:
                place.removed.append(removed)

            ctx.on(SessionsRemoved, hear)
            yield place

    return opener


@pytest.fixture
async def place(opened: Opener) -> AsyncIterator[Place]:
    async with opened("here") as found:
        yield found
