"""What a provider counts, what it charges for it, and the ways in which it reports something else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import msgspec

from leadline.testing.wires import Counted

Lie: TypeAlias = Literal["small", "large", "missing", "negative", "doubled", "scattered"]
"""How a reply misreports what it used.

``small``: a tenth. ``large``: ten times as much. ``missing``: nothing at all. ``negative``: below zero.
``doubled``: the whole usage twice. ``scattered``: the prompt with the first chunk only, the output with the last only.
"""

_PICO_PER_TOKEN = 1_000_000
"""Picodollars a token for each dollar per million tokens."""


class ServerPrice(msgspec.Struct, frozen=True, kw_only=True):
    """What the server charges, in dollars per million tokens; a bucket that is None costs what input or output does."""

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None
    reasoning: float | None = None
    call: float = 0.0
    """Dollars for each call, whatever its size."""

    def cost(self, counted: Counted) -> int:
        """Picodollars (1e-12 USD), exactly."""
        cached, written = counted.cached or 0, counted.written or 0
        reasoning = counted.reasoning or 0
        parts = (
            ((counted.prompt or 0) - cached - written, self.input),
            (cached, self.input if self.cached_input is None else self.cached_input),
            (written, self.input if self.cache_write is None else self.cache_write),
            ((counted.completion or 0) - reasoning, self.output),
            (reasoning, self.output if self.reasoning is None else self.reasoning),
        )
        whole = sum(tokens * round(price * _PICO_PER_TOKEN) for tokens, price in parts)
        return whole + round(self.call * 1e12)


@dataclass(frozen=True, slots=True)
class Reported:
    """The usage that a reply shows: in its first chunk, and in its last ones."""

    first: Counted | None = None
    last: tuple[Counted, ...] = ()
    instead: Mapping[str, object] | None = None
    """Exactly this, in the words of the wire."""

    @property
    def nothing(self) -> bool:
        """Whether it shows none."""
        return self.first is None and not self.last and not self.instead


def reported(counted: Counted, lie: Lie | None) -> Reported:
    """What a reply says that it used, when it used `counted`."""
    match lie:
        case None:
            return Reported(last=(counted,))
        case "missing":
            return Reported()
        case "small":
            return Reported(last=(_times(counted, 0.1),))
        case "large":
            return Reported(last=(_times(counted, 10),))
        case "negative":
            return Reported(last=(_times(counted, -1),))
        case "doubled":
            return Reported(last=(counted, counted))
        case "scattered":
            first = replace(counted, completion=None, reasoning=None)
            last = replace(counted, prompt=None, cached=None, written=None)
            return Reported(first=first, last=(last,))


def _times(counted: Counted, factor: float) -> Counted:
    def scaled(value: int | None) -> int | None:
        if not value:
            return value
        return max(1, int(value * factor)) if factor > 0 else int(value * factor)

    return Counted(
        prompt=scaled(counted.prompt),
        cached=scaled(counted.cached),
        written=scaled(counted.written),
        completion=scaled(counted.completion),
        reasoning=scaled(counted.reasoning),
    )
