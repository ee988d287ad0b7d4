"""How fibers start, stop and restart."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import anyio.lowlevel
import pytest

from leadline.kernel.context import Context, Kernel
from leadline.kernel.errors import (
    ConfigError,
    DuplicateService,
    FiberInactive,
    PluginFailed,
    ServiceUnavailable,
)
from leadline.kernel.fiber import State
from leadline.kernel.plugin import Plugin
from leadline.kernel.services import Service

pytestmark = pytest.mark.anyio


class Store(Service, key="store"):
    def __init__(self, name: str = "store") -> None:
        self.name = name


class Index(Service, key="index"):
    def __init__(self, store: Store | None = None) -> None:
        self.store = store


class Browser(Service, key="browser"):
    pass


class Journal:
    """What happened, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture
async def kernel() -> AsyncIterator[Kernel]:
    async with Kernel() as kernel:
        yield kernel
    assert not kernel.tasks


def store_plugin(journal: Journal, name: str = "store") -> Plugin[None]:
    async def apply(ctx: Context, config: None) -> None:
        journal(f"{name} up")
        ctx.defer("note", lambda: journal(f"{name} down"))
        ctx.provide(Store, Store(name))

    return Plugin(name, apply, provides=(Store,))


def browser_plugin() -> Plugin[None]:
    async def apply(ctx: Context, config: None) -> None:
        ctx.provide(Browser, Browser())

    return Plugin("browser", apply, provides=(Browser,))


def index_plugin(journal: Journal) -> Plugin[None]:
    async def apply(ctx: Context, config: None) -> None:
        store = ctx.get(Store)
        journal(f"index up on {store.name}")
        ctx.defer("note", lambda: journal(f"index down, sees {ctx.get(Store).name}"))

    return Plugin("index", apply, needs=(Store,))


async def test_a_plugin_starts_when_what_it_needs_appears_and_stops_before_it_disappears(
    kernel: Kernel,
) -> None:
    journal = Journal()
    index = await kernel.root.mount(index_plugin(journal))
    assert index.state is State.PENDING
    store = await kernel.root.mount(store_plugin(journal))
    await kernel.settled()
    assert index.state is State.ACTIVE
    await store.dispose()
    assert index.state is State.PENDING
    assert journal.lines == ["store up", "index up on store", "index down, sees store", "store down"]


async def test_an_exchanged_provider_reloads_those_who_depend_on_it(kernel: Kernel) -> None:
    journal = Journal()
    first = await kernel.root.mount(store_plugin(journal, "first"))
    await kernel.root.mount(index_plugin(journal))
    await first.dispose()
    await kernel.root.mount(store_plugin(journal, "second"))
    await kernel.settled()
    assert journal.lines[-2:] == ["second up", "index up on second"]
    assert journal.lines.count("index down, sees first") == 1


async def test_a_provider_that_restarts_restarts_its_dependents(kernel: Kernel) -> None:
    journal = Journal()
    store = await kernel.root.mount(store_plugin(journal))
    index = await kernel.root.mount(index_plugin(journal))
    await store.update(None)
    await kernel.settled()
    assert index.state is State.ACTIVE
    assert journal.lines == [
        "store up",
        "index up on store",
        "index down, sees store",
        "store down",
        "store up",
        "index up on store",
    ]


async def test_a_wanted_service_that_appears_reloads_and_one_that_leaves_reloads_again(
    kernel: Kernel,
) -> None:
    seen: list[str | None] = []

    async def apply(ctx: Context, config: None) -> None:
        store = ctx.find(Store)
        seen.append(store.name if store else None)

    fiber = await kernel.root.mount(Plugin("reader", apply, wants=(Store,)))
    store = await kernel.root.mount(store_plugin(Journal()))
    await kernel.settled()
    await store.dispose()
    await kernel.settled()
    assert fiber.state is State.ACTIVE
    assert seen == [None, "store", None]


async def test_two_plugins_that_want_each_other_do_not_restart_each_other_for_ever(kernel: Kernel) -> None:
    starts: list[str] = []

    async def store(ctx: Context, config: None) -> None:
        starts.append("store")
        ctx.provide(Store, Store())

    async def index(ctx: Context, config: None) -> None:
        starts.append("index")
        ctx.provide(Index, Index())

    await kernel.root.mount(Plugin("store", store, wants=(Index,), provides=(Store,)))
    await kernel.root.mount(Plugin("index", index, wants=(Store,), provides=(Index,)))
    with anyio.fail_after(5):
        await kernel.settled()
    assert starts == ["store", "index"]


async def test_a_needed_service_in_a_ring_with_a_wanted_one_does_not_restart_for_ever(kernel: Kernel) -> None:
    starts: list[str] = []

    async def store(ctx: Context, config: None) -> None:
        starts.append("store")
        ctx.provide(Store, Store())

    async def index(ctx: Context, config: None) -> None:
        starts.append("index")
        ctx.provide(Index, Index(ctx.get(Store)))

    await kernel.root.mount(Plugin("index", index, needs=(Store,), provides=(Index,)))
    await kernel.root.mount(Plugin("store", store, wants=(Index,), provides=(Store,)))
    with anyio.fail_after(5):
        await kernel.settled()
    assert starts == ["store", "index"]


async def test_a_disposal_that_lands_before_loading_runs_no_code_of_the_plugin(kernel: Kernel) -> None:
    journal = Journal()
    fiber = kernel.root.attach(store_plugin(journal))
    await fiber.dispose()
    assert fiber.state is State.DISPOSED
    assert journal.lines == []


async def test_an_unload_during_setup_interrupts_it_and_rolls_back_what_was_registered(
    kernel: Kernel,
) -> None:
    journal = Journal()
    inside = anyio.Event()

    async def apply(ctx: Context, config: None) -> None:
        ctx.defer("first", lambda: journal("first undone"))
        ctx.defer("second", lambda: journal("second undone"))
        inside.set()
        try:
            await anyio.sleep_forever()
        finally:
            journal("setup closed")

    fiber = kernel.root.attach(Plugin("slow", apply))
    await inside.wait()
    await fiber.dispose()
    assert fiber.state is State.DISPOSED
    assert journal.lines == ["setup closed", "second undone", "first undone"]
    assert not kernel.reports


async def test_a_provider_that_leaves_during_the_setup_of_a_dependent_interrupts_it(kernel: Kernel) -> None:
    journal = Journal()
    inside = anyio.Event()

    async def apply(ctx: Context, config: None) -> None:
        ctx.defer("note", lambda: journal(f"rolled back, sees {ctx.get(Store).name}"))
        inside.set()
        await anyio.sleep_forever()

    store = await kernel.root.mount(store_plugin(journal))
    fiber = kernel.root.attach(Plugin("slow", apply, needs=(Store,)))
    await inside.wait()
    await store.dispose()
    assert fiber.state is State.PENDING
    assert journal.lines == ["store up", "rolled back, sees store", "store down"]


async def test_setup_that_swallows_its_interruption_is_rolled_back_all_the_same(kernel: Kernel) -> None:
    journal = Journal()
    inside = anyio.Event()

    async def apply(ctx: Context, config: None) -> None:
        ctx.defer("note", lambda: journal("undone"))
        inside.set()
        with anyio.CancelScope() as scope:
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                scope.cancel()
                raise

    fiber = kernel.root.attach(Plugin("stubborn", apply))
    await inside.wait()
    await fiber.dispose()
    assert journal.lines == ["undone"]
    assert fiber.state is State.DISPOSED


async def test_a_failure_in_setup_is_the_fibers_state_and_leaves_nothing_behind(kernel: Kernel) -> None:
    journal = Journal()

    async def apply(ctx: Context, config: None) -> None:
        ctx.provide(Store, Store())
        ctx.defer("note", lambda: journal("undone"))
        raise ValueError("no disk")

    before = kernel.snapshot()
    broken = await kernel.root.mount(Plugin("broken", apply, provides=(Store,)))
    other = await kernel.root.mount(index_plugin(journal))
    assert broken.state is State.FAILED
    assert str(broken.error) == "no disk"
    assert journal.lines == ["undone"]
    assert other.state is State.PENDING
    assert [str(report.error) for report in kernel.reports] == ["no disk"]
    await other.dispose()
    await broken.dispose()
    assert kernel.snapshot() == before


async def test_a_failed_plugin_starts_again_after_an_update(kernel: Kernel) -> None:
    async def apply(ctx: Context, config: str) -> None:
        if config != "good":
            raise ValueError("bad config")

    def parse(raw: object) -> str:
        return str(raw["value"])  # type: ignore[index]

    fiber = await kernel.root.mount(Plugin("picky", apply, config=parse), {"value": "bad"})
    assert fiber.state is State.FAILED
    await fiber.update({"value": "good"})
    assert fiber.state is State.ACTIVE
    assert fiber.error is None


async def test_a_config_that_cannot_be_parsed_fails_this_fiber_alone_even_while_it_lacks_a_service(
    kernel: Kernel,
) -> None:
    async def apply(ctx: Context, config: None) -> None: ...

    fiber = await kernel.root.mount(Plugin("plain", apply, needs=(Browser,)), {"colour": "red"})
    other = await kernel.root.mount(store_plugin(Journal()))
    assert fiber.state is State.FAILED
    assert isinstance(fiber.error, ConfigError)
    assert "colour" in str(fiber.error)
    assert other.state is State.ACTIVE
    await kernel.root.mount(browser_plugin())
    await kernel.settled()
    assert fiber.state is State.FAILED
    assert len(kernel.reports) == 1
    await fiber.update(None)
    assert fiber.state is State.ACTIVE


async def test_an_update_that_cannot_be_parsed_leaves_the_fiber_running(kernel: Kernel) -> None:
    journal = Journal()
    fiber = await kernel.root.mount(store_plugin(journal))
    with pytest.raises(ConfigError, match="colour"):
        await fiber.update({"colour": "red"})
    assert fiber.state is State.ACTIVE
    assert journal.lines == ["store up"]


async def test_a_second_provider_in_one_realm_is_an_error_that_names_both(kernel: Kernel) -> None:
    await kernel.root.mount(store_plugin(Journal(), "first"))
    second = await kernel.root.mount(store_plugin(Journal(), "second"))
    assert second.state is State.FAILED
    assert isinstance(second.error, DuplicateService)
    assert "first" in str(second.error)
    assert "second" in str(second.error)
    assert kernel.root.get(Store).name == "first"


async def test_a_plugin_that_does_not_provide_what_it_declares_fails(kernel: Kernel) -> None:
    async def apply(ctx: Context, config: None) -> None: ...

    fiber = await kernel.root.mount(Plugin("liar", apply, provides=(Store,)))
    assert fiber.state is State.FAILED
    assert isinstance(fiber.error, PluginFailed)
    assert "'store'" in str(fiber.error)


async def test_a_service_is_not_given_out_before_its_provider_is_active_but_its_children_have_it(
    kernel: Kernel,
) -> None:
    seen: list[str] = []
    asked: list[Store | None] = []

    async def child(ctx: Context, config: None) -> None:
        seen.append(ctx.get(Store).name)

    async def parent(ctx: Context, config: None) -> None:
        waiting = await ctx.mount(Plugin("early", child, needs=(Store,)))
        assert waiting.state is State.PENDING
        ctx.provide(Store, Store())
        await ctx.mount(Plugin("child", child, needs=(Store,)))
        asked.append(kernel.root.find(Store))

    fiber = await kernel.root.mount(Plugin("parent", parent, provides=(Store,)))
    await kernel.settled()
    assert fiber.state is State.ACTIVE
    assert seen == ["store", "store"]
    assert asked == [None]
    assert kernel.root.get(Store).name == "store"


async def test_a_plugin_has_what_it_provides_itself_from_then_until_it_is_undone(kernel: Kernel) -> None:
    seen: list[str] = []

    async def apply(ctx: Context, config: None) -> None:
        ctx.provide(Store, Store("own"))
        seen.append(ctx.get(Store).name)
        ctx.defer("look", lambda: seen.append(ctx.get(Store).name))

    fiber = await kernel.root.mount(Plugin("store", apply, provides=(Store,)))
    await fiber.dispose()
    assert seen == ["own", "own"]
    assert fiber.state is State.DISPOSED
    assert not kernel.reports


async def test_the_error_for_a_missing_service_names_key_asker_provider_and_next_step(kernel: Kernel) -> None:
    with pytest.raises(
        ServiceUnavailable, match=r"'browser'.*root.*nothing mounted provides it; mount a plugin"
    ) as got:
        kernel.root.get(Browser)
    assert (got.value.key, got.value.asker) == ("browser", "root")

    async def apply(ctx: Context, config: None) -> None:
        ctx.provide(Browser, Browser())

    await kernel.root.mount(Plugin("chrome", apply, needs=(Store,), provides=(Browser,)))
    with pytest.raises(
        ServiceUnavailable, match=r"chrome would provide it, but is pending: nothing.*'store'"
    ):
        kernel.root.get(Browser)


async def test_disposing_a_parent_disposes_its_children_first(kernel: Kernel) -> None:
    journal = Journal()

    async def parent(ctx: Context, config: None) -> None:
        ctx.defer("parent", lambda: journal("parent down"))
        await ctx.mount(store_plugin(journal, "one"))
        await ctx.mount(index_plugin(journal))

    fiber = await kernel.root.mount(Plugin("parent", parent))
    await kernel.settled()
    await fiber.dispose()
    assert journal.lines == ["one up", "index up on one", "index down, sees one", "one down", "parent down"]
    assert list(kernel.fibers) == [kernel.root.fiber]


async def test_disposal_is_idempotent_and_joins_one_in_flight(kernel: Kernel) -> None:
    journal = Journal()
    go = anyio.Event()

    async def apply(ctx: Context, config: None) -> None:
        async def undo() -> None:
            journal("begun")
            await go.wait()
            journal("ended")

        ctx.defer("slow", undo)

    fiber = await kernel.root.mount(Plugin("slow", apply))

    async def dispose(name: str) -> None:
        await fiber.dispose()
        journal(name)

    async with anyio.create_task_group() as group:
        group.start_soon(dispose, "first returned")
        await anyio.wait_all_tasks_blocked()
        group.start_soon(dispose, "second returned")
        await anyio.wait_all_tasks_blocked()
        assert journal.lines == ["begun"]
        go.set()
    await fiber.dispose()
    assert journal.lines[:2] == ["begun", "ended"]
    assert sorted(journal.lines[2:]) == ["first returned", "second returned"]


async def test_cancelling_the_caller_does_not_cut_a_disposal_short(kernel: Kernel) -> None:
    journal = Journal()
    go = anyio.Event()

    async def apply(ctx: Context, config: None) -> None:
        async def undo() -> None:
            await go.wait()
            journal("ended")

        ctx.defer("slow", undo)

    fiber = await kernel.root.mount(Plugin("slow", apply))
    async with anyio.create_task_group() as group:
        group.start_soon(fiber.dispose)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
        go.set()
    assert journal.lines == ["ended"]
    assert fiber.state is State.DISPOSED


async def test_a_plugin_that_disposes_itself_during_setup_does_not_wait_for_itself(kernel: Kernel) -> None:
    journal = Journal()

    async def apply(ctx: Context, config: None) -> None:
        ctx.defer("note", lambda: journal("undone"))
        await ctx.fiber.dispose()
        journal("never reached")

    with anyio.fail_after(5):
        fiber = await kernel.root.mount(Plugin("fickle", apply))
    assert fiber.state is State.DISPOSED
    assert journal.lines == ["undone"]


async def test_a_child_that_disposes_its_parent_during_setup_does_not_wait_for_itself(kernel: Kernel) -> None:
    async def child(ctx: Context, config: None) -> None:
        assert ctx.fiber.parent is not None
        await ctx.fiber.parent.dispose()

    async def parent(ctx: Context, config: None) -> None:
        await ctx.mount(Plugin("child", child))

    with anyio.fail_after(5):
        fiber = await kernel.root.mount(Plugin("parent", parent))
    assert fiber.state is State.DISPOSED
    assert list(kernel.fibers) == [kernel.root.fiber]


async def test_an_inverse_that_disposes_its_own_fiber_does_not_wait_for_itself(kernel: Kernel) -> None:
    async def apply(ctx: Context, config: None) -> None:
        ctx.defer("again", ctx.fiber.dispose)

    fiber = await kernel.root.mount(Plugin("fickle", apply))
    with anyio.fail_after(5):
        await fiber.dispose()
    assert fiber.state is State.DISPOSED


async def test_an_owned_task_that_disposes_its_own_fiber_does_not_wait_for_itself(kernel: Kernel) -> None:
    async def apply(ctx: Context, config: None) -> None:
        ctx.spawn(ctx.fiber.dispose, name="quit")

    fiber = kernel.root.attach(Plugin("fickle", apply))
    with anyio.fail_after(5):
        while fiber.state is not State.DISPOSED:
            await anyio.lowlevel.checkpoint()
            await fiber.settled()


async def test_a_dependent_that_disposes_its_provider_does_not_wait_for_itself(kernel: Kernel) -> None:
    store = await kernel.root.mount(store_plugin(Journal()))

    async def apply(ctx: Context, config: None) -> None:
        ctx.spawn(store.dispose, name="quit")

    fiber = await kernel.root.mount(Plugin("index", apply, needs=(Store,)))
    with anyio.fail_after(5):
        while store.state is not State.DISPOSED:
            await anyio.lowlevel.checkpoint()
            await kernel.settled()
    assert fiber.state is State.PENDING


async def test_a_cancelled_mount_leaves_no_child_behind(kernel: Kernel) -> None:
    before = kernel.snapshot()

    async def apply(ctx: Context, config: None) -> None:
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(kernel.root.mount, Plugin("slow", apply))
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert kernel.snapshot() == before


async def test_a_context_of_an_earlier_activation_takes_no_more_registrations(kernel: Kernel) -> None:
    kept: list[Context] = []

    async def apply(ctx: Context, config: None) -> None:
        kept.append(ctx)

    fiber = await kernel.root.mount(Plugin("leaky", apply))
    await fiber.update(None)
    with pytest.raises(FiberInactive, match="leaky is unloading or disposed"):
        kept[0].defer("late", lambda: None)
    kept[1].defer("in time", lambda: None)


async def test_leaving_the_kernel_disposes_everything_last_in_first_out() -> None:
    journal = Journal()
    async with Kernel() as kernel:
        await kernel.root.mount(store_plugin(journal, "a"), id="a")
        await kernel.root.mount(index_plugin(journal))
        await kernel.settled()
    assert journal.lines == ["a up", "index up on a", "index down, sees a", "a down"]
    assert not kernel.tasks
    with pytest.raises(FiberInactive):
        await kernel.root.mount(index_plugin(journal))


async def test_leaving_the_kernel_restarts_nobody_who_only_wanted_what_leaves() -> None:
    starts: list[str] = []

    async def apply(ctx: Context, config: None) -> None:
        starts.append("up")

    async with Kernel() as kernel:
        await kernel.root.mount(Plugin("reader", apply, wants=(Store,)))
        await kernel.root.mount(store_plugin(Journal()))
        await kernel.settled()
        assert starts == ["up", "up"]
    assert starts == ["up", "up"]


async def test_the_kernels_body_raises_its_own_error_after_everything_was_undone() -> None:
    journal = Journal()
    with pytest.raises(ValueError, match="mine"):
        async with Kernel() as kernel:
            await kernel.root.mount(store_plugin(journal))
            raise ValueError("mine")
    assert journal.lines == ["store up", "store down"]


async def test_a_cancelled_kernel_still_undoes_in_order() -> None:
    journal = Journal()
    with anyio.CancelScope() as scope:
        async with Kernel() as kernel:
            await kernel.root.mount(store_plugin(journal))

            async def tick() -> None:
                try:
                    await anyio.sleep_forever()
                finally:
                    journal("task stopped")

            kernel.root.spawn(tick, name="tick")
            await kernel.root.mount(index_plugin(journal))
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
            await anyio.sleep_forever()
    assert journal.lines == [
        "store up",
        "index up on store",
        "index down, sees store",
        "task stopped",
        "store down",
    ]


async def test_nothing_can_be_mounted_on_a_kernel_that_is_not_entered() -> None:
    with pytest.raises(Exception, match="use `async with Kernel"):
        await Kernel().root.mount(store_plugin(Journal()))


async def test_a_private_realm_gives_a_subtree_its_own_provider(kernel: Kernel) -> None:
    journal = Journal()
    await kernel.root.mount(store_plugin(journal, "shared"))

    async def group(ctx: Context, config: None) -> None:
        await ctx.mount(store_plugin(journal, "private"))
        await ctx.mount(index_plugin(journal))

    fiber = await kernel.root.mount(Plugin("group", group), isolate={"store": True})
    await kernel.settled()
    assert "index up on private" in journal.lines
    assert kernel.root.get(Store).name == "shared"
    assert fiber.context.get(Store).name == "private"


async def test_a_named_realm_is_shared_by_those_who_name_it(kernel: Kernel) -> None:
    journal = Journal()
    await kernel.root.mount(store_plugin(journal, "tenant"), isolate={"store": "tenant"})
    inside = await kernel.root.mount(index_plugin(journal), id="inside", isolate={"store": "tenant"})
    outside = await kernel.root.mount(index_plugin(journal), id="outside")
    await kernel.settled()
    assert (inside.state, outside.state) == (State.ACTIVE, State.PENDING)


async def test_an_implementation_is_got_by_its_definition_and_by_its_own_type_when_it_is_one(
    kernel: Kernel,
) -> None:
    class DiskStore(Store):
        pass

    class MemoryStore(Store):
        pass

    kernel.root.provide(Store, DiskStore("disk"))
    assert kernel.root.get(DiskStore).name == "disk"
    with pytest.raises(ServiceUnavailable, match="as DiskStore; ask for Store"):
        kernel.root.get(MemoryStore)


async def test_a_class_without_a_key_is_refused_as_a_definition(kernel: Kernel) -> None:
    class Nameless(Service):
        pass

    with pytest.raises(Exception, match="Nameless has no service key"):
        kernel.root.find(Nameless)
