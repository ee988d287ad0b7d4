"""Documents as passages that can be quoted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leadline.research.extractive.passages import MAX_QUOTE, passages


def texts_of(text: str, kind: str, location: str = "") -> list[str]:
    return [one.text for one in passages(text, location) if one.kind == kind]


def test_sentences_are_whole_across_line_breaks() -> None:
    text = "The loft costs approx. 3.50 EUR.\nDr. Shea keeps the\nkeys. Ask him."
    assert texts_of(text, "sentence") == [
        "The loft costs approx. 3.50 EUR.",
        "Dr. Shea keeps the\nkeys.",
        "Ask him.",
    ]


def test_items_keep_their_continuation_and_what_introduces_them() -> None:
    text = "# Rules\n\n## Keys\n\nThese hold:\n\n- One key\n  a skipper.\n- No copies.\n"
    items = [one for one in passages(text) if one.kind == "item"]
    assert [one.text for one in items] == ["One key\n  a skipper.", "No copies."]
    assert items[0].headings == ("Rules", "Keys")
    assert items[0].lead == "These hold:"


def test_rows_know_the_head_of_their_table() -> None:
    text = "| Spec | A-1 | B-2 |\n|---|---|---|\n| Battery | 8h | 11h |\n"
    (row,) = [one for one in passages(text) if one.kind == "row"]
    assert row.text == "| Battery | 8h | 11h |"
    assert row.head is not None
    assert row.head.of(text) == "| Spec | A-1 | B-2 |"


def test_rows_set_apart_by_blank_lines_are_one_table() -> None:
    text = "| Spec | A-1 |\n\n|---|---|\n\n| Battery | 8h |\n\n| Speed | 2 m/s |\n"
    rows = [one for one in passages(text) if one.kind == "row"]
    assert [one.lead for one in rows] == ["| Spec | A-1 |"] * 2


def test_a_csv_file_is_a_table() -> None:
    rows = [one for one in passages("boat,length\nSaoirse,9.8\n", "boats.csv") if one.kind == "row"]
    assert [(one.text, one.lead) for one in rows] == [("Saoirse,9.8", "boat  length")]


def test_headings_of_plain_text_are_seen() -> None:
    text = "HOUSE RULES\nValid from 1 May 2026.\n\n3. NETS\nNets may hang for 14 days.\n"
    (sentence,) = [one for one in passages(text) if "14 days" in one.text]
    assert sentence.headings == ("HOUSE RULES", "3. NETS")


def test_question_and_answer_stay_together() -> None:
    assert texts_of("Q: Are dogs allowed?\nA: No.\n", "answer") == ["Q: Are dogs allowed?\nA: No."]


def test_a_sentence_that_a_blank_line_broke_goes_on() -> None:
    broken = "The brief says that the robot is targeted for launch in\n\nQ4 2026 at a price of $56,000."
    assert texts_of(f"# Brief\n\n{broken}\n", "sentence") == [broken]


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=400))
def test_every_passage_is_a_stretch_of_the_text(text: str) -> None:
    for one in passages(text):
        assert text[one.span.start : one.span.end] == one.text
        assert 0 < len(one.text) <= MAX_QUOTE or one.kind == "row"


def test_quotes_begin_behind_the_marks_of_lists_and_headings() -> None:
    text = "# Log\n\n## 2.3.0 - 2025-11-02\n\n- **Added:** export\n1. One thing\n* Another\n"
    begins = [one.text[:1] for one in passages(text)]
    assert not {"-", "#", "*", "1"} & {one for one in begins if one != "*"}
    assert "**Added:** export" in [one.text for one in passages(text)]


def test_a_heading_is_a_passage_but_the_title_is_none() -> None:
    text = "# Log\n\n## 2.3.0 - 2025-11-02\n\n- Added: export\n"
    assert [one.text for one in passages(text) if one.kind == "heading"] == ["2.3.0 - 2025-11-02"]


def test_every_line_of_a_program_is_a_passage() -> None:
    found = passages("def f():\n    return LIMIT\n\nLIMIT = 5\n", "a.py")
    assert [one.text for one in found] == ["def f():", "return LIMIT", "LIMIT = 5"]
    assert "return LIMIT" in found[0].near


def test_every_passage_is_exactly_its_span() -> None:
    text = "# T\n\n- a b c\n- d\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n1. one\n2. two\n"
    for location in ("a.md", "a.csv", "a.py"):
        assert all(one.text == one.span.of(text) for one in passages(text, location))
