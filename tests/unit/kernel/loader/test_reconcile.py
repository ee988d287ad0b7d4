"""How rows are booted and reloaded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.kernel.context import Context, Kernel
from leadline.kernel.errors import BootFailed, ConfigError, ListenerGone, ReloadFailed
from leadline.kernel.fiber import State
from leadline.kernel.loader.compose import Composition, Layer, compose
from leadline.kernel.loader.reconcile import Changes, Reloader, boot
from leadline.kernel.plugin import Mountable, Plugin
from leadline.kernel.services import Service
from leadline.kernel.signals import Around, Notice

pytestmark = pytest.mark.anyio


class Store(Service, key="store"):
    def __init__(self, path: str) -> None:
        self.path = path


class Index(Service, key="index"):
    pass


class Browser(Service, key="browser"):
    pass


@dataclass(frozen=True)
class TurnEnded(Notice):
    pass


@dataclass(frozen=True)
class Ask(Around[str]):
    prompt: str


class World:
    """Plugins for rows to name, and what they did."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.ticking = 0
        self.plugins: dict[str, Mountable] = {
            "store": Plugin("store", self.store, config=self.parse, provides=(Store,)),
            "index": Plugin("index", self.index, config=self.parse, needs=(Store,), provides=(Index,)),
            "search": Plugin("search", self.search, config=self.parse, needs=(Index,)),
            "browse": Plugin("browse", self.search, config=self.parse, needs=(Browser,)),
            "chrome": Plugin("chrome", self.chrome, provides=(Browser,)),
            "timer": Plugin("timer", self.timer, config=self.parse),
            "answer": Plugin("answer", self.answer, config=self.parse),
            "pinned": Plugin("pinned", self.search, config=self.parse, requires="leadline==9.9.9"),
        }

    def resolve(self, target: str) -> Mountable:
        if target not in self.plugins:
            raise ConfigError(f"no plugin {target}")
        return self.plugins[target]

    @staticmethod
    def parse(raw: Mapping[str, object]) -> dict[str, object]:
        if "typo" in raw:
            raise ConfigError("unknown key 'typo'")
        return dict(raw)

    def came(self, ctx: Context, config: Mapping[str, object]) -> None:
        self.lines.append(f"{ctx.fiber.id} up {dict(config)}" if config else f"{ctx.fiber.id} up")
        ctx.defer("note", lambda: self.lines.append(f"{ctx.fiber.id} down"))
        if config.get("fail"):
            raise ValueError(str(config["fail"]))

    async def store(self, ctx: Context, config: dict[str, object]) -> None:
        self.came(ctx, config)
        ctx.provide(Store, Store(str(config.get("path", "/tmp"))))

    async def index(self, ctx: Context, config: dict[str, object]) -> None:
        self.came(ctx, config)
        ctx.provide(Index, Index())

    async def search(self, ctx: Context, config: dict[str, object]) -> None:
        self.came(ctx, config)

    async def chrome(self, ctx: Context, config: None) -> None:
        ctx.provide(Browser, Browser())

    async def timer(self, ctx: Context, config: dict[str, object]) -> None:
        async def tick() -> None:
            self.ticking += 1
            try:
                await anyio.sleep_forever()
            finally:
                self.ticking -= 1

        ctx.on(TurnEnded, lambda signal: self.lines.append(f"heard {config}"))
        ctx.spawn(tick, name="timer")

    async def answer(self, ctx: Context, config: dict[str, object]) -> None:
        async def listener(ask: Ask, call_next: Callable[[Ask], Awaitable[str]]) -> str:
            self.lines.append("asked")
            await anyio.sleep_forever()
            return ""

        ctx.on(Ask, listener)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def kernel() -> AsyncIterator[Kernel]:
    async with Kernel(on_report=lambda report: None, grace_s=0) as kernel:
        yield kernel
    assert not kernel.tasks


def rows(text: str) -> Composition:
    return compose([Layer("rows.yml", text)])


CHAIN = "- {id: store, plugin: store}\n- {id: index, plugin: index}\n- {id: search, plugin: search}\n"


async def start(
    kernel: Kernel, world: World, text: str, environ: Mapping[str, str] | None = None
) -> Reloader:
    return await boot(kernel.root, rows(text), resolve=world.resolve, environ=environ or {})


def states(reloader: Reloader) -> dict[str, str]:
    return {key: fiber.state.value for key, fiber in reloader.fibers.items()}


@given(order=st.permutations(CHAIN.strip().splitlines()))
@settings(max_examples=12, deadline=None)
def test_rows_in_any_order_start_each_plugin_once_and_in_the_order_of_their_needs(order: list[str]) -> None:
    async def main() -> None:
        world = World()
        async with Kernel() as kernel:
            await start(kernel, world, "\n".join(order))
            assert world.lines == ["store up", "index up", "search up"]
        assert world.lines[3:] == ["search down", "index down", "store down"]

    anyio.run(main)


async def test_groups_hold_their_rows_and_their_realm(kernel: Kernel, world: World) -> None:
    reloader = await start(
        kernel,
        world,
        """
- {id: store, plugin: store, config: {path: shared}}
- id: tenant
  isolate: {store: true, index: true}
  rows:
    - {id: tenant-index, plugin: index}
    - {id: tenant-store, plugin: store, config: {path: private}}
- {id: index, plugin: index}
""",
    )
    assert set(states(reloader).values()) == {"active"}
    assert reloader.fibers["tenant-index"].path == "tenant/tenant-index"
    assert reloader.fibers["tenant-index"].context.get(Store).path == "private"
    assert reloader.fibers["index"].context.get(Store).path == "shared"


@pytest.mark.case("G03")
async def test_a_row_that_needs_what_nobody_offers_is_inactive_and_starts_when_it_is_offered(
    kernel: Kernel, world: World
) -> None:
    reloader = await start(kernel, world, "- {id: browse, plugin: browse}\n- {id: store, plugin: store}")
    [why] = reloader.inactive
    assert why.reason == "inactive: needs browser"
    assert str(why) == "browse: inactive: needs browser (nothing mounted provides 'browser')"
    assert states(reloader) == {"browse": "pending", "store": "active"}
    await kernel.root.mount(world.plugins["chrome"])
    await kernel.settled()
    assert reloader.fibers["browse"].state is State.ACTIVE
    assert reloader.inactive == []


async def test_a_failed_row_fails_the_boot_by_its_deepest_cause_after_the_others_were_tried(
    kernel: Kernel, world: World
) -> None:
    with pytest.raises(BootFailed) as got:
        await start(
            kernel,
            world,
            CHAIN.replace("plugin: store", "plugin: store, config: {fail: disk full}")
            + "- {id: timer, plugin: timer}",
        )
    assert got.value.causes == (
        "rows.yml:1: store: failed: ValueError: disk full",
        "rows.yml:2: index: inactive: needs store (store failed: ValueError: disk full)",
        "rows.yml:3: search: inactive: needs index (store failed: ValueError: disk full)",
    )
    assert world.ticking == 1


async def test_a_ring_of_needs_is_named_as_such(kernel: Kernel, world: World) -> None:
    async def apply(ctx: Context, config: None) -> None: ...

    world.plugins["a"] = Plugin("a", apply, needs=(Store,), provides=(Browser,))
    world.plugins["b"] = Plugin("b", apply, needs=(Browser,), provides=(Store,))
    with pytest.raises(BootFailed, match=r"a: inactive: needs store \(a cycle of needs: a -> b -> a\)"):
        await start(kernel, world, "- {id: a, plugin: a}\n- {id: b, plugin: b}")


async def test_an_optional_row_may_fail(kernel: Kernel, world: World) -> None:
    reloader = await start(
        kernel,
        world,
        "- {id: store, plugin: store, optional: true, config: {fail: x}}\n- {id: t, plugin: timer}",
    )
    assert states(reloader) == {"store": "failed", "t": "active"}
    assert "failed: ValueError: x" in str(reloader.inactive[0])


@pytest.mark.case("G05")
async def test_a_pin_to_another_version_fails_this_plugin_alone_with_wanted_and_present(
    kernel: Kernel, world: World
) -> None:
    text = "- {id: store, plugin: store}\n- {id: pin, plugin: search, requires: 'anyio==9.9.9'}\n- {id: own, plugin: pinned}\n"
    with pytest.raises(BootFailed) as got:
        await start(kernel, world, text)
    by_row, by_plugin = got.value.causes
    assert "rows.yml:2: requires anyio==9.9.9, present is anyio 4" in by_row
    assert "requires leadline==9.9.9" in by_plugin
    assert world.lines == ["store up"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{id: x, plugin: nothere}", "rows.yml:1: no plugin nothere"),
        ("{id: x, plugin: store, config: {typo: 1}}", "unknown key 'typo'"),
        (
            "{id: x, plugin: store, config: {path: !env NOT_SET}}",
            "the environment variable NOT_SET is not set",
        ),
        (
            "{id: x, plugin: timer, config: {path: !ref home.path}}",
            "nothing here provides the service 'home'",
        ),
    ],
)
async def test_a_row_that_cannot_be_prepared_fails_alone(
    kernel: Kernel, world: World, row: str, message: str
) -> None:
    with pytest.raises(BootFailed) as got:
        await start(kernel, world, f"- {row}\n- {{id: t, plugin: timer}}")
    assert len(got.value.causes) == 1
    assert message in got.value.causes[0]
    assert "rows.yml:1" in got.value.causes[0]
    assert world.ticking == 1


async def test_a_reference_to_a_service_makes_it_a_need_and_is_read_when_the_plugin_starts(
    kernel: Kernel, world: World
) -> None:
    await start(
        kernel,
        world,
        "- {id: t, plugin: browse, optional: true, config: {at: !ref store.path}}\n"
        "- {id: chrome, plugin: chrome}\n- {id: store, plugin: store, config: {path: /data}}",
    )
    assert world.lines[-1] == "t up {'at': '/data'}"


async def test_a_reference_with_a_default_follows_the_service_and_falls_back(
    kernel: Kernel, world: World
) -> None:
    text = "- {id: chrome, plugin: chrome}\n- {id: t, plugin: browse, config: {at: !ref {name: store.path, default: none}}}\n"
    reloader = await start(kernel, world, text)
    assert world.lines == ["t up {'at': 'none'}"]
    await reloader.reload(rows(text + "- {id: store, plugin: store, config: {path: /data}}"))
    assert world.lines[-1] == "t up {'at': '/data'}"
    await reloader.reload(rows(text))
    assert world.lines[-3:] == ["t down", "t up {'at': 'none'}", "store down"]


async def test_a_reference_to_a_field_that_is_not_there_fails_the_row(kernel: Kernel, world: World) -> None:
    with pytest.raises(BootFailed, match=r"rows.yml:2: !ref store.pth: the service 'store' has no 'pth'"):
        await start(
            kernel,
            world,
            "- {id: store, plugin: store}\n- {id: i, plugin: index, config: {x: !ref store.pth}}",
        )


async def test_a_reload_touches_only_the_rows_that_differ(kernel: Kernel, world: World) -> None:
    reloader = await start(kernel, world, CHAIN + "- {id: a, plugin: timer}")
    world.lines.clear()
    changes = await reloader.reload(
        rows(
            CHAIN.replace("plugin: search", "plugin: search, config: {deep: true}")
            + "- {id: b, plugin: timer}"
        )
    )
    assert changes == Changes(added=("b",), removed=("a",), changed=("search",))
    assert world.lines == ["search down", "search up {'deep': True}"]
    assert world.ticking == 1


async def test_a_reload_of_a_provider_restarts_those_who_depend_on_it(kernel: Kernel, world: World) -> None:
    reloader = await start(kernel, world, CHAIN)
    world.lines.clear()
    await reloader.reload(rows(CHAIN.replace("plugin: store", "plugin: store, config: {path: /new}")))
    assert world.lines == [
        "search down",
        "index down",
        "store down",
        "store up {'path': '/new'}",
        "index up",
        "search up",
    ]


async def test_another_plugin_or_realm_or_group_remounts_the_row(kernel: Kernel, world: World) -> None:
    reloader = await start(kernel, world, CHAIN)
    first = reloader.fibers["search"]
    await reloader.reload(rows(CHAIN.replace("plugin: search", "plugin: timer")))
    assert first.state is State.DISPOSED
    grouped = "- {id: store, plugin: store}\n- {id: g, rows: [{id: index, plugin: index}]}"
    changes = await reloader.reload(rows(grouped))
    assert changes == Changes(added=("g",), removed=("search",), changed=("index",))
    assert reloader.fibers["index"].path == "g/index"
    isolated = grouped.replace("id: g,", "id: g, isolate: {store: true},")
    await reloader.reload(rows(isolated))
    assert [str(why) for why in reloader.inactive] == [
        "g/index: inactive: needs store (nothing mounted provides 'store')"
    ]


@pytest.mark.parametrize(
    "bad",
    [
        "- {id: x, plugin: nothere}",
        "- {id: x, plugin: timer, config: {typo: 1}}",
        "- {id: x, plugin: timer, config: {a: !env NOT_SET}}",
        "- {id: x, plugin: timer, requires: 'anyio>99'}",
        "- {id: x, plugin: timer, config: {a: !ref nowhere.x}}",
    ],
)
async def test_a_reload_that_cannot_be_prepared_is_refused_and_stops_nothing(
    kernel: Kernel, world: World, bad: str
) -> None:
    reloader = await start(kernel, world, CHAIN)
    world.lines.clear()
    before = kernel.snapshot()
    with pytest.raises(ReloadFailed, match=r"reload refused, nothing was changed: rows.yml:1: "):
        await reloader.reload(rows(bad))
    assert world.lines == []
    assert kernel.snapshot() == before
    assert reloader.current == rows(CHAIN)


async def test_a_reload_whose_rows_fail_to_start_is_undone(kernel: Kernel, world: World) -> None:
    text = CHAIN + "- {id: old, plugin: timer}\n"
    reloader = await start(kernel, world, text)
    before = kernel.snapshot()
    with pytest.raises(
        ReloadFailed, match=r"the former rows run again:\n  rows.yml:1: store: failed: ValueError: disk"
    ):
        await reloader.reload(
            rows(
                CHAIN.replace("plugin: store", "plugin: store, config: {fail: disk}")
                + "- {id: new, plugin: timer}"
            )
        )
    assert set(states(reloader).values()) == {"active"}
    assert kernel.snapshot() == before
    assert world.ticking == 1
    assert world.lines[-3:] == ["store up", "index up", "search up"]
    assert reloader.current == rows(text)
    await reloader.reload(rows(CHAIN))
    assert world.ticking == 0


async def test_a_cancelled_reload_puts_the_former_rows_back(kernel: Kernel, world: World) -> None:
    inside = anyio.Event()

    async def hang(ctx: Context, config: None) -> None:
        inside.set()
        await anyio.sleep_forever()

    world.plugins["hang"] = Plugin("hang", hang)
    reloader = await start(kernel, world, CHAIN)
    before = kernel.snapshot()
    async with anyio.create_task_group() as group:
        group.start_soon(reloader.reload, rows("- {id: hang, plugin: hang}"))
        await inside.wait()
        group.cancel_scope.cancel()
    assert kernel.snapshot() == before
    assert set(states(reloader).values()) == {"active"}


async def test_a_reload_asked_for_by_a_plugin_that_it_unloads_is_carried_through(
    kernel: Kernel, world: World
) -> None:
    go = anyio.Event()

    async def apply(ctx: Context, config: None) -> None:
        async def work() -> None:
            await go.wait()
            await reloader.reload(rows("- {id: store, plugin: store}\n- {id: new, plugin: timer}"))

        ctx.spawn(work, name="work")

    world.plugins["self"] = Plugin("self", apply)
    reloader = await start(kernel, world, CHAIN + "- {id: self, plugin: self}")
    go.set()
    with anyio.fail_after(5):
        await anyio.wait_all_tasks_blocked()
        await kernel.settled()
    assert set(states(reloader).values()) == {"active"}
    assert list(reloader.fibers) == ["store", "new"]
    assert not [name for name in kernel.tasks.values() if "reload" in name]


async def test_a_call_in_flight_during_a_reload_is_failed_by_name_and_not_lost(
    kernel: Kernel, world: World
) -> None:
    reloader = await start(kernel, world, "- {id: answer, plugin: answer}")
    told: list[str] = []

    async def default(ask: Ask) -> str:
        return "default"

    async def ask() -> None:
        try:
            await kernel.root.around(Ask("x"), default)
        except ListenerGone as error:
            told.append(str(error))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        await reloader.reload(rows("- {id: answer, plugin: answer, config: {v: 2}}"))
    assert told == [
        "the listener of Ask by answer was unloaded while its call was in flight; send the signal again"
    ]


async def test_two_reloads_at_once_are_made_one_after_the_other(kernel: Kernel, world: World) -> None:
    inside, go = anyio.Event(), anyio.Event()

    async def wait(ctx: Context, config: None) -> None:
        inside.set()
        await go.wait()

    world.plugins["wait"] = Plugin("wait", wait)
    reloader = await start(kernel, world, CHAIN)
    async with anyio.create_task_group() as group:
        group.start_soon(reloader.reload, rows("- {id: wait, plugin: wait}"))
        await inside.wait()
        group.start_soon(reloader.reload, rows("- {id: timer, plugin: timer}"))
        await anyio.wait_all_tasks_blocked()
        assert states(reloader) == {"wait": "loading"}
        go.set()
    assert states(reloader) == {"timer": "active"}


async def test_rows_that_go_are_disposed_last_in_first_out(kernel: Kernel, world: World) -> None:
    reloader = await start(kernel, world, "\n".join(f"- {{id: s{n}, plugin: browse}}" for n in range(3)))
    await kernel.root.mount(world.plugins["chrome"])
    await kernel.settled()
    world.lines.clear()
    await reloader.reload(rows(""))
    assert world.lines == ["s2 down", "s1 down", "s0 down"]


@pytest.mark.case("G10")
async def test_three_reloads_leave_one_listener_and_one_timer(kernel: Kernel, world: World) -> None:
    reloader = await start(kernel, world, "- {id: timer, plugin: timer}")
    before = kernel.snapshot()
    for n in range(3):
        await reloader.reload(rows(f"- {{id: timer, plugin: timer, config: {{n: {n}}}}}"))
    await anyio.wait_all_tasks_blocked()
    kernel.root.notice(TurnEnded())
    assert world.lines == ["heard {'n': 2}"]
    assert world.ticking == 1
    assert kernel.snapshot() == before


@pytest.mark.case("G09")
async def test_a_row_disabled_and_enabled_twice_registers_again_without_complaint(
    kernel: Kernel, world: World
) -> None:
    reloader = await start(kernel, world, CHAIN)
    before = kernel.snapshot()
    for _ in range(2):
        await reloader.reload(rows(CHAIN.replace("plugin: index", "plugin: index, disabled: true")))
        assert states(reloader) == {"store": "active", "search": "pending"}
        await reloader.reload(rows(CHAIN))
    assert sorted(kernel.snapshot().lines) == sorted(before.lines)
    assert not kernel.reports
