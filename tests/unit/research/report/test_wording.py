"""What code itself writes into a report: in its language, correct in number, plain about what is missing."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from string import Formatter
from typing import Any, cast

import pytest
from markdown_it import MarkdownIt

from leadline.research.events import ItemList, Leaf, Paragraph, Report, Request, Section, Started, Table
from leadline.research.report.evidence_list import evidence_list
from leadline.research.report.html import render_html
from leadline.research.report.labels import labels
from leadline.research.report.layout import shown_quote
from leadline.research.sources.language import LANGUAGES, language_of, named_language, report_language

Maker = Callable[..., Any]
ASKED = {
    "en": "How far does it reach?",
    "de": "Wie weit reicht die Pumpe?",
    "fr": "Quelle est la portée de la pompe ?",
    "es": "¿Cuál es el alcance de la bomba?",
    "zh": "泵的射程是多少？",
    "ja": "ポンプの届く距離はどれくらいですか？",
}


def _finished(make_world: Maker, question: str, **more: Any) -> Any:
    world = make_world(question=question)
    started = world.events[0]
    fields: dict[str, Any] = {"model": started.model, **more}
    world.events[0] = Started(
        run="r-1",
        request=Request(question=question, language=fields.pop("language", None)),
        checks_version="1",
        **fields,
    )
    e = world.quote(
        world.source("The pump reaches 420 km on one charge."), "The pump reaches 420 km on one charge."
    )
    world.draft([Leaf(text="The pump reaches 420 km on one charge.", evidence=(e,))])
    return world


@pytest.mark.parametrize("language", LANGUAGES)
def test_headings_of_code_are_in_the_language_of_the_question(make_world: Maker, language: str) -> None:
    world = _finished(make_world, ASKED[language])
    words = labels(language)
    result = world.result("partial", "boom")
    headings = re.findall(r"^## (.*)$", result.report, re.MULTILINE)
    assert headings == ["Answer", words.sources, words.coverage, words.made]
    assert words.partial in result.report and words.unmarked in result.report
    page = render_html(result, world.ledger.draft)
    assert f'<html lang="{language}" dir="ltr">' in page
    assert all(f"<h2>{heading}</h2>" in page for heading in headings[1:])


@pytest.mark.parametrize(
    ("asked", "heading"),
    [
        ("de", "Quellen"),
        ("German", "Quellen"),
        ("fr-CA", "Sources"),
        ("Klingon", "Sources"),
        ("日本語", "出典"),
    ],
)
def test_the_language_asked_for_comes_first(make_world: Maker, asked: str, heading: str) -> None:
    world = _finished(make_world, ASKED["zh"], language=asked)
    assert f"\n## {heading}\n" in world.result().report


def test_every_language_has_every_label_with_the_same_blanks() -> None:
    def blanks(value: object) -> list[str]:
        return sorted(name for _, name, _, _ in Formatter().parse(str(value)) if name)

    english = dataclasses.asdict(labels("en"))
    for language in LANGUAGES:
        own = dataclasses.asdict(labels(language))
        for name, value in english.items():
            assert own[name] or name == "gap", (language, name)
            if isinstance(value, str):
                assert blanks(own[name]) == blanks(value), (language, name)
        outcomes = cast("Mapping[str, str]", own["outcomes"])
        assert outcomes.keys() == cast("Mapping[str, str]", english["outcomes"]).keys()
        legend = "; ".join(
            (own["unmarked"], *own["contradicted"], *own["not_checked"], *own["not_established"])
        )
        assert "<p>" + legend.replace('"', "&quot;") in MarkdownIt("gfm-like", {"linkify": False}).render(
            legend
        )


def test_languages_are_told_by_script_and_function_words() -> None:
    assert {language: language_of(text) for language, text in ASKED.items()} == {one: one for one in ASKED}
    assert language_of("battery VLX-500") is None and language_of("مقر الشركة") is None
    assert named_language("Deutsch (Schweiz)") == named_language("de_AT") == "de"
    assert named_language("Klingon") is named_language("") is None
    assert report_language(None, "VLX") == report_language("xx", ASKED["de"]) == "en"


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (
            "partial",
            "> This report is partial: not all of the research could be done. Reason: the disk was full",
        ),
        ("cancelled", "> This report is not finished: the run was cancelled."),
        ("failed", "> The research failed."),
    ],
)
def test_a_report_that_is_not_complete_says_so_on_top(make_world: Maker, status: Any, told: str) -> None:
    world = _finished(make_world, "How far?")
    result = world.result(status, "the disk was full")
    assert result.report.split("\n\n")[1].startswith(told)
    page = render_html(result, world.ledger.draft)
    assert page.index('class="status"') < page.index("<h2")
    assert "the disk was full" in page
    assert "> " not in world.result().report


@pytest.mark.parametrize(
    ("model", "told", "by"),
    [
        ("acme/large", "The model acme/large wrote the sentences", "model"),
        ("extractive/extractive", "No language model took part", "extraction"),
    ],
)
def test_who_wrote_the_report_is_said_once(make_world: Maker, model: str, told: str, by: str) -> None:
    world = _finished(make_world, "How far?", model=model)
    result = world.result()
    assert result.report.count(told) == 1 and result.report.count("## How this report was made") == 1
    assert result.metadata["written_by"] == by


def test_a_closing_section_of_the_writer_holds_what_code_adds(make_world: Maker) -> None:
    world = _finished(make_world, "How far?")
    own = Section(
        heading="How this report was made",
        blocks=(Paragraph(sentences=(Leaf(text="By hand.", label="background"),)),),
    )
    world.draft(Report(title="t", sections=(*world.ledger.draft.sections, own)))
    result = world.result()
    assert result.report.count("How this report was made") == 1 and "checks version 1" in result.report
    assert render_html(result, world.ledger.draft).count("<h2>How this report was made</h2>") <= 1


def test_a_list_of_evidence_says_that_no_report_was_written(make_world: Maker) -> None:
    world = make_world(question="How far?")
    text = "- **Reach:** 420 km on one charge\n"
    world.quote(world.source(text), text.strip())
    world.end_unit()
    world.draft(evidence_list(world.ledger))
    result = world.result("partial", "the writer failed")
    assert "No report was written" in result.report
    assert "- Reach: 420 km on one charge [1]\n" in result.report
    assert result.sentences[0].verdict == "supported"


TABLE = "| Spec | VLX-400 | VLX-500 |\n|---|---|---|\n" + "\n".join(
    f"| Property {n} | value {n} of the older model | value {n} of the newer model |" for n in range(8)
)


def test_a_long_quoted_table_is_shown_by_the_rows_that_were_used(make_world: Maker) -> None:
    world = make_world()
    e = world.quote(world.source(TABLE), TABLE)
    world.draft([Leaf(text="Property 3: value 3 of the newer model", evidence=(e,))])
    result = world.result()
    assert shown_quote(result.citations[0], result) == (
        "Spec | VLX-400 | VLX-500 / ... / Property 3 | value 3 of the older model | value 3 of the newer model / ... / "
        "Property 7 | value 7 of the older model | value 7 of the newer model"
    )
    assert result.citations[0].quote == TABLE
    assert "value 5 of the newer model |</mark>" not in result.report
    assert "| Property 5 | value 5" in render_html(result, world.ledger.draft)


def test_a_short_quoted_table_is_shown_whole(make_world: Maker) -> None:
    world = make_world()
    text = "| Spec | VLX-500 |\n|---|---|\n| Payload | 950 kg |\n| **Battery** | 11h LFP |"
    e = world.quote(world.source(text), text)
    world.draft([Leaf(text="Battery | 11h LFP", evidence=(e,))])
    assert '[1] "Spec | VLX-500 / Payload | 950 kg / Battery | 11h LFP"' in world.result().report


def test_a_row_whose_cells_share_their_evidence_has_its_number_once(make_world: Maker) -> None:
    world = make_world()
    text = "| Spec | VLX-500 | VLX-900 |\n|---|---|---|\n| Battery | 11h LFP | - |"
    e = world.quote(world.source(text), text)
    row = (Leaf(text="Battery", evidence=(e,)), Leaf(text="11h LFP", evidence=(e,)), Leaf(text="-"))
    table = Table(header=("Spec", "VLX-500", "VLX-900"), rows=(row,))
    world.draft(Report(title="t", sections=(Section(heading="h", blocks=(table,)),)))
    report = world.result().report
    assert "| Battery | 11h LFP [1] | - |" in report
    assert "Sentences and table cells: 2 (supported 2," in report


class _Page(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_mark_shows_quote_source_page_and_verdict_without_a_script(pump: Any) -> None:
    page = render_html(pump.result(), pump.ledger.draft)
    card = re.search(
        r'<a href="#c1">\[1\]</a><span class="card" role="tooltip">(.*?)</span></span></span>', page
    )
    assert card is not None
    for part in (
        "The VLX-500 reaches 420 km on one charge.",
        "Document 1",
        "p. 1",
        "2024-05-01",
        "supported: ",
    ):
        assert part in card[1], part
    assert "u1.e" not in page
    assert ".cite:hover .card" in page and ".cite:focus-within .card" in page and "@media print" in page


def test_every_target_of_the_page_exists_once_and_tags_close(pump: Any) -> None:
    seen = _Page(render_html(pump.result(), pump.ledger.draft))
    assert seen.open == []
    ids = [attributes["id"] for _, attributes in seen.seen if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {a["href"] for tag, a in seen.seen if tag == "a"}
    assert targets <= {f"#{one}" for one in ids}
    assert {"#c1", "#s1", "#v3"} <= targets


def test_a_mark_of_doubt_leads_to_the_reason(pump: Any) -> None:
    page = render_html(pump.result(), pump.ledger.draft)
    assert '<a class="mark" href="#v3">(!)</a>' in page
    reason = re.search(r'<li id="v3">.*?</li>', page)
    assert reason is not None and "contradicted: the sentence says “EUR 1,250” where [3] says" in reason[0]


def test_a_page_in_a_script_from_the_right_says_so(make_world: Maker) -> None:
    world = _finished(make_world, "ما هو مدى المضخة؟")
    page = render_html(world.result(), world.ledger.draft)
    assert '<html lang="und" dir="rtl">' in page
    assert '<section lang="en" dir="ltr">\n<h2>Sources</h2>' in page
    named = _finished(make_world, "How far?", language="Arabic")
    assert '<html lang="ar" dir="rtl">' in render_html(named.result(), named.ledger.draft)


def test_a_list_is_a_list(make_world: Maker) -> None:
    world = make_world()
    items = ItemList(
        items=((Leaf(text="One thing.", label="analysis"),), (Leaf(text="2. thing.", label="analysis"),))
    )
    world.draft(Report(title="t", sections=(Section(heading="h", blocks=(items,)),)))
    report = world.result().report
    assert "- One thing. (~)\n- 2\\. thing. (" in report
