"""The estimate of tokens: near what tokenisers count, never below their least, cheap over a growing conversation."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.llm import tokens as tokens_module
from leadline.core.llm.messages import (
    AssistantMessage,
    Conversation,
    ImageRef,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from leadline.core.llm.request import ToolSchema
from leadline.core.llm.tokens import (
    IMAGE_TOKENS,
    Estimate,
    header_tokens,
    least_tokens,
    message_tokens,
    ratio_of,
    text_tokens,
)

MEASURED = Path(__file__).parents[4] / "evals" / "tokens"
"""Texts of many kinds, with what published tokenisers count."""


def counts() -> dict[str, dict[str, int]]:
    return cast(
        "dict[str, dict[str, int]]", json.loads((MEASURED / "counts.json").read_text(encoding="utf-8"))
    )


def sample(name: str) -> str:
    return (MEASURED / "samples" / f"{name}.txt").read_text(encoding="utf-8")


def middle(of: dict[str, int]) -> float:
    return median(tokens for name, tokens in of.items() if name != "cl100k_base")


TOOL = ToolSchema(
    "read", "Reads a page of a source.", {"type": "object", "properties": {"page": {"type": "integer"}}}
)


@pytest.mark.parametrize("name", counts())
def test_the_estimate_is_near_what_tokenisers_count(name: str) -> None:
    assert text_tokens(sample(name)) == pytest.approx(middle(counts()[name]), rel=0.18)


def test_the_estimate_is_within_a_seventh_of_the_middle_for_nearly_all_kinds_of_text() -> None:
    off = [abs(text_tokens(sample(name)) / middle(of) - 1) for name, of in counts().items()]
    assert sum(off) / len(off) < 0.08
    assert sorted(off)[len(off) * 9 // 10] < 0.15


@pytest.mark.parametrize("name", counts())
def test_no_tokeniser_goes_below_the_least(name: str) -> None:
    assert least_tokens(sample(name)) <= min(counts()[name].values())


def test_nothing_has_no_tokens_and_anything_has_one() -> None:
    assert text_tokens("") == least_tokens("") == 0
    assert text_tokens(" ") >= 1
    assert text_tokens("a") >= 1


@given(st.text())
def test_every_text_has_an_estimate(text: str) -> None:
    assert text_tokens(text) >= min(1, len(text))
    assert 0 <= least_tokens(text) <= max(1, len(text))


def test_a_lone_surrogate_is_counted_like_any_character() -> None:
    assert text_tokens("a\ud800b") >= 1


@pytest.mark.case("C15")
def test_an_image_counts_by_a_rule_and_not_by_its_bytes() -> None:
    picture = UserMessage("m1", (Text("What is this?"), ImageRef("0" * 64, "image/png")))
    assert IMAGE_TOKENS < message_tokens(picture) < IMAGE_TOKENS + 20


def test_the_parts_of_a_message_and_of_a_header_are_counted() -> None:
    said = AssistantMessage("m2", (Text("word " * 100), ToolCall("c", "read", '{"page": 1}')), "m/m")
    assert message_tokens(said) > text_tokens("word " * 100) + text_tokens('{"page": 1}')
    assert message_tokens(ToolMessage("m3", "c", "read", "word " * 100)) > text_tokens("word " * 100)
    assert header_tokens("You are careful. " * 50, ()) < header_tokens("You are careful. " * 50, (TOOL,))
    assert header_tokens("", ()) == 0


def grown(count: int) -> Conversation:
    return Conversation([UserMessage(f"m{at}", (Text(f"message {at} " * 20),)) for at in range(count)])


def test_a_growing_conversation_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    real = message_tokens

    def noting(message: Message) -> int:
        counted.append(message.id)
        return real(message)

    monkeypatch.setattr(tokens_module, "message_tokens", noting)
    estimate, conversation = Estimate(), grown(50)
    before = estimate.size("system", (TOOL,), conversation)
    counted.clear()
    further = conversation.extended(UserMessage("new", (Text("more"),)))
    after = estimate.size("system", (TOOL,), further)
    assert counted == ["new"]
    assert after == before + real(further[-1])


def test_another_conversation_and_a_tail_are_counted_anew() -> None:
    estimate, conversation = Estimate(), grown(10)
    whole = estimate.size("", (), conversation)
    tail = UserMessage("tail", (Text("for now"),))
    assert estimate.size("", (), conversation.with_tail(tail)) == whole + message_tokens(tail)
    assert estimate.size("", (), conversation) == whole
    assert estimate.size("", (), grown(3)) == sum(map(message_tokens, grown(3)))
    assert estimate.size("", (), conversation) == whole


@pytest.mark.case("C15")
def test_what_a_provider_reports_corrects_the_estimate_of_the_same_model_only() -> None:
    estimate = Estimate()
    assert not estimate.knows("a/x")
    estimate.learn("a/x", 40_000, 60_000)
    assert estimate.knows("a/x") and not estimate.knows("a/y")
    assert estimate.corrected(40_000, "a/x") == pytest.approx(60_000, rel=0.02)
    assert estimate.corrected(40_000, "a/y") == 40_000


def test_a_small_or_absurd_report_does_not_carry_the_estimate_off() -> None:
    estimate = Estimate()
    estimate.learn("a/x", 30, 900)
    assert not estimate.knows("a/x")
    estimate.learn("a/x", 300, 900)
    assert estimate.corrected(10_000, "a/x") < 20_000
    assert ratio_of(1000, 10**9) == 4.0
    assert ratio_of(10**9, 1) == 0.25
    estimate.learn("a/x", 10_000, None)
    estimate.learn("a/x", 10_000, 0)
    assert estimate.corrected(10_000, "a/x") < 20_000
