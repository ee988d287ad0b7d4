"""Law 3: that something will be done is durable before it is done; its result is a second fact under the same key."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import anyio
import pytest

from leadline.core.agent.agents import Agents
from leadline.core.session.derive import NOT_STARTED_TEXT, OUTCOME_UNKNOWN_TEXT
from leadline.core.session.events import ToolAnswered, ToolCalled
from leadline.core.tools.function import tool_from_function
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.registry import ToolRegistry
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.server import ProviderServer
from tests.laws.agent_that_is_killed import program
from tests.laws.conftest import events, logs, running

pytestmark = pytest.mark.anyio

PROGRAM = Path(__file__).with_name("agent_that_is_killed.py")
TWO_CALLS = Behaviour(
    "tool_call_success",
    calls=(CallSpec("charge", {"what": "a"}, "call_a"), CallSpec("charge", {"what": "b"}, "call_b")),
)


async def test_after_a_kill_in_mid_effect_the_model_is_told_what_is_known_and_nothing_is_done_again(
    home: Path, tmp_path: Path
) -> None:
    effects = tmp_path / "effects"
    async with ProviderServer([TWO_CALLS], strict=True) as server:
        command = [sys.executable, str(PROGRAM), server.base_url, str(effects)]
        done = await anyio.run_process(command, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    session_id = done.stdout.decode().strip()
    last = events(logs(home)[session_id])[-1]
    assert (last["type"], last["data"]["call_id"]) == ("tool/call", "call_a")

    async with ProviderServer(["I see."], strict=True) as server, program(server.base_url, effects) as app:
        agent = await app.ctx.get(Agents).resume(session_id)
        assert agent.status == "idle", "a session that was taken up again acted on its own"
        agent.followup("what happened?")
        await agent.when_idle()
        answers = list(agent.session.of(ToolAnswered))
        await agent.dispose()
        results = [message for message in server.requests[0].messages if message["role"] == "tool"]
    assert {message["tool_call_id"]: message["content"] for message in results} == {
        "call_a": OUTCOME_UNKNOWN_TEXT,
        "call_b": NOT_STARTED_TEXT,
    }
    assert [(one.message.call_id, one.error_code, one.started, one.synthesised) for one in answers] == [
        ("call_a", "TOOL_OUTCOME_UNKNOWN", True, True),
        ("call_b", "TOOL_NOT_STARTED", False, True),
    ]
    assert effects.read_text() == "a\n"


async def test_after_a_kill_in_mid_effect_the_turn_goes_on_with_what_had_not_begun(
    home: Path, tmp_path: Path
) -> None:
    effects = tmp_path / "effects"
    async with ProviderServer([TWO_CALLS], strict=True) as server:
        command = [sys.executable, str(PROGRAM), server.base_url, str(effects)]
        done = await anyio.run_process(command, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    session_id = done.stdout.decode().strip()

    async with ProviderServer(["I see."], strict=True) as server, program(server.base_url, effects) as app:
        agent = await app.ctx.get(Agents).resume(session_id)
        agent.proceed()
        await agent.when_idle()
        await agent.dispose()
        results = [message for message in server.requests[0].messages if message["role"] == "tool"]
    assert [(message["tool_call_id"], message["content"]) for message in results] == [
        ("call_a", OUTCOME_UNKNOWN_TEXT),
        ("call_b", "charged"),
    ]
    assert effects.read_text() == "a\nb\n"
    kinds = [one["type"] for one in events(logs(home)[session_id])]
    assert kinds.count("turn/start") == kinds.count("turn/end") == kinds.count("turn/resumed") == 1


async def test_a_request_that_was_in_flight_at_a_kill_is_the_same_request_with_the_same_key_again(
    home: Path, tmp_path: Path
) -> None:
    effects = tmp_path / "effects"
    async with ProviderServer([Behaviour("stall")], strict=True) as server:
        command = [sys.executable, str(PROGRAM), server.base_url, str(effects)]
        async with await anyio.open_process(command) as process:
            with anyio.fail_after(60):
                while not server.requests:  # noqa: ASYNC110 - the other process has no event to wait for
                    await anyio.sleep(0.01)
            process.kill()
            assert process.stdout is not None
            session_id = (await process.stdout.receive()).decode().strip()
        (first,) = server.requests
    assert events(logs(home)[session_id])[-1]["type"] == "request/sent"

    async with ProviderServer(["ok"], strict=True) as server, program(server.base_url, effects) as app:
        agent = await app.ctx.get(Agents).resume(session_id)
        agent.proceed()
        await agent.when_idle()
        await agent.dispose()
        (again,) = server.requests
    assert again.raw == first.raw
    assert again.headers["idempotency-key"] == first.headers["idempotency-key"]


async def test_a_body_finds_its_own_call_in_the_file_and_its_result_comes_after_it(home: Path) -> None:
    seen: list[str] = []

    async def look(call: ToolInvocation) -> str:
        """Look into the log of the session that called."""
        assert call.session is not None
        seen.extend(one["type"] for one in events(logs(home)[call.session.id])[-1:])
        return "done"

    replies = [Behaviour("tool_call_success", calls=(CallSpec("look", {}, "call_1"),)), Behaviour(text="ok")]
    async with running(lambda request: replies.pop(0)) as (app, _):
        app.ctx.get(ToolRegistry).register(app.ctx, tool_from_function(look))
        reply = await app.agent("look")
        session = await app.session(reply.session)
    assert seen == ["tool/call"]
    assert [one.call_id for one in session.of(ToolCalled)] == ["call_1"]
    assert [one.message.call_id for one in session.of(ToolAnswered)] == ["call_1"]


@pytest.mark.parametrize(("effect", "synced"), [("writes", True), ("network", True), ("reads", False)])
async def test_before_an_effect_on_the_world_the_intent_survives_a_power_cut(
    home: Path, monkeypatch: pytest.MonkeyPatch, effect: str, synced: bool
) -> None:
    safe: dict[str, int] = {}
    real = os.fdatasync

    def fdatasync(fd: int) -> None:
        real(fd)
        safe[str(Path(f"/proc/self/fd/{fd}").readlink())] = os.fstat(fd).st_size

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    found: list[bool] = []

    async def act(call: ToolInvocation) -> str:
        """Do something."""
        assert call.session is not None
        path = logs(home)[call.session.id]
        found.append(safe.get(str(path.resolve()), 0) == path.stat().st_size)
        return "done"

    replies = [Behaviour("tool_call_success", calls=(CallSpec("act"),)), Behaviour(text="ok")]
    async with running(lambda request: replies.pop(0)) as (app, _):
        tool = tool_from_function(act, side_effects=frozenset({effect}))  # type: ignore[arg-type]
        app.ctx.get(ToolRegistry).register(app.ctx, tool)
        assert (await app.agent("act")).completed
    assert found == [synced]
