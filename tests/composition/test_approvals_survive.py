"""A call that waits for somebody's yes when its process is killed waits for it again, and has begun nothing."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import anyio
import pytest

from leadline.core.agent.agents import Agents
from leadline.core.session.derive import NOT_STARTED_TEXT
from leadline.core.session.events import ApprovalAsked, ApprovalDecided, ToolAnswered, TurnEnd
from leadline.core.tools.approval import ApprovalDecision
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.server import ProviderServer
from tests.composition.agent_that_waits import program
from tests.composition.cli import Command
from tests.laws.conftest import events, logs

pytestmark = pytest.mark.anyio

PROGRAM = Path(__file__).with_name("agent_that_waits.py")
CHARGE = Behaviour("tool_call_success", calls=(CallSpec("charge", {"what": "a"}, "call_a"),))
YES = ApprovalDecision("allowed-once", "go ahead")
NO = ApprovalDecision("denied", "too dear")


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


async def killed_while_waiting(folder: Path) -> str:
    """The session of a program that was killed when it had asked and nobody had answered."""
    async with ProviderServer([CHARGE], strict=True) as server:
        command = [sys.executable, "-m", "tests.composition.agent_that_waits", server.base_url, str(folder)]
        async with await anyio.open_process(command, cwd=PROGRAM.parents[2]) as process:
            with anyio.fail_after(60):
                while not lines(folder / "asked"):  # noqa: ASYNC110 - the other process has no event to wait for
                    await anyio.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            assert process.stdout is not None
            return (await process.stdout.receive()).decode().strip()


@pytest.mark.parametrize(
    ("decision", "done", "told"),
    [(YES, ["a"], "charged a"), (NO, [], "charge did not run: denied. Reason: too dear (it costs money)")],
    ids=["yes", "no"],
)
async def test_somebody_is_asked_again_and_once(
    home: Path, tmp_path: Path, decision: ApprovalDecision, done: list[str], told: str
) -> None:
    session_id = await killed_while_waiting(tmp_path)
    assert events(logs(home)[session_id])[-1]["type"] == "approval/asked"

    async with (
        ProviderServer(["I see."], strict=True) as server,
        program(server.base_url, tmp_path, decision) as app,
    ):
        agent = await app.ctx.get(Agents).resume(session_id)
        agent.proceed()
        await agent.when_idle()
        asked, decided = [*agent.session.of(ApprovalAsked)], [*agent.session.of(ApprovalDecided)]
        ends = [one.reason for one in agent.session.of(TurnEnd)]
        await agent.dispose()
        (result,) = [message for message in server.requests[0].messages if message["role"] == "tool"]
    assert lines(tmp_path / "asked") == ["call_a", "call_a"], "once by each process"
    assert lines(tmp_path / "done") == done
    assert result["content"] == told
    assert len({(one.call_id, one.digest, one.reason) for one in asked}) == 1
    assert [(one.outcome, one.reason) for one in decided] == [(decision.outcome, decision.reason)]
    assert ends == ["completed"]


async def test_who_says_something_else_is_told_that_nothing_was_done(home: Path, tmp_path: Path) -> None:
    session_id = await killed_while_waiting(tmp_path)
    async with (
        ProviderServer(["I see."], strict=True) as server,
        program(server.base_url, tmp_path, YES) as app,
    ):
        agent = await app.ctx.get(Agents).resume(session_id)
        agent.followup("leave it")
        await agent.when_idle()
        (answer,) = agent.session.of(ToolAnswered)
        await agent.dispose()
    assert (answer.error_code, answer.started, answer.message.content) == (
        "TOOL_NOT_STARTED",
        False,
        NOT_STARTED_TEXT,
    )
    assert lines(tmp_path / "asked") == ["call_a"]
    assert lines(tmp_path / "done") == []


def test_an_audit_tells_every_question_and_its_answer(home: Path, tmp_path: Path, command: Command) -> None:
    async def go() -> str:
        session_id = await killed_while_waiting(tmp_path)
        async with ProviderServer(["I see."]) as server, program(server.base_url, tmp_path, NO) as app:
            agent = await app.ctx.get(Agents).resume(session_id)
            agent.proceed()
            await agent.when_idle()
            await agent.dispose()
        return session_id

    session_id = anyio.run(go)
    seqs = [one["seq"] for one in events(logs(home)[session_id]) if one["type"].startswith("approval/")]
    ended = command("audit", session_id)
    assert ended.code == 0, ended
    told = [line for line in ended.out.decode().splitlines() if line.startswith("  approval: ")]
    assert told == [
        f"  approval: event {seqs[0]}: charge (it costs money): no answer",
        f"  approval: event {seqs[1]}: charge (it costs money): denied: too dear, in event {seqs[2]}",
    ]
    (first, second) = command("audit", session_id, "--json").json["sessions"][0]["approvals"]
    assert (first["outcome"], second["outcome"], second["answer"]) == (None, "denied", "too dear")
    shown = command("show", session_id).out.decode()
    assert "waits for a yes: it costs money" in shown
    assert "denied: too dear" in shown
