"""A recorded session of an agent is lived through again: the model's words are recorded, the tools are those of now."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from leadline import Leadline
from leadline.core.agent.signals import Streamed
from leadline.core.session.store import SessionStore
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.server import ProviderServer, Received
from leadline.testing.replay import load_recording, replay_agent
from tests.composition.conftest import FakeResearcher

pytestmark = pytest.mark.anyio


def answers(request: Received) -> Behaviour:
    """Looks the weather up, twice at once, and says what came back; without a question it chats."""
    last = request.messages[-1]
    if last["role"] == "tool":
        told = [str(message["content"]) for message in request.messages if message["role"] == "tool"]
        return Behaviour(text=f"It is {' and '.join(told[-2:])}.")
    if "weather" in str(last["content"]):
        calls = (CallSpec("weather", {"town": "Husum"}), CallSpec("weather", {"town": "Emden"}))
        return Behaviour("tool_call_success", calls=calls)
    return Behaviour(text="You are welcome.")


def with_weather(app: Leadline, weather: str) -> Leadline:
    async def tell(town: str) -> str:
        """The weather of a town.

        Args:
            town: its name.
        """
        return f"{weather} in {town}"

    tell.__name__ = "weather"
    app.tool(tell)
    return app


async def recorded_session() -> str:
    async with ProviderServer(answers, strict=True) as server:
        app = with_weather(Leadline(model="local/fake", base_url=server.base_url), "sunny")
        async with app, app.open_agent() as agent:
            for said in ("How is the weather?", "Thank you!"):
                agent.followup(said)
                await agent.when_idle()
            return agent.id


async def test_a_session_with_the_same_tools_is_lived_through_again_without_a_provider(home: Path) -> None:
    session = await recorded_session()
    async with with_weather(Leadline(), "sunny") as app:
        recording = await load_recording(app.ctx.get(SessionStore), session)
        replayed = await replay_agent(app.ctx, recording)
    replayed.check()
    assert replayed.text == "You are welcome."
    assert [one.answered for one in replayed.asked] == ["recorded"] * 3
    assert replayed.end is not None
    assert replayed.end.reason == "completed"


async def test_a_tool_that_changed_is_named_with_what_it_said_and_says_now(home: Path) -> None:
    session = await recorded_session()
    async with with_weather(Leadline(), "foggy") as app:
        recording = await load_recording(app.ctx.get(SessionStore), session)
        replayed = await replay_agent(app.ctx, recording)
    assert [(one.name, one.was, one.now) for one in replayed.tools] == [
        ("weather", "sunny in Husum", "foggy in Husum"),
        ("weather", "sunny in Emden", "foggy in Emden"),
    ]
    with pytest.raises(
        AssertionError, match=r"(?s)its result differs.*-sunny in Husum.*\+foggy in Husum"
    ) as told:
        replayed.check()
    assert "turn 1, step 2: message 3 differs" in str(told.value)


async def test_a_tool_that_is_gone_is_told_as_a_difference_of_the_request(home: Path) -> None:
    session = await recorded_session()
    async with Leadline() as app:
        recording = await load_recording(app.ctx.get(SessionStore), session)
        replayed = await replay_agent(app.ctx, recording)
    parts = [difference.part for difference in replayed.asked[0].differences]
    assert parts == ["tools"]
    with pytest.raises(AssertionError, match=r"turn 1, step 1: tools differs"):
        replayed.check()


async def test_what_a_person_said_in_the_middle_of_a_turn_enters_at_the_same_step(home: Path) -> None:
    steered = False

    async with ProviderServer(answers, strict=True) as server:
        app = with_weather(Leadline(model="local/fake", base_url=server.base_url), "sunny")
        async with app, app.open_agent() as agent:
            agent.followup("How is the weather?")
            while not steered:
                async for logged in agent.session.follow():
                    if logged.type == "tool/call":
                        agent.steer("And be brief.")
                        steered = True
                        break
            await agent.when_idle()
            session = agent.id
    async with with_weather(Leadline(), "sunny") as app:
        recording = await load_recording(app.ctx.get(SessionStore), session)
        replayed = await replay_agent(app.ctx, recording)
    replayed.check()


async def test_agents_beside_a_replay_ask_their_own_model(home: Path) -> None:
    session = await recorded_session()
    async with ProviderServer(answers, strict=True) as server:
        app = with_weather(Leadline(model="local/fake", base_url=server.base_url), "sunny")
        async with app:
            recording = await load_recording(app.ctx.get(SessionStore), session)
            replayed = await replay_agent(app.ctx, recording)
            assert server.requests == []
            reply = await app.agent("Thank you!")
        assert len(server.requests) == 1
    assert reply.text == "You are welcome."
    replayed.check()


async def test_a_turn_that_was_stopped_in_mid_sentence_is_stopped_there_and_the_next_one_follows(
    home: Path,
) -> None:
    def stalls(request: Received) -> Behaviour:
        first = len(request.messages) == 2 and "weather" in str(request.messages[-1]["content"])
        return Behaviour("stall", text="It is probably") if first else Behaviour(text="You are welcome.")

    async with (
        ProviderServer(stalls) as server,
        Leadline(model="local/fake", base_url=server.base_url) as app,
        app.open_agent() as agent,
    ):
        shown = anyio.Event()
        agent.ctx.on(Streamed, lambda signal: shown.set())
        agent.followup("How is the weather?")
        await shown.wait()
        await agent.cancel()
        agent.followup("Thank you anyway!")
        await agent.when_idle()
        session = agent.id
    async with Leadline() as app:
        recording = await load_recording(app.ctx.get(SessionStore), session)
        replayed = await replay_agent(app.ctx, recording)
    replayed.check()
    assert [one.answered for one in replayed.asked] == ["cut off", "recorded"]
    assert replayed.text == "You are welcome."


async def test_runs_that_an_agent_has_made_are_answered_from_their_recorded_roles(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    """Two runs with the same roles: each is bound below its own agent's call, by what it was asked."""

    def relays(request: Received) -> Behaviour:
        if "deep_research" not in request.tools:
            return researcher(request)
        done = sum(message["role"] == "tool" for message in request.messages)
        if done < 2:
            asked = {"question": f"question {done}", "breadth": "focused"}
            return Behaviour("tool_call_success", calls=(CallSpec("deep_research", asked),))
        return Behaviour(text="That is all.")

    async with (
        ProviderServer(relays, strict=True) as server,
        Leadline(model="local/fake", base_url=server.base_url, corpus=[corpus]) as app,
    ):
        reply = await app.agent("What may a hotel night cost?")
        count = len(server.requests)
    async with Leadline(corpus=[corpus]) as app:
        recording = await load_recording(app.ctx.get(SessionStore), reply.session)
        replayed = await replay_agent(app.ctx, recording)
    replayed.check()
    assert [one.answered for one in replayed.asked] == ["recorded"] * count
    assert count == 15
