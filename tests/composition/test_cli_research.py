"""`leadline research` and what is done with its report: documents, files, bundles, exit codes."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import Received
from tests.composition.cli import QUESTION, Command, program, provider
from tests.composition.conftest import HOTEL, FakeResearcher

NOT_THERE = "What is the colour of the moon?"


def sessions(home: Path) -> list[Path]:
    return list(home.rglob("*.jsonl"))


def test_the_report_goes_to_stdout_and_everything_else_to_stderr(home: Path, corpus: Path) -> None:
    ended = program("research", *QUESTION.split(), "--corpus", corpus)
    assert ended.code == 0, ended.err
    report = ended.out.decode()
    assert report.startswith("# ")
    assert "EUR 180" in report
    assert "finance/expenses.md" in report
    assert "run s-" in ended.err
    assert "leadline: " not in ended.err
    assert "\x1b" not in ended.err


def test_words_and_options_may_stand_in_any_order(command: Command, corpus: Path) -> None:
    ended = command(
        "research", "What may", "--corpus", corpus, "a hotel night", "--format", "brief", "cost?", "--json"
    )
    assert ended.code == 0, ended.err
    assert ended.json["metadata"]["question"] == QUESTION
    assert ended.json["metadata"]["format"] == "brief"


def test_json_is_one_object_with_the_published_names(command: Command, corpus: Path) -> None:
    result = command("research", QUESTION, "--corpus", corpus, "--json").json
    assert result["status"] == "completed"
    published = "id status title report sources citations sentences coverage usage notes metadata"
    assert set(published.split()) <= set(result)
    marks = {citation["n"] for citation in result["citations"]}
    assert {n for sentence in result["sentences"] for n in sentence["citations"]} <= marks
    assert {citation["source"] for citation in result["citations"]} <= {one["n"] for one in result["sources"]}


@pytest.mark.parametrize("suffix", [".md", "", ".html", ".json"])
def test_a_report_that_goes_to_a_file_leaves_stdout_empty(
    command: Command, corpus: Path, tmp_path: Path, suffix: str
) -> None:
    target, bundle = tmp_path / f"report{suffix}", tmp_path / "run.leadline"
    ended = command("research", QUESTION, "--corpus", corpus, "--output", target, "--bundle", bundle)
    assert (ended.code, ended.out) == (0, b"")
    member = {".html": "report.html", ".json": "result.json"}.get(suffix, "report.md")
    with zipfile.ZipFile(bundle) as archive:
        assert target.read_bytes() == archive.read(member)
    assert not list(tmp_path.glob("*.partial"))


def test_json_and_a_file_go_together(command: Command, corpus: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.md"
    ended = command("research", QUESTION, "--corpus", corpus, "--output", target, "--json")
    assert target.read_text() == ended.json["report"]


def test_a_bundle_is_verified_offline_and_a_changed_one_does_not_hold(
    command: Command, corpus: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "run.leadline"
    told = command("research", QUESTION, "--corpus", corpus, "--bundle", bundle).err
    shutil.rmtree(corpus)
    good = command("verify", bundle, "--json")
    assert (good.code, good.json["ok"]) == (0, True)
    assert f"bundle {bundle}  sha256 {good.json['digest']}" in told
    assert command("verify", bundle, "--expect", good.json["digest"]).code == 0
    other = command("verify", bundle, "--expect", "0" * 64)
    assert other.code == 1
    assert b"does not hold" in other.out
    assert b"nothing was changed" not in other.out
    bundle.write_bytes(bundle.read_bytes().replace(b"EUR 180", b"EUR 810"))
    assert command("verify", bundle).code == 1


def test_what_is_no_bundle_is_a_mistake_of_the_command(
    command: Command, corpus: Path, tmp_path: Path
) -> None:
    assert command("verify", corpus / "leave.md").code == 2
    missing = command("verify", tmp_path / "none.leadline")
    assert (missing.code, missing.out) == (2, b"")
    assert "none.leadline" in missing.complaint


def test_a_question_that_the_sources_cannot_answer_fails_and_names_it(command: Command, corpus: Path) -> None:
    ended = command("research", NOT_THERE, "--corpus", corpus, "--json")
    assert ended.code == 1
    assert "not found in share" in ended.complaint
    assert ended.json["status"] == "failed"
    assert any("moon" in one for one in ended.json["coverage"]["unresolved"])
    plain = command("research", NOT_THERE, "--corpus", corpus)
    assert (plain.code, plain.out) == (1, b"")


def test_no_report_means_no_file_but_json_is_always_written(
    command: Command, corpus: Path, tmp_path: Path
) -> None:
    bundle, target = tmp_path / "run.leadline", tmp_path / "result.json"
    ended = command("research", NOT_THERE, "--corpus", corpus, "--bundle", bundle, "--output", target)
    assert ended.code == 1
    assert f"there is no report to write into {bundle}\n" in ended.err
    assert not bundle.exists()
    assert json.loads(target.read_bytes())["status"] == "failed"


def test_a_partial_report_ends_with_0_and_says_so(command: Command, corpus: Path) -> None:
    researcher = FakeResearcher(units=2)

    def half(request: Received) -> Behaviour:
        if "question 1?" in request.raw.decode():
            return Behaviour("invalid_request", message="no such model")
        return researcher.researched(request)

    researcher.unit = half
    with provider(researcher) as model:
        ended = command("research", QUESTION, "--corpus", corpus, *model)
    assert ended.code == 0, ended.err
    assert ended.complaint.startswith("leadline: partial: ")
    assert HOTEL in ended.out.decode()


def test_a_failed_run_with_json_still_prints_one_object(command: Command, corpus: Path) -> None:
    with provider(lambda request: Behaviour("auth_error")) as model:
        ended = command("research", QUESTION, "--corpus", corpus, "--json", *model)
    assert ended.code == 1
    assert ended.json["status"] == "failed"
    assert ended.json["error"]


def test_a_model_that_hands_nothing_in_is_told_with_what_to_try(command: Command, corpus: Path) -> None:
    with provider(lambda request: Behaviour(text="Hello.")) as model:
        ended = command("research", QUESTION, "--corpus", corpus, *model)
    assert ended.code == 1
    name, address = model[1], model[3]
    assert f"leadline models test {name} --base-url {address}" in ended.err


REFUSED = {
    "blank question": (["  "], "question"),
    "no question": ([], "question"),
    "nothing to search": (["q?", "--no-corpus"], "corpus"),
    "missing folder": (["q?", "--corpus", "missing"], "missing does not exist"),
    "empty folder": (["q?", "--corpus", "empty"], "holds no files"),
    "unknown option": (["q?", "--corpora", "x"], "did you mean '--corpus'?"),
    "abbreviated option": (["q?", "--corp", "x"], "'--corp' is not known here"),
    "option without value": (["q?", "--model"], "--model"),
    "unknown breadth": (["q?", "--breadth", "brod"], "broad"),
    "unknown format": (["q?", "--format", "essay"], "essay"),
    "unknown method": (["q?", "--method", "adaptiv"], "adaptive"),
    "unknown provider": (["q?", "--model", "nobody/x"], "nobody"),
    "not a model": (["q?", "--model", "x"], "provider/name"),
    "address without model": (["q?", "--base-url", "http://127.0.0.1:1"], "--model"),
    "address that is none": (["q?", "--model", "local/x", "--base-url", "ftp://x"], "http://"),
    "unknown profile": (["q?", "--profile", "reserch"], "research"),
    "missing patch": (["q?", "--patch", "none.yml"], "none.yml"),
    "no folder for the report": (["q?", "--output", "none/report.md"], "none"),
    "folder for a report": (["q?", "--output", "empty"], "folder"),
    "form that is not written": (["q?", "--output", "report.pdf"], ".pdf"),
    "bundle as report": (["q?", "--output", "run.leadline"], "--bundle"),
    "report and bundle in one file": (["q?", "--output", "a", "--bundle", "a"], "two files"),
    "bundle on a device": (["q?", "--bundle", "/dev/null"], "/dev/null"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_command_ends_with_2_and_starts_nothing(
    command: Command, home: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    words, told = REFUSED[case]
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    if "--no-corpus" in words:
        words = [word for word in words if word != "--no-corpus"]
    elif "--corpus" not in words:
        words = [*words, "--corpus", str(corpus)]
    ended = command("research", *words)
    assert (ended.code, ended.out) == (2, b"")
    assert told in ended.complaint
    assert len(ended.err.splitlines()) == 1
    assert sessions(home) == []


def test_a_key_in_the_environment_does_not_choose_the_model(
    command: Command, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "DEEPSEEK_API_KEY", "ANTHROPIC_API_KEY", "LEADLINE_API_KEY"):
        monkeypatch.setenv(name, "sk-secret")
    result = command("research", QUESTION, "--corpus", corpus, "--json").json
    assert result["metadata"]["model"] == "extractive/extractive"


def test_a_report_that_cannot_be_written_at_the_end_is_not_lost(
    command: Command, corpus: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    researcher = FakeResearcher()

    def writer(request: Received) -> Behaviour:
        folder.rmdir()
        return researcher.written()

    researcher.writer = writer
    with provider(researcher) as model:
        ended = command(
            "research", QUESTION, "--corpus", corpus, *model,
            "--output", folder / "report.md", "--bundle", folder / "run.leadline",
        )  # fmt: skip
    assert (ended.code, ended.out) == (1, b"")
    complaints = [line for line in ended.err.splitlines() if line.startswith("leadline: cannot write ")]
    assert len(complaints) == 2
    again = complaints[0].split("leadline export ")[1].split()[0]
    bundle = tmp_path / "run.leadline"
    assert command("export", again, bundle).code == 0
    assert command("verify", bundle).code == 0
    assert HOTEL in command("show", again, "--report").out.decode()


def test_a_bundle_proves_the_whole_chain_of_its_log_and_shows_no_path(
    command: Command, corpus: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "run.leadline"
    command("research", QUESTION, "--corpus", corpus, "--bundle", bundle)
    with zipfile.ZipFile(bundle) as archive:
        lines = archive.read("ledger.jsonl").splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(len(lines)))
    assert sum("omitted" in json.loads(line) for line in lines) == 1
    assert str(corpus).encode() not in b"".join(lines)
    assert command("verify", bundle).code == 0


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How much is the Python course?", "学习Python课程的费用是每人500元。"),
        ("Python课程的费用是多少？", "学习Python课程的费用是每人500元。"),
        ("When does the Kafka course start?", "Kafka课程于2024-06-10开始。"),
        ("How much does the VLX-500 weigh?", "型番VLX-500は重さ12.5kgです。"),
        ("一泊いくらですか？", "一泊15,000円で朝食付きです。"),
        ("How much is Redis?", "Redis요금은12,000원입니다."),
    ],
)
def test_words_and_figures_glued_to_letters_without_spaces_are_found_and_quoted(
    command: Command, tmp_path: Path, question: str, answer: str
) -> None:
    folder = tmp_path / "glued"
    folder.mkdir()
    texts = {
        "courses.md": "# 培训\n\n学习Python课程的费用是每人500元。\n\nKafka课程于2024-06-10开始。\n",
        "inn.md": "# 案内\n\n一泊15,000円で朝食付きです。\n\n型番VLX-500は重さ12.5kgです。\n",
        "price.md": "# 안내\n\nRedis요금은12,000원입니다.\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    ended = command("research", question, "--corpus", folder, "--json")
    assert ended.code == 0, ended.err
    result = ended.json
    assert answer in result["report"]
    assert [one["verdict"] for one in result["sentences"]] == ["supported"]
    assert [one["quote"] for one in result["citations"]] == [answer]
