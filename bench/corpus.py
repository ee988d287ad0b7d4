"""Folders of documents: extracting, indexing, searching and opening again, beside what the libraries need alone."""

from __future__ import annotations

import os
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio

from leadline.capabilities.corpus.providers.index import Index, Prepared, packed
from leadline.capabilities.corpus.providers.local import LocalCorpora
from leadline.capabilities.corpus.providers.passages import split
from leadline.capabilities.corpus.providers.walk import Entry
from leadline.capabilities.corpus.seam import Corpus
from leadline.capabilities.documents.plugin import built_in_readers
from leadline.capabilities.documents.providers.pdf import PdfReader
from leadline.capabilities.documents.seam import Documents, Limits, Snapshots, snapshot_of
from leadline.capabilities.persistence.providers.blob_files import FileBlobs
from leadline.core.clock import Clock
from leadline.core.home import Home

PASSAGES, FILES, QUERIES, ROUNDS = 20_000, 3_000, 200, 3
LONG_AGO = 1_600_000_000
_TOKENIZE = "tokenize = 'porter unicode61 remove_diacritics 2'"


def measure() -> list[dict[str, object]]:
    """One row a bar."""
    writer = Prose(7)
    rows = [*_pdf()]
    with tempfile.TemporaryDirectory() as folder:
        rows.extend(_index(writer, Path(folder)))
        rows.extend(_folders(writer, Path(folder)))
    return rows


class Prose:
    """Sentences of made-up words, as frequent as words are (Zipf's law)."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        syllables = [
            a + b for a in "bcdfglmnprstv" for b in ("a", "e", "i", "o", "u", "an", "er", "in", "ol")
        ]
        self.words = sorted(
            {
                "".join(self._random.choices(syllables, k=self._random.choice((2, 3, 4))))
                for _ in range(30_000)
            }
        )
        self._random.shuffle(self.words)
        self._weights = [1 / (rank + 3) for rank in range(len(self.words))]

    def text(self, characters: int) -> str:
        """About as many characters of prose in paragraphs."""
        paragraphs: list[str] = []
        while characters > 0:
            words = self._random.choices(self.words, self._weights, k=90)
            sentences = [" ".join(words[start : start + 15]).capitalize() + "." for start in range(0, 90, 15)]
            paragraphs.append(" ".join(sentences))
            characters -= len(paragraphs[-1]) + 2
        return "\n\n".join(paragraphs)

    def query(self) -> str:
        """Four words that are neither the commonest nor the rarest."""
        return " ".join(self._random.choice(self.words[60:6000]) for _ in range(4))


def _pdf() -> list[dict[str, object]]:
    shared = os.environ.get("LEADLINE_DATA")
    if not shared or not (Path(shared) / "pdf").is_dir():
        return []
    data = max((file.read_bytes() for file in (Path(shared) / "pdf").glob("*.pdf")), key=len)
    reader, limits = PdfReader(), Limits()
    own = _best(lambda: reader.read(data, "application/pdf", "a.pdf", limits))
    floor = _best(lambda: _bare_pdf(data))
    return [
        _row("PDF text speed >= 0.6 of pdfium's own (ratio of times <= 1.67)", own * 1e3, "ms", floor * 1e3)
    ]


def _bare_pdf(data: bytes) -> None:
    import pypdfium2

    document = pypdfium2.PdfDocument(data)
    for index in range(len(document)):
        page = document.get_page(index)
        page.get_textpage().get_text_range()
        page.close()
    document.close()


def _index(writer: Prose, folder: Path) -> list[dict[str, object]]:
    """20,000 passages into the index from text in memory, and queries of it."""
    prepared = _prepared(writer)
    passages = [file.text[each.start : each.end] for file in prepared for each in file.passages]
    own = min(_stored(prepared, folder / f"own-{number}.sqlite") for number in range(ROUNDS))
    floor = min(_bare_insert(passages, folder / f"floor-{number}.sqlite") for number in range(ROUNDS))
    return [_row(f"index {len(passages):,} passages < 4 s", own, "s", floor)]


def _prepared(writer: Prose) -> list[Prepared]:
    files: list[Prepared] = []
    count = 0
    documents = Documents(None, built_in_readers())
    while count < PASSAGES:
        text = f"# Document {len(files)}\n\n{writer.text(9000)}"
        extraction = documents.extract_now(text.encode(), "a.md")
        passages = split(text)[: PASSAGES - count]
        count += len(passages)
        entry = Entry(f"{len(files):05}.md", Path(), (), len(text), LONG_AGO, LONG_AGO, len(files))
        snapshot = snapshot_of(extraction, "0" * 64)
        files.append(Prepared(entry, f"d-{len(files)}", "Title", snapshot, text, packed(text), passages, ""))
    return files


def _stored(files: Sequence[Prepared], path: Path) -> float:
    index = Index(path)
    began = time.perf_counter()
    for start in range(0, len(files), 64):
        index.store(files[start : start + 64], "f", LONG_AGO)
    spent = time.perf_counter() - began
    index.close()
    return spent


def _bare_insert(passages: Sequence[str], path: Path) -> float:
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE VIRTUAL TABLE words USING fts5(body, {_TOKENIZE})")
    began = time.perf_counter()
    with connection:
        connection.executemany("INSERT INTO words(body) VALUES (?)", ((passage,) for passage in passages))
    spent = time.perf_counter() - began
    connection.close()
    return spent


def _folders(writer: Prose, folder: Path) -> list[dict[str, object]]:
    """A folder of some thousand files: first opening, queries, opening again."""
    corpus_folder = folder / "corpus"
    corpus_folder.mkdir()
    for number in range(FILES):
        path = corpus_folder / f"{number:05}.md"
        path.write_text(f"# Document {number}\n\n{writer.text(6500)}", encoding="utf-8")
        os.utime(path, (LONG_AGO, LONG_AGO))
    home = Home(folder / "home")
    first, corpus = anyio.run(_opened, home, corpus_folder)
    rows = [_row(f"open {FILES:,} new files", first, "s", _best(lambda: _bare_read(corpus_folder)))]
    rows.append(_queries(writer, corpus))
    corpus.close()
    again = min(anyio.run(_opened_and_closed, home, corpus_folder) for _ in range(ROUNDS))
    rows.append(
        _row(f"open {FILES:,} unchanged files < 1 s", again, "s", _best(lambda: _bare_walk(corpus_folder)))
    )
    return rows


def _queries(writer: Prose, corpus: Corpus) -> dict[str, object]:
    queries = [writer.query() for _ in range(QUERIES)]
    bare = sqlite3.connect(":memory:")
    bare.execute(f"CREATE VIRTUAL TABLE words USING fts5(body, {_TOKENIZE})")
    passages = 0
    for document in corpus.documents():
        text = corpus.text(document.id)
        parts = [(text[each.start : each.end],) for each in split(text)]
        passages += len(parts)
        bare.executemany("INSERT INTO words(body) VALUES (?)", parts)
    statement = "SELECT rowid, body FROM words WHERE words MATCH ? ORDER BY rank LIMIT 8"
    floor = statistics.median(
        _best(lambda query=query: bare.execute(statement, (query.replace(" ", " OR "),)).fetchall(), 2)
        for query in queries
    )
    own = statistics.median(_best(lambda query=query: corpus.search(query), 2) for query in queries)
    bare.close()
    return _row(f"query of {passages:,} passages, median <= 5 ms", own * 1e3, "ms", floor * 1e3)


async def _opened(home: Home, folder: Path) -> tuple[float, Corpus]:
    snapshots = Snapshots(Documents(None, built_in_readers()), FileBlobs(home.blobs))
    corpora = LocalCorpora(snapshots, home, Clock())
    began = time.perf_counter()
    corpus = await corpora.open([folder])
    return time.perf_counter() - began, corpus


async def _opened_and_closed(home: Home, folder: Path) -> float:
    spent, corpus = await _opened(home, folder)
    corpus.close()
    return spent


def _bare_read(folder: Path) -> None:
    """Read every file and put it whole into a full-text table."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE VIRTUAL TABLE words USING fts5(body, {_TOKENIZE})")
    for path in sorted(folder.iterdir()):
        connection.execute("INSERT INTO words(body) VALUES (?)", (path.read_text("utf-8"),))
    connection.close()


def _bare_walk(folder: Path) -> None:
    with os.scandir(folder) as listing:
        for entry in listing:
            entry.stat()


def _best(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Seconds of the quickest of some rounds."""
    found: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found)


def _row(bar: str, value: float, unit: str, floor: float) -> dict[str, object]:
    return {
        "bar": bar,
        "value": round(value, 4),
        "unit": unit,
        "floor": round(floor, 4),
        "ratio": round(value / floor, 2),
    }
