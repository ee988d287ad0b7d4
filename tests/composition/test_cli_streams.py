"""What reaches stdout and stderr when pipes, terminals, locales and disks are not as one would like."""

from __future__ import annotations

import os
import pty
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from leadline.testing.provider_server.behaviours import Behaviour
from tests.composition.cli import PROGRAM, QUESTION, Command, program, provider, run_id
from tests.composition.conftest import HOTEL, FakeResearcher


def limited(size: int) -> Callable[[], None]:
    """A disk on which no file grows beyond `size` bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def all_of(terminal: int) -> bytes:
    """What a terminal was sent, once its last writer is gone."""
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(terminal)
    return shown


def test_control_characters_of_a_model_are_shown_on_a_terminal_and_not_obeyed(home: Path) -> None:
    with provider([Behaviour(text="plain \x1b[31mred\x07")]) as model:
        master, slave = pty.openpty()
        process = subprocess.Popen([PROGRAM, "agent", "hi", *model], stdout=slave)
        os.close(slave)
        shown = all_of(master)
        assert process.wait(timeout=60) == 0
    assert shown.split() == [b"plain", rb"\x1b[31mred\x07"]


def test_the_words_of_a_failed_turn_are_not_handed_on_as_its_answer(command: Command, home: Path) -> None:
    fault = Behaviour("auth_error")
    with provider([fault]) as model:
        ended = command("agent", "hi", *model)
    assert ended.code == 1
    assert ended.out == b""


@pytest.mark.case("L02")
@pytest.mark.parametrize(
    "locale", [{"PYTHONIOENCODING": "cp1252"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
def test_stdout_is_utf8_whatever_the_locale_and_stderr_takes_anything(
    home: Path, corpus: Path, locale: dict[str, str]
) -> None:
    sentence = "The café 飯店 ✓ costs EUR 90 per night."
    (corpus / "飯店.md").write_text(f"# Hotels\n\n{sentence}\n", encoding="utf-8")
    researcher = FakeResearcher(query="café 飯店", quote=sentence, sentence=sentence)
    with provider(researcher) as model:
        ended = program("research", "What does the café 飯店 ✓ cost?", "--corpus", corpus, *model, env=locale)
    assert ended.code == 0, ended.err
    assert sentence in ended.out.decode("utf-8")
    assert "read " in ended.err
    assert "Traceback" not in ended.err


def test_progress_changes_one_line_on_a_terminal_and_leaves_it_clean(home: Path, corpus: Path) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, "research", QUESTION, "--corpus", corpus],
        stdout=subprocess.PIPE,
        stderr=slave,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(slave)
    out, _ = process.communicate(timeout=60)
    shown = all_of(master)
    assert process.returncode == 0
    assert b"\x1b" not in out
    assert b"quotes 1" in shown
    assert shown.rsplit(b"\n", 1)[-1].endswith(b"\r\x1b[2K") or shown.endswith(b"\n")
    assert b"completed after" in shown


def test_escapes_in_documents_and_replies_never_reach_the_terminal(home: Path, corpus: Path) -> None:
    hostile = "\x9b31mowned\x7fThe night costs EUR 90.\u202e"
    (corpus / "night.md").write_text(f"# Night\n\n{hostile}\n", encoding="utf-8")
    researcher = FakeResearcher(query="night costs \x1b[2J", quote="The night costs EUR 90.")
    researcher.sentence = "The night costs EUR 90.\x1b[31m"
    with provider(researcher) as model:
        ended = program("research", "What does a \x1b[1mnight cost?", "--corpus", corpus, *model)
    assert ended.code == 0, ended.err
    assert "\\x1b[2J" in ended.err
    shown = program("show", run_id(ended.err.splitlines()))
    for text in (ended.err, ended.out.decode(), shown.out.decode(), shown.err):
        assert not {"\x1b", "\x9b", "\x7f", "\u202e"} & set(text)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_is_gone_costs_a_line_and_not_the_report(
    command: Command, corpus: Path, options: list[str]
) -> None:
    read, write = os.pipe()
    os.close(read)
    arguments = [PROGRAM, "research", QUESTION, "--corpus", corpus, *options]
    done = subprocess.run(arguments, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(write)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert "cannot write to stdout: Broken pipe" in done.stderr
    again = done.stderr.split("leadline show ")[1].split()[0]
    assert b"EUR 180" in command("show", again, "--report").out


def test_a_full_disk_behind_stdout_is_one_line(home: Path, corpus: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [PROGRAM, "research", QUESTION, "--corpus", corpus],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_stderr_stops_nobody(home: Path, corpus: Path, unbuffered: str) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [PROGRAM, "research", QUESTION, "--corpus", corpus],
        stdout=subprocess.PIPE,
        stderr=write,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    os.close(write)
    assert done.returncode == 0
    assert b"EUR 180" in done.stdout


def test_a_home_that_cannot_be_made_is_one_line(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    env = {"LEADLINE_HOME": str(tmp_path / "file" / "home")}
    for arguments in (["research", QUESTION, "--corpus", corpus], ["agent", "hi"], ["show", "s-1"]):
        ended = program(*arguments, env=env)
        assert (ended.code, ended.out) == (2, b"")
        assert "LEADLINE_HOME" in ended.complaint
        assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize("size", [400, 3_000, 6_000])
def test_a_disk_that_fills_up_ends_the_run_with_a_reason(command: Command, corpus: Path, size: int) -> None:
    with provider(FakeResearcher()) as model:
        ended = program("research", QUESTION, "--corpus", corpus, "--json", *model, preexec_fn=limited(size))
    assert ended.code in (1, 2)
    assert "Traceback" not in ended.err
    assert "found room" in ended.err
    published = [line for line in ended.err.splitlines() if line.startswith("run ")]
    assert bool(ended.out) == bool(published)
    if published:
        assert ended.json["status"] == "failed"
        assert command("show", ended.json["id"]).code == 0


def test_a_report_of_the_kernel_is_one_line_and_a_traceback_only_on_demand(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text(
        "from leadline.kernel.plugin import Plugin\n"
        "async def breaks():\n    raise RuntimeError('a task\\nof a plugin broke')\n"
        "async def apply(ctx, config):\n    ctx.spawn(breaks, name='work')\n"
        "plugin = Plugin('broken', apply)\n"
    )
    patch = tmp_path / "patch.yml"
    patch.write_text("- {id: broken, plugin: 'broken:plugin'}\n")
    with provider([Behaviour(text="hello"), Behaviour(text="hello")]) as model:
        arguments = ["agent", "hi", "--patch", patch, *model]
        ended = program(*arguments, env={"PYTHONPATH": str(tmp_path)})
        told = program(*arguments, env={"PYTHONPATH": str(tmp_path), "LEADLINE_DEBUG": "1"})
    assert (ended.code, ended.out) == (0, b"hello\n")
    assert len(ended.err.splitlines()) == 1
    assert "a task of a plugin broke" in ended.complaint
    assert "Traceback" in told.err


def test_a_row_that_does_not_start_is_told_once(command: Command, home: Path) -> None:
    home.mkdir()
    (home / "leadline.yml").write_text("- {id: models, merge: {defalt: x/y}}\n")
    ended = command("agent", "hi")
    assert (ended.code, ended.out) == (2, b"")
    assert "did you mean 'default'?" in ended.complaint
    assert ended.err.count("defalt") == 1
    assert len(ended.err.splitlines()) == 1


def test_the_researcher_of_these_tests_finds_its_quote(command: Command, corpus: Path) -> None:
    with provider(FakeResearcher()) as model:
        assert HOTEL in command("research", QUESTION, "--corpus", corpus, *model).out.decode()
