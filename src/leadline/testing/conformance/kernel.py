"""Checks on a plugin's manners: it leaves no trace, needs no order, survives exchange and its own disposers.

Each takes any plugin and, as (plugin, config) pairs, what that plugin needs, and runs a kernel of
its own. They raise AssertionError with what is not as it should be.
"""

from __future__ import annotations

import gc
import os
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from itertools import permutations
from pathlib import Path
from traceback import format_exception

import anyio
import anyio.lowlevel

from leadline.kernel.context import Context, Kernel, Report
from leadline.kernel.diagnose import explain
from leadline.kernel.errors import LeadlineError
from leadline.kernel.fiber import Fiber, State
from leadline.kernel.plugin import Mountable

Mounting = tuple[Mountable, object]
"""A plugin and its config: a mapping, a ready value, or None for the defaults."""


async def check_leaves_no_trace(
    plugin: Mountable, config: object = None, *, providers: Sequence[Mounting] = (), times: int = 3
) -> None:
    """Mounting and unmounting leaves services, listeners, registries, tasks, threads, open files,
    working directory and environment as they were.

    The first round is not compared: it may import modules and fill caches.
    """
    reports: list[Report] = []
    async with Kernel(on_report=reports.append) as kernel:
        await _mount_all(kernel, providers)
        await _mount_and_dispose(kernel, plugin, config)
        before = _observe(kernel)
        for _ in range(times):
            await _mount_and_dispose(kernel, plugin, config)
        _equal(before, _observe(kernel), f"{plugin.name} left a trace")
    _silent(reports)


async def check_any_mount_order(plugins: Sequence[Mounting]) -> None:
    """The plugins settle into the same active set and the same services in whatever order they are mounted.

    All orders of up to four plugins are tried, else every rotation forwards and backwards.
    """
    first: Counter[str] | None = None
    for order in _orders(len(plugins)):
        reports: list[Report] = []
        async with Kernel(on_report=reports.append) as kernel:
            for place in order:
                plugin, config = plugins[place]
                await kernel.root.mount(plugin, config, id=f"{plugin.name}-{place}")
            await kernel.settled()
            found = Counter(f"{fiber.path} is {fiber.state.value}" for fiber in kernel.fibers)
            found += Counter(
                f"{it.fiber.path} provides {it.definition.service_key}" for it in kernel.provisions
            )
        _silent(reports)
        first = first or found
        _equal(first, found, f"the order {order} of mounting changes what is active")


async def check_provider_exchange_under_load(
    plugin: Mountable,
    config: object = None,
    *,
    exchanged: Mounting,
    load: Callable[[Context], Awaitable[object]],
    providers: Sequence[Mounting] = (),
    rounds: int = 5,
    callers: int = 4,
) -> None:
    """While one of its providers is exchanged again and again, every call through the plugin is
    answered or fails by name, and afterwards the plugin works and holds no more than before.

    `load` makes one call, with the root context. It may raise a LeadlineError while the exchange is on.
    """
    reports: list[Report] = []
    async with Kernel(on_report=reports.append) as kernel:
        await _mount_all(kernel, providers)
        await kernel.root.mount(exchanged[0], exchanged[1], id="exchanged")
        fiber = await kernel.root.mount(plugin, config)
        await kernel.settled()
        _active(fiber)
        await load(kernel.root)
        before = _observe(kernel)
        over = False

        async def call() -> None:
            while not over:
                with suppress(LeadlineError):
                    await load(kernel.root)
                await anyio.lowlevel.checkpoint()

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for _ in range(callers):
                    group.start_soon(call)
                for _ in range(rounds):
                    provider = next(it for it in kernel.fibers if it.id == "exchanged")
                    await provider.dispose()
                    await anyio.lowlevel.checkpoint()
                    await kernel.root.mount(exchanged[0], exchanged[1], id="exchanged")
                    await kernel.settled()
                over = True
        _active(fiber)
        await load(kernel.root)
        _equal(
            before, _observe(kernel), f"{plugin.name} holds something else after its provider was exchanged"
        )
    _silent(reports)


async def check_disposer_isolation(
    plugin: Mountable, config: object = None, *, providers: Sequence[Mounting] = ()
) -> None:
    """A disposer that fails keeps none of the plugin's others from running, and is reported once."""
    reports: list[Report] = []
    marker = "a disposer that fails"

    def fail() -> None:
        raise LeadlineError(marker)

    async with Kernel(on_report=reports.append) as kernel:
        await _mount_all(kernel, providers)
        await _mount_and_dispose(kernel, plugin, config)
        before = _observe(kernel)
        fiber = await kernel.root.mount(plugin, config)
        await kernel.settled()
        _active(fiber)
        fiber.context.defer(marker, fail)
        await fiber.dispose()
        _equal(before, _observe(kernel), f"{plugin.name} left a trace behind {marker}")
    told = [it for it in reports if marker in "".join(format_exception(it.error))]
    if len(told) != 1:
        raise AssertionError(f"{marker} was reported {len(told)} times: {reports}")
    _silent([it for it in reports if it is not told[0]])


async def _mount_all(kernel: Kernel, mountings: Sequence[Mounting]) -> None:
    for plugin, config in mountings:
        await kernel.root.mount(plugin, config)
    await kernel.settled()


async def _mount_and_dispose(kernel: Kernel, plugin: Mountable, config: object) -> None:
    fiber = await kernel.root.mount(plugin, config)
    await kernel.settled()
    _active(fiber)
    await fiber.dispose()


def _orders(count: int) -> Iterator[tuple[int, ...]]:
    if count <= 4:
        yield from permutations(range(count))
        return
    forwards = tuple(range(count))
    for line in (forwards, forwards[::-1]):
        yield from (line[start:] + line[:start] for start in forwards)


def _observe(kernel: Kernel) -> Counter[str]:
    """What can be left behind, in lines."""
    gc.collect()
    lines = list(kernel.snapshot().lines)
    # Worker threads of anyio and asyncio are pooled and idle; they belong to nobody.
    pooled = ("AnyIO worker thread", "asyncio_")
    lines += [f"thread {it.name}" for it in threading.enumerate() if not it.name.startswith(pooled)]
    lines += [f"task {it.name}" for it in anyio.get_running_tasks()]
    lines += [f"open {target}" for target in _open_files()]
    lines += [f"environment {key}={value}" for key, value in os.environ.items()]
    lines.append(f"working directory {Path.cwd()}")
    return Counter(lines)


def _open_files() -> list[str]:
    """What this process has open, where the system tells it; numbered things by kind."""
    found: list[str] = []
    folder = Path("/proc/self/fd")
    for entry in folder.iterdir() if folder.is_dir() else ():
        # The descriptor that lists the folder is gone when it is read.
        with suppress(OSError):
            found.append(str(entry.readlink()).partition(":[")[0])
    return [target for target in found if not target.endswith("/fd")]


def _active(fiber: Fiber) -> None:
    if fiber.state is not State.ACTIVE:
        raise AssertionError(f"not active: {explain(fiber)}; pass what it needs as providers")


def _equal(before: Counter[str], after: Counter[str], what: str) -> None:
    more = [f"+ {line}" for line in (after - before).elements()]
    less = [f"- {line}" for line in (before - after).elements()]
    if more or less:
        raise AssertionError(f"{what}:\n" + "\n".join(more + less))


def _silent(reports: Sequence[Report]) -> None:
    if reports:
        raise AssertionError(
            "errors were reported:\n" + "\n".join(f"{it.where}: {it.error!r}" for it in reports)
        )
