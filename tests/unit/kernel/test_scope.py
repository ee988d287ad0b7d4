"""Who sees a scoped registration."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.kernel.context import Context, Kernel
from leadline.kernel.errors import DuplicateName, FiberInactive, KernelError, UnknownName
from leadline.kernel.plugin import Plugin
from leadline.kernel.scope import Scope, ScopedRegistry

pytestmark = pytest.mark.anyio


@pytest.fixture
async def kernel() -> AsyncIterator[Kernel]:
    async with Kernel() as kernel:
        yield kernel


@pytest.fixture
def tools() -> ScopedRegistry[str]:
    return ScopedRegistry("tool")


async def test_the_nearest_layer_shadows_and_views_inherit_downwards_only(
    kernel: Kernel, tools: ScopedRegistry[str]
) -> None:
    preset = Scope(label="preset")
    agent, sibling = Scope(preset, "agent"), Scope(preset, "sibling")
    tools.register(kernel.root, "read", "global read")
    tools.register(kernel.root.scoped(preset), "read", "preset read")
    tools.register(kernel.root.scoped(agent), "write", "agent write")
    assert dict(tools.view(None)) == {"read": "global read"}
    assert dict(tools.view(agent)) == {"read": "preset read", "write": "agent write"}
    assert dict(tools.view(sibling)) == {"read": "preset read"}
    assert tools.get("write", agent) == "agent write"
    assert tools.get("write", sibling) is None
    assert dict(tools.peek(agent)) == {"write": "agent write"}


async def test_a_registration_lives_as_long_as_its_context_and_empty_layers_are_reclaimed(
    kernel: Kernel, tools: ScopedRegistry[str]
) -> None:
    agent = Scope(label="agent")
    tools.register(kernel.root, "read", "r")
    before, version = kernel.snapshot(), tools.version
    async with kernel.root.subcontext("agent", agent) as ctx:
        tools.register(ctx, "write", "w")
        tools.restrict(ctx, deny=["read"])
        assert dict(tools.view(agent)) == {"write": "w"}
        assert kernel.snapshot() != before
    assert kernel.snapshot() == before
    assert list(tools._layers) == [None]
    assert tools.version > version


async def test_a_restriction_filters_what_is_inherited_and_never_what_the_scope_registered(
    kernel: Kernel, tools: ScopedRegistry[str]
) -> None:
    preset = Scope(label="preset")
    agent = Scope(preset, "agent")
    child = Scope(agent, "child")
    for name in ("read", "write", "run"):
        tools.register(kernel.root, name, f"global {name}")
    tools.register(kernel.root.scoped(preset), "search", "preset search")
    ctx = kernel.root.scoped(agent)
    tools.register(ctx, "write", "own write")
    tools.restrict(ctx, allow=["read", "search"])
    assert dict(tools.view(agent)) == {"read": "global read", "search": "preset search", "write": "own write"}
    tools.restrict(ctx, deny=["search"])
    assert dict(tools.view(agent)) == {"read": "global read", "write": "own write"}
    assert dict(tools.view(child)) == dict(tools.view(agent))
    assert "run" in tools.view(preset)
    tools.register(kernel.root.scoped(child), "run", "child run")
    assert tools.get("run", child) == "child run"
    tools.register(kernel.root, "later", "registered after the restriction")
    assert "later" not in tools.view(child)


async def test_a_restriction_that_names_what_is_not_inherited_is_an_error_with_the_nearest_name(
    kernel: Kernel, tools: ScopedRegistry[str]
) -> None:
    ctx = kernel.root.scoped(Scope(label="agent"))
    tools.register(kernel.root, "corpus_search", "s")
    tools.register(ctx, "own", "o")
    before = kernel.snapshot()
    with pytest.raises(UnknownName, match=r"unknown tool 'corpus_serch'; did you mean 'corpus_search'\?"):
        tools.restrict(ctx, allow=["corpus_serch"])
    with pytest.raises(UnknownName, match="'own'"):
        tools.restrict(ctx, deny=["own"])
    with pytest.raises(KernelError, match="has no scope"):
        tools.restrict(kernel.root, deny=["corpus_search"])
    assert kernel.snapshot() == before


async def test_an_empty_allow_list_lets_nothing_through(kernel: Kernel, tools: ScopedRegistry[str]) -> None:
    agent = Scope(label="agent")
    tools.register(kernel.root, "read", "r")
    tools.restrict(kernel.root.scoped(agent), allow=[])
    assert dict(tools.view(agent)) == {}


async def test_one_name_twice_in_one_layer_is_an_error_that_names_both_owners(
    kernel: Kernel, tools: ScopedRegistry[str]
) -> None:
    def plugin(name: str) -> Plugin[None]:
        async def apply(ctx: Context, config: None) -> None:
            tools.register(ctx, "read", name)

        return Plugin(name, apply)

    await kernel.root.mount(plugin("files"))
    second = await kernel.root.mount(plugin("corpus"))
    assert isinstance(second.error, DuplicateName)
    assert "files" in str(second.error)
    assert "corpus" in str(second.error)
    assert tools.get("read", None) == "files"


@pytest.mark.case("G09")
async def test_a_plugin_that_is_disabled_enabled_and_reloaded_registers_again_without_complaint(
    kernel: Kernel, tools: ScopedRegistry[str]
) -> None:
    async def apply(ctx: Context, config: None) -> None:
        tools.register(ctx, "section", "text")

    before = kernel.snapshot()
    for _ in range(2):
        fiber = await kernel.root.mount(Plugin("prompt", apply))
        assert tools.get("section", None) == "text"
        await fiber.dispose()
        assert tools.get("section", None) is None
    fiber = await kernel.root.mount(Plugin("prompt", apply))
    await fiber.update(None)
    assert dict(tools.view(None)) == {"section": "text"}
    await fiber.dispose()
    assert kernel.snapshot() == before
    assert not kernel.reports


async def test_a_registry_takes_nothing_from_a_context_that_ended(
    kernel: Kernel, tools: ScopedRegistry[str]
) -> None:
    ctx = kernel.root.subcontext("agent", Scope(label="agent"))
    await ctx.dispose()
    with pytest.raises(FiberInactive):
        tools.register(ctx, "read", "r")
    assert dict(tools.view(ctx.scope)) == {}


async def test_a_plugin_mounted_on_a_scoped_context_registers_in_that_scope(
    kernel: Kernel, tools: ScopedRegistry[str]
) -> None:
    async def apply(ctx: Context, config: None) -> None:
        tools.register(ctx, "read", "preset")

    preset = Scope(label="preset")
    await kernel.root.scoped(preset).mount(Plugin("tools", apply))
    assert dict(tools.view(None)) == {}
    assert dict(tools.view(Scope(preset))) == {"read": "preset"}


@given(
    deny=st.lists(st.sets(st.sampled_from("abcd")), max_size=4),
    own=st.sets(st.sampled_from("abcd")),
)
def test_however_masks_are_combined_a_child_never_inherits_more_than_its_parent_has(
    deny: list[set[str]], own: set[str]
) -> None:
    import anyio

    async def main() -> None:
        async with Kernel() as kernel:
            registry = ScopedRegistry[str]("tool")
            for name in "abcd":
                registry.register(kernel.root, name, "global")
            scope = None
            for names in deny:
                scope = Scope(scope)
                inherited = set(registry.view(scope))
                registry.restrict(kernel.root.scoped(scope), deny=sorted(names & inherited))
                assert set(registry.view(scope)) == inherited - names
            child = Scope(scope)
            for name in own:
                registry.register(kernel.root.scoped(child), name, "own")
            assert {name for name, value in registry.view(child).items() if value == "own"} == own
            assert set(registry.view(child)) == set(registry.view(scope)) | own

    anyio.run(main)
