"""How signals reach their listeners."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace

import anyio
import anyio.lowlevel
import pytest

from leadline.kernel.context import Context, Kernel
from leadline.kernel.errors import CallNextTwice, KernelError, ListenerGone
from leadline.kernel.fiber import Fiber
from leadline.kernel.plugin import Plugin
from leadline.kernel.scope import Scope
from leadline.kernel.signals import Around, First, Gather, Notice

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Saved(Notice):
    seq: int


@dataclass(frozen=True)
class Facts(Gather[str]):
    topic: str


@dataclass(frozen=True)
class Pick(First[str]):
    task: str


@dataclass(frozen=True)
class Ask(Around[str]):
    prompt: str


Next = Callable[[Ask], Awaitable[str]]


@pytest.fixture
async def kernel() -> AsyncIterator[Kernel]:
    async with Kernel(grace_s=0) as kernel:
        yield kernel
    assert not kernel.tasks


async def answer(ask: Ask) -> str:
    return f"<{ask.prompt}>"


async def test_a_notice_reaches_every_listener_in_order_and_one_that_raises_is_reported(
    kernel: Kernel,
) -> None:
    heard: list[str] = []

    def fail(signal: Saved) -> None:
        raise ValueError("full")

    kernel.root.on(Saved, lambda signal: heard.append(f"a{signal.seq}"))
    kernel.root.on(Saved, fail)
    kernel.root.on(Saved, lambda signal: heard.append(f"b{signal.seq}"))
    kernel.root.on(Saved, lambda signal: heard.append(f"first{signal.seq}"), prepend=True)
    kernel.root.notice(Saved(1))
    assert heard == ["first1", "a1", "b1"]
    [report] = kernel.reports
    assert (report.where, str(report.error)) == ("listener of Saved by root", "full")


async def test_an_async_listener_of_a_notice_is_reported_and_not_left_unawaited(kernel: Kernel) -> None:
    async def wrong(signal: Saved) -> None: ...

    kernel.root.on(Saved, wrong)  # type: ignore[arg-type]
    kernel.root.notice(Saved(1))
    assert "make it a plain function" in str(kernel.reports[0].error)


async def test_listeners_are_those_of_the_moment_of_dispatch(kernel: Kernel) -> None:
    heard: list[str] = []

    def add(signal: Saved) -> None:
        heard.append("old")
        kernel.root.on(Saved, lambda signal: heard.append("new"))

    kernel.root.on(Saved, add)
    kernel.root.notice(Saved(1))
    assert heard == ["old"]


async def test_a_listener_removed_during_a_dispatch_is_not_called_any_more(kernel: Kernel) -> None:
    heard: list[str] = []

    async def stop(signal: Pick) -> str | None:
        await later.dispose()
        return None

    async def late(signal: Pick) -> str | None:
        heard.append("late")
        return "late"

    kernel.root.on(Pick, stop)
    later = kernel.root.on(Pick, late)
    assert await kernel.root.first(Pick("x")) is None
    assert heard == []


async def test_gather_asks_all_at_once_and_answers_in_order_of_registration(kernel: Kernel) -> None:
    go = anyio.Event()

    async def slow(signal: Facts) -> str:
        await go.wait()
        return f"slow {signal.topic}"

    async def quick(signal: Facts) -> str:
        go.set()
        return f"quick {signal.topic}"

    kernel.root.on(Facts, slow)
    kernel.root.on(Facts, quick)
    with anyio.fail_after(5):
        assert await kernel.root.gather(Facts("sea")) == ["slow sea", "quick sea"]


async def test_gather_lets_all_end_before_it_raises_what_failed(kernel: Kernel) -> None:
    ended: list[str] = []

    async def fail(signal: Facts) -> str:
        raise ValueError("no facts")

    async def slow(signal: Facts) -> str:
        await anyio.lowlevel.checkpoint()
        ended.append("slow")
        return ""

    kernel.root.on(Facts, fail)
    kernel.root.on(Facts, slow)
    with pytest.raises(ExceptionGroup) as got:
        await kernel.root.gather(Facts("sea"))
    assert [str(error) for error in got.value.exceptions] == ["no facts"]
    assert ended == ["slow"]


async def test_first_stops_at_the_first_answer_and_false_is_one(kernel: Kernel) -> None:
    asked: list[str] = []

    async def pass_on(signal: Pick) -> str | None:
        asked.append("none")
        return None

    async def empty(signal: Pick) -> str | None:
        asked.append("empty")
        return ""

    async def never(signal: Pick) -> str | None:
        asked.append("never")
        return "never"

    for listener in (pass_on, empty, never):
        kernel.root.on(Pick, listener)
    assert await kernel.root.first(Pick("x")) == ""
    assert asked == ["none", "empty"]


async def test_without_listeners_each_mode_has_its_plain_answer(kernel: Kernel) -> None:
    kernel.root.notice(Saved(1))
    assert await kernel.root.gather(Facts("x")) == []
    assert await kernel.root.first(Pick("x")) is None
    assert await kernel.root.around(Ask("x"), answer) == "<x>"


async def test_around_wraps_in_order_of_registration_and_passes_changed_copies(kernel: Kernel) -> None:
    async def outer(ask: Ask, call_next: Next) -> str:
        return f"outer({await call_next(replace(ask, prompt=ask.prompt + '1'))})"

    async def inner(ask: Ask, call_next: Next) -> str:
        return f"inner({await call_next(replace(ask, prompt=ask.prompt + '2'))})"

    kernel.root.on(Ask, outer)
    kernel.root.on(Ask, inner)
    sent = Ask("x")
    assert await kernel.root.around(sent, answer) == "outer(inner(<x12>))"
    assert sent.prompt == "x"


async def test_not_calling_next_is_a_decision(kernel: Kernel) -> None:
    reached: list[str] = []

    async def refuse(ask: Ask, call_next: Next) -> str:
        return "refused"

    async def end(ask: Ask) -> str:
        reached.append(ask.prompt)
        return ""

    kernel.root.on(Ask, refuse)
    assert await kernel.root.around(Ask("x"), end) == "refused"
    assert reached == []


async def test_calling_next_twice_raises_and_so_does_calling_it_too_late(kernel: Kernel) -> None:
    kept: list[Next] = []
    ends: list[str] = []

    async def twice(ask: Ask, call_next: Next) -> str:
        await call_next(ask)
        return await call_next(ask)

    async def keep(ask: Ask, call_next: Next) -> str:
        kept.append(call_next)
        return "kept"

    async def end(ask: Ask) -> str:
        ends.append(ask.prompt)
        return ""

    effect = kernel.root.on(Ask, twice)
    with pytest.raises(CallNextTwice, match="listener of Ask by root"):
        await kernel.root.around(Ask("x"), end)
    assert ends == ["x"]
    await effect.dispose()
    kernel.root.on(Ask, keep)
    await kernel.root.around(Ask("y"), end)
    with pytest.raises(CallNextTwice):
        await kept[0](Ask("y"))


async def test_next_takes_nothing_but_the_signal_or_a_copy_of_it(kernel: Kernel) -> None:
    async def wrong(ask: Ask, call_next: Next) -> str:
        return await call_next("x")  # type: ignore[arg-type]

    kernel.root.on(Ask, wrong)
    with pytest.raises(KernelError, match="was given a str; pass the signal or a changed copy"):
        await kernel.root.around(Ask("x"), answer)


async def test_errors_of_around_and_first_reach_the_caller(kernel: Kernel) -> None:
    async def fail(ask: Ask, call_next: Next) -> str:
        raise ValueError("around")

    async def fail_first(pick: Pick) -> str | None:
        raise ValueError("first")

    kernel.root.on(Ask, fail)
    kernel.root.on(Pick, fail_first)
    with pytest.raises(ValueError, match="around"):
        await kernel.root.around(Ask("x"), answer)
    with pytest.raises(ValueError, match="first"):
        await kernel.root.first(Pick("x"))


async def test_a_dispatch_reaches_global_listeners_those_of_its_scope_and_of_its_ancestors(
    kernel: Kernel,
) -> None:
    preset = Scope(label="preset")
    agent, sibling = Scope(preset, "agent"), Scope(preset, "sibling")
    heard: list[str] = []
    for name, scope in (("global", None), ("preset", preset), ("agent", agent), ("sibling", sibling)):
        kernel.root.scoped(scope).on(Saved, lambda signal, name=name: heard.append(name))

    def dispatch(scope: Scope | None) -> list[str]:
        heard.clear()
        kernel.root.scoped(scope).notice(Saved(1))
        return list(heard)

    assert dispatch(None) == ["global"]
    assert dispatch(preset) == ["global", "preset"]
    assert dispatch(agent) == ["global", "preset", "agent"]
    assert dispatch(sibling) == ["global", "preset", "sibling"]


def _mount_ask(listener: Callable[[Ask, Next], Awaitable[str]]) -> Plugin[None]:
    async def apply(ctx: Context, config: None) -> None:
        ctx.on(Ask, listener)

    return Plugin("asker", apply)


async def test_an_unload_waits_for_calls_in_flight_that_end_in_time() -> None:
    go, inside = anyio.Event(), anyio.Event()
    lines: list[str] = []

    async def listener(ask: Ask, call_next: Next) -> str:
        inside.set()
        await go.wait()
        return "answered"

    async def dispose(fiber: Fiber) -> None:
        await fiber.dispose()
        lines.append("disposed")

    async def ask(kernel: Kernel) -> None:
        lines.append(await kernel.root.around(Ask("x"), answer))

    async with Kernel(grace_s=60) as kernel:
        fiber = await kernel.root.mount(_mount_ask(listener))
        async with anyio.create_task_group() as group:
            group.start_soon(ask, kernel)
            await inside.wait()
            group.start_soon(dispose, fiber)
            await anyio.wait_all_tasks_blocked()
            assert await kernel.root.around(Ask("y"), answer) == "<y>"
            go.set()
    assert lines == ["answered", "disposed"]


async def test_a_call_in_flight_that_takes_too_long_fails_by_name_and_is_not_lost(kernel: Kernel) -> None:
    lines: list[str] = []

    async def listener(ask: Ask, call_next: Next) -> str:
        try:
            await anyio.sleep_forever()
        finally:
            lines.append("stopped")
        return ""

    async def ask() -> None:
        with pytest.raises(ListenerGone, match="listener of Ask by asker was unloaded"):
            await kernel.root.around(Ask("x"), answer)
        lines.append("told")

    fiber = await kernel.root.mount(_mount_ask(listener))
    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        await fiber.dispose()
        lines.append("disposed")
    assert lines[0] == "stopped"
    assert sorted(lines) == ["disposed", "stopped", "told"]


async def test_a_listener_that_disposes_its_own_plugin_does_not_wait_for_itself(kernel: Kernel) -> None:
    async def listener(ask: Ask, call_next: Next) -> str:
        await fiber.dispose()
        return "never"

    fiber = await kernel.root.mount(_mount_ask(listener))
    with anyio.fail_after(5), pytest.raises(ListenerGone):
        await kernel.root.around(Ask("x"), answer)


async def test_cancelling_the_caller_of_a_dispatch_cancels_the_listener(kernel: Kernel) -> None:
    lines: list[str] = []

    async def listener(ask: Ask, call_next: Next) -> str:
        try:
            await anyio.sleep_forever()
        finally:
            lines.append("stopped")
        return ""

    kernel.root.on(Ask, listener)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(kernel.root.around, Ask("x"), answer)
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
    assert lines == ["stopped"]


async def test_disabling_and_enabling_a_listener_leaves_one(kernel: Kernel) -> None:
    heard: list[int] = []

    async def apply(ctx: Context, config: None) -> None:
        ctx.on(Saved, lambda signal: heard.append(signal.seq))

    fiber = await kernel.root.mount(Plugin("log", apply))
    for _ in range(3):
        await fiber.update(None)
    kernel.root.notice(Saved(7))
    assert heard == [7]
    await fiber.dispose()
    assert not kernel.listeners.table
