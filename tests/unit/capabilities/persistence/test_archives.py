"""Archived sessions: several members, damage, what a crash leaves, other programs' archives."""

from __future__ import annotations

import errno
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.capabilities.persistence.providers import session_files
from leadline.capabilities.persistence.providers.gzip_log import Summary, pack, summary_of, unpacked
from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.core.session.errors import SessionUnreadable, SessionWriteFailed
from leadline.core.session.events import DamageMoved
from leadline.core.session.registry import EventTypes
from leadline.testing.clock import ManualClock
from leadline.testing.conformance.session_store import Noted, asked, header, raw_of, whole_turn

pytestmark = pytest.mark.anyio


def store_in(root: Path) -> JsonlSessions:
    return JsonlSessions(root, clock=ManualClock(), types=EventTypes())


async def filled(root: Path, notes: int = 0, size: int = 0) -> bytes:
    """The bytes of session s-1: a turn, and `notes` of `size` characters that do not compress away."""
    session = await store_in(root).create(header())
    session.append_all(whole_turn())
    for number in range(notes):
        session.append(
            Noted(text=f"{number} " + "".join(chr(33 + (i * i * number) % 90) for i in range(size)))
        )
    await session.close()
    return (root / "s-1.jsonl").read_bytes()


def packed_as(root: Path, content: bytes) -> Path:
    """Put `content` there as the archive of s-1, in place of its log."""
    (root / "s-1.jsonl").unlink()
    path = root / "s-1.jsonl.gz"
    path.write_bytes(content)
    return path


def unpack(content: bytes) -> tuple[bytes, list[str]]:
    file, archive = unpacked(io.BytesIO(content))
    with file:
        return file.read(), archive.problems


def leftovers(root: Path) -> list[Path]:
    return [path for path in root.iterdir() if path.name.endswith(".new")]


@pytest.mark.case("S31")
async def test_every_member_of_a_compressed_log_is_read(tmp_path: Path) -> None:
    content = await filled(tmp_path)
    head, _, events = content.partition(b"\n")
    packed_as(tmp_path, gzip.compress(head + b"\n") + gzip.compress(events))
    read = await store_in(tmp_path).read("s-1")
    assert len(read) == 6 and not read.problems
    entry = await store_in(tmp_path).entry("s-1")
    assert (entry.status, entry.size, entry.archived) == ("finished", len(content), True)


@pytest.mark.case("S31")
async def test_a_large_log_comes_out_of_its_archive_whole(tmp_path: Path) -> None:
    content = await filled(tmp_path, notes=40, size=150_000)
    entry = await store_in(tmp_path).archive("s-1")
    assert entry.size == len(content) > 5_000_000
    archive = (tmp_path / "s-1.jsonl.gz").read_bytes()
    assert len(archive) < len(content) / 2
    assert gzip.decompress(archive) == content, "any program that knows gzip reads it"
    read = await store_in(tmp_path).read("s-1")
    assert len(read) == 46 and not read.problems
    session = await store_in(tmp_path).open("s-1")
    await session.close()
    assert (tmp_path / "s-1.jsonl").read_bytes() == content and not (tmp_path / "s-1.jsonl.gz").exists()
    assert (await store_in(tmp_path).entry("s-1")).modified == entry.modified, "nothing was written since"


async def test_the_archive_of_another_program_is_listed_read_and_opened(tmp_path: Path) -> None:
    session = await store_in(tmp_path).create(header())
    session.append_all([*whole_turn(), *asked(2)])
    await session.close()
    packed_as(tmp_path, gzip.compress((tmp_path / "s-1.jsonl").read_bytes()) + b"\0" * 512)
    assert (await store_in(tmp_path).entry("s-1")).status == "interrupted"
    again = await store_in(tmp_path).open("s-1")
    assert len(again) == 17 and not again.problems
    await again.close()


async def test_the_list_reads_of_an_archive_what_its_first_member_says(tmp_path: Path) -> None:
    await filled(tmp_path, notes=3, size=2_000)
    before = await store_in(tmp_path).archive("s-1")
    path = tmp_path / "s-1.jsonl.gz"
    with path.open("r+b") as file:
        file.truncate(600)
    entry = await store_in(tmp_path).entry("s-1")
    assert (entry.size, entry.status) == (before.size, "finished")


async def test_a_truncated_archive_is_told_and_gives_what_there_is(tmp_path: Path) -> None:
    content = await filled(tmp_path, notes=20, size=5_000)
    packed = gzip.compress(content)
    packed_as(tmp_path, packed[: len(packed) // 2])
    read = await store_in(tmp_path).read("s-1")
    assert 6 < len(read) < 26
    assert any("ends inside a member" in it.reason for it in read.problems)
    session = await store_in(tmp_path).open("s-1")
    await session.close()
    assert packed[: len(packed) // 2] in (await store_in(tmp_path).beside("s-1")).values()
    problems = (await store_in(tmp_path).read("s-1")).problems
    assert any("ends inside a member" in it.reason for it in problems), "it is told for ever"


async def test_damage_to_one_member_costs_that_one_and_the_archive_is_kept(tmp_path: Path) -> None:
    await filled(tmp_path, notes=40, size=150_000)
    await store_in(tmp_path).archive("s-1")
    path = tmp_path / "s-1.jsonl.gz"
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 50] = b"\xff" * 50
    path.write_bytes(content)
    read = await store_in(tmp_path).read("s-1")
    assert 6 < len(read) < 46 and len(read) + len(read.quarantined) > 35
    assert any("the archive is damaged from byte" in it.reason for it in read.problems)
    session = await store_in(tmp_path).open("s-1")
    moved = list(session.of(DamageMoved))
    assert [it.first_line > 0 for it in moved] == [False, True], "the archive, and the lines behind the gap"
    assert session.append(Noted(text="on")).seq == len(session) - 1
    await session.close()
    beside = await store_in(tmp_path).beside("s-1")
    assert bytes(content) in beside.values() and not path.exists()
    told = [it.reason for it in (await store_in(tmp_path).read("s-1")).problems]
    assert any("were moved to" in reason for reason in told)


async def test_where_a_crash_left_log_and_archive_the_log_counts(tmp_path: Path) -> None:
    await filled(tmp_path)
    store = store_in(tmp_path)
    await store.archive("s-1")
    archive = (tmp_path / "s-1.jsonl.gz").read_bytes()
    session = await store.open("s-1")
    session.append(Noted(text="newer"))
    await session.close()
    (tmp_path / "s-1.jsonl.gz").write_bytes(archive)
    (entry,) = await store.list()
    assert not entry.archived and len(await store.read("s-1")) == 7
    assert await store.stamps() == {"s-1": (await store.stamps())["s-1"]}
    assert (await store.archive("s-1")).archived and len(await store.read("s-1")) == 7
    (tmp_path / "s-1.jsonl").write_bytes(b"".join([chunk async for chunk in store.raw("s-1")]))
    await store.delete("s-1")
    assert await store.list() == []


@pytest.mark.parametrize("step", ["pack", "sync_directory"])
async def test_a_disk_that_refuses_an_archive_leaves_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    content = await filled(tmp_path)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(session_files, step, refuse)
        with pytest.raises(SessionWriteFailed, match="No space left"):
            await store_in(tmp_path).archive("s-1")
    assert (tmp_path / "s-1.jsonl").read_bytes() == content
    assert not leftovers(tmp_path)
    session = await store_in(tmp_path).open("s-1")
    await session.close()


async def test_a_disk_that_refuses_to_take_a_log_out_leaves_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = await filled(tmp_path)
    store = store_in(tmp_path)
    await store.archive("s-1")

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(session_files, "publish_file", refuse)
        with pytest.raises(SessionWriteFailed, match="Input/output error"):
            await store.open("s-1")
    assert (await store.entry("s-1")).archived
    assert await raw_of(lambda _: store, "s-1") == content


async def test_an_archive_that_is_none_is_listed_as_unreadable(tmp_path: Path) -> None:
    await filled(tmp_path)
    packed_as(tmp_path, b"not compressed at all\n")
    (entry,) = await store_in(tmp_path).list()
    assert entry.status == "unreadable" and entry.archived and "header" in entry.reason
    assert (await store_in(tmp_path).read("s-1")).problems
    with pytest.raises(SessionUnreadable):
        await store_in(tmp_path).open("s-1")
    assert (tmp_path / "s-1.jsonl.gz").read_bytes() == b"not compressed at all\n"


def test_what_is_packed_comes_out_and_says_how_long_it_is(tmp_path: Path) -> None:
    for number, content in enumerate([b"", b"one line without an end", b"a\nb\n", b"x" * 3_000_000 + b"\ny"]):
        path = tmp_path / str(number)
        pack(io.BytesIO(content), path, Summary(len(content), "idle"))
        assert unpack(path.read_bytes()) == (content, [])
        with path.open("rb") as file:
            assert summary_of(file.fileno()) == Summary(len(content), "idle")


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_any_bytes_unpack_to_something_and_undamaged_members_before_survive(data: st.DataObject) -> None:
    members = data.draw(st.lists(st.binary(max_size=300), min_size=1, max_size=4))
    packed = [gzip.compress(member, mtime=0) for member in members]
    content = bytearray(b"".join(packed))
    at = data.draw(st.integers(0, len(content) - 1))
    match data.draw(st.sampled_from(["cut", "change", "insert", "append"])):
        case "cut":
            del content[at:]
        case "change":
            content[at] ^= data.draw(st.integers(1, 255))
        case "insert":
            content[at:at] = data.draw(st.binary(max_size=20))
        case _:
            at = len(content)
            content += data.draw(st.binary(max_size=40))
    out, _ = unpack(bytes(content))
    whole = 0
    while whole < len(packed) and sum(map(len, packed[: whole + 1])) <= at:
        whole += 1
    assert out.startswith(b"".join(members[:whole]))


@given(st.binary(max_size=400))
@settings(max_examples=150, deadline=None)
def test_garbage_unpacks_without_an_error(content: bytes) -> None:
    unpack(content)
    unpack(b"\x1f\x8b\x08" + content)
