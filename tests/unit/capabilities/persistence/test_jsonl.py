"""Sessions as files: damage, leases, lists, full disks."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.capabilities.persistence.providers import lease as lease_module
from leadline.capabilities.persistence.providers import log_file
from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.core.session.codec import CHAIN_DIGITS, Header
from leadline.core.session.errors import (
    SessionExists,
    SessionFormatTooNew,
    SessionLocked,
    SessionNotContinuable,
    SessionUnreadable,
    SessionWriteFailed,
    StaleLease,
)
from leadline.core.session.events import DamageMoved, Event, TurnStart
from leadline.core.session.log import Session
from leadline.core.session.registry import EventTypes
from leadline.testing.clock import START, ManualClock
from leadline.testing.conformance.session_store import Noted, Shaped, asked, header, pieces, whole_turn
from leadline.testing.ids import SeededIds

pytestmark = pytest.mark.anyio


def store_in(root: Path, *kinds: type[Event]) -> JsonlSessions:
    return JsonlSessions(root, clock=ManualClock(), types=EventTypes(kinds))


async def filled(root: Path, session_id: str = "s-1", events: list[Event] | None = None) -> Path:
    session = await store_in(root).create(header(session_id))
    session.append_all(whole_turn() if events is None else events)
    await session.close()
    return root / f"{session_id}.jsonl"


def listing(root: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in root.iterdir() if path.is_file() and path.suffix != ".lock"
    }


# --- the format --------------------------------------------------------------------------------------------


async def test_the_file_is_what_the_format_says(tmp_path: Path) -> None:
    path = await filled(tmp_path)
    head, *lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert json.loads(head) == {
        "format": 1,
        "id": "s-1",
        "kind": "agent",
        "created": START,
        "depth": 0,
        "cwd": "/somewhere",
    }
    before = head
    for seq, line in enumerate(lines):
        event = json.loads(line)
        assert list(event) in (
            ["v", "seq", "t", "type", "prev", "data"],
            ["v", "seq", "t", "type", "prev", "derives", "data"],
        )
        assert event["seq"] == seq and event["v"] == 1 and event["t"] == START
        assert event["prev"] == hashlib.sha256(before).hexdigest()[:32] and CHAIN_DIGITS == 32
        assert event.get("derives", False) is (event["type"] in ("user/message", "assistant/message"))
        before = line


async def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    await filled(tmp_path / "new" / "sessions")
    root = tmp_path / "new" / "sessions"
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in root.iterdir() if path.is_file()} == {0o600}


@pytest.mark.case("S28")
@pytest.mark.case("S39")
async def test_sessions_started_at_the_same_moment_are_separate(tmp_path: Path) -> None:
    store, ids = store_in(tmp_path), SeededIds()
    sessions = [await store.create(header(ids.new("s"))) for _ in range(20)]
    for number, session in enumerate(sessions):
        session.append(Noted(text=str(number)))
    await store.close()
    texts = [[event.text for event in (await store.read(it.id)).of(Noted)] for it in sessions]
    assert texts == [[str(number)] for number in range(20)]
    assert not any(name.startswith(".") for name in listing(tmp_path))


# --- damage ------------------------------------------------------------------------------------------------


@pytest.mark.case("S02")
async def test_one_corrupt_session_affects_no_other(tmp_path: Path) -> None:
    for session_id in ("s-1", "s-2", "s-3"):
        await filled(tmp_path, session_id)
    path = tmp_path / "s-2.jsonl"
    path.write_bytes(bytes(range(128, 148)) + path.read_bytes()[20:])
    entries = await store_in(tmp_path).list()
    assert [(it.id, it.status) for it in entries] == [
        ("s-1", "finished"),
        ("s-3", "finished"),
        ("s-2", "unreadable"),
    ]
    assert entries[2].path == str(path) and "header" in entries[2].reason
    for session_id in ("s-1", "s-3"):
        session = await store_in(tmp_path).open(session_id)
        await session.close()
    with pytest.raises(SessionUnreadable, match="header"):
        await store_in(tmp_path).open("s-2")
    read = await store_in(tmp_path).read("s-2")
    assert len(read) == 6 and read.header.kind == "unreadable" and read.problems[0].line == 1


async def test_a_list_survives_what_is_no_session_at_all(tmp_path: Path) -> None:
    await filled(tmp_path)
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "notes.txt").write_text("x")
    entries = await store_in(tmp_path).list()
    assert {it.id: it.status for it in entries} == {
        "s-1": "finished",
        "empty": "unreadable",
        "folder": "unreadable",
        "dangling": "unreadable",
        "pipe": "unreadable",
    }
    assert all(it.reason for it in entries[1:])


async def test_the_same_id_in_two_files_is_told_and_the_copy_is_not_written(tmp_path: Path) -> None:
    path = await filled(tmp_path)
    (tmp_path / "s-copy.jsonl").write_bytes(path.read_bytes())
    entries = await store_in(tmp_path).list()
    assert [(it.id, it.status) for it in entries] == [("s-1", "finished"), ("s-copy", "unreadable")]
    assert "session s-1" in entries[1].reason
    with pytest.raises(SessionUnreadable, match="rename"):
        await store_in(tmp_path).open("s-copy")


@pytest.mark.case("S33")
async def test_a_session_of_a_newer_format_is_left_untouched(tmp_path: Path) -> None:
    path = tmp_path / "s-new.jsonl"
    content = b'{"format":4,"id":"s-new","kind":{"shape":"new"},"created":1}\n{"event":"unheard of"}\n{"half'
    path.write_bytes(content)
    store = store_in(tmp_path)
    with pytest.raises(SessionFormatTooNew, match="reads format 4 or later") as error:
        await store.open("s-new")
    assert error.value.format == 4
    (entry,) = await store.list()
    assert entry.status == "unreadable" and "format 4 or later" in entry.reason
    read = await store.read("s-new")
    assert len(read) == 0 and not read.continuable and "format 4 or later" in str(read.problems[0])
    assert listing(tmp_path) == {"s-new.jsonl": content}
    assert not (tmp_path / "s-new.lock").exists()


async def test_a_torn_tail_is_reported_when_read_and_moved_when_written(tmp_path: Path) -> None:
    path = await filled(tmp_path)
    whole, torn = path.read_bytes(), b'{"v":1,"seq":6,"t":1,"ty'
    path.write_bytes(whole + torn)
    read = await store_in(tmp_path).read("s-1")
    assert len(read) == 6 and "unfinished" in read.problems[0].reason
    assert listing(tmp_path) == {"s-1.jsonl": whole + torn}

    session = await store_in(tmp_path).open("s-1")
    assert path.read_bytes().startswith(whole)
    assert (tmp_path / "s-1.damaged-1").read_bytes() == torn
    moved = session.last(DamageMoved)
    assert moved == DamageMoved(
        file="s-1.damaged-1",
        first_line=8,
        bytes=len(torn),
        sha256=hashlib.sha256(torn).hexdigest(),
        reasons=("line 8: unfinished: the last 24 bytes were not completely written",),
    )
    session.append(TurnStart(turn=2))
    await session.close()
    again = await store_in(tmp_path).read("s-1")
    assert [it.seq for it in again.logged] == list(range(8))
    assert any("s-1.damaged-1" in problem.reason for problem in again.problems)


async def test_damage_in_the_middle_leaves_a_branch_that_can_still_be_read(tmp_path: Path) -> None:
    path = await filled(tmp_path, events=[*whole_turn(1), *whole_turn(2)])
    lines = path.read_bytes().splitlines(keepends=True)
    lines[4] = b"\x00" * 40 + b"\n"
    path.write_bytes(b"".join(lines))
    read = await store_in(tmp_path).read("s-1")
    assert [it.seq for it in read.logged] == [0, 1, 2]
    assert read.problems[0].line == 5
    assert [it.event.seq for it in read.quarantined if it.event] == list(range(4, 12))

    session = await store_in(tmp_path).open("s-1")
    kinds = [it.type for it in session.since(3)]
    assert kinds == ["session/damage-moved", "step/end", "turn/end"]
    await session.close()
    assert (tmp_path / "s-1.damaged-1").read_bytes() == b"".join(lines[4:])
    again = await store_in(tmp_path).read("s-1")
    branch = [it for it in again.quarantined if it.file == "s-1.damaged-1"]
    assert [it.event.seq for it in branch if it.event] == list(range(4, 12))
    assert len(again) == 6


async def test_each_damage_gets_a_file_of_its_own(tmp_path: Path) -> None:
    path = await filled(tmp_path)
    for number in (1, 2, 3):
        with path.open("ab") as file:
            file.write(b"torn %d" % number)
        session = await store_in(tmp_path).open("s-1")
        await session.close()
        assert (tmp_path / f"s-1.damaged-{number}").read_bytes() == b"torn %d" % number
    assert len((await store_in(tmp_path).read("s-1")).problems) == 3


async def test_damage_that_was_moved_but_not_yet_cut_off_is_not_moved_twice(tmp_path: Path) -> None:
    path = await filled(tmp_path)
    with path.open("ab") as file:
        file.write(b"torn")
    (tmp_path / "s-1.damaged-1").write_bytes(b"torn")
    session = await store_in(tmp_path).open("s-1")
    await session.close()
    assert sorted(listing(tmp_path)) == ["s-1.damaged-1", "s-1.jsonl"]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_damage_opens_for_writing_or_is_refused_with_a_reason(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("damage")

    async def run() -> None:
        path = await filled(root, events=[*whole_turn(1), *asked(2)])
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, len(content) - 1))
            content[at : at + data.draw(st.integers(0, 60))] = data.draw(st.binary(max_size=60))
        path.write_bytes(content)
        store = store_in(root)
        before = await store.read("s-1")
        await store.list()
        try:
            session = await store.open("s-1")
        except (SessionUnreadable, SessionNotContinuable, SessionFormatTooNew) as error:
            assert str(error) and path.read_bytes() == content
            return
        assert session.derived().conversation.pairing_problem is None
        session.append(TurnStart(turn=session.place.turn + 1))
        await session.close()
        after = await store.read("s-1")
        kept = [bytes(it.data) for it in before.logged]
        assert [bytes(it.data) for it in after.logged[: len(kept)]] == kept
        assert after.logged[-1].type == "turn/start"
        stored = b"".join(it.read_bytes() for it in [path, *sorted(root.glob("*.damaged-*"))])
        assert all(line in stored for line in bytes(content).split(b"\n"))

    anyio.run(run)


# --- unknown events ----------------------------------------------------------------------------------------


@pytest.mark.case("S03")
async def test_a_session_outlives_the_plugin_that_wrote_into_it(tmp_path: Path) -> None:
    session = await store_in(tmp_path, Noted).create(header())
    session.append_all([*whole_turn()[:4], Noted(text="x"), *whole_turn()[4:]])
    await session.close()
    line = (tmp_path / "s-1.jsonl").read_bytes().splitlines()[5]
    without = await store_in(tmp_path).open("s-1")
    assert without.event(without.logged[4]) is None
    assert len(without.derived().conversation) == 2
    without.append_all(whole_turn(2))
    await without.close()
    assert (tmp_path / "s-1.jsonl").read_bytes().splitlines()[5] == line


@pytest.mark.case("S03")
async def test_an_unknown_event_that_shapes_the_window_names_itself_and_what_is_missing(
    tmp_path: Path,
) -> None:
    session = await store_in(tmp_path, Shaped).create(header())
    session.append_all([*whole_turn(), Shaped(text="x")])
    await session.close()
    before = listing(tmp_path)
    with pytest.raises(SessionNotContinuable) as error:
        await store_in(tmp_path).open("s-1")
    assert (error.value.type, error.value.seq) == ("demo/shaped", 6)
    assert "event 6 (demo/shaped, version 1)" in str(error.value) and "plugin" in str(error.value)
    assert listing(tmp_path) == before
    again = await store_in(tmp_path, Shaped).open("s-1")
    await again.close()


# --- leases ------------------------------------------------------------------------------------------------


async def test_who_holds_the_lease_is_named(tmp_path: Path) -> None:
    session = await store_in(tmp_path).create(header())
    with pytest.raises(
        SessionLocked, match=f"process {os.getpid()} on .* since 2026-01-01T00:00:00"
    ) as error:
        await store_in(tmp_path).open("s-1")
    assert (error.value.pid, error.value.since, error.value.session_id) == (os.getpid(), START, "s-1")
    await session.close()


async def test_the_epoch_rises_with_every_holder_and_outlives_a_broken_counter(tmp_path: Path) -> None:
    await filled(tmp_path)
    epochs: list[int] = []
    lock = tmp_path / "s-1.lock"
    for number in range(4):
        if number == 2:
            lock.write_bytes(b"\x00garbage")
        session = await store_in(tmp_path).open("s-1")
        epochs.append(json.loads(lock.read_bytes())["epoch"])
        await session.close()
    assert epochs[0] == 2
    assert epochs == sorted(set(epochs))


async def test_a_writer_that_lost_its_lease_is_refused(tmp_path: Path) -> None:
    old = await store_in(tmp_path).create(header())
    old.append(Noted(text="mine"))
    (tmp_path / "s-1.lock").unlink()  # as a person does who believes that the lock is stale
    new = await store_in(tmp_path).open("s-1")
    with pytest.raises(StaleLease, match="taken over"):
        old.append(Noted(text="too late"))
    assert new.append(Noted(text="yours")).seq == 1
    for session in (old, new):
        await session.close()
    read = await store_in(tmp_path).read("s-1")
    assert [event.text for event in read.of(Noted)] == ["mine", "yours"] and not read.problems


async def test_a_higher_epoch_in_the_same_lock_file_is_noticed(tmp_path: Path) -> None:
    session = await store_in(tmp_path).create(header())
    lock = tmp_path / "s-1.lock"
    holder = json.loads(lock.read_bytes())
    lock.write_bytes(json.dumps({**holder, "epoch": 9, "host": "elsewhere"}).encode())
    with pytest.raises(StaleLease, match=r"epoch 9.*elsewhere.*epoch 1"):
        session.append(Noted(text="x"))
    await session.close()


async def test_a_lock_file_that_was_only_touched_does_no_harm(tmp_path: Path) -> None:
    session = await store_in(tmp_path).create(header())
    os.utime(tmp_path / "s-1.lock", (1, 1))
    assert session.append(Noted(text="x")).seq == 0
    await session.close()


async def test_a_log_that_someone_else_wrote_to_is_not_written_again(tmp_path: Path) -> None:
    session = await store_in(tmp_path).create(header())
    with (tmp_path / "s-1.jsonl").open("ab") as file:
        file.write(b"scribble\n")
    with pytest.raises(StaleLease, match="changed by someone else"):
        session.append(Noted(text="x"))
    await session.close()
    again = await store_in(tmp_path).open("s-1")
    assert again.append(Noted(text="x")).seq == 1
    await again.close()


async def test_looking_at_the_list_does_not_lock_a_session(tmp_path: Path) -> None:
    await filled(tmp_path)
    async with anyio.create_task_group() as group:
        group.start_soon(store_in(tmp_path).list)
        for _ in range(20):
            group.start_soon(store_in(tmp_path).list)
            session = await store_in(tmp_path).open("s-1")
            await session.close()


# --- full and failing disks --------------------------------------------------------------------------------


def failing(error: int) -> Callable[[int, bytes], int]:
    def write(fd: int, data: bytes) -> int:
        raise OSError(error, os.strerror(error))

    return write


def short(fd: int, data: bytes, write: Callable[[int, bytes], int] = os.write) -> int:
    return write(fd, data[: len(data) // 2])


@pytest.mark.parametrize(
    ("write", "cause"),
    [(failing(errno.ENOSPC), "No space left"), (failing(errno.EIO), "Input/output"), (short, "found room")],
    ids=["full", "broken", "short"],
)
async def test_a_failed_write_leaves_the_log_as_it_was_and_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[int, bytes], int], cause: str
) -> None:
    session = await store_in(tmp_path).create(header())
    session.append(Noted(text="before"))
    before = (tmp_path / "s-1.jsonl").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(log_file.os, "write", write)
        for _ in range(2):
            with pytest.raises(SessionWriteFailed, match=cause) as error:
                session.append_all([TurnStart(turn=1), Noted(text="x")])
            assert str(tmp_path / "s-1.jsonl") in str(error.value) and "try again" in str(error.value)
    assert (tmp_path / "s-1.jsonl").read_bytes() == before
    assert len(session) == 1 and not session.place.turn_open
    assert [it.seq for it in session.append_all([TurnStart(turn=1), Noted(text="x")])] == [1, 2]
    await session.close()
    assert not (await store_in(tmp_path).read("s-1")).problems


async def test_what_a_failed_write_left_is_taken_away_before_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await store_in(tmp_path).create(header())

    def no_truncate(fd: int, length: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(log_file.os, "write", short)
        patch.setattr(log_file.os, "ftruncate", no_truncate)
        with pytest.raises(SessionWriteFailed):
            session.append(Noted(text="first try"))
        with pytest.raises(SessionWriteFailed, match="taken away"):
            session.append(Noted(text="second try"))
    session.append(Noted(text="third try"))
    await session.close()
    read = await store_in(tmp_path).read("s-1")
    assert [event.text for event in read.of(Noted)] == ["third try"] and not read.problems


async def test_a_real_size_limit_of_the_system_is_survived(tmp_path: Path) -> None:
    import resource
    import signal

    session = await store_in(tmp_path).create(header())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
        with pytest.raises(SessionWriteFailed):
            for number in range(100):
                session.append(Noted(text=str(number)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    count = len(session)
    assert session.append(Noted(text="after")).seq == count > 3
    await session.close()
    read = await store_in(tmp_path).read("s-1")
    assert len(read) == count + 1 and not read.problems


async def test_a_session_that_cannot_be_created_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(self: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "hardlink_to", no_link)
        with pytest.raises(SessionWriteFailed, match="No space"):
            await store_in(tmp_path).create(header())
    assert listing(tmp_path) == {}
    session = await store_in(tmp_path).create(header())
    await session.close()


async def test_a_disk_that_does_not_keep_its_promise_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await store_in(tmp_path).create(header())
    await session.sync()
    start = (tmp_path / "s-1.jsonl").stat().st_size
    session.append(Noted(text="x"))
    content = (tmp_path / "s-1.jsonl").read_bytes()
    written: list[tuple[bytes, int]] = []
    pwrite = os.pwrite

    def no_sync(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    def noted(fd: int, data: bytes, at: int) -> int:
        written.append((data, at))
        return pwrite(fd, data, at)

    with monkeypatch.context() as patch:
        patch.setattr(log_file.os, "fdatasync", no_sync)
        for _ in range(2):
            with pytest.raises(SessionWriteFailed, match="does not promise"):
                await session.sync()
    with monkeypatch.context() as patch:
        patch.setattr(log_file.os, "pwrite", noted)
        await session.sync()
        await session.sync()
    assert written == [(content[start:], start)], "the system forgot that they were still to be kept"
    assert (tmp_path / "s-1.jsonl").read_bytes() == content
    await session.close()


async def test_a_file_system_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(fd: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lease_module.fcntl, "flock", no_locks)
    with pytest.raises(SessionWriteFailed, match="can lock files"):
        await store_in(tmp_path).create(header())


async def test_many_sessions_sync_at_once(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    sessions = [await store.create(header(f"s-{number}")) for number in range(10)]
    async with anyio.create_task_group() as group:
        for session in sessions:
            session.append(Noted(text="x"))
            group.start_soon(session.sync)
            group.start_soon(session.sync)
    await store.close()
    assert not any(session.writable for session in sessions)


# --- the list ----------------------------------------------------------------------------------------------


@pytest.mark.case("S19")
async def test_the_list_reads_the_two_ends_of_a_log_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await filled(tmp_path)
    size = 64 * 1024 * 1024
    head, *lines = path.read_bytes().splitlines(keepends=True)
    with path.open("wb") as file:  # a file with a hole: large, but quick to make
        file.write(head)
        file.seek(size)
        file.write(b"\n" + b"".join(lines))
    read: list[int] = []
    pread = os.pread

    def counted(fd: int, length: int, offset: int) -> bytes:
        read.append(length)
        return pread(fd, length, offset)

    monkeypatch.setattr(os, "pread", counted)
    (entry,) = await store_in(tmp_path).list()
    assert entry.status == "finished" and entry.size > size
    assert sum(read) < 64 * 1024


async def test_a_turn_that_began_far_from_the_end_is_still_found_open(tmp_path: Path) -> None:
    await filled(tmp_path, events=[TurnStart(turn=1), *(Noted(text="x" * 500) for _ in range(200))])
    (entry,) = await store_in(tmp_path).list()
    assert entry.status == "interrupted"


async def test_the_list_gives_what_a_picker_shows(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    child = Header(
        id="s-2", kind="research", created=START + 5, parent="s-1", depth=1, cwd="/x", label="unit"
    )
    for one in (child, header()):
        await (await store.create(one)).close()
    entries = await store.list()
    assert [it.id for it in entries] == ["s-1", "s-2"]
    entry = entries[1]
    assert (entry.kind, entry.created, entry.parent, entry.depth, entry.cwd, entry.label) == (
        "research",
        START + 5,
        "s-1",
        1,
        "/x",
        "unit",
    )
    assert entry.size == (tmp_path / "s-2.jsonl").stat().st_size and entry.modified > 0
    assert await store_in(tmp_path / "nowhere").list() == []


class RunStarted(Event, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "demo/run-started"
    OPENS: ClassVar[str] = "run"


class RunEnded(Event, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "demo/run-ended"
    CLOSES: ClassVar[str] = "run"


async def test_brackets_of_plugins_count_for_the_status(tmp_path: Path) -> None:
    store = store_in(tmp_path, RunStarted, RunEnded)
    for session_id, events in (("s-1", [RunStarted()]), ("s-2", [RunStarted(), RunEnded()])):
        session = await store.create(header(session_id, "research"))
        session.append_all(events)
        await session.close()
    assert [it.status for it in await store.list()] == ["interrupted", "finished"]


# --- durability of what was written ------------------------------------------------------------------------


async def test_an_append_is_in_the_file_when_it_returns(tmp_path: Path) -> None:
    session: Session = await store_in(tmp_path).create(header())
    sizes: list[int] = []
    session.observe(lambda logged: sizes.append((tmp_path / "s-1.jsonl").read_bytes().count(b"\n")))
    for number in range(3):
        session.append(Noted(text=str(number)))
    assert sizes == [2, 3, 4]
    await session.close()


@pytest.mark.case("S42")
async def test_numbering_never_steps_back(tmp_path: Path) -> None:
    await filled(tmp_path, events=[event for number in range(1, 21) for event in whole_turn(number)])
    session = await store_in(tmp_path).open("s-1")
    assert session.append(Noted(text="a model was exchanged")).seq == 120
    assert session.append(TurnStart(turn=21)).seq == 121
    await session.close()


async def test_a_lock_file_that_is_deleted_while_it_is_taken_is_not_relied_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(tmp_path)
    lock, flock = tmp_path / "s-1.lock", lease_module.fcntl.flock
    deleted: list[bool] = []

    def deleting(fd: int, how: int) -> None:
        if not deleted:
            deleted.append(True)
            lock.unlink()
        flock(fd, how)

    monkeypatch.setattr(lease_module.fcntl, "flock", deleting)
    session = await store_in(tmp_path).open("s-1")
    with pytest.raises(SessionLocked):
        await store_in(tmp_path).open("s-1")
    session.append(Noted(text="x"))
    await session.close()


async def test_what_an_import_that_died_left_behind_does_not_stand_in_the_way(tmp_path: Path) -> None:
    path = await filled(tmp_path)
    content = path.read_bytes()
    await store_in(tmp_path).delete("s-1")
    (tmp_path / "s-1.damaged-1").write_bytes(b"of the import before")
    (tmp_path / "s-1.damaged-7").write_bytes(b"too")
    await store_in(tmp_path).add_raw(pieces(content), {"s-1.damaged-1": b"mine"})
    assert await store_in(tmp_path).beside("s-1") == {"s-1.damaged-1": b"mine"}
    with pytest.raises(SessionExists):
        await store_in(tmp_path).add_raw(pieces(content), {"s-1.damaged-1": b"other"})
    assert await store_in(tmp_path).beside("s-1") == {"s-1.damaged-1": b"mine"}


async def test_what_was_moved_out_and_cannot_be_read_costs_only_itself(tmp_path: Path) -> None:
    await filled(tmp_path)
    os.mkfifo(tmp_path / "s-1.damaged-1")
    read = await store_in(tmp_path).read("s-1")
    assert len(read) == 6


# --- who writes --------------------------------------------------------------------------------------------


async def test_the_note_of_a_writer_that_died_is_taken_back_and_no_other(tmp_path: Path) -> None:
    await filled(tmp_path, "s-dead")
    notes = tmp_path / ".writing"
    (notes / "s-dead").touch()
    (notes / "no id!").touch()
    session = await store_in(tmp_path).create(header("s-live"))
    assert set(await store_in(tmp_path).writers()) == {"s-live"}
    assert {path.name for path in notes.iterdir()} == {"s-live", "no id!"}
    await session.close()
    await store_in(tmp_path).delete("s-live")
    assert {path.name for path in notes.iterdir()} == {"no id!"}


async def test_who_lost_a_lease_does_not_take_back_the_note_of_the_next(tmp_path: Path) -> None:
    session = await store_in(tmp_path).create(header("s-1"))
    (tmp_path / "s-1.lock").unlink()
    following = await store_in(tmp_path).open("s-1")
    await session.close()
    assert set(await store_in(tmp_path).writers()) == {"s-1"}
    await following.close()
    assert await store_in(tmp_path).writers() == {}
