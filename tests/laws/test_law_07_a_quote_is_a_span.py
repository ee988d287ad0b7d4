"""Law 7: a quote is a span of a stored text, in code points, matched exactly or through a recorded normalisation."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import get_args

import pytest

from leadline import Leadline
from leadline.core.session.blobs import Blobs
from leadline.core.session.events import ToolAnswered
from leadline.core.session.store import SessionStore
from leadline.research.events import VerdictName
from leadline.research.report.result import ResearchResult
from tests.composition.conftest import FakeResearcher
from tests.laws.conftest import QUESTION, running

pytestmark = pytest.mark.anyio

STORED = (
    "\U0001f3e8\U0001f3e8 Rates, valid “from now on”.\n\n"
    "The hotel cap is EUR 180 per night in the EU, breakfast not included.\n\n"
    "A deposit of EUR 35 is held for every con-\nference guest at the ﬁrst visit, “as a rule”.\n"
)


def folder_with(tmp_path: Path, text: str) -> Path:
    folder = tmp_path / "rates"
    folder.mkdir()
    (folder / "rates.txt").write_text(text, encoding="utf-8")
    return folder


def check_spans(app: Leadline, result: ResearchResult) -> None:
    """Each citation is the span that it names of the text whose hash it names."""
    blobs = app.ctx.get(Blobs)
    assert result.citations
    for citation in result.citations:
        source = next(one for one in result.sources if one.n == citation.source)
        data = blobs.get(source.snapshot)
        assert hashlib.sha256(data).hexdigest() == source.snapshot
        text = data.decode("utf-8")
        assert text[citation.start : citation.end] == citation.quote
        assert " ".join(text[: citation.start].split()).endswith(citation.before)
        assert " ".join(text[citation.end :].split()).startswith(citation.after)


@pytest.mark.parametrize(
    ("quote", "match"),
    [
        ("The hotel cap is EUR 180 per night in the EU", "exact"),
        ("The hotel cap is EUR 180 per night  in the EU", "normalised"),
        ('valid "from now on".', "normalised"),
        (
            'A deposit of EUR 35 is held for every conference guest at the first visit, "as a rule"',
            "normalised",
        ),
    ],
)
async def test_a_citation_is_the_stored_span_and_says_how_it_was_matched(
    home: Path, tmp_path: Path, researcher: FakeResearcher, quote: str, match: str
) -> None:
    researcher.query = "hotel cap deposit rates"
    researcher.quote = quote
    researcher.sentence = "Rates are stated."
    async with running(researcher) as (app, _):
        result = await app.research(QUESTION, corpus=[folder_with(tmp_path, STORED)])
        check_spans(app, result)
    (citation,) = result.citations
    assert citation.match == match
    assert citation.quote in STORED
    if match == "exact":
        assert (citation.start, citation.quote) == (STORED.index(quote), quote)


@pytest.mark.parametrize(
    "quote",
    [
        "The hotel cap is EUR 181 per night in the EU",
        "The hotel cap is EUR 18 per night in the EU",
        "The hotel cap is EUR per night in the EU",
        "The cap is EUR 180 per night in the EU",
        "The hotel cap is per night EUR 180 in the EU",
        "the HOTEL cap is EUR 180 per night in the EU",
        "The hotel cap is EUR 180 per night in the EU, breakfast included",
        "The hotel cap is ... per night in the EU",
    ],
)
async def test_a_quote_that_is_nearly_there_is_refused_at_once_and_the_model_is_told(
    home: Path, tmp_path: Path, researcher: FakeResearcher, quote: str
) -> None:
    researcher.query = "hotel cap"
    researcher.quote = quote
    async with running(researcher) as (app, _):
        result = await app.research(QUESTION, corpus=[folder_with(tmp_path, STORED)])
        logged = (await app.session(result.id)).logged
        assert "research/quote-recorded" not in {one.type for one in logged}
        children = [one.id for one in await app.ctx.get(SessionStore).list() if one.parent == result.id]
        refused = [
            answer.message
            for child in children
            for answer in (await app.session(child)).of(ToolAnswered)
            if answer.message.name == "record_evidence"
        ]
    assert refused
    assert all(message.is_error and "rates.txt" in message.content for message in refused)
    assert result.status == "failed"
    assert result.citations == ()


async def test_the_embedded_model_quotes_spans_too_and_each_sentence_has_a_verdict_with_its_reason(
    home: Path, corpus: Path
) -> None:
    async with Leadline() as app:
        result = await app.research(QUESTION, corpus=[corpus])
        check_spans(app, result)
    assert result.sentences
    for sentence in result.sentences:
        assert sentence.verdict in get_args(VerdictName)
        assert sentence.reason
        assert sentence.by == "checks"


async def test_a_stored_text_that_was_changed_is_not_quoted_from(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with running(researcher) as (app, _):
        result = await app.research(QUESTION, corpus=[corpus])
        snapshot = result.sources[0].snapshot
        path = next(
            path for path in (home / "blobs").rglob("*") if path.is_file() and snapshot[4:] in path.name
        )
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:-1] + b"?")
        stored = await app.stored(result.id)
        assert snapshot not in stored.texts
