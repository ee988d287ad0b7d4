"""The bytes of a session log: one header line, then one line an event, each chained to the one before.

    {"format":1,"id":"s-...","kind":"agent","created":1767225600.0,...}
    {"v":1,"seq":0,"t":1767225600.25,"type":"turn/start","prev":"<32 hex>","data":{"turn":1}}
    {"v":1,"seq":1,"t":...,"type":"user/message","prev":"<32 hex>","derives":true,"data":{...}}

UTF-8, lines end in a single line feed. `prev` is the first 32 hex digits of the sha256 of the previous
line's bytes without its line feed; for `seq` 0 that is the header line. `t` is in seconds since 1970, UTC.
`v` is the version of the event's own schema, `format` that of the log.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol, TypeVar, cast

import msgspec

from leadline.core.llm.jsonvalue import JsonObject
from leadline.core.session.errors import EventInvalid, EventUndecodable
from leadline.core.session.events import Event

FORMAT = 1
"""The newest format of a log that this version reads, and the one that it writes."""

MAX_HEADER_BYTES = 16 * 1024
"""Ceiling on the header line: what is read of a log to list it."""

MAX_EVENT_BYTES = 8 * 1024 * 1024
"""Ceiling on the encoded data of one event; larger things are blobs, and the log names their hash."""

LARGE_BYTES = 64 * 1024
"""A line of more than this is left in the log when that is loaded, and read when it is asked for."""

CHAIN_DIGITS = 32
_TYPE = re.compile(r"[a-z0-9][a-z0-9.+_-]*(/[a-z0-9][a-z0-9.+_-]*)+")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_encoder = msgspec.json.Encoder()

E = TypeVar("E", bound=Event)


class Header(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first line of a log; never changes."""

    format: int = msgspec.field(default_factory=lambda: FORMAT)
    """Version of the log's format. Always written."""
    id: str
    """Letters, digits, `.`, `_`, `-`; unique in the store."""
    kind: str
    """`agent`, `research`, ..."""
    created: float
    """Seconds since 1970, UTC."""
    parent: str | None = None
    """Id of the session that this one was made for or forked from."""
    depth: int = msgspec.field(default_factory=lambda: 0)
    """How many delegations lie between this session and one that a person started. Always written."""
    cwd: str = msgspec.field(default_factory=lambda: "")
    """Absolute working directory; empty where there is none. Always written."""
    seed: int | None = None
    """How many events were copied in when the session was made; None for a session without a seed."""
    forked_at: int | None = None
    """`seq`, in the parent, of the last event that was copied; None when this is no fork."""
    label: str = ""
    """What a person may call it before it has a title."""


class Logged(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """One event as it stands in a log. `data` stays raw until a type asks for it."""

    v: int
    seq: int
    t: float
    """Seconds since 1970, UTC."""
    type: str
    prev: str
    derives: bool = False
    held: msgspec.Raw = msgspec.field(name="data")
    """The data, where it is in memory; `data` is what one reads."""

    @property
    def data(self) -> msgspec.Raw:
        """The event's own data as JSON."""
        return self.held

    def as_(self, kind: type[E]) -> E:
        """The event as a `kind`, decoded anew each time; older versions brought up to date.

        Raises:
            EventUndecodable: it is of another type or a newer version, or its data breaks the schema.
        """
        return decode_event(self, kind)

    def json(self) -> JsonObject:
        """The raw data as parsed JSON, whatever its type is. Empty where it is no object.

        Raises:
            EventUndecodable: the data is not JSON after all.
        """
        try:
            parsed: object = msgspec.json.decode(self.data)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise EventUndecodable(f"data of event {self.seq} ({self.type}) is not JSON: {error}") from error
        return cast("JsonObject", parsed) if isinstance(parsed, dict) else {}


class Outside(Protocol):
    """Where the lines of large events stay, instead of in memory."""

    def keep(self, at: int, line: bytes) -> int:
        """Keep a line that stands at byte `at` of the log; where `read` finds it. May raise OSError."""
        ...

    def read(self, at: int, size: int) -> bytes:
        """The line again, as far as it is there. May raise OSError."""
        ...


class LoggedOutside(Logged, frozen=True, kw_only=True, eq=False, gc=False):
    """An event whose data is read from its log each time that somebody asks for it."""

    outside: Outside
    at: int
    size: int
    digest: str
    """Of the line, as the next one has it in `prev`."""

    @property
    def data(self) -> msgspec.Raw:
        """The event's own data as JSON, read anew.

        Raises:
            EventUndecodable: the log does not hold it any more.
        """
        try:
            line = self.outside.read(self.at, self.size)
        except OSError as error:
            raise EventUndecodable(
                f"data of event {self.seq} ({self.type}) cannot be read from its log: {error.strerror or error}"
            ) from error
        found = decode_line(line) if chain(line) == self.digest else "it changed"
        if isinstance(found, str):
            raise EventUndecodable(
                f"data of event {self.seq} ({self.type}) is not in its log any more as it was when it was loaded"
            )
        return found.held


def left_outside(logged: Logged, outside: Outside, at: int, line: bytes, digest: str) -> Logged:
    """`logged`, whose line stands at byte `at` of the log and has `digest`, without its data in memory.

    As it is where the line cannot be kept outside.
    """
    try:
        kept = outside.keep(at, line)
    except OSError:
        return logged
    return LoggedOutside(
        v=logged.v,
        seq=logged.seq,
        t=logged.t,
        type=logged.type,
        prev=logged.prev,
        derives=logged.derives,
        held=msgspec.Raw(b"null"),
        outside=outside,
        at=kept,
        size=len(line),
        digest=digest,
    )


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a log that could not be used, told wherever the session is shown."""

    line: int
    """Line of the file, from 1; 0 when it is the log as a whole."""
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}" if self.line else self.reason


def valid_id(session_id: str) -> bool:
    """Whether it can be the id of a session, and so the name of a file."""
    return _ID.fullmatch(session_id) is not None


def chain(line: bytes | memoryview) -> str:
    """What the line after `line` (given without its line feed) has as `prev`."""
    return hashlib.sha256(line).hexdigest()[:CHAIN_DIGITS]


@cache
def _decoder(kind: type[Event]) -> msgspec.json.Decoder[Event]:
    return msgspec.json.Decoder(kind)


def encode_header(header: Header) -> bytes:
    """The header line, with its line feed.

    Raises:
        EventInvalid: a field is of the wrong type, the id cannot be one, or the line is too long to be listed.
    """
    try:
        line = _encoder.encode(header)
        decoded = msgspec.json.decode(line, type=Header)
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise EventInvalid(f"header of session {header.id!r}: {error}") from error
    if decoded != header:
        raise EventInvalid(
            f"header of session {header.id!r} does not survive being written; use plain values"
        )
    if not valid_id(header.id):
        raise EventInvalid(
            f"{header.id!r} cannot be the id of a session; use letters, digits, '.', '_' and '-', "
            "at most 128, and begin with a letter or digit"
        )
    if len(line) >= MAX_HEADER_BYTES:
        raise EventInvalid(
            f"header of session {header.id!r}: {len(line)} bytes are more than the {MAX_HEADER_BYTES} that a list "
            "reads; shorten it"
        )
    return line + b"\n"


def encode_event(event: Event) -> bytes:
    """The data of `event` as JSON in UTF-8, after a reader's own schema has read it back.

    Raises:
        EventInvalid: a field breaks the schema or holds what JSON cannot; the event is too large.
    """
    kind, room = type(event), bytearray()
    try:
        # As bytes of just its size: it stays in memory, and what the encoder itself returns leaves gaps there.
        _encoder.encode_into(event, room)
        data = bytes(room)
        twin = _decoder(kind).decode(data)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise EventInvalid(f"event {kind.TYPE or kind.__name__!r} was refused: {error}") from error
    if twin != event:
        _check_lossless(event)
    if not data.isascii():
        _check_utf8(kind, data)
    if b"\n" in data:
        raise EventInvalid(
            f"event {kind.TYPE!r} was refused: raw JSON in it holds a line feed; compact it first"
        )
    if len(data) > MAX_EVENT_BYTES:
        raise EventInvalid(
            f"event {kind.TYPE!r} was refused: {len(data)} bytes are more than {MAX_EVENT_BYTES}; "
            "store the content as a blob and log its hash"
        )
    return data


def _check_utf8(kind: type[Event], data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise EventInvalid(
            f"event {kind.TYPE!r} was refused: raw JSON in it is not UTF-8: {error}"
        ) from error


def _check_lossless(event: Event) -> None:
    """Refuse what JSON would change. A tuple that comes back as a list is the same JSON and passes."""
    pending: list[object] = [msgspec.to_builtins(event)]
    while pending:
        value = pending.pop()
        if isinstance(value, float) and not math.isfinite(value):
            raise EventInvalid(
                f"event {event.TYPE!r} was refused: {value} is not a number that JSON can hold"
            )
        if isinstance(value, Mapping):
            pending.extend(cast("Mapping[object, object]", value).values())
        elif isinstance(value, (list, tuple)):
            pending.extend(cast("Sequence[object]", value))


@cache
def _line_parts(kind: type[Event]) -> tuple[bytes, bytes]:
    """What surrounds `prev` in every line of one event class.

    Raises:
        EventInvalid: the class has no usable type name or version.
    """
    if _TYPE.fullmatch(kind.TYPE) is None:
        raise EventInvalid(
            f"{kind.__name__}.TYPE is {kind.TYPE!r}; name it <domain>/<what> in lower case, as in 'demo/noted'"
        )
    if kind.VERSION < 1:
        raise EventInvalid(f"{kind.__name__}.VERSION is {kind.VERSION}; versions start at 1")
    derives = b'"derives":true,' if kind.DERIVES else b""
    return b'"type":"%s","prev":"' % kind.TYPE.encode(), b'",%s"data":' % derives


def compose(event: Event, seq: int, t: float, prev: str) -> tuple[bytes, Logged, str]:
    """The line of `event`, with its line feed; how it stands in the log; and the next line's `prev`.

    Raises:
        EventInvalid: as `encode_event`.
    """
    data = encode_event(event)
    kind = type(event)
    before, after = _line_parts(kind)
    line = b'{"v":%d,"seq":%d,"t":%r,%s%s%s%s}' % (kind.VERSION, seq, t, before, prev.encode(), after, data)
    logged = Logged(
        v=kind.VERSION, seq=seq, t=t, type=kind.TYPE, prev=prev, derives=kind.DERIVES, held=msgspec.Raw(data)
    )
    return line + b"\n", logged, hashlib.sha256(line).hexdigest()[:CHAIN_DIGITS]


def recompose(logged: Logged, seq: int, prev: str) -> tuple[bytes, Logged, str]:
    """As `compose`, for an event that is copied from another log; its data is kept byte for byte."""
    derives = b'"derives":true,' if logged.derives else b""
    data = logged.data
    line = b'{"v":%d,"seq":%d,"t":%r,"type":%s,"prev":"%s",%s"data":%s}' % (
        logged.v,
        seq,
        logged.t,
        _encoder.encode(logged.type),
        prev.encode(),
        derives,
        bytes(data),
    )
    copy = Logged(
        v=logged.v,
        seq=seq,
        t=logged.t,
        type=logged.type,
        prev=prev,
        derives=logged.derives,
        held=data,
    )
    return line + b"\n", copy, chain(line)


_line_decoder = msgspec.json.Decoder(Logged)
_UNUSABLE = (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError, OverflowError)


def decode_line(line: bytes) -> Logged | str:
    """The event of one line (without its line feed), or the reason why it is none."""
    try:
        return _line_decoder.decode(line)
    except _UNUSABLE as error:
        return f"not an event: {error}"


def decode_header(line: bytes) -> Header | str:
    """The header in a line (without its line feed), or the reason why it is none. Any format is accepted."""
    try:
        return msgspec.json.decode(line, type=Header)
    except _UNUSABLE as error:
        return f"the header cannot be read: {error}"


class _FormatOnly(msgspec.Struct):
    format: int
    id: str = ""


def newer_format(line: bytes) -> int | None:
    """The format that a header line asks for, when that is newer than what this version reads."""
    try:
        asked = msgspec.json.decode(line, type=_FormatOnly).format
    except _UNUSABLE:
        return None
    return asked if asked > FORMAT else None


def decode_event(logged: Logged, kind: type[E]) -> E:
    """The data of `logged` as a `kind`, older versions brought up to date.

    Raises:
        EventUndecodable: it is of another type or a newer version, or its data breaks the schema.
    """
    if logged.type != kind.TYPE:
        raise EventUndecodable(
            f"event {logged.seq} is {logged.type!r}, not {kind.TYPE!r}; ask for its own type"
        )
    if logged.v > kind.VERSION:
        raise EventUndecodable(
            f"event {logged.seq} ({logged.type}) has version {logged.v}, but version {kind.VERSION} is "
            "the newest known; upgrade its owner"
        )
    try:
        if logged.v == kind.VERSION:
            return cast("E", _decoder(kind).decode(logged.data))
        return msgspec.convert(kind.upcast(logged.v, dict(logged.json())), kind)
    except (*_UNUSABLE, KeyError, TypeError, AttributeError, IndexError) as error:
        raise EventUndecodable(f"event {logged.seq} ({logged.type}) breaks its schema: {error}") from error


def canonical(value: object) -> bytes:
    """`value` as canonical JSON: sorted keys, no spaces, UTF-8. For digests."""
    return json.dumps(
        msgspec.to_builtins(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()
