"""What differs between a replay and its recording, in lines for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from leadline.research.replay.player import AskedRequest, UnaskedRequest

if TYPE_CHECKING:
    from leadline.research.replay.replay import Replayed

_SHOWN = 20
"""Requests that are told one by one; the rest are counted."""


def told(done: Replayed) -> Iterator[str]:
    """The outcome in a line; then each request that differs, with role, step and part; then the diff of the reports."""
    count = f"{len(done.asked)} request(s)"
    if done.same:
        yield f"{done.id}: the same report to the byte, from {count} answered as recorded"
        return
    same = "the same report" if done.same_report else "not the same report"
    yield f"{done.id}: {same}; {len(done.differing)} of {count} differ, {len(done.unasked)} more are on record"
    yield from told_requests(done.differing, done.unasked)
    was, now = done.recorded, done.result
    if (was.status, was.error) != (now.status, now.error):
        yield f"status: recorded {was.status} ({was.error or 'no error'}), now {now.status} ({now.error or 'no error'})"
    if done.report_diff:
        yield ""
        yield done.report_diff.rstrip("\n")


def told_requests(differing: Sequence[AskedRequest], unasked: Sequence[UnaskedRequest]) -> Iterator[str]:
    """Requests that differ, and recorded ones that nobody made."""
    for asked in differing[:_SHOWN]:
        yield from _request(asked)
    if len(differing) > _SHOWN:
        yield f"{len(differing) - _SHOWN} more requests differ"
    for one in unasked[:_SHOWN]:
        yield f"never asked for: {one.place}"
    if len(unasked) > _SHOWN:
        yield f"{len(unasked) - _SHOWN} more were never asked for"


def _request(asked: AskedRequest) -> Iterator[str]:
    if asked.answered == "missing":
        yield f"no answer is on record: {asked.place}"
    for difference in asked.differences:
        yield f"{asked.place}: {difference.part} differs"
        yield from (f"    {line}" for line in difference.shown())
