"""How much of what is sent to providers was sent before: what a prompt cache can use."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

CLOSING = 8
"""Most bytes that close a body: its last message, the list of messages and the body itself."""


def common(left: bytes, right: bytes) -> int:
    """Length of the prefix that both have."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def extends(later: bytes, earlier: bytes) -> bool:
    """Whether a body is an earlier one with more messages: all of it but what closes it stands in front, byte for byte."""
    return common(later, earlier) >= len(earlier) - CLOSING


@dataclass(frozen=True)
class Reuse:
    """What of the bodies of one route was sent before."""

    requests: int
    sent: int
    """Bytes."""
    reused: int
    """Bytes of the longest prefix that each body shares with an earlier one."""

    @property
    def share(self) -> float:
        """From 0 to 1; 0 where nothing was sent."""
        return self.reused / self.sent if self.sent else 0.0


def reuse(bodies: Iterable[bytes]) -> Reuse:
    """Of bodies in the order in which they were sent, to one model."""
    seen: list[bytes] = []
    sent = reused = 0
    for body in bodies:
        sent += len(body)
        # The latest share most with it, as a rule; the others are asked only whether they share more.
        best = 0
        for earlier in reversed(seen):
            if len(earlier) > best and earlier[:best] == body[:best]:
                best = max(best, common(body, earlier))
        reused += best
        seen.append(body)
    return Reuse(len(seen), sent, reused)


def kept(session: Sequence[bytes]) -> float:
    """Which share of what a session sent stands in front of its next request, where nothing says that it need not.

    1 is everything but the bytes that close a body. Give the bodies between two declared breaks.
    """
    could = sum(len(body) - CLOSING for body in session[:-1])
    did = sum(
        min(len(earlier) - CLOSING, common(later, earlier)) for earlier, later in itertools.pairwise(session)
    )
    return did / could if could else 1.0
