"""Blobs as files: stored once, compressed where it helps, checked whenever they are read."""

from __future__ import annotations

import hashlib
import random
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.capabilities.persistence.providers.blob_files import FileBlobs
from leadline.core.llm.messages import ImageRef, Text, UserMessage
from leadline.core.session.blobs import Blobs
from leadline.core.session.errors import BlobDamaged, BlobMissing, BlobWriteFailed
from leadline.core.session.events import UserEntered
from leadline.testing.sessions import MemoryBlobs, MemoryLog, memory_session

NOISE = random.Random(1).randbytes(100_000)
TEXT = b"The channel was sounded at nine fathoms. " * 2000


@pytest.fixture(params=["files", "memory"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    return FileBlobs(tmp_path / "blobs") if request.param == "files" else MemoryBlobs()


@pytest.mark.parametrize("data", [b"", b"\x00", b"x", TEXT, NOISE])
@pytest.mark.parametrize("synced", [False, True])
def test_bytes_come_back_under_their_hash(blobs: Blobs, data: bytes, synced: bool) -> None:
    name = blobs.put(data, synced=synced)
    assert name == hashlib.sha256(data).hexdigest()
    assert blobs.has(name) and blobs.get(name) == data
    assert blobs.put(data, synced=synced) == name


@given(st.binary(max_size=300))
def test_any_bytes_come_back(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    store = FileBlobs(tmp_path_factory.getbasetemp() / "any")
    assert store.get(store.put(data)) == data


@pytest.mark.parametrize("name", ["0" * 64, "", "../../etc/passwd", "A" * 64, "0" * 63])
def test_what_is_not_stored_is_told(blobs: Blobs, name: str) -> None:
    assert not blobs.has(name)
    with pytest.raises(BlobMissing, match=name or "''"):
        blobs.get(name)


def test_text_is_compressed_and_noise_is_not(tmp_path: Path) -> None:
    store = FileBlobs(tmp_path)
    sizes: list[int] = []
    for data in (TEXT, NOISE):
        name = store.put(data)
        path = tmp_path / name[:2] / name
        sizes.append(path.stat().st_size)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sizes[0] < len(TEXT) / 10 and sizes[1] == len(NOISE) + 1


@pytest.mark.parametrize("data", [TEXT, NOISE])
def test_damage_is_found_and_the_bytes_can_be_stored_again(tmp_path: Path, data: bytes) -> None:
    store = FileBlobs(tmp_path)
    name = store.put(data)
    path = tmp_path / name[:2] / name
    whole = path.read_bytes()
    for damaged in (
        b"",
        b"\x07",
        whole[:-1],
        whole + b"x",
        whole[:50] + b"!" + whole[51:],
        b"\x01" + whole[1:5],
    ):
        path.write_bytes(damaged)
        with pytest.raises(BlobDamaged, match=name):
            store.get(name)
    assert store.put(data) == name
    assert store.get(name) == data


def test_a_blob_that_cannot_be_stored_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BlobWriteFailed, match="try again"):
        FileBlobs(tmp_path / "file").put(b"data")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_one_blob_stored_by_many_threads_is_whole(tmp_path: Path) -> None:
    store = FileBlobs(tmp_path)
    threads = [threading.Thread(target=store.put, args=(TEXT,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    name = hashlib.sha256(TEXT).hexdigest()
    assert store.get(name) == TEXT
    assert [path.name for path in (tmp_path / name[:2]).iterdir()] == [name]


@pytest.mark.case("S18")
def test_one_picture_in_ten_turns_is_stored_once_and_the_log_stays_small(tmp_path: Path) -> None:
    store, session = FileBlobs(tmp_path), memory_session()
    picture = random.Random(2).randbytes(5_000_000)
    for number in range(10):
        image = ImageRef(store.put(picture), "image/png")
        session.append(UserEntered(message=UserMessage(f"u{number}", (Text("see"), image))))
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1
    sink = session._sink
    assert isinstance(sink, MemoryLog) and len(sink.content) < 50_000
