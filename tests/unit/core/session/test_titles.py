"""Titles: who gave one, and how one is cut from first words in any script."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.llm.messages import MessageSource, Text, UserMessage
from leadline.core.session.events import InboxSpliced, Titled, UserEntered
from leadline.core.session.projection import project
from leadline.core.session.titles import MAX_TITLE, TITLES, cut_title
from leadline.testing.sessions import memory_session


def told(text: str, kind: str = "user", message_id: str = "u1") -> UserEntered:
    return UserEntered(message=UserMessage(message_id, (Text(text),), MessageSource(kind)))


def title(*events: object) -> str:
    return project(TITLES, memory_session(events=events))  # pyright: ignore[reportArgumentType]


def columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def test_without_a_title_the_first_words_of_a_person_are_one() -> None:
    rules = told("You are in a folder of rules.", "plugin", "p1")
    assert title(rules, told("How deep is the channel?"), told("And the harbour?", message_id="u2")) == (
        "How deep is the channel?"
    )


def test_a_session_that_no_person_spoke_in_has_the_first_words_of_anybody() -> None:
    assert title(told("Search the unit.", "agent"), told("More.", "agent", "u2")) == "Search the unit."


def test_a_prompt_that_still_waits_counts_as_first_words() -> None:
    waiting = UserMessage("u1", (Text("What does it cost?"),))
    assert title(InboxSpliced(target="next-turn", inserted=(waiting,))) == "What does it cost?"


def test_a_persons_title_holds_against_a_models_and_that_against_the_first_words() -> None:
    first, model, user = (
        Titled(title="First", source="first"),
        Titled(title="By a model", source="model"),
        Titled(title="Mine", source="user"),
    )
    words = told("How deep is the channel?")
    assert title(words, first) == "First"
    assert title(model, words, first) == "By a model"
    assert title(user, words, model, first) == "Mine"


def test_a_later_title_of_the_same_source_replaces_the_earlier_and_an_empty_one_takes_it_back() -> None:
    one, two, none = (Titled(title=text, source="user") for text in ("One", "Two\n lines", ""))
    assert title(one, two) == "Two lines"
    assert title(told("Words."), one, none) == "Words."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Harbour rules\n\nand more", "Harbour rules and more"),
        ("How deep is it?", "How deep is it?"),
        ("Compare both channels in depth. Then write a report about it.", "Compare both channels in depth."),
        ("1. `read` **all** of snake_case_name", "read all of snake_case_name"),
        ("港口的灯塔从什么时候开始对公众开放？门票多少钱？", "港口的灯塔从什么时候开始对公众开放？"),
        (
            "请比较东京与大阪的港口博物馆在过去二十年里的参观人数变化，并说明主要原因以及对地方经济的影响",
            "请比较东京与大阪的港口博物馆在过去二十年里的参观人数变化…",
        ),
        ("   \n\t ", ""),
    ],
)
def test_a_title_is_cut_where_a_reader_would_cut_it(text: str, expected: str) -> None:
    assert cut_title(text) == expected


def test_a_long_title_ends_at_a_word() -> None:
    words = ["the", "depth", "of", "the", "harbour", "channel", "at", "low", "water"]
    cut = cut_title(" ".join(words * 4))
    assert cut.endswith("…") and set(cut[:-1].split()) <= set(words)


@given(st.text(max_size=300))
def test_whatever_the_text_a_title_is_one_line_that_fits(text: str) -> None:
    cut = cut_title(text)
    assert columns(cut) <= MAX_TITLE + sum(
        1 for char in cut if unicodedata.category(char) in ("Mn", "Me", "Cf")
    )
    assert cut == " ".join(cut.split()) and not any(unicodedata.category(char) == "Cc" for char in cut)


def test_a_letter_is_not_cut_from_its_accent() -> None:
    cut = cut_title("e\u0301" * 100)
    assert cut[-2] == "\u0301" and cut[-1] == "…"
