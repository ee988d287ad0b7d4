"""Read a log whatever state it is in: any bytes become (header, events, problems), never an error.

An event is accepted when it continues the chain: right `seq`, and `prev` is the hash of the line
before. Anything else is passed over and told, and reading goes on: a line that continues the chain
further down is provably the next one, so that what was inserted, doubled or put out of order costs
nothing. Where a line contradicts the one before it, one of the two was altered, and what may have
been is not shown as part of the session. Lines that can be read but do not belong are kept as the quarantined branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from leadline.core.session.codec import (
    FORMAT,
    LARGE_BYTES,
    MAX_EVENT_BYTES,
    Header,
    Logged,
    Outside,
    Problem,
    chain,
    decode_header,
    decode_line,
    left_outside,
    newer_format,
)

_LONGEST_LINE = MAX_EVENT_BYTES + 4096


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A line that is not part of the session."""

    file: str
    """Name of the file it is in; empty for the log itself."""
    line: int
    reason: str
    event: Logged | None
    """What it says, where that can be read."""


@dataclass(slots=True)
class Loaded:
    """Everything that could be got out of a log."""

    header: Header | None = None
    """None when the header line is missing or broken."""
    header_sound: bool = False
    """Whether the header is there and is the one that the first event continues."""
    newer_format: int | None = None
    """The format that the log needs, where it is newer than this version reads; then nothing else is read."""
    logged: list[Logged] = field(default_factory=list["Logged"])
    problems: list[Problem] = field(default_factory=list["Problem"])
    quarantined: list[Quarantined] = field(default_factory=list["Quarantined"])
    digest: str = ""
    """What the next event has as `prev`."""
    end: int = 0
    """Offset in bytes behind the last line that was accepted."""
    size: int = 0
    """Bytes of the log."""
    damaged_from_line: int = 0
    """Line, from 1, that stands at `end` when there is more; 0 when there is not."""


@dataclass(slots=True)
class _Line:
    number: int
    start: int
    end: int
    content: bytes | None
    """Without the line feed; None when it is longer than any line can be."""
    finished: bool


@dataclass(slots=True)
class _Read:
    """A line that holds an event, as much of it as is needed later."""

    number: int
    end: int
    digest: str
    event: Logged


@dataclass(slots=True)
class _Accepted:
    number: int
    end: int
    before: str
    """The digest before it."""


def load(file: BinaryIO, outside: Outside | None = None) -> Loaded:
    """Read a log from its start to its end. With `outside`, large lines stay there and not in memory."""
    return _Loader(outside).run(file)


def _lines(file: BinaryIO) -> Iterator[_Line]:
    number, at = 0, 0
    while chunk := file.readline(_LONGEST_LINE):
        number += 1
        start, at = at, at + len(chunk)
        content: bytes | None = chunk
        while len(chunk) == _LONGEST_LINE and not chunk.endswith(b"\n"):
            content = None
            chunk = file.readline(_LONGEST_LINE)
            at += len(chunk)
        finished = chunk.endswith(b"\n")
        if content is not None and finished:
            content = content[:-1]
        yield _Line(number, start, at, content, finished)


class _Loader:
    def __init__(self, outside: Outside | None) -> None:
        self._out = Loaded()
        self._outside = outside
        self._last: _Accepted | None = None
        self._reach = (0, 0)
        """End and number of the furthest line that was accepted, the last one left out."""
        self._loose: dict[tuple[int, str], _Read] = {}
        self._stray: dict[int, Quarantined] = {}
        self._moved: list[Problem] = []
        self._after_last: _Read | None = None
        self._anchored = False

    def run(self, file: BinaryIO) -> Loaded:
        out = self._out
        lines = _lines(file)
        first = next(lines, None)
        if first is None:
            out.problems.append(Problem(1, "the file is empty: its header was never written"))
            return out
        out.size = first.end
        if not self._header(first):
            for line in lines:
                out.size = line.end
            return out
        for line in lines:
            out.size = line.end
            self._event(line)
        self._doubt_last()
        self._finish()
        return out

    def _header(self, line: _Line) -> bool:
        """Take the first line; False when nothing behind it may be read."""
        out = self._out
        content = line.content or b""
        out.newer_format = newer_format(content)
        if out.newer_format is not None:
            known = decode_header(content)
            out.header = known if isinstance(known, Header) else None
            out.problems.append(
                Problem(1, f"needs a version of Leadline that reads format {out.newer_format} or later")
            )
            return False
        found = decode_header(content) if line.finished else "the header line is unfinished"
        if isinstance(found, Header) and found.format >= 1:
            out.header, out.header_sound = found, True
            out.digest, out.end = chain(content), line.end
            self._reach = (line.end, line.number)
            self._anchored = True
            return True
        reason = (
            found if isinstance(found, str) else f"format {found.format} does not exist; this is {FORMAT}"
        )
        out.problems.append(Problem(1, reason))
        if line.finished and isinstance(decode_line(content), Logged):
            self._event(line)
        return True

    def _event(self, line: _Line) -> None:
        read = self._read(line)
        if isinstance(read, str):
            self._set_aside(line.number, read, None)
            return
        found = read.event
        if not self._out.logged and not self._loose and found.seq == 0 and found.prev != self._out.digest:
            self._anchor(found)
        if self._fits(found):
            self._accept(read)
            while self._loose and (next_ := self._loose.pop(self._wanted(), None)):
                del self._stray[next_.number]
                self._moved.append(Problem(next_.number, f"event {next_.event.seq} stood out of order"))
                self._accept(next_)
            return
        self._set_aside(line.number, self._why_not(read), found)
        self._loose.setdefault((found.seq, found.prev), read)
        if self._after_last is None:
            self._after_last = read

    def _read(self, line: _Line) -> _Read | str:
        content = line.content
        if content is None:
            return f"longer than any line can be ({line.end - line.start} bytes)"
        if not line.finished:
            return f"unfinished: the last {len(content)} bytes were not completely written"
        found = decode_line(content)
        if isinstance(found, str):
            return found
        digest = chain(content)
        if self._outside is not None and len(content) > LARGE_BYTES:
            found = left_outside(found, self._outside, line.start, content, digest)
        return _Read(line.number, line.end, digest, found)

    def _anchor(self, first: Logged) -> None:
        """The first event does not continue the header: the events hold together without it."""
        if self._anchored:
            self._out.problems.append(
                Problem(1, "the header was altered: the first event does not continue it")
            )
        self._out.header_sound = False
        self._out.digest = first.prev
        self._anchored = True

    def _wanted(self) -> tuple[int, str]:
        return len(self._out.logged), self._out.digest

    def _fits(self, found: Logged) -> bool:
        return (found.seq, found.prev) == self._wanted()

    def _digest_of(self, seq: int) -> str:
        logged = self._out.logged
        return logged[seq + 1].prev if seq + 1 < len(logged) else self._out.digest

    def _why_not(self, read: _Read) -> str:
        found = read.event
        wanted = len(self._out.logged)
        if found.seq < wanted:
            if found.seq >= 0 and read.digest == self._digest_of(found.seq):
                return f"event {found.seq} again"
            return f"event {found.seq}, which the session has already in another form"
        if found.seq > wanted:
            return f"event {found.seq}, where event {wanted} was expected"
        return f"event {found.seq} does not continue the event before it"

    def _accept(self, read: _Read) -> None:
        out = self._out
        if self._last is not None:
            self._reach = max(self._reach, (self._last.end, self._last.number))
        self._last = _Accepted(read.number, read.end, out.digest)
        out.logged.append(read.event)
        out.digest = read.digest
        self._after_last = None

    def _set_aside(self, number: int, reason: str, event: Logged | None) -> None:
        self._stray[number] = Quarantined("", number, reason, event)

    def _doubt_last(self) -> None:
        """Drop the last accepted event when the one behind it says that it was another.

        Which of the two was altered is known when there is a third: it names the hash of the second. When
        there is none, neither is believed. One that continues a line which is there, but set aside, is of
        another writer's branch and says nothing.
        """
        out, last, follower = self._out, self._last, self._after_last
        if last is None or follower is None or follower.event.seq != len(out.logged):
            return
        if any(read.digest == follower.event.prev for read in self._loose.values()):
            return
        named = {prev for seq, prev in self._loose if seq == follower.event.seq + 1}
        if named and follower.digest not in named:
            return
        doubted, self._last = out.logged.pop(), None
        out.digest = last.before
        reason = (
            f"event {doubted.seq} is not the one that event {follower.event.seq} continues: "
            "one of the two was altered"
        )
        self._set_aside(last.number, reason, doubted)

    def _finish(self) -> None:
        out = self._out
        if self._last is not None:
            self._reach = max(self._reach, (self._last.end, self._last.number))
        out.end, line = self._reach
        out.quarantined = [self._stray[number] for number in sorted(self._stray)]
        told = [Problem(one.line, one.reason) for one in out.quarantined] + self._moved
        out.problems.extend(sorted(told, key=lambda one: one.line))
        if out.end < out.size:
            out.damaged_from_line = line + 1
