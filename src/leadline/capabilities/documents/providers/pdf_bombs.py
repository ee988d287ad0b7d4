"""Says whether a PDF would unpack to more than a reader can hold, before one tries."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator

MAX_STREAM = 32_000_000
"""Bytes of one unpacked stream: what it draws takes ten to twenty times as much memory."""

MAX_TOTAL = 1_000_000_000
"""Bytes of all unpacked streams: they come one after another, and take time."""

_STREAM = re.compile(rb"stream\r?\n")
_PACKED = re.compile(rb"/(?:FlateDecode|Fl)\b")
_NEVER_READ = re.compile(rb"/Subtype\s*/Image\b|/Type\s*/EmbeddedFile\b")
_DICTIONARY = 4096
"""Bytes before a stream that may hold its dictionary."""

_PIECE = 1 << 14


def why_refused(data: bytes) -> str | None:
    """Which limit the streams of a PDF go over; None if they keep to all. Those that are packed otherwise than
    with deflate, or encrypted, are not looked into."""
    total = 0
    for mark in _STREAM.finditer(data):
        dictionary = data[max(0, mark.start() - _DICTIONARY) : mark.start()].rpartition(b"obj")[2]
        layers = len(_PACKED.findall(dictionary))
        if not layers or _NEVER_READ.search(dictionary):
            continue
        size = _unpacked_size(data, mark.end(), layers)
        total += size
        if size > MAX_STREAM:
            return f"a part of it unpacks to more than {MAX_STREAM:,} bytes"
        if total > MAX_TOTAL:
            return f"it unpacks to more than {MAX_TOTAL:,} bytes"
    return None


def _unpacked_size(data: bytes, start: int, layers: int) -> int:
    """Bytes of the stream at `start`, as far as its limit or the place where it is damaged."""
    pieces: Iterator[bytes] = (data[at : at + _PIECE] for at in range(start, len(data), _PIECE))
    for _ in range(layers):
        pieces = _unpacked(pieces)
    size = 0
    try:
        for piece in pieces:
            size += len(piece)
            if size > MAX_STREAM:
                break
    except zlib.error:
        pass
    return size


def _unpacked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    unpacker = zlib.decompressobj()
    for piece in pieces:
        packed = piece
        while packed:
            yield unpacker.decompress(packed, _PIECE)
            if unpacker.eof:
                return
            packed = unpacker.unconsumed_tail
