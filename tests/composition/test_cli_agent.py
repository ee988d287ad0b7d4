"""`leadline agent`: one turn, its last words on stdout, its end as the exit code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import Received
from tests.composition.cli import PROGRAM, QUESTION, Command, program, provider
from tests.composition.conftest import HOTEL, FakeResearcher, call, schema_of


def test_a_turn_that_completes_leaves_only_its_words(home: Path) -> None:
    with provider(["hello ✓"]) as model:
        ended = program("agent", "say", "hello", *model)
    assert (ended.code, ended.out.decode(), ended.err) == (0, "hello ✓\n", "")


def test_json_names_the_session_and_the_end(command: Command) -> None:
    with provider(["hello"]) as model:
        reply = command("agent", "hi", "--json", *model).json
    assert reply["text"] == "hello"
    assert reply["end"]["reason"] == "completed"
    assert b"hello" in command("show", reply["session"]).out


def test_a_turn_that_fails_ends_with_1_and_says_why(command: Command) -> None:
    with provider([Behaviour("auth_error")]) as model:
        ended = command("agent", "hi", *model)
    assert (ended.code, ended.out) == (1, b"")
    assert "leadline show s-" in ended.complaint


def test_a_missing_key_is_told_with_what_to_set(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    ended = command("agent", "Hello", "--model", "deepseek/deepseek-chat")
    assert ended.code == 1
    assert "set DEEPSEEK_API_KEY" in ended.complaint


def test_without_a_model_the_embedded_one_says_what_it_is(command: Command) -> None:
    ended = command("agent", "hi")
    assert ended.code == 0
    assert b"No language model is configured" in ended.out


def test_an_agent_researches_the_corpus_it_was_given(command: Command, corpus: Path) -> None:
    researcher = FakeResearcher()

    def answers(request: Received) -> Behaviour:
        if schema_of(request):
            return researcher(request)
        told = [message for message in request.messages if message["role"] == "tool"]
        return Behaviour(text=str(told[-1]["content"])) if told else call("deep_research", {"question": "x"})

    with provider(answers) as model:
        ended = command("agent", QUESTION, "--corpus", corpus, *model)
    assert ended.code == 0, ended.err
    assert HOTEL in ended.out.decode()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["  "], "blank"),
        (["hi", "--corpus", "missing"], "missing does not exist"),
        (["hi", "--model", "nobody/x"], "nobody"),
        (["hi", "--base-url", "http://127.0.0.1:1"], "--model"),
        (["hi", "--modle", "local/x"], "'--model'"),
        (["hi", "--profile", "base"], "model"),
    ],
)
def test_a_wrong_command_ends_with_2_and_starts_nothing(
    command: Command, home: Path, words: list[str], told: str
) -> None:
    ended = command("agent", *words)
    assert (ended.code, ended.out) == (2, b"")
    assert told in ended.complaint
    assert list(home.rglob("*.jsonl")) == []


@pytest.mark.case("S26")
def test_eight_agents_at_once_on_one_home_all_complete(home: Path) -> None:
    with provider(lambda request: Behaviour(text="hello")) as model:
        running = [
            subprocess.Popen([PROGRAM, "agent", f"task {n}", *model], stdout=-1, stderr=-1) for n in range(8)
        ]
        ended = [(process.communicate(timeout=90), process.returncode) for process in running]
    assert ended == [((b"hello\n", b""), 0)] * 8
    assert len(list((home / "sessions").glob("*.jsonl"))) == 8


@pytest.mark.case("S26")
def test_eight_runs_at_once_over_one_folder_all_complete(home: Path, corpus: Path) -> None:
    command = [PROGRAM, "research", QUESTION, "--corpus", corpus]
    running = [subprocess.Popen(command, stdout=-1, stderr=-1) for _ in range(8)]
    for process in running:
        out, err = process.communicate(timeout=90)
        assert process.returncode == 0, err.decode()
        assert b"EUR 180" in out
