"""The plugins of persistence: mounted they provide, unmounted they leave no trace and no lease."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.capabilities.persistence import plugin as persistence
from leadline.capabilities.persistence.providers import blob_files, jsonl
from leadline.core import clock, home
from leadline.core.session import registry
from leadline.core.session.blobs import Blobs
from leadline.core.session.errors import AppendRefused
from leadline.core.session.log import SessionAppended, SessionClosing
from leadline.core.session.store import SessionStore
from leadline.kernel.context import Context, Kernel
from leadline.kernel.errors import ConfigError
from leadline.kernel.plugin import Plugin
from leadline.kernel.signals import Notice
from leadline.testing.conformance.session_store import Noted, header

pytestmark = pytest.mark.anyio


async def base(ctx: Context, path: Path) -> None:
    await ctx.mount(clock.plugin)
    await ctx.mount(home.plugin, {"path": str(path)})
    await ctx.mount(registry.plugin)


@pytest.mark.parametrize("apart", [False, True], ids=["as one row", "as two rows"])
async def test_sessions_and_blobs_are_provided_and_withdrawn(tmp_path: Path, apart: bool) -> None:
    heard: list[Notice] = []
    async with Kernel() as kernel:
        await base(kernel.root, tmp_path)
        kernel.root.on(SessionAppended, heard.append)
        kernel.root.on(SessionClosing, heard.append)
        before = kernel.snapshot()
        if apart:
            fibers = [await kernel.root.mount(jsonl.plugin), await kernel.root.mount(blob_files.plugin)]
        else:
            fibers = [await kernel.root.mount(persistence.plugin)]
        store, blobs = kernel.root.get(SessionStore), kernel.root.get(Blobs)
        session = await store.create(header())
        session.append(Noted(text=blobs.put(b"page text")))
        for fiber in reversed(fibers):
            await fiber.dispose()
        assert kernel.snapshot() == before
        assert not session.writable
        with pytest.raises(AppendRefused):
            session.append(Noted(text="too late"))
        again = await kernel.root.mount(persistence.plugin)
        reopened = await kernel.root.get(SessionStore).open("s-1")
        assert [event.text for event in reopened.of(Noted)] == [blobs.put(b"page text")]
        await again.dispose()
    assert [type(it) for it in heard] == [SessionAppended, SessionClosing, SessionClosing]
    assert (tmp_path / "sessions" / "s-1.jsonl").is_file() and (tmp_path / "blobs").is_dir()


async def test_directories_can_be_chosen(tmp_path: Path) -> None:
    async with Kernel() as kernel:
        await base(kernel.root, tmp_path / "home")
        config = {"sessions": str(tmp_path / "logs"), "blobs": str(tmp_path / "bytes")}
        await kernel.root.mount(persistence.plugin, config)
        session = await kernel.root.get(SessionStore).create(header())
        kernel.root.get(Blobs).put(b"x")
        await session.close()
    assert (tmp_path / "logs" / "s-1.jsonl").is_file() and (tmp_path / "bytes").is_dir()


@pytest.mark.parametrize(
    "plugin", [persistence.plugin, jsonl.plugin, blob_files.plugin], ids=lambda it: it.name
)
def test_an_unknown_key_is_refused(plugin: Plugin[object]) -> None:
    with pytest.raises(ConfigError, match="unknown key 'sesions'"):
        plugin.bind({"sesions": "x"})


async def test_an_observer_that_listens_by_signal_can_do_no_harm(tmp_path: Path) -> None:
    def broken(signal: SessionAppended) -> None:
        signal.session.append(Noted(text="from inside"))

    async with Kernel(on_report=lambda report: None) as kernel:
        await base(kernel.root, tmp_path)
        await kernel.root.mount(persistence.plugin)
        kernel.root.on(SessionAppended, broken)
        session = await kernel.root.get(SessionStore).create(header())
        session.append(Noted(text="x"))
        assert len(session) == 1
        assert [type(report.error).__name__ for report in kernel.reports] == ["ReentrantAppend"]
