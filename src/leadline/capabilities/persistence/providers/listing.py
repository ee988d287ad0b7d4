"""One line of the list of sessions, from the two ends of its log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from leadline.capabilities.persistence.providers.gzip_log import summary_of, unpacked
from leadline.capabilities.persistence.providers.lease import holder_of
from leadline.core.session.codec import (
    MAX_EVENT_BYTES,
    MAX_HEADER_BYTES,
    Header,
    decode_header,
    decode_line,
    newer_format,
    valid_id,
)
from leadline.core.session.errors import SessionFormatTooNew, SessionUnreadable
from leadline.core.session.lease import Holder
from leadline.core.session.registry import EventTypes
from leadline.core.session.store import SessionEntry, SessionStatus

PLAIN = ".jsonl"
PACKED = ".jsonl.gz"

_TAIL_BYTES = 8 * 1024
_TAIL_GROWTH = 16
_LONGEST_LINE = MAX_EVENT_BYTES + 4096


def id_of(name: str) -> str | None:
    """The session whose log has the file name `name`; None when it is the name of no log."""
    if name.startswith("."):
        return None
    for suffix in (PLAIN, PACKED):
        if name.endswith(suffix):
            return name[: -len(suffix)]
    return None


def entry_of(path: Path, lock: Path, types: EventTypes, now: float) -> SessionEntry:
    """What the list says of the log or archive `path`. Total: what cannot be read gives an entry that says so."""
    session_id = id_of(path.name) or path.stem
    try:
        if not path.is_file():
            return _unreadable(session_id, path, "it is no regular file; move it away")
        if not valid_id(session_id):
            return _unreadable(
                session_id, path, "its name cannot be the id of a session; rename the file or move it away"
            )
        if path.name.endswith(PACKED):
            return _archived(session_id, path, types)
        with path.open("rb", buffering=0) as file:
            stat = os.fstat(file.fileno())
            header = read_header(file.fileno(), session_id)
            if isinstance(header, str):
                return _unreadable(session_id, path, header, stat)
            holder = holder_of(lock, now)
            status = "running" if holder else resting(file.fileno(), stat.st_size, types)
    except OSError as error:
        return _unreadable(session_id, path, f"{error.strerror or error}; check the disk and its permissions")
    return _entry(header, path, status, stat.st_size, stat.st_mtime, holder)


def _entry(
    header: Header,
    path: Path,
    status: SessionStatus,
    size: int,
    modified: float,
    holder: Holder | None = None,
    *,
    packed: int | None = None,
) -> SessionEntry:
    return SessionEntry(
        id=header.id,
        status=status,
        kind=header.kind,
        created=header.created,
        parent=header.parent,
        depth=header.depth,
        cwd=header.cwd,
        label=header.label,
        size=size,
        modified=modified,
        path=str(path),
        holder=holder,
        archived=packed is not None,
        packed=packed,
    )


def _archived(session_id: str, path: Path, types: EventTypes) -> SessionEntry:
    """The entry of an archive: from what its first member says, or, where another program packed it, from all of it."""
    with path.open("rb", buffering=0) as file:
        stat = os.fstat(file.fileno())
        summary = summary_of(file.fileno())
        log, _ = unpacked(file)
        head = log.readline(MAX_HEADER_BYTES)
        header = header_in(head.removesuffix(b"\n"), session_id, finished=head.endswith(b"\n"))
        if isinstance(header, str):
            return _unreadable(session_id, path, header, stat, archived=True)
        if summary is not None:
            size, status = summary.size, summary.status
        else:
            size, status = _through(log, len(head), types)
        return _entry(header, path, status, size, stat.st_mtime, packed=stat.st_size)


def _through(log: BinaryIO, size: int, types: EventTypes) -> tuple[int, SessionStatus]:
    status: SessionStatus = "idle"
    while line := log.readline(_LONGEST_LINE):
        size += len(line)
        status = bracket(line, types) or status
    return size, status


def head_line(fd: int) -> tuple[bytes, bool]:
    """The first line of an open log without its line feed, and whether it has one."""
    line, finished, _ = os.pread(fd, MAX_HEADER_BYTES, 0).partition(b"\n")
    return line, bool(finished)


def read_header(fd: int, session_id: str) -> Header | str:
    """The header of an open log, or why it cannot be used and what to do."""
    line, finished = head_line(fd)
    return header_in(line, session_id, finished=finished)


def header_in(line: bytes, session_id: str, *, finished: bool) -> Header | str:
    """The header in a log's first line (without its line feed), or why it cannot be used and what to do."""
    newer = newer_format(line)
    if newer is not None:
        return f"needs a version of Leadline that reads format {newer} or later; upgrade to open it"
    header = decode_header(line) if finished else "the header is unfinished or too long"
    if isinstance(header, str):
        return f"{header}; what is left can be read, but not continued"
    if header.id != session_id:
        return f"its header says that it is session {header.id}; rename the file or remove the copy"
    return header


def writable_header(line: bytes, session_id: str | None, what: str) -> Header:
    """The header in a log's first line, which has to be one that this version may write; `what` begins the refusal.

    Raises:
        SessionFormatTooNew, SessionUnreadable: it is not.
    """
    content = line.removesuffix(b"\n")
    newer = newer_format(content)
    known = decode_header(content)
    name = session_id or ("" if isinstance(known, str) else known.id)
    if newer is not None:
        raise SessionFormatTooNew(name, newer)
    header = header_in(content, name, finished=line.endswith(b"\n"))
    if isinstance(header, str):
        raise SessionUnreadable(f"{what}: {header}")
    if not valid_id(header.id):
        raise SessionUnreadable(f"{what}: {header.id!r} cannot be the id of a session")
    return header


def resting(fd: int, size: int, types: EventTypes) -> SessionStatus:
    """The status of a log that nobody writes, from as much of its end as it takes."""
    span = _TAIL_BYTES
    while True:
        start = max(0, size - span)
        lines = os.pread(fd, size - start, start).split(b"\n")
        for line in reversed(lines if start == 0 else lines[1:]):
            found = bracket(line, types)
            if found is not None:
                return found
        if start == 0:
            return "idle"
        span *= _TAIL_GROWTH


def bracket(line: bytes, types: EventTypes) -> SessionStatus | None:
    """What the event in a line says of the status of a log that ends with it; None when it says nothing."""
    found = decode_line(line) if line else ""
    kind = None if isinstance(found, str) else types.get(found.type)
    if kind is None:
        return None
    return "interrupted" if kind.OPENS else "finished" if kind.CLOSES else None


def _unreadable(
    session_id: str, path: Path, reason: str, stat: os.stat_result | None = None, *, archived: bool = False
) -> SessionEntry:
    return SessionEntry(
        id=session_id,
        status="unreadable",
        path=str(path),
        reason=reason,
        size=stat.st_size if stat else 0,
        modified=stat.st_mtime if stat else 0.0,
        archived=archived,
    )
