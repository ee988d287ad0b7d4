"""Corpora without a kernel: real files and index, blobs in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from leadline.capabilities.corpus.providers.local import LocalCorpora
from leadline.capabilities.documents.plugin import built_in_readers
from leadline.capabilities.documents.providers.text import TextReader
from leadline.capabilities.documents.seam import Documents, Extraction, Limits, Snapshots
from leadline.core.home import Home
from leadline.testing.clock import ManualClock
from leadline.testing.sessions import MemoryBlobs

LONG_AGO = 1_600_000_000


class CountingReader(TextReader):
    """The text reader, with a list of what it was asked to read."""

    def __init__(self, version: str = "1") -> None:
        self.version = version
        self.names: list[str] = []

    def read(self, data: bytes, media_type: str, name: str, limits: Limits) -> Extraction:
        self.names.append(name)
        return super().read(data, media_type, name, limits)


class Desk:
    """One machine: a home directory and blobs, with corpora made by hand."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.blobs = MemoryBlobs()
        self.text_reader = CountingReader()
        self.limits = Limits()
        self.made: list[LocalCorpora] = []

    def corpora(self) -> LocalCorpora:
        readers = [self.text_reader if each.name == "text" else each for each in built_in_readers()]
        snapshots = Snapshots(Documents(self.limits, readers), self.blobs)
        made = LocalCorpora(snapshots, Home(self.home), ManualClock())
        self.made.append(made)
        return made

    async def open(self, *paths: Path, progress: Callable[[int, int, str], None] | None = None):
        return await self.corpora().open(paths, progress=progress)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "home")
    yield made
    for corpora in made.made:
        corpora.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "corpus"
    made.mkdir()
    return made


@pytest.fixture
def write() -> Callable[[Path, Mapping[str, str | bytes]], None]:
    """Writes files below a folder, old enough for their times to be trusted."""

    def run(folder: Path, files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
            os.utime(path, (LONG_AGO, LONG_AGO))

    return run
