"""What is read into a question before it is answered: periods, spelling, years told by their distance."""

from __future__ import annotations

import pytest

from leadline.research.extractive.library import Document, Library
from leadline.research.extractive.periods import codes_in, with_codes
from leadline.research.extractive.relative import resolved
from leadline.research.extractive.spelling import respelled


def library(*texts: str) -> Library:
    documents = tuple(Document(str(at), "Notes", f"{at}.md", text) for at, text in enumerate(texts))
    return Library(documents, len(documents))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("the first quarter of 2025", "Q1"),
        ("das dritte Quartal 2024", "Q3"),
        ("au quatrième trimestre", "Q4"),
        ("2025年第二季度", "Q2"),
        ("第1四半期", "Q1"),
        ("the second half of 2025", "H2"),
    ],
)
def test_a_period_in_words_is_its_code(text: str, code: str) -> None:
    assert code in with_codes(text)
    assert codes_in(text) == {code.casefold()}


def test_no_period_is_read_where_there_is_none() -> None:
    assert codes_in("a quarter of the members") == frozenset()


@pytest.mark.parametrize("typed", ["emloyees", "empployees", "employes", "emplyoees"])
def test_one_wrong_letter_is_mended_by_the_words_of_the_documents(typed: str) -> None:
    held = library("There are 12 employees.")
    assert respelled(f"How many {typed} are there?", held) == "How many employees are there?"


@pytest.mark.parametrize(
    "question",
    [
        "What does the harbor cost?",
        "Who is Marlinson?",
        "What is the price of KJ-301?",
        "How many parkings are there?",
    ],
)
def test_known_words_names_and_codes_stay_as_they_are(question: str) -> None:
    held = library("The harbors of Marlinsen. KJ-300 costs EUR 5. Packing is free.")
    assert respelled(question, held) == question


def test_last_year_is_counted_from_the_newest_document() -> None:
    held = library("# Report\n\nHeld on 3 May 2025\n", "# Report\n\nHeld on 3 May 2023\n")
    assert resolved("What was sold last year?", held) == "What was sold 2024 ?"


def test_a_time_that_no_document_tells_is_not_read() -> None:
    assert resolved("What was sold last year?", library("Nothing here.")) is None
    assert resolved("What was sold yesterday?", library("# Report\n\n3 May 2025\n")) is None
