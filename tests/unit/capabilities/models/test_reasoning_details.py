"""Reasoning that comes in blocks goes back as it came, to the model that made it and to no other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.capabilities.models.providers.decode import ChatDecoder
from leadline.capabilities.models.providers.encode import encoder_for
from leadline.capabilities.models.providers.profiles import build_profile, shipped_profiles
from leadline.core.llm.assembler import Assembler, Completion
from leadline.core.llm.messages import AssistantMessage, Conversation, Text, ToolMessage, UserMessage
from leadline.core.llm.request import CHAT, CallConfig, LlmRequest, ModelRef, ToolSchema

OPENROUTER = build_profile("openrouter", shipped_profiles())
MODEL = ModelRef("openrouter", "anthropic/claude-sonnet-4.5")
SIGNED = {
    "type": "reasoning.text",
    "text": "  é\n hm ",
    "signature": "c2ln+/=",
    "format": "anthropic-claude-v1",
    "index": 0,
}
SEALED = {
    "type": "reasoning.encrypted",
    "data": "c2VhbGVk",
    "id": "rs_1",
    "format": "openai-responses-v1",
    "index": 1,
}
CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def chunk(delta: Mapping[str, object], finish: str | None = None) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def read(*chunks: str) -> Completion:
    decoder, assembler = ChatDecoder(OPENROUTER), Assembler(producer=str(MODEL))
    events = [event for data in chunks for event in decoder.feed(data)]
    for event in [*events, *decoder.feed("[DONE]"), *decoder.close()]:
        assembler.add(event)
    return assembler.completion()


def sent_back(done: Completion, model: ModelRef = MODEL) -> Mapping[str, object]:
    """The assistant message of the request that comes after."""
    history = Conversation(
        (
            UserMessage("u", (Text("hi"),)),
            AssistantMessage("a", done.content, str(MODEL)),
            ToolMessage("t", "c1", "f", "found"),
        )
    )
    tool = ToolSchema("f", "F.", {"type": "object"})
    asked = LlmRequest(CallConfig(model), CHAT, "", (tool,), history)
    return json.loads(history.wire(encoder_for(asked, OPENROUTER)).body)["messages"][1]


@pytest.mark.case("M36")
@given(st.lists(st.integers(0, len("  é\n hm ")), max_size=4).map(sorted))
def test_blocks_in_pieces_go_back_whole(cuts: Sequence[int]) -> None:
    text = str(SIGNED["text"])
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    bare = {key: value for key, value in SIGNED.items() if key != "signature"}
    deltas: list[Mapping[str, object]] = [
        {"reasoning": one, "reasoning_details": [{**bare, "text": one, "signature": None}]} for one in pieces
    ]
    deltas.append(
        {"reasoning_details": [{"type": "reasoning.text", "signature": SIGNED["signature"], "index": 0}]}
    )
    deltas.append({"reasoning_details": [SEALED]})
    done = read(*map(chunk, deltas), chunk({"tool_calls": [CALL]}), chunk({}, "tool_calls"))
    assert [call.id for call in done.tool_calls] == ["c1"]
    back = sent_back(done)
    assert back["reasoning_details"] == [SIGNED, SEALED]
    assert "reasoning" not in back


def test_another_model_gets_the_text_and_none_of_the_blocks() -> None:
    done = read(
        chunk({"reasoning": "hm", "reasoning_details": [{**SIGNED, "text": "hm"}]}),
        chunk({"tool_calls": [CALL]}, "tool_calls"),
    )
    back = sent_back(done, ModelRef("openrouter", "other/model"))
    assert "reasoning_details" not in back
    assert back["reasoning"] == "hm"


def test_blocks_of_an_answer_that_was_cut_off_are_left_out() -> None:
    done = read(chunk({"reasoning_details": [SIGNED]}), chunk({"content": "half"}, "length"))
    assert done.finish.state == "length"
    assert "reasoning_details" not in sent_back(done)


def test_blocks_without_a_place_stay_as_many_as_they_were() -> None:
    apart = [{"type": "reasoning.summary", "summary": "a"}, {"type": "reasoning.summary", "summary": "b"}]
    done = read(chunk({"reasoning_details": apart}), chunk({"tool_calls": [CALL]}, "tool_calls"))
    assert sent_back(done)["reasoning_details"] == apart
