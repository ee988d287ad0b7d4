"""Who sees which tool, and what happens to calls of one that goes away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import permutations

import msgspec
import pytest
from anyio import Event, create_task_group, sleep_forever

from leadline.core.llm.request import ToolSchema
from leadline.core.tools.errors import BadToolSpec
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.outcome import Code, ToolOutcome
from leadline.core.tools.registry import ToolRegistry
from leadline.core.tools.spec import Tool
from leadline.kernel.context import Context, Kernel
from leadline.kernel.errors import DuplicateName, KernelError, UnknownName
from leadline.kernel.plugin import Plugin
from leadline.kernel.scope import Scope
from leadline.testing.tool_bench import ToolBench, tool_bench

pytestmark = pytest.mark.anyio


@pytest.fixture
async def bench() -> AsyncIterator[ToolBench]:
    async with tool_bench(grace_s=0.05) as made:
        yield made


def named(name: str, answer: str = "") -> Tool:
    async def execute(args: object, call: ToolInvocation) -> str:
        return answer or name

    return Tool(name, f"Answers {answer or name}.", {"type": "object", "properties": {}}, execute)


async def test_a_scope_shadows_what_it_inherits_and_hides_its_own_from_others(bench: ToolBench) -> None:
    parent, other = Scope(label="parent"), Scope(label="other")
    child = Scope(parent, "child")
    outer, inner = named("say", "outer"), named("say", "inner")
    bench.registry.register(bench.ctx, outer)
    bench.registry.register(bench.ctx.scoped(parent), inner)
    assert bench.registry.get("say", child) is inner
    assert bench.registry.get("say", other) is outer
    assert bench.registry.get("say", None) is outer


async def test_one_layer_takes_a_name_once(bench: ToolBench) -> None:
    bench.add(named("say"))
    with pytest.raises(DuplicateName, match="say"):
        bench.add(named("say"))


async def test_a_schema_that_breaks_the_rules_is_refused_at_registration(bench: ToolBench) -> None:
    broken = Tool("say", "Says.", {"type": "object", "required": "all"}, named("x").execute)
    with pytest.raises(BadToolSpec, match="required"):
        bench.add(broken)
    assert bench.registry.get("say", None) is None


async def test_a_restriction_filters_the_inherited_and_never_ones_own(bench: ToolBench) -> None:
    parent = Scope(label="parent")
    child = Scope(parent, "child")
    bench.add(named("read"), named("write"))
    bench.registry.register(bench.ctx.scoped(parent), named("plan"))
    bench.registry.restrict(bench.ctx.scoped(child), allow=["read"])
    bench.registry.register(bench.ctx.scoped(child), named("submit"))
    assert list(bench.registry.view(child)) == ["read", "submit"]
    assert list(bench.registry.view(Scope(child, "grandchild"))) == ["read", "submit"]
    assert list(bench.registry.view(parent)) == ["plan", "read", "write"]


async def test_restrictions_intersect_so_that_a_child_never_has_more(bench: ToolBench) -> None:
    scope = Scope(label="agent")
    bench.add(named("read"), named("write"), named("search"))
    bench.registry.restrict(bench.ctx.scoped(scope), allow=["read", "write"])
    bench.registry.restrict(bench.ctx.scoped(scope), deny=["write"])
    child = Scope(scope, "child")
    with pytest.raises(UnknownName, match="write"):
        bench.registry.restrict(bench.ctx.scoped(child), allow=["read", "write"])
    assert list(bench.registry.view(child)) == ["read"]


async def test_a_restriction_that_names_nothing_known_is_an_error(bench: ToolBench) -> None:
    bench.add(named("read"))
    with pytest.raises(UnknownName, match="did you mean 'read'"):
        bench.registry.restrict(bench.ctx.scoped(Scope()), allow=["raed"])
    with pytest.raises(KernelError, match="no scope"):
        bench.registry.restrict(bench.ctx, allow=["read"])


@pytest.mark.case("K10")
async def test_schemas_have_the_same_bytes_whatever_the_order_of_registration() -> None:
    seen: set[bytes] = set()
    for order in permutations(["b_tool", "a", "z9", "b"]):
        async with Kernel() as kernel:
            registry = ToolRegistry()
            for name in order:
                registry.register(kernel.root, named(name))
            schemas = registry.schemas(None)
            assert [schema.name for schema in schemas] == ["a", "b", "b_tool", "z9"]
            seen.add(msgspec.json.encode(schemas))
    assert len(seen) == 1


async def test_the_version_grows_exactly_when_something_changes(bench: ToolBench) -> None:
    before = bench.registry.version
    bench.registry.schemas(None)
    assert bench.registry.version == before
    effect = bench.registry.register(bench.ctx, named("say"))
    registered = bench.registry.version
    assert registered > before
    await effect.dispose()
    assert bench.registry.version > registered
    assert bench.registry.schemas(None) == ()


async def test_unloading_a_plugin_leaves_no_trace(bench: ToolBench) -> None:
    async def apply(ctx: Context, config: None) -> None:
        bench.registry.register(ctx, named("say"))
        bench.registry.guard(ctx, "no", lambda call: "no")

    before = bench.kernel.snapshot()
    fiber = await bench.ctx.mount(Plugin("tools-of-mine", apply))
    assert bench.registry.guards(None)
    await fiber.dispose()
    assert bench.kernel.snapshot() == before
    assert not bench.registry.guards(None)


async def test_unregistering_waits_for_a_call_that_ends_in_time(bench: ToolBench) -> None:
    running, release = Event(), Event()
    outcomes: list[ToolOutcome] = []

    async def slow(args: object, call: ToolInvocation) -> str:
        running.set()
        await release.wait()
        return "done"

    effect = bench.registry.register(bench.ctx, Tool("slow", "Slow.", {"type": "object"}, slow))

    async def call() -> None:
        outcomes.append(await bench.call("slow"))

    async with create_task_group() as group:
        group.start_soon(call)
        await running.wait()
        group.start_soon(effect.dispose)
        release.set()
    assert [outcome.content for outcome in outcomes] == ["done"]


async def test_unregistering_cuts_off_a_call_that_does_not_end(bench: ToolBench) -> None:
    running, ended = Event(), Event()
    outcomes: list[ToolOutcome] = []

    async def endless(args: object, call: ToolInvocation) -> str:
        running.set()
        try:
            await sleep_forever()
        finally:
            ended.set()
        return ""

    effect = bench.registry.register(bench.ctx, Tool("endless", "Endless.", {"type": "object"}, endless))

    async def call() -> None:
        outcomes.append(await bench.call("endless"))

    async with create_task_group() as group:
        group.start_soon(call)
        await running.wait()
        await effect.dispose()
        assert ended.is_set()
    assert outcomes[0].error_code == Code.TOOL_FAILED
    assert "removed while it ran" in outcomes[0].content


async def test_schemas_are_what_the_vocabulary_of_requests_says(bench: ToolBench) -> None:
    bench.add(named("say"))
    assert bench.registry.schemas(None) == (
        ToolSchema(
            "say", "Answers say.", {"type": "object", "properties": {}, "additionalProperties": False}
        ),
    )
