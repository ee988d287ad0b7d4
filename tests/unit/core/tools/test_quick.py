"""A quick yes is one that the validator gives too; what is not known is left to it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.tools.errors import BadToolSpec
from leadline.core.tools.quick import quick_check
from leadline.core.tools.shape import SchemaShape, Violations, validator, violations

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.sampled_from(["", "a", "b", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
PLAIN = st.sampled_from(["string", "integer", "number", "boolean", "null"]).map(lambda name: {"type": name})
WORDS = st.lists(st.sampled_from(["a", "b", "1"]), min_size=1, max_size=3, unique=True)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
            "additionalProperties": st.booleans(),
            "title": st.just("x"),
            "minProperties": st.integers(0, 2),
        },
    )


SCHEMAS = st.recursive(
    PLAIN
    | WORDS.map(lambda words: {"type": "string", "enum": words})
    | st.just({})
    | st.just({"type": ["string", "null"]})
    | st.just({"type": "string", "minLength": 1})
    | st.just({"type": "integer", "enum": [1, 2]}),
    lambda inner: (
        objects(inner) | inner.map(lambda item: {"type": "array", "items": item, "description": "d"})
    ),
    max_leaves=5,
)


@given(SCHEMAS, JSON)
def test_a_quick_yes_is_a_yes(schema: dict[str, Any], value: Any) -> None:
    check = quick_check(schema)
    if check is not None and check(value):
        assert violations(validator("t", schema), value) == ()


@pytest.mark.parametrize(
    ("schema", "fits", "not_certain"),
    [
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"a": "x", "b": 1},
            {},
        ),
        ({"type": "object", "additionalProperties": False}, {}, {"a": 1}),
        ({"type": "array", "items": {"type": "integer"}}, [1, 2], [True]),
        ({"type": "number"}, 1.5, True),
        ({"type": "integer"}, 3, 3.0),
        ({"type": "string", "enum": ["a"], "title": "T"}, "a", "b"),
    ],
)
def test_what_is_usual_is_known(schema: dict[str, Any], fits: object, not_certain: object) -> None:
    check = quick_check(schema)
    assert check is not None
    assert check(fits)
    assert not check(not_certain)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "patternProperties": {}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}},
        {"type": "string", "pattern": "a"},
        {"anyOf": [{"type": "string"}]},
        {"const": 1},
        {"type": ["string", "null"]},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        True,
    ],
)
def test_what_is_not_usual_is_left_to_the_validator(schema: Any) -> None:
    assert quick_check(schema) is None


def test_a_shape_still_tells_what_is_wrong_and_refuses_bad_schemas() -> None:
    shape = SchemaShape("t", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
    assert shape.accept('{"a": 1}') == {"a": 1}
    assert shape.accept('{"a": 1.0}') == {"a": 1.0}
    with pytest.raises(Violations) as found:
        shape.accept('{"a": "x", "b": 2}')
    assert len(found.value.lines) >= 1
    with pytest.raises(BadToolSpec):
        SchemaShape("t", {"type": "object", "properties": 3}).accept("{}")
