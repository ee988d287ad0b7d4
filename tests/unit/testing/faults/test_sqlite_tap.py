"""What SQLite writes from C is heard too, in both kinds of journal."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from leadline.testing.faults import Crash, Journal, crashes, images, spread
from leadline.testing.faults.sqlite_tap import reachable
from leadline.testing.faults.tap import Tap

pytestmark = pytest.mark.skipif(not reachable(), reason="this Python has SQLite built in")


def written(folder: Path, journal: str, synchronous: str = "FULL") -> Journal:
    with Tap(folder) as tap:
        connection = sqlite3.connect(folder / "db", isolation_level=None)
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("CREATE TABLE t (a)")
        tap.note("made")
        for n in range(30):
            connection.execute("INSERT INTO t VALUES (?)", (f"{n} " + "x" * 900,))
            tap.note("inserted", n)
            if n == 15 and journal == "WAL":
                connection.execute("PRAGMA wal_checkpoint")
        connection.close()
    return tap.journal


def rows(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return connection.execute("SELECT count(*) FROM t").fetchone()[0]
    finally:
        connection.close()


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_a_database_is_whole_after_each_crash_and_has_what_was_committed(
    tmp_path: Path, journal: str
) -> None:
    (tmp_path / "whole").mkdir()
    heard = written(tmp_path / "whole", journal, "FULL" if journal == "WAL" else "EXTRA")
    (end,) = images(heard, [Crash(len(heard.ops))])
    assert end.contents.files == {"db": (tmp_path / "whole" / "db").read_bytes()}
    for number, image in enumerate(images(heard, spread(crashes(heard), 80))):
        if image.noted("made"):
            image.write(tmp_path / f"{number}")
            assert rows(tmp_path / f"{number}" / "db") >= len(image.noted("inserted")), image.label


def test_what_is_committed_without_a_sync_is_lost_in_a_power_cut(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    heard = written(tmp_path / "whole", "WAL", "OFF")
    (at,) = [at for at, op in enumerate(heard.ops) if getattr(op, "value", None) == 14]
    (kill, cut) = images(heard, [Crash(at + 1), Crash(at + 1, loss="dropped")])
    kill.write(tmp_path / "kill")
    assert rows(tmp_path / "kill" / "db") == 15
    assert len(cut.contents.files.get("db", b"")) < 20_000


def test_a_connection_that_outlives_the_tap_goes_on_unheard(tmp_path: Path) -> None:
    with Tap(tmp_path) as tap:
        connection = sqlite3.connect(tmp_path / "db", isolation_level=None)
        connection.execute("CREATE TABLE t (a)")
    heard = len(tap.journal.ops)
    connection.execute("INSERT INTO t VALUES (1)")
    connection.close()
    assert len(tap.journal.ops) == heard
    assert rows(tmp_path / "db") == 1
