"""How registrations are undone."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.kernel.context import Context, Kernel
from leadline.kernel.effects import TaskHandle
from leadline.kernel.errors import FiberInactive
from leadline.kernel.fiber import State
from leadline.kernel.plugin import Plugin
from leadline.kernel.services import Service

pytestmark = pytest.mark.anyio


@pytest.fixture
async def kernel() -> AsyncIterator[Kernel]:
    async with Kernel() as kernel:
        yield kernel
    assert not kernel.tasks


async def test_effects_are_undone_last_in_first_out_one_after_the_other(kernel: Kernel) -> None:
    lines: list[str] = []

    @asynccontextmanager
    async def resource(name: str) -> AsyncGenerator[str]:
        try:
            yield name
        finally:
            lines.append(f"{name} closing")
            await anyio.lowlevel.checkpoint()
            lines.append(f"{name} closed")

    async def undo() -> None:
        lines.append("deferred begun")
        await anyio.lowlevel.checkpoint()
        lines.append("deferred ended")

    async with kernel.root.subcontext("work") as ctx:
        assert await ctx.effect("a", resource("a")) == "a"
        ctx.defer("deferred", undo)
        await ctx.effect("b", resource("b"))
    assert lines == ["b closing", "b closed", "deferred begun", "deferred ended", "a closing", "a closed"]


async def test_every_inverse_runs_whatever_fails_and_the_failures_are_reported_together(
    kernel: Kernel,
) -> None:
    lines: list[str] = []

    def fail(name: str) -> None:
        lines.append(name)
        raise ValueError(name)

    @asynccontextmanager
    async def broken() -> AsyncGenerator[None]:
        yield
        fail("cm")

    ctx = kernel.root.subcontext("work")
    ctx.defer("first", lambda: fail("first"))
    ctx.defer("second", lambda: lines.append("second"))
    await ctx.effect("cm", broken())
    ctx.defer("third", lambda: fail("third"))
    await ctx.dispose()
    assert lines == ["third", "cm", "second", "first"]
    [report] = kernel.reports
    assert isinstance(report.error, ExceptionGroup)
    assert [str(error) for error in report.error.exceptions] == ["third", "cm", "first"]
    assert report.error.exceptions[0].__notes__ == ["while undoing 'third' of 'root/work'"]


async def test_an_effect_that_cannot_be_entered_raises_to_the_caller_and_leaves_nothing(
    kernel: Kernel,
) -> None:
    @asynccontextmanager
    async def broken() -> AsyncGenerator[None]:
        raise ValueError("no port")
        yield

    before = kernel.snapshot()
    with pytest.raises(ValueError, match="no port"):
        await kernel.root.effect("server", broken())
    assert kernel.snapshot() == before
    assert not kernel.reports


async def test_a_task_group_may_be_an_effect_though_it_is_left_from_elsewhere(kernel: Kernel) -> None:
    lines: list[str] = []

    async def tick() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            lines.append("stopped")

    @asynccontextmanager
    async def group() -> AsyncGenerator[anyio.abc.TaskGroup]:
        async with anyio.create_task_group() as tasks:
            yield tasks
            tasks.cancel_scope.cancel()

    ctx = kernel.root.subcontext("work")
    with anyio.fail_after(5):
        tasks = await ctx.effect("group", group())
    tasks.start_soon(tick)
    await anyio.wait_all_tasks_blocked()
    async with anyio.create_task_group() as elsewhere:
        elsewhere.start_soon(ctx.dispose)
    assert lines == ["stopped"]


async def test_an_effect_that_dies_early_is_reported_and_forgotten(kernel: Kernel) -> None:
    die = anyio.Event()

    async def crash() -> None:
        await die.wait()
        raise ValueError("socket lost")

    before = kernel.snapshot()
    tasks = await kernel.root.effect("server", anyio.create_task_group())
    tasks.start_soon(crash)
    die.set()
    await anyio.wait_all_tasks_blocked()
    assert kernel.snapshot() == before
    [report] = kernel.reports
    assert report.where == "root: server ended early"


async def test_a_caller_cancelled_while_entering_has_the_context_manager_closed(kernel: Kernel) -> None:
    lines: list[str] = []

    @asynccontextmanager
    async def slow() -> AsyncGenerator[None]:
        try:
            lines.append("entering")
            await anyio.sleep_forever()
            yield
        finally:
            lines.append("closed")

    before = kernel.snapshot()
    async with anyio.create_task_group() as group:
        group.start_soon(kernel.root.effect, "slow", slow())
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert lines == ["entering", "closed"]
    assert kernel.snapshot() == before


async def test_an_unload_while_entering_closes_the_context_manager_and_tells_the_caller(
    kernel: Kernel,
) -> None:
    lines: list[str] = []

    @asynccontextmanager
    async def slow() -> AsyncGenerator[None]:
        try:
            await anyio.sleep_forever()
            yield
        finally:
            lines.append("closed")

    ctx = kernel.root.subcontext("work")

    async def enter() -> None:
        with pytest.raises(FiberInactive, match="root/work was unloaded while it entered 'slow'"):
            await ctx.effect("slow", slow())
        lines.append("told")

    async with anyio.create_task_group() as group:
        group.start_soon(enter)
        await anyio.wait_all_tasks_blocked()
        await ctx.dispose()
    assert lines == ["closed", "told"]


async def test_a_context_manager_that_disposes_its_owner_on_leaving_does_not_wait_for_itself(
    kernel: Kernel,
) -> None:
    ctx = kernel.root.subcontext("work")

    @asynccontextmanager
    async def curious() -> AsyncGenerator[None]:
        yield
        await ctx.dispose()

    await ctx.effect("curious", curious())
    with anyio.fail_after(5):
        await ctx.dispose()


async def test_nothing_is_registered_while_its_owner_unloads_or_after(kernel: Kernel) -> None:
    refused: list[str] = []

    async def nothing() -> None: ...

    async def undo() -> None:
        for register in (
            lambda: ctx.defer("late", lambda: None),
            lambda: ctx.spawn(nothing, name="late"),
            lambda: ctx.subcontext("late"),
            lambda: ctx.attach(Plugin("late", lambda ctx, config: nothing())),
        ):
            try:
                register()
            except FiberInactive as error:
                refused.append(str(error))

    before = kernel.snapshot()
    ctx = kernel.root.subcontext("work")
    ctx.defer("try", undo)
    await ctx.dispose()
    assert len(refused) == 4
    assert "root/work is unloading or disposed" in refused[0]
    with pytest.raises(FiberInactive):
        await ctx.effect("late", anyio.create_task_group())
    assert kernel.snapshot() == before


async def test_one_registration_can_be_undone_early_and_only_once(kernel: Kernel) -> None:
    lines: list[str] = []
    ctx = kernel.root.subcontext("work")
    effect = ctx.defer("early", lambda: lines.append("undone"))
    await effect.dispose()
    await effect.dispose()
    await ctx.dispose()
    assert lines == ["undone"]


async def test_an_inverse_that_fails_when_undone_early_is_reported_once(kernel: Kernel) -> None:
    def fail() -> None:
        raise ValueError("stuck")

    ctx = kernel.root.subcontext("work")
    await ctx.defer("early", fail).dispose()
    await ctx.dispose()
    assert [report.where for report in kernel.reports] == ["root/work: undoing early"]


async def test_unloading_waits_for_a_registration_that_is_being_undone_already(kernel: Kernel) -> None:
    lines: list[str] = []
    go = anyio.Event()

    async def slow() -> None:
        await go.wait()
        lines.append("slow undone")

    ctx = kernel.root.subcontext("work")
    ctx.defer("first", lambda: lines.append("first undone"))
    effect = ctx.defer("slow", slow)
    async with anyio.create_task_group() as group:
        group.start_soon(effect.dispose)
        group.start_soon(ctx.dispose)
        await anyio.wait_all_tasks_blocked()
        assert lines == []
        go.set()
    assert lines == ["slow undone", "first undone"]


async def test_an_owned_task_is_cancelled_and_joined_at_unload(kernel: Kernel) -> None:
    lines: list[str] = []

    async def work(word: str) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            lines.append(word)

    ctx = kernel.root.subcontext("work")
    handle = ctx.spawn(work, "stopped", name="worker")
    await anyio.wait_all_tasks_blocked()
    await ctx.dispose()
    assert lines == ["stopped"]
    assert handle.done


async def test_a_task_that_raises_is_reported_with_its_owners_name_and_kills_nobody(kernel: Kernel) -> None:
    async def crash() -> None:
        raise ValueError("lost")

    async def apply(ctx: Context, config: None) -> None:
        ctx.spawn(crash, name="poller")

    fiber = await kernel.root.mount(Plugin("weather", apply))
    await anyio.wait_all_tasks_blocked()
    assert fiber.state is State.ACTIVE
    [report] = kernel.reports
    assert (report.where, str(report.error)) == ("weather: task poller", "lost")


async def test_a_task_that_ended_leaves_no_registration_behind(kernel: Kernel) -> None:
    async def quick() -> None: ...

    before = kernel.snapshot()
    handle = kernel.root.spawn(quick, name="quick")
    await handle.wait()
    assert kernel.snapshot() == before
    assert handle.error is None


async def test_a_task_can_be_cancelled_alone(kernel: Kernel) -> None:
    handle = kernel.root.spawn(anyio.sleep_forever, name="idle")
    handle.cancel()
    with anyio.fail_after(5):
        await handle.wait()
    assert not kernel.reports


async def test_stopping_a_task_returns_when_it_has_stopped(kernel: Kernel) -> None:
    lines: list[str] = []

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            lines.append("stopped")

    handle = kernel.root.spawn(work, name="worker")
    await anyio.wait_all_tasks_blocked()
    await handle.stop()
    assert lines == ["stopped"]
    assert handle.done


async def test_a_task_is_not_cut_off_by_the_scope_of_whoever_spawned_it(kernel: Kernel) -> None:
    lines: list[str] = []
    go = anyio.Event()

    async def work() -> None:
        await go.wait()
        lines.append("done")

    handles: list[TaskHandle] = []
    async with anyio.create_task_group() as group:
        handles.append(kernel.root.spawn(work, name="worker"))
        group.cancel_scope.cancel()
    go.set()
    await handles[0].wait()
    assert lines == ["done"]


async def test_a_subcontext_ends_before_its_owner_and_with_it_at_the_latest(kernel: Kernel) -> None:
    lines: list[str] = []

    async def apply(ctx: Context, config: None) -> None:
        ctx.defer("outer", lambda: lines.append("outer"))
        early, late = ctx.subcontext("early"), ctx.subcontext("late")
        early.defer("early", lambda: lines.append("early"))
        late.defer("late", lambda: lines.append("late"))
        await early.dispose()
        lines.append("applied")

    fiber = await kernel.root.mount(Plugin("agents", apply))
    await fiber.dispose()
    assert lines == ["early", "applied", "late", "outer"]


async def test_a_plugin_mounted_on_a_subcontext_lives_as_long_as_it(kernel: Kernel) -> None:
    class Note(Service, key="note"):
        pass

    async def apply(ctx: Context, config: None) -> None:
        ctx.provide(Note, Note())

    async with kernel.root.subcontext("agent") as ctx:
        fiber = await ctx.mount(Plugin("note", apply, provides=(Note,)))
        assert kernel.root.find(Note) is not None
    assert fiber.state is State.DISPOSED
    assert kernel.root.find(Note) is None


async def test_the_tree_shows_every_registration_under_its_owner(kernel: Kernel) -> None:
    async def apply(ctx: Context, config: None) -> None:
        ctx.defer("temp file", lambda: None)
        ctx.subcontext("agent a1").defer("tool read", lambda: None)
        ctx.spawn(anyio.sleep_forever, name="ticker")

    await kernel.root.mount(Plugin("demo", apply))
    assert kernel.root.tree().splitlines() == [
        "root [active]",
        "  demo [active]",
        "    temp file",
        "    context agent a1",
        "      tool read",
        "    task ticker",
    ]


@given(plan=st.lists(st.tuples(st.sampled_from(["defer", "cm", "task", "sub"]), st.booleans()), max_size=12))
@settings(max_examples=60, deadline=None)
def test_whatever_was_registered_in_whatever_order_is_undone_in_reverse(plan: list[tuple[str, bool]]) -> None:
    undone: list[int] = []

    async def register(ctx: Context, place: int, kind: str, fails: bool) -> None:
        def undo() -> None:
            undone.append(place)
            if fails:
                raise ValueError(place)

        @asynccontextmanager
        async def cm() -> AsyncGenerator[None]:
            yield
            undo()

        async def task() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                undo()

        if kind == "defer":
            ctx.defer(str(place), undo)
        elif kind == "cm":
            await ctx.effect(str(place), cm())
        elif kind == "sub":
            ctx.subcontext(str(place)).defer(str(place), undo)
        else:
            ctx.spawn(task, name=str(place))
            await anyio.wait_all_tasks_blocked()

    async def main() -> None:
        async with Kernel(on_report=lambda report: None) as kernel:
            before = kernel.snapshot()
            async with kernel.root.subcontext("work") as ctx:
                for place, (kind, fails) in enumerate(plan):
                    await register(ctx, place, kind, fails)
            assert kernel.snapshot() == before

    anyio.run(main)
    assert undone == list(reversed(range(len(plan))))
