"""The shipped checks on tools pass a good one and catch each broken promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Annotated

import pytest
from anyio import CancelScope, sleep
from pydantic import BaseModel, ConfigDict, Field

from leadline.core.tools.function import tool_from_function
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import READS, Tool, ToolOutput
from leadline.kernel.context import Context
from leadline.kernel.services import Service
from leadline.testing.conformance.tools import (
    CHECKS,
    Check,
    ToolCase,
    a_model_can_understand_it,
    it_ends_when_it_is_cancelled,
    it_leaves_no_trace,
    it_refuses_what_is_not,
    it_shows_the_same_bytes_each_time,
    it_takes_what_is_valid,
    name_of,
)

pytestmark = pytest.mark.anyio


class Tides(Service, key="tides"):
    def at(self, place: str) -> str:
        return f"high at {place}"


def tide_tool() -> Tool:
    async def tide(
        place: Annotated[str, Field(description="Where.", min_length=1)], call: ToolInvocation
    ) -> ToolOutput:
        """Says when the tide is high."""
        return ToolOutput({"place": place}, call.ctx.get(Tides).at(place))

    return tool_from_function(tide, side_effects=READS, parallel=True)


async def with_tides(ctx: Context) -> None:
    ctx.provide(Tides, Tides())


GOOD = ToolCase(tide_tool, valid=[{"place": "Brest"}], invalid=[{"place": ""}, {}], setup=with_tides)


@pytest.mark.parametrize("check", CHECKS, ids=name_of)
async def test_a_good_tool_keeps_every_promise(check: Check) -> None:
    await check(GOOD)


class Open(BaseModel):
    model_config = ConfigDict(extra="forbid")

    place: str


def broken(**fields: object) -> Callable[[], Tool]:
    async def execute(args: object, call: ToolInvocation) -> str:
        return "x"

    whole = {"name": "broken", "description": "B.", "parameters": Open, "execute": execute, **fields}
    return lambda: Tool(**whole)  # type: ignore[arg-type]


async def fails(args: object, call: ToolInvocation) -> str:
    raise OSError("no network")


async def drags_on(args: object, call: ToolInvocation) -> str:
    with CancelScope(shield=True):
        await sleep(1)
    return "x"


async def clings(args: object, call: ToolInvocation) -> str:
    call.ctx.provide(Tides, Tides())
    return "x"


LAX = {
    "type": "object",
    "properties": {"place": {"type": "string", "description": "P."}},
    "additionalProperties": True,
}


@pytest.mark.parametrize(
    ("check", "make", "problem"),
    [
        (a_model_can_understand_it, broken(), "'place' is for"),
        (a_model_can_understand_it, broken(parameters=LAX), "does not name"),
        (it_takes_what_is_valid, broken(execute=fails), "no network"),
        (it_refuses_what_is_not, broken(parameters=LAX), "no_such_member"),
        (it_ends_when_it_is_cancelled, broken(execute=drags_on), "went on for"),
        (it_leaves_no_trace, broken(execute=clings), "left a trace"),
    ],
)
async def test_a_broken_promise_is_caught(check: Check, make: Callable[[], Tool], problem: str) -> None:
    case = ToolCase(make, valid=[{"place": "Brest"}], cancel_within_s=0.05)
    with pytest.raises(AssertionError, match=problem):
        await check(case)


async def test_a_description_that_changes_is_caught() -> None:
    numbers = count()
    case = replace(GOOD, make=lambda: replace(tide_tool(), description=f"Tool {next(numbers)}."))
    with pytest.raises(AssertionError, match="described differently"):
        await it_shows_the_same_bytes_each_time(case)


async def test_an_invalid_example_that_is_taken_is_caught() -> None:
    with pytest.raises(AssertionError, match="took"):
        await it_refuses_what_is_not(replace(GOOD, invalid=[{"place": "Brest"}]))
