"""One JSON object is read out of a message, or the reason is told; nothing is guessed."""

from __future__ import annotations

import json
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.llm.jsonvalue import JsonValue
from leadline.orchestration.subagent.extraction import Extracted, NotExtracted, extract_json

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON, max_size=4)


@given(OBJECTS, st.sampled_from(["", "json", "JSON"]))
def test_any_object_is_read_bare_fenced_and_out_of_prose(value: dict[str, object], word: str) -> None:
    text = json.dumps(value)
    for message in (
        text,
        f"```{word}\n{text}\n```",
        f"Here it is: {text} ok",
        f"Plan:\n```{word}\n{text}\n```\nDone.",
    ):
        assert extract_json(message) == Extracted(cast(JsonValue, value))


@pytest.mark.case("A09")
@pytest.mark.parametrize(
    "outer", ["{}", "```json\n{}\n```", "```\n{}\n```\n", "~~~\n{}\n~~~", "````json\n{}\n````"]
)
def test_json_that_holds_backticks_is_read_intact_with_and_without_a_fence(outer: str) -> None:
    text = '{"m":"use ```x``` here"}'
    assert extract_json(outer.replace("{}", text)) == Extracted({"m": "use ```x``` here"})


@pytest.mark.case("A18")
def test_the_one_object_is_taken_out_of_prose() -> None:
    message = 'Here: {"title":"t","steps":[{"title":"a"}]} ok'
    assert extract_json(message) == Extracted({"title": "t", "steps": [{"title": "a"}]})


def test_braces_in_prose_do_not_hide_the_object() -> None:
    assert extract_json('Using {placeholders} as asked: {"a": 1}') == Extracted({"a": 1})


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("", "empty"),
        ("no json at all", "no JSON object"),
        ('{"a": 1} and {"b": 2}', "2 JSON objects"),
        ('{"title": "t", "steps": [{"title": "a"}', "cannot be read"),
        ('{"a": {"b": 1}, c}', "cannot be read"),
        ('{"a": NaN}', "cannot be read"),
        ("{" * 50_000, "cannot be read"),
        ('{"a":' * 50_000, "nested too deeply"),
    ],
)
def test_what_is_not_one_object_is_told_and_never_repaired(message: str, told: str) -> None:
    outcome = extract_json(message)
    assert isinstance(outcome, NotExtracted)
    assert told in outcome.problem


def test_an_object_inside_a_truncated_one_is_not_the_answer() -> None:
    assert isinstance(extract_json('{"plan": {"title": "inner"}, "steps": ['), NotExtracted)
