"""`leadline context`: what fills a window, on sessions and runs in any state, and making room in it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

import anyio
import pytest

from leadline import Leadline, SyncLeadline
from leadline.apps.cli.widths import columns_of
from leadline.apps.sdk.app import take_turn
from leadline.core.session.events import AssistantSaid
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.server import Received
from tests.composition.cli import PROGRAM, Command, provider
from tests.composition.conftest import FakeResearcher
from tests.laws.conftest import logs

WINDOW = 8_000
LONG = "".join(f"Line {at}: the reservoir held {at * 7} litres.\n" for at in range(3_000))


def answering(request: Received) -> Behaviour:
    """Reads what is long in each turn, thinks, and sums it up where a summary is wanted."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return Behaviour("reasoning_success", message="It is long. " * 5)
    if "Turn" not in str(last["content"]):
        return Behaviour("success", message="In short: it is long.")
    return Behaviour("tool_call_success", calls=(CallSpec("long", {}),))


def known(command: Command, base_url: str, window: int | None = WINDOW) -> None:
    """Make the model of the server known, with its window."""
    size = ["--context-window", str(window)] if window else []
    ended = command("models", "add", "fake/tiny", "--base-url", base_url, *size, "--default")
    assert ended.code == 0, ended


def agent(turns: int = 2) -> str:
    """The id of the session of an agent that had some turns."""

    async def go() -> str:
        app = Leadline()

        @app.tool(side_effects={"reads"})
        async def long() -> str:  # pyright: ignore[reportUnusedFunction]
            """Read what is long."""
            return LONG

        async with app, app.open_agent() as made:
            for turn in range(turns):
                reply = await take_turn(made, f"Turn {turn}: read it, please.")
                assert reply.completed, reply
            return made.id

    return anyio.run(go)


@pytest.fixture
def session(command: Command) -> str:
    with provider(answering) as (_, _, _, url):
        known(command, url)
        return agent()


def test_the_parts_are_all_that_fills_the_window(command: Command, session: str) -> None:
    view = command("context", session[:8], "--json").json
    assert view["model"] == "fake/tiny"
    assert view["window"] == WINDOW
    parts = {one["what"]: one["tokens"] for one in view["parts"]}
    assert {
        "system text",
        "tool schemas",
        "user's words",
        "assistant text",
        "tool calls",
        "results of long",
    } <= set(parts)
    assert sum(parts.values()) == view["tokens"]
    assert view["share"] == round(view["tokens"] / WINDOW, 4)
    counts = {one["what"]: one["messages"] for one in view["parts"]}
    assert (counts["assistant text"], counts["tool calls"]) == (2, 2)
    assert parts["results of long"] <= 2 * WINDOW * 0.15 * 1.3
    assert [one["what"] for one in view["recallable"]] == ["result of long"] * 2


@pytest.mark.case("K03")
def test_what_was_reported_is_the_latest_prompt_and_no_sum(command: Command, session: str) -> None:
    async def prompts() -> list[int | None]:
        async with Leadline() as app:
            log = await app.session(session)
            return [one.usage.prompt if one.usage else None for one in log.of(AssistantSaid)]

    reported = anyio.run(prompts)
    assert len(reported) == 4
    assert command("context", session, "--json").json["reported"] == reported[-1]


def test_a_person_gets_a_table_and_a_bar_as_long_as_the_share(command: Command, session: str) -> None:
    view = command("context", session, "--json").json
    lines = command("context", session).out.decode().splitlines()
    assert f"of {WINDOW:,} tokens ({100 * view['tokens'] / WINDOW:.0f} %)" in lines[1]
    (bar,) = [line for line in lines if line.startswith("[")]
    assert len(bar) == 60
    assert abs(58 - bar.count("·") - 58 * view["share"]) <= 1
    assert any(re.search(r"█ +[\d,]+ +[\d.]+ % +2 +results of long", line) for line in lines)


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_nothing_is_wider_than_the_terminal(home: Path, command: Command, session: str, columns: int) -> None:
    ours, its = pty.openpty()
    env = {**os.environ, "COLUMNS": str(columns)}
    with subprocess.Popen(
        [PROGRAM, "context", session], stdout=its, stderr=subprocess.PIPE, env=env
    ) as process:
        os.close(its)
        shown = b""
        while True:
            try:
                got = os.read(ours, 65536)
            except OSError:
                break
            if not got:
                break
            shown += got
    os.close(ours)
    assert process.returncode == 0
    assert shown
    assert max(columns_of(line) for line in shown.decode().splitlines()) <= columns


def test_a_window_that_nobody_knows_is_said(command: Command) -> None:
    with provider(answering) as (_, _, _, url):
        known(command, url, None)
        session = agent(1)
    assert command("context", session, "--json").json["window"] is None
    ended = command("context", session)
    assert "how many it takes is not known" in ended.out.decode()
    assert "--context-window" in ended.out.decode()


def test_a_session_is_compacted_and_the_compaction_undone(command: Command) -> None:
    with provider(answering) as (_, _, _, url):
        known(command, url, 30_000)
        session = agent(3)
        before = command("context", session, "--json").json
        ended = command("context", session, "--compact", "--json")
        assert ended.code == 0, ended
        compacted = ended.json
    assert compacted["compactions"] == 1
    assert compacted["tokens"] < before["tokens"]
    assert "summaries" in {one["what"] for one in compacted["parts"]}
    assert len(compacted["recallable"]) > len(before["recallable"])
    for wrong in ("-1", "x"):
        assert command("context", session, "--undo", wrong).code == 2
    assert command("context", session, "--json").json["compactions"] == 1
    ended = command("context", session, "--undo", "--json")
    assert ended.code == 0, ended
    assert ended.json["compactions"] == 0
    assert ended.json["parts"] == before["parts"]
    again = command("context", session, "--undo")
    assert again.code == 2
    assert "no change of its window" in again.err
    assert command("audit", session).code == 0


def test_what_cannot_be_summarised_is_refused_and_nothing_changes(command: Command) -> None:
    with provider(answering) as (_, _, _, url):
        known(command, url)
        session = agent(0)
        events = len(logs(Path(os.environ["LEADLINE_HOME"]))[session].read_bytes().splitlines())
        ended = command("context", session, "--compact")
    assert ended.code == 1
    assert "nothing to summarise" in ended.err
    assert len(logs(Path(os.environ["LEADLINE_HOME"]))[session].read_bytes().splitlines()) == events


def test_a_run_lists_its_roles(
    home: Path, corpus: Path, command: Command, researcher: FakeResearcher
) -> None:
    with provider(researcher) as options:
        assert command("research", "hotel caps?", "--corpus", corpus, *options).code == 0
    (run,) = [one["id"] for one in command("runs", "list", "--json").json]
    view = command("context", run, "--json").json
    assert view["kind"] == "research"
    assert len(view["below"]) == 3
    assert {"results of read", "results of corpus_search"} <= {
        one["what"] for one in view["below"][1]["parts"]
    }
    text = command("context", run).out.decode()
    assert text.count("local/fake: about") == 3


def test_a_damaged_log_is_shown_as_far_as_it_is_read(home: Path, command: Command, session: str) -> None:
    log = logs(home)[session]
    log.write_bytes(log.read_bytes()[:-40] + b"\xff{broken\n")
    ended = command("context", session, "--json")
    assert ended.code == 0
    assert ended.json["problems"]
    assert session in ended.err


def test_a_live_session_is_shown_and_not_changed(command: Command) -> None:
    async def go(url: str) -> None:
        async with Leadline() as app, app.open_agent() as made:
            await take_turn(made, "Hello.")
            view = await anyio.to_thread.run_sync(command, "context", made.id, "--json")
            assert view.json["model"] == "fake/tiny"
            refused = await anyio.to_thread.run_sync(command, "context", made.id, "--undo")
            assert refused.code == 2
            assert "is being written by process" in refused.err

    with provider(["Hello."] * 3) as (_, _, _, url):
        known(command, url)
        anyio.run(go, url)


def test_an_unknown_id_is_refused(command: Command) -> None:
    ended = command("context", "s-nothing")
    assert ended.code == 2
    assert not ended.out


def test_a_program_without_a_loop_has_the_same_view(command: Command) -> None:
    with provider(answering) as (_, _, _, url):
        known(command, url, 30_000)
        session = agent(3)
        with SyncLeadline() as app:
            before = app.context(session).own
            changed = app.compact(session)
            assert app.context(session).own.compactions == 1
            assert changed.after < changed.before
            app.undo_compaction(session)
            assert app.context(session).own.parts == before.parts
