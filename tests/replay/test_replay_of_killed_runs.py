"""A run whose process was killed, and that was taken up, is replayed as if it had been one piece."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from tests.composition.cli import QUESTION, Command, run_id, started, until
from tests.composition.conftest import command
from tests.composition.test_resume import STALL, UNREACHABLE, Once, at, served

__all__ = ["command"]


@pytest.mark.parametrize("number", range(1, 7))
def test_a_run_that_was_killed_in_any_request_and_taken_up_is_replayed_to_the_byte(
    command: Command, corpus: Path, number: int
) -> None:
    with served(Once(number, STALL)) as server:
        process = started("research", QUESTION, "--corpus", corpus, *at(server))
        run = run_id(until(process, "run "))
        while len(server.requests) < number:
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert command("resume", run, *at(server)).code == 0
    shutil.rmtree(corpus)
    done = command("replay", run)
    assert done.code == 0, done.out.decode()


@pytest.mark.parametrize("number", [1, 2, 6])
def test_a_run_that_failed_and_was_taken_up_is_replayed_as_it_ended(
    command: Command, corpus: Path, number: int
) -> None:
    with served(Once(number, UNREACHABLE)) as server:
        first = command("research", QUESTION, "--corpus", corpus, "--json", *at(server))
        run = first.json["id"]
        if first.json["status"] != "completed":
            command("resume", run, *at(server))
    done = command("replay", run)
    assert done.code == 0, done.out.decode()
