"""Limits of models through the real program: set, shown, taken back, and kept by everything that calls a model."""

from __future__ import annotations

from pathlib import Path

from leadline.capabilities.persistence.providers.shared_lines import SqliteSharedLines
from leadline.core.clock import Clock
from leadline.core.home import Home
from leadline.core.llm.limits import Bucket, RateLimits
from leadline.core.spend.shared import Place, SharedLimits
from tests.composition.cli import Command

MODEL = "ollama/llama3"


def test_without_limits_the_list_is_empty_and_says_how_to_set_one(command: Command, home: Path) -> None:
    ended = command("models", "limits")
    assert (ended.code, ended.out) == (0, b"")
    assert "leadline models limits PROVIDER/NAME --max N" in ended.err


def test_a_limit_is_written_down_shown_changed_and_taken_back(command: Command, home: Path) -> None:
    assert command("models", "limits", MODEL, "--max", "1", "--tokens-per-minute", "50000").code == 0
    assert command("models", "limits", "ollama/*", "--max", "2").code == 0
    ended = command("models", "limits", "--json")
    assert [(row["model"], row["max"], row["tokens_per_minute"]) for row in ended.json] == [
        ("ollama/*", 2, None),
        (MODEL, 1, 50000),
    ]
    assert "0 of 50,000" in command("models", "limits").out.decode()
    (row,) = command("models", "limits", MODEL, "--requests-per-minute", "9", "--json").json
    assert (row["max"], row["requests_per_minute"]) == (None, 9), "what is set anew stands for all of it"
    (row,) = command("models", "limits", MODEL, "--unset", "--json").json
    assert row["max"] == 2, "that of all models of the provider holds again"
    assert command("models", "limits", "ollama/*", "--unset").code == 0
    assert command("models", "limits", "--json").json == []


def test_what_is_no_limit_is_refused_and_nothing_is_written(command: Command, home: Path) -> None:
    for arguments in (
        (MODEL, "--max", "0"),
        (MODEL, "--max", ""),
        (MODEL, "--max", "1.5"),
        (MODEL, "--tokens-per-minute", "-4"),
        ("llama3", "--max", "1"),
        ("--max", "1"),
        (MODEL, "--unset"),
        (MODEL, "--unset", "--max", "1"),
    ):
        ended = command("models", "limits", *arguments)
        assert ended.code != 0, arguments
        assert ended.complaint
    assert not (home / "models.yml").exists()


def test_a_limit_in_a_configuration_that_is_blank_is_told_and_not_taken_for_none(
    command: Command, home: Path, tmp_path: Path
) -> None:
    patch = tmp_path / "patch.yml"
    for value in ("", "null", "''", "0", "true", "!env {name: NOBODY_SET_THIS, default: ''}"):
        patch.write_text(f"- id: limiter\n  merge: {{limits: [{{model: {MODEL}, max: {value}}}]}}\n")
        ended = command("models", "limits", "--patch", patch)
        assert ended.code != 0, value
        assert "max" in ended.complaint


def test_what_other_processes_do_and_learned_is_shown(command: Command, home: Path) -> None:
    lines = SqliteSharedLines(Home(home), Clock(), "another")
    try:
        assert isinstance(lines.take(MODEL, SharedLimits(max=4), 1200), Place)
        learned = RateLimits(Bucket(60, 12, 30.0), Bucket(None, None, None))
        lines.tell(MODEL, learned=learned, ceiling=3, paused_s=120)
        (row,) = command("models", "limits", "--json").json
        assert (row["model"], row["max"], row["active"], row["tokens"], row["ceiling"]) == (
            MODEL,
            None,
            1,
            1200,
            3,
        )
        assert row["learned"]["requests"]["remaining"] == 12
        assert 0 < row["paused_s"] <= 120
        shown = command("models", "limits").out.decode()
        for said in ("paused for", "3 at once after refusals", "12 left of 60 calls"):
            assert said in shown
    finally:
        lines.close()
