"""What the shipped rows say is what goes on the wire, and what comes back is read as they say."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from leadline.capabilities.models.providers.calling import Route
from leadline.capabilities.models.providers.catalogue import Catalogue, Setup
from leadline.capabilities.models.providers.decode import read_usage
from leadline.capabilities.models.providers.encode import encoder_for
from leadline.capabilities.models.providers.failures import http_failure
from leadline.capabilities.models.providers.http import HttpClient
from leadline.capabilities.models.providers.profiles import Profile, build_profile, shipped_profiles
from leadline.core.clock import Clock
from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.messages import Conversation
from leadline.core.llm.request import CHAT, CallConfig, LlmRequest, ModelRef, ToolSchema
from leadline.core.llm.usage import Usage
from leadline.testing.clock import ManualClock

RAW = shipped_profiles()
TOOL = ToolSchema("look", "looks", {"type": "object", "properties": {}})
HOSTED = (
    "openai", "azure", "deepseek", "mistral", "qwen", "moonshot", "groq", "together", "xai", "openrouter",
)  # fmt: skip
SERVERS = ("ollama", "vllm", "llamacpp", "lmstudio")


def profile(name: str, **settings: object) -> Profile:
    return build_profile(name, RAW, settings)


def body(found: Profile, *, tools: tuple[ToolSchema, ...] = (TOOL,), **config: Any) -> Mapping[str, Any]:
    asked = CallConfig(ModelRef("p", "m"), **config)
    request = LlmRequest(asked, CHAT, "Be kind.", tools, Conversation([]))
    return json.loads(encoder_for(request, found).head + b"]}")


def route(name: str, found: Profile, clock: Clock | None = None) -> Route:
    return Route(name, found, HttpClient(), clock or ManualClock(), lambda: "k")


@pytest.mark.parametrize("name", HOSTED)
def test_a_hosted_provider_wants_a_key_and_says_where_to_get_one(name: str) -> None:
    found = profile(name)
    assert found.key_required
    assert found.key_env
    assert found.key_page.startswith("https://")
    assert found.base_url.startswith("https://") or found.base_url_env
    assert isinstance(route(name, found).refusal(None), Stop)


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_on_this_machine_is_asked_at_its_usual_port_without_a_key(name: str) -> None:
    found = profile(name)
    assert found.discover
    assert not found.key_required
    assert found.base_url.startswith("http://127.0.0.1:")
    assert route(name, found).refusal(None) is None
    assert found.context_window is None


@pytest.mark.parametrize("name", sorted(RAW))
def test_every_row_says_what_a_full_window_sounds_like(name: str) -> None:
    assert profile(name).overflow_patterns
    assert profile(name).quota_patterns


def test_azure_takes_its_key_in_a_header_of_its_own_and_its_address_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = profile("azure", query={"api-version": "preview"})
    assert found.models == {}
    assert isinstance(route("azure", found).refusal("k"), Stop)
    assert route("azure", found).headers("k", accept="x")["api-key"] == "k"
    assert "Authorization" not in route("azure", found).headers("k", accept="x")
    for given in ("https://r.openai.azure.com/", "https://r.openai.azure.com/openai/v1"):
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", given)
        facts = Catalogue({"azure": Setup(name="azure")}, {}, ManualClock(), None).provider("azure")
        assert facts is not None
        assert facts.base_url == "https://r.openai.azure.com/openai/v1"
    placed = route(
        "azure", profile("azure", base_url="https://r/openai/v1", query={"api-version": "preview"})
    )
    assert placed.url("m") == "https://r/openai/v1/chat/completions?api-version=preview"


@pytest.mark.parametrize(
    ("name", "choice", "sent"),
    [
        ("openai", "required", "required"),
        ("openai", "look", {"type": "function", "function": {"name": "look"}}),
        ("mistral", "required", "any"),
        ("mistral", "look", {"type": "function", "function": {"name": "look"}}),
        ("llamacpp", "look", "required"),
        ("lmstudio", "look", "required"),
        ("ollama", "required", None),
        ("moonshot", "required", None),
        ("vllm", "none", "none"),
    ],
)
def test_a_tool_is_demanded_in_the_words_of_the_provider(name: str, choice: str, sent: object) -> None:
    assert body(profile(name), tool_choice=choice).get("tool_choice") == sent


def test_a_qwen_that_thinks_cannot_be_made_to_call_a_tool() -> None:
    named = {"type": "function", "function": {"name": "look"}}
    assert body(profile("qwen"), tool_choice="look")["tool_choice"] == named
    assert "tool_choice" not in body(profile("qwen"), tool_choice="look", effort="high")


@pytest.mark.parametrize(
    ("name", "effort", "fields"),
    [
        ("openai", "max", {"reasoning_effort": "xhigh"}),
        ("openrouter", "off", {"reasoning": {"effort": "none"}}),
        ("qwen", "off", {"enable_thinking": False}),
        ("qwen", "low", {"enable_thinking": True, "thinking_budget": 2048}),
        ("ollama", "off", {"reasoning_effort": "none"}),
        ("mistral", "high", {}),
    ],
)
def test_an_effort_is_said_as_the_provider_wants_it(
    name: str, effort: str, fields: Mapping[str, object]
) -> None:
    sent = body(profile(name), effort=effort)
    assert {key: sent[key] for key in fields} == fields
    assert fields or sent == body(profile(name))


def test_a_model_of_a_row_may_differ_from_the_others() -> None:
    found = profile("openai")
    assert "temperature" not in body(found, temperature=0.1)
    assert body(found.of_model("gpt-4.1"), temperature=0.1)["temperature"] == 0.1
    assert "reasoning_effort" not in body(found.of_model("gpt-4.1"), effort="high")
    assert body(found.of_model("gpt-5"), effort="off")["reasoning_effort"] == "minimal"
    assert found.of_model("gpt-5").context_window == 400_000
    assert found.of_model("unheard-of") is found
    assert found.context_window is None


def test_what_is_to_be_cached_is_marked_where_the_provider_wants_marks() -> None:
    plain, marked = body(profile("openrouter")), body(profile("openrouter", cache_markers=["system"]))
    assert plain["messages"][0]["content"] == "Be kind."
    assert marked["messages"][0]["content"] == [
        {"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}
    ]


@pytest.mark.parametrize(
    ("name", "chunk", "usage"),
    [
        (
            "xai",
            {"usage": {"prompt_tokens": 10, "completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 7}}},
            Usage(input=10, output=4, reasoning=7),
        ),
        (
            "moonshot",
            {"choices": [{"usage": {"prompt_tokens": 10, "completion_tokens": 4, "cached_tokens": 6}}]},
            Usage(input=4, cached_input=6, output=4),
        ),
        ("groq", {"x_groq": {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}}, Usage(input=3, output=2)),
    ],
)  # fmt: skip
def test_usage_is_read_where_the_provider_puts_it(
    name: str, chunk: Mapping[str, object], usage: Usage
) -> None:
    assert read_usage(chunk, profile(name).usage) == usage


@pytest.mark.parametrize(
    ("name", "status", "error", "code"),
    [
        ("openai", 400, {"code": "context_length_exceeded", "message": "too long"}, "CONTEXT_WINDOW_EXCEEDED"),
        ("openai", 429, {"code": "insufficient_quota", "message": "You exceeded your current quota"}, "QUOTA"),
        ("openai", 429, {"code": "rate_limit_exceeded", "message": "Rate limit reached"}, "RATE_LIMIT"),
        ("qwen", 429, {"code": "insufficient_quota", "message": "Allocated quota exceeded, please increase"}, "RATE_LIMIT"),
        ("qwen", 400, {"code": "Arrearage", "message": "Access denied"}, "QUOTA"),
        ("qwen", 400, {"code": "invalid_parameter_error", "message": "Range of input length should be [1, 98304]"}, "CONTEXT_WINDOW_EXCEEDED"),
        ("moonshot", 429, {"type": "exceeded_current_quota_error", "message": "suspended"}, "QUOTA"),
        ("moonshot", 429, {"type": "engine_overloaded_error", "message": "busy"}, "RATE_LIMIT"),
        ("llamacpp", 400, {"type": "exceed_context_size_error", "message": "the request is 9000 tokens"}, "CONTEXT_WINDOW_EXCEEDED"),
        ("together", 422, {"message": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193"}, "CONTEXT_WINDOW_EXCEEDED"),
        ("mistral", 429, {"message": "Requests rate limit exceeded"}, "RATE_LIMIT"),
    ],
)  # fmt: skip
def test_a_refusal_is_understood_in_the_words_of_the_provider(
    name: str, status: int, error: Mapping[str, object], code: str
) -> None:
    failure = http_failure(profile(name), status, {}, json.dumps({"error": error}).encode(), 0.0)
    assert failure.code == code
    assert isinstance(failure, Wait) == (code == "RATE_LIMIT")


def test_the_page_on_models_explains_every_field_of_a_profile() -> None:
    page = (Path(__file__).parents[4] / "docs" / "models.md").read_text(encoding="utf-8")
    explained = dict(re.findall(r"^\| `([a-z_]+)` \| (.+) \|$", page.partition("| Field | |")[2], re.M))
    assert [*explained] == [*Profile.model_fields]
