"""What every tool promises, as checks that anyone can run over a tool of their own.

    CASE = ToolCase(make_search, valid=[{"query": "tides"}], invalid=[{"limit": 0}])

    @pytest.mark.anyio
    @pytest.mark.parametrize("check", CHECKS, ids=name_of)
    async def test_search_keeps_the_promise(check):
        await check(CASE)

A check makes a tool, registers it in a kernel of its own and calls it through the real pipeline. It
raises AssertionError where a promise is not kept. They cannot tell whether the side effects that a
tool declares are all that it has.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import msgspec
from anyio import Event, create_task_group, move_on_after, wait_all_tasks_blocked

from leadline.core.llm.jsonvalue import JsonObject
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.outcome import Code
from leadline.core.tools.policy import AroundExecute
from leadline.core.tools.spec import Tool, ToolOutput
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.testing.tool_bench import ToolBench, tool_bench

Setup: TypeAlias = Callable[[Context], Awaitable[None]]


async def _no_setup(ctx: Context) -> None:
    """For tools that use no service."""


@dataclass(frozen=True)
class ToolCase:
    """A tool, and arguments that it must take and must refuse."""

    make: Callable[[], Tool]
    """Makes the tool anew; each time the same one."""

    valid: Sequence[JsonObject]
    """Each of these ends in success."""

    invalid: Sequence[JsonObject] = ()
    """Each of these is refused before the body runs."""

    setup: Setup = field(default=_no_setup)
    """Provides the services that the body asks its context for."""

    cancel_within_s: float = 10.0
    """Seconds within which a cancelled body must have ended."""


Check: TypeAlias = Callable[[ToolCase], Awaitable[None]]


async def a_model_can_understand_it(case: ToolCase) -> None:
    """The schema is valid, closed, an object, and every parameter says what it is for."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - only who runs this check needs it

    tool = case.make()
    tool.check()
    schema = tool.schema.parameters
    Draft202012Validator.check_schema(schema)
    assert schema.get("type") == "object", f"{tool.name}: the root of its schema is no object"
    assert schema.get("additionalProperties") is False or "allOf" in schema, (
        f"{tool.name}: its schema takes members that it does not name"
    )
    members = schema.get("properties", {})
    assert isinstance(members, Mapping), f"{tool.name}: its properties are no object"
    for name, member in cast("Mapping[str, object]", members).items():
        said = (
            cast("Mapping[str, object]", member).get("description") if isinstance(member, Mapping) else None
        )
        assert isinstance(said, str) and said.strip(), f"{tool.name}: nothing says what {name!r} is for"


async def it_shows_the_same_bytes_each_time(case: ToolCase) -> None:
    """Two of the same tool are told to a model in the same bytes, so that prompts stay cached."""
    first, second = (msgspec.json.encode(case.make().schema) for _ in range(2))
    assert first == second, f"made twice, it is described differently:\n{first!r}\n{second!r}"


async def it_takes_what_is_valid(case: ToolCase) -> None:
    """Every valid example runs to a success with a content, and nothing goes wrong unseen."""
    async with _benched(case) as (bench, tool):
        for arguments in case.valid:
            outcome = await bench.call(tool.name, arguments)
            assert not outcome.is_error, f"{tool.name} failed on {_shown(arguments)}: {outcome.content}"
            assert outcome.content.strip(), f"{tool.name} said nothing on {_shown(arguments)}"
            json.loads(outcome.value)
        assert not bench.reports, f"{tool.name}: {bench.reports[0].where}: {bench.reports[0].error!r}"


async def it_refuses_what_is_not(case: ToolCase) -> None:
    """Invalid examples, broken JSON and unknown members are told to the model before the body runs."""
    ran: list[ToolInvocation] = []

    async def watch(
        signal: AroundExecute, call_next: Callable[[AroundExecute], Awaitable[ToolOutput]]
    ) -> ToolOutput:
        ran.append(signal.call)
        return await call_next(signal)

    async with _benched(case) as (bench, tool):
        bench.ctx.on(AroundExecute, watch)
        unknown = {**(case.valid[0] if case.valid else {}), "no_such_member": 1}
        for arguments in (*case.invalid, unknown, "{", "[]", '"text"'):
            outcome = await bench.call(tool.name, arguments)
            shown = arguments if isinstance(arguments, str) else _shown(arguments)
            assert outcome.error_code == Code.INVALID_ARGS, (
                f"{tool.name} took {shown}: {outcome.error_code or 'a success'}: {outcome.content}"
            )
        assert not ran, f"{tool.name} ran on {_shown(ran[0].arguments)}"


async def it_ends_when_it_is_cancelled(case: ToolCase) -> None:
    """A cancellation ends the body in time, whatever it does; nothing runs on."""
    for arguments in case.valid:
        async with _benched(case) as (bench, tool):
            begun = Event()

            async def tell(
                signal: AroundExecute, call_next: Callable[[AroundExecute], Awaitable[ToolOutput]],
                begun: Event = begun,
            ) -> ToolOutput:  # fmt: skip
                begun.set()
                return await call_next(signal)

            bench.ctx.on(AroundExecute, tell)
            tasks = dict(bench.kernel.tasks)
            with move_on_after(case.cancel_within_s) as limit:
                async with create_task_group() as group:
                    group.start_soon(bench.call, tool.name, arguments)
                    await begun.wait()
                    await wait_all_tasks_blocked()
                    group.cancel_scope.cancel()
            assert not limit.cancel_called, (
                f"{tool.name} went on for {case.cancel_within_s:g} s after it was cancelled, on {_shown(arguments)}"
            )
            assert bench.kernel.tasks == tasks, f"{tool.name} left a task behind"


async def it_leaves_no_trace(case: ToolCase) -> None:
    """Registered, called and unregistered, it leaves the kernel as it was."""
    async with tool_bench() as bench:
        await case.setup(bench.ctx)
        before = bench.kernel.snapshot()
        tool = case.make()

        async def apply(ctx: Context, config: None) -> None:
            bench.registry.register(ctx, tool)

        fiber = await bench.ctx.mount(Plugin(f"only-{tool.name}", apply))
        for arguments in case.valid:
            await bench.call(tool.name, arguments)
        await fiber.dispose()
        assert bench.kernel.snapshot() == before, f"{tool.name} left a trace"


CHECKS: tuple[Check, ...] = (
    a_model_can_understand_it,
    it_shows_the_same_bytes_each_time,
    it_takes_what_is_valid,
    it_refuses_what_is_not,
    it_ends_when_it_is_cancelled,
    it_leaves_no_trace,
)
"""Every check, in the order from cheap to dear."""


def name_of(check: Check) -> str:
    """What a test runner calls the check."""
    return getattr(check, "__name__", repr(check)).replace("_", " ")


@asynccontextmanager
async def _benched(case: ToolCase) -> AsyncGenerator[tuple[ToolBench, Tool]]:
    async with tool_bench() as bench:
        await case.setup(bench.ctx)
        tool = case.make()
        bench.add(tool)
        yield bench, tool


def _shown(arguments: JsonObject) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False, default=str)[:200]
