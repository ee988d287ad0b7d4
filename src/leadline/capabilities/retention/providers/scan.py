"""Look through bytes as they pass: for names of blobs, for ids of sessions, and whether a log is whole."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Set as AbstractSet

from leadline.core.session.codec import (
    MAX_EVENT_BYTES,
    Header,
    Logged,
    chain,
    decode_header,
    decode_line,
    newer_format,
)

_HEX = b"0123456789abcdef"
_RUN = re.compile(rb"[0-9a-f]{64,}")
_DIGITS = 64
_LONGEST_RUN = 1024
"""A longer run of hex digits is data, not a name with something before or behind it."""

_QUOTED = re.compile(rb'(?<!\\)"([A-Za-z0-9][A-Za-z0-9._-]{0,127})"')
_LONGEST_QUOTED = 130
_LONGEST_LINE = MAX_EVENT_BYTES + 4096
_TOLD = 20
"""Most problems of one log that are told."""


class BlobNames:
    """Collects which of `wanted` are named in a stream of bytes: any 64 hex digits count, whatever is around."""

    def __init__(self, wanted: AbstractSet[str], found: set[str] | None = None) -> None:
        """What is found is added to `found`, where one is given."""
        self._wanted = wanted
        self._tail = b""
        self.found: set[str] = set() if found is None else found

    def another(self) -> BlobNames:
        """For another stream at the same time; what it finds is found here too."""
        return BlobNames(self._wanted, self.found)

    def feed(self, data: bytes) -> None:
        """Look through the next piece of the stream."""
        data = self._tail + data
        whole = len(data.rstrip(_HEX))
        self._search(data[:whole])
        self._tail = data[max(whole, len(data) - _LONGEST_RUN - 1) :]

    def end(self) -> None:
        """The stream is over; the next piece belongs to another."""
        self._search(self._tail)
        self._tail = b""

    def whole(self, data: bytes) -> None:
        """Look through a stream of one piece."""
        self._search(data)

    def _search(self, data: bytes) -> None:
        for match in _RUN.finditer(data):
            run = match.group()
            if len(run) > _LONGEST_RUN:
                continue
            for start in range(len(run) - _DIGITS + 1):
                name = run[start : start + _DIGITS].decode("ascii")
                if name in self._wanted:
                    self.found.add(name)


class SessionIds:
    """Collects which of `wanted` stand in a log as a JSON string of their own."""

    def __init__(self, wanted: AbstractSet[str]) -> None:
        self._wanted = wanted
        self._tail = b""
        self.found: set[str] = set()

    def feed(self, data: bytes) -> None:
        """Look through the next piece of the log."""
        data = self._tail + data
        for match in _QUOTED.finditer(data):
            name = match.group(1).decode("ascii")
            if name in self._wanted:
                self.found.add(name)
        self._tail = data[-_LONGEST_QUOTED - 1 :]


class LogCheck:
    """Follows the bytes of a log: its header, its chain, what does not belong. Holds one line at a time."""

    def __init__(self) -> None:
        self.header: Header | None = None
        self.newer_format: int | None = None
        self.events = 0
        """How many lines continue the chain."""
        self.digest = ""
        """What the next event would have as `prev`."""
        self.size = 0
        self.problems: list[str] = []
        self._sha256 = hashlib.sha256()
        self._held = bytearray()
        self._line = 0
        self._too_long = False

    @property
    def sha256(self) -> str:
        """Of all bytes so far, in hex."""
        return self._sha256.hexdigest()

    def feed(self, data: bytes) -> None:
        """Follow the next piece of the log."""
        self.size += len(data)
        self._sha256.update(data)
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._hold(data[start:end])
            self._take()
            start = end + 1
        self._hold(data[start:])

    def end(self) -> None:
        """The log is over."""
        if self._held or self._too_long:
            self._line += 1
            self._tell(f"unfinished: the last {len(self._held)} bytes were not completely written")
            self._held.clear()
        elif self._line == 0:
            self._line = 1
            self._tell("the file is empty: its header was never written")

    def _hold(self, part: bytes) -> None:
        if self._too_long or len(self._held) + len(part) > _LONGEST_LINE:
            self._too_long = True
            self._held.clear()
        else:
            self._held += part

    def _take(self) -> None:
        line, too_long = bytes(self._held), self._too_long
        self._held.clear()
        self._too_long = False
        self._line += 1
        if too_long:
            self._tell("longer than any line can be")
        elif self._line == 1:
            self._head(line)
        else:
            self._event(line)

    def _head(self, line: bytes) -> None:
        self.newer_format = newer_format(line)
        header = decode_header(line)
        if isinstance(header, Header):
            self.header = header
        else:
            self._tell(header)
        self.digest = chain(line)

    def _event(self, line: bytes) -> None:
        found = decode_line(line)
        if not isinstance(found, Logged):
            self._tell(found)
        elif (found.seq, found.prev) != (self.events, self.digest):
            self._tell(f"event {found.seq} does not continue the event before it")
        else:
            self.events += 1
            self.digest = chain(line)

    def _tell(self, reason: str) -> None:
        if len(self.problems) < _TOLD:
            self.problems.append(f"line {self._line}: {reason}")
