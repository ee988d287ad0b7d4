"""The ledger of a bundle: the log of the run, line for line; what stays at home has its hash in its place.

A line that is no fact of the run, such as where on a machine its corpus was, is replaced by
`{"seq":…,"omitted":"<hash of the line>","prev":…}`, so that the chain of hashes holds from the first line to the last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from leadline.core.session.codec import Logged, recompose
from leadline.core.session.events import Event
from leadline.research.events import RESEARCH_EVENTS

_PREV_DIGITS = 32


class Omitted(msgspec.Struct, frozen=True, kw_only=True):
    """Stands for a line that stays at home."""

    seq: int
    omitted: str
    """What the next line has as `prev`."""
    prev: str


class _Line(msgspec.Struct, frozen=True):
    """What is needed of a log line; the codec of the session log knows the rest."""

    type: str = ""
    seq: int = -1
    omitted: str = ""
    v: int = 1
    prev: str = ""
    data: msgspec.Raw = msgspec.Raw(b"{}")


_TYPES: Mapping[str, type[Event]] = {one.TYPE: one for one in RESEARCH_EVENTS}


def bundled(logged: Iterable[Logged]) -> Iterator[bytes]:
    """The lines of a log as its bundle has them."""
    for line in logged:
        content, _, digest = recompose(line, line.seq, line.prev)
        if line.type in _TYPES:
            yield content
        else:
            yield msgspec.json.encode(Omitted(seq=line.seq, omitted=digest, prev=line.prev))


def join_lines(lines: Iterable[bytes]) -> bytes:
    """The member's bytes from log lines, with or without their line ends."""
    return b"".join(line.rstrip(b"\n") + b"\n" for line in lines)


def read_events(member: bytes, *, whole: bool = False) -> tuple[tuple[Event, ...], tuple[str, ...]]:
    """The events of the member, and what is wrong with its lines. Events of unknown types are passed over.

    `whole`: no line may be missing, from the first one of the log on.
    """
    events: list[Event] = []
    problems: list[str] = []
    before: tuple[int, str] = (-1, "")
    for number, line in enumerate(member.split(b"\n")[:-1], start=1):
        try:
            read = msgspec.json.decode(line, type=_Line)
            kind = _TYPES.get(read.type)
            if kind is not None:
                events.append(_event(kind, read))
        except (msgspec.MsgspecError, RecursionError) as error:
            problems.append(f"ledger line {number}: {error}")
            continue
        problems.extend(f"ledger line {number}: {one}" for one in _out_of_chain(read, before, whole=whole))
        before = (read.seq, read.omitted or _link(line))
    if member and not member.endswith(b"\n"):
        problems.append("the ledger does not end with a line break")
    return tuple(events), tuple(problems)


def _out_of_chain(read: _Line, before: tuple[int, str], *, whole: bool) -> Iterator[str]:
    """Why a line does not continue the one before it, of which the number and the hash are given."""
    seq, link = before
    if seq >= 0 and read.seq <= seq:
        yield "its sequence number does not rise"
    elif whole and read.seq != seq + 1:
        yield f"it is event {read.seq}, where event {seq + 1} was expected"
    elif read.seq == seq + 1 and link and read.prev and read.prev != link:
        yield "it does not follow from the line before (hash chain)"


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
