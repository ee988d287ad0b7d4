"""One line of the list of sessions, from the two ends of its log."""

from __future__ import annotations

import os
from pathlib import Path

from leadline.capabilities.persistence.providers.lease import is_held
from leadline.core.session.codec import (
    MAX_HEADER_BYTES,
    Header,
    Logged,
    decode_header,
    decode_line,
    newer_format,
)
from leadline.core.session.registry import EventTypes
from leadline.core.session.store import SessionEntry, SessionStatus

_TAIL_BYTES = 8 * 1024
_TAIL_GROWTH = 16


def entry_of(path: Path, lock: Path, types: EventTypes) -> SessionEntry:
    """What the list says of the log `path`. Total: what cannot be read gives an entry that says so."""
    session_id = path.stem
    try:
        if not path.is_file():
            return _unreadable(session_id, path, "it is no regular file; move it away")
        with path.open("rb", buffering=0) as file:
            stat = os.fstat(file.fileno())
            header = read_header(file.fileno(), session_id)
            if isinstance(header, str):
                return _unreadable(session_id, path, header, stat)
            status = "running" if is_held(lock) else _resting(file.fileno(), stat.st_size, types)
    except OSError as error:
        return _unreadable(session_id, path, f"{error.strerror or error}; check the disk and its permissions")
    return SessionEntry(
        id=session_id,
        status=status,
        kind=header.kind,
        created=header.created,
        parent=header.parent,
        depth=header.depth,
        cwd=header.cwd,
        label=header.label,
        size=stat.st_size,
        modified=stat.st_mtime,
        path=str(path),
    )


def head_line(fd: int) -> tuple[bytes, bool]:
    """The first line of an open log without its line feed, and whether it has one."""
    line, finished, _ = os.pread(fd, MAX_HEADER_BYTES, 0).partition(b"\n")
    return line, bool(finished)


def read_header(fd: int, session_id: str) -> Header | str:
    """The header of an open log, or why it cannot be used and what to do."""
    line, finished = head_line(fd)
    newer = newer_format(line)
    if newer is not None:
        return f"needs a version of Leadline that reads format {newer} or later; upgrade to open it"
    header = decode_header(line) if finished else "the header is unfinished or too long"
    if isinstance(header, str):
        return f"{header}; what is left can be read, but not continued"
    if header.id != session_id:
        return f"its header says that it is session {header.id}; rename the file or remove the copy"
    return header


def _resting(fd: int, size: int, types: EventTypes) -> SessionStatus:
    """The status of a log that nobody writes, from as much of its end as it takes."""
    span = _TAIL_BYTES
    while True:
        start = max(0, size - span)
        lines = os.pread(fd, size - start, start).split(b"\n")
        for line in reversed(lines if start == 0 else lines[1:]):
            found = decode_line(line) if line else ""
            kind = types.get(found.type) if isinstance(found, Logged) else None
            if kind is not None and kind.OPENS:
                return "interrupted"
            if kind is not None and kind.CLOSES:
                return "finished"
        if start == 0:
            return "idle"
        span *= _TAIL_GROWTH


def _unreadable(session_id: str, path: Path, reason: str, stat: os.stat_result | None = None) -> SessionEntry:
    return SessionEntry(
        id=session_id,
        status="unreadable",
        path=str(path),
        reason=reason,
        size=stat.st_size if stat else 0,
        modified=stat.st_mtime if stat else 0.0,
    )
