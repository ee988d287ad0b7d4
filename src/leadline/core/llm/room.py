"""How a window is shared between what a model reads and what it writes."""

from __future__ import annotations

_SMALL = 65_536
"""Tokens of a window up to which an answer gets a quarter of it, and above which it gets half."""


def most_output(window: int) -> int:
    """Most tokens that an answer may be given in a window of so many tokens.

    Providers count the ceiling on an answer as used, so that prompt and ceiling together have to fit. The share is
    the same for every request to a model: a ceiling that followed the length of the prompt would change the head of
    each request, and with it what a provider's cache knows of the prompt.
    """
    return max(1, window // 4 if window <= _SMALL else window // 2)


def within_window(max_tokens: int | None, window: int | None) -> int | None:
    """A ceiling on an answer, lowered to what its window leaves for it; None where there is none."""
    if max_tokens is None or window is None:
        return max_tokens
    return min(max_tokens, most_output(window))
