"""Damage that was moved out of a log: what it is called, how it is told, and what of it can be read."""

from __future__ import annotations

from collections.abc import Iterable

from leadline.core.session.codec import Logged, Problem, decode_line
from leadline.core.session.errors import SessionUnreadable
from leadline.core.session.events import DamageMoved
from leadline.core.session.load import Loaded, Quarantined
from leadline.core.session.registry import EventTypes


def tell_moved(loaded: Loaded, types: EventTypes) -> None:
    """Add the problems that were moved out of the log before, which its own events tell of."""
    for line in loaded.logged:
        if line.type == DamageMoved.TYPE and (moved := types.decode(line)):
            assert isinstance(moved, DamageMoved)
            reasons = "; ".join(moved.reasons) or "it could not be used"
            loaded.problems.append(
                Problem(moved.first_line, f"{moved.bytes} bytes were moved to {moved.file}: {reasons}")
            )


def readable_in(name: str, content: bytes) -> list[Quarantined]:
    """The events that can be read in what was moved out under `name`."""
    found = [(number, decode_line(line)) for number, line in enumerate(content.split(b"\n"), 1) if line]
    return [
        Quarantined(name, number, "moved out of the log", event)
        for number, event in found
        if isinstance(event, Logged)
    ]


def check_names(session_id: str, names: Iterable[str]) -> None:
    """Refuse what cannot be the name of something that was moved out of the session.

    Raises:
        SessionUnreadable: one of them is not.
    """
    for name in names:
        before, _, number = name.rpartition(".damaged-")
        if before != session_id or not (number.isascii() and number.isdecimal()):
            raise SessionUnreadable(
                f"{name!r} is not the name of what was moved out of session {session_id}; "
                f"those are {session_id}.damaged-<number>"
            )
