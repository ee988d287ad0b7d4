"""Law 1: a request to a model is a pure function of the session log, and its digest is logged before it is sent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from leadline import Leadline
from leadline.core.agent.agents import Agents
from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.adapter import Models
from leadline.core.loop.audit import audit
from leadline.core.session.store import SessionStore
from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import ProviderServer, Received
from tests.composition.conftest import FakeResearcher
from tests.laws.conftest import QUESTION, Command, Edit, events, forge, logs, running


def run_of(corpus: Path, researcher: Callable[[Received], Behaviour]) -> tuple[str, list[bytes]]:
    """A run against a provider that is gone when this returns; its id, and the bodies that arrived."""

    async def go() -> tuple[str, list[bytes]]:
        async with running(researcher) as (app, server):
            result = await app.research(QUESTION, corpus=[corpus])
            return result.id, [request.raw for request in server.requests]

    return anyio.run(go)


def test_every_request_is_proved_from_the_logs_of_the_run_and_its_roles_without_a_provider(
    home: Path, corpus: Path, researcher: FakeResearcher, command: Command
) -> None:
    run_id, bodies = run_of(corpus, researcher)
    ended = command("audit", run_id, "--json")
    assert ended.code == 0, ended
    assert ended.json["ok"]
    assert ended.json["sessions"][0]["id"] == run_id
    assert sum(one["proved"] for one in ended.json["sessions"]) == len(bodies) == 6
    logged = [
        event["data"]["digest"]
        for path in logs(home).values()
        for event in events(path)
        if event["type"] == "request/sent"
    ]
    assert sorted(logged) == sorted(hashlib.sha256(body).hexdigest() for body in bodies)


def test_the_embedded_model_acts_on_nothing_that_is_not_logged(
    home: Path, corpus: Path, command: Command
) -> None:
    research = command("research", QUESTION, "--corpus", corpus, "--json")
    ended = command("audit", research.json["id"])
    assert ended.code == 0, ended
    assert len(ended.out.splitlines()) == 4
    assert "4 of 4 requests proved" in ended.out


def test_the_digest_is_in_the_file_before_the_request_arrives(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    seen: list[bool] = []

    def answer(request: Received) -> Behaviour:
        digest = hashlib.sha256(request.raw).hexdigest()
        last = [path.read_bytes().splitlines()[-1].decode() for path in logs(home).values()]
        seen.append(any(f'"digest":"{digest}"' in line and "request/sent" in line for line in last))
        return researcher(request)

    run_of(corpus, answer)
    assert seen == [True] * 6


def test_a_session_that_another_process_took_up_again_is_proved_too(home: Path) -> None:
    async def go() -> None:
        async with running(lambda request: Behaviour(text="ok"), strict=True) as (app, _):
            agents = app.ctx.get(Agents)
            agent = await agents.create(AgentSpec(persona="You test."))
            agent.followup("first")
            await agent.when_idle()
            await agent.dispose()
        async with running(lambda request: Behaviour(text="ok"), strict=True) as (app, server):
            again = await app.ctx.get(Agents).resume(agent.id)
            again.followup("second")
            await again.when_idle()
            await again.dispose()
            found = audit(await app.session(agent.id), app.ctx.get(Models))
            assert found.ok, found
            assert found.proved == 2
            assert [message["role"] for message in server.requests[0].messages] == [
                "system",
                "user",
                "assistant",
                "user",
            ]

    anyio.run(go)


def text_of(field: str) -> Edit:
    def edit(data: dict[str, object]) -> None:
        where: object = data
        *path, last = field.split(".")
        for name in path:
            where = where[int(name)] if isinstance(where, list) else where[name]  # type: ignore[index]
        assert isinstance(where, dict)
        old = str(where[last])
        where[last] = old[:-1] + ("0" if old[-1] != "0" else "1")

    return edit


@pytest.mark.parametrize(
    ("type_", "field", "told"),
    [
        ("user/message", "message.content.0.text", "digest"),
        ("tool/result", "message.content", "digest"),
        ("assistant/message", "message.content.0.arguments", "digest"),
        ("request/header", "system", "digest"),
        ("request/header", "tools.0.description", "digest"),
        ("request/header", "config.model.model", "it was sent to local/fake"),
        ("request/sent", "digest", "is logged, the log before it gives"),
        ("request/sent", "purpose_digest", "the facts of its purpose"),
        ("assistant/message", "digest", "it answers request"),
    ],
)
def test_a_change_is_found_even_where_the_chain_was_made_to_fit(
    home: Path, corpus: Path, researcher: FakeResearcher, command: Command, type_: str, field: str, told: str
) -> None:
    run_id, _ = run_of(corpus, researcher)
    path = next(
        path
        for path in logs(home).values()
        if sum(event["type"] == "request/sent" for event in events(path)) > 1
    )
    event = next(event for event in events(path) if event["type"] == type_)
    forge(path, event["seq"], text_of(field))
    ended = command("audit", run_id, "--json")
    assert ended.code == 1
    assert not ended.json["ok"]
    (found,) = [one for one in ended.json["sessions"] if not one["ok"]]
    assert found["id"] == path.stem
    first = found["problems"][0]
    assert told in first["reason"]
    assert first["seq"] >= event["seq"]


def test_a_forged_log_that_changes_nothing_still_holds(
    home: Path, corpus: Path, researcher: FakeResearcher, command: Command
) -> None:
    run_id, _ = run_of(corpus, researcher)
    for path in logs(home).values():
        forge(path, -1, lambda data: None)
    assert command("audit", run_id).code == 0


def test_any_flipped_byte_breaks_the_chain_or_changes_its_end(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    run_id, _ = run_of(corpus, researcher)

    async def go() -> None:
        async with Leadline() as app:
            store, models = app.ctx.get(SessionStore), app.ctx.get(Models)
            for session_id, path in logs(home).items():
                before = path.read_bytes()
                whole = audit(await store.read(session_id), models)
                assert whole.ok
                last = before.rindex(b"\n", 0, len(before) - 1)
                for at in range(0, len(before) - 1, 97):
                    flipped = bytearray(before)
                    flipped[at] ^= 0x01
                    path.write_bytes(flipped)
                    found = audit(await store.read(session_id), models)
                    assert not found.ok or (at > last and found.chain != whole.chain), (path, at)
                path.write_bytes(before)

    anyio.run(go)
    assert run_id in logs(home)


def test_a_flipped_byte_is_named_by_the_command(
    home: Path, corpus: Path, researcher: FakeResearcher, command: Command
) -> None:
    run_id, _ = run_of(corpus, researcher)
    path = logs(home)[run_id]
    path.write_bytes(path.read_bytes().replace(QUESTION.encode(), QUESTION.encode()[:-1] + b"!", 1))
    ended = command("audit", run_id)
    assert ended.code == 1
    assert "  problem: line 1: the header was altered" in ended.out


def test_a_provider_that_is_not_configured_is_told_apart_from_a_request_that_differs(
    home: Path, command: Command
) -> None:
    async def go() -> str:
        async with (
            ProviderServer(["ok"]) as server,
            Leadline(model="elsewhere/fake", base_url=server.base_url) as app,
        ):
            return (await app.agent("hello")).session

    session_id = anyio.run(go)
    ended = command("audit", session_id, "--json")
    assert ended.code == 1
    (found,) = ended.json["sessions"]
    assert not found["problems"]
    assert {one["reason"] for one in found["not_provable"]} == {"provider elsewhere is not configured"}
    options = ("--model", "elsewhere/fake", "--base-url", "http://127.0.0.1:9/v1")
    assert command("audit", session_id, *options).code == 0


def test_a_role_whose_log_is_gone_is_missed(
    home: Path, corpus: Path, researcher: FakeResearcher, command: Command
) -> None:
    run_id, _ = run_of(corpus, researcher)
    child = next(
        e["data"]["child"] for e in events(logs(home)[run_id]) if e["type"] == "research/unit-started"
    )
    logs(home)[child].unlink()
    ended = command("audit", run_id)
    assert ended.code == 1
    assert f"problem: session {run_id} names session {child}" in ended.out


def test_an_id_that_is_not_there_is_a_mistake_in_the_command(home: Path, command: Command) -> None:
    ended = command("audit", "s-0123456789abcdef")
    assert (ended.code, ended.out) == (2, "")
    assert "there is no session 's-0123456789abcdef'" in ended.err
