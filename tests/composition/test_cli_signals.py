"""A run that is stopped or killed: what it had found is kept and can be read."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import Received
from tests.composition.cli import QUESTION, Command, program, provider, run_id, started, until
from tests.composition.conftest import HOTEL, FakeResearcher

STALL = Behaviour("stall")


def stalls_at_writing() -> FakeResearcher:
    return FakeResearcher(writer=lambda request: STALL)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=30)
    assert "Traceback" not in err
    return process.returncode, out, err


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_run_and_keeps_what_it_found(
    command: Command, corpus: Path, tmp_path: Path, sent: signal.Signals
) -> None:
    bundle = tmp_path / "run.leadline"
    with provider(stalls_at_writing()) as model:
        process = started("research", QUESTION, "--corpus", corpus, "--bundle", bundle, *model)
        lines = until(process, "u1 completed")
        process.send_signal(sent)
        code, out, err = ended(process)
    assert (code, out) == (130, "")
    again = run_id(lines)
    assert f"stopped by {sent.name}" in err
    assert f"leadline show {again} --report" in err
    assert HOTEL in command("show", again, "--report").out.decode()
    assert command("verify", bundle).code == 0


def test_a_cancelled_run_with_json_prints_one_object(command: Command, corpus: Path) -> None:
    with provider(stalls_at_writing()) as model:
        process = started("research", QUESTION, "--corpus", corpus, "--json", *model)
        until(process, "u1 completed")
        process.send_signal(signal.SIGINT)
        code, out, _ = ended(process)
    assert code == 130
    assert '"status":"cancelled"' in out
    assert out.count("\n") == 1


def test_a_second_signal_ends_the_program_at_once(home: Path, corpus: Path) -> None:
    with provider(stalls_at_writing()) as model:
        process = started("research", QUESTION, "--corpus", corpus, *model)
        until(process, "u1 completed")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        code, out, _ = ended(process)
    assert (code, out) == (130, "")


def test_a_turn_that_is_stopped_names_its_session(command: Command, home: Path) -> None:
    with provider([STALL]) as model:
        process = started("agent", "hi", *model)
        while not any("request/sent" in log.read_text() for log in home.rglob("*.jsonl")):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        code, out, err = ended(process)
    assert code == 130
    assert out in ("", "par\n"), "what the model had said by then, if anything"
    assert "aborted: stopped by SIGINT" in err
    shown = command("show", err.split("leadline show ")[1].strip())
    assert b"turn 1 aborted" in shown.out


@pytest.mark.parametrize("mark", ["plan:", "searched", "read ", "u1.e1", "u1 completed"])
def test_a_run_that_was_killed_can_be_shown(command: Command, corpus: Path, mark: str) -> None:
    with provider(stalls_at_writing()) as model:
        process = started("research", QUESTION, "--corpus", corpus, *model)
        lines = until(process, mark)
        process.kill()
        process.communicate()
    again = run_id(lines)
    shown = command("show", again)
    assert shown.code == 0
    assert mark in shown.out.decode()
    report = command("show", again, "--report")
    assert "was interrupted before its end" in report.err
    if report.code == 0:
        assert HOTEL in report.out.decode()
    else:
        assert "has no report" in report.err
    assert report.code == 0 or mark not in ("u1.e1", "u1 completed")


def test_a_run_that_still_works_can_be_shown(command: Command, corpus: Path) -> None:
    with provider(stalls_at_writing()) as model:
        process = started("research", QUESTION, "--corpus", corpus, *model)
        again = run_id(until(process, "u1 completed"))
        shown = command("show", again, "--report")
        process.send_signal(signal.SIGINT)
        ended(process)
    assert shown.code == 0
    assert "is still at work" in shown.err
    assert HOTEL in shown.out.decode()


SIGNALS_ITSELF = """
import signal
import sys


class Told:
    def __set_name__(self, owner, name):
        signal.raise_signal(signal.{name})


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "leadline.apps.sdk.app":
            type("Made", (), {{"told": Told()}})


sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_while_the_program_is_loaded_stops_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(SIGNALS_ITSELF.format(name=name))
    done = program("agent", "Hello", env={"PYTHONPATH": str(tmp_path)})
    assert (done.code, done.out) == (130, b"")
    assert done.complaint == "leadline: stopped"


def test_a_signal_before_the_run_starts_nothing(home: Path, corpus: Path) -> None:
    def stalls(request: Received) -> Behaviour:
        return STALL

    for n in range(3000):
        (corpus / f"page-{n}.md").write_text(f"# Page {n}\n\nNothing of interest.\n")
    with provider(stalls) as model:
        process = started("research", QUESTION, "--corpus", corpus, *model)
        until(process, "reading documents 200/")
        process.send_signal(signal.SIGINT)
        code, out, err = ended(process)
    assert (code, out) == (130, "")
    assert "nothing was started" in err
    assert list((home / "sessions").glob("*.jsonl")) == []
