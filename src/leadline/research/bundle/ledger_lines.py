"""The ledger of a bundle: the research events of the session log, line for line as they were logged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from leadline.core.session.events import Event
from leadline.research.events import RESEARCH_EVENTS

_PREV_DIGITS = 32


class _Line(msgspec.Struct, frozen=True):
    """What is needed of a log line; the codec of the session log knows the rest."""

    type: str
    seq: int = -1
    v: int = 1
    prev: str = ""
    data: msgspec.Raw = msgspec.Raw(b"{}")


_TYPES: Mapping[str, type[Event]] = {one.TYPE: one for one in RESEARCH_EVENTS}


def join_lines(lines: Iterable[bytes]) -> bytes:
    """The member's bytes from log lines, with or without their line ends."""
    return b"".join(line.rstrip(b"\n") + b"\n" for line in lines)


def read_events(member: bytes) -> tuple[tuple[Event, ...], tuple[str, ...]]:
    """The events of the member, and what is wrong with its lines. Events of unknown types are passed over."""
    events: list[Event] = []
    problems: list[str] = []
    before: tuple[int, bytes] | None = None
    for number, line in enumerate(member.split(b"\n")[:-1], start=1):
        try:
            read = msgspec.json.decode(line, type=_Line)
            kind = _TYPES.get(read.type)
            if kind is not None:
                events.append(_event(kind, read))
        except (msgspec.MsgspecError, RecursionError) as error:
            problems.append(f"ledger line {number}: {error}")
            continue
        if before is not None and read.seq <= before[0]:
            problems.append(f"ledger line {number}: its sequence number does not rise")
        if before is not None and read.seq == before[0] + 1 and read.prev and read.prev != _link(before[1]):
            problems.append(f"ledger line {number}: it does not follow from the line before (hash chain)")
        before = (read.seq, line)
    if member and not member.endswith(b"\n"):
        problems.append("the ledger does not end with a line break")
    return tuple(events), tuple(problems)


def _event(kind: type[Event], line: _Line) -> Event:
    if line.v == kind.VERSION:
        return msgspec.json.decode(line.data, type=kind)
    return msgspec.convert(kind.upcast(line.v, msgspec.json.decode(line.data)), kind)


def _link(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:_PREV_DIGITS]


def encode_lines(events: Sequence[Event]) -> list[bytes]:
    """Plain lines for events that are not in a log, for tests and imports; without a hash chain."""
    encode = msgspec.json.encode
    return [
        encode({"v": event.VERSION, "seq": seq, "type": event.TYPE, "data": event})
        for seq, event in enumerate(events)
    ]
