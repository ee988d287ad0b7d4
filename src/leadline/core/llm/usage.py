"""Tokens of model calls in disjoint buckets, where unknown is not zero."""

from __future__ import annotations

import msgspec


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens as the provider reported them. The buckets do not overlap; None is "not reported"."""

    input: int | None = None
    """Input tokens neither read from a cache nor written to one."""
    cached_input: int | None = None
    cache_write: int | None = None
    output: int | None = None
    """Output tokens other than reasoning."""
    reasoning: int | None = None

    def __add__(self, other: Usage) -> Usage:
        """Both together. A bucket is unknown only when neither reported it."""
        return Usage(
            _sum(self.input, other.input),
            _sum(self.cached_input, other.cached_input),
            _sum(self.cache_write, other.cache_write),
            _sum(self.output, other.output),
            _sum(self.reasoning, other.reasoning),
        )

    @property
    def prompt(self) -> int | None:
        """All input tokens: the size of the window that the call used."""
        if self.cached_input is None and self.cache_write is None:
            return self.input
        return _sum(_sum(self.input, self.cached_input), self.cache_write)

    @property
    def completion(self) -> int | None:
        """All output tokens, reasoning included."""
        return _sum(self.output, self.reasoning)

    @property
    def total(self) -> int | None:
        """The sum of the buckets."""
        return _sum(self.prompt, self.completion)

    @property
    def reported(self) -> bool:
        """Whether the provider reported anything."""
        return self != NOT_REPORTED


NOT_REPORTED = Usage()


def _sum(left: int | None, right: int | None) -> int | None:
    if left is None:
        return right
    return left if right is None else left + right
