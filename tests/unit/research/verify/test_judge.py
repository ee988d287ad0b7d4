"""The verdict on a sentence follows from the checks, and support is never given lightly."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from leadline.research.events import Leaf, Paragraph, Report, Section, Table, VerdictGiven
from leadline.research.verify.check import CheckResult, Cited, Sentence
from leadline.research.verify.judge import CHECKS, judge

Maker = Callable[..., Any]

DOCUMENT = (
    "The VLX-500 has a range of 420 km on one charge. Revenue rose 12 % to EUR 5.2 million in 2023, while profit "
    "fell 3 %. It is not true that sales grew 5 %. According to Smith, the plant may close in May 2025. "
    "Acme Corp acquired Beta Ltd in 2021. The former chairman left the board. "
    "Exports exceed 900 tonnes a year. The panel approved the plan."
)


def _verdict(
    make_world: Maker, sentence: str, quote: str | None = None, document: str = DOCUMENT, **leaf: Any
) -> VerdictGiven:
    world = make_world()
    source = world.source(document)
    defaults: dict[str, Any] = {"evidence": (world.quote(source, quote or document),)}
    report = Report(
        title="t",
        sections=(
            Section(
                heading="h",
                blocks=(Paragraph(sentences=(Leaf(text=sentence, **{**defaults, **leaf}),)),),
            ),
        ),
    )
    return judge(report, world.ledger, world.texts)[0]


@pytest.mark.parametrize(
    "sentence",
    [
        "The VLX-500 has a range of 420 km on one charge.",
        "Revenue rose 12 % to EUR 5.2 million in 2023.",
        "Revenue rose 12 percent to €5.2 million in 2023.",
        "Profit fell 3 %.",
        "Acme Corp acquired Beta Ltd in 2021. Profit fell 3 %.",
        "According to Smith, the plant may close in May 2025.",
        "It is not true that sales grew 5 %.",
        "The panel approved the plan.",
    ],
)
def test_what_stands_in_the_quote_is_supported(make_world: Maker, sentence: str) -> None:
    given = _verdict(make_world, sentence)
    assert given.verdict == "supported", given.reason


@pytest.mark.parametrize(
    "sentence",
    [
        "The VLX-500 has a range of 450 km on one charge.",
        "Revenue fell 12 % to EUR 5.2 million in 2023.",
        "Profit rose 3 %.",
        "Exports are below 900 tonnes a year.",
        "The panel rejected the plan.",
        "The panel never approved the plan.",
    ],
)
def test_the_opposite_of_a_quote_is_contradicted(make_world: Maker, sentence: str) -> None:
    given = _verdict(make_world, sentence)
    assert given.verdict == "contradicted", given.reason


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("The VLX-500 has a range of 420 km.", "wording not in the quotes"),
        ("Revenue rose 12 %.", "wording not in the quotes"),
        ("Sales grew 5 %.", "wording not in the quotes"),
        ("The plant may close in May 2025.", "wording not in the quotes"),
        ("The plant will close in May 2025.", "wording not in the quotes"),
        ("Beta Ltd acquired Acme Corp in 2021.", "wording not in the quotes"),
        ("Acme Corp acquired Beta Ltd in 2020.", "2020"),
        ("The chairman left the board.", "wording not in the quotes"),
        ("The VLX-600 has a range of 420 km.", "VLX-600"),
        ("Profit fell 3 percentage points.", "3 percentage points"),
        ("Revenue rose 12 % to USD 5.2 million in 2023.", ""),
        ("Gamma Corp acquired Beta Ltd in 2021.", "Gamma Corp"),
        ('Acme Corp called it "a merger of equals".', "a merger of equals"),
        ("Turnover went up by 12 % and reached EUR 5.2 million in 2023.", "wording not in the quotes"),
    ],
)
def test_what_the_quote_does_not_say_in_these_words_is_not_supported(
    make_world: Maker, sentence: str, reason: str
) -> None:
    given = _verdict(make_world, sentence)
    assert given.verdict in ("not_established", "contradicted")
    assert reason in given.reason


def test_a_quote_cut_out_of_a_denial_does_not_support(make_world: Maker) -> None:
    given = _verdict(make_world, "Sales grew 5 %.", quote="sales grew 5 %")
    assert given.verdict == "not_established"
    assert "not" in given.reason


@pytest.mark.parametrize("label", ["background", "analysis", "recommendation", "finding"])
@pytest.mark.parametrize(
    "text",
    [
        "Sales were 40 million.",
        "It happened on 3 May 2021.",
        'He said "it is all over".',
        "People at Gamma Corp agree.",
    ],
)
def test_a_label_does_not_excuse_a_fact_without_evidence(make_world: Maker, label: Any, text: str) -> None:
    given = _verdict(make_world, text, evidence=(), label=label)
    assert given.verdict == "not_established"
    assert "without evidence" in given.reason


def test_a_thought_without_facts_is_not_checked(make_world: Maker) -> None:
    assert (
        _verdict(make_world, "This speaks for caution.", evidence=(), label="analysis").verdict
        == "not_checked"
    )
    assert (
        _verdict(make_world, "This speaks for caution.", evidence=(), label="finding").verdict
        == "not_established"
    )


def test_what_the_request_says_needs_no_evidence(make_world: Maker) -> None:
    world = make_world(question="Did sales of Acme Corp reach 40 million in 2024?")
    report = Report(
        title="t",
        sections=(
            Section(
                heading="h",
                blocks=(
                    Paragraph(
                        sentences=(
                            Leaf(
                                text="The question is whether Acme Corp sold 40 million in 2024.",
                                label="background",
                            ),
                        )
                    ),
                ),
            ),
        ),
    )
    assert judge(report, world.ledger, {})[0].verdict == "not_checked"


def test_a_figure_of_the_request_does_not_support_itself(make_world: Maker) -> None:
    world = make_world(question="Did sales rise by 40 %?")
    evidence = (world.quote(world.source("Sales rose by 12 % last year."), "Sales rose by 12 % last year."),)
    report = world.draft([Leaf(text="Sales rose by 40 % last year.", evidence=evidence)])
    assert judge(report, world.ledger, world.texts)[0].verdict == "contradicted"


def test_evidence_from_a_source_that_was_not_retrieved_establishes_nothing(make_world: Maker) -> None:
    world = make_world()
    source = world.source(DOCUMENT)
    evidence = world.quote(source, "The panel approved the plan.")
    world.source(DOCUMENT, name=source, outcome="blocked", reason="a challenge page")
    given = judge(
        world.draft([Leaf(text="The panel approved the plan.", evidence=(evidence,))]),
        world.ledger,
        world.texts,
    )[0]
    assert given.verdict == "not_established"
    assert "blocked" in given.reason


def test_an_unknown_evidence_id_establishes_nothing(make_world: Maker) -> None:
    given = _verdict(make_world, "The panel approved the plan.", evidence=("u7.e7",))
    assert given.verdict == "not_established" and "u7.e7" in given.reason


@pytest.mark.parametrize("fields", [{"start": 1, "end": 29}, {"text": "The panel approved the plot."}])
def test_a_quote_that_is_not_at_its_offsets_establishes_nothing(
    make_world: Maker, fields: dict[str, Any]
) -> None:
    world = make_world()
    evidence = world.quote(world.source(DOCUMENT), "The panel approved the plan.", **fields)
    given = judge(
        world.draft([Leaf(text="The panel approved the plan.", evidence=(evidence,))]),
        world.ledger,
        world.texts,
    )[0]
    assert given.verdict == "not_established" and "offsets" in given.reason


def test_a_missing_or_changed_snapshot_establishes_nothing(make_world: Maker) -> None:
    world = make_world()
    evidence = world.quote(world.source(DOCUMENT), "The panel approved the plan.")
    report = world.draft([Leaf(text="The panel approved the plan.", evidence=(evidence,))])
    sha = next(iter(world.texts))
    assert "missing" in judge(report, world.ledger, {})[0].reason
    assert "hash" in judge(report, world.ledger, {sha: DOCUMENT + " "})[0].reason


@pytest.mark.case("R20")
def test_a_page_that_does_not_follow_from_the_offset_is_not_accepted(make_world: Maker) -> None:
    world = make_world()
    paged = world.source("First page here. Second page here.", pages=[(1, 0, 17), (2, 17, 34)])
    unpaged = world.source("Only one flow of text without pages.")
    right = world.quote(paged, "Second page here.")
    wrong = world.quote(paged, "First page here.", page=2)
    invented = world.quote(unpaged, "Only one flow of text without pages.", page=4)
    report = world.draft(
        [
            Leaf(text="Second page here.", evidence=(right,)),
            Leaf(text="First page here.", evidence=(wrong,)),
            Leaf(text="Only one flow of text without pages.", evidence=(invented,)),
        ]
    )
    assert world.ledger.quotes[right].page == 2
    assert [one.verdict for one in judge(report, world.ledger, world.texts)] == [
        "supported",
        "not_established",
        "not_established",
    ]


def test_a_cell_needs_its_row_and_column_in_the_quote(make_world: Maker) -> None:
    world = make_world()
    e = (
        world.quote(world.source("The VLX-500 has a range of 420 km."), "The VLX-500 has a range of 420 km."),
    )
    table = Table(
        header=("Product", "Range"),
        rows=(
            (Leaf(text="VLX-500", evidence=e), Leaf(text="420 km", evidence=e)),
            (Leaf(text="VLX-700", evidence=e), Leaf(text="420 km", evidence=e)),
        ),
    )
    report = Report(title="t", sections=(Section(heading="h", blocks=(table,)),))
    assert [one.verdict for one in judge(report, world.ledger, world.texts)] == [
        "supported",
        "supported",
        "not_established",
        "not_established",
    ]


CHINESE = "公司2023年收入增长了12%，达到5.2亿元。"


@pytest.mark.parametrize(
    ("sentence", "verdict"),
    [
        (CHINESE, "supported"),
        ("公司2023年收入下降了12%，达到5.2亿元。", "contradicted"),
        ("公司2023年收入增长了15%，达到5.2亿元。", "contradicted"),
        ("这家公司的表现不错。", "not_established"),
    ],
)
def test_chinese_sentences_are_judged_without_guessing_at_names(
    make_world: Maker, sentence: str, verdict: str
) -> None:
    assert _verdict(make_world, sentence, document=CHINESE).verdict == verdict


@pytest.mark.parametrize(
    ("document", "sentence", "verdict"),
    [
        (
            "Der Umsatz stieg um 12,5 % auf 3 Mio. Euro.",
            "Der Umsatz stieg um 12,5 % auf 3 Mio. Euro.",
            "supported",
        ),
        (
            "Der Umsatz stieg um 12,5 % auf 3 Mio. Euro.",
            "Der Umsatz sank um 12,5 % auf 3 Mio. Euro.",
            "contradicted",
        ),
        (
            "Der Umsatz stieg um 12,5 % auf 3 Mio. Euro.",
            "Der Umsatz stieg um 15,2 % auf 3 Mio. Euro.",
            "contradicted",
        ),
    ],
)
def test_german_sentences_are_judged(make_world: Maker, document: str, sentence: str, verdict: str) -> None:
    assert _verdict(make_world, sentence, document=document).verdict == verdict


def test_every_check_says_what_it_can_and_cannot_establish() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    for check in CHECKS:
        assert check.version >= 1
        assert "establishes" in check.establishes and re.search(r"not|never", check.establishes)


def test_an_added_check_can_only_take_support_away(make_world: Maker) -> None:
    class Never:
        name, version, establishes = "never", 1, "Nothing."

        def run(self, sentence: Sentence, cited: Sequence[Cited], ledger: Any) -> CheckResult:
            return CheckResult("unsure", "never sure")

    world = make_world()
    evidence = (world.quote(world.source(DOCUMENT), "The panel approved the plan."),)
    report = world.draft([Leaf(text="The panel approved the plan.", evidence=evidence)])
    assert judge(report, world.ledger, world.texts)[0].verdict == "supported"
    assert judge(report, world.ledger, world.texts, checks=(*CHECKS, Never()))[0].verdict == "not_established"


_FACTS = [
    "Revenue of Acme Corp rose 12 % to EUR 5.2 million in 2023.",
    "The Danube plant produced 900 tonnes of steel in March 2024.",
    "Prices fell below 40 dollars after the Geneva meeting.",
    "About 3 million people used the service before 2020.",
    "The VLX-500 weighs 18 kg and draws 20 kW.",
    "Nurses worked 12 hours a day during the first wave.",
    "The court approved the merger of Alpha Bank and Beta Bank on 3 May 2021.",
    "Temperature increased by 1.5 degrees Celsius above the level of 1990.",
    "Exports to Norway declined by 7 percentage points.",
    "The study found no link between coffee and sleep in 410 adults.",
]
_SWAPS = {
    "rose": "fell",
    "fell": "rose",
    "below": "above",
    "after": "before",
    "before": "after",
    "approved": "rejected",
    "increased": "decreased",
    "above": "below",
    "declined": "grew",
    "no": "a",
    "About": "Exactly",
    "Acme": "Apex",
    "Danube": "Rhine",
    "Geneva": "Vienna",
    "Norway": "Sweden",
    "Alpha": "Gamma",
    "VLX-500": "VLX-700",
    "million": "billion",
    "kg": "g",
    "points.": "levels.",
    "EUR": "USD",
    "percentage": "per mille",
    "hours": "days",
    "March": "April",
    "tonnes": "kilograms",
}


def _mutants(fact: str) -> list[str]:
    found = [
        re.sub(
            r"\d+(?:\.\d+)?",
            lambda m, n=n: m.group() if m.start() != n else str(float(m.group()) * 2 + 1).removesuffix(".0"),
            fact,
        )
        for n in [m.start() for m in re.finditer(r"(?<![-\w.])\d+(?:\.\d+)?", fact)]
    ]
    words = fact.split(" ")
    found += [" ".join([*words[:i], _SWAPS[w], *words[i + 1 :]]) for i, w in enumerate(words) if w in _SWAPS]
    found += [" ".join([*words[:i], "not", *words[i:]]) for i in range(1, len(words) - 1)]
    return found


def test_no_mutant_of_a_true_sentence_is_supported(make_world: Maker) -> None:
    for fact in _FACTS:
        assert _verdict(make_world, fact, document=fact).verdict == "supported"
        for mutant in _mutants(fact):
            given = _verdict(make_world, mutant, document=fact)
            assert given.verdict != "supported", (mutant, given.reason)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ("Sales rose 12 %[3] in the north.[4]", "Sales rose 12 % in the north."),
        (
            "Sales rose 12 % ([report](https://a.example/r1)) in the north.",
            "Sales rose 12 % (report) in the north.",
        ),
        ("Sales rose 12 %, see https://a.example/x/99.", "Sales rose 12 %, see a.example."),
    ],
)
def test_links_and_footnote_marks_of_a_document_do_not_stand_in_the_way(
    make_world: Maker, document: str, sentence: str
) -> None:
    given = _verdict(make_world, sentence, document=document)
    assert given.verdict == "supported", given.reason


def test_digits_of_an_address_are_no_evidence(make_world: Maker) -> None:
    given = _verdict(
        make_world,
        "Sales rose 99 % last year.",
        document="Sales rose last year, see https://a.example/99%25.",
    )
    assert given.verdict == "not_established"


@pytest.mark.parametrize(
    ("document", "sentence", "verdict"),
    [
        ("The plant, which opened late, makes pumps.", "The plant makes pumps.", "supported"),
        ("The plant, which never opened, makes pumps.", "The plant makes pumps.", "not_established"),
        ("The plant (in the north) makes pumps and sells them.", "The plant makes pumps.", "supported"),
        ("Net profit rose 5 %.", "Profit rose 5 %.", "not_established"),
        ("The drug reduced mortality in mice.", "The drug reduced mortality.", "not_established"),
        ("In mice, the drug reduced mortality.", "The drug reduced mortality.", "not_established"),
        ("The drug reduced mortality or pain.", "The drug reduced mortality.", "not_established"),
        ("The growth of wages and profit fell.", "Profit fell.", "not_established"),
        ("The drug reduced mortality, but only in mice.", "The drug reduced mortality.", "not_established"),
    ],
)
def test_leaving_something_off_is_only_supported_where_the_clause_is_whole(
    make_world: Maker, document: str, sentence: str, verdict: str
) -> None:
    given = _verdict(make_world, sentence, document=document)
    assert given.verdict == verdict, given.reason


def test_a_name_glued_to_letters_without_spaces_counts_as_quoted(make_world: Maker) -> None:
    document = "型番VLX-500は重さ12.5kgです。学习Python课程的费用是每人500元。"
    sentence = "The device VLX-500 weighs 12.5 kg."
    names = {check.name: check.outcome for check in _verdict(make_world, sentence, document=document).checks}
    assert names["names"] == "pass"
    wrong = _verdict(make_world, "The device VLX-600 weighs 12.5 kg.", document=document)
    assert {check.name: check.outcome for check in wrong.checks}["names"] == "fail"
