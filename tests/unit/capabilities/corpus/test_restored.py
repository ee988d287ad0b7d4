"""A corpus made of documents that were read before is what it was, whatever became of the files."""

from __future__ import annotations

import shutil

import pytest

from leadline.capabilities.corpus.seam import CorpusClosed, UnknownDocument

pytestmark = pytest.mark.anyio


async def test_searches_and_texts_are_those_of_the_corpus_as_it_was_read(desk, folder, write):
    write(
        folder,
        {
            "rules.md": "# Rules\n\nA hotel night may cost 180 euros.",
            "other.md": "# Other\n\nThe ferry leaves at nine. A hotel is near.",
            "图书馆.md": "# 图书馆\n\n图书馆周日开放。",
            "empty.txt": "",
        },
    )
    corpora = desk.corpora()
    before = await corpora.open([folder])
    hits = {query: before.search(query) for query in ("hotel", "ferry", "图书馆", "nothing of it")}
    documents, roots = before.documents(), before.roots
    texts = {one.id: before.text(one.id) for one in documents}
    before.close()
    shutil.rmtree(folder)

    restored = corpora.restore(roots, documents)
    assert restored.documents() == documents
    assert restored.total == 4
    assert {query: restored.search(query) for query in hits} == hits
    assert {one.id: restored.text(one.id) for one in restored.documents()} == texts
    assert restored.outcomes() == {"ok": 3, "thin": 1}
    with pytest.raises(UnknownDocument):
        restored.text("d-0000000000")


async def test_a_text_that_the_store_has_lost_is_empty_and_is_not_found(desk, folder, write):
    write(folder, {"a.md": "# One\n\nOf the heron.", "b.md": "# Two\n\nOf the heron and the hare."})
    corpora = desk.corpora()
    documents = (await corpora.open([folder])).documents()
    del desk.blobs.stored[documents[0].snapshot.text_sha256]
    restored = corpora.restore(["share"], documents)
    assert restored.text(documents[0].id) == ""
    assert [hit.document.location for hit in restored.search("heron")] == ["b.md"]


async def test_it_is_closed_with_the_provider(desk, folder, write):
    write(folder, {"a.md": "Of the heron."})
    corpora = desk.corpora()
    restored = corpora.restore(["share"], (await corpora.open([folder])).documents())
    assert restored.search("heron")
    corpora.close()
    with pytest.raises(CorpusClosed):
        restored.search("heron")
