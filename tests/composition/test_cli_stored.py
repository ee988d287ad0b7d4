"""`leadline show` and `export`: whatever state a log is in, there is something to see."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.composition.cli import QUESTION, Command, provider

PARTS = ["start", "middle", "end"]


@pytest.fixture
def stored(command: Command, home: Path, corpus: Path) -> Path:
    """The log of a run that completed."""
    done = command("research", QUESTION, "--corpus", corpus, "--json").json
    return home / "sessions" / f"{done['id']}.jsonl"


def test_the_transcript_of_a_run_tells_its_facts(command: Command, stored: Path) -> None:
    shown = command("show", stored.stem)
    text = shown.out.decode()
    assert shown.code == 0
    assert QUESTION in text
    for told in ("plan: ", "u1 searched", "u1 read finance/expenses.md", "u1.e1 from", "completed after"):
        assert told in text
    assert "research/" not in text


def test_the_stored_report_is_the_one_that_was_printed(command: Command, corpus: Path) -> None:
    first = command("research", QUESTION, "--corpus", corpus)
    again = first.err.split("run ")[1].split(":")[0]
    assert command("show", again, "--report").out == first.out
    result = command("show", again, "--report", "--json").json
    assert result["report"].encode() == first.out


def test_the_transcript_of_an_agent_shows_who_said_what(command: Command) -> None:
    with provider(["the answer"]) as model:
        reply = command("agent", "the task", "--json", *model).json
    text = command("show", reply["session"]).out.decode()
    assert text.index("the task") < text.index("the answer")
    events = command("show", reply["session"], "--json").json["events"]
    assert [event["seq"] for event in events] == list(range(len(events)))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("report", [[], ["--report"]])
def test_a_damaged_log_is_shown_with_its_problems(
    command: Command, stored: Path, part: str, report: list[str]
) -> None:
    whole = bytearray(stored.read_bytes())
    at = {"start": 0, "middle": len(whole) // 2, "end": len(whole) - 60}[part]
    whole[at : at + 40] = bytes(range(216, 256))
    stored.write_bytes(whole)
    shown = command("show", stored.stem, *report)
    assert shown.code in (0, 1, 2)
    assert "Traceback" not in shown.err
    assert "internal error" not in shown.err
    assert "leadline: " in shown.err


@pytest.mark.parametrize("kept", [0, 1, 50, 400, 2000])
def test_any_beginning_of_a_log_can_be_shown(command: Command, stored: Path, kept: int) -> None:
    stored.write_bytes(stored.read_bytes()[:kept])
    for report in ([], ["--report"]):
        shown = command("show", stored.stem, *report)
        assert "Traceback" not in shown.err
        assert "internal error" not in shown.err
        assert shown.out or shown.err


@pytest.mark.case("S03")
def test_an_event_of_a_plugin_that_is_gone_is_shown_as_it_is(command: Command, stored: Path) -> None:
    last = stored.read_bytes().splitlines()[-1]
    event = {
        "v": 1,
        "seq": json.loads(last)["seq"] + 1,
        "t": 1.0,
        "type": "demo.search/started",
        "prev": hashlib.sha256(last).hexdigest()[:32],
        "data": {"q": "x"},
    }
    with stored.open("ab") as log:
        log.write(json.dumps(event).encode() + b"\n")
    shown = command("show", stored.stem)
    assert (shown.code, shown.err) == (0, "")
    assert 'demo.search/started {"q":"x"}' in shown.out.decode()


def test_a_line_that_does_not_belong_is_shown_apart(command: Command, stored: Path) -> None:
    with stored.open("ab") as log:
        log.write(b'{"v":1,"seq":999,"t":1.0,"type":"demo","prev":"0","data":{"q":"x"}}\n')
    shown = command("show", stored.stem)
    assert shown.code == 0
    assert "not part of the session" in shown.out.decode()
    assert "event 999" in shown.complaint


@pytest.mark.parametrize("name", ["none", "../../etc/passwd", "", "s-0/x"])
def test_an_unknown_id_is_a_mistake_of_the_command(command: Command, name: str) -> None:
    for report in ([], ["--report"]):
        shown = command("show", name, *report)
        assert (shown.code, shown.out) == (2, b"")
        assert "there is no session" in shown.complaint


def test_an_agent_has_no_report(command: Command) -> None:
    session = command("agent", "hi", "--json").json["session"]
    shown = command("show", session, "--report")
    assert (shown.code, shown.out) == (2, b"")
    assert "not a research run" in shown.complaint


def test_a_layer_of_the_home_for_other_commands_does_not_stop_show(
    command: Command, home: Path, stored: Path
) -> None:
    (home / "leadline.yml").write_text("- {id: research, merge: {source_calls: 6}}\n")
    assert command("show", stored.stem).code == 0
    assert command("agent", "hi").code == 0
    shown = command("config", "show").out.decode()
    assert "research.config.source_calls" in shown
    assert "leadline.yml:1" in shown
    (home / "leadline.yml").write_text("- {id: reserch, merge: {source_calls: 6}}\n")
    assert "did you mean 'research'?" in command("show", stored.stem).complaint


@pytest.mark.parametrize("name", ["r.md", "r.html", "r.json", "r.leadline"])
def test_export_writes_a_run_in_the_form_of_the_name(
    command: Command, stored: Path, tmp_path: Path, name: str
) -> None:
    done = command("export", stored.stem, tmp_path / name)
    assert (done.code, done.out) == (0, b"")
    assert b"EUR 180" in (tmp_path / name).read_bytes()


def test_export_refuses_a_form_that_is_not_there(command: Command, stored: Path, tmp_path: Path) -> None:
    done = command("export", stored.stem, tmp_path / "r.pdf")
    assert (done.code, done.out) == (2, b"")
    assert ".leadline" in done.complaint
