"""The server's own limits on a model: how many calls at once, how many requests and tokens in a while, how large a prompt."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from leadline.core.clock import Clock

HeaderStyle: TypeAlias = Literal["openai", "anthropic", "none"]
Wording: TypeAlias = Literal[
    "openai",
    "anthropic",
    "gemini",
    "openai-responses",
    "mistral",
    "openrouter",
    "vllm",
    "llamacpp",
    "lmstudio",
]
"""Whose words a refusal of a prompt that is too long uses, as those providers publish them."""


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the server serves of one model; what is more gets HTTP 429 with the time to wait."""

    concurrent: int | None = None
    """Calls that are answered at the same time."""
    requests: int | None = None
    """Requests within `per_s`."""
    tokens: int | None = None
    """Tokens, of prompts and answers, within `per_s`."""
    per_s: float = 60.0
    headers: HeaderStyle = "openai"
    """Which headers tell limit, remainder and reset with every reply."""
    retry_after: bool = True
    """Whether a refusal says when to come again."""
    busy_retry_s: float = 1.0
    """What a refusal for too many calls at once asks to wait."""


class ServerWindow(msgspec.Struct, frozen=True, kw_only=True):
    """The window of the server's model."""

    tokens: int
    excess: Literal["refuse", "truncate"] = "refuse"
    """``refuse``: HTTP 400 in the words of `wording`. ``truncate``: answers as if nothing were wrong, and reports
    and charges the prompt that it kept, as some local servers do."""
    wording: Wording = "openai"
    output_counts: bool = False
    """Whether the output that a request may have has to fit too."""
    bytes_per_token: float = 4.0
    """How the server estimates tokens: bytes of the request's body."""

    def estimate(self, raw: bytes) -> int:
        """Tokens of a request's body."""
        return max(1, int(len(raw) / self.bytes_per_token))

    def refusal(self, prompt: int, output: int) -> str | None:
        """What is said to a request that does not fit; None where it does."""
        asked = prompt + (output if self.output_counts else 0)
        if self.excess == "truncate" or asked <= self.tokens:
            return None
        return _TOO_LONG[self.wording].format(window=self.tokens, tokens=asked, over=asked - self.tokens)


_TOO_LONG: Mapping[Wording, str] = {
    "openai": "This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} "
    "tokens. Please reduce the length of the messages.",
    "openai-responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "anthropic": "prompt is too long: {tokens} tokens > {window} maximum",
    "gemini": "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window}).",
    "mistral": "Prompt contains {tokens} tokens and 0 draft tokens, too large for model with {window} maximum "
    "context length",
    "openrouter": "This endpoint's maximum context length is {window} tokens. However, you requested about {tokens} "
    "tokens ({tokens} of text input). Please reduce the length of either one, or use the context-compression plugin.",
    "vllm": "This model's maximum context length is {window} tokens. However, you requested {tokens} tokens "
    "({tokens} in the messages, 0 in the completion). Please reduce the length of the messages or completion.",
    "llamacpp": "the request exceeds the available context size ({window} tokens), try increasing it",
    "lmstudio": "Trying to keep the first {tokens} tokens when context the overflows. However, the model is loaded "
    "with context length of only {window} tokens, which is not enough.",
}


class LineCount(msgspec.Struct, frozen=True):
    """What the server saw of one model."""

    admitted: int
    refused: int
    """Requests that got 429 for a limit."""
    active: int
    """Calls that are being answered."""
    peak: int
    """Most calls that were being answered at once."""
    most_requests: int
    """Most requests that were admitted within `per_s`, of those that arrived."""
    early: int
    """Refused requests that came before the time that an earlier refusal of the same request had named."""


@dataclass(frozen=True, slots=True)
class TooMuch:
    """A refusal for a limit."""

    message: str
    wait_s: float


@dataclass(slots=True)
class Line:
    """The accounts of one model."""

    limits: ServerLimits
    admitted: int = 0
    refused: int = 0
    active: int = 0
    peak: int = 0
    most_requests: int = 0
    early: int = 0
    _taken: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])
    _not_before: dict[bytes, float] = field(default_factory=dict[bytes, float])

    def count(self) -> LineCount:
        """What happened so far."""
        return LineCount(self.admitted, self.refused, self.active, self.peak, self.most_requests, self.early)

    def refusal(self, tokens: int, raw: bytes) -> TooMuch | None:
        """Why a request with so many tokens is not served now; None where it is."""
        now = time.monotonic()
        self._forget(now)
        found = self._too_much(tokens, now)
        if found is not None:
            self.refused += 1
            if now < self._not_before.get(raw, 0.0):
                self.early += 1
            self._not_before[raw] = now + found.wait_s
        return found

    def begin(self, tokens: int) -> None:
        """Serve a request that uses so many tokens."""
        self._taken.append((time.monotonic(), tokens))
        self.admitted += 1
        self.active += 1
        self.peak = max(self.peak, self.active)
        self.most_requests = max(self.most_requests, len(self._taken))

    def end(self) -> None:
        """A call is over: answered, or left by its client."""
        self.active -= 1

    def headers(self) -> Mapping[str, str]:
        """What a reply tells of the limits."""
        now = time.monotonic()
        self._forget(now)
        reset_s = max(0.0, self._taken[0][0] + self.limits.per_s - now) if self._taken else 0.0
        used = {"requests": len(self._taken), "tokens": sum(tokens for _, tokens in self._taken)}
        found: dict[str, str] = {}
        for what, limit in (("requests", self.limits.requests), ("tokens", self.limits.tokens)):
            if limit is None or self.limits.headers == "none":
                continue
            left = str(max(0, limit - used[what]))
            if self.limits.headers == "openai":
                found |= {f"x-ratelimit-limit-{what}": str(limit), f"x-ratelimit-remaining-{what}": left}
                found[f"x-ratelimit-reset-{what}"] = _length(reset_s)
            else:
                found |= {f"anthropic-ratelimit-{what}-limit": str(limit)}
                found |= {f"anthropic-ratelimit-{what}-remaining": left}
                found[f"anthropic-ratelimit-{what}-reset"] = _moment(reset_s)
        return found

    def wait_headers(self, wait_s: float) -> Mapping[str, str]:
        """What a refusal tells of the time to wait."""
        if not self.limits.retry_after:
            return {}
        whole = {"retry-after": str(math.ceil(wait_s))}
        exact = {"retry-after-ms": str(math.ceil(wait_s * 1000))}
        return whole if self.limits.headers == "anthropic" else {**whole, **exact}

    def _too_much(self, tokens: int, now: float) -> TooMuch | None:
        limits = self.limits
        if limits.concurrent is not None and self.active >= limits.concurrent:
            return TooMuch(
                f"Too many concurrent requests: {limits.concurrent} are served at once.", limits.busy_retry_s
            )
        if limits.requests is not None and len(self._taken) >= limits.requests:
            wait_s = self._taken[len(self._taken) - limits.requests][0] + limits.per_s - now
            return _reached("requests", limits.requests, len(self._taken), 1, wait_s)
        used = sum(taken for _, taken in self._taken)
        if limits.tokens is not None and used + tokens > limits.tokens:
            return _reached("tokens", limits.tokens, used, tokens, self._room_for(tokens, used, now))
        return None

    def _room_for(self, tokens: int, used: int, now: float) -> float:
        limit = self.limits.tokens or 0
        for at, taken in self._taken:
            used -= taken
            if used + tokens <= limit:
                return at + self.limits.per_s - now
        return self.limits.per_s

    def _forget(self, now: float) -> None:
        while self._taken and self._taken[0][0] <= now - self.limits.per_s:
            self._taken.popleft()


def _reached(what: str, limit: int, used: int, asked: int, wait_s: float) -> TooMuch:
    wait_s = max(0.001, wait_s)
    message = f"Rate limit reached on {what} per minute: Limit {limit}, Used {used}, Requested {asked}. "
    return TooMuch(f"{message}Please try again in {_length(wait_s)}.", wait_s)


def _length(seconds: float) -> str:
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    minutes, rest = divmod(math.ceil(seconds * 1000) / 1000, 60)
    return f"{int(minutes)}m{rest:g}s" if minutes else f"{rest:g}s"


def _moment(in_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(math.ceil(Clock().now() + in_s)))
