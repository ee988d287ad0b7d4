"""Passages hold the whole text, in order, at borders of the text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leadline.capabilities.corpus.providers.passages import LONGEST, split

pieces = st.sampled_from(
    [
        "word ",
        "Sentence one. ",
        "\n\n",
        "\n",
        "# Heading\n",
        "## Sub\n\n",
        "x" * 700,
        "中文字符。",
        "e\u0301",
        " ",
        "\t",
        "👍🏽",
    ]
)
texts = st.lists(pieces, max_size=120).map("".join)


@given(texts)
def test_passages_hold_all_but_white_space_in_order_and_keep_their_size(text):
    position = 0
    for passage in split(text):
        assert text[position : passage.start].strip() == ""
        body = text[passage.start : passage.end]
        assert body
        assert body == body.strip()
        assert len(body) <= LONGEST
        position = passage.end
    assert text[position:].strip() == ""


def test_sections_part_passages_and_name_them():
    section = "Some words of this section. " * 15
    text = f"# One\n\n{section}\n\n## Two\n\n{section}\n"
    passages = split(text)
    assert [passage.heading for passage in passages] == ["One", "Two"]
    assert text[passages[1].start :].startswith("## Two")


def test_short_sections_stay_together():
    assert len(split("# A\n\nOne line.\n\n# B\n\nAnother line.\n")) == 1


def test_lines_with_a_number_sign_are_no_headings_in_source_code():
    code = "# first\nx = 1\n" * 100
    assert {passage.heading for passage in split(code, headings=False)} == {""}
    assert {passage.heading for passage in split(code)} == {"first"}


def test_long_prose_is_parted_at_ends_of_paragraphs_then_of_sentences():
    paragraph = "This sentence fills the paragraph with some words. " * 10
    for passage in split(f"{paragraph}\n\n" * 8):
        assert passage.end - passage.start >= 500
    prose = "This sentence fills the paragraph with some words. " * 100
    assert all(prose[passage.end - 1] == "." for passage in split(prose))


def test_text_without_any_border_is_cut_between_characters():
    passages = split("e\u0301" * 2000)
    assert len(passages) > 3
    assert all((passage.end - passage.start) % 2 == 0 for passage in passages)


def test_an_empty_text_has_no_passages():
    assert split("") == split(" \n\n ") == []
