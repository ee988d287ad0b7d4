"""A budget that is small for the plan pays for fewer units, not for none of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.researcher import ScriptedResearcher, write_corpus
from tests.composition.cli import Command
from tests.composition.test_research_budget import PRICED, THREE, asked, partial, served


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write_corpus(tmp_path / "lake", THREE)
    return tmp_path / "lake"


@pytest.fixture
def priced(tmp_path: Path) -> Path:
    path = tmp_path / "priced.yml"
    path.write_text(PRICED)
    return path


@pytest.mark.parametrize(
    ("option", "named"),
    [
        (("--max-tokens", "12000"), "tokens"),
        (("--max-cost", "0.012"), "cost"),
        (("--max-calls", "7"), "calls"),
    ],
)
def test_what_pays_for_one_unit_is_not_divided_among_three_that_find_nothing(
    command: Command, lake: Path, priced: Path, option: tuple[str, str], named: str
) -> None:
    with served(ScriptedResearcher(THREE)) as server:
        done = command(*asked(lake, server, priced), *option, "--json")
        partial(done, named)
        result = done.json
        assert result["metadata"]["written_by"] == "model"
        assert len([one for one in result["sentences"] if "Alder" in one["text"]]) == 2
        assert "Units that were not begun because of that: 2 of 3." in result["report"]
        left_out = [one for one in result["coverage"]["unresolved"] if "does not pay for another unit" in one]
        assert len(left_out) == 2
        assert command("replay", result["id"], "--patch", priced).code == 0
        on = command("resume", result["id"], option[0], "100000", "--patch", priced, "--json")
    assert on.json["status"] == "completed", on.err
    assert len(on.json["citations"]) == 6
    assert "not begun" not in on.json["report"]


def test_what_a_budget_is_told_to_be_is_readable(command: Command, lake: Path, priced: Path) -> None:
    with served(ScriptedResearcher(THREE)) as server:
        done = command(*asked(lake, server, priced), "--max-calls", "4", "--json")
        tiny = command(*asked(lake, server, priced), "--max-cost", "1e-20")
    assert "1 calls" not in done.json["error"]
    assert "the budget does not pay for another unit" in done.json["error"]
    assert (tiny.code, "--max-cost" in tiny.complaint) == (2, True)


def test_seconds_are_not_rounded_to_what_was_not_reached(command: Command, lake: Path, priced: Path) -> None:
    with served(lambda request: Behaviour("stall")) as server:
        done = command(*asked(lake, server, priced), "--max-time", "1s", "--json")
    assert "of which 0.2 s are kept" in done.json["error"]
    assert " 0 s" not in done.json["error"]


def test_a_run_that_its_budget_ended_after_it_was_taken_up_is_not_said_to_differ(
    command: Command, lake: Path, priced: Path
) -> None:
    with served(ScriptedResearcher(THREE)) as server:
        run = command(*asked(lake, server, priced), "--max-calls", "7", "--json").json["id"]
        command("resume", run, "--max-calls", "12", "--patch", priced)
    replayed = command("replay", run, "--patch", priced)
    assert replayed.code == 2
    assert "its budget ended it after it was taken up" in replayed.complaint
