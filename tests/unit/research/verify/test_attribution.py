"""A sentence may say which document speaks; what it says of the document is checked against the ledger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from leadline.research.events import Leaf
from leadline.research.report.draft import check_report
from leadline.research.verify import attribution
from leadline.research.verify.attribution import Day, agreement, day_of, read_attribution
from leadline.research.verify.judge import judge

Maker = Callable[..., Any]
TITLES = ("VLX-500 Concept One-Pager (v0.2 - SUPERSEDED)", "Expense Policy (2026)", "差旅制度")


@pytest.mark.parametrize(
    ("text", "title", "date", "version", "rest"),
    [
        ("According to “Expense Policy (2026)”: Caps.", "Expense Policy (2026)", None, None, "Caps."),
        (
            "According to the report “Expense Policy” (2026-03), caps.",
            "Expense Policy",
            "2026-03",
            None,
            "caps.",
        ),
        ("According to Expense Policy (2026): Caps.", "Expense Policy (2026)", None, None, "Caps."),
        ("“Expense Policy” (March 2026) says that caps.", "Expense Policy", "March 2026", None, "caps."),
        ("Expense Policy (2026): Caps.", "Expense Policy (2026)", None, None, "Caps."),
        ("Per 'Expense Policy' of March 2026: Caps.", "Expense Policy", "March 2026", None, "Caps."),
        ("An older version of this document says: Caps.", None, None, "older", "Caps."),
        (
            "An older version of this document, “VLX-500 Concept One-Pager (v0.2)” (2025-06), says: Battery: 10h.",
            "VLX-500 Concept One-Pager (v0.2)",
            "2025-06",
            "older",
            "Battery: 10h.",
        ),
        ('“The "new" plan” says: Caps.', 'The "new" plan', None, None, "Caps."),
        ("The latest version of the document, “X” (2026), states: Caps.", "X", "2026", "latest", "Caps."),
        ("A newer version says: Caps.", None, None, "newer", "Caps."),
        (
            "Laut „Spesenordnung“ vom 12. März 2026: Grenze.",
            "Spesenordnung",
            "12. März 2026",
            None,
            "Grenze.",
        ),
        ("In „Spesenordnung“ heißt es: Grenze.", "Spesenordnung", None, None, "Grenze."),
        ("Eine ältere Fassung dieses Dokuments, „X“ (2025-06), besagt: Y.", "X", "2025-06", "older", "Y."),
        ("Selon « Politique » (2026) : Plafond.", "Politique", "2026", None, "Plafond."),
        (
            "Une version plus ancienne de ce document, « X » (2025-06), dit : Y.",
            "X",
            "2025-06",
            "older",
            "Y.",
        ),
        ("Según «Política» (2026): Tope.", "Política", "2026", None, "Tope."),
        ("Una versión anterior de este documento, «X» (2025-06), dice: Y.", "X", "2025-06", "older", "Y."),
        ("根据《差旅制度》（2026年）：上限。", "差旅制度", "2026年", None, "上限。"),
        ("该文件的旧版本《概念书》（2025-06）称：电池。", "概念书", "2025-06", "older", "电池。"),
        ("「旅費規程」（2026）によると：上限。", "旅費規程", "2026", None, "上限。"),
        ("この文書の古い版「構想書」（2025-06）では：電池。", "構想書", "2025-06", "older", "電池。"),
        ("According to “Expense Policy”:", "Expense Policy", None, None, ""),
    ],
)
def test_the_forms_of_six_languages_are_read(
    text: str, title: str | None, date: str | None, version: str | None, rest: str
) -> None:
    found, left = read_attribution(text, TITLES, TITLES)
    assert found is not None
    assert (found.title, found.date, found.version, left) == (title, date, version, rest)


@pytest.mark.parametrize(
    "text",
    [
        "Battery: 10h.",
        "The report says that caps fell.",
        "In 2026: caps.",
        "“Save as”: the menu.",
        "An older version of this document says otherwise: caps.",
        "According to nobody: caps.",
        "“Expense Policy” does not say: caps.",
        "Contrary to “Expense Policy”: caps.",
        "“Expense Policy” and “Other Policy” say: caps.",
    ],
)
def test_other_words_are_no_attribution(text: str) -> None:
    assert read_attribution(text, TITLES, TITLES) == (None, text)


def test_every_form_that_the_docstring_names_is_read() -> None:
    named = [line.strip() for line in (attribution.__doc__ or "").splitlines() if line.startswith("    ")]
    examples = [part for line in named for part in line.split("   ") if part.strip().endswith("...")]
    assert len(examples) > 15
    for example in examples:
        if " / " not in example:
            assert read_attribution(example.strip(), TITLES, TITLES)[0] is not None, example


def test_hostile_lengths_are_read_in_no_time() -> None:
    for text in (
        'According to "' * 2000,
        '"x", ' * 4000,
        "In " + '"a" of ' * 3000,
        "根据《" * 3000,
        "An older version, " * 2000,
    ):
        assert read_attribution(text, TITLES, TITLES)[0] is None


@pytest.mark.parametrize(
    ("named", "title", "how"),
    [
        ("Expense Policy", "Expense Policy", "whole"),
        ("expense policy (2026)", "Expense Policy (2026)", "whole"),
        ("Expense Policy", "Expense Policy (2026)", "most"),
        ("Policy", "Expense Policy (2026)", None),
        ("Expense Policy (2024)", "Expense Policy (2026)", None),
        ("Expense Policy", "Draft Expense Policy", None),
        ("Merger of Alpha and Beta", "No Merger of Alpha and Beta", None),
        ("差旅制度", "公司差旅制度", "most"),
        ("制度", "公司差旅制度", None),
        ("", "Expense Policy", None),
    ],
)
def test_most_of_a_title_names_the_document_unless_weight_is_left_out(
    named: str, title: str, how: str | None
) -> None:
    assert agreement(named, title) == how


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026", Day(2026)),
        ("2025-12", Day(2025, 12)),
        ("2025-12-31", Day(2025, 12, 31)),
        ("March 2026", Day(2026, 3)),
        ("12 March 2025", Day(2025, 3, 12)),
        ("12. März 2026", Day(2026, 3, 12)),
        ("2026年3月", Day(2026, 3)),
        ("2025 and 2026", None),
        ("not 2026", None),
        ("Q1 2026", None),
        ("42", None),
    ],
)
def test_a_date_is_read_in_any_spelling(text: str, day: Day | None) -> None:
    assert day_of(text) == day


def _world(make_world: Maker) -> tuple[Any, str, str]:
    """Two versions of one document and an unrelated one; evidence from the older and the newer."""
    world = make_world(question="Which battery?")
    old = world.source(
        "- Battery: 10h Li-ion, swappable\n", title="VLX Concept (v0.2 - SUPERSEDED)", published="2025-06"
    )
    new = world.source("- Battery: 11h LFP\n", title="VLX Product Brief", published="2026-03-04")
    world.source("Nothing of it.", title="Expense Policy")
    world.version(new, old)
    return world, world.quote(old, "Battery: 10h Li-ion, swappable"), world.quote(new, "Battery: 11h LFP")


@pytest.mark.parametrize(
    ("sentence", "verdict", "told"),
    [
        (
            "“VLX Concept (v0.2)” (2025-06) says: Battery: 10h Li-ion, swappable.",
            "supported",
            "the one it cites",
        ),
        ("According to “VLX Concept (v0.2 - SUPERSEDED)”: Battery: 10h Li-ion, swappable.", "supported", ""),
        (
            "An older version of this document, “VLX Concept (v0.2)” (June 2025), says: Battery: 10h Li-ion, swappable.",
            "supported",
            "",
        ),
        ("An older version of this document says: Battery: 10h Li-ion, swappable.", "supported", ""),
        ("According to d-1.md (2025): Battery: 10h Li-ion, swappable.", "supported", ""),
        ("According to “VLX Concept (v0.2)”:", "supported", "which document follows"),
        (
            "According to “VLX Product Brief”: Battery: 10h Li-ion, swappable.",
            "contradicted",
            "another document",
        ),
        (
            "According to “Expense Policy”: Battery: 10h Li-ion, swappable.",
            "contradicted",
            "another document",
        ),
        ("According to “Annual Report”: Battery: 10h Li-ion, swappable.", "not_established", "Annual Report"),
        ("“VLX Concept (v0.2)” (2026) says: Battery: 10h Li-ion, swappable.", "contradicted", "2025-06"),
        (
            "“VLX Concept (v0.2)” (12 June 2025) says: Battery: 10h Li-ion, swappable.",
            "not_established",
            "only 2025-06",
        ),
        (
            "A newer version of this document says: Battery: 10h Li-ion, swappable.",
            "contradicted",
            "an older version",
        ),
        (
            "The current version of this document says: Battery: 10h Li-ion, swappable.",
            "contradicted",
            "older",
        ),
        ("“VLX Concept (v0.2)” (2025-06) says: Battery: 12h Li-ion, swappable.", "contradicted", "12h"),
        ("“VLX Concept (v0.2)” (2025-06) says: The battery lasts long.", "not_established", "wording"),
    ],
)
def test_what_a_sentence_says_of_its_document_is_checked(
    make_world: Maker, sentence: str, verdict: str, told: str
) -> None:
    world, old, _ = _world(make_world)
    report = world.draft([Leaf(text=sentence, evidence=(old,))])
    given = judge(report, world.ledger, world.texts)[0]
    assert (given.verdict, told in given.reason) == (verdict, True), given.reason
    assert bool(check_report(report, world.ledger)) == (
        verdict == "contradicted" or "Annual" in told or "only" in told
    )


def test_the_newer_one_is_not_the_older(make_world: Maker) -> None:
    world, _, new = _world(make_world)
    sentences = [
        "An older version of this document says: Battery: 11h LFP.",
        "The latest version of this document, “VLX Product Brief” (4 March 2026), says: Battery: 11h LFP.",
    ]
    report = world.draft([Leaf(text=one, evidence=(new,)) for one in sentences])
    assert [one.verdict for one in judge(report, world.ledger, world.texts)] == ["contradicted", "supported"]


def test_versions_that_the_run_did_not_find_are_not_established(make_world: Maker) -> None:
    world = make_world()
    e = world.quote(world.source("The cap is 12 units."), "The cap is 12 units.")
    report = world.draft([Leaf(text="An older version says: The cap is 12 units.", evidence=(e,))])
    given = judge(report, world.ledger, world.texts)[0]
    assert given.verdict == "not_established" and "no other version" in given.reason


def test_one_name_does_not_stand_for_two_documents(make_world: Maker) -> None:
    world, old, new = _world(make_world)
    text = "According to “VLX Product Brief”: Battery: 11h LFP."
    report = world.draft([Leaf(text=text, evidence=(new, old)), Leaf(text=text, evidence=(new,))])
    assert [one.verdict for one in judge(report, world.ledger, world.texts)] == ["contradicted", "supported"]


def test_a_date_in_the_title_will_do_where_no_other_is_known(make_world: Maker) -> None:
    world = make_world()
    source = world.source("Margin: 41 % blended", title="Q1 Report 2026")
    e = world.quote(source, "Margin: 41 % blended")
    texts = [f"“Q1 Report 2026” ({year}): Margin: 41 % blended." for year in (2026, 2025)]
    report = world.draft([Leaf(text=one, evidence=(e,)) for one in texts])
    assert [one.verdict for one in judge(report, world.ledger, world.texts)] == [
        "supported",
        "not_established",
    ]


def test_an_attribution_without_evidence_proves_nothing(make_world: Maker) -> None:
    world, _, _ = _world(make_world)
    report = world.draft([Leaf(text="According to “VLX Product Brief”: Battery: 11h LFP.")])
    assert judge(report, world.ledger, world.texts)[0].verdict == "not_established"
