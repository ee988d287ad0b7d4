"""A corpus is opened once, kept up to date cheaply, and stays as it was while it is open."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator

import anyio
import pytest

from leadline.capabilities.corpus.plugin import plugin
from leadline.capabilities.corpus.seam import (
    Corpora,
    CorpusClosed,
    CorpusUnavailable,
    UnknownDocument,
    make_document_id,
)
from leadline.capabilities.documents.plugin import plugin as documents_plugin
from leadline.capabilities.documents.seam import Snapshots
from leadline.core.clock import plugin as clock_plugin
from leadline.core.home import plugin as home_plugin
from leadline.core.session.blobs import Blobs
from leadline.kernel.context import Context, Kernel
from leadline.kernel.plugin import Plugin
from leadline.testing.conformance.kernel import check_leaves_no_trace
from leadline.testing.sessions import MemoryBlobs

pytestmark = pytest.mark.anyio


async def test_every_file_is_a_document_with_an_outcome(desk, folder, tmp_path, write):
    write(
        folder,
        {"a.md": "# Title\n\nText.", "b.bin": bytes(range(256)), "empty.txt": "", "big.txt": "x" * 5000},
    )
    (folder / "out").symlink_to(tmp_path)
    desk.limits = type(desk.limits)(max_bytes=4000)
    corpus = await desk.open(folder)
    assert {document.location: document.outcome for document in corpus.documents()} == {
        "a.md": "ok",
        "b.bin": "unsupported",
        "big.txt": "unsupported",
        "empty.txt": "thin",
        "out": "disallowed",
    }
    assert corpus.outcomes() == {"ok": 1, "unsupported": 2, "thin": 1, "disallowed": 1}
    assert all(document.reason for document in corpus.documents() if document.outcome != "ok")
    assert all(document.title for document in corpus.documents())


async def test_a_document_is_known_by_location_and_content(desk, folder, write):
    write(folder, {"a.md": "Text.", "copy.md": "Text."})
    corpus = await desk.open(folder)
    first, second = corpus.documents()
    assert first.id == make_document_id("a.md", first.snapshot.bytes_sha256)
    assert first.id.startswith("d-")
    assert len(first.id) == 12
    assert first.id != second.id
    assert first.snapshot.text_sha256 == second.snapshot.text_sha256
    assert corpus.text(first.id) == "Text."
    assert corpus.document(first.id) == first


async def test_an_unknown_id_is_refused_with_the_nearest(desk, folder, write):
    write(folder, {"a.md": "Text."})
    corpus = await desk.open(folder)
    known = corpus.documents()[0].id
    with pytest.raises(UnknownDocument) as caught:
        corpus.document(known[:-1] + ("0" if known[-1] != "0" else "1"))
    assert caught.value.nearest == (known,)


async def test_nothing_is_read_again_when_nothing_changed(desk, folder, write):
    write(folder, {f"{n}.md": f"text {n}" for n in range(20)})
    (await desk.open(folder)).close()
    seen: list[str] = []
    corpus = await desk.open(folder, progress=lambda done, total, location: seen.append(location))
    assert seen == []
    assert len(corpus.documents()) == 20
    assert len(desk.text_reader.names) == 20


async def test_a_file_that_changed_just_before_it_was_read_is_looked_at_again(desk, folder, write):
    write(folder, {"a.md": "one"})
    now = desk.corpora()._clock.now()
    os.utime(folder / "a.md", (now, now))
    (await desk.open(folder)).close()
    (folder / "a.md").write_text("two")
    os.utime(folder / "a.md", (now, now))  # same size, same time: only its bytes tell
    corpus = await desk.open(folder)
    assert corpus.text(corpus.documents()[0].id) == "two"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no time of the last change of a file")
async def test_a_change_that_was_dated_back_is_noticed(desk, folder, write):
    write(folder, {"a.md": "one"})
    (await desk.open(folder)).close()
    before = (folder / "a.md").stat()
    (folder / "a.md").write_text("two")
    os.utime(folder / "a.md", ns=(before.st_atime_ns, before.st_mtime_ns))
    corpus = await desk.open(folder)
    assert corpus.text(corpus.documents()[0].id) == "two"


async def test_changed_new_and_deleted_files_are_noticed(desk, folder, write):
    write(folder, {"stay.md": "constant", "change.md": "before", "go.md": "farewell"})
    (await desk.open(folder)).close()
    (folder / "change.md").write_text("afterwards")
    (folder / "go.md").unlink()
    write(folder, {"new.md": "arrival"})
    desk.text_reader.names.clear()
    corpus = await desk.open(folder)
    assert [document.location for document in corpus.documents()] == ["change.md", "new.md", "stay.md"]
    assert sorted(desk.text_reader.names) == ["change.md", "new.md"]
    assert corpus.search("farewell") == corpus.search("before") == []
    assert [hit.document.location for hit in corpus.search("afterwards arrival constant")]


async def test_a_file_for_which_there_is_no_memory_costs_nobody_the_others(desk, folder, write, monkeypatch):
    write(folder, {"big.md": "vast", "small.md": "tiny"})
    read = desk.text_reader.read

    def short_of_memory(data, *others):
        if data == b"vast":
            raise MemoryError
        return read(data, *others)

    monkeypatch.setattr(desk.text_reader, "read", short_of_memory)
    corpus = await desk.open(folder)
    big, small = corpus.documents()
    assert (big.outcome, big.reason) == ("error", "not enough memory to read it")
    assert corpus.text(small.id) == "tiny"
    corpus.close()
    monkeypatch.undo()
    corpus = await desk.open(folder)
    assert corpus.text(corpus.documents()[0].id) == "vast"


async def test_a_renamed_file_is_not_extracted_again(desk, folder, write):
    write(folder, {"old/a.md": "# Tides\n\nText."})
    first = await desk.open(folder)
    before = first.documents()[0]
    first.close()
    (folder / "old").rename(folder / "new")
    (folder / "new" / "a.md").rename(folder / "new" / "b.md")
    desk.text_reader.names.clear()
    corpus = await desk.open(folder)
    after = corpus.documents()[0]
    assert (after.location, after.title) == ("new/b.md", "Tides")
    assert after.id != before.id
    assert after.snapshot == before.snapshot
    assert desk.text_reader.names == []


async def test_another_version_of_a_reader_reads_everything_again(desk, folder, write):
    write(folder, {"a.md": "text"})
    (await desk.open(folder)).close()
    desk.text_reader = type(desk.text_reader)("2")
    corpus = await desk.open(folder)
    assert desk.text_reader.names == ["a.md"]
    assert corpus.documents()[0].snapshot.method_version == "2"


async def test_a_text_that_is_gone_from_the_blobs_is_stored_again(desk, folder, write):
    write(folder, {"a.md": "text"})
    (await desk.open(folder)).close()
    desk.blobs.stored.clear()
    corpus = await desk.open(folder)
    assert desk.blobs.has(corpus.documents()[0].snapshot.text_sha256)


async def test_an_open_corpus_stays_as_it_was(desk, folder, write):
    write(folder, {"a.md": "the first edition"})
    before = await desk.open(folder)
    (folder / "a.md").write_text("the second printing")
    after = await desk.open(folder)
    assert [hit.snippet for hit in before.search("edition")] == ["the first edition"]
    assert before.text(before.documents()[0].id) == "the first edition"
    assert before.search("printing") == []
    assert [hit.snippet for hit in after.search("printing")] == ["the second printing"]


async def test_progress_counts_every_file_that_is_read(desk, folder, write):
    write(folder, {f"{n}.md": "text" for n in range(5)})
    calls: list[tuple[int, int]] = []
    await desk.open(folder, progress=lambda done, total, location: calls.append((done, total)))
    assert calls == [(n, 5) for n in range(1, 6)]


@pytest.mark.case("W18")
async def test_an_index_that_was_left_half_way_is_completed(desk, folder, write):
    write(folder, {f"{n:03}.md": f"text number {n}" for n in range(200)})
    scope = anyio.CancelScope()

    def stop(done: int, total: int, location: str) -> None:
        if done == 150:
            scope.cancel()

    with scope:
        await desk.open(folder, progress=stop)
    assert scope.cancelled_caught
    read_before = len(desk.text_reader.names)
    corpus = await desk.open(folder)
    assert len(corpus.documents()) == 200
    assert len(corpus.search("number", 500)) == 200
    assert len(desk.text_reader.names) < read_before + 200


@pytest.mark.case("W18")
@pytest.mark.parametrize("damage", [b"", b"not a database at all" * 100, None])
async def test_a_damaged_index_is_built_anew(desk, folder, write, damage):
    write(folder, {f"{n}.md": f"text {n}" for n in range(50)})
    (await desk.open(folder)).close()
    path = next((desk.home / "corpora").glob("*.sqlite"))
    if damage is None:
        data = bytearray(path.read_bytes())
        data[4096:8192] = b"\xff" * 4096
        damage = bytes(data)
    path.write_bytes(damage)
    for side in ("-wal", "-shm"):
        path.with_name(path.name + side).unlink(missing_ok=True)
    corpus = await desk.open(folder)
    assert len(corpus.search("text", 100)) == 50


async def test_without_a_home_to_write_to_the_index_is_kept_in_memory(desk, folder, tmp_path, write):
    (tmp_path / "file").write_text("in the way")
    desk.home = tmp_path / "file" / "home"
    write(folder, {"a.md": "text"})
    corpus = await desk.open(folder)
    assert [hit.document.location for hit in corpus.search("text")] == ["a.md"]


async def test_two_that_index_the_same_folder_at_once_agree(desk, folder, write):
    write(folder, {f"{n:03}.md": f"text number {n}" for n in range(150)})
    corpora = []

    async def open_one() -> None:
        corpora.append(await desk.open(folder))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(open_one)
    assert [corpus.documents() for corpus in corpora] == [corpora[0].documents()] * 3
    assert [len(corpus.search("number", 500)) for corpus in corpora] == [150] * 3


async def test_the_data_directory_is_no_part_of_a_corpus_that_holds_it(desk, folder, write):
    desk.home = folder / "data"
    write(folder, {"a.md": "text"})
    (await desk.open(folder)).close()
    corpus = await desk.open(folder)
    assert [document.location for document in corpus.documents()] == ["a.md"]


async def test_a_missing_path_opens_nothing(desk, folder, write):
    write(folder, {"a.md": "text"})
    with pytest.raises(CorpusUnavailable, match="missing"):
        await desk.open(folder, folder / "missing")
    assert not (desk.home / "corpora").exists()


async def test_several_roots_are_one_corpus(desk, tmp_path, write):
    write(tmp_path, {"a/docs/x.md": "tides", "b/docs/x.md": "tides", "single.md": "tides"})
    corpus = await desk.open(tmp_path / "a/docs", tmp_path / "b/docs", tmp_path / "single.md")
    assert corpus.roots == ("docs", "docs-2", "single.md")
    assert len(corpus.search("tides")) == 3


async def test_a_closed_corpus_says_so(desk, folder, write):
    write(folder, {"a.md": "text"})
    corpus = await desk.open(folder)
    corpus.close()
    corpus.close()
    with pytest.raises(CorpusClosed, match="open it again"):
        corpus.search("text")
    with pytest.raises(CorpusClosed):
        corpus.text(corpus.documents()[0].id)


async def test_both_plugins_leave_no_trace(tmp_path):
    async def provide(ctx: Context, config: None) -> None:
        ctx.provide(Blobs, MemoryBlobs())

    blobs = Plugin("blobs", provide, provides=(Blobs,))
    below = [(blobs, None), (clock_plugin, None), (home_plugin, {"path": str(tmp_path / "home")})]
    await check_leaves_no_trace(documents_plugin, providers=below)
    await check_leaves_no_trace(plugin, providers=[*below, (documents_plugin, None)])


@pytest.fixture
async def kernel(tmp_path, desk) -> AsyncIterator[Kernel]:
    async def provide(ctx: Context, config: None) -> None:
        ctx.provide(Blobs, desk.blobs)

    async with Kernel() as kernel:
        await kernel.root.mount(Plugin("blobs", provide, provides=(Blobs,)))
        await kernel.root.mount(clock_plugin)
        await kernel.root.mount(home_plugin, {"path": str(tmp_path / "home")})
        await kernel.root.mount(documents_plugin)
        yield kernel


async def test_the_plugin_opens_corpora_and_closes_them_when_it_goes(kernel, folder, write):
    write(folder, {"a.md": "text"})
    fiber = await kernel.root.mount(plugin)
    corpus = await kernel.root.get(Corpora).open([folder])
    assert kernel.root.get(Snapshots).text(corpus.documents()[0].snapshot) == "text"
    await fiber.dispose()
    with pytest.raises(CorpusClosed):
        corpus.search("text")
