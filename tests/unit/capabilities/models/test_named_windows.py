"""A refusal of a prompt that is too long tells the window, in the words of each provider."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from leadline.capabilities.models.providers.failures import http_failure
from leadline.capabilities.models.providers.profiles import build_profile, shipped_profiles
from leadline.core.llm.failure import Stop
from leadline.testing.provider_server.limits import ServerWindow, Wording

OF_SERVER: dict[Wording, tuple[str, int | None]] = {
    "openai": ("openai", 8192),
    "openai-responses": ("openai-responses", None),
    "anthropic": ("anthropic", 8192),
    "gemini": ("gemini", 8192),
    "mistral": ("mistral", 8192),
    "openrouter": ("openrouter", 8192),
    "vllm": ("vllm", 8192),
    "llamacpp": ("llamacpp", 8192),
    "lmstudio": ("lmstudio", 8192),
}
SAID = [
    (
        "deepseek",
        "This model's maximum context length is 131,072 tokens. However, you requested 200000",
        131072,
    ),
    ("moonshot", "Invalid request: Your request exceeded model token limit: 8192", 8192),
    ("qwen", "Range of input length should be [1, 129024]", 129024),
    ("together", "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens", 8193),
    ("xai", "This model's maximum prompt length is 131072 but the request contains 200000 tokens.", 131072),
    ("groq", "Please reduce the length of the messages or completion.", None),
    ("azure", "This model's maximum context length is 4096 tokens.", 4096),
    ("anthropic", "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", 200000),
    ("local", "This model's maximum context length is 0 tokens.", None),
    ("local", "maximum context length is 123456789012345 tokens", None),
]


def refused(profile: str, error: Mapping[str, object]) -> Stop:
    body = json.dumps({"error": error}).encode()
    found = http_failure(build_profile(profile, shipped_profiles()), 400, {}, body, 0.0)
    assert isinstance(found, Stop)
    assert found.code == "CONTEXT_WINDOW_EXCEEDED"
    return found


@pytest.mark.parametrize("wording", OF_SERVER)
def test_in_the_words_that_the_provider_server_uses(wording: Wording) -> None:
    profile, window = OF_SERVER[wording]
    message = ServerWindow(tokens=8192, wording=wording).refusal(9000, 0)
    assert refused(profile, {"message": message}).window_tokens == window


@pytest.mark.parametrize(("profile", "message", "window"), SAID)
def test_in_the_words_of_other_providers(profile: str, message: str, window: int | None) -> None:
    assert refused(profile, {"message": message}).window_tokens == window


@pytest.mark.parametrize("profile", ["llamacpp", "local"])
def test_as_a_figure_beside_the_message(profile: str) -> None:
    error = {
        "message": "the request exceeds the available context size",
        "n_prompt_tokens": 9000,
        "n_ctx": 4096,
    }
    assert refused(profile, error).window_tokens == 4096


def test_the_wording_is_data_that_a_user_may_change() -> None:
    own = {"overflow_patterns": ["at most (?P<window>[0-9]+) words"]}
    profile = build_profile("local", shipped_profiles(), own)
    found = http_failure(profile, 400, {}, b'{"error":"I take at most 77 words"}', 0.0)
    assert isinstance(found, Stop)
    assert found.window_tokens == 77
