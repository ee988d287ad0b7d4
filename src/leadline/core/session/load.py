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
    MAX_EVENT_BYTES,
    Header,
    Logged,
    Problem,
    chain,
    decode_header,
    decode_line,
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
class _Accepted:
    number: int
    end: int
    before: str
    """The digest before it."""


def load(file: BinaryIO) -> Loaded:
    """Read a log from its start to its end."""
    return _Loader().run(file)


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
    def __init__(self) -> None:
        self._out = Loaded()
        self._accepted: list[_Accepted] = []
        self._loose: dict[tuple[int, str], tuple[_Line, Logged]] = {}
        self._stray: dict[int, Quarantined] = {}
        self._moved: list[Problem] = []
        self._after_last: tuple[_Line, Logged] | None = None
        self._anchored = False
        self._starts: list[tuple[int, int]] = []

    def run(self, file: BinaryIO) -> Loaded:
        out = self._out
        lines = _lines(file)
        first = next(lines, None)
        if first is None:
            out.problems.append(Problem(1, "the file is empty: its header was never written"))
            return out
        self._starts.append((first.start, first.number))
        out.size = first.end
        if not self._header(first):
            for line in lines:
                out.size = line.end
            return out
        for line in lines:
            out.size = line.end
            self._starts.append((line.start, line.number))
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
        found = self._read(line)
        if isinstance(found, str):
            self._set_aside(line, found, None)
            return
        if not self._out.logged and not self._loose and found.seq == 0 and found.prev != self._out.digest:
            self._anchor(found)
        if self._fits(found):
            self._accept(line, found)
            while self._loose and (next_ := self._loose.pop(self._wanted(), None)):
                del self._stray[next_[0].number]
                self._moved.append(Problem(next_[0].number, f"event {next_[1].seq} stood out of order"))
                self._accept(*next_)
            return
        reason = self._why_not(found)
        self._set_aside(line, reason, found)
        self._loose.setdefault((found.seq, found.prev), (line, found))
        if self._after_last is None:
            self._after_last = (line, found)

    def _read(self, line: _Line) -> Logged | str:
        if line.content is None:
            return f"longer than any line can be ({line.end - line.start} bytes)"
        if not line.finished:
            return f"unfinished: the last {len(line.content)} bytes were not completely written"
        return decode_line(line.content)

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

    def _why_not(self, found: Logged) -> str:
        wanted = len(self._out.logged)
        if found.seq < wanted:
            same = self._out.logged[found.seq] if found.seq >= 0 else None
            if same is not None and same.prev == found.prev and bytes(same.data) == bytes(found.data):
                return f"event {found.seq} again"
            return f"event {found.seq}, which the session has already in another form"
        if found.seq > wanted:
            return f"event {found.seq}, where event {wanted} was expected"
        return f"event {found.seq} does not continue the event before it"

    def _accept(self, line: _Line, found: Logged) -> None:
        out = self._out
        self._accepted.append(_Accepted(line.number, line.end, out.digest))
        out.logged.append(found)
        out.digest = chain(line.content or b"")
        self._after_last = None

    def _set_aside(self, line: _Line, reason: str, event: Logged | None) -> None:
        self._stray[line.number] = Quarantined("", line.number, reason, event)

    def _doubt_last(self) -> None:
        """Drop the last accepted event when the one behind it says that it was another.

        Which of the two was altered is known when there is a third: it names the hash of the second. When
        there is none, neither is believed.
        """
        out = self._out
        if not self._accepted or self._after_last is None:
            return
        line, follower = self._after_last
        if follower.seq != len(out.logged):
            return
        named = {prev for seq, prev in self._loose if seq == follower.seq + 1}
        if named and chain(line.content or b"") not in named:
            return
        last, doubted = self._accepted.pop(), out.logged.pop()
        out.digest = last.before
        reason = f"event {doubted.seq} is not the one that event {follower.seq} continues: one of the two was altered"
        self._stray[last.number] = Quarantined("", last.number, reason, doubted)

    def _finish(self) -> None:
        out = self._out
        out.end = max((accepted.end for accepted in self._accepted), default=out.end)
        out.quarantined = [self._stray[number] for number in sorted(self._stray)]
        told = [Problem(one.line, one.reason) for one in out.quarantined] + self._moved
        out.problems.extend(sorted(told, key=lambda one: one.line))
        if out.end < out.size:
            out.damaged_from_line = next(number for start, number in self._starts if start >= out.end)
