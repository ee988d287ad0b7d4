"""The rows of the table of sessions, and the line of the list that each one gives."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

from leadline.capabilities.persistence.providers.listing import bracket, header_in
from leadline.capabilities.persistence.providers.sqlite_database import ENGINE_ERRORS, is_damage
from leadline.capabilities.persistence.providers.sqlite_log import stretch
from leadline.capabilities.persistence.providers.sqlite_schema import OFFSET_BITS
from leadline.core.session.codec import MAX_HEADER_BYTES, Header, decode_header
from leadline.core.session.lease import Holder
from leadline.core.session.registry import EventTypes
from leadline.core.session.store import SessionEntry, SessionStatus

_COLUMNS = """
    SELECT number, id, size, modified, epoch, taken, archived, resting,
           (SELECT sum(length(content)) FROM packed WHERE packed.number = sessions.number),
           told, writer, host, pid, boot, born, heartbeat, line
    FROM sessions LEFT JOIN writers ON token = writer LEFT JOIN lines ON at = number << 40
"""

_MOST_FAILED = 10_000
"""Sessions that are tried in vain before the rest is given up."""

IsAlive: TypeAlias = Callable[[str, Holder], bool]
"""Whether the writer of a token, who is told by a holder, is alive."""


@dataclass(frozen=True, slots=True)
class Row:
    """One session, as its row tells."""

    number: int
    id: str
    size: int
    modified: float
    head: bytes
    """The first line, with its line feed."""
    epoch: int = 0
    archived: bool = False
    resting: str = ""
    """The status when it was archived."""
    packed: int | None = None
    """Bytes that it takes as an archive; None where it is none."""
    told: str = ""
    """What is told of it wherever it is shown."""
    writer: str | None = None
    last: Holder | None = None
    """Who has it, or had it and died."""

    @property
    def header(self) -> Header | str:
        """The header, or why it cannot be used."""
        line = self.head[:MAX_HEADER_BYTES]
        return header_in(line.removesuffix(b"\n"), self.id, finished=line.endswith(b"\n"))

    def holder(self, is_alive: IsAlive) -> Holder | None:
        """Who writes it now; None where nobody does."""
        if self.writer is None or self.last is None:
            return None
        return self.last if is_alive(self.writer, self.last) else None


def find(connection: sqlite3.Connection, session_id: str) -> Row | None:
    """The session of that id; None where there is none."""
    found = connection.execute(f"{_COLUMNS} WHERE id = ?", (session_id,)).fetchone()
    return None if found is None else _row(found)


def find_bare(connection: sqlite3.Connection, session_id: str) -> Row | None:
    """As `find`, without a look at the log: for when that cannot be read."""
    found = connection.execute(
        "SELECT number, size, modified, archived FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    if found is None:
        return None
    number, size, modified, archived = found
    return Row(_int(number), session_id, _int(size), _float(modified), b"", archived=bool(archived))


def ids(connection: sqlite3.Connection) -> list[str]:
    """The ids of all sessions."""
    return [str(found) for (found,) in connection.execute("SELECT id FROM sessions ORDER BY number")]


def every(connection: sqlite3.Connection, *, held: bool = False) -> list[Row]:
    """All sessions, or those that somebody has or had when it died."""
    which = "WHERE writer IS NOT NULL" if held else ""
    return [_row(found) for found in connection.execute(f"{_COLUMNS} {which}")]


def _row(found: tuple[object, ...]) -> Row:
    number, session_id, size, modified, epoch, taken, archived, resting, packed, told, writer, *who, line = (
        found
    )
    host, pid, boot, born, heartbeat = who
    last = None
    if host is not None:
        last = Holder(
            epoch=_int(epoch),
            host=str(host),
            pid=_int(pid),
            boot=str(boot),
            started=_float(taken),
            heartbeat=_float(heartbeat),
            born=_int(born),
        )
    return Row(
        number=_int(number),
        id=str(session_id),
        size=_int(size),
        modified=_float(modified),
        head=line if isinstance(line, bytes) else b"",
        epoch=_int(epoch),
        archived=bool(archived),
        resting=str(resting),
        packed=_int(packed) if archived else None,
        told=str(told),
        writer=None if writer is None else str(writer),
        last=last,
    )


def _int(stored: object) -> int:
    return stored if isinstance(stored, int) else 0


def _float(stored: object) -> float:
    return float(stored) if isinstance(stored, (int, float)) else 0.0


def salvaged(connection: sqlite3.Connection) -> list[Row]:
    """The sessions that the logs themselves tell of, for when the table of sessions cannot be read."""
    rows: list[Row] = []
    number = failed = 0
    while failed < _MOST_FAILED:
        try:
            found = connection.execute(
                "SELECT at, line FROM lines WHERE at >= ? ORDER BY at LIMIT 1", (number << OFFSET_BITS,)
            ).fetchone()
            if found is None:
                break
            number = _int(found[0]) >> OFFSET_BITS
            row = _salvaged_row(connection, number, found[1])
            if row is not None:
                rows.append(row)
        except ENGINE_ERRORS:
            failed += 1
        number += 1
    return rows


def _salvaged_row(connection: sqlite3.Connection, number: int, line: object) -> Row | None:
    head = line if isinstance(line, bytes) else b""
    header = decode_header(head.removesuffix(b"\n"))
    if isinstance(header, str):
        return None
    at, last = connection.execute(
        "SELECT at, length(line) FROM lines WHERE at >= ? AND at < ? ORDER BY at DESC LIMIT 1",
        stretch(number),
    ).fetchone()
    return Row(number, header.id, _int(at) - stretch(number)[0] + _int(last), header.created, head)


def entry_of(
    connection: sqlite3.Connection, row: Row, path: Path, types: EventTypes, is_alive: IsAlive
) -> SessionEntry:
    """What the list says of one session. Total: what cannot be read gives an entry that says so."""
    header = row.header
    if isinstance(header, str):
        return SessionEntry(
            id=row.id,
            status="unreadable",
            size=row.size,
            modified=row.modified,
            path=str(path),
            reason=header,
            archived=row.archived,
        )
    holder = row.holder(is_alive)
    return SessionEntry(
        id=row.id,
        status="running" if holder else _resting(connection, row, types),
        kind=header.kind,
        created=header.created,
        parent=header.parent,
        depth=header.depth,
        cwd=header.cwd,
        label=header.label,
        size=row.size,
        modified=row.modified,
        path=str(path),
        holder=holder,
        archived=row.archived,
        packed=row.packed,
    )


def _resting(connection: sqlite3.Connection, row: Row, types: EventTypes) -> SessionStatus:
    if row.archived and row.resting in ("finished", "interrupted", "idle"):
        return cast("SessionStatus", row.resting)
    try:
        return resting(connection, row.number, types)
    except ENGINE_ERRORS as error:
        if not is_damage(error):
            raise
        return "interrupted"


def resting(connection: sqlite3.Connection, number: int, types: EventTypes) -> SessionStatus:
    """The status of a log that nobody writes, from as much of its end as it takes."""
    for line in _from_the_end(connection, number):
        told = bracket(line, types)
        if told is not None:
            return told
    return "idle"


def _from_the_end(connection: sqlite3.Connection, number: int) -> Iterator[bytes]:
    for (line,) in connection.execute(
        "SELECT line FROM lines WHERE at >= ? AND at < ? ORDER BY at DESC", stretch(number)
    ):
        if isinstance(line, bytes):
            yield line.removesuffix(b"\n")
