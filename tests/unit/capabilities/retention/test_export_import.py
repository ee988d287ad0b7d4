"""A family goes into one file and comes out of it the same, in another home; whatever is done to the file."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from leadline.testing.conformance.session_store import Noted

from .conftest import Opener

pytestmark = pytest.mark.anyio


async def test_a_family_comes_out_of_its_file_as_it_went_in(opened: Opener, tmp_path: Path) -> None:
    file = tmp_path / "r.leadline-session"
    async with opened("here") as here:
        await here.family()
        report = await here.retention.export("r", file)
        logs = {one: await here.log(one) for one in ("r", "c1", "c2", "g")}
        assert [one.id for one in report.parts] == ["r", "c1", "c2", "g"]
        assert report.blobs == 5 and report.bytes == file.stat().st_size and not report.problems
        assert report.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    async with opened("there") as there:
        trial = await there.retention.import_(file, dry_run=True)
        assert trial.dry_run and await there.ids() == set()
        done = await there.retention.import_(file)
        assert set(done.added) == set(trial.added) == set(logs) and done.added[0] == "r"
        assert done.blobs == trial.blobs == 5 and done.present == () and done.root == "r"
        assert {one: await there.log(one) for one in logs} == logs
        assert there.blobs.get(hashlib.sha256(b"grand blob").hexdigest()) == b"grand blob"
        session = await there.store.open("r")
        session.append(Noted(text="and on"))
        await session.close()
        assert sorted(path.name for path in (there.root / "imports").iterdir()) == [".lock"]
