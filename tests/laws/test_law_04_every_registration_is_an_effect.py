"""Law 4: mount, unmount, and everything is as before; disposal runs to its end whatever fails in it."""

from __future__ import annotations

import gc
import os
import tempfile
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import anyio
import pytest

from leadline.core.agent.signals import TurnEnded
from leadline.core.llm.adapter import Models
from leadline.core.prompt.sections import PromptSections
from leadline.core.session.events import Event
from leadline.core.session.registry import EventTypes
from leadline.core.session.store import SessionStore
from leadline.core.tools.function import tool_from_function
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.policy import PreExecute
from leadline.core.tools.registry import ToolRegistry
from leadline.kernel.context import Context
from leadline.kernel.fiber import State
from leadline.kernel.plugin import Plugin
from leadline.kernel.services import Service
from leadline.research.methods.adaptive.method import Adaptive
from leadline.research.methods.seam import Methods
from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import Received
from leadline.testing.scripted import ScriptedModel
from tests.composition.conftest import FakeResearcher, call
from tests.laws.conftest import QUESTION, running

pytestmark = pytest.mark.anyio


def around() -> Counter[str]:
    """What a program can leave behind in its process."""
    gc.collect()
    # Worker threads of anyio and asyncio are pooled and idle; they belong to nobody.
    pooled = ("AnyIO worker thread", "asyncio_")
    lines = [f"thread {it.name}" for it in threading.enumerate() if not it.name.startswith(pooled)]
    lines += [f"task {it.name}" for it in anyio.get_running_tasks()]
    lines += [f"environment {key}={value}" for key, value in os.environ.items()]
    lines += [f"temporary {path.name}" for path in Path(tempfile.gettempdir()).glob("*leadline*")]
    lines.append(f"working directory {Path.cwd()}")
    for entry in Path("/proc/self/fd").iterdir() if Path("/proc/self/fd").is_dir() else ():
        with suppress(OSError):
            lines.append(f"open {str(entry.readlink()).partition(':[')[0]}")
    return Counter(line for line in lines if not line.endswith("/fd"))


def difference(before: Counter[str], after: Counter[str]) -> list[str]:
    return [f"+ {line}" for line in (after - before)] + [f"- {line}" for line in (before - after)]


async def test_a_program_that_did_research_leaves_its_process_as_it_was(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with running(researcher) as (app, _):
        # The first program imports modules and fills caches, which stay.
        await app.research(QUESTION, corpus=[corpus])
    before = around()
    async with running(researcher) as (app, _):
        result = await app.research(QUESTION, corpus=[corpus])
        assert result.status == "completed"
        await app.agent("and an agent")
    assert difference(before, around()) == []


async def test_a_run_leaves_the_program_as_it_was(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with running(researcher) as (app, _):
        await app.research(QUESTION, corpus=[corpus])
        before = app.ctx.kernel.snapshot()
        await app.research(QUESTION, corpus=[corpus])
        await app.agent("and an agent")
        assert before.difference(app.ctx.kernel.snapshot()) == []


class Remark(Service, key="remark"):
    """A service of the test's own."""


class Remarked(Event, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "test/remarked"


class OtherMethod(Adaptive):
    name = "other"


@dataclass(frozen=True)
class Heard:
    """What the plugin was told, by whoever tells it."""

    told: list[str] = field(default_factory=list[str])


async def everything(ctx: Context, config: Heard) -> None:
    """Register one of each thing that the shipped profile takes."""

    async def policy(signal: PreExecute) -> None:
        config.told.append("policy")

    def guard(call: ToolInvocation) -> None:
        config.told.append("guard")

    async def remark(text: str) -> str:
        """Say something."""
        return text

    ctx.provide(Remark, Remark())
    ctx.get(ToolRegistry).register(ctx, tool_from_function(remark))
    ctx.get(ToolRegistry).guard(ctx, "nothing", guard)
    ctx.get(PromptSections).section(ctx, "remark", 50, "Remarks are welcome.")
    ctx.get(Models).register(ctx, ScriptedModel(provider="other"))
    ctx.get(EventTypes).register(ctx, Remarked)
    ctx.get(SessionStore).veto(ctx, lambda before: config.told.append("veto"))
    ctx.get(Methods).register(ctx, OtherMethod(1))
    ctx.on(TurnEnded, lambda signal: config.told.append("turn"))
    ctx.on(PreExecute, policy)
    ctx.spawn(anyio.sleep_forever, name="remarking")


PLUGIN = Plugin(
    "everything",
    everything,
    config=lambda mapping: Heard(),
    needs=(ToolRegistry, PromptSections, Models, EventTypes, SessionStore, Methods),
    provides=(Remark,),
)


async def test_one_of_each_registration_is_gone_with_its_plugin_and_the_model_sees_none_of_it(
    home: Path,
) -> None:
    def answer(request: Received) -> Behaviour:
        done = request.messages[-1]["role"] == "tool"
        return Behaviour(text="done") if done else call("remark", {"text": "well"})

    async with running(answer) as (app, server):
        await app.agent("before")
        before = app.ctx.kernel.snapshot()
        heard = Heard()
        fiber = await app.ctx.mount(PLUGIN, heard)
        assert fiber.state is State.ACTIVE
        assert len(before.difference(app.ctx.kernel.snapshot())) >= 8
        await app.agent("during")
        assert server.requests[-1].tools == ("deep_research", "recall", "remark")
        assert {*heard.told} == {"policy", "guard", "veto", "turn"}
        await fiber.dispose()
        assert before.difference(app.ctx.kernel.snapshot()) == []
        heard.told.clear()
        await app.agent("before")
        assert heard.told == []
        assert server.requests[-2].raw == server.requests[0].raw
        assert "other" not in app.ctx.get(Models).providers
        assert app.ctx.get(Methods).names == ("adaptive",)
        assert app.ctx.get(EventTypes).get(Remarked.TYPE) is None
        # It can be mounted again: nothing that it left makes its names taken.
        await (await app.ctx.mount(PLUGIN, heard)).dispose()


async def test_disposal_goes_backwards_and_to_the_end_though_parts_of_it_fail(home: Path) -> None:
    order: list[str] = []

    def undo(name: str, *, fails: bool = False) -> None:
        order.append(name)
        if fails:
            raise ValueError(name)

    async def apply(ctx: Context, config: None) -> None:
        ctx.defer("first", lambda: undo("first"))
        ctx.defer("second", lambda: undo("second", fails=True))
        ctx.defer("third", lambda: undo("third"))

    async with running(lambda request: Behaviour(text="ok")) as (app, _):
        before = app.ctx.kernel.snapshot()
        fiber = await app.ctx.mount(Plugin("three", apply))
        await fiber.dispose()
        assert order == ["third", "second", "first"]
        assert before.difference(app.ctx.kernel.snapshot()) == []
        assert (await app.agent("still there")).completed


async def test_a_plugin_that_fails_half_way_leaves_nothing_of_the_half(home: Path) -> None:
    async def apply(ctx: Context, config: None) -> None:
        await everything(ctx, Heard())
        raise ValueError("no further")

    async with running(lambda request: Behaviour(text="ok")) as (app, _):
        before = app.ctx.kernel.snapshot()
        fiber = await app.ctx.mount(Plugin("half", apply, provides=(Remark,)))
        assert fiber.state is State.FAILED
        await fiber.dispose()
        assert before.difference(app.ctx.kernel.snapshot()) == []
