"""Each part of a request that differs is told by its name."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from leadline.core.llm.messages import Conversation
from leadline.core.llm.request import CallConfig, ModelRef, OutputSchema, ToolSchema
from leadline.core.loop.parts import differing, header_parts, request_parts
from leadline.core.session.events import RequestHeader, RequestSent

MODEL = ModelRef("p", "m")
CONFIG = CallConfig(model=MODEL, max_tokens=10)
HEADER = RequestHeader(config=CONFIG, system="s")


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("system", {"system": "t"}),
        ("tools", {"tools": (ToolSchema("t", "d", {"type": "object"}),)}),
        ("parameters", {"config": structs.replace(CONFIG, max_tokens=11)}),
        (
            "parameters",
            {"config": structs.replace(CONFIG, output=OutputSchema("answer", {"type": "object"}))},
        ),
        ("effort", {"config": structs.replace(CONFIG, effort="high")}),
        ("provider", {"config": structs.replace(CONFIG, model=ModelRef("p", "n"))}),
    ],
)
def test_a_part_of_the_header_that_differs_is_named(part: str, change: dict[str, Any]) -> None:
    conversation = Conversation()
    sent = RequestSent(
        purpose="agent/turn",
        model=str(MODEL),
        digest="",
        messages=0,
        parts=request_parts(header_parts(HEADER), conversation),
    )
    assert differing(sent, HEADER, conversation) == []
    assert differing(sent, structs.replace(HEADER, **change), conversation) == [part]
