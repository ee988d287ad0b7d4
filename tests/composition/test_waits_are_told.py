"""Who looks on is told for what a call waits: of agents as of runs, whichever process holds what it waits for."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from leadline.apps.cli.waits import told_wait
from leadline.core.spend.lines import Waiting, WaitingFor
from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import Received
from tests.composition.cli import Command, started, until
from tests.composition.test_research_budget import served

ONE = "- id: limiter\n  merge: {limits: [{model: local/fake, max: 1}]}\n"


def test_an_agent_that_waits_for_another_process_says_so(command: Command, tmp_path: Path) -> None:
    patch = tmp_path / "one.yml"
    patch.write_text(ONE)
    asked: list[Received] = []

    def answer(request: Received) -> Behaviour:
        asked.append(request)
        return Behaviour("stall") if len(asked) == 1 else Behaviour(text="That is all.")

    with served(answer) as server:
        at = ["--model", "local/fake", "--base-url", server.base_url, "--patch", str(patch)]
        first = started("agent", "hold it", *at)
        while not server.requests:
            assert first.poll() is None
        second = started("agent", "hello", *at)
        (line,) = [one for one in until(second, "waiting for") if "waiting" in one]
        first.send_signal(signal.SIGKILL)
        first.communicate()
        out, _ = second.communicate()
    assert line == "waiting for local/fake: as many calls as may be are under way"
    assert (second.returncode, out.strip()) == (0, "That is all.")


def test_an_agent_that_tries_again_says_so(command: Command) -> None:
    refused = Behaviour("rate_limit", retry_after="1")

    def answer(request: Received) -> Behaviour:
        return refused if len(server.requests) == 1 else Behaviour(text="That is all.")

    with served(answer) as server:
        done = command("agent", "hello", "--model", "local/fake", "--base-url", server.base_url)
    assert (done.code, done.out.strip()) == (0, b"That is all.")
    assert "retry in 1 s: rate limited" in done.err


@pytest.mark.parametrize(
    ("why", "ahead", "seconds", "told"),
    [
        ("slots", 2, None, "2 ahead"),
        ("slots", 0, None, "as many calls as may be are under way"),
        ("requests", 0, 12.0, "the calls of a minute are used up, 12 s"),
        ("tokens", 3, 40.0, "the tokens of a minute are used up, 3 ahead, 40 s"),
        ("paused", 1, 30.0, "it asked for a pause of 30 s"),
        ("children", 0, None, "as many agents as may be are at work"),
        ("budget", 3, None, "calls under way may need what is left of the budget"),
    ],
)
def test_each_reason_has_words_of_its_own(
    why: WaitingFor, ahead: int, seconds: float | None, told: str
) -> None:
    assert told_wait(Waiting("local/x", why, ahead, seconds)) == f"waiting for local/x: {told}"
