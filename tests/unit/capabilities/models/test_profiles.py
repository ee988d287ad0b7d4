"""Profiles are validated data; nothing follows from a name."""

from __future__ import annotations

import pytest

from leadline.capabilities.models.providers.profiles import build_profile, shipped_profiles
from leadline.kernel.errors import ConfigError


def test_every_shipped_profile_is_valid() -> None:
    raw = shipped_profiles()
    assert set(raw) >= {"anthropic", "deepseek", "gemini", "local", "openai-responses"}
    for name in raw:
        assert build_profile(name, raw).origin.startswith(f"profile {name}")


def test_a_profile_refines_another_and_settings_are_laid_over_it() -> None:
    raw = {**shipped_profiles(), "mine": {"extends": "deepseek", "text_tool_calls": {"parse": True}}}
    built = build_profile("mine", raw, {"stream_end": {"done_required": False}})
    assert built.text_tool_calls.parse
    assert built.text_tool_calls.tags == build_profile("deepseek", raw).text_tool_calls.tags
    assert (built.stream_end.done_required, built.stream_end.finish_required) == (False, True)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"reasoning_reply": "never"}, "reasoning_reply"),
        ({"reasoning_replay": "sometimes"}, "reasoning_replay"),
        ({"stream_end": {"x": 1}}, r"stream_end\.x"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build_profile("local", shipped_profiles(), settings)


def test_an_unknown_profile_lists_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"'opnai'; there are: .*deepseek, .*local"):
        build_profile("opnai", shipped_profiles())


def test_a_profile_that_extends_itself_is_refused() -> None:
    with pytest.raises(ConfigError):
        build_profile("a", {"a": {"extends": "b"}, "b": {"extends": "a"}})
