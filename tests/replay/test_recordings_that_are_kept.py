"""Runs that earlier versions recorded, each in a home of its own, give the report that they gave then."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from leadline import Leadline
from leadline.core.session.store import SessionStore

pytestmark = pytest.mark.anyio

RECORDINGS = sorted(one for one in (Path(__file__).parent / "recordings").iterdir() if one.is_dir())


@pytest.mark.parametrize("kept", RECORDINGS, ids=lambda one: one.name)
async def test_a_kept_run_gives_the_same_report_from_the_same_answers(kept: Path, home: Path) -> None:
    """Prompts may change from version to version, so requests may differ; what was answered has to fit all the same."""
    shutil.copytree(kept, home)
    async with Leadline() as app:
        (run,) = [one.id for one in await app.ctx.get(SessionStore).list() if one.kind == "research"]
        replayed = await app.replay(run)
    assert replayed.result.status == "completed"
    assert replayed.same_report, replayed.report_diff
    assert {one.answered for one in replayed.asked} == {"recorded"}
    assert replayed.unasked == ()
    assert replayed.result.coverage == replayed.recorded.coverage
    assert {one.location for one in replayed.result.sources} == {
        "finance/expenses.md",
        "finance/expenses-2024.md",
    }
