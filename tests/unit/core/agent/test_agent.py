"""The life of an agent: made whole or not at all, stopped for good, freed always."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from leadline.core.agent.agent import Agent
from leadline.core.agent.errors import AgentDisposed as Disposed
from leadline.core.agent.errors import UnknownAgent
from leadline.core.agent.signals import AgentCreated, AgentDisposed, AgentStatusChanged, PreStep, TurnEnded
from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.messages import Text
from leadline.core.session.codec import Logged
from leadline.core.session.events import AbortCause, TurnEnd, TurnStart, UserEntered
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import Tool
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.testing.agents import agent_stack
from leadline.testing.scripted import Call, Reply, ScriptedModel

pytestmark = pytest.mark.anyio

HANG = Reply("so far ", hang=True)


async def until_streaming(model: ScriptedModel, count: int = 1) -> None:
    while len(model.requests) < count:
        await anyio.lowlevel.checkpoint()
    await anyio.wait_all_tasks_blocked()


async def test_an_agent_is_published_after_its_setup(tmp_path: Path) -> None:
    order: list[str] = []

    async with agent_stack(tmp_path, ScriptedModel()) as stack:

        async def setup(agent: Agent) -> None:
            order.append("setup")
            assert stack.agents.find(agent.id) is None

        stack.ctx.on(AgentCreated, lambda signal: order.append(f"created {signal.agent.id}"))
        agent = await stack.agents.create(AgentSpec(setup=setup))
        assert agent.id == agent.session.id
        assert order == ["setup", f"created {agent.id}"]
        assert stack.agents.get(agent.id) is agent


async def test_a_failing_setup_leaves_nothing_behind(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel()) as stack:
        seen: list[object] = []
        undone: list[str] = []
        stack.ctx.on(AgentCreated, seen.append)
        stack.ctx.on(AgentDisposed, seen.append)

        async def setup(agent: Agent) -> None:
            agent.ctx.defer("thing", lambda: undone.append("thing"))
            raise RuntimeError("no room")

        before = stack.kernel.snapshot()
        with pytest.raises(RuntimeError, match="no room"):
            await stack.agents.create(AgentSpec(setup=setup))
        assert undone == ["thing"]
        assert seen == []
        assert len(stack.agents) == 0
        assert await stack.sessions.list() == []
        assert stack.kernel.snapshot() == before


async def test_cancelling_a_creation_leaves_nothing_behind(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel()) as stack:

        async def setup(agent: Agent) -> None:
            await anyio.sleep_forever()

        before = stack.kernel.snapshot()
        with anyio.move_on_after(0.05) as scope:
            await stack.agents.create(AgentSpec(setup=setup))
        assert scope.cancelled_caught
        assert await stack.sessions.list() == []
        assert stack.kernel.snapshot() == before


async def test_an_unknown_provider_is_told_before_anything_is_made(tmp_path: Path) -> None:
    from leadline.core.llm.adapter import UnknownProvider
    from leadline.core.llm.request import ModelRef

    async with agent_stack(tmp_path, ScriptedModel()) as stack:
        with pytest.raises(UnknownProvider, match="nowhere"):
            await stack.agents.create(AgentSpec(model=ModelRef("nowhere", "m")))
        assert await stack.sessions.list() == []


async def test_dispose_undoes_everything_once_and_says_so(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel()) as stack:
        before = stack.kernel.snapshot()
        agent = await stack.agents.create(AgentSpec())
        gone: list[str] = []
        effect = stack.ctx.on(AgentDisposed, lambda signal: gone.append(signal.agent.id))
        agent.ctx.defer("own", lambda: gone.append("own"))
        async with anyio.create_task_group() as group:
            group.start_soon(agent.dispose)
            group.start_soon(agent.dispose)
        await agent.dispose()
        await effect.dispose()
        assert gone == ["own", agent.id]
        assert not agent.session.writable
        assert stack.kernel.snapshot() == before
        with pytest.raises(UnknownAgent):
            stack.agents.get(agent.id)
        with pytest.raises(Disposed, match="resume"):
            agent.send("too late")


async def test_dispose_frees_even_if_an_undoing_fails(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel()) as stack:
        agent = await stack.agents.create(AgentSpec())

        def fail() -> None:
            raise RuntimeError("stuck")

        agent.ctx.defer("bad", fail)
        await agent.dispose()
        assert len(stack.agents) == 0
        assert not agent.session.writable
        again = await stack.agents.resume(agent.id)
        assert again.id == agent.id


async def test_dispose_in_mid_stream_keeps_what_was_said_and_what_waits(tmp_path: Path) -> None:
    model = ScriptedModel([HANG])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.send("one")
        agent.send("two")
        await until_streaming(model)
        await agent.dispose()
        end = agent.last_turn_end
        assert end is not None
        assert (end.reason, end.cause) == ("aborted", AbortCause("disposed"))
        again = await stack.agents.resume(agent.id)
        assert [m.content[0] for m in again.inbox.next_turn] == [Text("two")]


async def test_an_agent_can_dispose_itself_from_inside_a_tool(tmp_path: Path) -> None:
    model = ScriptedModel([Call("leave")])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())

        async def leave(args: object, call: ToolInvocation) -> str:
            await agent.dispose()
            return "unreachable"

        agent.ctx.get(type(stack.tools)).register(
            agent.ctx, Tool("leave", "Leaves.", {"type": "object"}, leave)
        )
        gone = anyio.Event()
        stack.ctx.on(AgentDisposed, lambda signal: gone.set())
        agent.send("go")
        with anyio.fail_after(5):
            await gone.wait()
        assert agent.last_turn_end is not None
        assert agent.last_turn_end.reason == "aborted"


async def test_children_end_before_their_parent(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel()) as stack:
        gone: list[str] = []
        stack.ctx.on(AgentDisposed, lambda signal: gone.append(signal.agent.id))
        parent = await stack.agents.create(AgentSpec())
        child = await stack.agents.create(AgentSpec(parent=parent))
        grandchild = await stack.agents.create(AgentSpec(parent=child))
        assert [it.depth for it in (parent, child, grandchild)] == [0, 1, 2]
        assert child.session.header.parent == parent.id
        await parent.dispose()
        assert gone == [grandchild.id, child.id, parent.id]


async def test_agents_end_with_the_plugin_that_owns_them(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel()) as stack:
        made: list[Agent] = []

        async def apply(ctx: Context, config: None) -> None:
            made.append(await stack.agents.create(AgentSpec(), owner=ctx))

        fiber = await stack.ctx.mount(Plugin("owner", apply))
        assert len(stack.agents) == 1
        await fiber.dispose()
        assert len(stack.agents) == 0
        assert not made[0].session.writable


async def test_status_goes_to_running_and_back(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel(["a", "b"])) as stack:
        agent = await stack.agents.create(AgentSpec())
        seen: list[str] = []
        stack.ctx.on(AgentStatusChanged, lambda signal: seen.append(signal.status))
        agent.send("one")
        assert agent.status == "running"
        agent.send("two")
        await agent.when_idle()
        assert seen == ["running", "idle"]


async def test_the_first_cause_of_a_cancellation_wins(tmp_path: Path) -> None:
    model = ScriptedModel([HANG])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.send("go")
        await until_streaming(model)
        agent.abort(AbortCause("parent", "first"))
        await agent.cancel(AbortCause("user", "second"))
        assert agent.last_turn_end is not None
        assert agent.last_turn_end.cause == AbortCause("parent", "first")


async def test_after_cancel_returns_nothing_writes(tmp_path: Path) -> None:
    model = ScriptedModel([HANG])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.send("go")
        await until_streaming(model)
        await agent.cancel()
        length = len(agent.session)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        assert agent.status == "idle"
        assert len(agent.session) == length
        assert agent.session.logged[-1].type == TurnEnd.TYPE


async def test_what_was_queued_before_an_abort_stays_parked(tmp_path: Path) -> None:
    model = ScriptedModel([HANG, "answer"])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.send("one")
        agent.send("two")
        await until_streaming(model)
        await agent.cancel()
        await agent.when_idle()
        assert [m.content[0] for m in agent.inbox.next_turn] == [Text("two")]
        agent.wake()
        await agent.when_idle()
        assert len(agent.inbox) == 0


async def test_a_wake_after_the_abort_runs_as_a_turn_of_its_own_behind_the_old_end(tmp_path: Path) -> None:
    model = ScriptedModel([HANG, "answer"])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.send("one")
        await until_streaming(model)
        agent.abort()
        agent.steer("instead")
        assert [m.content[0] for m in agent.inbox.next_turn] == [Text("instead")]
        await agent.when_idle()
        marks = [line.type for line in agent.session.logged if line.type in (TurnStart.TYPE, TurnEnd.TYPE)]
        assert marks == [TurnStart.TYPE, TurnEnd.TYPE] * 2
        assert [it.turn for it in agent.session.of(UserEntered)] == [1, 2]


async def test_cancelling_without_keeping_the_inbox_empties_it_and_forgets_the_wake(tmp_path: Path) -> None:
    model = ScriptedModel([HANG])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.send("one")
        agent.send("two")
        await until_streaming(model)
        agent.abort()
        agent.steer("three")
        await agent.cancel(keep_inbox=False)
        await agent.when_idle()
        assert len(agent.inbox) == 0
        assert agent.session.place.turn == 1


async def test_an_agent_cancelled_before_its_first_slice_runs_nothing(tmp_path: Path) -> None:
    model = ScriptedModel()
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.send("one")
        async with anyio.create_task_group() as group:
            group.start_soon(agent.when_idle)
            await agent.cancel()
        assert model.requests == []
        assert agent.session.place.turn == 0
        assert len(agent.inbox) == 1


@pytest.mark.parametrize(
    "moment", ["turn/start", "step/start", "request/sent", "assistant/message", "tool/call"]
)
async def test_cancelling_from_an_observer_ends_the_turn_as_aborted(tmp_path: Path, moment: str) -> None:
    model = ScriptedModel([Reply("text", (Call("noop"),)), "never"])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())
        stack.tools.register(stack.ctx, Tool("noop", "Does nothing.", {"type": "object"}, _noop))

        def observe(line: Logged) -> None:
            if line.type == moment:
                agent.abort(AbortCause("user", moment))

        agent.session.observe(observe)
        agent.send("go")
        await agent.when_idle()
        assert agent.last_turn_end is not None
        assert (agent.last_turn_end.reason, agent.last_turn_end.cause) == (
            "aborted",
            AbortCause("user", moment),
        )
        assert agent.session.derived().conversation.pairing_problem is None
        assert not agent.session.place.turn_open


async def test_a_listener_that_sends_when_the_turn_has_ended_starts_the_next(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel(["a", "b"])) as stack:
        agent = await stack.agents.create(AgentSpec())

        def again(signal: TurnEnded) -> None:
            if signal.end.turn == 1:
                agent.send("and then")

        stack.ctx.on(TurnEnded, again)
        agent.send("first")
        await agent.when_idle()
        assert agent.session.place.turn == 2


async def test_an_agent_hears_its_own_scope_and_its_descendants(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel(["a", "b", "c"])) as stack:
        parent = await stack.agents.create(AgentSpec())
        child = await stack.agents.create(AgentSpec(parent=parent))
        other = await stack.agents.create(AgentSpec())
        heard: list[str] = []
        parent.ctx.on(TurnEnded, lambda signal: heard.append(signal.agent.id))
        for agent in (other, child, parent):
            agent.send("go")
            await agent.when_idle()
        assert heard == [child.id, parent.id]


async def test_a_listener_that_raises_changes_no_outcome(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel(["fine"])) as stack:
        agent = await stack.agents.create(AgentSpec())

        def broken(signal: object) -> None:
            raise RuntimeError("observer")

        for kind in (TurnEnded, AgentStatusChanged):
            stack.ctx.on(kind, broken)
        agent.send("go")
        await agent.when_idle()
        assert agent.last_turn_end is not None
        assert agent.last_turn_end.reason == "completed"
        assert {str(it.error) for it in stack.kernel.reports} == {"observer"}


async def test_unloading_the_loop_disposes_agents_and_keeps_their_sessions(tmp_path: Path) -> None:
    model = ScriptedModel([HANG])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.send("go")
        await until_streaming(model)
        await stack.loop.dispose()
        assert not agent.session.writable
        assert agent.last_turn_end is not None
        assert agent.last_turn_end.reason == "aborted"


async def test_a_turn_that_cannot_take_its_input_in_does_not_spin(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel(["fine"])) as stack:
        agent = await stack.agents.create(AgentSpec())

        async def broken(signal: PreStep, call_next: object) -> object:
            raise RuntimeError("policy is down")

        effect = stack.ctx.on(PreStep, broken)  # pyright: ignore[reportArgumentType]
        agent.send("keep me")
        await agent.when_idle()
        assert agent.session.place.turn == 1
        assert [m.content[0] for m in agent.inbox.next_turn] == [Text("keep me")]
        await effect.dispose()
        agent.wake()
        await agent.when_idle()
        assert agent.last_turn_end is not None
        assert agent.last_turn_end.reason == "completed"


async def _noop(args: object, call: ToolInvocation) -> str:
    return "ok"
