"""What is taken out of a result before anybody sees it."""

from __future__ import annotations

import json
import unicodedata

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.tools.sanitise import NotJson, sanitise, sanitise_value

ANY_TEXT = st.text(alphabet=st.characters(codec=None) | st.sampled_from("\x1b[]\\\x07;m\r\n\x00"))


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("plain", "plain"),
        ("a\x00b", "ab"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;no end\nnext", "\nnext"),
        ("\x1bPdevice\x1b\\after", "after"),
        ("\x1b(Bset", "set"),
        ("one\r\ntwo\rthree\n", "one\ntwo\nthree\n"),
        ("tab\tstays\n", "tab\tstays\n"),
        ("\x1b\x1b[0m[0m", "[0m"),
        ("half \ud800 pair", "half \ufffd pair"),
        ("bell\x07 back\x08space\x7f", "bell backspace"),
        ("wrongly decoded \xe2\x80\x9d stays whole", "wrongly decoded \xe2 stays whole"),
        ("中文 ‮ \u200b é", "中文 ‮ \u200b é"),
    ],
)
def test_escapes_and_controls_go_and_text_stays(dirty: str, clean: str) -> None:
    assert sanitise(dirty) == clean


@given(ANY_TEXT)
def test_what_is_left_is_valid_and_doing_it_again_changes_nothing(text: str) -> None:
    clean = sanitise(text)
    assert sanitise(clean) == clean
    assert clean.encode().decode() == clean
    assert all(char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs") for char in clean)


@pytest.mark.case("L03")
def test_bytes_of_another_charset_never_make_json_invalid() -> None:
    printed = b"\xd6\xd0 ok".decode("utf-8", "surrogateescape")
    assert json.loads(msgspec.json.encode(sanitise(printed))) == "\ufffd\ufffd ok"


def test_a_value_is_cleaned_all_through() -> None:
    assert sanitise_value({"a\x00": ["\x1b[1mx", ("y\r\n", None, True, 2, 2.5)]}) == {
        "a": ["x", ["y\n", None, True, 2, 2.5]]
    }


@pytest.mark.parametrize("value", [{1: "x"}, {"a": {1, 2}}, b"x", float("nan"), float("inf"), object()])
def test_what_json_cannot_carry_is_named_with_its_place(value: object) -> None:
    with pytest.raises(NotJson, match=r"^\$"):
        sanitise_value(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(NotJson, match="nested"):
        sanitise_value(loop)
