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
    """A point in time, or how long ago it was."""

    at: float | None
    """Seconds since 1970, UTC; None where only `ago` is known."""
    ago: float = 0.0
    """Seconds."""

    def seconds(self, now: float) -> float:
        """Seconds since 1970, UTC, as seen at `now`."""
        return now - self.ago if self.at is None else self.at


def age(word: str) -> float:
    """An age in seconds.

    Raises:
        ArgumentTypeError: it is no number with a unit.
    """
    found = _AGE.fullmatch(word.strip().lower())
    if found is None:
        raise ArgumentTypeError(f"{word!r} is no age; write a number and a unit, such as 12h, 30d or 4w")
    return float(found[1]) * _SECONDS[found[2]]


def moment(word: str) -> Moment:
    """A date, a date with a time, or an age. Without an offset a time is UTC.

    Raises:
        ArgumentTypeError: it is none of these.
    """
    if _AGE.fullmatch(word.strip().lower()):
        return Moment(None, age(word))
    try:
        read = datetime.fromisoformat(word.strip())
        return Moment((read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError, OSError):
        raise ArgumentTypeError(
            f"{word!r} is no date; write 2026-11-30, 2026-11-30T09:00, or how long ago: 12h, 7d"
        ) from None
