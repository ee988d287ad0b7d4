"""A work that loses what it promised is told of, with the crash; a store that keeps its promises survives them all."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.testing.faults.works import careless, session_files

from leadline.testing.faults import RecordingFailed, crashes, find_work, record, spread, survive
from leadline.testing.faults.work import NoSuchWork

pytestmark = pytest.mark.anyio

WORKS = "tests.unit.testing.faults.works"


async def test_a_work_that_syncs_nothing_survives_no_power_cut_and_is_torn_by_kills(tmp_path: Path) -> None:
    journal = record(f"{WORKS}:careless", tmp_path / "whole")
    assert journal.outcome == "".join(f"line {n}\n" for n in range(5))
    between = [crash for crash in crashes(journal, losses=()) if not crash.part]
    assert (await survive(careless, journal, tmp_path / "between", between)).ok
    inside = [crash for crash in crashes(journal, losses=()) if crash.part]
    torn = await survive(careless, journal, tmp_path / "inside", inside)
    assert torn.tried == 5
    assert len(torn.failures) == 5
    assert "kill after" in str(torn)
    assert "bytes of the write of 7 bytes at 0 of lines" in str(torn)
    cuts = await survive(careless, journal, tmp_path / "cuts", crashes(journal, kills=False))
    assert not cuts.ok
    assert "AssertionError: a line is gone" in str(cuts)
    assert [path.name for path in (tmp_path / "inside").iterdir()], "what did not survive is left to look at"


async def test_nothing_tried_is_nothing_proved(tmp_path: Path) -> None:
    journal = record(f"{WORKS}:careless", tmp_path / "whole")
    assert not (await survive(careless, journal, tmp_path, [])).ok


async def test_session_files_survive_kills_and_power_cuts(tmp_path: Path) -> None:
    journal = record(f"{WORKS}:session_files", tmp_path / "whole")
    found = await survive(session_files, journal, tmp_path, spread(crashes(journal, seed=1), 60))
    assert found.tried == 60
    assert found.ok, found


def test_a_work_that_fails_by_itself_cannot_be_recorded(tmp_path: Path) -> None:
    with pytest.raises(RecordingFailed, match="it is broken"):
        record(f"{WORKS}:broken", tmp_path / "whole")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("works", "names no attribute"),
        ("leadline.no_such:work", "cannot be loaded"),
        (f"{WORKS}:nothing", "cannot be loaded"),
        (f"{WORKS}:no_work", "a work has the methods start and resume"),
        ("no/such/file.py:work", "cannot be loaded"),
    ],
)
def test_the_name_of_a_work_that_leads_nowhere_is_told(name: str, told: str) -> None:
    with pytest.raises(NoSuchWork, match=told):
        find_work(name)


def test_a_work_is_found_by_module_and_by_file() -> None:
    file = Path(__file__).with_name("works.py")
    assert type(find_work(f"{file}:careless")).__name__ == "Careless"
    assert find_work(f"{WORKS}:careless") is careless
