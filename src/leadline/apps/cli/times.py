"""Moments and ages as a person types them: `2026-11-30`, `2026-11-30T09:00+01:00`, `7d`."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from dataclasses import dataclass
from datetime import UTC, datetime

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AGE = re.compile(r"(\d{1,7}(?:\.\d{1,6})?)([smhdw])")


@dataclass(frozen=True)
class Moment:
    """A point in time as it was typed, or how long ago it was."""

    typed: str
    """ISO date, with a time or without; empty where only `ago` is known."""
    ago: float = 0.0
    """Seconds."""

    def iso(self, now: float) -> str:
        """As an ISO date or time, as seen at `now`, which is in seconds since 1970, UTC."""
        return self.typed or datetime.fromtimestamp(max(0.0, now - self.ago), UTC).isoformat(
            timespec="seconds"
        )


def age(word: str) -> float:
    """An age in seconds.

    Raises:
        ArgumentTypeError: it is no number with a unit.
    """
    found = _AGE.fullmatch(word.strip().lower())
    if found is None:
        raise ArgumentTypeError(f"{word!r} is no age; write a number and a unit, such as 12h, 30d or 4w")
    return float(found[1]) * _SECONDS[found[2]]


def duration(word: str) -> float:
    """How long something may take, in seconds.

    Raises:
        ArgumentTypeError: it is no number with a unit, or nothing.
    """
    found = _AGE.fullmatch(word.strip().lower())
    if found is None or not float(found[1]):
        raise ArgumentTypeError(
            f"{word!r} is no time to work in; write a number and a unit, such as 90s, 10m or 2h"
        )
    return float(found[1]) * _SECONDS[found[2]]


def moment(word: str) -> Moment:
    """A date, a date with a time, or an age. Without an offset a time is UTC.

    Raises:
        ArgumentTypeError: it is none of these.
    """
    typed = word.strip()
    if _AGE.fullmatch(typed.lower()):
        return Moment("", age(word))
    try:
        datetime.fromisoformat(typed)
    except ValueError:
        raise ArgumentTypeError(
            f"{word!r} is no date; write 2026-11-30, 2026-11-30T09:00, or how long ago: 12h, 7d"
        ) from None
    return Moment(typed)
