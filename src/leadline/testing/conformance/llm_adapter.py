"""What every model adapter promises, as checks that any adapter can run.

    @pytest.mark.parametrize("check", CHECKS)
    async def test_my_adapter_keeps_the_promise(check):
        await check(MyAdapter(...))

A check gets an adapter whose model answers anything; it asks at most three times. It raises
AssertionError where a promise is not kept.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TypeAlias

from leadline.core.llm.adapter import LlmAdapter
from leadline.core.llm.messages import (
    AssistantMessage,
    Conversation,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from leadline.core.llm.request import CHAT, CallConfig, LlmRequest, ModelRef, ToolSchema
from leadline.core.llm.stream import Finish, LimitsReport, StreamEvent, UsageReport

Check: TypeAlias = Callable[[LlmAdapter], Awaitable[None]]

_TOOL = ToolSchema("lookup", "Look something up.", {"type": "object", "properties": {}})
_HISTORY = (
    UserMessage("u1", (Text("What is the depth?"),)),
    AssistantMessage("a1", (ToolCall("c1", "lookup", "{}"),), "any/model"),
    ToolMessage("t1", "c1", "lookup", "Nine fathoms."),
)


def _request(adapter: LlmAdapter, conversation: Conversation) -> LlmRequest:
    config = CallConfig(ModelRef(adapter.provider, "model"))
    return LlmRequest(config, CHAT, "Answer briefly.", (_TOOL,), conversation)


async def _events(adapter: LlmAdapter) -> list[StreamEvent]:
    call = adapter.prepare(_request(adapter, Conversation(_HISTORY)))
    return [event async for event in call.stream(idempotency_key="check")]


async def check_digest_is_a_function_of_the_request(adapter: LlmAdapter) -> None:
    """Equal requests have one digest however they were built; a longer conversation has another."""
    whole = Conversation(_HISTORY)
    grown = Conversation(_HISTORY[:1]).extended(_HISTORY[1]).extended(_HISTORY[2])
    digests = {adapter.prepare(_request(adapter, built)).digest for built in (whole, grown, whole)}
    assert len(digests) == 1, f"one request has the digests {sorted(digests)}"
    (digest,) = digests
    assert re.fullmatch("[0-9a-f]{64}", digest), f"{digest!r} is not a sha256 in hex"
    longer = whole.extended(UserMessage("u2", (Text("And now?"),)))
    assert adapter.prepare(_request(adapter, longer)).digest != digest, (
        "a longer conversation has the same digest"
    )


async def check_stream_ends_with_one_finish(adapter: LlmAdapter) -> None:
    """The last event is a `Finish`, there is no other, usage is reported at most once, and limits only at first."""
    events = await _events(adapter)
    ends = [event for event in events if isinstance(event, Finish)]
    assert len(ends) == 1, f"{len(ends)} finishes in one stream"
    assert events[-1] is ends[0], f"{events[-1]!r} stands behind the finish"
    failed = ends[0].state in ("error", "incomplete")
    assert failed == (ends[0].failure is not None), f"{ends[0].state!r} with the failure {ends[0].failure!r}"
    usages = sum(isinstance(event, UsageReport) for event in events)
    assert usages <= 1, f"usage is reported {usages} times"
    assert not any(isinstance(event, LimitsReport) for event in events[1:]), "limits are reported late"


async def check_a_call_may_be_made_again(adapter: LlmAdapter) -> None:
    """A second attempt of one prepared call is a whole stream again."""
    call = adapter.prepare(_request(adapter, Conversation(_HISTORY)))
    for attempt in (1, 2):
        events = [event async for event in call.stream()]
        assert isinstance(events[-1], Finish), f"attempt {attempt} has no finish"


async def check_a_stream_may_be_left_early(adapter: LlmAdapter) -> None:
    """Closing a stream after its first event disturbs nothing."""
    async with aclosing(adapter.prepare(_request(adapter, Conversation(_HISTORY))).stream()) as events:
        async for _ in events:
            break
    assert isinstance((await _events(adapter))[-1], Finish), "the call behind one that was left has no finish"


async def check_an_unlisted_model_passes(adapter: LlmAdapter) -> None:
    """`info` answers for a model it has never heard of."""
    info = adapter.info("a-model-that-nobody-listed")
    assert info.model == "a-model-that-nobody-listed", f"asked for one model, told about {info.model!r}"


CHECKS: tuple[Check, ...] = (
    check_digest_is_a_function_of_the_request,
    check_stream_ends_with_one_finish,
    check_a_call_may_be_made_again,
    check_a_stream_may_be_left_early,
    check_an_unlisted_model_passes,
)
"""All checks, in a sensible order."""
