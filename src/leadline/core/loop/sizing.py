"""Whether a request fits into a model's window, and whether the model read all of it: pure decisions over sizes."""

from __future__ import annotations

from dataclasses import dataclass

from leadline.core.llm.failure import Stop

UNSURE = 0.85
"""Part of an estimate that a request has for certain, as long as no usage of the model has corrected the estimate."""

LEAST_ANSWER = 256
"""Tokens without which there is no point in asking."""

USUAL_ANSWER = 4096
"""Tokens that are kept free for an answer where nothing is known of its length."""

CHECKED_FROM = 2000
"""Tokens below which a reported prompt is not compared: fixed costs and odd counts weigh too much."""

CUT_OFF = 0.5
"""A reported prompt below this part of the least that was sent was not read whole."""


@dataclass(frozen=True)
class Size:
    """How large a request is, in tokens."""

    raw: int
    """By the estimate alone."""
    tokens: int
    """The estimate, corrected by what the provider reported for earlier requests."""
    corrected: bool
    """Whether there was anything to correct it by."""

    @property
    def least(self) -> int:
        """What it has for certain."""
        return self.tokens if self.corrected else int(self.tokens * UNSURE)


def answer_room(window: int | None, max_tokens: int | None, max_output: int | None) -> int:
    """Tokens that have to stay free for the answer: what is asked for, else what is usual in such a window."""
    if max_tokens is not None:
        return max_tokens
    room = min(max_output or USUAL_ANSWER, USUAL_ANSWER)
    return room if window is None else min(room, window // 4)


def oversize(size: Size, window: int | None, max_tokens: int | None, model: str) -> Stop | None:
    """Why a request is not sent: with the shortest useful answer it does not fit. None where it may.

    Args:
        size: of the whole request.
        window: tokens that the model takes, prompt and answer together; None: not known, so nothing is too large.
        max_tokens: ceiling on the answer that the request names; providers count it as used.
        model: `provider/name`, for the message.
    """
    if window is None:
        return None
    answer = LEAST_ANSWER if max_tokens is None else max_tokens
    if size.least + min(answer, window) <= window:
        return None
    return Stop(
        "CONTEXT_WINDOW_EXCEEDED",
        f"the request has about {size.tokens:,} tokens and {answer:,} for the answer, and {model} takes {window:,}; "
        "it was not sent",
        next_step="shorten the input, lower max_tokens, or use a model with a larger window",
    )


def cut_off(least: int, reported: int | None, model: str) -> Stop | None:
    """What is wrong where a provider says that it read much less than it was sent; None where nothing is.

    Args:
        least: tokens that no tokeniser goes below for what was sent.
        reported: size of the prompt by the provider; None: it did not say; 0: it counts no tokens.
        model: `provider/name`, for the message.
    """
    if not reported or least < CHECKED_FROM or reported >= least * CUT_OFF:
        return None
    return Stop(
        "CONTEXT_WINDOW_EXCEEDED",
        f"{model} reports a prompt of {reported:,} tokens where at least {least:,} were sent: it cut off what did "
        "not fit its window and answered without it",
        next_step="give the server a larger context (num_ctx, --ctx-size, --max-model-len), "
        "or say its window: leadline models add PROVIDER/NAME --window TOKENS",
        window_tokens=max(reported, 1),
    )
