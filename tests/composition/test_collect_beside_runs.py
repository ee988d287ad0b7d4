"""While runs are going on in other processes, whatever they store or are about to name is safe from collection."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

from tests.composition.cli import PROGRAM, Command

DAY = 86_400


def age(home: Path, days: int) -> None:
    """Make every stored text look as if it had been used last so long ago."""
    when = time.time() - days * DAY
    for path in (home / "blobs").rglob("*"):
        if path.is_file():
            os.utime(path, (when, when))


def started(home: Path, corpus: Path, question: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [PROGRAM, "research", question, "--corpus", corpus],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "LEADLINE_HOME": str(home)},
    )


def test_texts_of_runs_that_are_going_on_are_never_collected(
    command: Command, home: Path, tmp_path: Path
) -> None:
    corpora: list[Path] = []
    for number in range(3):
        folder = tmp_path / f"corpus{number}"
        folder.mkdir()
        for page in range(8):
            text = f"Hotel {page} of town {number} costs EUR {100 + 10 * page + number} a night.\n" * 5
            (folder / f"{page}.md").write_text(f"# Prices of {page}\n\n{text}")
        corpora.append(folder)
        assert command("research", "What does hotel 3 cost?", "--corpus", folder).code == 0
    runs = [one["id"] for one in command("runs", "list", "--json").json]
    assert command("sessions", "delete", *runs, "--yes").code == 0
    for path in (home / "corpora").glob("*.sqlite"):
        path.unlink()
    age(home, 2)
    assert command("sessions", "gc", "--dry-run", "--json").json["blobs"], "all of them could go"

    working = [started(home, one, "What does hotel 5 cost?") for one in corpora]
    collected = 0
    while any(one.poll() is None for one in working):
        gone = command("sessions", "gc", "--yes", "--json")
        assert gone.code == 0, gone.err
        collected += 1
    reports = [one.communicate()[0] for one in working]
    assert collected > 1 and all(one.returncode == 0 for one in working)
    age(home, 2)
    command("sessions", "gc", "--stale-index", "0s", "--yes")
    for one in command("runs", "list", "--json").json:
        assert command("show", one["id"], "--report").out in reports
        assert command("export", one["id"], tmp_path / f"{one['id']}.leadline").code == 0
        assert command("verify", tmp_path / f"{one['id']}.leadline").code == 0


def test_an_index_that_is_used_is_not_stale(command: Command, home: Path, corpus: Path) -> None:
    command("research", "What may a hotel night cost?", "--corpus", corpus)
    (index,) = (home / "corpora").glob("*.sqlite")
    old = time.time() - 100 * DAY
    os.utime(index, (old, old))
    for beside in (home / "corpora").glob("*.sqlite-*"):
        os.utime(beside, (old, old))
    assert command("sessions", "gc", "--dry-run", "--json").json["indexes"] == [index.name]
    command("research", "What may a hotel night cost?", "--corpus", corpus)
    assert command("sessions", "gc", "--dry-run", "--json").json["indexes"] == []
    with closing(sqlite3.connect(index)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
