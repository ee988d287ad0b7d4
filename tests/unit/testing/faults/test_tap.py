"""A tap hears of everything that is done to the files of its folder, and of nothing else."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from leadline.testing.faults.images import Crash, crashes, images, spread
from leadline.testing.faults.journal import Folder, FolderSynced, Journal, Made, Moved, Synced, Wrote
from leadline.testing.faults.tap import Tap


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def busy(folder: Path) -> None:
    """All the ways in which files are written."""
    (folder / "a").mkdir()
    (folder / "a" / "text").write_text("über\n", encoding="utf-8")
    with (folder / "a" / "text").open("a", encoding="utf-8") as file:
        file.write("more\n")
    with gzip.open(folder / "packed.gz", "wb") as packed:
        packed.write(b"x" * 1000)
    fd = os.open(folder / "raw", os.O_RDWR | os.O_CREAT, 0o600)
    os.write(fd, b"0123456789")
    os.pwrite(fd, b"ab", 2)
    os.ftruncate(fd, 8)
    os.lseek(fd, 0, os.SEEK_SET)
    os.writev(fd, [b"X", b"Y"])
    os.fsync(fd)
    os.close(fd)
    os.truncate(folder / "raw", 7)
    (folder / "b").hardlink_to(folder / "raw")
    (folder / "raw").unlink()
    (folder / "new").write_bytes(b"new")
    (folder / "new").replace(folder / "a" / "text")
    (folder / "a").rename(folder / "c")
    (folder / "c" / "last").write_bytes(b"last")
    (folder / "gone").mkdir()
    (folder / "gone").rmdir()


def listened_to(folder: Path) -> Journal:
    folder.mkdir()
    with Tap(folder) as tap:
        busy(folder)
        (folder.parent / "elsewhere").write_bytes(b"not ours")
    return tap.journal


def test_what_was_heard_makes_the_same_files_again(tmp_path: Path) -> None:
    journal = listened_to(tmp_path / "whole")
    (image,) = images(journal, [Crash(len(journal.ops))])
    image.write(tmp_path / "again")
    assert files(tmp_path / "again") == files(tmp_path / "whole")
    assert "elsewhere" not in str(journal.ops)
    before = os.write, os.open, open
    with Tap(tmp_path / "whole"):
        assert (os.write, os.open, open) != before
    assert (os.write, os.open, open) == before


def test_what_is_there_before_counts_as_synced(tmp_path: Path) -> None:
    folder = tmp_path / "whole"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "old").write_bytes(b"old")
    with Tap(folder) as tap, (folder / "deep" / "old").open("ab") as file:
        file.write(b" and new")
    (image,) = images(tap.journal, [Crash(len(tap.journal.ops), loss="dropped")])
    assert image.contents.files == {"deep/old": b"old"}


@pytest.mark.parametrize("synced", [False, True])
def test_a_power_cut_takes_what_was_not_synced(tmp_path: Path, synced: bool) -> None:
    with Tap(tmp_path) as tap:
        fd = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"one ")
        os.fdatasync(fd)
        folder = os.open(tmp_path, os.O_RDONLY)
        if synced:
            os.fsync(folder)
        os.close(folder)
        os.write(fd, b"two")
        os.close(fd)
    end = len(tap.journal.ops)
    kill, cut = images(tap.journal, [Crash(end), Crash(end, loss="dropped")])
    assert kill.contents.files == {"log": b"one two"}
    assert cut.contents.files == ({"log": b"one "} if synced else {})


def test_unsynced_bytes_may_be_torn_zero_or_out_of_order_but_synced_ones_stay(tmp_path: Path) -> None:
    with Tap(tmp_path) as tap:
        fd = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"s" * 600)
        os.fsync(fd)
        folder = os.open(tmp_path, os.O_RDONLY)
        os.fsync(folder)
        for letter in b"abc":
            os.write(fd, bytes([letter]) * 1000)
    end = len(tap.journal.ops)
    wanted = [Crash(end, loss=loss, seed=n) for loss in ("torn", "scattered") for n in range(50)]
    found = [image.contents.files["log"] for image in images(tap.journal, wanted)]
    assert all(one.startswith(b"s" * 600) for one in found)
    assert len(set(found)) > 60
    torn, scattered = found[:50], found[50:]
    assert any(one.rstrip(b"\0") != one for one in torn), "no length without its bytes"
    assert any(0 < len(one.rstrip(b"\0")) % 1000 != 600 for one in torn), "no write cut in the middle"
    assert any(b"\0" in one.rstrip(b"\0") for one in scattered), "no hole"


def test_a_write_that_a_sync_did_not_wait_for_is_not_in_it() -> None:
    journal = Journal([Made("x", 0), Wrote(0, 0, b"in"), Wrote(0, 2, b" late"), Synced(0, 2)])
    (image,) = images(journal, [Crash(4, loss="dropped")])
    assert image.contents.files == {}
    (image,) = images(Journal([*journal.ops, FolderSynced("", 4)]), [Crash(5, loss="dropped")])
    assert image.contents.files == {"x": b"in"}


def test_there_is_a_crash_behind_every_operation_and_in_every_write(tmp_path: Path) -> None:
    journal = listened_to(tmp_path / "whole")
    kills = crashes(journal, losses=())
    assert {crash.at for crash in kills} == set(range(len(journal.ops) + 1))
    writes = [at for at, op in enumerate(journal.ops) if isinstance(op, Wrote) and len(op.data) > 1]
    assert [crash.at for crash in kills if crash.part] == writes
    assert all(0 < crash.part < len(journal.ops[crash.at].data) for crash in kills if crash.part)  # type: ignore[union-attr]
    cuts = crashes(journal, kills=False, losses=["torn"])
    assert [crash.at for crash in cuts] == [*range(len(journal.ops) + 1)]
    few = spread(kills, 5)
    assert (len(few), few[0], few[-1]) == (5, kills[0], kills[-1])
    assert spread(kills, 10_000) == kills
    labels = [image.label for image in images(journal, kills)]
    assert len(set(labels)) == len(labels)


def test_a_journal_can_be_kept_in_a_file(tmp_path: Path) -> None:
    journal = Journal([Folder("a"), Moved("a", "b"), Wrote(0, 1, b"\xff")], {"n": 1})
    journal.save(tmp_path / "journal")
    assert Journal.load(tmp_path / "journal") == journal
