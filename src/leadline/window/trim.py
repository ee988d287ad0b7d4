"""Leaves out the oldest part of a conversation without asking anybody: the last defence before giving up."""

from __future__ import annotations

from leadline.core.llm.messages import UserMessage
from leadline.window.compact import SUMMARY, Span, span_to_replace
from leadline.window.gauge import Gauge


def spans_to_trim(gauge: Gauge, goal: int) -> list[Span]:
    """Spans that may be left out, the least loss first: what to try until the request has at most `goal` tokens.

    A summary at the very beginning stays as long as that is enough.
    """
    rest = max(0, goal - gauge.header)
    leading = _leading(gauge)
    found: list[Span] = []
    for start in dict.fromkeys((leading, 0)):
        room = max(0, rest - sum(gauge.sizes[:start]))
        for keep in (room // 2, room // 4, 0):
            span = span_to_replace(gauge, keep, start)
            if span is not None and span not in found:
                found.append(span)
    return found


def _leading(gauge: Gauge) -> int:
    """How many messages at the beginning stand for earlier ones."""
    for at, message in enumerate(gauge.messages):
        if not isinstance(message, UserMessage) or message.source != SUMMARY:
            return at
    return len(gauge.messages)
