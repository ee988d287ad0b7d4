"""What is read out of a question: terms, kind of answer, span of time."""

from __future__ import annotations

import pytest

from leadline.research.extractive.question import TimeSpan, read_question


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("Who approves discounts?", "person"),
        ("When is the audit?", "date"),
        ("Where are large bags left?", "place"),
        ("How long may nets hang?", "duration"),
        ("How many boats are there?", "count"),
        ("What does a key cost?", "money"),
        ("How much does a key cost?", "money"),
        ("How deep is the harbour?", "amount"),
        ("What share of sales is online?", "percent"),
        ("Are dogs allowed?", "yesno"),
        ("Which battery does it have?", "any"),
        ("Wer leitet die Bibliothek?", "person"),
        ("Wie viele Besuche gab es?", "count"),
        ("Combien coûte une clé ?", "money"),
        ("¿Cuándo abre la clínica?", "date"),
        ("成人票多少钱？", "money"),
        ("館長は誰ですか？", "person"),
    ],
)
def test_the_kind_of_answer_is_told_by_the_form_of_the_question(question: str, wanted: str) -> None:
    assert read_question(question).wanted == wanted


def test_codes_years_names_and_pairs_are_entities_and_function_words_are_nothing() -> None:
    terms = {
        term.text: term.kind
        for term in read_question("What did Mara say of the VLX-500 in Series C, 2024?").terms
    }
    assert terms == {"mara": "name", "vlx500": "code", "seri c": "pair", "2024": "year"}


def test_a_code_is_one_term_however_it_is_written() -> None:
    written = [
        read_question(f"battery of the {code}").strict[-1].text for code in ("VLX-500", "vlx-500", "VLX500")
    ]
    assert set(written) == {"vlx500"}


def test_synonyms_share_a_concept_across_languages() -> None:
    concepts = [
        {name for term in read_question(question).terms for name in term.concepts}
        for question in (
            "What are the lodging caps?",
            "Wie hoch ist das Limit für Hotels?",
            "酒店的上限是多少？",
        )
    ]
    assert all({"lodging", "limit"} <= found for found in concepts)


@pytest.mark.parametrize(
    ("question", "span"),
    [
        ("How did the margin develop from 2024 to 2026?", TimeSpan(2024, 2026)),
        ("How has the fleet grown since 2024?", TimeSpan(2024, None)),
        ("How did the margin develop over the years?", TimeSpan()),
        ("Wie entwickelte sich der Umsatz von 2020 bis 2023?", TimeSpan(2020, 2023)),
        ("What was the margin in 2025?", None),
        ("What is the margin?", None),
    ],
)
def test_a_development_over_time_has_a_span(question: str, span: TimeSpan | None) -> None:
    assert read_question(question).span == span


def test_with_only_general_words_those_are_what_is_asked() -> None:
    assert read_question("What are the rules?").strict
