"""Functions of a request that make a provider change its mind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import Received, Responder


def fickle(answer: Responder, faults: Sequence[Behaviour], *, every: int = 1) -> Responder:
    """Answers each `every`-th new request only after all of the faults, one an attempt; the others at once.

    A request is new when its body has not come before, so that attempts that run side by side are told apart. Give
    refusals for a provider that changes its mind (429, then 200), stalls and cut streams for one that is unwell.
    """
    attempts: Counter[bytes] = Counter()
    order: dict[bytes, int] = {}

    def responded(request: Received) -> Behaviour:
        at = order.setdefault(request.raw, len(order))
        tried = attempts[request.raw]
        attempts[request.raw] += 1
        if at % every == 0 and tried < len(faults):
            return faults[tried]
        return answer(request)

    return responded


def wavering(answer: Responder, faults: Sequence[Behaviour]) -> Responder:
    """Answers each new request only after one of the faults, in turn."""
    turns = [fickle(answer, [fault]) for fault in faults]
    chosen: dict[bytes, Responder] = {}

    def responded(request: Received) -> Behaviour:
        return chosen.setdefault(request.raw, turns[len(chosen) % len(turns)])(request)

    return responded
