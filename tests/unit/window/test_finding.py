"""A text is found as a person would find it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.window.finding import spans


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("The HOTEL cap", "hotel", ["HOTEL"]),
        ("hotel\n   cap", "hotel cap", ["hotel\n   cap"]),
        ("水は百度で沸く。水は", "水は", ["水は", "水は"]),
        ("ＨＯＴＥＬ １８０", "hotel 180", ["ＨＯＴＥＬ １８０"]),
        ("Straße und STRASSE", "strasse", ["Straße", "STRASSE"]),
        ("cafe\u0301 and café", "café", ["cafe\u0301", "café"]),
        ("café", "cafe", []),
        ("cafe\u0301", "cafe", []),
        ("각하", "가", []),
        ("가나각", "가", ["가"]),
        ("İstanbul", "i\u0307stanbul", ["İstanbul"]),
        ("ﬁrst", "f", []),
        ("ﬁrst", "first", ["ﬁrst"]),
        ("Ａ\u00adＢ", "ab", ["Ａ\u00adＢ"]),
        ("МОСКВА", "москва", ["МОСКВА"]),
        ("aaaa", "aa", ["aa", "aa"]),
        ("a.c abc", "a.c", ["a.c"]),
        ("anything", "  ", []),
        ("é", " ", []),
        ("ascii only", "水", []),
    ],
)
def test_places_are_those_that_a_person_sees(text: str, words: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in spans(text, words)] == found


@given(st.text(max_size=30), st.text(min_size=1, max_size=5), st.text(max_size=30))
def test_what_stands_between_blanks_is_found_wherever_it_is(before: str, words: str, after: str) -> None:
    text = f"{before} 水 {words} . {after}"
    places = list(spans(text, words))
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert places == sorted(places)
