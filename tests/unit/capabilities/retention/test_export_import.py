"""A family goes into one file and comes out of it the same, in another home."""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from leadline.capabilities.retention.seam import ImportRefused
from leadline.core.session.codec import Header
from leadline.core.session.errors import SessionNotFound, SessionUnreadable
from leadline.core.session.events import TurnStart
from leadline.testing.conformance.session_store import Noted, asked

from .conftest import Opener, Place

pytestmark = pytest.mark.anyio


async def test_a_family_comes_out_of_its_file_as_it_went_in(opened: Opener, tmp_path: Path) -> None:
    file = tmp_path / "r.leadline-session"
    async with opened("here") as here:
        await here.family()
        await here.session("other")
        report = await here.retention.export("r", file)
        logs = {one: await here.log(one) for one in ("r", "c1", "c2", "g")}
        assert [one.id for one in report.parts] == ["r", "c1", "c2", "g"]
        assert report.blobs == 5 and report.bytes == file.stat().st_size and not report.problems
        assert report.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    async with opened("there") as there:
        trial = await there.retention.import_(file, dry_run=True)
        assert trial.dry_run and await there.ids() == set()
        done = await there.retention.import_(file)
        assert set(done.added) == set(trial.added) == set(logs) and done.added[0] == "r"
        assert done.blobs == trial.blobs == 5 and done.present == () and done.root == "r"
        assert {one: await there.log(one) for one in logs} == logs
        assert there.blobs.get(hashlib.sha256(b"grand blob").hexdigest()) == b"grand blob"
        again = await there.retention.import_(file)
        assert again.added == () and set(again.present) == set(logs) and again.blobs == 0
        session = await there.store.open("r")
        session.append(Noted(text="and on"))
        await session.close()
        assert sorted(path.name for path in (there.root / "imports").iterdir()) == [".lock"]
        with pytest.raises(ImportRefused, match="session r is here already, with another log"):
            await there.retention.import_(file)


async def test_the_same_family_gives_the_same_file_archived_or_not_wherever_it_lies(
    opened: Opener, tmp_path: Path
) -> None:
    async with opened("here") as here:
        await here.family()
        await here.retention.export("r", tmp_path / "one")
        await here.retention.archive("r")
        await here.retention.export("r", tmp_path / "two")
    async with opened("there") as there:
        await there.retention.import_(tmp_path / "two")
        await there.retention.export("r", tmp_path / "three")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (tmp_path / "one").read_bytes() == (tmp_path / "three").read_bytes()
    with zipfile.ZipFile(tmp_path / "one") as archive:
        assert archive.testzip() is None and len(archive.namelist()) == 10


async def test_what_is_missing_of_a_family_is_completed(opened: Opener, tmp_path: Path) -> None:
    async with opened("here") as here:
        await here.family()
        await here.retention.export("r", tmp_path / "file")
        await here.store.delete("c1")
        done = await here.retention.import_(tmp_path / "file")
        assert done.added == ("c1",) and set(done.present) == {"r", "c2", "g"}


async def test_damage_goes_with_its_log(opened: Opener, tmp_path: Path) -> None:
    async with opened("here", {"store": "jsonl"}) as here:
        await here.session("r", [Noted(text="x")])
        path = here.root / "sessions" / "r.jsonl"
        with path.open("ab") as file:
            file.write(b'{"torn": ')
        torn = path.read_bytes()
        report = await here.retention.export("r", tmp_path / "torn")
        assert "unfinished" in report.problems[0]
        session = await here.store.open("r")
        await session.close()
        moved = await here.store.beside("r")
        assert list(moved.values()) == [b'{"torn": ']
        report = await here.retention.export("r", tmp_path / "moved")
        assert not report.problems
        mended = await here.log("r")
    for name, log, beside in (("torn", torn, {}), ("moved", mended, moved)):
        async with opened(name + "-home") as there:
            done = await there.retention.import_(tmp_path / name)
            assert await there.log("r") == log and await there.store.beside("r") == beside
            assert bool(done.problems) == (name == "torn")
            assert not (await there.store.read("r")).obstacle


async def test_a_blob_that_is_damaged_is_told_and_left_out(opened: Opener, tmp_path: Path) -> None:
    async with opened("here") as here:
        await here.session("r", blobs=[b"whole", b"broken"])
        name = hashlib.sha256(b"broken").hexdigest()
        (here.root / "blobs" / name[:2] / name).write_bytes(b"\x00other")
        report = await here.retention.export("r", tmp_path / "file")
        assert report.damaged_blobs == (name,) and report.blobs == 1
    async with opened("there") as there:
        assert (await there.retention.import_(tmp_path / "file")).blobs == 1


async def test_a_session_that_is_being_written_is_taken_as_it_is(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("here") as here:
        await here.family()
        session = await here.store.open("r")
        session.append_all([TurnStart(turn=2)])
        raw = type(here.store).raw

        async def torn(store: object, session_id: str) -> AsyncGenerator[bytes]:
            async for chunk in raw(here.store, session_id):
                yield chunk[:-7] if session_id == "r" else chunk

        with monkeypatch.context() as patch:
            patch.setattr(type(here.store), "raw", torn)
            report = await here.retention.export("r", tmp_path / "file")
        assert not report.problems and report.parts[0].status == "running"
        await session.close()
    async with opened("there") as there:
        done = await there.retention.import_(tmp_path / "file")
        assert not done.problems and len(await there.store.read("r")) == len(session) - 1


async def test_who_stopped_in_mid_work_is_told(opened: Opener, tmp_path: Path) -> None:
    async with opened("here") as here:
        await here.family()
        await here.session("s", asked(2), parent="r", depth=1)
        await here.retention.export("r", tmp_path / "file")
    async with opened("there") as there:
        assert (await there.retention.import_(tmp_path / "file")).interrupted == ("s",)


async def test_a_fork_goes_with_the_children_that_it_shares(opened: Opener, tmp_path: Path) -> None:
    async with opened("here") as here:
        await here.session("r", [Noted(text="c1")])
        await here.session("c1", parent="r", depth=1, blobs=[b"of the child"])
        await here.session("g", parent="c1", depth=2)
        await here.session("c2", parent="r", depth=1)
        await (await here.fork("r", "f")).close()
        report = await here.retention.export("f", tmp_path / "file")
        assert [one.id for one in report.parts] == ["f", "c1", "g"] and report.blobs == 1
        assert set((await here.retention.import_(tmp_path / "file")).present) == {"f", "c1", "g"}
        await here.retention.delete("f")
        assert (await here.retention.import_(tmp_path / "file")).added == ("f",)
    async with opened("there") as there:
        done = await there.retention.import_(tmp_path / "file")
        assert done.added == ("f", "c1", "g")
        await there.retention.delete("f")
        assert await there.ids() == set()
    async with opened("stranger") as stranger:
        await stranger.session("r")
        with pytest.raises(ImportRefused, match="which is here and does not know it"):
            await stranger.retention.import_(tmp_path / "file")
        assert await stranger.ids() == {"r"}


async def test_a_child_goes_alone_and_comes_back_to_its_parent(opened: Opener, tmp_path: Path) -> None:
    async with opened("here") as here:
        await here.family()
        await here.retention.export("c1", tmp_path / "file")
        await here.retention.delete("c1")
        assert set((await here.retention.import_(tmp_path / "file")).added) == {"c1", "g"}
    async with opened("there") as there:
        assert set((await there.retention.import_(tmp_path / "file")).added) == {"c1", "g"}


async def test_what_is_not_there_or_has_no_header_is_not_exported(opened: Opener, tmp_path: Path) -> None:
    async with opened("here", {"store": "jsonl"}) as here:
        with pytest.raises(SessionNotFound):
            await here.retention.export("none", tmp_path / "file")
        await here.session("r")
        (here.root / "sessions" / "r.jsonl").write_bytes(os.urandom(500))
        with pytest.raises(SessionUnreadable, match="its header cannot be used"):
            await here.retention.export("r", tmp_path / "file")
        assert not (tmp_path / "file").exists()


async def test_a_circle_of_parents_ends(place: Place, tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("b", "a"), ("s", "s")):
        session = await place.store.create(Header(id=one, kind="agent", created=1.0, parent=other, depth=1))
        await session.close()
    assert [one.id for one in (await place.retention.export("a", tmp_path / "file")).parts] == ["a", "b"]
    assert [one.id for one in (await place.retention.delete("s")).parts] == ["s"]
    assert {one.id for one in (await place.retention.delete("a")).parts} == {"a", "b"}
