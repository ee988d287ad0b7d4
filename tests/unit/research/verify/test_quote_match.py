"""A quote is found up to typography, never up to wording; offsets point into the original text."""

from __future__ import annotations

import random
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.research.verify.quote_match import Match, QuotedText, QuoteMiss, find_quote
from leadline.research.verify.typography import level, normalise

PASSAGE = (
    'The committee\'s first office re-opened in Berlin on 12 March 2021, and "the finance minister" said that '
    "outflow fell by 12.5 % to 1,204 litres - a well-known effect of difficult weather. "
    "In Zürich the naïve estimate was 34 litres higher. "
    "No further efficient measures were planned before 2030; costs stayed below 9 million euros."
)


def _found(text: str, quote: str) -> Match:
    found = find_quote(text, quote)
    assert isinstance(found, Match), found
    return found


def test_an_exact_quote_is_exact() -> None:
    found = _found(PASSAGE, "outflow fell by 12.5 % to 1,204 litres")
    assert found.kind == "exact"
    assert PASSAGE[found.start : found.end] == found.text == "outflow fell by 12.5 % to 1,204 litres"


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("the devel-\nopment of pumps", "the development of pumps"),
        ("the devel-\n   opment of pumps", "the devel-opment of pumps"),
        ("a well-\nknown effect", "a well-known effect"),
        ("a well-known effect", "a well-\nknown effect"),
        ("the develop\u00adment of pumps", "the development of pumps"),
        ("eﬃcient ﬂow of oﬃce staff", "efficient flow of office staff"),
        ("“soft” and ‘hard’ it’s", "\"soft\" and 'hard' it's"),
        ("1990–2000 — a decade", "1990-2000 - a decade"),
        ("ten\u00a0percent\nof  all\r\n\r\ncases", "ten percent of all cases"),
        ("Ｔｏｔａｌ １２３ units", "Total 123 units"),
        ("cafe\u0301 in Zu\u0308rich", "café in Zürich"),
        ("café in Zürich", "cafe\u0301 in Zu\u0308rich"),
        ("销售额\n增长了 12%，达到新高。", "销售额增长了12%,达到新高。"),
        ("a\u200bb zero\ufeff width", "ab zero width"),
        ("wait… what is it", "wait... what is it"),
    ],
)
def test_typography_does_not_matter(text: str, quote: str) -> None:
    assert text not in quote
    found = _found(text, quote)
    assert found.kind == "normalised"
    assert text[found.start : found.end] == found.text == text.strip()


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("it cost 10² units", "it cost 102 units"),
        ("it rose by 10 % then", "it rose by 1"),
        ("it rose by 1.5 % then", "it rose by 1"),
        ("it rose to 2,500 units", "500 units"),
        ("the reformer spoke", "former spoke"),
        ("the word was *never* used", "the word was never used"),
        ("The Word", "the word"),
        ("half: ½ of it all", "half: 1/2 of it all"),
        ("not recommended here", "recommended there"),
        ("one thing. other thing", "one thing other thing"),
    ],
)
def test_wording_does_matter(text: str, quote: str) -> None:
    assert isinstance(find_quote(text, quote), QuoteMiss)


@pytest.mark.parametrize("quote", ["", "  ", "a", "..", "12"])
def test_a_quote_that_could_stand_anywhere_is_refused(quote: str) -> None:
    found = find_quote("a 12 .. b", quote)
    assert isinstance(found, QuoteMiss) and found.code == "too-short"


@pytest.mark.parametrize("quote", ["The committee … Berlin", "The committee ... Berlin", "The [...] office"])
def test_an_ellipsis_is_no_wildcard(quote: str) -> None:
    found = find_quote(PASSAGE, quote)
    assert isinstance(found, QuoteMiss) and found.code == "ellipsis"
    assert "own quote" in found.message


def test_an_ellipsis_that_is_in_the_text_is_text() -> None:
    assert _found("and so on … until the end", "so on … until").kind == "exact"


def test_a_miss_says_where_the_quote_leaves_the_text() -> None:
    found = find_quote(PASSAGE, "outflow fell by 12.5 % to 1,304 litres")
    assert isinstance(found, QuoteMiss)
    assert "fell by 12.5 % to" in found.message and "1,204 litres" in found.message


def test_the_first_of_several_occurrences_is_taken_and_counted() -> None:
    found = _found("it is so. Then it is so. And it is so.", "it is so")
    assert (found.start, found.count) == (0, 3)


_VARIATIONS = {
    "space": lambda text, rng: re.sub(
        r" ", lambda _: rng.choice([" ", "  ", "\n", "\u00a0", " \r\n ", "\u2009"]), text
    ),
    "quotes": lambda text, rng: text.replace('"', rng.choice(["“", "”", "„"])).replace(
        "'", rng.choice(["’", "‘"])
    ),
    "dashes": lambda text, rng: text.replace(" - ", rng.choice([" – ", " — ", " ‒ "])),
    "ligatures": lambda text, rng: text.replace("ffi", "ﬃ").replace("fi", "ﬁ").replace("fl", "ﬂ"),
    "decomposed": lambda text, rng: unicodedata.normalize("NFD", text),
    "hyphenated": lambda text, rng: re.sub(
        r"(?<=[a-z]{3})(?=[a-z]{3})", lambda _: rng.choice(["", "", "", "-\n", "\u00ad"]), text
    ),
    "wide": lambda text, rng: "".join(chr(ord(c) + 0xFEE0) if c.isdigit() else c for c in text),
}


@given(
    st.lists(st.sampled_from(sorted(_VARIATIONS)), min_size=1, max_size=4, unique=True), st.integers(0, 10**6)
)
@settings(max_examples=300)
def test_any_typographic_variation_of_the_text_is_found(names: list[str], seed: int) -> None:
    rng = random.Random(seed)
    words = PASSAGE.split(" ")
    start = rng.randrange(len(words) - 6)
    quote = " ".join(words[start : start + rng.randrange(4, 30)]).strip("\"'-. ")
    text = PASSAGE
    for name in names:
        text = _VARIATIONS[name](text, rng)
    found = find_quote(text, quote)
    assert isinstance(found, Match), (found, text, quote)
    assert text[found.start : found.end] == found.text
    again = find_quote(found.text, quote)
    assert isinstance(again, Match) and (again.start, again.end) == (0, len(found.text))


@given(st.integers(0, 10**9))
@settings(max_examples=500)
def test_no_change_of_wording_is_found(seed: int) -> None:
    rng = random.Random(seed)
    words = PASSAGE.split(" ")
    start = rng.randrange(len(words) - 12)
    span = words[start : start + rng.randrange(8, 12)]
    kind = rng.choice(["delete", "swap-number", "splice", "insert", "exchange", "case"])
    changed = list(span)
    place = rng.randrange(1, len(span) - 1)
    if kind == "delete":
        del changed[place]
    elif kind == "insert":
        changed.insert(place, rng.choice(["not", "never", "nearly"]))
    elif kind == "exchange":
        changed[place], changed[place - 1] = changed[place - 1], changed[place]
    elif kind == "swap-number":
        changed = " ".join(span).translate(str.maketrans("0123456789", "9876501234")).split(" ")
    elif kind == "case":
        changed[place] = changed[place].swapcase()
    else:
        changed = span[:4] + words[(start + 20) % (len(words) - 4) :][:4]
    quote = " ".join(changed)
    if quote in PASSAGE or normalise(quote).text.strip() in normalise(PASSAGE).text:
        return
    assert isinstance(find_quote(PASSAGE, quote), QuoteMiss), (kind, quote)


@given(st.text(max_size=200))
@settings(max_examples=300)
def test_normalising_any_text_keeps_every_offset_inside_it(text: str) -> None:
    normal = normalise(text)
    last = 0
    for place in range(len(normal.text)):
        start, end = normal.span(place, place + 1)
        assert last <= start or start < end
        assert 0 <= start < end <= len(text)
        last = start


@given(st.text(min_size=1, max_size=80), st.data())
@settings(max_examples=300)
def test_any_span_of_any_text_that_is_found_exactly_is_returned_as_it_is(
    text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    found = find_quote(text, text[start:end], min_word_characters=1)
    if isinstance(found, Match) and found.kind == "exact":
        assert found.text == text[start:end].strip() == text[found.start : found.end]


def test_a_text_of_a_megabyte_is_normalised_once_and_searched_at_once() -> None:
    text = "The quick brown fox rose by 10 % in the devel-\nopment of “things”.\n" * 15_000
    quoted = QuotedText(text + "The needle was found at last.")
    assert isinstance(quoted.find("needle  was found at last"), Match)
    normal = quoted.normal
    assert isinstance(quoted.find("the needle was lost"), QuoteMiss)
    assert quoted.normal is normal


@given(st.text(max_size=120))
@settings(max_examples=300)
def test_levelling_twice_is_levelling_once(text: str) -> None:
    assert level(level(text)) == level(text)
