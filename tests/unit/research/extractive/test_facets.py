"""Splitting a question into what can be answered apart."""

from __future__ import annotations

import pytest

from leadline.research.extractive.facets import split, sub_questions


@pytest.mark.parametrize(
    ("question", "facets"),
    [
        ("What are the caps and who approves discounts?", ["What are the caps", "who approves discounts?"]),
        ("What is A-1? Who runs B-2?", ["What is A-1?", "Who runs B-2?"]),
        (
            "Was kostet der Ausweis und wer leitet das Haus?",
            ["Was kostet der Ausweis", "wer leitet das Haus?"],
        ),
        (
            "When was it founded and by whom?",
            ["When was it founded?", "By whom was it founded?"],
        ),
        ("Where and when does the fair open?", ["Where does the fair open?", "When does the fair open?"]),
        ("成人票多少钱，周一开门吗？", ["成人票多少钱", "周一开门吗？"]),
        ("What is the research and development budget?", ["What is the research and development budget?"]),
        ("How did the margin develop from 2024 to 2026?", ["How did the margin develop from 2024 to 2026?"]),
    ],
)
def test_clauses_that_ask_are_facets(question: str, facets: list[str]) -> None:
    assert split(question) == facets


def test_a_facet_that_points_back_is_told_at_what() -> None:
    assert (
        split("What battery has the VLX-500 and when does it launch?")[1] == "when does it launch (VLX-500)?"
    )
    assert (
        split("How long may I borrow the telescope, and what does it cost?")[1]
        == "what does it cost (telescope)?"
    )


def test_joined_things_are_asked_for_one_by_one() -> None:
    assert sub_questions("What are the payload and top speed of the VLX-500?") == [
        "What are the payload of the VLX-500?",
        "What are the top speed of the VLX-500?",
    ]
    assert sub_questions("What is the payload of the VLX-500?") == []


@pytest.mark.parametrize("question", ["", " ", "?", "?!", "and", "、", "\n\n"])
def test_nothing_to_ask_stays_one_facet(question: str) -> None:
    assert len(split(question)) == 1
