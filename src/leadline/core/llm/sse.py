"""Bytes to server-sent events, incrementally and by the specification.

One decoder for every adapter: UTF-8 may be split anywhere, lines end in CRLF, LF or CR, comments
and unknown fields are skipped, several ``data`` lines make one event, and an event that no blank
line ended is never dispatched. Source: WHATWG HTML, "Server-sent events", parsing an event stream.
"""

from __future__ import annotations

import codecs
import re

import msgspec

_LINE_END = re.compile(r"\r\n|\n|\r")


class SseEvent(msgspec.Struct, frozen=True):
    """One dispatched event."""

    data: str
    event: str = "message"
    id: str | None = None


class SseDecoder:
    """Feed bytes as they come; get the events that they complete."""

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._line: list[str] = []
        self._pending = 0
        self._at_start = True
        self._after_cr = False
        self._data: list[str] = []
        self._event = ""
        self._id: str | None = None

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that ``data`` completes, in order."""
        text = self._utf8.decode(data)
        if not text:
            return []
        if self._at_start:
            self._at_start = False
            text = text.removeprefix("\ufeff")
        if self._after_cr:
            self._after_cr = False
            text = text.removeprefix("\n")
        if text.endswith("\r"):
            self._after_cr = True
        *lines, rest = _LINE_END.split(text) if "\r" in text else text.split("\n")
        self._pending += len(text)
        if lines:
            lines[0] = "".join(self._line) + lines[0]
            self._line.clear()
        if rest:
            self._line.append(rest)
        events: list[SseEvent] = []
        for line in lines:
            if line.startswith("data: "):
                self._data.append(line[6:])
            elif line:
                self._field(line)
            elif (event := self._dispatch()) is not None:
                events.append(event)
        return events

    @property
    def pending(self) -> int:
        """Characters that have come since the last event was dispatched."""
        return self._pending

    @property
    def residue(self) -> bool:
        """Whether an event has begun that no blank line has ended."""
        return bool(self._line or self._data)

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value

    def _dispatch(self) -> SseEvent | None:
        data, event = self._data, self._event
        self._data, self._event, self._pending = [], "", sum(map(len, self._line)) if self._line else 0
        if not data:
            return None
        return SseEvent(data[0] if len(data) == 1 else "\n".join(data), event or "message", self._id)
