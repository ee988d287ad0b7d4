"""The adapter: purposes it acts on, what it reports, how it is mounted."""

from __future__ import annotations

import msgspec
import pytest

from leadline.core.llm.adapter import Models
from leadline.core.llm.messages import Conversation, Text, UserMessage
from leadline.core.llm.request import CHAT, CallConfig, LlmRequest, ModelRef, Purpose, ToolSchema
from leadline.core.llm.stream import Finish, StreamEvent, TextDelta, ToolCallDelta, UsageReport
from leadline.kernel.context import Context, Kernel
from leadline.kernel.plugin import Plugin
from leadline.research.extractive.adapter import Extractive
from leadline.research.extractive.plugin import plugin
from leadline.research.roles.purposes import PLANNING, PlanningData, purpose
from leadline.research.roles.schemas import Plan

pytestmark = pytest.mark.anyio
OUTPUT = ToolSchema("structured_output", "", {})


def asked(why: Purpose, words: str = "hello", tools: tuple[ToolSchema, ...] = (OUTPUT,)) -> LlmRequest:
    conversation = Conversation((UserMessage("m1", (Text(words),)),))
    return LlmRequest(
        CallConfig(model=ModelRef("extractive", "extractive")), why, "system words", tools, conversation
    )


async def events(
    why: Purpose, words: str = "hello", tools: tuple[ToolSchema, ...] = (OUTPUT,)
) -> list[StreamEvent]:
    model = Extractive(lambda digest: None)
    return [event async for event in model.prepare(asked(why, words, tools)).stream()]


async def plan(question: str, *, max_units: int = 3, breadth: str = "balanced", words: str = "") -> Plan:
    data = PlanningData(question=question, max_units=max_units, breadth=breadth)
    (call,) = [one for one in await events(purpose(PLANNING, data), words) if isinstance(one, ToolCallDelta)]
    return msgspec.convert(msgspec.json.decode(call.arguments), Plan)


async def test_any_other_purpose_gets_a_plain_answer_with_what_works_and_how_to_choose_a_model() -> None:
    found = await events(CHAT)
    text = "".join(one.text for one in found if isinstance(one, TextDelta))
    assert "no language model" in text.casefold()
    assert "leadline research" in text
    assert "--model PROVIDER/NAME --base-url URL" in text
    assert not any(isinstance(one, ToolCallDelta) for one in found)


async def test_no_tokens_are_reported_as_none_used_not_as_unknown() -> None:
    (report,) = [one for one in await events(CHAT) if isinstance(one, UsageReport)]
    assert report.usage.total == 0
    assert report.usage.reported


async def test_the_stream_ends_with_exactly_one_finish() -> None:
    found = await events(CHAT)
    assert [one for one in found if isinstance(one, Finish)] == [found[-1]] == [Finish("done")]


async def test_facets_become_units_and_a_focused_question_one() -> None:
    question = "What are the caps, who approves discounts and when is the audit?"
    assert [unit.question for unit in (await plan(question)).units] == [
        "What are the caps",
        "who approves discounts",
        "when is the audit?",
    ]
    assert len((await plan(question, breadth="focused")).units) == 1
    two = (await plan(question, max_units=2)).units
    assert [unit.question for unit in two] == [
        "What are the caps\nwho approves discounts",
        "when is the audit?",
    ]


async def test_the_wording_of_a_prompt_changes_nothing_but_the_digest() -> None:
    first, second = await plan("What is the cap?", words="one"), await plan("What is the cap?", words="two")
    assert first == second
    model = Extractive(lambda digest: None)
    assert model.prepare(asked(CHAT, "one")).digest != model.prepare(asked(CHAT, "two")).digest
    assert model.prepare(asked(CHAT, "one")).digest == model.prepare(asked(CHAT, "one")).digest


async def test_without_the_output_tool_the_value_is_said_as_json() -> None:
    data = PlanningData(question="What is the cap?", max_units=1)
    found = await events(purpose(PLANNING, data), tools=())
    text = "".join(one.text for one in found if isinstance(one, TextDelta))
    assert msgspec.convert(msgspec.json.decode(text), Plan).units


async def test_the_plugin_registers_the_provider_and_takes_it_back() -> None:
    async def offer(ctx: Context, config: None) -> None:
        ctx.provide(Models, Models(ModelRef("extractive", "extractive")))

    async with Kernel() as kernel:
        await kernel.root.mount(Plugin("models", offer, provides=(Models,)))
        fiber = await kernel.root.mount(plugin)
        models = kernel.root.get(Models)
        assert models.resolve()[0].provider == "extractive"
        await fiber.dispose()
        assert models.providers == ()
