"""A tool as one frozen value: what a model is told of it, what it may do to the world, and its body."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Literal, TypeAlias

from pydantic import BaseModel

from leadline.core.llm.jsonvalue import JsonObject, JsonValue
from leadline.core.llm.request import ToolSchema
from leadline.core.tools.errors import BadToolSpec
from leadline.core.tools.shape import ModelShape, SchemaShape, Shape

SideEffect: TypeAlias = Literal["reads", "writes", "network"]
"""What a tool does beyond computing: reads local state, changes it, or speaks to another machine."""

READS: frozenset[SideEffect] = frozenset({"reads"})
NO_EFFECT: frozenset[SideEffect] = frozenset()
ANY_EFFECT: frozenset[SideEffect] = frozenset({"reads", "writes", "network"})
"""What a body is taken to do of which nobody said what it does."""
_KNOWN_EFFECTS = frozenset({"reads", "writes", "network"})

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True)
class ToolOutput:
    """What a body gives back."""

    value: JsonValue
    """The result for programs; logged, never sent to a model."""

    content: str | None = None
    """The result for the model; None: the value itself if it is text, else the value as JSON."""

    is_error: bool = False

    error_code: str | None = None
    """A short upper-case word for programs, only with `is_error`."""

    concludes_turn: bool = False
    """Whether a success ends the turn after this step."""


Body: TypeAlias = Callable[..., Awaitable["ToolOutput | JsonValue"]]
"""`async (args, call: ToolInvocation) -> ToolOutput | JsonValue`; args as `Tool.parameters` makes them."""

ParallelRule: TypeAlias = Callable[..., bool]
"""`(args) -> bool`; only the value True itself lets the call overlap with others."""


@dataclass(frozen=True, eq=False)
class Tool:
    """Something a model may call. Two tools are equal only if they are the same one.

    Raises:
        BadToolSpec: a field cannot be used; names the tool, the field and what would do.
    """

    name: str
    """`[a-z][a-z0-9_]*`, at most 64 characters."""

    description: str
    """What the model reads about it; see `description_from`."""

    parameters: type[BaseModel] | JsonObject
    """A pydantic model that forbids extra members, or a JSON Schema with an object at its root."""

    execute: Body
    """The body. It may raise: the model is told and the error reported."""

    side_effects: frozenset[SideEffect] = NO_EFFECT

    timeout_s: float | None = None
    """Seconds the body may take, all attempts together; None: no limit of its own."""

    parallel: bool | ParallelRule = False
    """Whether a call may overlap with its neighbours in one message; a rule is asked just before the start."""

    attempts: int = 1
    """How often the body is tried while it raises; more than once only without `writes`."""

    idempotent: bool = False
    """Whether the body may be run again for a call that a process which died had started: it finds by
    `ToolInvocation.repeated` and the ids what it did, and does nothing twice. A tool that only reads always may be."""

    result: type[BaseModel] | JsonObject | None = None
    """The shape of a success's value, checked if given."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise BadToolSpec(self.name, "a name has the form [a-z][a-z0-9_]* with at most 64 characters")
        if not self.description.strip():
            raise BadToolSpec(self.name, "it has no description, so no model would know what it is for")
        if unknown := self.side_effects - _KNOWN_EFFECTS:
            raise BadToolSpec(
                self.name, f"unknown side effects {sorted(unknown)}; there are {sorted(_KNOWN_EFFECTS)}"
            )
        if self.timeout_s is not None and not 0 < self.timeout_s < float("inf"):
            raise BadToolSpec(self.name, f"timeout_s is {self.timeout_s}; give a positive number of seconds")
        if self.attempts < 1 or (self.attempts > 1 and "writes" in self.side_effects):
            raise BadToolSpec(self.name, "attempts is at least 1, and exactly 1 for a tool that writes")
        _ = self.takes

    @cached_property
    def takes(self) -> Shape:
        """The parameters as something to validate with."""
        if isinstance(self.parameters, type):
            return ModelShape(self.name, self.parameters)
        return SchemaShape(self.name, self.parameters)

    @cached_property
    def gives(self) -> Shape | None:
        """The result's shape as something to validate with."""
        if self.result is None:
            return None
        if isinstance(self.result, type):
            return ModelShape(self.name, self.result, closed=False)
        return SchemaShape(self.name, self.result, closed=False)

    @property
    def schema(self) -> ToolSchema:
        """The tool as a model sees it; equal bytes each time."""
        return ToolSchema(self.name, self.description.strip(), self.takes.schema)

    @property
    def changes_the_world(self) -> bool:
        """Whether it has side effects other than reads."""
        return not self.side_effects <= READS

    def check(self) -> None:
        """Validate what is otherwise validated at the first call.

        Raises:
            BadToolSpec: a schema cannot be used.
        """
        for shape in (self.takes, self.gives):
            if isinstance(shape, SchemaShape):
                shape.check()
            elif shape is not None:
                _ = shape.schema


def description_from(package: str, name: str) -> str:
    """The text of the resource `name`, such as "search.md", beside the modules of `package`.

    Raises:
        FileNotFoundError: there is no such resource.
    """
    return files(package).joinpath(name).read_text(encoding="utf-8").strip()
