"""Sessions in a database: its schema, its file system, damage, full disks, syncs."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Callable
from hashlib import sha256, shake_256
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.capabilities.persistence import plugin as persistence
from leadline.capabilities.persistence.providers import sqlite as sqlite_module
from leadline.capabilities.persistence.providers import sqlite_database
from leadline.capabilities.persistence.providers.file_system import FileSystemUnsafe
from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.capabilities.persistence.providers.sqlite import SqliteSessions
from leadline.capabilities.persistence.providers.sqlite_schema import APPLICATION_ID, MIGRATIONS, VERSION
from leadline.core import clock, home
from leadline.core.clock import Clock
from leadline.core.home import Home
from leadline.core.session import registry
from leadline.core.session.codec import Header, LoggedOutside
from leadline.core.session.errors import (
    SessionError,
    SessionLocked,
    SessionNotFound,
    SessionUnreadable,
    SessionWriteFailed,
    StaleLease,
)
from leadline.core.session.events import Event
from leadline.core.session.log import Session
from leadline.core.session.registry import EventTypes
from leadline.core.session.store import SessionStore, first_lines
from leadline.kernel.context import Context, Kernel
from leadline.kernel.errors import ConfigError
from leadline.kernel.plugin import Plugin
from leadline.testing.clock import START, ManualClock
from leadline.testing.conformance.session_store import Noted, asked, header, whole_turn

pytestmark = pytest.mark.anyio

LOCAL = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw"
NETWORK = "27 1 0:40 / / rw,relatime - nfs4 server:/home rw,vers=4.2,local_lock=none"
UNLOCKED = "27 1 0:40 / / rw,relatime - nfs server:/home rw,vers=3,nolock"


def store_in(path: Path, table: str = LOCAL) -> SqliteSessions:
    return SqliteSessions(path, clock=ManualClock(), types=EventTypes(), table=lambda: table)


async def filled(path: Path, *ids: str, events: list[Event] | None = None) -> None:
    store = store_in(path)
    for session_id in ids or ("s-1",):
        session = await store.create(header(session_id))
        session.append_all(whole_turn() if events is None else events)
    await store.close()


async def log_of(store: SqliteSessions | JsonlSessions, session_id: str) -> bytes:
    return b"".join([chunk async for chunk in store.raw(session_id)])


def asks(path: Path, question: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(question).fetchall()
    finally:
        connection.close()


def size_of(path: Path) -> int:
    return path.stat().st_size


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def restore(path: Path, content: bytes) -> None:
    path.write_bytes(content)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "sessions.sqlite"


# --- the format --------------------------------------------------------------------------------------------


async def test_the_lines_are_those_of_a_log_file(path: Path, tmp_path: Path) -> None:
    await filled(path)
    files = JsonlSessions(tmp_path / "files", clock=ManualClock(), types=EventTypes())
    session = await files.create(header())
    session.append_all(whole_turn())
    await session.close()
    expected = (tmp_path / "files" / "s-1.jsonl").read_bytes()
    assert await log_of(store_in(path), "s-1") == expected
    shown = asks(path, "SELECT line FROM logs WHERE session = 's-1' ORDER BY start")
    assert "".join(str(line) for (line,) in shown).encode() == expected


async def test_a_session_goes_from_files_to_a_database_and_back(path: Path, tmp_path: Path) -> None:
    files = JsonlSessions(tmp_path / "files", clock=ManualClock(), types=EventTypes())
    session = await files.create(header())
    session.append_all(asked())
    await session.close()
    before = await log_of(files, "s-1")
    store = store_in(path)
    await store.add_raw(files.raw("s-1"))
    await files.delete("s-1")
    await files.add_raw(store.raw("s-1"))
    assert await log_of(files, "s-1") == before == await log_of(store, "s-1")


async def test_a_closed_store_is_one_file_that_only_its_owner_reads(path: Path) -> None:
    await filled(path)
    modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in (path.parent, *path.parent.glob("**/*"))}
    assert modes == {"home": 0o700, path.name: 0o600, f"{path.name}-writers": 0o700}


async def test_nothing_is_made_by_looking(path: Path) -> None:
    store = store_in(path)
    assert await store.list() == [] and await store.stamps() == {} and await store.writers() == {}
    with pytest.raises(SessionNotFound):
        await store.read("s-1")
    assert not path.parent.exists()


# --- the schema --------------------------------------------------------------------------------------------


def make_old(path: Path, version: int) -> bytes:
    """A database as version `version` of the schema left it, with one session."""
    content, _, _ = first_lines(header(), None, START)
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path, isolation_level=None)
    for statements in MIGRATIONS[:version]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute(
        "INSERT INTO sessions (id, size, modified) VALUES ('s-1', ?, ?)", (len(content), START)
    )
    connection.execute("INSERT INTO lines (at, line) VALUES (1 << 40, ?)", (content,))
    connection.close()
    return content


@pytest.mark.parametrize("version", range(1, VERSION + 1))
async def test_a_database_of_any_older_version_is_brought_up_to_date(path: Path, version: int) -> None:
    content = make_old(path, version)
    store = store_in(path)
    assert [one.status for one in await store.list()] == ["idle"]
    session = await store.open("s-1")
    session.append_all(whole_turn())
    await session.close()
    assert (await log_of(store, "s-1")).startswith(content)
    assert (await store.archive("s-1")).archived
    assert asks(path, "PRAGMA user_version") == [(VERSION,)]
    await store.close()
    assert len(await store_in(path).read("s-1")) == 6


def test_a_released_version_of_the_schema_is_never_changed() -> None:
    """A change goes into a version of its own, behind the last; only its digest is added here."""
    found = [
        sha256("\n".join(" ".join(one.split()) for one in many).encode()).hexdigest() for many in MIGRATIONS
    ]
    assert [digest[:16] for digest in found] == [
        "300c0cbdf5b079c1",
        "d97ae9760b939cdb",
        "bbdcee4ad589eecd",
        "9afe0b3ea204ba67",
    ]


async def test_several_may_bring_it_up_to_date_at_once(path: Path) -> None:
    make_old(path, 1)
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(store_in(path).list)
    assert [one.id for one in await store_in(path).list()] == ["s-1"]


async def test_a_database_of_a_later_version_is_left_untouched(path: Path) -> None:
    make_old(path, VERSION)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    before = content_of(path)
    store = store_in(path)
    (entry,) = await store.list()
    assert entry.status == "unreadable" and f"schema {VERSION + 1}" in entry.reason
    with pytest.raises(SessionWriteFailed, match=f"schema {VERSION + 1}"):
        await store.create(header("s-2"))
    with pytest.raises(SessionUnreadable, match=f"schema {VERSION + 1}"):
        await store.open("s-1")
    read = await store.read("s-1")
    assert f"schema {VERSION + 1}" in str(read.problems[-1])
    assert content_of(path) == before


async def test_the_database_of_another_program_is_left_untouched(path: Path) -> None:
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()
    with pytest.raises(SessionWriteFailed, match="another program"):
        await store_in(path).create(header())
    assert asks(path, "SELECT name FROM sqlite_schema") == [("songs",)]


# --- file systems ------------------------------------------------------------------------------------------


@pytest.mark.case("S27")
async def test_on_a_network_mount_the_journal_needs_no_shared_memory(path: Path) -> None:
    store = store_in(path, NETWORK)
    session = await store.create(header())
    session.append_all(whole_turn())
    await session.sync()
    assert asks(path, "PRAGMA journal_mode") == [("delete",)]
    assert not [*path.parent.glob("*-wal"), *path.parent.glob("*-shm")]
    assert len(await store_in(path, NETWORK).read("s-1")) == 6
    await session.close()


@pytest.mark.case("S27")
async def test_a_database_that_moves_between_file_systems_changes_its_journal(path: Path) -> None:
    await filled(path)
    assert asks(path, "PRAGMA journal_mode") == [("wal",)]
    away = store_in(path, NETWORK)
    session = await away.open("s-1")
    session.append(Noted(text="away"))
    assert asks(path, "PRAGMA journal_mode") == [("delete",)]
    await away.close()
    back = store_in(path)
    session = await back.open("s-1")
    assert [event.text for event in session.of(Noted)] == ["away"]
    assert asks(path, "PRAGMA journal_mode") == [("wal",)]
    await back.close()


@pytest.mark.case("S27")
async def test_where_no_journal_is_safe_the_start_is_refused(tmp_path: Path) -> None:
    async def far(ctx: Context, config: None) -> None:
        await sqlite_module.start(ctx, place, lambda: UNLOCKED)

    place = tmp_path / "far" / "s.sqlite"
    plugin: Plugin[None] = Plugin("far", far, needs=(Home, Clock, EventTypes), provides=(SessionStore,))
    async with Kernel() as kernel:
        await kernel.root.mount(clock.plugin)
        await kernel.root.mount(home.plugin, {"path": str(tmp_path / "home")})
        await kernel.root.mount(registry.plugin)
        fiber = await kernel.root.mount(plugin)
        assert isinstance(fiber.error, FileSystemUnsafe)
        assert str(place) in str(fiber.error) and "nfs with nolock" in str(fiber.error)
    assert not place.parent.exists()


@pytest.mark.parametrize("apart", [False, True], ids=["as the row persistence", "as a row of its own"])
async def test_mounted_it_provides_and_unmounted_it_leaves_no_trace(tmp_path: Path, apart: bool) -> None:
    async with Kernel() as kernel:
        await kernel.root.mount(clock.plugin)
        await kernel.root.mount(home.plugin, {"path": str(tmp_path)})
        await kernel.root.mount(registry.plugin)
        before = kernel.snapshot()
        row, config = (sqlite_module.plugin, {}) if apart else (persistence.plugin, {"store": "sqlite"})
        for count in (0, 1):
            fiber = await kernel.root.mount(row, config)
            store = kernel.root.get(SessionStore)
            session = await (store.open("s-1") if count else store.create(header()))
            assert len(session) == count
            session.append(Noted(text="x"))
            await fiber.dispose()
            assert kernel.snapshot() == before and not session.writable
    assert size_of(tmp_path / "sessions.sqlite") and not [*(tmp_path / "sessions").glob("*")]


@pytest.mark.parametrize("config", [{"store": "mysql"}, {"store": "sqlite", "path": "x"}])
def test_a_store_that_does_not_exist_is_refused(config: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        persistence.plugin.bind(config)


# --- damage ------------------------------------------------------------------------------------------------


def overwrite(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


async def tried(store: SqliteSessions, ids: list[str]) -> None:
    """Everything that only looks; none of it may raise, but for an id that is not there."""
    entries = await store.list()
    assert all(entry.reason for entry in entries if entry.status == "unreadable")
    await store.stamps()
    await store.writers()
    await store.mark()
    for session_id in ids:
        try:
            session = await store.read(session_id)
            await store.entry(session_id)
        except SessionNotFound:
            continue
        assert len(session) == 6 or session.problems, f"{session_id} lost something without a word"


@pytest.mark.case("S02")
async def test_a_file_that_is_no_database_any_more_is_told(path: Path) -> None:
    await filled(path, "s-1", "s-2")
    overwrite(path, 0, bytes(range(100)))
    store = store_in(path)
    (entry,) = await store.list()
    assert entry.status == "unreadable" and entry.path == str(path) and "not a database" in entry.reason
    read = await store.read("s-1")
    assert read.header.kind == "unreadable" and "not a database" in str(read.problems[0])
    for doing in (lambda: store.open("s-1"), lambda: store.beside("s-1"), lambda: log_of(store, "s-1")):
        with pytest.raises(SessionUnreadable, match="damaged"):
            await doing()
    with pytest.raises(SessionWriteFailed, match="damaged"):
        await store.create(header("s-3"))


@pytest.mark.case("S02")
async def test_a_broken_page_costs_what_lies_on_it_and_is_told(path: Path) -> None:
    ids = [f"s-{number}" for number in range(12)]
    await filled(path, *ids)
    (roots,) = asks(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'lines'")
    pages = size_of(path) // 4096
    assert pages > 8
    whole = content_of(path)
    lost = 0
    for page in range(1, pages):
        restore(path, whole)
        overwrite(path, page * 4096, b"\xff" * 4096)
        store = store_in(path)
        await tried(store, ids)
        read = [session for session in [await store.read(one) for one in ids] if session.problems]
        lost += page + 1 != roots[0] and len(read) == len(ids)
        await store.close()
    assert lost <= 4, "a page of lines took every session with it"


@pytest.mark.case("S02")
async def test_the_logs_are_found_without_the_table_of_sessions(path: Path) -> None:
    await filled(path, "s-1", "s-2")
    for name in ("sessions", "sqlite_autoindex_sessions_1"):
        ((root,),) = asks(path, f"SELECT rootpage FROM sqlite_schema WHERE name = '{name}'")
        assert isinstance(root, int)
        overwrite(path, (root - 1) * 4096, b"\xff" * 4096)
    store = store_in(path)
    entries = {entry.id: entry for entry in await store.list()}
    assert entries.keys() == {path.name, "s-1", "s-2"}
    assert {entry.status for entry in entries.values()} == {"unreadable"}
    read = await store.read("s-2")
    assert len(read) == 6 and read.header == header("s-2") and "damaged" in str(read.problems[-1])
    with pytest.raises(SessionUnreadable, match="damaged"):
        await store.open("s-2")


async def test_a_line_that_was_altered_breaks_the_chain_there(path: Path) -> None:
    await filled(path)
    connection = sqlite3.connect(path)
    for at, line in connection.execute("SELECT at, line FROM lines WHERE instr(line, 'Nine')").fetchall():
        connection.execute("UPDATE lines SET line = ? WHERE at = ?", (line.replace(b"Nine", b"Four"), at))
    connection.commit()
    connection.close()
    session = await store_in(path).read("s-1")
    assert session.problems and len(session) < 6
    store = store_in(path)
    again = await store.open("s-1")
    assert again.logged[-1].type == "turn/end" and [*await store.beside("s-1")] == ["s-1.damaged-1"]
    await store.close()
    whole = await store_in(path).read("s-1")
    assert all("moved to s-1.damaged-1" in str(problem) for problem in whole.problems)
    assert whole.quarantined


@pytest.mark.parametrize("gone", [2, 4, 6])
async def test_a_row_that_is_missing_is_told(path: Path, gone: int) -> None:
    await filled(path)
    connection = sqlite3.connect(path)
    connection.execute(
        "DELETE FROM lines WHERE at = (SELECT at FROM lines ORDER BY at LIMIT 1 OFFSET ?)", (gone,)
    )
    connection.commit()
    connection.close()
    session = await store_in(path).read("s-1")
    assert "missing in the database" in " ".join(map(str, session.problems))
    assert len(session) == gone - 1
    store = store_in(path)
    again = await store.open("s-1")
    again.append(Noted(text="on"))
    await again.close()
    assert not [one for one in (await store.read("s-1")).problems if "moved" not in one.reason]
    await store.close()


async def left_open(path: Path, *texts: str) -> Path:
    """A database as a process leaves it that dies: with a write-ahead log of a commit for each text."""
    store = store_in(path)
    session = await store.create(header())
    for text in texts:
        session.append(Noted(text=text))
    dead = path.parent / "dead" / path.name
    copy_to(path, dead.parent)
    await store.close()
    return dead


def copy_to(path: Path, folder: Path) -> None:
    folder.mkdir()
    for name in (path.name, f"{path.name}-wal"):
        (folder / name).write_bytes(path.with_name(name).read_bytes())


@pytest.mark.parametrize("share", [0.3, 0.6])
async def test_damage_in_a_write_ahead_log_is_told_and_a_copy_is_kept(path: Path, share: float) -> None:
    dead = await left_open(path, *map(str, range(30)))
    log = dead.with_name(f"{dead.name}-wal")
    overwrite(log, int(size_of(log) * share), b"\xff" * 40)
    damaged = content_of(log)
    store = store_in(dead)
    session = await store.read("s-1")
    assert 0 < len(session) < 28
    (told,) = [str(problem) for problem in session.problems]
    assert "write-ahead log was damaged" in told and f"{dead.name}.damaged-1" in told
    assert content_of(dead.with_name(f"{dead.name}.damaged-1")) == damaged
    again = await store.open("s-1")
    again.append(Noted(text="on"))
    await store.close()
    assert "damaged-1" in str((await store_in(dead).read("s-1")).problems[0]), "it is told for good"


async def test_a_commit_that_a_process_died_in_is_no_damage(path: Path) -> None:
    dead = await left_open(path, *map(str, range(10)))
    log = dead.with_name(f"{dead.name}-wal")
    for cut in (1, 100, 4000, 4200, 8300):
        whole = content_of(log)
        os.truncate(log, len(whole) - cut)
        store = store_in(dead)
        read = await store.read("s-1")
        assert not read.problems and len(read) >= 8
        store.database._forget()
        restore(log, whole)
    assert not [*dead.parent.glob("*.damaged-*")]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_damage_of_the_file_is_survived(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("damage") / "s.sqlite"
    ids = ["s-1", "s-2", "s-3"]
    anyio.run(lambda: filled(path, *ids))
    size = path.stat().st_size
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, size - 1))
        overwrite(path, at, data.draw(st.binary(min_size=1, max_size=200)))
    if data.draw(st.booleans()):
        os.truncate(path, data.draw(st.integers(0, size)))

    async def looked() -> None:
        store = store_in(path)
        await store.list()
        for session_id in ids:
            try:
                await store.read(session_id)
                await store.entry(session_id)
            except SessionNotFound:
                continue
        for session_id in ids:
            try:
                session = await store.open(session_id)
                session.append_all(whole_turn(session.place.turn + 1))
                await session.close()
            except SessionError:
                continue
        await store.close()

    anyio.run(looked)


# --- one writer --------------------------------------------------------------------------------------------


async def test_who_holds_the_lease_is_named(path: Path) -> None:
    session = await store_in(path).create(header())
    other = store_in(path)
    with pytest.raises(SessionLocked) as error:
        await other.open("s-1")
    assert error.value.pid == os.getpid() and error.value.since == START
    entry = await other.entry("s-1")
    assert entry.status == "running" and entry.holder and entry.holder.epoch == 1
    assert (await other.writers()).keys() == {"s-1"}
    await session.close()


async def test_a_writer_that_was_taken_for_dead_is_refused(path: Path) -> None:
    session = await store_in(path).create(header())
    for token in (path.parent / f"{path.name}-writers").iterdir():
        token.unlink()
    again = await store_in(path).open("s-1")
    assert (await store_in(path).entry("s-1")).holder.epoch == 2  # type: ignore[union-attr]
    with pytest.raises(StaleLease, match="taken over"):
        session.append(Noted(text="late"))
    again.append(Noted(text="mine"))
    await session.close()
    again.append(Noted(text="still mine"))
    await again.close()
    assert [event.text for event in again.of(Noted)] == ["mine", "still mine"]


async def test_a_holder_of_another_machine_lives_as_long_as_its_heart_beats(path: Path) -> None:
    session = await store_in(path).create(header())
    session.append_all(asked())
    connection = sqlite3.connect(path)
    connection.execute("UPDATE writers SET host = 'elsewhere', boot = 'another'")
    connection.commit()
    connection.close()
    with pytest.raises(SessionLocked, match="elsewhere"):
        await store_in(path).open("s-1")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE writers SET heartbeat = heartbeat - 3600")
    connection.execute("UPDATE sessions SET taken = taken - 3600")
    connection.commit()
    connection.close()
    store = store_in(path)
    assert (await store.entry("s-1")).status == "interrupted"
    again = await store.open("s-1")
    await again.close()


async def test_a_database_that_was_replaced_is_not_written_any_more(path: Path) -> None:
    store = store_in(path)
    session = await store.create(header())
    for one in path.parent.glob(f"{path.name}*"):
        if one.is_file():
            one.rename(one.with_name(f"old-{one.name}"))
    await filled(path)
    with pytest.raises(StaleLease, match="replaced"):
        session.append(Noted(text="lost"))
    await store.close()
    assert len(await store.read("s-1")) == 6


# --- full and failing disks --------------------------------------------------------------------------------


async def test_a_full_disk_leaves_the_log_as_it_was_and_can_be_tried_again(path: Path) -> None:
    store = store_in(path)
    session = await store.create(header())
    writer = store.database._writer
    assert writer is not None
    pages = writer.execute("PRAGMA page_count").fetchone()[0]
    writer.execute(f"PRAGMA max_page_count = {pages}")
    text = "x" * 20_000
    with pytest.raises(SessionWriteFailed, match="no space left") as error:
        session.append(Noted(text=text))
    assert str(path) in str(error.value)
    assert len(session) == 0 and not (await store.read("s-1")).problems
    writer.execute("PRAGMA max_page_count = 1000000")
    session.append(Noted(text=text))
    assert [event.text for event in (await store.read("s-1")).of(Noted)] == [text]
    await store.close()


async def test_a_disk_that_does_not_keep_its_promise_is_told_and_written_to_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    store = store_in(path)
    session = await store.create(header())
    session.append_all(whole_turn())
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing)
        with pytest.raises(SessionWriteFailed, match="does not promise"):
            await session.sync()
    log = path.with_name(path.name + "-wal").read_bytes()
    written = bytearray()
    honest = os.pwrite

    def pwrite(fd: int, data: bytes, offset: int) -> int:
        written.extend(data)
        return honest(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    await session.sync()
    assert bytes(written) == log, "a second sync of the same file proves nothing"
    session.append(Noted(text="x"))
    await session.sync()
    assert len(written) == len(log)
    await store.close()


async def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = store_in(tmp_path / "file" / "s.sqlite")
    with pytest.raises(SessionWriteFailed):
        await store.create(header())


async def test_a_database_in_a_directory_that_may_not_be_written_is_still_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    store = store_in(path)
    assert [one.status for one in await store.list()] == ["finished"]
    assert len(await store.read("s-1")) == 6
    with pytest.raises(SessionWriteFailed):
        await store.create(header("s-2"))
    await store.close()


# --- syncs -------------------------------------------------------------------------------------------------


async def test_one_sync_serves_all_who_wait(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    honest = os.fdatasync
    monkeypatch.setattr(sqlite_database.os, "fdatasync", lambda fd: synced.append(fd) or honest(fd))
    store = store_in(path)
    sessions = [await store.create(header(f"s-{number}")) for number in range(40)]

    async def work(session: Session) -> None:
        session.append(Noted(text="x"))
        await session.sync()

    synced.clear()
    async with anyio.create_task_group() as group:
        for session in sessions:
            group.start_soon(work, session)
    assert 1 <= len(synced) <= 3
    await sessions[0].sync()
    assert len(synced) <= 3, "nothing was new"
    await store.close()


async def test_a_sync_does_not_begin_before_what_it_promises_is_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    log = path.with_name(f"{path.name}-wal")
    honest = os.fdatasync
    monkeypatch.setattr(
        sqlite_database.os, "fdatasync", lambda fd: sizes.append(os.fstat(fd).st_size) or honest(fd)
    )
    store = store_in(path)
    session = await store.create(header())
    for _ in range(5):
        session.append_all([Noted(text="x" * 5000)])
        written = log.stat().st_size
        await session.sync()
        assert sizes[-1] == written
    await store.close()


# --- putting away ------------------------------------------------------------------------------------------


async def test_an_archived_session_is_smaller_and_a_deleted_one_gives_its_room_back(path: Path) -> None:
    store = store_in(path)
    for number in range(3):
        session = await store.create(header(f"s-{number}"))
        session.append_all([Noted(text=f"{one} " + "sounding " * 200) for one in range(400)])
        await session.close()
    before = await log_of(store, "s-0")
    await store.close()
    sizes = [size_of(path)]
    for doing in (store.archive("s-0"), store.delete("s-1"), store.delete("s-2")):
        await doing
        await store.close()
        sizes.append(size_of(path))
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == 4 and sizes[-1] < sizes[0] / 10
    entry = await store.entry("s-0")
    assert entry.packed and entry.packed < entry.size / 10 and entry.size == len(before)
    assert await log_of(store, "s-0") == before
    rest = [chunk async for chunk in store.tail("s-0", len(before) - 10)]
    assert b"".join(rest) == before[-10:]
    await store.close()


async def test_a_damaged_archive_is_told_and_what_was_before_the_damage_is_kept(path: Path) -> None:
    store = store_in(path)
    session = await store.create(header())
    session.append_all(
        [Noted(text=shake_256(bytes([n % 251, n // 251])).hexdigest(1000)) for n in range(2000)]
    )
    await session.close()
    await store.archive("s-1")
    await store.close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE packed SET content = zeroblob(100000) WHERE part = 1")
    connection.commit()
    connection.close()
    read = await store.read("s-1")
    assert "the archive" in " ".join(map(str, read.problems)) and 100 < len(read) < 2000
    again = await store.open("s-1")
    kept = len(again)
    await again.close()
    assert kept >= len(read) and not (await store.entry("s-1")).archived
    await store.close()


async def test_what_a_tail_gives_is_the_rest_of_the_log(path: Path) -> None:
    await filled(path)
    store = store_in(path)
    whole = await log_of(store, "s-1")
    for start in (0, 1, 100, whole.index(b"\n") + 1, len(whole) - 1, len(whole), len(whole) + 5):
        assert b"".join([chunk async for chunk in store.tail("s-1", start)]) == whole[start:]


async def test_a_label_of_any_kind_is_listed(path: Path) -> None:
    store = store_in(path)
    session = await store.create(
        Header(id="s-1", kind="agent", created=START, label="深さ\n\x00", cwd="/\udcff")
    )
    await session.close()
    (entry,) = await store.list()
    assert entry.label and entry.path == str(path) and entry.size == len(await log_of(store, "s-1"))
    await store.close()


@pytest.mark.parametrize("doing", ["open", "read", "entry", "archive", "beside", "delete"])
async def test_an_id_that_is_not_there_is_told_before_and_after_the_database_is_made(
    path: Path, doing: str
) -> None:
    store = store_in(path)
    work: Callable[[str], object] = getattr(store, doing)
    for session_id in ("s-1", "s-2"):
        with pytest.raises(SessionNotFound):
            await work("s-none")  # type: ignore[misc]
        await filled(path, session_id)


@pytest.mark.case("S15")
async def test_large_events_are_not_in_memory_and_outlive_what_happens_to_the_session(path: Path) -> None:
    store = store_in(path)
    session = await store.create(header())
    texts = [str(number) * 200_000 for number in range(5)]
    session.append_all([Noted(text=text) for text in texts])
    await session.close()
    read = await store.read("s-1")
    assert all(isinstance(line, LoggedOutside) for line in read.logged)
    await store.archive("s-1")
    packed = await store.read("s-1")
    await store.delete("s-1")
    for one in (read, packed):
        assert [event.text for event in one.of(Noted)] == texts
    await store.close()
