"""The whole program on sessions in one database, chosen by a patch."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import Received
from tests.composition.cli import QUESTION, Command, Ended, program, provider, run_id, started, until
from tests.composition.conftest import FakeResearcher

PATCH = "- id: persistence\n  config: {store: sqlite}\n"


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    path = tmp_path / "sqlite.yml"
    path.write_text(PATCH)
    return path


@pytest.fixture
def stored(command: Command, patch: Path) -> Callable[..., Ended]:
    """Runs a command on the sessions in the database."""

    def call(*arguments: str | Path) -> Ended:
        return command(*arguments, "--patch", patch)

    return call


def test_a_run_and_all_that_is_done_with_it(
    stored: Callable[..., Ended], command: Command, corpus: Path, home: Path, tmp_path: Path
) -> None:
    done = stored(
        "research", QUESTION, "--corpus", corpus, "--json", "--bundle", tmp_path / "b.leadline"
    ).json
    run = done["id"]
    assert done["status"] == "completed"
    assert (home / "sessions.sqlite").is_file() and not [*(home / "sessions").glob("*.jsonl*")]

    report = stored("show", run, "--report")
    assert report.code == 0 and report.out.decode() == done["report"]
    assert QUESTION in stored("runs", "show", run).out.decode()
    audited = stored("audit", run)
    assert audited.code == 0 and "holds" in audited.out.decode() + audited.err
    assert command("verify", tmp_path / "b.leadline").code == 0
    assert "is complete" in stored("resume", run).err
    assert stored("replay", run).code == 0

    listed = json.loads(stored("runs", "list", "--json").out)
    assert [(one["id"], one["status"]) for one in listed] == [(run, "completed")]
    found = json.loads(stored("sessions", "search", "hotel", "--json").out)
    assert [one["id"] for one in found] == [run]
    assert stored("sessions", "rename", run, "Nights").code == 0
    assert [one["title"] for one in json.loads(stored("sessions", "list", "--json").out)] == ["Nights"]

    assert stored("export", run, tmp_path / "report.md").code == 0
    assert (tmp_path / "report.md").read_bytes() == report.out
    assert stored("sessions", "archive", run).code == 0
    assert stored("show", run, "--report").out == report.out
    assert stored("sessions", "export", run, tmp_path / "run.leadline-session").code == 0
    assert stored("sessions", "delete", run, "--yes").code == 0
    assert json.loads(stored("sessions", "list", "--children", "--json").out) == []
    assert stored("sessions", "import", tmp_path / "run.leadline-session").code == 0
    assert stored("show", run, "--report").out == report.out
    assert stored("audit", run).code == 0
    assert stored("sessions", "gc", "--yes").code == 0 and stored("show", run, "--report").out == report.out

    assert json.loads(command("sessions", "list", "--json").out) == [], "the other store has none of it"
    assert command("sessions", "import", tmp_path / "run.leadline-session").code == 0
    assert command("show", run, "--report").out == report.out, "a session goes from one store to the other"


def test_an_agent_is_asked_again_and_forked(stored: Callable[..., Ended]) -> None:
    with provider(["the answer", "another", "a third"]) as model:
        session = stored("agent", "the task", "--json", *model).json["session"]
        assert stored("resume", session, "go on", *model).out == b"another\n"
        fork = stored("sessions", "fork", session, "--turn", "1").out.decode().strip()
        assert stored("resume", fork, "elsewhere", *model).out == b"a third\n"
    shown = stored("show", fork).out.decode()
    assert "the answer" in shown and "a third" in shown and "another" not in shown
    assert stored("audit", fork).code == 0 and stored("audit", session).code == 0


def test_a_killed_run_is_interrupted_at_once_and_goes_on(
    home: Path, corpus: Path, patch: Path, researcher: FakeResearcher
) -> None:
    asked: list[str] = []
    stuck = True

    def answers(request: Received) -> Behaviour:
        behaviour = researcher(request)
        asked.append(researcher.seen[-1])
        return Behaviour("stall") if stuck and researcher.seen[-1] == "write" else behaviour

    with provider(answers) as model:
        process = started("research", QUESTION, "--corpus", corpus, "--patch", patch, *model)
        lines = until(process, "completed, 1 quote")
        run = run_id(lines)
        listed = listing(patch)
        assert [one["status"] for one in listed] == ["running"]
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert [one["status"] for one in listing(patch)] == ["interrupted"]
        stuck = False
        before = asked.count("plan"), asked.count("unit")
        resumed = program("resume", run, "--patch", patch, *model)
    assert resumed.code == 0, resumed.err
    assert (asked.count("plan"), asked.count("unit")) == before, "what was answered was asked again"
    assert b"EUR 180" in resumed.out
    assert [one["status"] for one in listing(patch)] == ["completed"]


def listing(patch: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(program("runs", "list", "--json", "--patch", patch).out)
    return found


def test_a_damaged_database_is_told_and_stops_no_command(
    stored: Callable[..., Ended], corpus: Path, home: Path
) -> None:
    run = stored("research", QUESTION, "--corpus", corpus, "--json").json["id"]
    database = home / "sessions.sqlite"
    whole = database.read_bytes()
    for damaged in (b"\xff" * 200 + whole[200:], whole[: len(whole) // 2], b"", b"no database" * 1000):
        database.write_bytes(damaged)
        for arguments in (
            ("sessions", "list"),
            ("sessions", "list", "--json"),
            ("runs", "list"),
            ("sessions", "search", "hotel"),
            ("show", run),
            ("show", run, "--report"),
            ("audit", run),
            ("resume", run),
            ("research", QUESTION, "--corpus", corpus),
        ):
            ended = stored(*arguments)
            assert "Traceback" not in ended.err and "internal error" not in ended.err, (arguments, ended.err)
            assert ended.out or ended.err


@pytest.mark.case("S27")
def test_the_patch_may_name_the_database(command: Command, corpus: Path, tmp_path: Path, home: Path) -> None:
    place = tmp_path / "elsewhere" / "mine.sqlite"
    patch = tmp_path / "p.yml"
    patch.write_text(f"- id: persistence\n  merge: {{store: sqlite, database: {place}}}\n")
    assert command("research", QUESTION, "--corpus", corpus, "--patch", patch).code == 0
    assert place.is_file() and not (home / "sessions.sqlite").exists()
