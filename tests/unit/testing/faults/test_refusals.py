"""A disk that refuses is told of, leaves nothing half done, and can be gone on with when it is well again."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest
from tests.unit.testing.faults.works import careless, session_files

from leadline.testing.faults import spread
from leadline.testing.faults.refusals import Refusal, RefusingDisk, endure, refusals
from leadline.testing.faults.tap import Tap

pytestmark = pytest.mark.anyio


async def test_every_attempt_is_refused_with_every_error_that_it_can_meet(tmp_path: Path) -> None:
    found, outcome = await refusals(careless, tmp_path / "whole")
    assert outcome == "".join(f"line {n}\n" for n in range(5))
    first = [one for one in found if one.at == 0]
    assert [(one.kind, one.code, one.lasting) for one in first] == [
        ("make", errno.ENOSPC, False),
        ("make", errno.EACCES, False),
        ("make", errno.ENOSPC, True),
    ]
    assert sum(one.short for one in found) == 5
    assert {one.kind for one in found} == {"make", "open", "write"}


async def test_a_raw_error_of_the_system_is_not_a_refusal_that_was_told(tmp_path: Path) -> None:
    found, outcome = await refusals(careless, tmp_path / "whole")
    endured = await endure(careless, tmp_path, found[:1], outcome)
    assert not endured.ok
    assert "it raised OSError: [Errno 28] No space left on device" in str(endured)


async def test_session_files_endure_a_disk_that_refuses(tmp_path: Path) -> None:
    found, outcome = await refusals(session_files, tmp_path / "whole")
    endured = await endure(session_files, tmp_path, spread(found, 60), outcome)
    assert endured.tried == 60
    assert endured.ok, endured


@pytest.mark.parametrize("attempt", ["whole", "short"])
async def test_a_write_can_find_room_for_half_of_it(tmp_path: Path, attempt: str) -> None:
    disk = RefusingDisk(Refusal(1, "write", errno.ENOSPC, short=attempt == "short"))
    with (
        Tap(tmp_path, disk),
        pytest.raises(OSError, match="No space left"),
        (tmp_path / "x").open("wb") as file,
    ):
        file.write(b"0123456789")
    assert disk.met == 1
    assert (tmp_path / "x").read_bytes() == (b"01234" if attempt == "short" else b"")


@pytest.mark.parametrize(
    ("code", "told"),
    [(errno.ENOSPC, "database or disk is full"), (errno.EIO, "disk I/O error")],
)
def test_a_database_meets_the_same_errors(tmp_path: Path, code: int, told: str) -> None:
    connection = sqlite3.connect(":memory:")
    connection.close()
    with Tap(tmp_path) as tap:
        connection = sqlite3.connect(tmp_path / "db", isolation_level=None)
        connection.execute("CREATE TABLE t (a)")
        tap.obstacle = RefusingDisk(Refusal(0, "write", code, lasting=True))
        with pytest.raises(sqlite3.OperationalError, match=told):
            connection.execute("INSERT INTO t VALUES (1)")
        connection.close()
    assert [path.name for path in tmp_path.iterdir() if path.name == "db"]
