"""What stands on the wire follows the request and the profile, byte for byte."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import pytest

from leadline.capabilities.models.providers.encode import encoder_for
from leadline.capabilities.models.providers.profiles import Profile, build_profile, shipped_profiles
from leadline.core.llm.messages import (
    AssistantMessage,
    Conversation,
    ImageRef,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from leadline.core.llm.request import CHAT, CallConfig, LlmRequest, ModelRef, ToolSchema
from leadline.testing.provider_server.validate import refusal

SEARCH = ToolSchema("search", "Find.", {"type": "object", "properties": {"q": {"type": "string"}}})


def profile(name: str = "local", **settings: object) -> Profile:
    return build_profile(name, shipped_profiles(), settings)


def request(
    conversation: Conversation, *, tools: bool = True, system: str = "Be brief.", **config: object
) -> LlmRequest:
    call = CallConfig(ModelRef("p", "m"), **config)  # pyright: ignore[reportArgumentType]
    return LlmRequest(call, CHAT, system, (SEARCH,) if tools else (), conversation)


def user(id_: str, text: str = "hi") -> UserMessage:
    return UserMessage(id_, (Text(text),))


PLAIN = AssistantMessage("a1", (Reasoning("thought"), Text("answer")), "p/m")
CALLING = AssistantMessage("a2", (Reasoning("why"), ToolCall("c1", "search", '{"q":"x"}')), "p/m")
RESULT = ToolMessage("t1", "c1", "search", "found")
HISTORY: tuple[Message, ...] = (user("u1"), PLAIN, user("u2"), CALLING, RESULT)


def body(conversation: Conversation, by: Profile, **options: object) -> Mapping[str, object]:
    asked = request(conversation, **options)  # pyright: ignore[reportArgumentType]
    return json.loads(conversation.wire(encoder_for(asked, by)).body)


def messages(by: Profile, *history: Message) -> list[dict[str, object]]:
    return body(Conversation(history), by)["messages"]  # pyright: ignore[reportReturnType]


def test_the_body_has_a_fixed_key_order_with_the_messages_last() -> None:
    asked = request(Conversation(HISTORY), max_tokens=100, temperature=0.2, tool_choice="auto")
    raw = asked.conversation.wire(encoder_for(asked, profile())).body
    assert list(json.loads(raw)) == [
        "model", "max_tokens", "temperature", "stream", "stream_options", "tools", "tool_choice", "messages",
    ]  # fmt: skip
    assert raw.startswith(b'{"model":"m","max_tokens":100,"temperature":0.2,"stream":true')


def test_messages_look_as_the_provider_wants_them() -> None:
    assert messages(profile(), *HISTORY) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "answer"},
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q":"x"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
    ]


def test_requests_of_one_conversation_extend_each_other_byte_for_byte() -> None:
    conversation = Conversation([user("u1")])
    earlier = b""
    for message in HISTORY[1:]:
        conversation = conversation.extended(message)
        wire = conversation.wire(encoder_for(request(conversation), profile()))
        assert wire.body.startswith(earlier)
        assert wire.digest == hashlib.sha256(wire.body).hexdigest()
        earlier = wire.body.removesuffix(b"]}")


def test_the_purpose_is_not_on_the_wire() -> None:
    assert "purpose" not in body(Conversation(HISTORY), profile())


@pytest.mark.case("M30")
@pytest.mark.parametrize(
    ("rule", "plain", "calling"),
    [
        ("never", None, None),
        ("with_tools", None, "why"),
        ("always", "thought", "why"),
        ("filler", "thought", "why"),
    ],
)
def test_reasoning_is_passed_back_as_the_profile_says(
    rule: str, plain: str | None, calling: str | None
) -> None:
    sent = messages(profile(reasoning_replay=rule), *HISTORY)
    assert [message.get("reasoning_content") for message in sent if message["role"] == "assistant"] == [
        plain,
        calling,
    ]


@pytest.mark.case("M30")
@pytest.mark.parametrize(("replay", "server"), [("always", "require_with_tools"), ("never", "reject")])
@pytest.mark.parametrize("tools", [True, False])
def test_strict_and_rejecting_providers_accept_what_their_profile_sends(
    replay: str, server: str, tools: bool
) -> None:
    history = HISTORY if tools else HISTORY[:3]
    sent = body(Conversation(history), profile(reasoning_replay=replay), tools=tools)
    assert refusal(sent, server) is None  # pyright: ignore[reportArgumentType]
    wrong = body(Conversation(HISTORY), profile(reasoning_replay="never" if replay == "always" else "always"))
    assert refusal(wrong, server) is not None  # pyright: ignore[reportArgumentType]


def test_filler_stands_where_a_turn_has_no_reasoning() -> None:
    bare = AssistantMessage("a", (Text("answer"),), "other/m")
    sent = messages(profile(reasoning_replay="filler", reasoning_filler="-"), user("u"), bare)
    assert sent[-1]["reasoning_content"] == "-"


@pytest.mark.case("M36")
def test_reasoning_goes_back_byte_for_byte() -> None:
    thinking = AssistantMessage("a", (Reasoning("  a\u00e9\n "), Text("x")), "p/m")
    assert messages(profile("deepseek"), user("u"), thinking)[-1]["reasoning_content"] == "  a\u00e9\n "


@pytest.mark.case("M33")
@pytest.mark.parametrize(
    ("effort", "fields"),
    [
        ("low", {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
        ("medium", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("off", {"thinking": {"type": "disabled"}}),
        ("auto", {}),
        ("unheard-of", {}),
        (None, {}),
    ],
)
def test_an_effort_is_mapped_or_left_out_as_the_profile_says(
    effort: str | None, fields: Mapping[str, object]
) -> None:
    sent = body(Conversation(HISTORY), profile("deepseek"), effort=effort)
    assert {key: sent[key] for key in ("thinking", "reasoning_effort") if key in sent} == fields


@pytest.mark.parametrize(
    ("name", "choice", "effort", "sent"),
    [
        ("local", "required", None, "required"),
        ("local", "search", None, {"type": "function", "function": {"name": "search"}}),
        ("deepseek", "required", None, None),
        ("deepseek", "auto", None, None),
        ("deepseek", "required", "off", "required"),
    ],
)
def test_a_forced_tool_choice_is_sent_only_where_it_is_honoured(
    name: str, choice: str, effort: str | None, sent: object
) -> None:
    assert (
        body(Conversation(HISTORY), profile(name), tool_choice=choice, effort=effort).get("tool_choice")
        == sent
    )


def test_no_tools_may_be_called_where_the_choice_none_is_not_understood() -> None:
    assert "tools" not in body(Conversation(HISTORY), profile("deepseek"), tool_choice="none")


def test_nothing_empty_is_on_the_wire() -> None:
    history = (
        UserMessage("u0", (Text(""),)),
        user("u1"),
        AssistantMessage("a1", (Reasoning("only thought"),), "p/m"),
        AssistantMessage("a2", (), "p/m"),
        UserMessage("u2", (Text("one"), Text(""), Text("two"))),
        AssistantMessage("a3", (ToolCall("c", "search", "{}"),), "p/m"),
        ToolMessage("t", "c", "search", ""),
    )
    sent = body(Conversation(history), profile(), system="")
    assert refusal(sent) is None
    assert [message["content"] for message in sent["messages"]] == ["hi", "one\n\ntwo", None, "(no output)"]  # pyright: ignore


def test_an_image_is_named_to_a_model_that_takes_text_only() -> None:
    seen = UserMessage("u", (Text("look"), ImageRef("ab" * 32, "image/png")))
    assert messages(profile(), seen)[-1]["content"] == (
        "look\n\n[image image/png, sha256 abababababababab: not shown to this model]"
    )


def test_extra_fields_of_the_profile_go_with_every_request() -> None:
    sent = body(
        Conversation(HISTORY),
        profile(extra_body={"seed": 7}, max_tokens_field="max_completion_tokens"),
        max_tokens=9,
    )
    assert (sent["seed"], sent["max_completion_tokens"]) == (7, 9)
    assert "max_tokens" not in sent
