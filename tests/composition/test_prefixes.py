"""What a provider's prompt cache sees: each request begins with the bytes of the one before, unless an event says why not."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from leadline import Leadline
from leadline.capabilities.models import plugin as models
from leadline.core.agent.agent import Agent
from leadline.core.agent.agents import Agents
from leadline.core.agent.spec import AgentSpec, TurnBudget
from leadline.core.llm.request import ModelRef
from leadline.core.loop.config import LoopConfig, RetryConfig
from leadline.core.session.events import (
    RequestHeader,
    RequestSent,
    TurnResumed,
    WindowChanged,
)
from leadline.core.session.log import Session
from leadline.core.session.store import SessionStore
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import Tool, ToolOutput
from leadline.testing.agents import AgentStack, agent_stack
from leadline.testing.clock import ManualClock
from leadline.testing.ids import SeededIds
from leadline.testing.prefixes import common, extends, kept
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.server import ProviderServer, Received
from leadline.testing.researcher import ScriptedResearcher, topics, write_corpus
from leadline.window.summary import instruction

pytestmark = pytest.mark.anyio

_KEY = re.compile(rb"<call-(\w+) NAME>")
OBJECT = {"type": "object", "properties": {"q": {"type": "string"}}}


@dataclass(frozen=True)
class Way:
    """A wire format, and how a provider that speaks it is configured."""

    name: str
    profile: str
    model: str = "model"
    tools: bool = True
    """Whether tools are called as the wire has it, and not in text."""

    @property
    def spec(self) -> AgentSpec:
        return AgentSpec(model=ModelRef("p", self.model), budget=TurnBudget(max_steps=1000))

    def config(self, origin: str) -> dict[str, object]:
        provider: dict[str, object] = {"profile": self.profile, "base_url": origin, "api_key": "k"}
        if not self.tools:
            provider["settings"] = {"tools": False}
        return {"default": f"p/{self.model}", "providers": {"p": provider}}


WAYS = [
    Way("chat", "local"),
    Way("chat with reasoning", "deepseek", "deepseek-reasoner"),
    Way("openrouter", "openrouter", "maker/model"),
    Way("messages", "anthropic", "claude-opus-4-5"),
    Way("gemini", "gemini", "gemini-2.5-pro"),
    Way("responses", "openai-responses", "gpt-5"),
    Way("calls in text", "local", tools=False),
    Way("calls in text over messages", "anthropic", "claude-opus-4-5", tools=False),
]
ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)


@dataclass
class Speaker:
    """The model: so many rounds with tools, some of which go wrong, then a word that ends the turn."""

    left: int = 0
    padding: int = 0
    """Words that each answer has besides."""

    def __call__(self, request: Received) -> Behaviour:
        said, key = self.said(request), _KEY.search(request.raw)
        if key is None or not said.calls:
            return said
        tag = f"call-{key.group(1).decode()}"
        calls = [f"<{tag} {call.name}>\n{call.text()}\n</{tag}>" for call in said.calls]
        return Behaviour(text="\n".join([said.text, *calls]))

    def said(self, request: Received) -> Behaviour:
        self.left -= 1
        n, text = request.n, "word " * self.padding + f'Runde {request.n}: „ja“ 🙂 }}}}]"\\'
        if self.left < 0:
            return Behaviour(text=text)
        if n % 7 == 5:
            calls = tuple(CallSpec("look", {"q": f"{n}.{k}"}, f"c{n}_{k}") for k in range(3))
            return Behaviour("tool_call_success", text=text, calls=calls)
        if n % 11 == 9:
            return Behaviour("tool_call_success", calls=(CallSpec("nothing", {}, f"c{n}"),))
        if n % 29 == 11:
            return Behaviour("empty")
        if n % 47 == 15:
            return Behaviour("partial_eof", text="I am cut")
        return Behaviour(
            "tool_call_success",
            text=text if n % 2 or self.padding else "",
            reasoning="Let me see.",
            state="c2lnbmVk",
            calls=(CallSpec("act", {"q": "x"}, f"c{n}"),),
        )


def add_tools(stack: AgentStack, *names: str) -> None:
    async def run(args: object, call: ToolInvocation) -> ToolOutput:
        text = {"look": f"found {call.call_id} …", "act": "}]}"}.get(call.name, "")
        return ToolOutput(text, is_error=call.call_id.endswith("_1"))

    for name in names:
        stack.tools.register(
            stack.ctx, Tool(name, f"{name}: does it.", OBJECT, run, side_effects=frozenset(), parallel=True)
        )


def add_facts(stack: AgentStack) -> None:
    """Facts that change every few rounds."""
    asked = 0

    async def weather(scope: object) -> str:
        nonlocal asked
        asked += 1
        return f"it rains for the {asked // 20}. day"

    stack.prompt.context(stack.ctx, "weather", 10, weather)


@asynccontextmanager
async def stack_of(
    folder: Path, way: Way, server: ProviderServer, seed: object = 0, names: Sequence[str] = ("look", "act")
) -> AsyncGenerator[AgentStack]:
    origin = server.base_url
    async with agent_stack(
        folder,
        models_plugin=(models.plugin, way.config(origin)),
        ids_service=SeededIds(seed),  # pyright: ignore[reportArgumentType]
        loop=LoopConfig(retry=RetryConfig(first_s=1e-6)),
        invariants=False,
    ) as stack:
        add_tools(stack, *names)
        yield stack


async def rounds(agent: Agent, speaker: Speaker, prompt: str, count: int) -> None:
    """One turn of so many rounds."""
    speaker.left = count
    agent.send(prompt)
    await agent.when_idle()
    assert agent.last_turn_end is not None
    assert agent.last_turn_end.reason == "completed", agent.last_turn_end


def bodies_of(session: Session, server: ProviderServer) -> list[tuple[bytes, list[str]]]:
    """What a session sent, in its order, each with the events since the one before that may break the prefix."""
    raw = {hashlib.sha256(request.raw).hexdigest(): request.raw for request in server.requests}
    declared: list[str] = []
    found: list[tuple[bytes, list[str]]] = []
    for line in session.logged:
        if line.type in (RequestHeader.TYPE, WindowChanged.TYPE, TurnResumed.TYPE):
            declared.append(line.type)
        elif line.type == RequestSent.TYPE:
            sent = line.as_(RequestSent)
            assert sent.digest in raw, "a request that is logged never came, or other bytes came"
            found.append((raw[sent.digest], declared))
            declared = []
    return found


def check(session: Session, server: ProviderServer) -> list[bytes]:
    """The bodies of a session, of which each extends the one before where nothing says why not."""
    found = bodies_of(session, server)
    for (earlier, _), (later, declared) in pairwise(found):
        at = common(earlier, later)
        assert declared or extends(later, earlier), (
            f"{earlier[max(0, at - 80) : at + 80]!r} became {later[max(0, at - 80) : at + 80]!r}"
        )
    return [body for body, _ in found]


@ways
async def test_over_200_rounds_each_request_extends_the_one_before(tmp_path: Path, way: Way) -> None:
    speaker = Speaker()
    async with ProviderServer(speaker) as server, stack_of(tmp_path, way, server) as stack:
        add_facts(stack)
        agent = await stack.agents.create(way.spec)
        for turn in range(4):
            await rounds(agent, speaker, f"go on {turn}", 50)
        bodies = check(agent.session, server)
        headers = [*agent.session.of(RequestHeader)]
    assert len(bodies) >= 200
    assert len(headers) == 1, [header.reason for header in headers]
    assert kept(bodies) == 1.0


async def test_marks_for_a_prompt_cache_stand_before_the_messages_and_stay_where_they_are(
    tmp_path: Path,
) -> None:
    """A mark that moved with the conversation would change the bytes of messages that were sent already."""
    way, speaker = next(way for way in WAYS if way.name == "messages"), Speaker()
    async with ProviderServer(speaker) as server, stack_of(tmp_path, way, server) as stack:
        stack.prompt.section(stack.ctx, "who", 0, "You are brief.")
        agent = await stack.agents.create(way.spec)
        await rounds(agent, speaker, "go", 30)
        bodies = check(agent.session, server)
    marked = [body.partition(b'"messages":[') for body in bodies]
    assert {head.count(b"cache_control") for head, _, _ in marked} == {3}, "a provider takes four"
    assert not any(b"cache_control" in rest for _, _, rest in marked)
    last_tool, system = b'"cache_control":{"type":"ephemeral"}}],"cache_control"', b"You are brief."
    assert all(last_tool in head and system in head for head, _, _ in marked)


@ways
async def test_what_breaks_the_prefix_is_said_by_an_event(tmp_path: Path, way: Way) -> None:
    speaker = Speaker()
    async with ProviderServer(speaker) as server, stack_of(tmp_path, way, server) as stack:
        agent = await stack.agents.create(way.spec)
        await rounds(agent, speaker, "go", 10)
        add_tools(stack, "a_new_one")
        await rounds(agent, speaker, "go on", 10)
        bodies = check(agent.session, server)
        assert [header.reason for header in agent.session.of(RequestHeader)] == ["initial", "change"]
    broken = [n for n, (earlier, later) in enumerate(pairwise(bodies), 1) if not extends(later, earlier)]
    assert len(broken) == 1


@ways
async def test_ids_times_and_the_order_of_registration_are_in_no_request(tmp_path: Path, way: Way) -> None:
    sent: list[list[bytes]] = []
    for run, names in enumerate((("look", "act", "zeal"), ("zeal", "act", "look"))):
        async with (
            ProviderServer(speaker := Speaker()) as server,
            agent_stack(
                tmp_path / str(run),
                models_plugin=(models.plugin, way.config(server.base_url)),
                ids_service=SeededIds(run),
                clock_service=ManualClock(1e9 * (run + 1)) if way.name == "chat" else None,
                invariants=False,
            ) as stack,
        ):
            add_tools(stack, *names)
            agent = await stack.agents.create(way.spec)
            await rounds(agent, speaker, "go", 12)
            sent.append(check(agent.session, server))
    assert sent[0] == sent[1]


@ways
async def test_another_process_goes_on_with_the_same_bytes(tmp_path: Path, way: Way) -> None:
    speaker = Speaker()
    async with ProviderServer(speaker) as server:
        async with stack_of(tmp_path, way, server, "a") as stack:
            agent = await stack.agents.create(way.spec)
            await rounds(agent, speaker, "go", 12)
        async with stack_of(tmp_path, way, server, "b", ("act", "look")) as stack:
            again = await stack.agents.resume(agent.id, way.spec)
            await rounds(again, speaker, "go on", 6)
            bodies = check(again.session, server)
            headers = [header.reason for header in again.session.of(RequestHeader)]
    assert headers == ["initial"]
    assert all(extends(later, earlier) for earlier, later in pairwise(bodies))


@ways
async def test_a_fork_keeps_the_prefix_of_its_parent(tmp_path: Path, way: Way) -> None:
    speaker = Speaker()
    async with ProviderServer(speaker) as server, stack_of(tmp_path, way, server) as stack:
        parent = await stack.agents.create(way.spec)
        await rounds(parent, speaker, "go", 12)
        bodies = check(parent.session, server)
        forks = [
            await stack.agents.create(
                AgentSpec(parent=parent, seed_turns=True, model=way.spec.model, budget=way.spec.budget)
            )
            for _ in range(2)
        ]
        for n, fork in enumerate(forks):
            await rounds(fork, speaker, f"look into {n}", 3)
            sent = check(fork.session, server)
            assert sent[: len(bodies)] == bodies, "the fork has what its parent was asked"
            assert all(extends(one, bodies[-1]) for one in sent[len(bodies) :])
        await rounds(parent, speaker, "go on", 3)
        assert extends(check(parent.session, server)[len(bodies)], bodies[-1])


# runs


@asynccontextmanager
async def app_of(folder: Path, way: Way, server: ProviderServer, **rows: object) -> AsyncGenerator[Leadline]:
    """The shipped research profile with a model behind the wire format."""
    patch = folder / "models.yml"
    merged = {"models": way.config(server.base_url), **rows}
    patch.write_text(json.dumps([{"id": row, "merge": config} for row, config in merged.items()]))
    async with Leadline(home=folder / "home", patches=[patch]) as app:
        yield app


RESEARCH_WAYS = [way for way in WAYS if way.tools]


@pytest.mark.parametrize("way", RESEARCH_WAYS, ids=lambda way: way.name)
async def test_the_roles_of_a_run_extend_their_requests_and_its_units_share_what_they_can(
    tmp_path: Path, way: Way
) -> None:
    """Everything but the unit itself: persona, tools, question and brief are the same bytes, and come first."""
    found = topics(4)
    write_corpus(tmp_path / "corpus", found)
    async with ProviderServer(ScriptedResearcher(found)) as server, app_of(tmp_path, way, server) as app:
        result = await app.research(
            "What did the reservoirs hold?", corpus=[tmp_path / "corpus"], breadth="broad"
        )
        assert result.status == "completed", result.error
        store = app.ctx.get(SessionStore)
        entries = [one for one in await store.list() if one.parent == result.id]
        sent = {one.id: check(await store.read(one.id), server) for one in entries}
    assert sum(map(len, sent.values())) == len(server.requests)
    assert all(kept(bodies) == 1.0 for bodies in sent.values())
    units = [bodies for bodies in sent.values() if len(bodies) > 1]
    assert len(units) == 3
    heads = {bodies[0].partition(b"Your unit (")[0] for bodies in units}
    assert len(heads) == 1, "the same for every researcher up to its unit"
    (head,) = heads
    assert b"record_evidence" in head
    assert b"You research one unit" in head
    assert b"Each reservoir by itself." in head


@ways
async def test_a_smaller_window_is_said_by_an_event_and_the_summary_is_asked_for_with_the_same_bytes(
    tmp_path: Path, way: Way
) -> None:
    speaker = Speaker(padding=300)
    settings = {"models": [{"model": f"p/{way.model}", "window": 12_000}]}
    async with ProviderServer(speaker) as server, app_of(tmp_path, way, server, window=settings) as app:

        @app.tool(side_effects={"reads"})
        async def act(q: str) -> str:  # pyright: ignore[reportUnusedFunction]
            """Acts."""
            return "done " * 20

        agent = await app.ctx.get(Agents).create(way.spec)
        await rounds(agent, speaker, "go", 60)
        check(agent.session, server)
        assert any(agent.session.of(WindowChanged)), "the window was never filled"
        store = app.ctx.get(SessionStore)
        own = {body for body, _ in bodies_of(agent.session, server)}
        children = [one.id for one in await store.list() if one.kind == "summary"]
        assert children
        for child in children:
            first = bodies_of(await store.read(child), server)[0][0]
            told = first.rindex(instruction(1).partition(".")[0].encode())
            assert max(common(first, body) for body in own) > told - 64, "all but the last message is known"
