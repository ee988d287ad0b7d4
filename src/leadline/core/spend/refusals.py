"""What a call is told that did not get its turn: which model, which limit, how long it waited, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.core.llm.failure import Stop
from leadline.core.llm.retry import duration

if TYPE_CHECKING:
    from leadline.core.spend.line import Block, Line


def timed_out(line: Line, why: Block, ahead: int, waited_s: float, children: int) -> Stop:
    """The end of a wait that lasted too long."""
    limit, step = _limit(line, why, children)
    others = f", and {ahead} more stood before it" if ahead else ""
    return Stop(
        "CAPACITY",
        f"a call of {line.model} waited {duration(waited_s)} and did not get its turn: {limit}{others}",
        next_step=f"{step}; or raise queue_timeout_s in the row `limiter`, start less at a time, or use another model",
        resets_in_s=why.seconds,
    )


def full_up(model: str, waiting: int) -> Stop:
    """The end of a call that found its line full."""
    return Stop(
        "CAPACITY",
        f"the line of {model} is full: {waiting} calls wait already",
        next_step="start less at a time, or raise max_queued in the row `limiter`",
    )


def too_long_a_pause(model: str, seconds: float, allowed_s: float) -> Stop:
    """The end of a call whose provider wants to be left alone for longer than it may wait."""
    return Stop(
        "CAPACITY",
        f"the provider of {model} asked to be left alone for {duration(seconds)} more, and a call may wait "
        f"{duration(allowed_s)} in line",
        next_step=f"try again in {duration(seconds)}, or use another model",
        resets_in_s=seconds,
    )


def _limit(line: Line, why: Block, children: int) -> tuple[str, str]:
    """The limit that held a call, and what to do about it."""
    match why.why:
        case "children":
            limit = f"{children} calls of agents with a parent may be under way at once"
            return limit, "raise children in the row `limiter`"
        case "requests" if line.requests_per_minute is not None:
            limit = f"{line.requests_per_minute} calls may be made within a minute"
            return limit, f"raise requests_per_minute of {line.model}, if the provider allows more"
        case "tokens" if line.tokens_per_minute is not None:
            limit = f"{line.tokens_per_minute} tokens may be used within a minute"
            return limit, f"raise tokens_per_minute of {line.model}, if the provider allows more"
        case "requests" | "tokens":
            limit = f"the provider says that no {why.why} are left"
            return limit, "look up the limits of your account at the provider"
        case "paused":
            return "the provider asked to be left alone", "look up the limits of your account at the provider"
        case _:
            ceiling = line.learned.ceiling if line.learned is not None else None
            if line.max is not None and (ceiling is None or line.max <= ceiling):
                limit = f"{_calls(line.max)} may be under way at once"
                return limit, f"raise max of {line.model} in the row `limiter`"
            count = _calls(int(ceiling)) if ceiling is not None else "no more calls"
            limit = f"after refusals of the provider {count} may be under way at once"
            return limit, "look up the limits of your account at the provider"


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls"
