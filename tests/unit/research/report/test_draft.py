"""A draft is read with all its errors told, checked against the evidence, and cleaned as a last resort."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.research.events import Drafted, ItemList, Leaf, Paragraph, Report, Section, Table
from leadline.research.ledger.leaves import leaves
from leadline.research.ledger.ledger import Ledger
from leadline.research.report.draft import check_report, clean_report, parse_report, report_errors

GOOD = {
    "title": "T",
    "sections": [
        {
            "heading": "H",
            "blocks": [
                {
                    "kind": "paragraph",
                    "sentences": [{"text": "One.", "evidence": ["u1.e1"], "label": "finding"}],
                },
                {"kind": "list", "items": [[{"text": "Two.", "evidence": [], "label": "analysis"}]]},
                {
                    "kind": "table",
                    "header": ["A"],
                    "rows": [[{"text": "x", "evidence": [], "label": "background"}]],
                },
            ],
        }
    ],
    "unresolved": ["What of it?"],
}


def _one(*sentences: Leaf, title: str = "T", heading: str = "H") -> Report:
    return Report(title=title, sections=(Section(heading=heading, blocks=(Paragraph(sentences=sentences),)),))


def test_a_report_of_the_right_shape_is_read() -> None:
    report, errors = parse_report(GOOD)
    assert errors == () and report is not None
    assert [leaf.text for _, leaf in leaves(report)] == ["One.", "Two.", "x"]
    assert msgspec.to_builtins(report)["sections"][0]["blocks"][1]["kind"] == "list"


def test_every_wrong_place_is_named_at_once() -> None:
    bad: Any = {
        "title": 5,
        "sections": [
            {
                "heading": "H",
                "blocks": [
                    {
                        "kind": "paragraph",
                        "sentences": [{"text": "One.", "label": "fact"}, {"evidence": []}, {"text": 3}],
                    },
                    {"kind": "poem", "lines": []},
                    "text",
                ],
            },
            {"blocks": []},
        ],
    }
    report, errors = parse_report(bad)
    assert report is None
    told = "\n".join(errors)
    for place in (
        "sections[0].blocks[0].sentences[0]",
        "sections[0].blocks[0].sentences[1]",
        "sections[0].blocks[0].sentences[2]",
        "sections[0].blocks[1]",
        "sections[0].blocks[2]",
        "sections[1]",
        "report",
    ):
        assert place in told


@pytest.mark.parametrize("value", [None, 3, "text", [], {"sections": 4}, {"title": "t"}])
def test_any_other_json_is_refused_with_a_reason(value: Any) -> None:
    report, errors = parse_report(value)
    assert report is None and errors


def test_a_report_on_its_evidence_has_nothing_to_mend(pump: Any) -> None:
    report = _one(Leaf(text="The VLX-500 reaches 420 km on one charge.", evidence=("u1.e1",)))
    assert check_report(report, pump.ledger) == []


@pytest.mark.parametrize(
    ("report", "told"),
    [
        (_one(Leaf(text="It is so.", evidence=("u4.e9",), label="analysis")), "u4.e9"),
        (_one(Leaf(text=" ")), "empty"),
        (_one(Leaf(text="See [1].", label="analysis")), "citation mark"),
        (_one(Leaf(text="A.", label="analysis"), title="Up 40 %"), "40 %"),
        (_one(Leaf(text="A.", label="analysis"), heading="Up 40 %"), "40 %"),
        (_one(Leaf(text="A.", label="analysis"), heading=""), "empty"),
        (_one(), "no sentence"),
        (Report(title="T", sections=()), "no sentence"),
        (_one(Leaf(text="It costs 99 dollars.", label="analysis")), "without evidence"),
        (_one(Leaf(text="The VLX-500 reaches 520 km on one charge.", evidence=("u1.e1",))), "520 km"),
        (
            Report(
                title="T",
                sections=(
                    Section(
                        heading="H",
                        blocks=(Table(header=("A", "B"), rows=((Leaf(text="x", label="analysis"),),)),),
                    ),
                ),
            ),
            "as many cells",
        ),
        (Report(title="T", sections=(Section(heading="H", blocks=(ItemList(items=()),)),)), "nothing in it"),
    ],
)
def test_what_is_to_be_mended_is_told_in_words(pump: Any, report: Report, told: str) -> None:
    assert any(told in message for message in check_report(report, pump.ledger))


@pytest.mark.case("R09")
def test_with_an_empty_ledger_any_citation_is_an_error() -> None:
    errors = report_errors(_one(Leaf(text="It is so.", evidence=("u1.e1",))), Ledger())
    assert any("u1.e1" in one and "none" in one for one in errors)


def test_evidence_from_an_unread_source_is_an_error(make_world: Callable[..., Any]) -> None:
    world = make_world()
    source = world.source("Alpha beta gamma.")
    evidence = world.quote(source, "Alpha beta gamma.")
    world.source("", name=source, outcome="paywalled")
    assert any(
        "could not be read" in one
        for one in report_errors(_one(Leaf(text="A.", evidence=(evidence,))), world.ledger)
    )


@pytest.mark.case("R19")
def test_cleaning_takes_out_what_may_not_be_and_says_so(pump: Any) -> None:
    dirty = Report(
        title="Up 40 % [1]",
        sections=(
            Section(
                heading="![x](https://evil.example/p)",
                blocks=(
                    Paragraph(
                        sentences=(
                            Leaf(
                                text="The VLX-500 reaches 420 km on one charge [cite: 12].",
                                evidence=("u1.e1", "u9.e9"),
                            ),
                            Leaf(text="[1]"),
                        )
                    ),
                    Table(header=("A",), rows=((Leaf(text="x"), Leaf(text="【1】")),)),
                ),
            ),
            Section(heading="Empty", blocks=(Paragraph(sentences=(Leaf(text="https://"),)),)),
        ),
        unresolved=("See https://a.example/x", "[2]"),
    )
    report, notes = clean_report(dirty, pump.ledger)
    assert report_errors(report, pump.ledger) == []
    assert report.title == pump.question
    first = leaves(report)[0][1]
    assert first.text == "The VLX-500 reaches 420 km on one charge." and first.evidence == ("u1.e1",)
    assert len(report.sections) == 1 and report.unresolved == ("See a.example",)
    assert len(notes) >= 4


_TEXT = st.text(max_size=30) | st.sampled_from(
    ["A.", "[1]", "![a](http://b.c)", "Up 40 %", '"not so" he said', "<b>", ""]
)
_LEAF = st.builds(
    lambda text, evidence: Leaf(text=text, evidence=tuple(evidence)),
    _TEXT,
    st.lists(st.sampled_from(["u1.e1", "u1.e2", "u9.e1"]), max_size=2),
)
_GROUP = st.lists(_LEAF, max_size=3).map(tuple)
_BLOCK = (
    st.builds(lambda s: Paragraph(sentences=s), _GROUP)
    | st.builds(lambda i: ItemList(items=tuple(i)), st.lists(_GROUP, max_size=2))
    | st.builds(
        lambda h, r: Table(header=tuple(h), rows=tuple(r)),
        st.lists(_TEXT, max_size=3),
        st.lists(_GROUP, max_size=2),
    )
)
_REPORT = st.builds(
    lambda title, sections, unresolved: Report(
        title=title,
        sections=tuple(Section(heading=h, blocks=tuple(b)) for h, b in sections),
        unresolved=tuple(unresolved),
    ),
    _TEXT,
    st.lists(st.tuples(_TEXT, st.lists(_BLOCK, max_size=3)), max_size=3),
    st.lists(_TEXT, max_size=2),
)


@given(_REPORT)
@settings(max_examples=300, deadline=None)
def test_any_report_with_a_sentence_can_be_cleaned_to_one_without_errors(report: Report) -> None:
    ledger = _pump_ledger()
    cleaned, _ = clean_report(report, ledger)
    if leaves(cleaned):
        assert report_errors(cleaned, ledger) == []
        assert clean_report(cleaned, ledger)[0] == cleaned


def _pump_ledger() -> Ledger:
    from leadline.research.events import Quote, QuoteRecorded, Request, Source, SourceFound, Started

    source = Source(
        id="d-1", key="k", title="t", location="l", retrieved_at="", outcome="ok", snapshot="0" * 64
    )
    quotes = [
        Quote(
            id=f"u1.e{n}",
            unit="u1",
            source="d-1",
            snapshot="0" * 64,
            start=0,
            end=5,
            text=text,
            match="exact",
        )
        for n, text in ((1, "Sales rose 12 %."), (2, "It was 2024."))
    ]
    return Ledger.of(
        [
            Started(run="r", request=Request(question="What is [1] up 12 % of “the thing”?")),
            SourceFound(source=source),
            *(QuoteRecorded(quote=quote) for quote in quotes),
            Drafted(report=Report(title="t", sections=())),
        ]
    )
