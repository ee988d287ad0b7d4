"""An output schema is asserted and copied before anything starts; values are held to all of it."""

from __future__ import annotations

import re

import pytest

from leadline.orchestration.subagent.errors import OutputSchemaError
from leadline.orchestration.subagent.schema import MAX_PROBLEMS, OutputSchema


def test_all_that_is_wrong_with_a_schema_is_listed() -> None:
    with pytest.raises(OutputSchemaError) as caught:
        OutputSchema({"type": "object", "properties": {"a": {"type": "texty"}}, "required": "a"})
    told = " ".join(caught.value.violations)
    assert "$.properties.a" in told
    assert "$.required" in told


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ([], "must be an object"),
        ({"type": "array"}, '"object"'),
        ({}, '"object"'),
        ({"type": "object", "properties": {"a": {"$ref": "http://x/y"}}}, "points outside"),
        ({"type": "object", "properties": {"a": {"pattern": "("}}}, "not a usable pattern"),
        ({"type": "object", "x": {1: 2}}, "not text"),
        ({"type": "object", "x": object()}, "is not JSON"),
        ({"type": "object", "x": float("nan")}, "is not a JSON number"),
    ],
)
def test_hostile_schemas_fail_as_schema_errors(schema: object, told: str) -> None:
    with pytest.raises(OutputSchemaError, match="cannot be used") as caught:
        OutputSchema(schema)  # pyright: ignore[reportArgumentType]  the wrong type is the point
    assert told in " ".join(caught.value.violations)


def test_a_schema_that_holds_itself_fails_as_a_schema_error() -> None:
    schema: dict[str, object] = {"type": "object"}
    schema["x"] = schema
    with pytest.raises(OutputSchemaError, match="nested deeper"):
        OutputSchema(schema)  # pyright: ignore[reportArgumentType]  a value no JSON can have


def test_changing_the_callers_dictionary_later_changes_nothing() -> None:
    properties: dict[str, object] = {"a": {"type": "string"}}
    checked = OutputSchema({"type": "object", "properties": properties, "required": ["a"]})  # pyright: ignore[reportArgumentType]
    properties["a"] = {"type": "integer"}
    assert checked.problems({"a": "text"}) == ()


@pytest.mark.case("A11")
def test_lengths_ranges_patterns_formats_and_optional_fields_are_checked_here() -> None:
    checked = OutputSchema(
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"},
                "age": {"type": "integer", "minimum": 18, "maximum": 99},
                "born": {"type": "string", "format": "date"},
                "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
            },
            "required": ["name"],
        }
    )
    assert checked.problems({"name": "ada"}) == ()
    told = checked.problems({"name": "A", "age": 17, "born": "yesterday", "tags": []})
    assert [line.split(":")[0] for line in told] == ["$.age", "$.born", "$.name", "$.name", "$.tags"]


def test_references_inside_the_schema_work() -> None:
    leaf = {"type": "object", "properties": {"next": {"$ref": "#/$defs/leaf"}}, "additionalProperties": False}
    checked = OutputSchema(
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/leaf"}}, "$defs": {"leaf": leaf}}
    )
    assert checked.problems({"a": {"next": {"next": {}}}}) == ()
    assert checked.problems({"a": {"next": {"nxt": {}}}}) != ()


def test_a_flood_of_problems_is_cut_and_counted() -> None:
    checked = OutputSchema({"type": "object", "additionalProperties": {"type": "string"}})
    told = checked.problems({str(n): n for n in range(MAX_PROBLEMS + 7)})
    assert len(told) == MAX_PROBLEMS + 1
    assert told[-1] == "and 7 more"


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"properties": {"k": {"$ref": "#/$defs/X"}}}, "$.properties.k.$ref: #/$defs/X is not in the schema"),
        ({"properties": {"k": {"$ref": "#nobody"}}}, "#nobody is not in the schema"),
        ({"allOf": [{"$ref": "#"}]}, "$: it is defined as itself"),
        (
            {
                "properties": {"k": {"$ref": "#/$defs/A"}},
                "$defs": {
                    "A": {"$ref": "#/$defs/B"},
                    "B": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/A"}]},
                },
            },
            "is defined as itself",
        ),
    ],
)
def test_references_that_no_value_could_be_checked_against_are_refused(
    schema: dict[str, object], told: str
) -> None:
    with pytest.raises(OutputSchemaError, match=re.escape(told)):
        OutputSchema({"type": "object", **schema})


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"k": {"$ref": "#"}}},
        {"properties": {"k": {"$ref": "#foo"}}, "$defs": {"Q": {"$anchor": "foo", "type": "object"}}},
        {"properties": {"k": {"$ref": "#/$defs/a~1b%25"}}, "$defs": {"a/b%": {"type": "object"}}},
        {"definitions": {"N": {"type": "object"}}, "properties": {"k": {"$ref": "#/definitions/N"}}},
        {"$defs": {"N": True}, "properties": {"k": {"$ref": "#/$defs/N"}}},
        {"$defs": {"I": {"$id": "http://x/", "$defs": {"N": {"type": "object"}}, "$ref": "#/$defs/N"}},
         "properties": {"k": {"$ref": "#/$defs/I"}}},
    ],
)  # fmt: skip
def test_references_that_a_value_can_be_checked_against_are_taken(schema: dict[str, object]) -> None:
    checked = OutputSchema({"type": "object", **schema})
    assert checked.problems({"k": {}}) == ()
    assert (checked.problems({"k": 1}) != ()) is (schema.get("$defs") != {"N": True})
