"""A run through the shipped profile, with only the model replaced: contract, status, fallbacks, cancellation."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline import Leadline
from leadline.testing.provider_server.server import ProviderServer
from tests.composition.conftest import HOTEL, FakeResearcher

pytestmark = pytest.mark.anyio


async def test_a_question_becomes_a_report_whose_citation_is_a_span_of_the_document(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with ProviderServer(researcher, strict=True) as server:
        async with Leadline(model="local/fake", base_url=server.base_url) as app:
            result = await app.research("What may a hotel night cost?", corpus=[corpus])
    assert result.status == "completed", result.error
    assert researcher.seen == ["plan", "unit", "unit", "unit", "unit", "write"]
    (citation,) = result.citations
    assert citation.quote == HOTEL
    text = (corpus / "finance" / "expenses.md").read_text()
    assert text[citation.start : citation.end] == HOTEL
    assert result.sources[0].location == "finance/expenses.md"
    assert result.sentences[0].verdict == "supported"
    assert "[1]" in result.report
    assert result.usage.calls == 6
