"""How the arguments of a call are read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.tools.arguments import Arguments, BadArguments, of_object, parse_arguments

JSON_OBJECTS = st.dictionaries(
    st.text(),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ),
    max_size=5,
)


def refused(raw: str) -> str:
    parsed = parse_arguments(raw)
    assert isinstance(parsed, BadArguments), parsed
    return parsed.problem


@pytest.mark.case("M10")
@pytest.mark.parametrize("raw", ["", "null", None, "  ", "\n\t", " null "])
def test_nothing_counts_as_an_empty_object(raw: str | None) -> None:
    parsed = parse_arguments(raw)
    assert isinstance(parsed, Arguments)
    assert parsed.fresh() == {}


@pytest.mark.case("M44")
def test_lone_backslashes_are_told_with_their_place_and_what_to_send_instead() -> None:
    problem = refused(r'{"text":"see \upcite{b} and \alpha"}')
    assert "escape" in problem
    assert "line 1, column" in problem
    assert "⟨HERE⟩" in problem
    assert r"\\alpha, not \alpha" in problem


@pytest.mark.parametrize(
    "raw",
    ['{"a": 1', '{"a": [1, 2', '{"a": "x', '{"a": "x"', '{"a":', "{"],
)
def test_a_text_that_was_cut_off_is_never_completed(raw: str) -> None:
    assert "cut off" in refused(raw)


@pytest.mark.parametrize(
    ("raw", "advice"),
    [
        ("{'a': 1}", "double quotes"),
        ('{"a": 1,}', "no comma after"),
        ('{"a": "x\ny"}', r"\n"),
        ('{"a": 1} {"a": 2}', "nothing behind it"),
        ('{"a": NaN}', "null"),
        ('{"a": 1e999}', "too large"),
        ("[1]", "a list"),
        ('"{}"', "a text"),
        ("true", "true or false"),
        ("3", "a number"),
        ("[" * 100_000, "nested"),
        (r'{"a": "\ud800"}', "surrogate"),
    ],
)
def test_what_is_not_a_strict_object_is_refused_with_advice(raw: str, advice: str) -> None:
    assert advice in refused(raw)


def test_of_a_key_given_twice_the_last_one_holds() -> None:
    parsed = parse_arguments('{"a": 1, "a": 2}')
    assert isinstance(parsed, Arguments)
    assert parsed.fresh() == {"a": 2}


@given(JSON_OBJECTS)
def test_any_object_comes_back_as_it_was_sent(value: dict[str, object]) -> None:
    parsed = parse_arguments(json.dumps(value))
    assert isinstance(parsed, Arguments)
    assert parsed.fresh() == value
    assert of_object(value) == parsed


@given(st.text())
def test_no_text_makes_the_reader_raise(raw: str) -> None:
    parse_arguments(raw)


def test_what_listeners_see_cannot_be_changed() -> None:
    parsed = parse_arguments('{"a": {"b": [1]}}')
    assert isinstance(parsed, Arguments)
    with pytest.raises(TypeError):
        parsed.value["a"] = 1  # type: ignore[index]
    with pytest.raises(TypeError):
        parsed.value["a"]["b"] = 1  # type: ignore[index]
    parsed.fresh()["a"] = 1
    assert parsed.fresh() == {"a": {"b": [1]}}


def test_a_program_cannot_send_what_is_not_json() -> None:
    assert isinstance(of_object({"a": object()}), BadArguments)
    assert isinstance(of_object({"a": "\ud800"}), BadArguments)
