"""Makes a tool of a typed function: signature to parameters, docstring to description."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast, get_type_hints

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, create_model

from leadline.core.llm.jsonvalue import JsonObject, JsonValue
from leadline.core.tools.errors import BadToolSpec
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import NO_EFFECT, ParallelRule, SideEffect, Tool, ToolOutput

Answer: TypeAlias = "ToolOutput | JsonValue"


def tool_from_function(
    fn: Callable[..., object],
    *,
    name: str | None = None,
    description: str | None = None,
    side_effects: frozenset[SideEffect] = NO_EFFECT,
    timeout_s: float | None = None,
    parallel: bool | ParallelRule = False,
    attempts: int = 1,
    result: type[BaseModel] | JsonObject | None = None,
) -> Tool:
    """A tool whose parameters are those of `fn`, and whose description is its docstring.

    Each parameter needs a type; `Annotated[int, Field(description=...)]` says what it is for. One
    annotated as `ToolInvocation` gets the invocation and is not shown to the model. A plain function
    runs in a worker thread, which cancellation waits for.

    Raises:
        BadToolSpec: a parameter has no type, or collects a variable number; or nothing describes it.
    """
    tool = name or getattr(fn, "__name__", "")
    signature = _signature(tool, fn)
    body = _Body(fn, signature.invocation, tuple(signature.model.model_fields))
    return Tool(
        name=tool,
        description=description or inspect.getdoc(fn) or "",
        parameters=signature.model,
        execute=body.run if inspect.iscoroutinefunction(fn) else body.run_in_thread,
        side_effects=side_effects,
        timeout_s=timeout_s,
        parallel=parallel,
        attempts=attempts,
        result=result,
    )


@dataclass(frozen=True)
class _Signature:
    model: type[BaseModel]
    invocation: str | None
    """The parameter that takes the invocation."""


@dataclass(frozen=True)
class _Body:
    fn: Callable[..., object]
    invocation: str | None
    names: Sequence[str]

    def arguments(self, args: BaseModel, call: ToolInvocation) -> dict[str, object]:
        given: dict[str, object] = {name: getattr(args, name) for name in self.names}
        return {**given, self.invocation: call} if self.invocation else given

    async def run(self, args: BaseModel, call: ToolInvocation) -> Answer:
        return await cast("Callable[..., Awaitable[Answer]]", self.fn)(**self.arguments(args, call))

    async def run_in_thread(self, args: BaseModel, call: ToolInvocation) -> Answer:
        given = self.arguments(args, call)
        return cast("Answer", await to_thread.run_sync(lambda: self.fn(**given)))


def _signature(tool: str, fn: Callable[..., object]) -> _Signature:
    try:
        hints = get_type_hints(fn, include_extras=True)
    except NameError as error:
        raise BadToolSpec(tool, f"a type of its signature cannot be found: {error}") from error
    fields: dict[str, object] = {}
    invocation: str | None = None
    for name, parameter in inspect.signature(fn).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise BadToolSpec(
                tool, f"its parameter {parameter} cannot be given by name; make it an ordinary one"
            )
        if name not in hints:
            raise BadToolSpec(tool, f"its parameter {name!r} has no type; annotate it")
        if hints[name] is ToolInvocation:
            invocation = name
            continue
        fields[name] = (hints[name], ... if parameter.default is parameter.empty else parameter.default)
    config = ConfigDict(extra="forbid")
    make = cast("Callable[..., type[BaseModel]]", create_model)
    return _Signature(make(f"{tool}_arguments", __config__=config, **fields), invocation)
