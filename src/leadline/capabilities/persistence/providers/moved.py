"""Damage that was moved out of a log: what it is called, how it is told, and what of it can be read."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import BinaryIO

from leadline.core.session.codec import (
    LARGE_BYTES,
    MAX_EVENT_BYTES,
    Logged,
    Outside,
    Problem,
    chain,
    decode_line,
    left_outside,
)
from leadline.core.session.errors import SessionUnreadable
from leadline.core.session.events import DamageMoved
from leadline.core.session.load import Loaded, Quarantined
from leadline.core.session.registry import EventTypes

_LONGEST_LINE = MAX_EVENT_BYTES + 4096


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
    return readable_lines(name, io.BytesIO(content), None)


def readable_lines(name: str, file: BinaryIO, outside: Outside | None) -> list[Quarantined]:
    """As `readable_in`, from an open file; with `outside`, large lines stay there."""
    found: list[Quarantined] = []
    number, at = 1, 0
    while chunk := file.readline(_LONGEST_LINE):
        line = chunk.removesuffix(b"\n")
        event = decode_line(line) if line else ""
        if isinstance(event, Logged):
            if outside is not None and len(line) > LARGE_BYTES:
                event = left_outside(event, outside, at, line, chain(line))
            found.append(Quarantined(name, number, "moved out of the log", event))
        at += len(chunk)
        number += chunk.endswith(b"\n")
    return found


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
