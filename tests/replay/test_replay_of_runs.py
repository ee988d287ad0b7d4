"""A run is made once more from its own answers and sources: without a provider, to the byte."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from leadline import Leadline
from leadline.research.report.result import ResearchResult
from leadline.testing.provider_server.server import ProviderServer
from tests.composition.conftest import FakeResearcher

pytestmark = pytest.mark.anyio

QUESTION = "What may a hotel night cost?"


@asynccontextmanager
async def recorded(
    researcher: FakeResearcher, corpus: Path, breadth: str = "balanced"
) -> AsyncGenerator[tuple[Leadline, ResearchResult]]:
    """A program whose provider answered one run and is gone, and whose documents are gone too."""
    async with ProviderServer(researcher, strict=True) as server:
        address = server.base_url
        async with Leadline(model="local/fake", base_url=address) as app:
            result = await app.research(QUESTION, corpus=[corpus], breadth=breadth)
    shutil.rmtree(corpus)
    async with Leadline(model="local/fake", base_url=address) as app:
        yield app, result


def stored(home: Path) -> set[tuple[str, bytes]]:
    kept = [path for part in ("sessions", "blobs", "corpora") for path in (home / part).rglob("*")]
    return {(str(path), path.read_bytes()) for path in kept if path.is_file()}


async def test_a_replay_gives_the_report_to_the_byte_without_provider_or_documents_and_leaves_nothing(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with recorded(researcher, corpus) as (app, result):
        before = stored(home)
        replayed = await app.replay(result.id)
        assert stored(home) == before
    assert replayed.result.report == result.report
    assert replayed.differing == ()
    assert replayed.unasked == ()
    assert [one.answered for one in replayed.asked] == ["recorded"] * 6
    assert replayed.same
    assert replayed.report_diff == ""
    assert replayed.run is None
