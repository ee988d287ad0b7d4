"""Law 2: any prefix of any log, with any damage, loads to a session and its problems; nothing is lost silently."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import anyio
import pytest

from leadline import Leadline
from leadline.core.agent.agents import Agents
from leadline.core.session.errors import SessionError, SessionNotContinuable
from leadline.core.session.store import SessionStore
from leadline.testing.provider_server.behaviours import Behaviour
from tests.composition.conftest import FakeResearcher
from tests.laws.conftest import QUESTION, Command, events, logs, running

pytestmark = pytest.mark.anyio


@pytest.fixture
async def written_logs(home: Path, corpus: Path, researcher: FakeResearcher) -> dict[str, bytes]:
    """The logs of a run, by session id."""
    async with running(researcher) as (app, _):
        await app.research(QUESTION, corpus=[corpus])
    return {session_id: path.read_bytes() for session_id, path in logs(home).items()}


def damaged(content: bytes, random: Random) -> bytes:
    """A prefix, with some bytes changed, put in or taken out."""
    data = bytearray(content[: random.randint(0, len(content))])
    for _ in range(random.choice((0, 0, 1, 3, 10))):
        at = random.randint(0, len(data))
        match random.choice(("flip", "insert", "remove", "line feed")):
            case "flip" if at < len(data):
                data[at] = random.randrange(256)
            case "insert":
                data[at:at] = random.randbytes(random.randint(1, 50))
            case "remove":
                del data[at : at + random.randint(1, 200)]
            case _:
                data[at:at] = b"\n"
    return bytes(data)


@pytest.mark.parametrize("seed", range(8))
async def test_damage_of_any_kind_reads_and_what_can_be_continued_asks_a_sound_question(
    home: Path, written_logs: dict[str, bytes], seed: int
) -> None:
    random = Random(seed)
    opened = 0
    async with running(lambda request: Behaviour(text="ok")) as (app, server):
        store, agents = app.ctx.get(SessionStore), app.ctx.get(Agents)
        for session_id, path in logs(home).items():
            for _ in range(5):
                for beside in path.parent.glob(f"{session_id}.*"):
                    beside.unlink()
                before = damaged(written_logs[session_id], random)
                path.write_bytes(before)
                session = await store.read(session_id)
                if before != written_logs[session_id][: len(before)] or not before.endswith(b"\n"):
                    assert session.problems or len(session) == before.count(b"\n") - 1
                assert session.derived().conversation.pairing_problem is None
                assert path.read_bytes() == before, "reading changed the log"
                try:
                    agent = await agents.resume(session_id)
                except SessionError:
                    assert path.read_bytes() == before, "a log that was refused was changed"
                    continue
                opened += 1
                kept = b"".join(one.read_bytes() for one in path.parent.glob(f"{session_id}.*"))
                missing = [line for line in before.split(b"\n") if line not in kept]
                assert not missing, "bytes of the log are gone"
                agent.followup("go on")
                await agent.when_idle()
                assert agent.last_turn_end is not None
                assert agent.last_turn_end.reason == "completed", agent.last_turn_end
                await agent.dispose()
        assert len(server.bill) == len(server.requests), "a strict provider refused what a log gave"
    assert opened


async def test_every_prefix_that_ends_between_two_events_loads_whole_and_without_a_problem(
    home: Path, written_logs: dict[str, bytes]
) -> None:
    async with Leadline() as app:
        store = app.ctx.get(SessionStore)
        for session_id, path in logs(home).items():
            lines = written_logs[session_id].splitlines(keepends=True)
            for count in range(1, len(lines) + 1):
                path.write_bytes(b"".join(lines[:count]))
                session = await store.read(session_id)
                assert not session.problems
                assert len(session) == count - 1
                assert session.derived().conversation.pairing_problem is None


def add_event(path: Path, type_: str, data: str, *, derives: bool) -> bytes:
    """Append an event that nobody knows, and return its line."""
    import hashlib

    content = path.read_bytes()
    last = content.splitlines()[-1]
    mark = '"derives":true,' if derives else ""
    line = (
        f'{{"v":7,"seq":{json.loads(last)["seq"] + 1},"t":1.5,"type":"{type_}",'
        f'"prev":"{hashlib.sha256(last).hexdigest()[:32]}",{mark}"data":{data}}}'
    ).encode()
    path.write_bytes(content + line + b"\n")
    return line


async def test_an_unknown_event_is_kept_byte_for_byte_and_gone_past(home: Path) -> None:
    async with running(lambda request: Behaviour(text="ok")) as (app, _):
        session_id = (await app.agent("hello")).session
        line = add_event(logs(home)[session_id], "elsewhere/noted", '{ "b":1.50, "a":[ 2 ] }', derives=False)
        agent = await app.ctx.get(Agents).resume(session_id)
        agent.followup("go on")
        await agent.when_idle()
        await agent.dispose()
        assert not (await app.session(session_id)).problems
    assert line in logs(home)[session_id].read_bytes().splitlines()
    assert [one["type"] for one in events(logs(home)[session_id])].count("turn/end") == 2


async def test_an_unknown_event_that_shapes_the_window_is_shown_but_not_built_upon(home: Path) -> None:
    async with running(lambda request: Behaviour(text="ok")) as (app, server):
        session_id = (await app.agent("hello")).session
        path = logs(home)[session_id]
        add_event(path, "elsewhere/compacted", "{}", derives=True)
        before = path.read_bytes()
        session = await app.session(session_id)
        assert session.logged[-1].type == "elsewhere/compacted"
        assert not session.continuable
        with pytest.raises(SessionNotContinuable, match="elsewhere/compacted"):
            await app.ctx.get(Agents).resume(session_id)
        assert path.read_bytes() == before
        assert len(server.requests) == 1


def test_a_damaged_log_is_shown_and_its_damage_told(home: Path, command: Command) -> None:
    async def go() -> str:
        async with running(lambda request: Behaviour(text="An answer.")) as (app, _):
            return (await app.agent("hello")).session

    session_id = anyio.run(go)
    path = logs(home)[session_id]
    path.write_bytes(path.read_bytes()[:-10])
    shown = command("show", session_id)
    assert shown.code == 0
    assert "An answer." in shown.out
    assert "unfinished" in shown.err
