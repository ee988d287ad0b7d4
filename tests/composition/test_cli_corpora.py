"""What `leadline research` makes of the folders that it is given: which files are searched, and which never are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.composition.cli import QUESTION, Command


@pytest.mark.parametrize("language", ["English", "German", "French", "Spanish", "Chinese", "Japanese"])
def test_reports_in_the_corpus_are_no_sources_of_later_reports(
    command: Command, corpus: Path, language: str
) -> None:
    asked = ("research", QUESTION, "--corpus", corpus, "--language", language)
    for name in ("report.md", "report.html", "report.json"):
        assert command(*asked, "--output", corpus / name).code == 0
    (corpus / "shown.json").write_bytes(command(*asked, "--json").out)
    result = command(*asked, "--json").json
    assert [source["location"] for source in result["sources"]] == ["finance/expenses.md"]
    blocked = {one["location"]: one["outcome"] for one in result["coverage"]["blocked_sources"]}
    assert blocked == dict.fromkeys(("report.html", "report.json", "report.md", "shown.json"), "disallowed")


def test_what_only_looks_a_little_like_a_report_is_read(command: Command, corpus: Path) -> None:
    text = "# Rooms\n\nA hotel night in Malta may cost EUR 155.\n\n## Coverage\n\nAll sites. Questions: ask 3 people.\n"
    (corpus / "rooms.md").write_text(text)
    result = command("research", "What may a hotel night in Malta cost?", "--corpus", corpus, "--json").json
    assert "rooms.md" in [source["location"] for source in result["sources"]]


@pytest.mark.parametrize("turned", [False, True])
def test_a_file_named_beside_its_folder_is_one_document(command: Command, corpus: Path, turned: bool) -> None:
    named = [corpus, corpus / "finance" / "expenses.md", corpus / "finance"]
    options = [part for path in (named[::-1] if turned else named) for part in ("--corpus", path)]
    result = command("research", QUESTION, *options, "--json").json
    assert result["coverage"]["found"] == len({one["title"] for one in result["sources"]}) == 1


def test_a_blank_path_does_not_search_the_folder_one_happens_to_be_in(
    command: Command, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus)
    for name in ("research", "agent"):
        ended = command(name, QUESTION, "--corpus", "")
        assert (ended.code, ended.out) == (2, b"")
        assert "the path is blank" in ended.complaint


def test_a_path_at_which_one_may_not_even_look_is_refused(command: Command, home: Path, corpus: Path) -> None:
    path = corpus / (
        "far " * 100
    )  # a name that the system refuses, as it does one in a folder that is locked
    for arguments in (
        ("research", QUESTION, "--corpus", path),
        ("agent", QUESTION, "--corpus", path),
        ("research", QUESTION, "--corpus", corpus, "--output", path),
        ("research", QUESTION, "--corpus", corpus, "--bundle", path / "run.leadline"),
        ("research", QUESTION, "--corpus", corpus, "--profile", path),
        ("research", QUESTION, "--corpus", corpus, "--patch", path),
        ("verify", path),
    ):
        ended = command(*arguments)
        assert (ended.code, ended.out) == (2, b""), arguments
        assert "far far" in ended.complaint
    assert not list(home.rglob("*.jsonl"))


@pytest.mark.parametrize("name", ["research", "agent"])
def test_a_tilde_that_the_shell_left_alone_is_the_home_folder(
    command: Command, corpus: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HOME", str(corpus.parent))
    assert command(name, QUESTION, f"--corpus=~/{corpus.name}").code == 0


@pytest.mark.parametrize("question", [QUESTION, "What is the colour of the moon?"])
def test_what_was_not_read_of_a_document_is_said_whether_or_not_it_is_cited(
    command: Command, corpus: Path, tmp_path: Path, question: str
) -> None:
    patch = tmp_path / "limits.yml"
    patch.write_text("- id: documents\n  merge: {max_text: 200}\n")
    (corpus / "journal.log").write_text("a day like any other\n" * 50)
    ended = command("research", question, "--corpus", corpus, "--patch", patch, "--json")
    note = "Only partly read: journal.log (text cut at 200 of 1,050 characters)."
    assert note in ended.json["notes"]
    assert f"note: {note}" in ended.err


def test_a_corpus_of_which_nothing_can_be_read_is_refused_with_the_reason(
    command: Command, home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "only-broken"
    folder.mkdir()
    (folder / "a.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    ended = command("research", "What does it say?", "--corpus", folder)
    assert (ended.code, ended.out) == (2, b"")
    assert "none of its 1 file(s) can be read (a.pdf: " in ended.err
    assert not list((home / "sessions").glob("*.jsonl"))
