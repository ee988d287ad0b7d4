"""What nothing names goes; what anything may name, or anybody may be about to name, stays."""

from __future__ import annotations

import gzip
import hashlib
import os
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import pytest

from leadline.capabilities.retention.seam import CollectRefused
from leadline.core.session.blobs import sha256_hex
from leadline.core.session.codec import Header
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.testing.conformance.session_store import Noted

from .conftest import DAY, Opener, Place

pytestmark = pytest.mark.anyio


async def test_blobs_that_no_log_names_go_and_all_others_stay(place: Place) -> None:
    await place.family()
    await place.store.archive("c2")
    lost = place.blobs.put(b"nobody names me")
    place.age_blobs(2 * DAY)
    trial = await place.retention.collect(dry_run=True)
    assert trial.blobs == (lost,) and trial.needed == 5 and trial.recent == 0 and trial.bytes > 0
    assert place.blobs.get(lost)
    report = await place.retention.collect()
    assert (report.blobs, report.bytes, report.needed) == (trial.blobs, trial.bytes, trial.needed)
    assert not place.blobs.has(lost)
    for data in (b"root blob", b"first blob", b"second blob", b"shared blob", b"grand blob"):
        assert place.blobs.get(sha256_hex(data)) == data
    assert (await place.retention.collect()).blobs == ()


async def test_a_deleted_family_gives_its_blobs_back_unless_others_share_them(place: Place) -> None:
    await place.family()
    await place.session("other", blobs=[b"shared blob"])
    await place.retention.delete("r")
    place.age_blobs(2 * DAY)
    gone = (await place.retention.collect()).blobs
    assert set(gone) == {
        sha256_hex(it) for it in (b"root blob", b"first blob", b"second blob", b"grand blob")
    }
    assert place.blobs.get(sha256_hex(b"shared blob"))


async def test_what_was_used_a_short_while_ago_stays(place: Place) -> None:
    again, asked, old = (place.blobs.put(data) for data in (b"again", b"asked", b"old"))
    place.age_blobs(2 * DAY)
    place.blobs.put(b"again")
    assert place.blobs.has(asked)
    new = place.blobs.put(b"new")
    report = await place.retention.collect()
    assert report.blobs == (old,) and report.recent == 3
    assert all(place.blobs.has(one) for one in (again, asked, new))


async def test_while_a_session_is_written_nothing_goes_that_was_used_since_it_was_opened(
    place: Place, opened: Opener
) -> None:
    before = place.blobs.put(b"before")
    place.age_blobs(2 * DAY)
    session = await place.store.create(Header(id="s-1", kind="agent", created=place.clock.now()))
    since = place.blobs.put(b"since")
    async with opened("here") as other:
        report = await other.retention.collect(grace_s=0)
        assert report.blobs == (before,) and report.recent == 1
        session.append(Noted(text=since))
        await session.close()
        assert (await other.retention.collect(grace_s=0)).blobs == ()
    assert place.blobs.get(since) == b"since"


async def test_a_blob_that_is_stored_again_in_the_moment_of_removal_stays(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = place.blobs.put(b"again")
    place.age_blobs(2 * DAY)
    remove = type(place.blobs).remove

    def slow(blobs: object, sha256: str, *, unused_since: float) -> bool:
        place.blobs.put(b"again")  # as another process would, after everything was marked
        return remove(place.blobs, sha256, unused_since=unused_since)

    monkeypatch.setattr(type(place.blobs), "remove", slow)
    report = await place.retention.collect()
    assert report.blobs == () and report.recent == 1
    assert place.blobs.get(name) == b"again"


async def test_a_log_that_grows_while_others_are_read_is_read_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names an old blob that it neither stored nor asked for, as a copy of another log does."""
    name = place.blobs.put(b"old")
    await place.session("s-1")
    await place.session("s-2")
    place.age_blobs(2 * DAY)
    raw = type(place.store).raw
    done: list[str] = []

    async def slow(store: object, session_id: str) -> AsyncGenerator[bytes]:
        if session_id == "s-2" and not done:
            done.append(session_id)
            session = await place.store.open("s-1")
            session.append(Noted(text=name))
            await session.close()
        async for chunk in raw(place.store, session_id):
            yield chunk

    monkeypatch.setattr(type(place.store), "raw", slow)
    assert (await place.retention.collect()).blobs == ()
    assert done and place.blobs.get(name) == b"old"


async def test_an_index_of_a_corpus_keeps_its_blobs_and_goes_when_it_is_stale(place: Place) -> None:
    name = place.blobs.put(b"text of a document")
    place.age_blobs(2 * DAY)
    path = place.root / "corpora" / "a.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE document(location TEXT, snapshot BLOB)")
        connection.execute(
            "INSERT INTO document VALUES (?, ?)", ("x" * 9000, f'{{"text":"{name}"}}'.encode())
        )
    assert (await place.retention.collect()).blobs == ()
    old = place.clock.now() - 100 * DAY
    os.utime(path, (old, old))
    place.age_blobs(2 * DAY)
    trial = await place.retention.collect(dry_run=True)
    assert trial.indexes == ("a.sqlite",) and trial.blobs == (name,) and path.exists()
    with closing(sqlite3.connect(path, isolation_level=None)) as user:
        user.execute("BEGIN")
        user.execute("SELECT * FROM document").fetchone()
        report = await place.retention.collect()
        assert report.indexes == () and report.blobs == () and "uses it" in report.notes[0]
    os.utime(path, (old, old))
    report = await place.retention.collect()
    assert report.indexes == trial.indexes and report.blobs == trial.blobs and not path.exists()


async def test_a_damaged_index_counts_as_it_stands(place: Place) -> None:
    name = place.blobs.put(b"text of a document")
    place.age_blobs(2 * DAY)
    path = place.root / "corpora" / "a.sqlite"
    path.write_bytes(b"SQLite format 3\x00" + os.urandom(3000) + name.encode() + os.urandom(3000))
    report = await place.retention.collect()
    assert report.blobs == () and "damaged" in report.notes[0]


async def test_logs_of_the_other_store_count(place: Place, opened: Opener, store_kind: str) -> None:
    """A home in which both stores were used: the one that is not mounted keeps its blobs."""
    packed = place.blobs.put(b"packed")
    plain = place.blobs.put(b"plain")
    noise = "".join(sha256_hex(str(number).encode()) for number in range(40_000))
    await place.session("s-1", [Noted(text=noise), Noted(text=f"see {packed}"), Noted(text=noise[::-1])])
    await place.store.archive("s-1")
    await place.session("s-2", [Noted(text=plain)])
    place.age_blobs(2 * DAY)
    async with opened("here", {"store": "sqlite" if store_kind == "jsonl" else "jsonl"}) as other:
        assert await other.ids() == set()
        report = await other.retention.collect()
    assert report.blobs == () and place.blobs.has(packed) and place.blobs.has(plain)


async def test_whatever_lies_in_the_home_directory_may_name_a_blob(place: Place, tmp_path: Path) -> None:
    texts = [b"damage", b"packed", b"linked", b"unfinished", b"escaped"]
    names = [place.blobs.put(data) for data in texts]
    place.age_blobs(2 * DAY)
    (place.root / "sessions").mkdir(exist_ok=True)
    (place.root / "sessions" / "s-9.damaged-1").write_text("x" * (1 << 20) + names[0])
    (place.root / "notes.gz").write_bytes(gzip.compress(b"a") + gzip.compress(b"b" + names[1].encode()))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x").write_text(names[2])
    (tmp_path / "elsewhere" / "round").symlink_to(place.root)
    (place.root / "linked").symlink_to(tmp_path / "elsewhere")
    (place.root / "sessions" / ".s-8.abcd.new").write_text(names[3])
    (place.root / "more").write_text(f"\\u00fe{names[4]}\\b")
    assert (await place.retention.collect()).blobs == ()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_what_cannot_be_read_forbids_to_remove_anything(place: Place) -> None:
    place.blobs.put(b"x")
    place.age_blobs(2 * DAY)
    (place.root / "more").write_text("?")
    (place.root / "more").chmod(0)
    with pytest.raises(CollectRefused, match="more cannot be read"):
        await place.retention.collect()


@pytest.mark.parametrize("store_kind", ["jsonl"])
@pytest.mark.parametrize("what", ["a folder for a log", "a damaged database"])
async def test_a_log_that_cannot_be_read_forbids_to_remove_anything(place: Place, what: str) -> None:
    lost = place.blobs.put(b"x")
    place.age_blobs(2 * DAY)
    if what == "a folder for a log":
        (place.root / "sessions" / "s-1.jsonl").mkdir(parents=True)
    else:
        (place.root / "sessions.sqlite").write_bytes(b"SQLite format 3\x00" + os.urandom(5000))
    with pytest.raises(CollectRefused, match="nothing was removed"):
        await place.retention.collect()
    assert place.blobs.get(lost) == b"x"


async def test_a_plugin_may_need_blobs_for_as_long_as_it_is_mounted(place: Place) -> None:
    name = place.blobs.put(b"mine")
    place.age_blobs(2 * DAY)

    async def names() -> AsyncGenerator[bytes]:
        yield name[:20].encode()
        yield name[20:].encode()

    async def apply(ctx: Context, config: None) -> None:
        place.retention.needs(ctx, "cache", names)

    fiber = await place.ctx.mount(Plugin("cache", apply))
    assert (await place.retention.collect()).blobs == ()
    await fiber.dispose()
    assert (await place.retention.collect()).blobs == (name,)


async def test_unfinished_files_of_dead_writers_go(place: Place) -> None:
    place.blobs.put(b"x")
    (shard,) = [it for it in (place.root / "blobs").iterdir() if it.is_dir()]
    (place.root / "sessions").mkdir(exist_ok=True)
    left = [shard / ".0123.abcd.new", place.root / "sessions" / ".s-1.abcd.new"]
    for path in left:
        path.write_bytes(b"half")
        old = place.clock.now() - 2 * DAY
        os.utime(path, (old, old))
    (shard / ".4567.abcd.new").write_bytes(b"being written")
    trial = await place.retention.collect(dry_run=True)
    assert trial.leftovers == 2 and trial.bytes == 8 and all(path.exists() for path in left)
    assert (await place.retention.collect()).leftovers == 2
    assert not any(path.exists() for path in left) and (shard / ".4567.abcd.new").exists()


async def test_a_removal_that_was_cut_off_loses_nothing_and_is_completed(place: Place) -> None:
    name = place.blobs.put(b"x")
    path = place.root / "blobs" / name[:2] / name
    path.rename(path.with_name(f".{name}.condemned"))
    assert place.blobs.get(name) == b"x" and not place.blobs.has(name)
    place.age_blobs(2 * DAY)
    await place.session("s-1", [Noted(text=name)])
    assert (await place.retention.collect()).blobs == () and place.blobs.get(name) == b"x"
    await place.store.delete("s-1")
    assert (await place.retention.collect()).blobs == (name,)
    assert list(path.parent.iterdir()) == []


async def test_a_clock_that_jumps_takes_nothing_from_a_session_that_is_written(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await place.store.create(Header(id="s-1", kind="agent", created=place.clock.now()))
    name = place.blobs.put(b"just stored")
    far = place.clock.now() + 400 * DAY
    monkeypatch.setattr(place.clock, "now", lambda: far)
    assert (await place.retention.collect()).blobs == ()
    session.append(Noted(text=name))
    await session.close()
    assert hashlib.sha256(place.blobs.get(name)).hexdigest() == name


@pytest.mark.parametrize("store_kind", ["jsonl"])
@pytest.mark.parametrize("inside", [True, False])
async def test_a_store_that_cannot_be_listed_forbids_to_remove_anything(
    opened: Opener, tmp_path: Path, inside: bool, store_kind: str
) -> None:
    """Nothing listed does not mean that there is nothing."""
    logs = tmp_path / ("here" if inside else "elsewhere") / "logs"
    async with opened("here", {"sessions": str(logs)}) as place:
        lost = place.blobs.put(b"x")
        place.age_blobs(2 * DAY)
        logs.parent.mkdir(exist_ok=True)
        logs.symlink_to(logs)
        with pytest.raises(CollectRefused, match="nothing was removed"):
            await place.retention.collect()
        assert [one.status for one in await place.store.list()] == ["unreadable"]
        logs.unlink()
        assert (await place.retention.collect()).blobs == (lost,)
