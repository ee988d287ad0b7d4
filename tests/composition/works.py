"""Works that the tests record: whole runs, with either store and with a clock that jumps, and an agent with side effects."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from leadline.core.agent.agent import Agent
from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.messages import AssistantMessage
from leadline.core.llm.request import LlmRequest
from leadline.core.session.events import AssistantSaid, ToolAnswered, TurnEnd
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import SideEffect, Tool
from leadline.kernel.errors import LeadlineError
from leadline.testing.agents import AgentStack, agent_stack
from leadline.testing.faults.images import Image
from leadline.testing.faults.research_work import ResearchWork
from leadline.testing.faults.work import Note
from leadline.testing.scripted import Call, Reply, ScriptedModel

HERE = Path(__file__).parent

files = ResearchWork()
database = ResearchWork(patches=[HERE / "sqlite_store.yml"])
stopped = ResearchWork(stopped_at=6)
jumping = ResearchWork(patches=[HERE / "jumping_clock.yml"])


class Errands:
    """An agent whose tools have side effects; the world that they change outlives every crash."""

    async def start(self, folder: Path, note: Note) -> object:
        async with self._stack(folder, note) as stack:
            agent = await stack.agents.create(AgentSpec())
            note("agent", agent.id)
            agent.send("run the errands")
            await agent.when_idle()
            return self._came_to(agent)

    async def resume(self, folder: Path, image: Image) -> object:
        done = {str(value) for value in image.noted("done")}
        again: list[str] = []

        def note(name: str, value: object) -> None:
            if name == "done":
                again.append(str(value))

        async with self._stack(folder, note) as stack:
            known = [one.id for one in await stack.sessions.list() if one.status != "unreadable"]
            if not known:
                assert image.power_cut or not image.noted("agent")
                return await self._anew(stack)
            before = {one.message.call_id for one in (await stack.sessions.read(known[0])).of(ToolAnswered)}
            agent = await stack.agents.resume(known[0])
            if agent.last_turn_end is None or agent.last_turn_end.reason != "completed":
                if agent.session.place.turn or len(agent.inbox):
                    agent.proceed()
                else:
                    agent.send("run the errands")
            await agent.when_idle()
            assert not done & set(again), f"done again: {sorted(done & set(again))}"
            assert len(again) == len(set(again)), f"done twice: {again}"
            answered = [one.message.call_id for one in agent.session.of(ToolAnswered)]
            assert len(answered) == len(set(answered)) and before <= set(answered)
            assert agent.session.derived().conversation.pairing_problem is None
            return self._came_to(agent)

    async def _anew(self, stack: AgentStack) -> object:
        agent = await stack.agents.create(AgentSpec())
        agent.send("run the errands")
        await agent.when_idle()
        return self._came_to(agent)

    def _came_to(self, agent: Agent) -> object:
        ends = [one.reason for one in agent.session.of(TurnEnd)]
        if ends != ["completed"]:
            raise LeadlineError(f"the turns of {agent.id} ended {ends}")
        return [one.message.text for one in agent.session.of(AssistantSaid)][-1]

    @asynccontextmanager
    async def _stack(self, folder: Path, note: Note) -> AsyncGenerator[AgentStack]:
        async with agent_stack(folder / "home", ScriptedModel(self._answer)) as stack:

            async def act(args: object, call: ToolInvocation) -> str:
                note("done", call.call_id)
                return "done"

            for name, body, effect in (
                ("post", act, "writes"),
                ("send", act, "network"),
                ("look", _look, "reads"),
            ):
                effects: frozenset[SideEffect] = frozenset({cast("SideEffect", effect)})
                tool = Tool(name, "Acts.", {"type": "object"}, body, side_effects=effects)
                stack.tools.register(stack.ctx, tool)
            yield stack

    def _answer(self, request: LlmRequest) -> Reply:
        asked = sum(isinstance(message, AssistantMessage) for message in request.conversation)
        calls = [("look", "post"), ("post", "post", "look"), ("send",)]
        if asked >= len(calls):
            return Reply("All errands are run.")
        return Reply(calls=tuple(Call(name, {}, f"c{asked}.{n}") for n, name in enumerate(calls[asked])))


async def _look(args: object, call: ToolInvocation) -> str:
    return "nine fathoms"


errands = Errands()
