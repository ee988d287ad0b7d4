"""Files that claim to be exports: whatever somebody made of them, they are refused whole and nothing is stored."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.capabilities.retention.providers import checking
from leadline.capabilities.retention.providers.container import Writer
from leadline.capabilities.retention.providers.exporting import Export
from leadline.capabilities.retention.providers.scan import LogCheck
from leadline.capabilities.retention.seam import ImportRefused, NotAnExport
from leadline.core.session.codec import Header, encode_header
from leadline.core.session.events import Event
from leadline.testing.conformance.session_store import Noted, whole_turn
from leadline.testing.sessions import MemoryBlobs, MemorySessions

from .conftest import Opener, Place


@pytest.fixture(params=["jsonl"])
def store_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def good(opened: Opener, tmp_path: Path) -> dict[str, bytes]:
    """The members of a good file."""
    async with opened("source") as source:
        await source.family()
        await source.retention.export("r", tmp_path / "good")
    with zipfile.ZipFile(tmp_path / "good") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path: Path, members: Mapping[str, bytes]) -> Path:
    """A file of the right form with these members."""
    with path.open("w+b") as file:
        out = Writer(file)
        for name, data in members.items():
            out.add(name, data)
        out.close()
    return path


def changed(members: Mapping[str, bytes], change: Callable[[dict[str, Any]], object]) -> dict[str, bytes]:
    """`members` with another manifest."""
    manifest = json.loads(members["manifest.json"])
    change(manifest)
    return {**members, "manifest.json": json.dumps(manifest).encode()}


async def log_of(header: Header, *events: Event) -> bytes:
    """A log with a sound chain."""
    store = MemorySessions()
    session = await store.create(header)
    session.append_all([*whole_turn(), *events])
    return bytes(store.logs[header.id].content)


async def with_logs(members: Mapping[str, bytes], root: str, *logs: bytes) -> dict[str, bytes]:
    """`members` with these logs in place of its own, listed as an export would list them."""
    kept = {name: data for name, data in members.items() if not name.startswith("sessions/")}
    listed: list[dict[str, object]] = []
    for log in logs:
        check = LogCheck()
        check.feed(log)
        check.end()
        assert check.header is not None
        kept[f"sessions/{check.header.id}.jsonl"] = log
        listed.append(
            {
                "id": check.header.id,
                "parent": check.header.parent,
                "kind": check.header.kind,
                "bytes": check.size,
                "sha256": check.sha256,
                "events": check.events,
                "digest": check.digest,
                "sound": not check.problems,
            }
        )
    return changed(kept, lambda it: it.update(root=root, sessions=listed))


async def refused(place: Place, path: Path, why: str | None = None) -> ImportRefused:
    """The refusal of `path`, after which nothing at all has changed."""
    before = {it: it.read_bytes() for it in place.root.rglob("*") if it.is_file() and it.name != ".lock"}
    with pytest.raises(ImportRefused, match=why) as caught:
        await place.retention.import_(path)
    after = {it: it.read_bytes() for it in place.root.rglob("*") if it.is_file() and it.name != ".lock"}
    assert after == before
    assert str(path) in str(caught.value)
    return caught.value


@pytest.mark.anyio
async def test_what_is_no_file_of_this_form_is_told(place: Place, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("hello")
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("a.txt", "x")
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 1 << 33)
    for name in ("none", "pipe", "empty", "text", "huge", "."):
        with pytest.raises(NotAnExport):
            await place.retention.import_(tmp_path / name)
    await refused(place, tmp_path / "zip", "not imported")
    await refused(place, written(tmp_path / "bare", {"a.txt": b"x"}), "has no manifest.json")
    bundle = {"manifest.json": b'{"form":"leadline-bundle","version":1}'}
    await refused(place, written(tmp_path / "bundle", bundle), "leadline-bundle")


@pytest.mark.anyio
@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/etc/passwd",
        "sessions/../../evil.jsonl",
        "C:\\evil",
        "sessions\\evil.jsonl",
        "sessions/./x.jsonl",
        "sessions//x.jsonl",
        "sessions/a b.jsonl",
        "sessions/x\x00.jsonl",
        "sessions/é.jsonl",
        "x" * 500,
    ],
)
async def test_a_name_that_leads_elsewhere_is_refused(place: Place, tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("x"), b"x")
    raw = (tmp_path / "zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "evil", "w") as archive:
        info = zipfile.ZipInfo("x", (1980, 1, 1, 0, 0, 0))
        info.filename = name
        archive.writestr(info, b"x")
    assert raw != (tmp_path / "evil").read_bytes()
    await refused(place, tmp_path / "evil", "not imported")
    assert not (tmp_path / "evil.jsonl").exists()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "name",
    [
        "sessions/.hidden.jsonl",
        "sessions/r.jsonl.gz",
        "sessions/r.lock",
        "beside/r/.x",
        "beside/r",
        "beside/nobody/r.damaged-1",
        "blobs/xyz",
        "blobs/" + "A" * 64,
        "other",
        "manifest.json/x",
        "home/index.sqlite",
    ],
)
async def test_a_member_that_an_export_does_not_have_is_refused(
    place: Place, tmp_path: Path, good: dict[str, bytes], name: str
) -> None:
    await refused(place, written(tmp_path / "evil", {**good, name: b"x"}))


@pytest.mark.anyio
async def test_a_packed_member_is_refused_before_it_is_unpacked(
    place: Place, tmp_path: Path, good: dict[str, bytes]
) -> None:
    with zipfile.ZipFile(tmp_path / "bomb", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in good.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
        bomb = io.BytesIO(b"\0" * (64 << 20)).getvalue()
        archive.writestr("blobs/" + hashlib.sha256(bomb).hexdigest(), bomb)
    await refused(place, tmp_path / "bomb", "not of the form")


@pytest.mark.anyio
async def test_bytes_before_between_and_behind_are_refused(
    place: Place, tmp_path: Path, good: dict[str, bytes]
) -> None:
    raw = written(tmp_path / "good2", good).read_bytes()
    for number, data in enumerate(
        (b"#!/bin/sh\n" + raw, raw + b"x", raw[:-1], raw[:-22], raw[: len(raw) // 2])
    ):
        (tmp_path / f"bad{number}").write_bytes(data)
        await refused(place, tmp_path / f"bad{number}")


@pytest.mark.anyio
async def test_a_member_that_is_there_twice_is_refused(
    place: Place, tmp_path: Path, good: dict[str, bytes]
) -> None:
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        zipfile.ZipFile(tmp_path / "evil", "w") as archive,
    ):
        for name in (*good, "sessions/r.jsonl"):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), good[name])
    await refused(place, tmp_path / "evil")
    with (tmp_path / "twice").open("w+b") as file:
        out = Writer(file)
        for name in (*good, "sessions/r.jsonl"):
            out._names.clear()
            out.add(name, good[name])
        out.close()
    await refused(place, tmp_path / "twice", "sessions/r.jsonl is there twice")
    twice = changed(good, lambda it: it["sessions"].append(it["sessions"][0]))
    await refused(place, written(tmp_path / "listed", twice), "twice")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda it: it.update(version=2), "version 2"),
        (lambda it: it.update(version="x"), "cannot be read"),
        (lambda it: it.update(more=1), "cannot be read"),
        (lambda it: it.update(root="nobody"), "not among its sessions"),
        (lambda it: it["sessions"].pop(), "does not list sessions/"),
        (lambda it: it["blobs"].pop(), "does not list blobs/"),
        (lambda it: it["blobs"].append({"sha256": "0" * 64, "bytes": 1}), "not there"),
        (lambda it: it["blobs"][0].update(bytes=1), "has 1 bytes; it has"),
        (lambda it: it["sessions"][0].update(sha256="0" * 64), "does not have the hash"),
        (lambda it: it["sessions"][0].update(events=3), "does not end where"),
        (lambda it: it["sessions"][0].update(digest="0" * 32), "does not end where"),
        (lambda it: it["sessions"][1].update(parent=None), "not the one that the manifest tells of"),
        (lambda it: it["sessions"][0].update(kind="agent"), "not the one that the manifest tells of"),
        (lambda it: it["sessions"][0].update(id="../r"), "not among|not there"),
    ],
)
async def test_a_manifest_that_says_something_else_is_refused(
    place: Place,
    tmp_path: Path,
    good: dict[str, bytes],
    change: Callable[[dict[str, Any]], object],
    why: str | None,
) -> None:
    await refused(place, written(tmp_path / "evil", changed(good, change)), why)


@pytest.mark.anyio
async def test_a_blob_with_another_hash_is_refused(
    place: Place, tmp_path: Path, good: dict[str, bytes]
) -> None:
    name = next(it for it in good if it.startswith("blobs/"))
    evil = {**good, name: bytes(len(good[name]))}
    await refused(place, written(tmp_path / "evil", evil), f"the bytes of {name} do not have the hash")


@pytest.mark.anyio
async def test_an_altered_log_is_refused_at_its_place(
    place: Place, tmp_path: Path, good: dict[str, bytes]
) -> None:
    log = good["sessions/r.jsonl"].replace(b"fathoms", b"FATHOMS")
    evil = changed(
        {**good, "sessions/r.jsonl": log},
        lambda it: it["sessions"][0].update(sha256=hashlib.sha256(log).hexdigest()),
    )
    await refused(place, written(tmp_path / "evil", evil), "session r")


@pytest.mark.anyio
async def test_a_header_with_another_id_is_refused(
    place: Place, tmp_path: Path, good: dict[str, bytes]
) -> None:
    evil = changed(
        {**good, "sessions/r.jsonl": good["sessions/c1.jsonl"]},
        lambda it: it["sessions"][0].update(
            {k: v for k, v in next(o for o in it["sessions"] if o["id"] == "c1").items() if k != "id"}
        ),
    )
    await refused(place, written(tmp_path / "evil", evil), "says that it is session 'c1'")


@pytest.mark.anyio
async def test_a_log_without_header_or_of_a_later_format_is_refused(
    place: Place, tmp_path: Path, good: dict[str, bytes]
) -> None:
    for head, why in (
        (b"\xff\xfe\n", "no header that can be used"),
        (b'{"format":99,"id":"r","kind":"research","created":1.0}\n', "format 99"),
        (b"", "no header that can be used"),
    ):
        log = head + good["sessions/r.jsonl"].partition(b"\n")[2] * bool(head)
        evil = changed(
            {**good, "sessions/r.jsonl": log},
            lambda it, log=log: it["sessions"][0].update(
                bytes=len(log), sha256=hashlib.sha256(log).hexdigest(), sound=False
            ),
        )
        await refused(place, written(tmp_path / "evil", evil), why)


@pytest.mark.anyio
async def test_sessions_that_are_not_of_the_family_are_refused(
    place: Place, tmp_path: Path, good: dict[str, bytes]
) -> None:
    root = await log_of(Header(id="r", kind="agent", created=1.0))
    stranger = await log_of(Header(id="x", kind="agent", created=1.0))
    elsewhere = await log_of(Header(id="y", kind="agent", created=1.0, parent="z", depth=1))
    fork = await log_of(Header(id="f", kind="agent", created=1.0, parent="r", forked_at=0))
    first = await log_of(Header(id="a", kind="agent", created=1.0, parent="b", depth=1))
    second = await log_of(Header(id="b", kind="agent", created=1.0, parent="a", depth=1))
    self_made = await log_of(Header(id="s", kind="agent", created=1.0, parent="s", depth=1))
    for logs, why in (
        ([root, stranger], "session x was made for None"),
        ([root, elsewhere], "session y was made for 'z'"),
        ([root, fork], "session f is a fork"),
        ([root, first, second], "session a was made for 'b'"),
        ([root, self_made], "session s was made for 's'"),
    ):
        await refused(place, written(tmp_path / "evil", await with_logs(good, "r", *logs)), why)
    evil = await with_logs(good, "a", first, second)
    await refused(place, written(tmp_path / "evil", evil), "its root a says that it was made for session b")
    evil = await with_logs(
        good, "r", root, await log_of(Header(id="R", kind="agent", created=1.0, parent="r"))
    )
    await refused(place, written(tmp_path / "evil", evil), "capital letters")


@pytest.mark.anyio
async def test_a_session_may_not_foist_itself_on_one_that_is_here(
    place: Place, tmp_path: Path, good: dict[str, bytes]
) -> None:
    await place.session("victim")
    evil = await with_logs(
        good, "x", await log_of(Header(id="x", kind="agent", created=1.0, parent="victim", depth=1))
    )
    await refused(place, written(tmp_path / "evil", evil), "which is here and does not know it")
    session = await place.store.open("victim")
    session.append(Noted(text="x"))
    await session.close()
    assert (await place.retention.import_(tmp_path / "evil")).added == ("x",), "now it does"


@pytest.mark.anyio
async def test_an_id_that_stands_here_for_another_log_is_refused(
    place: Place, tmp_path: Path, good: dict[str, bytes]
) -> None:
    await place.session("g")
    problem = await refused(place, written(tmp_path / "file", good), "session g is here already")
    assert problem.problems == ("session g is here already, with another log",)


@pytest.mark.anyio
async def test_what_stands_beside_a_log_is_taken_in_under_its_own_name_alone(
    place: Place, tmp_path: Path, good: dict[str, bytes]
) -> None:
    for name in ("c1.jsonl", "other.damaged-1", "r.lock"):
        data = b"x"
        evil = changed(
            {**good, f"beside/r/{name}": data},
            lambda it, name=name, data=data: it["beside"].append(
                {"session": "r", "name": name, "bytes": 1, "sha256": hashlib.sha256(data).hexdigest()}
            ),
        )
        path = written(tmp_path / f"evil-{name}", evil)
        with pytest.raises(ImportRefused):
            await place.retention.import_(path)
        assert await place.ids() == set() and list((place.root / "imports").glob("*.json")) == []


@pytest.mark.anyio
async def test_a_long_line_and_deep_json_cost_little(
    place: Place, tmp_path: Path, good: dict[str, bytes]
) -> None:
    head = encode_header(Header(id="r", kind="agent", created=1.0))
    for body in (b"x" * (20 << 20), b"[" * (1 << 20) + b"\n", b"\n" * (1 << 18)):
        evil = await with_logs(good, "r", head + body)
        report = await place.retention.import_(written(tmp_path / "evil", evil))
        assert report.added == ("r",) and 0 < len(report.problems) <= 20
        await place.retention.delete("r")


@pytest.fixture(scope="module")
def good_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A good file."""

    async def make() -> bytes:
        store, blobs, path = MemorySessions(), MemoryBlobs(), tmp_path_factory.getbasetemp() / "small"
        session = await store.create(Header(id="r", kind="agent", created=1.0))
        session.append_all([*whole_turn(), Noted(text=blobs.put(b"blob"))])
        await session.close()
        await Export(store, blobs, "x").run("r", path)
        return path.read_bytes()

    return anyio.run(make)


@settings(max_examples=300, deadline=None)
@given(at=st.integers(min_value=0, max_value=1 << 20), bit=st.integers(min_value=0, max_value=7))
def test_any_bit_that_is_flipped_is_found(good_bytes: bytes, at: int, bit: int) -> None:
    checking.check(io.BytesIO(good_bytes), Path("good"))
    flipped = bytearray(good_bytes)
    flipped[at % len(flipped)] ^= 1 << bit
    with pytest.raises(ImportRefused):
        checking.check(io.BytesIO(flipped), Path("flipped"))


@settings(max_examples=200, deadline=None)
@given(end=st.integers(min_value=0, max_value=1 << 20))
def test_every_beginning_of_a_file_is_refused(good_bytes: bytes, end: int) -> None:
    with pytest.raises(ImportRefused):
        checking.check(io.BytesIO(good_bytes[: end % len(good_bytes)]), Path("beginning"))
