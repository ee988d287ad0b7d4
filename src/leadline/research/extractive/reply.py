"""What the extractive model replies to a request, by the request's typed purpose."""

from __future__ import annotations

import msgspec

from leadline.core.llm.jsonvalue import JsonValue
from leadline.core.llm.request import LlmRequest
from leadline.research.extractive.phrases import NO_MODEL
from leadline.research.extractive.planning import plan
from leadline.research.extractive.transcript import calls_done
from leadline.research.extractive.unit import OUTPUT, Call, Texts, next_calls
from leadline.research.extractive.writing import write
from leadline.research.roles.purposes import (
    PLANNING,
    SYNTHESIS,
    UNIT,
    PlanningData,
    SynthesisData,
    UnitData,
    purpose_data,
)

HAND_INS = 4
"""How often a report is handed in: one that is sent back once more without tables, then as it is."""
_ENDED = "Nothing more can be done by extraction."


def reply(request: LlmRequest, texts: Texts) -> list[Call] | str:
    """The calls to make, or the text to say where there is nothing more to do."""
    tools = frozenset(tool.name for tool in request.tools)
    done = calls_done(request.conversation)
    purpose = request.purpose
    if purpose.name == UNIT:
        return next_calls(purpose_data(purpose, UnitData), tools, done, texts) or _ENDED
    if purpose.name not in (PLANNING, SYNTHESIS):
        return NO_MODEL
    handed_in = sum(one.name == OUTPUT for one in done)
    if handed_in >= (HAND_INS if purpose.name == SYNTHESIS else 1):
        return _ENDED
    if purpose.name == PLANNING:
        return _output(plan(purpose_data(purpose, PlanningData)), tools)
    return _output(write(purpose_data(purpose, SynthesisData), tables=not handed_in), tools)


def _output(value: JsonValue, tools: frozenset[str]) -> list[Call] | str:
    return [Call(OUTPUT, value)] if OUTPUT in tools else msgspec.json.encode(value).decode()
