"""The Python API: one object, its synchronous twin, functions as tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from leadline import Leadline, SyncLeadline
from leadline.apps.sdk.app import NotRunning, take_turn
from leadline.core.tools.registry import ToolRegistry
from leadline.kernel.errors import BootFailed, ConfigError
from leadline.research.events import Ended
from leadline.research.request import RequestRefused
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.server import ProviderServer, Received

QUESTION = "What may a hotel night cost?"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "share"
    folder.mkdir()
    (folder / "expenses.md").write_text("# Expenses\n\nA hotel night may cost EUR 180.\n")
    return folder


def uses_tool(name: str, **arguments: object) -> Callable[[Received], Behaviour]:
    def answers(request: Received) -> Behaviour:
        told = [message for message in request.messages if message["role"] == "tool"]
        if told:
            return Behaviour(text=f"The tool said {told[-1]['content']}")
        return Behaviour("tool_call_success", calls=(CallSpec(name, arguments),))

    return answers


@pytest.mark.anyio
async def test_a_question_is_one_call(home: Path, corpus: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "run.leadline"
    async with Leadline(home=home) as app:
        result = await app.research(QUESTION, corpus=[str(corpus)], bundle=bundle, format="brief")
        stored = await app.stored(result.id)
    assert result.status == "completed"
    assert "EUR 180" in result.report
    assert bundle.exists()
    assert stored.result() == result
    assert (home / "sessions").is_dir()


@pytest.mark.anyio
async def test_a_bundle_may_be_named_by_a_text_and_a_corpus_only_by_a_list(
    home: Path, corpus: Path, tmp_path: Path
) -> None:
    async with Leadline(home=home) as app:
        await app.research(QUESTION, corpus=[corpus], bundle=str(tmp_path / "run.leadline"))
        with pytest.raises(RequestRefused, match=r"not a list of paths\. Write corpus=\["):
            await app.research(QUESTION, corpus=str(corpus))
        with pytest.raises(RequestRefused, match=r"not a list of paths\. Write corpus=\["):
            await app.research(QUESTION, corpus=corpus)  # pyright: ignore[reportArgumentType] - what people write
    assert (tmp_path / "run.leadline").exists()


@pytest.mark.anyio
async def test_a_bundle_that_could_not_be_written_is_refused_before_anything_is_paid(
    home: Path, corpus: Path, tmp_path: Path
) -> None:
    async with Leadline(home=home) as app:
        for bundle in (tmp_path / "none" / "run.leadline", tmp_path):
            with pytest.raises(RequestRefused, match="folder"):
                await app.research(QUESTION, corpus=[corpus], bundle=bundle)
    assert not any((home / "sessions").iterdir())


@pytest.mark.anyio
async def test_a_run_can_be_followed_and_cancelled(home: Path, corpus: Path) -> None:
    async with (
        ProviderServer([Behaviour("stall")]) as server,
        Leadline(home=home, model="local/fake", base_url=server.base_url) as app,
    ):
        run = await app.start_research(QUESTION, corpus=[corpus])
        await run.cancel("changed my mind")
        facts = [fact async for fact in run.events()]
        result = await run.result()
        await run.dispose()
    assert isinstance(facts[-1], Ended)
    assert (result.status, result.error) == ("cancelled", "changed my mind")


@pytest.mark.anyio
async def test_leaving_the_block_ends_a_run_that_was_forgotten(home: Path, corpus: Path) -> None:
    with anyio.fail_after(20):
        async with (
            ProviderServer([Behaviour("stall")]) as server,
            Leadline(home=home, model="local/fake", base_url=server.base_url) as app,
        ):
            run = await app.start_research(QUESTION, corpus=[corpus])
    assert (await run.result()).status == "cancelled"


@pytest.mark.anyio
@pytest.mark.parametrize("when", ["before", "within"])
async def test_a_function_becomes_a_tool_in_three_lines(home: Path, when: str) -> None:
    async def add(first: int, second: int) -> int:
        """Adds two numbers."""
        return first + second

    async with ProviderServer(uses_tool("add", first=2, second=3)) as server:
        app = Leadline(profile="headless", home=home, model="local/fake", base_url=server.base_url)
        if when == "before":
            app.tool(add)
        async with app:
            if when == "within":
                app.tool(add)
            reply = await app.agent("Add two and three.")
    assert reply.completed
    assert reply.text == "The tool said 5"


@pytest.mark.anyio
async def test_a_plain_function_becomes_a_tool_and_stays_a_function(home: Path) -> None:
    async with ProviderServer(uses_tool("shout", text="ahoy")) as server:
        app = Leadline(profile="headless", home=home, model="local/fake", base_url=server.base_url)

        @app.tool
        def shout(text: str) -> str:
            """Says it louder."""
            return text.upper()

        async with app:
            assert (await app.agent("Shout ahoy.")).text == "The tool said AHOY"
    assert shout("a") == "A"


@pytest.mark.anyio
async def test_a_function_is_taken_to_do_anything_unless_it_says_what(home: Path) -> None:
    async with Leadline(profile="headless", home=home) as app:

        @app.tool
        def charge() -> str:
            """Charges somebody."""
            return "charged"

        @app.tool(side_effects=["reads"])
        def look() -> str:
            """Looks."""
            return "seen"

        tools = app.ctx.get(ToolRegistry)
        assert {name: sorted(tools.view(None)[name].side_effects) for name in ("charge", "look")} == {
            "charge": ["network", "reads", "writes"],
            "look": ["reads"],
        }


@pytest.mark.anyio
async def test_an_agent_can_have_several_turns(home: Path) -> None:
    async with (
        ProviderServer(["first", "second"]) as server,
        Leadline(profile="headless", home=home, model="local/fake", base_url=server.base_url) as app,
        app.open_agent(label="talk") as agent,
    ):
        assert (await take_turn(agent, "one")).text == "first"
        assert (await take_turn(agent, "two")).text == "second"
    assert "first" in server.requests[1].raw.decode()


@pytest.mark.anyio
async def test_what_cannot_be_done_is_refused_by_type(home: Path, corpus: Path, tmp_path: Path) -> None:
    app = Leadline(home=home)
    with pytest.raises(NotRunning):
        await app.research(QUESTION, corpus=[corpus])
    async with app:
        with pytest.raises(RequestRefused, match="blank"):
            await app.research("  ", corpus=[corpus])
        with pytest.raises(RequestRefused, match="does not exist"):
            await app.research(QUESTION, corpus=[tmp_path / "none"])
    with pytest.raises(ConfigError, match="did you mean 'research'"):
        await Leadline(profile="reserch", home=home).__aenter__()
    (tmp_path / "file").write_text("")
    with pytest.raises(BootFailed, match="LEADLINE_HOME"):
        async with Leadline(home=tmp_path / "file" / "home"):
            pass


def test_the_synchronous_twin_does_the_same(home: Path, corpus: Path) -> None:
    with SyncLeadline(home=home) as app:
        result = app.research(QUESTION, corpus=[corpus])
        reply = app.agent("hi")
    assert "EUR 180" in result.report
    assert reply.completed
    with pytest.raises(NotRunning):
        app.research(QUESTION, corpus=[corpus])


def test_the_synchronous_twin_takes_tools_before_and_within(home: Path) -> None:
    with start_blocking_portal() as portal:
        server = ProviderServer(uses_tool("shout", text="ahoy"))
        with portal.wrap_async_context_manager(server):
            app = SyncLeadline(profile="headless", home=home, model="local/fake", base_url=server.base_url)
            with app:

                @app.tool
                def shout(text: str) -> str:
                    """Says it louder."""
                    return text.upper()

                assert app.agent("Shout ahoy.").text == "The tool said AHOY"
    assert shout("a") == "A"


def test_one_path_for_the_corpus_of_agents_is_refused_and_not_read_letter_by_letter() -> None:
    with pytest.raises(ConfigError, match="not a list of paths"):
        Leadline(corpus="d/club")
