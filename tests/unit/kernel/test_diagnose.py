"""What a kernel tells about itself."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator
from types import FrameType

import pytest

from leadline.kernel.context import Context, Kernel, Report
from leadline.kernel.plugin import Plugin
from leadline.kernel.services import Service
from leadline.kernel.signals import Notice

pytestmark = pytest.mark.anyio


class Store(Service, key="store"):
    pass


class Index(Service, key="index"):
    pass


class Tick(Notice):
    pass


@pytest.fixture
async def kernel() -> AsyncIterator[Kernel]:
    async with Kernel(on_report=lambda report: None) as kernel:
        yield kernel


async def nothing(ctx: Context, config: None) -> None: ...


async def fail(ctx: Context, config: None) -> None:
    raise ValueError("disk full")


async def test_a_pending_fiber_is_named_with_what_it_lacks(kernel: Kernel) -> None:
    await kernel.root.mount(Plugin("search", nothing, needs=(Index, Store)))
    [why] = kernel.root.diagnose()
    assert (why.fiber, why.state, why.lacks) == ("search", "pending", ("index", "store"))
    assert why.reason == "inactive: needs index, store"
    assert why.missing


async def test_the_deepest_cause_is_at_the_end_of_the_chain(kernel: Kernel) -> None:
    await kernel.root.mount(Plugin("search", nothing, needs=(Index,)))
    await kernel.root.mount(Plugin("index", nothing, needs=(Store,), provides=(Index,)))
    assert [why.cause for why in kernel.root.diagnose()] == ["nothing mounted provides 'store'"] * 2
    await kernel.root.mount(Plugin("store", fail, provides=(Store,)))
    assert [str(why) for why in kernel.root.diagnose()] == [
        "search: inactive: needs index (store failed: ValueError: disk full)",
        "index: inactive: needs store (store failed: ValueError: disk full)",
        "store: failed: ValueError: disk full",
    ]
    assert not any(why.missing for why in kernel.root.diagnose())


async def test_a_provider_in_another_realm_is_no_provider(kernel: Kernel) -> None:
    async def provide(ctx: Context, config: None) -> None:
        ctx.provide(Store, Store())

    await kernel.root.mount(Plugin("store", provide, provides=(Store,)), isolate={"store": True})
    await kernel.root.mount(Plugin("search", nothing, needs=(Store,)))
    [why] = kernel.root.diagnose()
    assert why.cause == "nothing mounted provides 'store'"


async def test_an_active_kernel_has_nothing_to_diagnose(kernel: Kernel) -> None:
    await kernel.root.mount(Plugin("plain", nothing))
    assert kernel.root.diagnose() == []


async def test_two_snapshots_differ_by_what_was_registered_in_between(kernel: Kernel) -> None:
    before = kernel.snapshot()
    effect = kernel.root.on(Tick, lambda signal: None)
    after = kernel.snapshot()
    assert before.difference(after) == ["+   listener of Tick", "+ listener of Tick by root"]
    assert after.difference(before) == ["-   listener of Tick", "- listener of Tick by root"]
    await effect.dispose()
    assert kernel.snapshot() == before


async def test_a_report_goes_to_whoever_was_named_and_is_kept() -> None:
    told: list[Report] = []
    async with Kernel(on_report=told.append) as kernel:
        error = ValueError("x")
        kernel.root.report(error, "reading")
        assert told == list(kernel.reports) == [Report(error, "root: reading")]


async def test_without_a_receiver_a_report_goes_to_the_log_with_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Kernel() as kernel:
        await kernel.root.mount(Plugin("store", fail))
    [record] = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.ERROR, "plugin store: disk full")
    assert record.exc_info is not None


async def test_a_notice_that_nobody_hears_costs_one_call(kernel: Kernel) -> None:
    calls: list[str] = []
    signal, ctx = Tick(), kernel.root

    def count(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            calls.append(frame.f_code.co_name)

    sys.setprofile(count)
    try:
        ctx.notice(signal)
    finally:
        sys.setprofile(None)
    assert calls == ["notice"]


async def test_undoing_a_registration_again_does_not_touch_its_successor(kernel: Kernel) -> None:
    first = kernel.root.provide(Store, Store())
    await first.dispose()
    second = Store()
    kernel.root.provide(Store, second)
    await first.dispose()
    assert kernel.root.get(Store) is second
