"""The shipped checks on plugins pass a well-behaved one and catch each kind of bad manners."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest

from leadline.kernel.context import Context
from leadline.kernel.effects import Effect
from leadline.kernel.plugin import Plugin
from leadline.kernel.scope import ScopedRegistry
from leadline.kernel.services import Service
from leadline.kernel.signals import Around, Notice
from leadline.testing.conformance.kernel import (
    check_any_mount_order,
    check_disposer_isolation,
    check_leaves_no_trace,
    check_provider_exchange_under_load,
)

pytestmark = pytest.mark.anyio


class Store(Service, key="store"):
    def __init__(self) -> None:
        self.open = True
        self.names: ScopedRegistry[int] = ScopedRegistry("name")

    async def read(self) -> str:
        await anyio.lowlevel.checkpoint()
        assert self.open, "a closed store was read"
        return "text"


class Index(Service, key="index"):
    def __init__(self, store: Store) -> None:
        self.store = store

    async def search(self) -> str:
        return await self.store.read()


class Changed(Notice):
    pass


class Find(Around[str]):
    pass


async def apply_store(ctx: Context, config: None) -> None:
    store = Store()

    def close() -> None:
        store.open = False

    ctx.defer("store", close)
    ctx.provide(Store, store)


async def apply_index(ctx: Context, config: None) -> None:
    store = ctx.get(Store)
    index = Index(store)
    ctx.provide(Index, index)
    store.names.register(ctx, "index", 1)
    ctx.on(Changed, lambda signal: None)

    async def find(signal: Find, call_next: Callable[[Find], Awaitable[str]]) -> str:
        return await index.search()

    ctx.on(Find, find)
    ctx.spawn(anyio.sleep_forever, name="watch")


STORE = Plugin("store", apply_store, provides=(Store,))
INDEX = Plugin("index", apply_index, needs=(Store,), provides=(Index,))


async def find(ctx: Context) -> object:
    async def nothing(signal: Find) -> str:
        return ""

    return await ctx.around(Find(), nothing)


async def test_a_well_behaved_plugin_passes_every_check() -> None:
    await check_leaves_no_trace(INDEX, providers=[(STORE, None)])
    await check_any_mount_order([(STORE, None), (INDEX, None)])
    await check_disposer_isolation(INDEX, providers=[(STORE, None)])
    await check_provider_exchange_under_load(INDEX, exchanged=(STORE, None), load=find)


async def test_a_plugin_that_lacks_its_provider_is_told_so() -> None:
    with pytest.raises(AssertionError, match=r"needs store.*pass what it needs as providers"):
        await check_leaves_no_trace(INDEX)


kept: list[object] = []


def leak_thread(ctx: Context) -> None:
    go = threading.Event()
    thread = threading.Thread(target=go.wait, name="leaked", daemon=True)
    thread.start()
    kept.append(lambda: (go.set(), thread.join()))


def leak_file(ctx: Context) -> None:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - leaving it open is the point
    kept.append(file.close)


def leak_environment(ctx: Context) -> None:
    os.environ["LEADLINE_LEAK"] = os.environ.get("LEADLINE_LEAK", "") + "x"
    kept.append(lambda: os.environ.pop("LEADLINE_LEAK", None))


def leak_listener(ctx: Context) -> None:
    ctx.kernel.root.on(Changed, lambda signal: None)


def leak_registration(ctx: Context) -> None:
    ctx.get(Store).names.register(ctx.kernel.root, f"name{len(ctx.get(Store).names.view(None))}", 1)


def leak_owned_task(ctx: Context) -> None:
    ctx.kernel.root.spawn(anyio.sleep_forever, name="leaked")


@pytest.mark.parametrize(
    ("leak", "line"),
    [
        (leak_thread, r"\+ thread leaked"),
        (leak_file, r"\+ open /"),
        (leak_environment, r"\+ environment LEADLINE_LEAK"),
        (leak_listener, r"\+ listener of Changed by root"),
        (leak_registration, r"\+ name name\d"),
        (leak_owned_task, r"\+ running root: leaked"),
    ],
)
async def test_each_kind_of_trace_is_found_and_named(leak: Callable[[Context], object], line: str) -> None:
    async def apply(ctx: Context, config: None) -> None:
        leak(ctx)

    try:
        with pytest.raises(AssertionError, match=line):
            await check_leaves_no_trace(Plugin("leaky", apply, needs=(Store,)), providers=[(STORE, None)])
    finally:
        while kept:
            undo = kept.pop()
            assert callable(undo)
            undo()


async def test_a_plugin_that_looks_for_a_service_without_declaring_it_depends_on_the_order() -> None:
    async def apply(ctx: Context, config: None) -> None:
        if store := ctx.find(Store):
            ctx.provide(Index, Index(store))

    with pytest.raises(AssertionError, match=r"changes what is active:\n- sly-1 provides index"):
        await check_any_mount_order([(STORE, None), (Plugin("sly", apply), None)])


async def test_a_plugin_that_keeps_an_exchanged_provider_is_caught() -> None:
    first: list[Store] = []

    async def apply(ctx: Context, config: None) -> None:
        first.append(ctx.get(Store))

        async def stale(signal: Find, call_next: Callable[[Find], Awaitable[str]]) -> str:
            return await first[0].read()

        ctx.on(Find, stale)

    with pytest.raises((AssertionError, ExceptionGroup)) as got:
        await check_provider_exchange_under_load(
            Plugin("stale", apply, needs=(Store,)), exchanged=(STORE, None), load=find
        )
    assert (
        got.group_contains(AssertionError, match="closed store")
        if isinstance(got.value, ExceptionGroup)
        else True
    )


async def test_a_plugin_whose_disposer_stops_at_a_failure_is_caught() -> None:
    async def apply(ctx: Context, config: None) -> None:
        outer = ctx.kernel.root.on(Changed, lambda signal: None)
        kept_by_hand: list[Effect] = [outer]

        async def undo() -> None:
            if ctx.effects.errors:
                return
            for effect in kept_by_hand:
                await effect.dispose()

        ctx.defer("by hand", undo)

    await check_leaves_no_trace(Plugin("brittle", apply))
    with pytest.raises(AssertionError, match="left a trace behind a disposer that fails"):
        await check_disposer_isolation(Plugin("brittle", apply))


async def test_an_error_that_is_reported_on_the_way_fails_the_check() -> None:
    async def crash() -> None:
        raise ValueError("lost")

    async def apply(ctx: Context, config: None) -> None:
        await ctx.spawn(crash, name="poller").wait()

    with pytest.raises(AssertionError, match=r"noisy: task poller: ValueError\('lost'\)"):
        await check_leaves_no_trace(Plugin("noisy", apply))
