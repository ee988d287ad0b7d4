"""Law 6: the model names evidence ids; numbers, links, titles, pages and the list of sources are made by code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from leadline.research.events import QuoteRecorded
from leadline.research.report.html import render_html
from leadline.research.report.result import ResearchResult
from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import Received
from tests.composition.conftest import HOTEL, FakeResearcher, call
from tests.laws.conftest import QUESTION, running

pytestmark = pytest.mark.anyio

HOSTILE = [
    "[the policy](https://evil.example/x)",
    "![chart](https://evil.example/x.png)",
    "https://evil.example/x?q=1",
    "www.evil.example/x",
    "<https://evil.example/x>",
    '<a href="https://evil.example">here</a>',
    "<img src=//evil.example/x onerror=alert(1)>",
    "[here](javascript:alert(1))",
    "[here][evil]\n\n[evil]: https://evil.example",
    "doi:10.1234/evil.example",
    "mailto:someone@evil.example",
    "[12]",
    "【3†source】",
    "\ue200cite\ue202turn0search1\ue201",
    "\\cite{evil}",
    "(u9.e9)",
]


def leaf(text: str, evidence: str = "u1.e1") -> Mapping[str, object]:
    return {"text": text, "evidence": [evidence], "label": "finding"}


def report_full_of(text: str) -> Behaviour:
    """A report that has `text` wherever a writer can put text."""
    blocks = [
        {"kind": "paragraph", "sentences": [leaf(f"{HOTEL} {text}")]},
        {"kind": "list", "items": [[leaf(f"{HOTEL} {text}")]]},
        {"kind": "table", "header": [f"Caps {text}"], "rows": [[leaf(f"{HOTEL} {text}")]]},
    ]
    section = {"heading": f"Answer {text}", "blocks": blocks}
    report = {"title": f"Hotel caps {text}", "sections": [section], "unresolved": [f"Prices {text}"]}
    return call("structured_output", report)


ADDRESS = re.compile(r"https?:|//|www\\?\.|mailto|javascript|/x|onerror|u9\.e9|turn0|†|\\cite", re.IGNORECASE)
"""What is left of a hostile text where more than its plain words is left."""


def live(markdown: str) -> list[str]:
    """Everything in a Markdown text that would load, link or run."""
    tokens = MarkdownIt("commonmark", {"html": True}).parse(markdown)
    inner = [child for token in tokens for child in (token, *(token.children or ()))]
    return [
        token.type for token in inner if token.type in ("link_open", "image", "html_inline", "html_block")
    ]


def check_marks(result: ResearchResult) -> None:
    """Every mark in the text is a citation that code numbered, and every citation names its source."""
    prose = result.report.partition("## Sources")[0]
    marks = [int(n) for n in re.findall(r"(?<!\\)\[(\d+)\]", prose)]
    assert set(marks) == {one.n for one in result.citations} == {1}
    assert {one.source for one in result.citations} <= {one.n for one in result.sources}
    assert [one.location for one in result.sources] == ["finance/expenses.md"]


@pytest.mark.parametrize("hostile", HOSTILE)
async def test_no_address_or_mark_of_a_model_reaches_the_report(
    home: Path, corpus: Path, researcher: FakeResearcher, hostile: str
) -> None:
    researcher.writer = lambda request: report_full_of(hostile)

    def unit(request: Received) -> Behaviour:
        answered = sum(message["role"] == "tool" for message in request.messages)
        if answered < 3:
            return researcher.researched(request)
        finding = {"findings": f"found {hostile}", "unresolved": [f"open {hostile}"], "limitations": hostile}
        return call("structured_output", finding)

    def plan(request: Received) -> Behaviour:
        question = "What may a hotel night cost?"
        asked = [
            {"title": f"caps {hostile}", "question": question, "objective": "o"},
            {"title": f"caps {hostile}", "question": f"{question} And {hostile}?", "objective": hostile},
            {"title": f"caps {hostile}", "question": f"{question} And {hostile}?", "objective": hostile},
            {"title": hostile, "question": f"{question} Or {hostile}?", "objective": hostile},
        ]
        return call("structured_output", {"brief": hostile, "units": asked})

    researcher.plan = plan
    researcher.unit = unit
    async with running(researcher) as (app, server):
        result = await app.research(QUESTION, corpus=[corpus])
        told = [str(request.messages[-1]["content"]) for request in server.requests[-4:]]
    assert any("write no addresses, links or citation marks" in text for text in told), (
        "the writer was not told"
    )
    assert result.status == "completed", result.error
    check_marks(result)
    said = result.report.partition("## Sources")[0] + result.report.partition("## Coverage")[2]
    assert ADDRESS.findall(said) == []
    assert ADDRESS.findall("\n".join((*result.coverage.unresolved, *result.notes))) == []
    assert live(result.report) == []
    html = render_html(result, None)
    assert not re.findall(r"<(?:img|script|iframe)|onerror|(?:href|src)=(?![\"']?#)", html)


async def test_an_id_that_is_not_on_record_goes_back_and_never_becomes_a_number(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    def writes(request: Received) -> Behaviour:
        block = {"kind": "paragraph", "sentences": [leaf(HOTEL, "u7.e1"), leaf(HOTEL)]}
        return call("structured_output", {"title": "t", "sections": [{"heading": "h", "blocks": [block]}]})

    researcher.writer = writes
    async with running(researcher) as (app, server):
        result = await app.research(QUESTION, corpus=[corpus])
        told = str(server.requests[-1].messages[-1]["content"])
    assert "no evidence has the id u7.e1; use only these: u1.e1" in told
    assert [one.evidence for one in result.citations] == ["u1.e1"]
    assert [one.citations for one in result.sentences] == [(), (1,)]
    assert result.sentences[0].verdict == "not_established"
    check_marks(result)


async def test_a_source_is_named_by_its_file_whatever_the_document_calls_itself(
    home: Path, tmp_path: Path, researcher: FakeResearcher
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "caps.md").write_text(
        f"# [Expenses](https://evil.example/title)\n\nSource: https://evil.example/self\n\n{HOTEL}\n"
    )
    async with running(researcher) as (app, _):
        result = await app.research(QUESTION, corpus=[folder])
        quotes = (await app.session(result.id)).of(QuoteRecorded)
        assert [one.quote.text for one in quotes] == [HOTEL]
    assert [one.location for one in result.sources] == ["caps.md"]
    assert live(result.report) == []
