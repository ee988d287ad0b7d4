"""The invariants of changes of a window: each means something, and a smaller request really is smaller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.core.session.derive import derive
from leadline.core.session.events import WindowChanged
from leadline.core.session.invariants import Invariants, rule_of_one_event

if TYPE_CHECKING:
    from leadline.core.session.log import BeforeAppend
    from leadline.kernel.context import Context


def _means_something(before: BeforeAppend) -> str | None:
    event = before.event
    if not isinstance(event, WindowChanged):
        return None
    if event.cause == "undo":
        return (
            None if event.undoes is not None and event.undoes < before.seq else "it undoes nothing before it"
        )
    if event.undoes is not None:
        return f"a change by {event.cause} undoes event {event.undoes}"
    if event.after >= event.before:
        return f"a request of {event.before} tokens has {event.after} behind it"
    seen = {message.id for message in derive(before.log)}
    named: set[str] = {stub.message_id for stub in event.stubs} | (
        {event.first, event.last} if event.summary else set()
    )
    missing = sorted(named - seen)
    if missing:
        return f"it names messages that a model does not see: {', '.join(missing[:3])}"
    return None if named else "it names no message"


CHANGES = rule_of_one_event(
    "window/changes",
    "A change of a window names messages that a model sees and makes the request smaller, or undoes one.",
    _means_something,
    WindowChanged,
)


def guard_windows(ctx: Context) -> None:
    """Register the invariants of changes, where there is a registry."""
    invariants = ctx.find(Invariants)
    if invariants is not None:
        invariants.register(ctx, CHANGES)
