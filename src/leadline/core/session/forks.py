"""Where a session may be forked: at its beginning, and where a turn has ended."""

from __future__ import annotations

from leadline.core.session.errors import ForkRefused
from leadline.core.session.events import TurnEnd
from leadline.core.session.log import Session


def fork_point(session: Session, turn: int | None = None) -> int:
    """`seq` of the last event that a fork takes with it; -1: none.

    Args:
        session: what is forked; somebody may be writing it.
        turn: the last turn that is kept, 0 for none; None: every turn that has ended.

    Raises:
        ForkRefused: there is no such turn, or it has not ended.
    """
    if turn == 0:
        return -1
    if turn is None and not session.place.turn_open:
        return len(session) - 1
    ends = {end.turn: line.seq for line, end in session.logged_of(TurnEnd)}
    chosen = max(ends, default=session.place.turn) if turn is None else turn
    if chosen in ends:
        return ends[chosen]
    if session.place.turn_open and session.place.turn == chosen:
        raise ForkRefused(
            f"session {session.id} is still in turn {chosen}; choose one that has ended, "
            f"or end it: leadline resume {session.id}"
        )
    had = f"it has had turns {min(ends)} to {max(ends)}" if ends else "it has had none"
    raise ForkRefused(f"session {session.id} has no turn {chosen}: {had}")
