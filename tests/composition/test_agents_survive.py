"""An agent with side effects goes on after any crash: nothing is done twice, and nothing that was done is asked for again."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.testing.faults import crashes, record, spread, survive
from tests.composition.works import errands

pytestmark = pytest.mark.anyio


@pytest.mark.case("S25")
@pytest.mark.parametrize("seed", [0, 1])
async def test_no_side_effect_is_repeated_after_any_crash(tmp_path: Path, seed: int) -> None:
    journal = record("tests.composition.works:errands", tmp_path / "whole")
    found = await survive(errands, journal, tmp_path, spread(crashes(journal, seed=seed), 80))
    assert found.tried == 80
    assert found.ok, found
