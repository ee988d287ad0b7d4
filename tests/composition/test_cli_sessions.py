"""`leadline sessions …` and `leadline runs …`: what is stored is found, goes on, is kept and removed."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import struct
import subprocess
import termios
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from leadline.testing.provider_server.behaviours import Behaviour
from tests.composition.cli import PROGRAM, QUESTION, Command, Ended, program, provider, started
from tests.composition.conftest import FakeResearcher

EACH_LIST = [["sessions", "list"], ["runs", "list"], ["sessions", "search", "hotel"]]


@pytest.fixture
def run(command: Command, corpus: Path) -> str:
    """The id of a run that completed."""
    return command("research", QUESTION, "--corpus", corpus, "--json").json["id"]


@pytest.fixture
def agent(command: Command) -> str:
    """The id of an agent's session that had one turn."""
    with provider(["the answer"]) as model:
        return command("agent", "name the ferry", "--json", *model).json["session"]


@pytest.fixture(params=["jsonl", "sqlite"])
def either_store(request: pytest.FixtureRequest, home: Path) -> None:
    """Keeps sessions in the one store, then in the other."""
    home.mkdir()
    (home / "leadline.yml").write_text(f"- {{id: persistence, merge: {{store: {request.param}}}}}\n")


on_either_store = pytest.mark.usefixtures("either_store")


def listed(ended: Ended) -> list[Any]:
    assert (ended.code, ended.err) == (0, "")
    assert all({"id", "status", "created_at"} <= one.keys() for one in ended.json)
    return ended.json


# --- finding ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", EACH_LIST, ids=" ".join)
def test_where_nothing_is_stored_nothing_is_listed(command: Command, words: list[str]) -> None:
    assert listed(command(*words, "--json")) == []
    ended = command(*words)
    assert (ended.code, ended.out) == (0, b"")
    assert "nothing that is stored" in ended.complaint or "is stored yet; begin with: " in ended.complaint


@pytest.mark.parametrize("words", EACH_LIST, ids=" ".join)
def test_each_list_is_an_array_of_sessions(command: Command, run: str, words: list[str]) -> None:
    (found,) = listed(command(*words, "--json"))
    assert (found["id"], found["kind"], found["status"]) == (run, "research", "completed")
    assert found["created_at"].startswith("20")
    assert found["question"] == QUESTION
    table = command(*words).out.decode()
    assert run in table
    assert QUESTION in table


@on_either_store
def test_a_list_shows_what_a_person_started_and_its_children_where_they_are_asked_for(
    command: Command, run: str, agent: str
) -> None:
    assert [one["id"] for one in listed(command("sessions", "list", "--json"))] == [agent, run]
    assert [one["id"] for one in listed(command("runs", "list", "--json"))] == [run]
    children = [one for one in listed(command("sessions", "list", "--children", "--json")) if one["depth"]]
    assert children
    assert {one["parent"] for one in children} == {run}
    assert listed(command("sessions", "list", "--parent", run[:8], "--json")) == children
    assert run in command("sessions", "list", "--children").out.decode().splitlines()[0 + 2]


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        (["--kind", "agent"], {"agent"}),
        (["--status", "completed"], {"research"}),
        (["--status", "completed", "--status", "finished"], {"agent", "research"}),
        (["--title", "FERRY"], {"agent"}),
        (["--text", "hotel"], {"research"}),
        (["--corpus", "share"], {"research"}),
        (["--model", "local/fake"], {"agent"}),
        (["--since", "1h"], {"agent", "research"}),
        (["--until", "1h"], set[str]()),
        (["--since", "2999-01-01"], set[str]()),
        (["--min-cost", "1000000"], set[str]()),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else None,
)
def test_a_list_takes_filters(
    command: Command, run: str, agent: str, options: list[str], kinds: set[str]
) -> None:
    assert {one["kind"] for one in listed(command("sessions", "list", *options, "--json"))} == kinds


@pytest.mark.parametrize(
    "options",
    [
        ["--status", "done"],
        ["--since", "yesterday"],
        ["--limit", "0"],
        ["--limit", "many"],
        ["--cursor", "nonsense"],
        ["--parent", "s-none"],
        ["--min-cost", "-1"],
    ],
    ids=" ".join,
)
def test_a_filter_that_makes_no_sense_is_a_mistake_of_the_command(
    command: Command, agent: str, options: list[str]
) -> None:
    ended = command("sessions", "list", *options)
    assert (ended.code, ended.out) == (2, b"")
    assert options[1] in ended.complaint


def test_a_long_list_comes_in_pages(command: Command) -> None:
    ids = [command("agent", f"task {number}", "--json").json["session"] for number in range(5)]
    seen: list[str] = []
    more: list[str] = []
    while True:
        page = command("sessions", "list", "--limit", "2", "--json", *more)
        seen += [one["id"] for one in page.json]
        if not page.err:
            break
        more = page.complaint.split()[-2:]
        assert more[0] == "--cursor"
    assert seen == ids[::-1]


def on_terminal(columns: int, *words: str) -> list[str]:
    """What a command prints on a terminal of that width, by lines."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        subprocess.run([PROGRAM, *words], stdout=its, stderr=subprocess.PIPE, env=env, timeout=60, check=True)
        os.close(its)
        shown = b""
        with suppress(OSError):  # a terminal that nobody writes to any more is an error to read
            while part := terminal.read(65536):
                shown += part
    return shown.decode().splitlines()


def test_a_table_fits_the_terminal_and_is_whole_in_a_pipe(command: Command) -> None:
    command("agent", "飯店 " * 60)
    whole = command("sessions", "list").out.decode().splitlines()
    narrow = on_terminal(60, "sessions", "list")
    assert max(map(len, whole)) > 60
    assert len(narrow) == len(whole) == 2
    assert all(sum(2 if c in "飯店" else 1 for c in line) <= 60 for line in narrow)
    found = on_terminal(60, "sessions", "search", "飯店")
    assert len(found) == 3
    assert "\x1b[1m飯店\x1b[0m" in found[2]


def test_a_title_cannot_play_with_the_terminal(command: Command, agent: str) -> None:
    assert command("sessions", "rename", agent, "red \x1b[31m\u202eecin").code == 0
    for words in (["sessions", "list"], ["sessions", "search", "ferry"]):
        shown = command(*words).out.decode()
        assert "\x1b" not in shown
        assert "\u202e" not in shown


@on_either_store
def test_a_chinese_word_in_a_report_is_found(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "share"
    folder.mkdir()
    (folder / "a.md").write_text("# 差旅\n\n欧盟酒店住宿每晚上限为180欧元。\n")
    sentence = "欧盟酒店住宿每晚上限为180欧元。"
    with provider(FakeResearcher(query="酒店", quote=sentence, sentence=sentence)) as model:
        done = command("research", "酒店每晚上限是多少?", "--corpus", folder, "--json", *model).json
    assert done["status"] == "completed"
    (hit,) = listed(command("sessions", "search", "住宿", "--json"))
    assert hit["id"] == done["id"]
    start, end = hit["marks"][0]
    assert hit["snippet"][start:end] in "住宿"
    assert "住宿" in command("sessions", "search", "住宿").out.decode()
    assert listed(command("sessions", "search", "火星", "--json")) == []


@pytest.mark.parametrize("words", [[], ["  "], ["--", "…"]], ids=repr)
def test_a_search_without_a_word_is_a_mistake_of_the_command(command: Command, words: list[str]) -> None:
    ended = command("sessions", "search", *words)
    assert (ended.code, ended.out) == (2, b"")
    assert ended.complaint


@pytest.mark.case("S02")
def test_a_session_that_cannot_be_read_hides_no_other(
    command: Command, home: Path, run: str, agent: str
) -> None:
    log = home / "sessions" / f"{agent}.jsonl"
    log.write_bytes(bytes(range(216, 236)) + log.read_bytes()[20:])
    found = {one["id"]: one for one in listed(command("sessions", "list", "--json"))}
    assert found[run]["status"] == "completed"
    assert found[agent]["status"] == "unreadable"
    assert found[agent]["reason"]
    assert found[agent]["reason"] in command("sessions", "list").out.decode()


def test_an_index_that_is_damaged_is_made_again(command: Command, home: Path, run: str) -> None:
    before = command("sessions", "list").out
    for file in home.glob("index.sqlite*"):
        file.write_bytes(b"nonsense" * 1000)
    assert command("sessions", "list").out == before
    for file in home.glob("index.sqlite*"):
        file.unlink()
    assert listed(command("sessions", "search", "hotel", "--json"))[0]["id"] == run


# --- ids ----------------------------------------------------------------------------------------------------


@on_either_store
def test_an_id_may_be_given_by_its_beginning(command: Command, run: str, tmp_path: Path) -> None:
    beginning = run[:-6]
    for words in (["show"], ["sessions", "show"], ["runs", "show"], ["audit"]):
        assert command(*words, beginning).out == command(*words, run).out != b""
    assert command("show", beginning, "--report").out == command("runs", "show", run, "--report").out != b""
    assert command("export", beginning, tmp_path / "r.md").code == 0


def test_a_beginning_that_several_have_names_them(command: Command, run: str, agent: str) -> None:
    ended = command("sessions", "delete", run[:1], "--yes")
    assert (ended.code, ended.out) == (2, b"")
    assert "give more of it" in ended.complaint
    assert {one["id"] for one in listed(command("sessions", "list", "--json"))} == {run, agent}


@pytest.mark.parametrize("words", [["show"], ["export"], ["delete"]], ids=" ".join)
def test_the_commands_over_runs_take_nothing_else(
    command: Command, agent: str, tmp_path: Path, words: list[str]
) -> None:
    more = {"show": [], "export": [tmp_path / "x.leadline-session"], "delete": ["--yes"]}[words[0]]
    ended = command("runs", *words, agent, *more)
    assert (ended.code, ended.out) == (2, b"")
    assert "not a research run" in ended.complaint
    assert command("sessions", "show", agent).code == 0


NEEDS_ID = [
    ["sessions", "show"],
    ["sessions", "fork"],
    ["sessions", "delete", "--yes"],
    ["sessions", "archive"],
    ["runs", "show"],
    ["runs", "delete", "--yes"],
]


@pytest.mark.parametrize("words", NEEDS_ID, ids=" ".join)
@pytest.mark.parametrize("name", ["none", "../../etc/passwd", "", "%", "s-*"])
def test_an_id_that_is_not_there_is_a_mistake_of_the_command(
    command: Command, agent: str, words: list[str], name: str
) -> None:
    ended = command(*words, name)
    assert (ended.code, ended.out) == (2, b"")
    assert "there is no session" in ended.complaint
    assert command("sessions", "show", agent).code == 0


# --- going on -----------------------------------------------------------------------------------------------


@on_either_store
def test_a_fork_goes_on_where_the_session_was(command: Command, agent: str) -> None:
    fork = command("sessions", "fork", agent, "--title", "in French")
    made = fork.out.decode().strip()
    assert (fork.code, fork.out.count(b"\n")) == (0, 1)
    assert made != agent
    with provider(["le bac"]) as model:
        assert command("resume", made, "and in French?", *model).out == b"le bac\n"
    text = command("show", made).out.decode()
    assert text.index("name the ferry") < text.index("the answer") < text.index("and in French?")
    assert "and in French?" not in command("show", agent).out.decode()
    found = {one["id"]: one for one in listed(command("sessions", "list", "--json"))}
    assert found[made]["title"] == "in French"
    assert found[made]["parent"] == agent
    assert found[agent]["turns"] == 1


def test_a_table_tells_a_fork_from_the_session_that_it_is_from(command: Command, agent: str) -> None:
    command("sessions", "fork", agent)
    _, fork, source = command("sessions", "list").out.decode().splitlines()
    assert fork.endswith("fork: name the ferry")
    assert source.endswith("  name the ferry")


def test_a_fork_tells_programs_where_it_is_from(command: Command, agent: str) -> None:
    fork = command("sessions", "fork", agent, "--turn", "1", "--json").json
    assert fork == {"id": fork["id"], "forked_from": agent, "turns": 1}
    assert command("sessions", "fork", agent, "--turn", "0", "--json").json["turns"] == 0


@pytest.mark.parametrize(
    ("turn", "why"), [("7", "has no turn 7"), ("x", "no whole number"), ("-1", "--turn")]
)
def test_a_turn_that_is_not_there_is_refused(command: Command, agent: str, turn: str, why: str) -> None:
    ended = command("sessions", "fork", agent, "--turn", turn)
    assert (ended.code, ended.out) == (2, b"")
    assert why in ended.complaint
    assert len(listed(command("sessions", "list", "--json"))) == 1


def test_a_run_is_not_forked(command: Command, run: str) -> None:
    ended = command("sessions", "fork", run)
    assert (ended.code, ended.out) == (2, b"")
    assert f"leadline replay {run}" in ended.complaint


@on_either_store
def test_a_title_of_a_person_is_what_lists_show(command: Command, run: str) -> None:
    report = command("show", run, "--report").out
    assert command("sessions", "rename", run, "the", "hotel", "question").code == 0
    (found,) = listed(command("runs", "list", "--json"))
    assert (found["title"], found["status"]) == ("the hotel question", "completed")
    assert "title by a person: the hotel question" in command("show", run).out.decode()
    renamed = command("sessions", "rename", run[:9], "again", "--json").json
    assert (renamed["id"], renamed["title"]) == (run, "again")
    assert listed(command("sessions", "search", "again", "--json"))[0]["id"] == run
    assert command("show", run, "--report").out == report
    assert command("audit", run).code == 0


def test_a_model_gives_titles_where_it_is_told_to(command: Command, home: Path) -> None:
    with provider(["The Nordlicht sails.", "Ferry to the island"]) as model:
        home.mkdir()
        rows = [
            {"id": "titles", "disabled": False, "config": {"model": "small/any"}},
            {"id": "models", "merge": {"providers": {"small": {"base_url": model[-1]}}}},
        ]
        (home / "leadline.yml").write_text(json.dumps(rows))
        session = command("agent", "Which ferry goes to the island?", "--json", *model).json["session"]
    (found,) = listed(command("sessions", "list", "--json"))
    assert (found["id"], found["title"]) == (session, "Ferry to the island")
    (child,) = listed(command("sessions", "list", "--parent", session, "--json"))
    assert (child["kind"], child["model"], child["calls"]) == ("title", "small/any", 1)
    assert command("audit", session, *model).code == 0
    assert command("sessions", "rename", session, "mine").code == 0
    assert listed(command("sessions", "list", "--title", "mine", "--json"))[0]["id"] == session


def test_a_title_that_is_blank_is_refused(command: Command, agent: str) -> None:
    for words in ([], [" "], ["\x01\x7f"]):
        ended = command("sessions", "rename", agent, *words)
        assert (ended.code, ended.out) == (2, b"")
        assert "blank" in ended.complaint


@on_either_store
def test_what_is_being_written_is_not_renamed_deleted_or_archived(command: Command) -> None:
    with provider([Behaviour("stall")]) as model:
        process = started("agent", "wait for ever", *model)
        try:
            while not (found := command("sessions", "list", "--status", "running", "--json").json):
                pass
            (one,) = found
            assert one["holder"]
            for words in (["rename", one["id"], "x"], ["delete", one["id"], "--yes"], ["archive", one["id"]]):
                ended = command("sessions", *words)
                assert (ended.code, ended.out) == (2, b"")
                assert f"process {process.pid} on" in ended.complaint and " since 20" in ended.complaint
            assert command("show", one["id"]).code == 0
        finally:
            process.kill()
            process.communicate()
    (one,) = listed(command("sessions", "list", "--json"))
    assert one["status"] == "interrupted"
    assert command("sessions", "rename", one["id"], "was killed").code == 0
    (one,) = listed(command("sessions", "list", "--json"))
    assert (one["status"], one["title"]) == ("interrupted", "was killed")


# --- keeping ------------------------------------------------------------------------------------------------


def test_an_export_has_the_name_of_what_is_in_it(
    command: Command, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("sessions", "export", run[:8]).code == 0
    assert (tmp_path / f"{run}.leadline-session").exists()


@on_either_store
def test_a_run_can_be_carried_to_another_home(
    command: Command, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.leadline-session"
    report, transcript = command("show", run, "--report").out, command("show", run).out
    told = command("sessions", "export", run, file, "--json").json
    assert (told["id"], told["bytes"]) == (run, file.stat().st_size)
    refused = command("sessions", "export", run, file)
    assert (refused.code, refused.out) == (2, b"")
    assert str(file) in refused.complaint

    monkeypatch.setenv("LEADLINE_HOME", str(tmp_path / "other"))
    tried = command("sessions", "import", file, "--dry-run", "--json").json
    assert tried["dry_run"]
    assert listed(command("sessions", "list", "--json")) == []
    done = command("sessions", "import", file)
    assert (done.code, done.out.decode()) == (0, f"{run}\n")
    assert command("sessions", "import", file, "--json").json["added"] == []
    assert command("show", run, "--report").out == report
    assert command("show", run).out == transcript
    assert command("audit", run).code == 0
    assert listed(command("runs", "list", "--json"))[0]["id"] == run


def test_a_run_is_exported_in_the_form_that_the_name_asks_for(
    command: Command, run: str, tmp_path: Path
) -> None:
    for name in ("r.md", "r.leadline", "r.leadline-session"):
        done = command("runs", "export", run, tmp_path / name)
        assert (done.code, done.out) == (0, b"")
        assert (tmp_path / name).stat().st_size > 100
    assert command("verify", tmp_path / "r.leadline").code == 0
    ended = command("runs", "export", run, tmp_path / "r.pdf")
    assert (ended.code, ended.out) == (2, b"")


def test_what_is_no_export_is_not_imported(command: Command, tmp_path: Path, run: str) -> None:
    other = tmp_path / "notes.md"
    other.write_text("notes")
    for file in (other, tmp_path / "none"):
        ended = command("sessions", "import", file)
        assert (ended.code, ended.out) == (2, b"")
        assert str(file) in ended.complaint


def test_an_archived_run_is_as_before(command: Command, home: Path, run: str) -> None:
    report = command("show", run, "--report").out
    assert command("sessions", "archive", run, "--dry-run", "--json").json["dry_run"]
    assert not list((home / "sessions").glob("*.gz"))
    told = command("sessions", "archive", run, "--json").json["archived"][0]
    assert told["bytes_after"] < told["bytes_before"]
    assert list((home / "sessions").glob("*.gz"))
    (found,) = listed(command("runs", "list", "--json"))
    assert (found["id"], found["status"], found["archived"]) == (run, "completed", True)
    assert command("show", run, "--report").out == report
    assert command("audit", run).code == 0
    assert listed(command("sessions", "search", "hotel", "--json"))[0]["id"] == run
    assert command("sessions", "rename", run, "put away").code == 0
    (found,) = listed(command("runs", "list", "--json"))
    assert (found["title"], found["archived"]) == ("put away", True)
    assert "archived already" in command("sessions", "archive", run).err


def test_a_bundle_is_told_from_an_export(command: Command, corpus: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "run.leadline"
    assert command("research", QUESTION, "--corpus", corpus, "--bundle", bundle).code == 0
    ended = command("sessions", "import", bundle)
    assert (ended.code, ended.out) == (2, b"")
    assert "leadline verify" in ended.complaint and "Ask for the file again" not in ended.complaint


# --- removing -----------------------------------------------------------------------------------------------


def test_a_dry_run_removes_nothing(command: Command, home: Path, run: str) -> None:
    def kept() -> list[Path]:
        return sorted([*home.rglob("*.jsonl"), *(path for path in home.rglob("*") if len(path.name) > 60)])

    before = kept()
    assert len(before) > 4
    for words in (["delete", run], ["prune", "--older-than", "0s"], ["gc", "--grace", "0s"]):
        ended = command("sessions", *words, "--dry-run")
        assert (ended.code, ended.out) == (0, b"")
        assert "would be" in ended.err
        assert command("sessions", *words, "--dry-run", "--json").json["dry_run"]
    assert kept() == before


def test_without_a_yes_and_a_terminal_nothing_is_removed_that_the_command_does_not_name(
    command: Command, run: str, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    for words in (["delete", run[:-1]], ["delete", agent, run[:9]], ["prune", "--older-than", "0s"]):
        for more in ([], ["--json"]):
            ended = command("sessions", *words, *more)
            assert (ended.code, ended.out) == (2, b"")
            assert "--yes" in ended.complaint
    assert len(listed(command("sessions", "list", "--json"))) == 2


@on_either_store
def test_an_id_that_is_written_out_is_consent_enough_where_there_is_no_terminal(
    command: Command, run: str, agent: str
) -> None:
    children = [one["id"] for one in listed(command("sessions", "list", "--parent", run, "--json"))]
    ended = program("sessions", "delete", children[0], agent, run, stdin=subprocess.DEVNULL)
    assert (ended.code, ended.out) == (0, b"")
    assert run in ended.err
    assert listed(command("sessions", "list", "--children", "--json")) == []


def test_a_collection_asks_only_where_there_is_a_terminal(command: Command, home: Path, run: str) -> None:
    assert program("runs", "delete", run, stdin=subprocess.DEVNULL).code == 0
    assert any((home / "blobs").rglob("?" * 64))
    collect = ("sessions", "gc", "--grace", "0s", "--stale-index", "0s")
    gone = program(*collect, "--json", stdin=subprocess.DEVNULL).json
    assert gone["blobs"] and not gone["dry_run"]
    assert not command("sessions", "prune", "--older-than", "1d", "--json").json["dry_run"]
    assert not any((home / "blobs").rglob("?" * 64))


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("n\n", 1), ("\n", 1), ("", 1)])
def test_at_a_terminal_it_asks(
    command: Command, run: str, monkeypatch: pytest.MonkeyPatch, answer: str, left: int
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(answer))
    ended = command("runs", "delete", run)
    assert ended.code == (2 if left else 0)
    assert "Go ahead?" in ended.err
    assert len(listed(command("runs", "list", "--json"))) == left


@on_either_store
def test_a_run_is_deleted_with_all_that_it_started_and_then_its_texts(
    command: Command, home: Path, run: str, agent: str
) -> None:
    done = command("sessions", "delete", run, "--yes", "--json").json
    assert [one["id"] for one in done["deleted"]] == [run]
    assert [one["id"] for one in listed(command("sessions", "list", "--children", "--json"))] == [agent]
    assert listed(command("sessions", "search", "hotel", "--json")) == []
    gone = command("sessions", "gc", "--grace", "0s", "--stale-index", "0s", "--yes", "--json").json
    assert gone["blobs"]
    assert command("sessions", "gc", "--grace", "0s", "--yes", "--json").json["blobs"] == []
    assert command("show", agent).code == 0


def test_texts_that_a_run_needs_stay(command: Command, run: str) -> None:
    report = command("show", run, "--report").out
    command("sessions", "gc", "--grace", "0s", "--stale-index", "0s", "--yes")
    assert command("show", run, "--report").out == report


def test_if_one_of_several_cannot_be_deleted_none_is(command: Command, run: str, agent: str) -> None:
    ended = command("sessions", "delete", run, "s-none", agent, "--yes")
    assert (ended.code, ended.out) == (2, b"")
    assert len(listed(command("sessions", "list", "--json"))) == 2
    assert command("sessions", "delete", run, run[:9], agent, "--yes").code == 0
    assert listed(command("sessions", "list", "--json")) == []


def test_a_child_may_be_deleted_alone_or_together_with_its_run(command: Command, run: str) -> None:
    children = [one["id"] for one in listed(command("sessions", "list", "--parent", run, "--json"))]
    assert command("sessions", "delete", children[0], "--yes").code == 0
    assert command("show", run, "--report").code == 0
    both = command("sessions", "delete", children[1], run, "--yes", "--json").json
    assert [one["id"] for one in both["deleted"]] == [run]
    assert listed(command("sessions", "list", "--children", "--json")) == []


def test_where_the_home_cannot_be_written_a_dry_run_still_tells_and_the_rest_says_why(
    command: Command, home: Path, run: str, tmp_path: Path
) -> None:
    file = tmp_path / "run.leadline-session"
    assert command("sessions", "export", run, file).code == 0
    lock = home / "imports" / ".lock"
    lock.mkdir(parents=True)  # in place of a file system that is mounted for reading only
    told = command("sessions", "gc", "--dry-run", "--grace", "0s", "--json")
    assert (told.code, told.json["dry_run"]) == (0, True)
    for words in (["gc"], ["import", file]):
        ended = command("sessions", *words)
        assert (ended.code, ended.out) == (2, b"")
        assert str(lock) in ended.complaint and "LEADLINE_HOME" in ended.complaint


def test_a_file_that_cannot_be_a_session_is_named_and_never_said_to_be_gone(
    command: Command, home: Path, agent: str
) -> None:
    note, pipe = home / "sessions" / "my notes.jsonl", home / "sessions" / "s-pipe.jsonl"
    note.write_text("buy milk\n")
    os.mkfifo(pipe)
    reasons = {one["id"]: one["reason"] for one in listed(command("sessions", "list", "--json"))}
    assert "rename" in reasons["my notes"] and "no regular file" in reasons["s-pipe"]
    for words in (["delete", "my notes", "--yes"], ["archive", "my notes"]):
        ended = command("sessions", *words)
        assert (ended.code, ended.out) == (2, b"")
        assert "my notes" in ended.complaint
    assert note.exists()
    ended = command("sessions", "gc", "--yes")
    assert (ended.code, ended.out) == (2, b"") and str(pipe) in ended.complaint
    assert command("sessions", "delete", "s-pipe", "--yes").code == 0
    assert command("sessions", "gc", "--yes").code == 0


@on_either_store
def test_a_fork_outlives_the_session_that_it_is_from(command: Command, agent: str) -> None:
    fork = command("sessions", "fork", agent).out.decode().strip()
    assert command("sessions", "delete", agent, "--yes").code == 0
    assert [one["id"] for one in listed(command("sessions", "list", "--json"))] == [fork]
    assert "the answer" in command("show", fork).out.decode()


@on_either_store
def test_what_is_old_is_pruned_by_kind(command: Command, run: str, agent: str) -> None:
    assert command("sessions", "prune", "--older-than", "1d", "--yes", "--json").json["deleted"] == []
    done = command("sessions", "prune", "--older-than", "0s", "--kind", "agent", "--yes", "--json").json
    assert [one["id"] for one in done["deleted"]] == [agent]
    assert [one["id"] for one in listed(command("sessions", "list", "--json"))] == [run]
