"""Sessions in a database after kills, power cuts and on disks that refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.capabilities.persistence import database_works

from leadline.testing.faults import crashes, find_work, record, spread, survive
from leadline.testing.faults.refusals import endure, refusals
from leadline.testing.faults.sqlite_tap import reachable

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not reachable(), reason="this Python has SQLite built in"),
]

WORKS = ("on_a_disk", "on_a_mount")


@pytest.mark.parametrize("work", WORKS)
async def test_sessions_in_a_database_survive_kills_and_power_cuts(tmp_path: Path, work: str) -> None:
    name = f"{database_works.__name__}:{work}"
    journal = record(name, tmp_path / "whole")
    found = await survive(find_work(name), journal, tmp_path, spread(crashes(journal, seed=1), 24))
    assert found.tried == 24
    assert found.ok, found


@pytest.mark.parametrize("work", WORKS)
async def test_a_database_on_a_disk_that_refuses_goes_on_when_it_is_well_again(
    tmp_path: Path, work: str
) -> None:
    found, outcome = await refusals(find_work(f"{database_works.__name__}:{work}"), tmp_path / "whole")
    endured = await endure(
        find_work(f"{database_works.__name__}:{work}"), tmp_path, spread(found, 10), outcome
    )
    assert endured.tried == 10
    assert endured.ok, endured
