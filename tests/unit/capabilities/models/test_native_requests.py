"""Requests in the wire formats other than chat completions: whole bodies, and what must hold of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from leadline.capabilities.models.providers.calling import ProviderAdapter, ProviderCall, Route
from leadline.capabilities.models.providers.formats import adapter_for
from leadline.capabilities.models.providers.http import HttpClient
from leadline.capabilities.models.providers.profiles import build_profile, shipped_profiles
from leadline.core.clock import Clock
from leadline.core.llm.assembler import Assembler
from leadline.core.llm.messages import (
    AssistantMessage,
    Conversation,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from leadline.core.llm.request import CHAT, CallConfig, LlmRequest, ModelRef, OutputSchema, ToolSchema
from leadline.core.llm.stream import StreamEvent
from leadline.testing.wires import WIRES, Said, WireSpeech

_PROFILES = {"openai-chat": "local", "anthropic-messages": "anthropic"}
"""The profile of each format that has another name."""
NATIVE = [wire for wire in WIRES if wire.api != "openai-chat"]
every_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.api)
every_native = pytest.mark.parametrize("wire", NATIVE, ids=lambda wire: wire.api)

SCHEMA: dict[str, object] = {"type": "object", "properties": {"q": {"type": "string"}}}
TOOLS = (ToolSchema("search", "Find.", SCHEMA), ToolSchema("read", "Read.", {"type": "object"}))
ASK = UserMessage("u1", (Text("How deep?"),))
CALLED = AssistantMessage(
    "a1",
    (Text("Looking."), ToolCall("c1", "search", '{"q": "é"}'), ToolCall("c2", "read", "{}")),
    "p/m",
)
RESULTS = (ToolMessage("t1", "c1", "search", "nine"), ToolMessage("t2", "c2", "read", "gone", is_error=True))
STEER = UserMessage("u2", (Text("In fathoms."),))
HISTORY: tuple[Message, ...] = (ASK, CALLED, *RESULTS, STEER)


def adapter_of(api: str, **settings: object) -> ProviderAdapter:
    built = build_profile(_PROFILES.get(api, api), shipped_profiles(), settings)
    return adapter_for(Route("p", built, HttpClient(), Clock(), lambda: "k"))


def body_of(
    api: str,
    messages: Sequence[Message] | Conversation = HISTORY,
    *,
    config: CallConfig | None = None,
    tools: tuple[ToolSchema, ...] = TOOLS,
    system: str = "Be brief.",
    **settings: object,
) -> bytes:
    conversation = messages if isinstance(messages, Conversation) else Conversation(messages)
    request = LlmRequest(config or CallConfig(ModelRef("p", "m")), CHAT, system, tools, conversation)
    call = adapter_of(api, **settings).prepare(request)
    assert isinstance(call, ProviderCall)
    return call.body


def written(api: str, *args: object, **more: object) -> dict[str, object]:
    return json.loads(body_of(api, *args, **more))  # pyright: ignore[reportArgumentType]  # as `body_of`


def test_a_whole_body_of_anthropic_messages() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    assert written("anthropic-messages") == {
        "model": "m",
        "max_tokens": 8192,
        "stream": True,
        "tools": [
            {"name": "search", "description": "Find.", "input_schema": SCHEMA},
            {"name": "read", "description": "Read.", "input_schema": {"type": "object"}, **mark},
        ],
        **mark,
        "system": [{"type": "text", "text": "Be brief.", **mark}],
        "messages": [
            {"role": "user", "content": "How deep?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "é"}},
                    {"type": "tool_use", "id": "c2", "name": "read", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "nine"},
                    {"type": "tool_result", "tool_use_id": "c2", "content": "gone", "is_error": True},
                ],
            },
            {"role": "user", "content": "In fathoms."},
        ],
    }


def test_a_whole_body_of_gemini() -> None:
    assert written("gemini") == {
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "search", "description": "Find.", "parametersJsonSchema": SCHEMA},
                    {"name": "read", "description": "Read.", "parametersJsonSchema": {"type": "object"}},
                ]
            }
        ],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "How deep?"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "Looking."},
                    {"functionCall": {"id": "c1", "name": "search", "args": {"q": "é"}}},
                    {"functionCall": {"id": "c2", "name": "read", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "c1", "name": "search", "response": {"output": "nine"}}},
                    {"functionResponse": {"id": "c2", "name": "read", "response": {"error": "gone"}}},
                ],
            },
            {"role": "user", "parts": [{"text": "In fathoms."}]},
        ],
    }


def test_a_whole_body_of_openai_responses() -> None:
    assert written("openai-responses") == {
        "model": "m",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "stream": True,
        "tools": [
            {
                "type": "function",
                "name": "search",
                "description": "Find.",
                "strict": False,
                "parameters": SCHEMA,
            },
            {
                "type": "function",
                "name": "read",
                "description": "Read.",
                "strict": False,
                "parameters": {"type": "object"},
            },
        ],
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "How deep?"},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Looking."}],
            },
            {"type": "function_call", "call_id": "c1", "name": "search", "arguments": '{"q": "é"}'},
            {"type": "function_call", "call_id": "c2", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "nine"},
            {"type": "function_call_output", "call_id": "c2", "output": "gone"},
            {"role": "user", "content": "In fathoms."},
        ],
    }


@every_wire
def test_requests_of_one_conversation_extend_each_other(wire: WireSpeech) -> None:
    whole = body_of(wire.api)
    conversation = Conversation()
    for message in HISTORY:
        conversation = conversation.extended(message)
        body = body_of(wire.api, conversation)
        cut = len(body)
        while cut and not whole.startswith(body[:cut]):
            cut -= 1
        closing = body[cut:]
        assert not closing.strip(b"]}"), f"{message.id}: {closing!r}"
    assert body_of(wire.api, conversation) == whole
    assert body_of(wire.api, Conversation(HISTORY[:3]).with_tail(*HISTORY[3:])) == whole


def said_by(wire: WireSpeech, said: Said) -> AssistantMessage:
    """What a model said, through the decoder and the assembler, as a message of a conversation."""
    profile = _PROFILES.get(wire.api, wire.api)
    route = Route("p", build_profile(profile, shipped_profiles()), HttpClient(), Clock(), lambda: "k")
    decoder = adapter_for(route).wire_format.decoder(route.profile)
    events: list[StreamEvent] = []
    for event in wire.events(said):
        events += decoder.feed(event.data, event.name or "message")
    assembler = Assembler(producer="p/m")
    for event in [*events, *decoder.close()]:
        assembler.add(event)
    return AssistantMessage("a1", assembler.completion().content, "p/m")


THOUGHT = Said(
    reasoning='  é\n "hm" ', state="c2ln+/=é", text="Nine.", calls=(("c1", "search", "{}"),), piece=2
)
BLOCKS = {
    "anthropic-messages": b'{"type":"thinking","thinking":"  \xc3\xa9\\n \\"hm\\" ","signature":"c2ln+/=\xc3\xa9"}',
    "gemini": b'"args":{}},"thoughtSignature":"c2ln+/=\xc3\xa9"}',
    "openai-responses": (
        b'{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"  \xc3\xa9\\n \\"hm\\" "}],'
        b'"encrypted_content":"c2ln+/=\xc3\xa9"}'
    ),
}


@every_native
@pytest.mark.case("M36")
def test_provider_state_goes_back_byte_for_byte_and_to_its_producer_only(wire: WireSpeech) -> None:
    message = said_by(wire, THOUGHT)
    history = (ASK, message, ToolMessage("t1", "c1", "search", "nine"))
    block = BLOCKS[wire.api]
    body = body_of(wire.api, history)
    assert block in body
    assert body.index(block) < body.index(b"nine")
    other = CallConfig(ModelRef("p", "other"))
    for elsewhere in (
        body_of(wire.api, history, config=other),
        body_of(wire.api, history, reasoning_replay="never"),
    ):
        assert b"c2ln" not in elsewhere
        assert b"hm" not in elsewhere
        assert b"Nine." in elsewhere
    for foreign in NATIVE:
        if foreign is not wire:
            assert b"c2ln" not in body_of(foreign.api, history, config=other)


def test_reasoning_without_what_it_led_to_is_left_out_of_responses() -> None:
    cut = AssistantMessage("a1", (Text("Nine."), Reasoning("", '{"type":"reasoning"}', "p/m")), "p/m")
    assert b'"reasoning"}' not in body_of("openai-responses", (ASK, cut))


def test_the_signature_of_a_text_stays_on_that_text() -> None:
    signed = '{"part":"text","thoughtSignature":"s1"}'
    alone = '{"part":"empty","thoughtSignature":"s2"}'
    parts = (Text("a"), Reasoning("", signed, "p/m"), Text("b"), Reasoning("", alone, "p/m"))
    body = written("gemini", (ASK, AssistantMessage("a1", parts, "p/m")))
    contents = cast("list[Mapping[str, object]]", body["contents"])
    assert contents[1]["parts"] == [
        {"text": "a"},
        {"text": "b", "thoughtSignature": "s1"},
        {"text": "", "thoughtSignature": "s2"},
    ]


def test_calls_of_another_model_get_the_filler_that_gemini_takes_for_a_signature() -> None:
    filler = "skip_thought_signature_validator"
    body = written("gemini", reasoning_replay="filler", reasoning_filler=filler)
    contents = cast("list[Mapping[str, object]]", body["contents"])
    parts = cast("list[Mapping[str, object]]", contents[1]["parts"])
    assert [part.get("thoughtSignature") for part in parts] == [None, filler, None]
    own = (ASK, said_by(next(wire for wire in WIRES if wire.api == "gemini"), THOUGHT))
    results = (ToolMessage("t1", "c1", "search", "nine"),)
    kept = body_of("gemini", (*own, *results), reasoning_replay="filler", reasoning_filler=filler)
    assert BLOCKS["gemini"] in kept
    assert filler.encode() not in kept


@pytest.mark.parametrize(
    ("api", "place", "words"),
    [
        (
            "anthropic-messages",
            "tool_choice",
            [{"type": "auto"}, {"type": "none"}, {"type": "any"}, {"type": "tool", "name": "search"}],
        ),
        (
            "gemini",
            "toolConfig",
            [
                {"functionCallingConfig": {"mode": "AUTO"}},
                {"functionCallingConfig": {"mode": "NONE"}},
                {"functionCallingConfig": {"mode": "ANY"}},
                {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["search"]}},
            ],
        ),
        (
            "openai-responses",
            "tool_choice",
            ["auto", "none", "required", {"type": "function", "name": "search"}],
        ),
    ],
)
def test_a_forced_choice_is_said_in_the_words_of_the_wire(
    api: str, place: str, words: Sequence[object]
) -> None:
    for choice, word in zip(("auto", "none", "required", "search"), words, strict=True):
        config = CallConfig(ModelRef("p", "m"), tool_choice=choice)
        assert written(api, config=config)[place] == word
        kept = written(api, config=config, forced_tool_choice="never")
        assert kept.get(place) == (word if choice in ("auto", "none") else None)
    assert place not in written(api)
    assert place not in written(api, config=CallConfig(ModelRef("p", "m"), tool_choice="required"), tools=())


def test_a_model_of_anthropic_that_thinks_is_not_forced_and_gets_no_temperature() -> None:
    config = CallConfig(ModelRef("p", "m"), effort="high", tool_choice="search", temperature=0.2)
    body = written("anthropic-messages", config=config)
    assert (body["thinking"], body["output_config"]) == ({"type": "adaptive"}, {"effort": "high"})
    assert "tool_choice" not in body
    assert "temperature" not in body
    plain = written("anthropic-messages", config=CallConfig(ModelRef("p", "m"), temperature=0.2))
    assert plain["temperature"] == 0.2


def test_ceiling_effort_and_temperature_stand_where_the_wire_wants_them() -> None:
    config = CallConfig(ModelRef("p", "m"), max_tokens=99, effort="low", temperature=0.5)
    gemini = written("gemini", config=config)["generationConfig"]
    thinking = {"thinkingLevel": "low", "includeThoughts": True}
    assert gemini == {"thinkingConfig": thinking, "maxOutputTokens": 99, "temperature": 0.5}
    responses = written("openai-responses", config=config)
    assert (responses["max_output_tokens"], responses["reasoning"]) == (
        99,
        {"effort": "low", "summary": "auto"},
    )
    assert written("anthropic-messages", config=config)["max_tokens"] == 99
    assert written("anthropic-messages", max_output=123)["max_tokens"] == 123


@every_native
@pytest.mark.case("M37")
def test_nothing_empty_stands_on_the_wire(wire: WireSpeech) -> None:
    history = (
        ASK,
        AssistantMessage("a0", (Text(" \n"), Reasoning("hm", None, "p/m")), "p/m"),
        UserMessage("u0", (Text(""),)),
        AssistantMessage("a1", (Text(" "), ToolCall("c1", "read", "{}")), "p/m"),
        ToolMessage("t1", "c1", "read", ""),
    )
    body = body_of(wire.api, history, system=" ")
    assert b'" "' not in body
    assert b'""' not in body
    assert b'" \\n"' not in body
    assert b"(no output)" in body
    longer = body_of(wire.api, (ASK, *history[3:]), system=" ")
    assert body == longer


@every_native
@pytest.mark.case("M44")
def test_arguments_that_are_no_json_object_are_passed_on_as_they_are(wire: WireSpeech) -> None:
    broken = r'{"text":"see \upcite{b}"}'
    history = (
        ASK,
        AssistantMessage("a1", (ToolCall("c1", "read", broken), ToolCall("c2", "read", "[1]")), "p/m"),
        ToolMessage("t1", "c1", "read", "bad"),
        ToolMessage("t2", "c2", "read", "bad \ud800"),
    )
    body = body_of(wire.api, history)
    assert json.dumps(broken)[1:-1].encode() in body
    json.loads(body)


def test_ids_and_names_that_a_provider_would_refuse_are_rewritten_and_stay_apart() -> None:
    calls = (ToolCall("functions.read:0", "read", "{}"), ToolCall("functions.read_0", "read", "{}"))
    results = tuple(ToolMessage(f"t{at}", call.id, "read", "x") for at, call in enumerate(calls))
    body = written("anthropic-messages", (ASK, AssistantMessage("a1", calls, "x/y"), *results))
    messages = cast("list[Mapping[str, object]]", body["messages"])
    used = [block["id"] for block in cast("list[Mapping[str, str]]", messages[1]["content"])]
    answered = [block["tool_use_id"] for block in cast("list[Mapping[str, str]]", messages[2]["content"])]
    assert used == answered
    assert len(set(used)) == 2
    assert all(id_.replace("_", "").replace("-", "").isalnum() for id_ in used)


@every_native
def test_a_message_is_encoded_once_while_a_conversation_goes_on(wire: WireSpeech) -> None:
    adapter = adapter_of(wire.api)
    config = CallConfig(ModelRef("p", "m"))
    first = Conversation((ASK,))
    bodies: list[bytes] = []
    for conversation in (first, first.extended(CALLED, *RESULTS), first):
        call = adapter.prepare(LlmRequest(config, CHAT, "s", TOOLS, conversation))
        assert isinstance(call, ProviderCall)
        bodies.append(call.body)
    assert bodies[0] == bodies[2]
    assert bodies[1].startswith(bodies[0].removesuffix(b"]}"))


FORM = OutputSchema("plan", SCHEMA, "The plan.")
SHAPED = CallConfig(ModelRef("p", "m"), effort="low", output=FORM)
_NAMED = {"name": "plan", "schema": SCHEMA, "strict": False}
_FORMS: Mapping[str, tuple[str, object, object]] = {
    "openai-chat": (
        "response_format",
        {"type": "json_schema", "json_schema": _NAMED},
        {"type": "json_object"},
    ),
    "anthropic-messages": (
        "output_config",
        {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
        {"effort": "low"},
    ),
    "gemini": (
        "generationConfig",
        {
            "thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True},
            "responseMimeType": "application/json",
            "responseJsonSchema": SCHEMA,
        },
        {
            "thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True},
            "responseMimeType": "application/json",
        },
    ),
    "openai-responses": (
        "text",
        {"format": {"type": "json_schema", **_NAMED}},
        {"format": {"type": "json_object"}},
    ),
}


@every_wire
def test_the_form_of_an_answer_is_said_as_the_profile_allows(wire: WireSpeech) -> None:
    place, schema, plain = _FORMS[wire.api]
    assert written(wire.api, config=SHAPED, structured_output="json_schema")[place] == schema
    assert written(wire.api, config=SHAPED, structured_output="json_object").get(place) == plain
    bare = CallConfig(ModelRef("p", "m"), effort="low")
    assert body_of(wire.api, config=SHAPED, structured_output="none") == body_of(wire.api, config=bare)
    forced = CallConfig(ModelRef("p", "m"), effort="low", tool_choice="plan")
    as_tool = body_of(wire.api, config=SHAPED, structured_output="tool")
    offered = (*TOOLS, ToolSchema("plan", "The plan.", SCHEMA))
    assert as_tool == body_of(wire.api, config=forced, tools=offered)


def test_settings_that_the_docs_name_for_single_models_do_what_they_say() -> None:
    high = CallConfig(ModelRef("p", "m"), effort="high")
    thinking = {"type": "enabled", "budget_tokens": 16384}
    aliases = dict.fromkeys(("low", "medium", "high", "max"), "budget")
    body = written(
        "anthropic-messages",
        config=high,
        efforts={"budget": {"thinking": thinking}},
        effort_aliases=aliases,
        max_tokens_default=32000,
    )
    assert (body["thinking"], body["max_tokens"], "output_config" in body) == (thinking, 32000, False)
    plain = written("openai-responses", extra_body={"store": False, "include": []})
    assert (plain["store"], plain["include"]) == (False, [])


def _thinking(tokens: int | None, effort: str = "high", **more: object) -> Mapping[str, object]:
    """What is said of thinking under an output ceiling, to a model that thinks by a budget."""
    config = CallConfig(
        ModelRef("p", "claude-haiku-4-5"), max_tokens=tokens, effort=effort, tool_choice="search"
    )
    return written("anthropic-messages", config=config, **more)


@pytest.mark.case("C19")
def test_a_budget_for_thinking_stays_below_the_output_ceiling() -> None:
    assert _thinking(13_107)["thinking"] == {"type": "enabled", "budget_tokens": 6553}
    assert _thinking(None)["thinking"] == {"type": "enabled", "budget_tokens": 16384}
    assert _thinking(None)["max_tokens"] == 64000
    assert _thinking(16385)["thinking"] == {"type": "enabled", "budget_tokens": 16384}
    assert _thinking(16384)["thinking"] == {"type": "enabled", "budget_tokens": 8192}
    assert _thinking(2048)["thinking"] == {"type": "enabled", "budget_tokens": 1024}


def test_a_ceiling_that_leaves_no_room_for_thinking_switches_it_off() -> None:
    body = _thinking(2047)
    assert (body["thinking"], body["max_tokens"]) == ({"type": "disabled"}, 2047)
    assert body["tool_choice"] == {"type": "tool", "name": "search"}, (
        "what does not think can be made to call"
    )
    assert "tool_choice" not in _thinking(2048)


def test_a_budget_that_is_a_part_of_the_output_of_gemini() -> None:
    config = CallConfig(ModelRef("p", "gemini-2.5-pro"), max_tokens=4000, effort="medium")
    generation = cast("Mapping[str, object]", written("gemini", config=config)["generationConfig"])
    assert generation["thinkingConfig"] == {"thinkingBudget": 2000, "includeThoughts": True}
    assert generation["maxOutputTokens"] == 4000
