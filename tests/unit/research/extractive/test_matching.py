"""How a text covers a term, and whether it holds the kind of thing that is wanted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.research.extractive.hints import folded, may_hold
from leadline.research.extractive.kinds import nearness, satisfies
from leadline.research.extractive.matching import likeness
from leadline.research.extractive.question import read_question


def covers(question: str, text: str, *, term: int = -1, document: str | None = None) -> float:
    asked = read_question(question)
    return likeness(asked.strict[term], text, asked.language, document)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("the VLX-500", "the VLX 500 in use"),
        ("founders", "Founded in 2019"),
        ("vacation", "22 days PTO"),
        ("a discount of 15%", "12-20%: VP Sales"),
        ("a discount of 25%", "Above 20%: the board"),
        ("Series C", "| Series C | $85M |"),
        ("in 2024", "Q1 2024 report"),
        ("der Urlaub", "Der Jahresurlaub beträgt 28 Tage"),
        ("arroser", "L'arrosage est permis"),
        ("June", "2026-06-02,04:58"),
    ],
)
def test_the_same_thing_is_seen_in_other_words(question: str, text: str) -> None:
    assert covers(question, text) > 0


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("the VLX-900", "the VLX-500 in use"),
        ("a discount of 25%", "12-20%: VP Sales"),
        ("Series D", "| Series C | $85M |"),
        ("in 2019", "Q1 2024 report"),
        ("herring", "quota for mackerel"),
        ("sick", "22 days PTO"),
    ],
)
def test_another_thing_is_not_taken_for_it(question: str, text: str) -> None:
    assert covers(question, text) == 0


def test_spellings_of_another_language_count_only_in_another_language() -> None:
    assert covers("Welches Teleskop", "the roof telescope", document="en") > 0
    assert covers("Which theatre", "the theology") == 0


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("What does a key cost?", "A lost key costs EUR 25.", "Every skipper has a key."),
        ("When is the audit?", "The audit is in September 2026.", "The audit is under way."),
        ("Who is the treasurer?", "Treasurer: Declan Moriarty", "The treasurer keeps the books."),
        ("Who approves discounts?", "CEO + CFO joint approval", "approval takes time"),
        ("How long may nets hang?", "at most 14 days", "not for long"),
        ("How many boats?", "There are 31 boats.", "There are boats in 2026."),
        ("馆长是谁？", "馆长陈思远表示", "馆长室在二楼"),
        ("What does a key cost?", "钥匙费用为EUR 25左右", "钥匙在二楼"),
        ("What does a key cost?", "열쇠는 15,000원입니다", "열쇠 3개"),
        ("When did sales rise?", "营收在Q3增长", "营收增长"),
    ],
)
def test_an_answer_holds_the_kind_of_thing_that_is_asked(question: str, right: str, wrong: str) -> None:
    asked = read_question(question)
    assert satisfies(asked, right)
    assert not satisfies(asked, wrong)


def test_a_number_of_something_else_is_not_near() -> None:
    asked = read_question("How many employees are there?")
    assert nearness(asked, "Headcount: 241 employees") > 0.5
    assert nearness(asked, "US employees: 22 days PTO") == 0


@given(
    st.sampled_from(
        [
            "What does the hotel cost?",
            "Who founded it in June 2024?",
            "Urlaub der VLX-500",
            "成人票多少钱",
            "Does Python need a licence?",
        ]
    ),
    st.sampled_from(
        [
            "Hotel caps: EUR 180",
            "co-founder 2024-06-01",
            "Jahresurlaub",
            "vlx 500",
            "成人票：40元",
            "vacaciones",
            "学习Python课程",
            "型番VLX-500は",
            "x",
        ]
    ),
)
def test_the_quick_look_never_misses_what_the_close_one_finds(question: str, text: str) -> None:
    asked = read_question(question)
    for term in asked.terms:
        if likeness(term, text, asked.language, "de") > 0:
            assert may_hold(term, folded(text), asked.language)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Does Python need a licence?", "学习Python课程"),
        ("Does Python need a licence?", "Python과정"),
        ("Was ist Kubernetes?", "Kubernetesクラスタ"),
        ("What does the VLX-500 weigh?", "型番VLX-500は重い"),
        ("What does release 1.2.3 need?", "版本1.2.3以上"),
        ("Is A4 in stock?", "용지는 A4용지입니다"),
    ],
)
def test_a_word_or_code_glued_to_letters_without_spaces_is_seen(question: str, text: str) -> None:
    asked = read_question(question)
    assert any(likeness(term, text, asked.language) == 1 for term in asked.terms)
