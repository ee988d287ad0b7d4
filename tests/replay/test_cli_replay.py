"""`leadline replay`: what is printed, and with which exit code it ends."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

import pytest

from tests.composition.cli import QUESTION, Command, provider, run_id, started, until
from tests.composition.conftest import FakeResearcher, command
from tests.composition.test_resume import STALL, Once, at, served

__all__ = ["command"]


@pytest.fixture
def run(command: Command, corpus: Path, researcher: FakeResearcher) -> str:
    """A run of a model whose provider is gone, over documents that are gone."""
    with provider(researcher) as options:
        done = command("research", QUESTION, "--corpus", corpus, "--json", *options)
    shutil.rmtree(corpus)
    assert done.code == 0, done.err
    return done.json["id"]


def test_a_replay_that_is_the_same_says_so_in_a_line_and_ends_with_zero(command: Command, run: str) -> None:
    done = command("replay", run[:8])
    assert done.code == 0, done.out
    assert (
        done.out.decode() == f"{run}: the same report to the byte, from 6 request(s) answered as recorded\n"
    )


def test_a_replay_that_differs_names_requests_and_shows_the_report_as_a_diff(
    command: Command, run: str, home: Path, tmp_path: Path
) -> None:
    patch = tmp_path / "few.yml"
    patch.write_text("- id: research\n  config: {source_calls: 1}\n")
    done = command("replay", run, "--patch", patch)
    assert done.code == 1
    told = done.out.decode()
    assert told.startswith(f"{run}: not the same report; ")
    assert "researcher (t0), turn 1, step 1: purpose differs" in told
    assert re.search(r"step 1: message 1 differs\n +-You may make 4 source calls\.\n +\+You may make 1", told)
    assert f"\n--- {run} recorded\n+++ replayed\n@@" in told
    assert "\n-- Questions: 1. Searches: 1. Sources found: 1; read: 1;" in told


def test_as_json_it_is_one_object_with_everything_that_differs(
    command: Command, run: str, tmp_path: Path
) -> None:
    patch = tmp_path / "few.yml"
    patch.write_text("- id: prompt\n  config: {identity: false}\n")
    done = command("replay", run, "--json", "--patch", patch)
    assert done.code == 1
    assert done.json["id"] == run
    assert done.json["run"] is None
    assert (done.json["same"], done.json["same_report"], done.json["report_diff"]) == (False, True, "")
    assert len(done.json["differing"]) == done.json["requests"] == 6
    first = done.json["differing"][0]
    assert (first["role"], first["turn"], first["step"], first["answered"]) == ("planner", 1, 1, "recorded")
    assert [one["part"] for one in first["differences"]] == ["system"]
    assert done.json["result"]["status"] == "completed"


def test_a_what_if_prints_the_new_report_and_tells_which_run_it_is(command: Command, run: str) -> None:
    with provider(FakeResearcher(sentence="The cap in the EU is EUR 180.")) as options:
        done = command("replay", run, "--roles", "writer", *options)
    assert done.code == 0, done.err
    assert "The cap in the EU is EUR 180" in done.out.decode()
    new = re.search(r"What if: run (s-[0-9a-f]+) over the sources of run (s-[0-9a-f]+); \d+ lines", done.err)
    assert new is not None
    assert new[2] == run
    assert command("show", new[1], "--report").out == done.out


def test_other_checks_make_a_new_run(command: Command, run: str) -> None:
    done = command("replay", run, "--checks", "provenance, integrity")
    assert done.code == 0, done.err
    assert "(?)" in done.out.decode()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--checks", "wrding"], "did you mean 'wording'"),
        (["--checks", ","], "no name was given"),
        (["--method", "adaptve"], "adaptive"),
        (["--model", "nowhere/m"], "no model provider is called 'nowhere'"),
        (["--model", "nowhere"], "provider/name"),
        (["--roles", "writer"], "--model"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    command: Command, run: str, options: list[str], complaint: str
) -> None:
    done = command("replay", run, *options)
    assert done.code == 2
    assert complaint in done.complaint
    assert done.out == b""


def test_only_runs_are_replayed(command: Command, run: str) -> None:
    child = next(
        one["id"]
        for one in command("sessions", "list", "--children", "--json").json
        if one["kind"] == "agent"
    )
    done = command("replay", child)
    assert done.code == 2
    assert "not a research run" in done.complaint
    assert command("replay", "s-none").code == 2


def test_a_key_that_is_not_in_the_environment_any_more_stops_no_replay(
    command: Command, run: str, home: Path
) -> None:
    (home / "leadline.yml").write_text(
        "- id: models\n  merge: {providers: {local: {base_url: 'http://127.0.0.1:9/v1', api_key: !env GONE_KEY}}}\n"
    )
    done = command("replay", run)
    assert (done.code, done.err) == (0, ""), done.out


def test_a_signal_ends_a_what_if_as_any_run_and_what_it_found_is_kept(command: Command, run: str) -> None:
    with served(Once(5, STALL)) as server:
        process = started("replay", run, *at(server))
        new = run_id(until(process, "u1.e1 from"))
        while len(server.requests) < 5:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 130
    assert "leadline: cancelled: stopped by SIGINT" in err
    assert f"What was found: leadline show {new} --report" in err
    assert out == ""
    assert command("show", new, "--report").code == 0
    assert [one["status"] for one in command("runs", "list", "--json").json if one["id"] == new] == [
        "cancelled"
    ]
