"""When to try again: a pure decision over values.

Waiting, logging and drawing random numbers are the caller's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from leadline.core.llm.failure import LlmFailure, Stop, Wait

_YEAR_S = 365 * 86400.0
_CHECK_SERVER = "see whether its server runs and its address is right, or use another model"


@dataclass(frozen=True, slots=True)
class Delay:
    """Try again after this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Do not try again; this is what to tell."""

    failure: LlmFailure


Decision: TypeAlias = Delay | GiveUp


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long to wait for one answer."""

    attempts: int = 5
    """Attempts in all."""
    first_s: float = 0.5
    max_s: float = 10.0
    jitter: float = 0.1
    """Part of the delay by which it may be longer or shorter."""
    budget_s: float = 300.0
    """Ceiling on all the waiting for one answer."""

    def decide(self, attempt: int, failure: LlmFailure, spent_s: float, unit: float = 0.5) -> Decision:
        """What to do after a failed attempt.

        Args:
            attempt: which attempt failed, from 1.
            failure: how it failed.
            spent_s: seconds already waited between attempts for this answer.
            unit: a random number from 0 to 1 that places the delay within its jitter.
        """
        if isinstance(failure, Stop):
            return GiveUp(failure)
        left_s = self.budget_s - spent_s
        asked_s = failure.retry_after_s
        if asked_s is not None and asked_s > left_s:
            return GiveUp(_out_of_reach(failure, asked_s, self.budget_s))
        if attempt >= self.attempts:
            return GiveUp(_exhausted(failure, f"{attempt} attempts"))
        own_s = min(self.first_s * 2.0 ** (attempt - 1), self.max_s)
        own_s *= 1 + self.jitter * (2 * unit - 1)
        delay_s = max(own_s, asked_s or 0.0)
        if delay_s > left_s:
            return GiveUp(_exhausted(failure, f"{self.budget_s:g} s of waiting"))
        return Delay(delay_s)


def _out_of_reach(failure: Wait, asked_s: float, budget_s: float) -> Stop:
    return Stop(
        "QUOTA",
        f"{_sentence(failure.message)} The provider serves again in {duration(asked_s)}, "
        f"which is longer than the {duration(budget_s)} a request may wait.",
        status=failure.status,
        next_step=f"try again in {duration(asked_s)}, or use another model",
        resets_in_s=asked_s,
        request_id=failure.request_id,
    )


def _exhausted(failure: Wait, what: str) -> Stop:
    return Stop(
        "GAVE_UP",
        f"{_sentence(failure.message)} Gave up after {what} ({failure.code}).",
        status=failure.status,
        next_step=_CHECK_SERVER if failure.code == "TRANSPORT" else "try again later, or use another model",
        request_id=failure.request_id,
    )


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def duration(seconds: float) -> str:
    """``seconds`` for people: ``45 s``, ``3 min 20 s``, ``3 h 6 min``."""
    if seconds >= _YEAR_S:
        return "more than a year"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
