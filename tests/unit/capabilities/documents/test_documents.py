"""Readers come and go with their plugins; snapshots keep the text."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

import pytest

from leadline.capabilities.documents.plugin import built_in_readers, plugin
from leadline.capabilities.documents.providers.dates import iso_date
from leadline.capabilities.documents.providers.titles import first_line_title, usable_title
from leadline.capabilities.documents.seam import (
    Certainty,
    Documents,
    DuplicateReader,
    Extraction,
    Limits,
    NoReader,
    PageSpan,
    Recognition,
    Snapshots,
    page_at,
)
from leadline.core.session.blobs import Blobs
from leadline.kernel.context import Context, Kernel
from leadline.kernel.errors import BootFailed, ConfigError, PluginFailed
from leadline.kernel.plugin import Plugin
from leadline.testing.sessions import MemoryBlobs


class ShoutReader:
    """Reads text in capitals."""

    name = "shout"
    version = "1"

    def recognise(self, data: bytes, name: str) -> Recognition | None:
        return Recognition("text/shout", Certainty.SIGNATURE) if data.startswith(b"!") else None

    def read(self, data: bytes, media_type: str, name: str, limits: Limits) -> Extraction:
        text = data.decode().upper() + "\r\n\ud800\0"
        return Extraction(
            "ok", "", media_type, text, None, None, (PageSpan(1, 0, 3),), self.name, self.version
        )


async def _provide_blobs(ctx: Context, config: None) -> None:
    ctx.provide(Blobs, MemoryBlobs())


blobs = Plugin("memory-blobs", _provide_blobs, provides=(Blobs,))


@pytest.fixture
async def kernel() -> AsyncIterator[Kernel]:
    async with Kernel() as kernel:
        await kernel.root.mount(blobs)
        yield kernel


@pytest.mark.anyio
async def test_a_snapshot_names_bytes_and_text_and_gives_the_text_back(kernel: Kernel) -> None:
    await kernel.root.mount(plugin)
    snapshots = kernel.root.get(Snapshots)
    data = "# Größe\r\n\r\nText.\r\n".encode("cp1252")
    snapshot = await snapshots.take(data, "a.md")
    text = "# Größe\n\nText.\n"
    assert snapshot.bytes_sha256 == hashlib.sha256(data).hexdigest()
    assert snapshot.text_sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert (snapshot.length, snapshot.outcome, snapshot.title) == (len(text), "ok", "Größe")
    assert (snapshot.method, snapshot.encoding) == ("text", "cp1252")
    assert snapshots.text(snapshot) == text == snapshots.text(snapshot.text_sha256)
    assert snapshots.has(snapshot)
    assert not snapshots.has(snapshot.bytes_sha256)


@pytest.mark.anyio
async def test_the_bytes_are_kept_only_on_request(kernel: Kernel) -> None:
    await kernel.root.mount(plugin, {"keep_bytes": True})
    snapshots = kernel.root.get(Snapshots)
    assert snapshots.has((await snapshots.take(b"text", "a")).bytes_sha256)


@pytest.mark.anyio
async def test_a_reader_of_a_plugin_is_there_as_long_as_the_plugin(kernel: Kernel) -> None:
    async def apply(ctx: Context, config: None) -> None:
        ctx.get(Documents).register(ctx, ShoutReader())

    await kernel.root.mount(plugin)
    documents = kernel.root.get(Documents)
    before = documents.fingerprint
    fiber = await kernel.root.mount(Plugin("shout", apply, needs=(Documents,)))
    extraction = await documents.extract(b"!hear", "a.txt")
    assert (extraction.text, extraction.media_type) == ("!HEAR\n", "text/shout")
    assert extraction.pages == ()  # cleaning moved the offsets, so they are dropped rather than wrong
    assert documents.fingerprint != before
    await fiber.dispose()
    assert (await documents.extract(b"!hear", "a.txt")).method == "text"
    assert documents.fingerprint == before


@pytest.mark.anyio
async def test_two_readers_of_one_name_are_refused(kernel: Kernel) -> None:
    await kernel.root.mount(plugin)
    documents = kernel.root.get(Documents)
    documents.register(kernel.root, ShoutReader())
    with pytest.raises(DuplicateReader, match="shout"):
        documents.register(kernel.root, ShoutReader())


@pytest.mark.anyio
async def test_a_wrong_setting_is_named(kernel: Kernel) -> None:
    with pytest.raises((ConfigError, PluginFailed, BootFailed), match="max_byte"):
        fiber = await kernel.root.mount(plugin, {"max_byte": 1})
        raise fiber.error or AssertionError("accepted")


@pytest.mark.anyio
async def test_reading_without_readers_says_what_to_enable() -> None:
    with pytest.raises(NoReader, match="enable"):
        await Documents().extract(b"x", "a")


def test_the_choice_of_a_reader_does_not_depend_on_the_order_of_registration() -> None:
    samples = [b"%PDF-1.4\n%%EOF", b"<html><p>x</p></html>", b"plain", b"\x89PNG\r\n\x1a\n\0\0", b"{\\rtf1}"]
    forward = Documents(None, built_in_readers())
    backward = Documents(None, built_in_readers()[::-1])
    for data in samples:
        assert forward.extract_now(data, "a") == backward.extract_now(data, "a")
    assert forward.fingerprint == backward.fingerprint


def test_another_limit_gives_another_fingerprint() -> None:
    assert Documents(Limits(max_text=5)).fingerprint != Documents(Limits(max_text=6)).fingerprint


@pytest.mark.case("R20")
def test_a_page_is_told_only_where_there_are_pages() -> None:
    pages = (PageSpan(1, 0, 10), PageSpan(2, 11, 20), PageSpan(3, 21, 21), PageSpan(4, 22, 30))
    assert [page_at(pages, offset) for offset in (0, 10, 11, 22, 29)] == [1, 1, 2, 4, 4]
    assert page_at((), 5) is None
    assert page_at((PageSpan(1, 3, 9),), 0) is None


@pytest.mark.parametrize(
    ("raw", "date"),
    [
        ("2024-02-03", "2024-02-03"),
        ("2024-02-03T23:59:59-08:00", "2024-02-03"),
        ("D:20220403193102+02'00'", "2022-04-03"),
        ("20240203", "2024-02-03"),
        ("Sat, 03 Feb 2024 10:00:00 GMT", "2024-02-03"),
        ("2024-13-01", None),
        ("0001-01-01", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_dates_are_read_in_the_forms_that_metadata_has(raw: str | None, date: str | None) -> None:
    assert iso_date(raw) == date


def test_titles_are_one_line_and_no_placeholders() -> None:
    assert usable_title("  A \n B ") == "A B"
    assert [usable_title(raw) for raw in ("Untitled", "report.docx", "---", "", None)] == [None] * 5
    assert first_line_title("# Plan\ntext") == "Plan"
    assert first_line_title("This is a whole sentence.\n") is None
    wrapped = "the first of several lines of a paragraph that was wrapped at eighty\n" * 2
    assert first_line_title(wrapped) is None
