"""The scripted model plays what it is given and remembers what it was asked."""

from __future__ import annotations

import anyio
import pytest

from leadline.core.llm.adapter import Models
from leadline.core.llm.assembler import Assembler, Completion
from leadline.core.llm.failure import Wait
from leadline.core.llm.messages import Conversation, Reasoning, Text, ToolCall, UserMessage
from leadline.core.llm.request import CHAT, CallConfig, LlmRequest, ModelRef
from leadline.core.llm.stream import TextDelta
from leadline.kernel.context import Kernel
from leadline.testing.scripted import Call, Playable, Reply, ScriptedModel, ScriptExhausted, models_of, plugin

pytestmark = pytest.mark.anyio


def request(text: str = "hi") -> LlmRequest:
    conversation = Conversation([UserMessage("u", (Text(text),))])
    return LlmRequest(CallConfig(ModelRef("scripted", "m")), CHAT, "", (), conversation)


async def completed(model: ScriptedModel, asked: LlmRequest, key: str | None = None) -> Completion:
    assembler = Assembler()
    async for event in model.prepare(asked).stream(idempotency_key=key):
        assembler.add(event)
    return assembler.completion()


async def test_replies_are_played_in_order_and_requests_are_kept() -> None:
    model = ScriptedModel(["one", Reply("two", (Call("f", {"x": 1}, "c"),), "why"), Wait("SERVER", "down")])
    first = await completed(model, request("a"), key="k")
    second = await completed(model, request("b"))
    third = await completed(model, request("c"))
    assert first.text == "one"
    assert second.content == (Reasoning("why"), Text("two"), ToolCall("c", "f", '{"x":1}'))
    assert (third.finish.state, third.finish.failure) == ("error", Wait("SERVER", "down"))
    assert [asked.conversation[0].id for asked in model.requests] == ["u", "u", "u"]
    assert model.idempotency_keys == ["k", None, None]
    assert model.digests[0] == model.prepare(request("a")).digest
    model.assert_consumed()


async def test_a_function_may_answer() -> None:
    def answer(asked: LlmRequest) -> Playable:
        return asked.purpose.name

    assert (await completed(ScriptedModel(answer), request())).text == "agent/turn"


async def test_a_script_that_is_too_short_or_too_long_fails_the_test() -> None:
    model = ScriptedModel()
    with pytest.raises(ScriptExhausted, match="request 1"):
        await completed(model, request())
    with pytest.raises(AssertionError, match="1 scripted replies"):
        ScriptedModel(["left"]).assert_consumed()


async def test_a_reply_may_hang_until_it_is_cancelled() -> None:
    seen: list[object] = []
    with anyio.move_on_after(0.05) as scope:
        async for event in ScriptedModel([Reply("abcd", pieces=2, hang=True)]).prepare(request()).stream():
            seen.append(event)
    assert scope.cancelled_caught
    assert seen == [TextDelta("ab"), TextDelta("cd")]


async def test_it_mounts_from_configuration() -> None:
    async with Kernel() as kernel:
        await kernel.root.mount(models_of())
        await kernel.root.mount(plugin, {"provider": "fake", "replies": [{"text": "x"}]})
        assert kernel.root.get(Models).providers == ("fake",)
