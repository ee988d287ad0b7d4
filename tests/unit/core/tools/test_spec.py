"""What a tool may be, and what a model is shown of it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict, Field

from leadline.core.tools.errors import BadToolSpec
from leadline.core.tools.function import tool_from_function
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.shape import ModelShape, SchemaShape, Violations
from leadline.core.tools.spec import Tool, description_from


class Node(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: str
    children: list[Node] = []


class Range(BaseModel):
    model_config = ConfigDict(extra="forbid")

    first: int
    last: int


class Query(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str = Field(description="What to look for.", min_length=1)
    kind: Literal["all", "any"] = "all"
    within: Range | None = None
    again: Range | None = None


async def nothing(args: object, call: ToolInvocation) -> None:
    return None


def tool(**fields: object) -> Tool:
    whole = {"name": "find", "description": "Finds.", "parameters": Query, "execute": nothing, **fields}
    return Tool(**whole)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"name": "Find"}, "a-z"),
        ({"name": "1find"}, "a-z"),
        ({"name": "find\n"}, "a-z"),
        ({"name": "f" * 65}, "64"),
        ({"description": " \n"}, "no description"),
        ({"side_effects": frozenset({"magic"})}, "magic"),
        ({"timeout_s": 0}, "positive"),
        ({"timeout_s": float("inf")}, "positive"),
        ({"attempts": 0}, "at least 1"),
        ({"attempts": 2, "side_effects": frozenset({"writes"})}, "tool that writes"),
        ({"parameters": {"type": "array"}}, "object"),
        ({"parameters": {"type": "object", "x": object()}}, "not JSON"),
        ({"parameters": BaseModel}, "extra"),
    ],
)
def test_a_definition_that_no_model_could_use_is_refused_by_name(
    fields: dict[str, object], problem: str
) -> None:
    with pytest.raises(BadToolSpec, match=problem):
        tool(**fields)


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "object", "properties": {"a": {"type": "strin"}}},
        {"type": "object", "properties": {"a": {"$ref": "https://example.org/x.json"}}},
    ],
)
def test_a_schema_that_breaks_the_rules_is_refused_when_it_is_checked(parameters: dict[str, object]) -> None:
    with pytest.raises(BadToolSpec, match="find"):
        tool(parameters=parameters).check()


def test_a_model_is_shown_a_closed_schema_without_titles_or_definitions() -> None:
    schema = dict(tool().schema.parameters)
    encoded = msgspec.json.encode(schema).decode()
    assert '"title"' not in encoded
    assert "$defs" not in encoded
    assert schema["additionalProperties"] is False
    within = schema["properties"]["within"]["anyOf"][0]  # type: ignore[index]
    assert within["additionalProperties"] is False
    assert set(within["properties"]) == {"first", "last"}


def test_a_type_that_contains_itself_keeps_its_definition_and_stays_valid() -> None:
    from jsonschema import Draft202012Validator

    schema = dict(tool(parameters=Node).schema.parameters)
    Draft202012Validator.check_schema(schema)
    checker = Draft202012Validator(schema)
    assert not list(checker.iter_errors({"title": "a", "children": [{"title": "b"}]}))
    assert list(checker.iter_errors({"title": "a", "children": [{"title": 1}]}))
    assert schema["type"] == "object"
    assert "title" in schema["properties"]  # type: ignore[operator]  # a member called title is no title


def test_a_raw_schema_keeps_what_its_author_composed() -> None:
    composed = {"type": "object", "allOf": [{"properties": {"a": {"type": "string"}}}], "title": "T"}
    assert dict(tool(parameters=composed).schema.parameters) == {
        "type": "object",
        "allOf": [{"properties": {"a": {"type": "string"}}}],
    }
    open_schema = {"type": "object", "properties": {}, "additionalProperties": True}
    assert dict(tool(parameters=open_schema).schema.parameters) == open_schema


def test_the_schema_has_equal_bytes_each_time_and_changing_a_copy_changes_nothing() -> None:
    made = tool()
    before = msgspec.json.encode(made.schema)
    made.schema.parameters["properties"].clear()  # type: ignore[attr-defined]
    assert msgspec.json.encode(made.schema) == before
    assert msgspec.json.encode(tool().schema) == before


@pytest.mark.parametrize(
    "shape",
    [
        ModelShape("find", Range),
        SchemaShape(
            "find",
            {
                "type": "object",
                "required": ["first", "last"],
                "properties": {"first": {"type": "integer"}, "last": {"type": "integer"}},
            },
        ),
    ],
)
def test_every_violation_is_listed_with_its_path(shape: ModelShape | SchemaShape) -> None:
    with pytest.raises(Violations) as caught:
        shape.accept('{"first": "x", "other": 1}')
    lines = "\n".join(caught.value.lines)
    assert len(caught.value.lines) == 3
    assert "$.first: " in lines
    assert "last" in lines
    assert "other" in lines


def test_a_long_violation_is_cut() -> None:
    with pytest.raises(Violations) as caught:
        ModelShape("find", Range).accept('{"first": "' + "x" * 5000 + '", "last": 1}')
    assert max(map(len, caught.value.lines)) <= 300


def test_a_description_is_read_from_a_file_beside_its_owner() -> None:
    assert description_from("leadline.core.prompt", "identity.md").startswith("You work inside")
    with pytest.raises(FileNotFoundError):
        description_from("leadline.core.prompt", "missing.md")


def test_a_function_becomes_a_tool_by_its_signature_and_docstring() -> None:
    async def greet(
        name: Annotated[str, Field(description="Who.", min_length=1)], call: ToolInvocation, times: int = 1
    ) -> str:
        """Greets somebody.

        As often as asked.
        """
        return name * times

    made = tool_from_function(greet, parallel=True)
    assert (made.name, made.parallel) == ("greet", True)
    assert made.description == "Greets somebody.\n\nAs often as asked."
    assert dict(made.schema.parameters) == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Who.", "minLength": 1},
            "times": {"type": "integer", "default": 1},
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def test_a_function_that_cannot_be_called_by_name_is_refused() -> None:
    async def untyped(text) -> str:  # type: ignore[no-untyped-def]
        """Says."""
        return text

    async def variable(*texts: str) -> str:
        """Says."""
        return "".join(texts)

    async def mute(text: str) -> str:
        return text

    for fn, problem in ((untyped, "no type"), (variable, "by name"), (mute, "no description")):
        with pytest.raises(BadToolSpec, match=problem):
            tool_from_function(fn)
