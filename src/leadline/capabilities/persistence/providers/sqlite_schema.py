"""The tables of the database of sessions, and how an older database becomes a present one.

    sessions  one row a session: how long its log is, and who may write it
    lines     one row a line of a log: the same bytes as in a log file, each with its line feed
    beside    what is kept of a session beside its log
    writers   one row a process that has sessions open
    packed    the logs of archived sessions, compressed; their first line stays in `lines`
    mark      a number that rises whenever a session is made, removed, archived, opened or closed

The place of a line, `at`, is the number of its session times 2^40 plus the offset of its first byte, so
that a log is one stretch of the table. `SELECT line FROM logs WHERE session = '...' ORDER BY start`
prints one.

A version of the schema is never changed once it was released: a new one is added behind it.
"""

from __future__ import annotations

import sqlite3

APPLICATION_ID = 0x4C_45_41_44
"""`LEAD`: what marks a database as ours."""

OFFSET_BITS = 40
"""A log has less than 2^40 bytes."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE sessions (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            size INTEGER NOT NULL,
            modified REAL NOT NULL,
            epoch INTEGER NOT NULL DEFAULT 0,
            writer TEXT,
            taken REAL NOT NULL DEFAULT 0
        )""",
        "CREATE TABLE lines (at INTEGER PRIMARY KEY, line BLOB NOT NULL)",
        """CREATE TABLE beside (
            number INTEGER NOT NULL,
            name TEXT NOT NULL,
            content BLOB NOT NULL,
            PRIMARY KEY (number, name)
        )""",
        """CREATE TABLE writers (
            token TEXT PRIMARY KEY,
            host TEXT NOT NULL,
            pid INTEGER NOT NULL,
            boot TEXT NOT NULL,
            born INTEGER NOT NULL,
            heartbeat REAL NOT NULL
        )""",
        """CREATE VIEW logs AS
            SELECT id AS session, at - (number << 40) AS start, CAST(line AS TEXT) AS line
            FROM sessions JOIN lines ON at >= number << 40 AND at < (number + 1) << 40""",
    ),
    (
        "ALTER TABLE sessions ADD COLUMN changes INTEGER NOT NULL DEFAULT 0",
        "CREATE TABLE mark (value INTEGER NOT NULL)",
        "INSERT INTO mark (value) VALUES (1)",
        "CREATE INDEX held ON sessions (writer) WHERE writer IS NOT NULL",
    ),
    (
        "ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE sessions ADD COLUMN resting TEXT NOT NULL DEFAULT ''",
        """CREATE TABLE packed (
            number INTEGER NOT NULL,
            part INTEGER NOT NULL,
            content BLOB NOT NULL,
            PRIMARY KEY (number, part)
        )""",
    ),
    ("ALTER TABLE sessions ADD COLUMN told TEXT NOT NULL DEFAULT ''",),
)
"""What makes each version out of the one before it; the first makes an empty database version 1."""

VERSION = len(MIGRATIONS)
"""The version that this program reads and writes."""


class SchemaUnknown(Exception):
    """The database is of a later version, or of another program."""


def migrate(connection: sqlite3.Connection, target: int = VERSION) -> None:
    """Bring the database to version `target`, all or nothing; several processes may try at once.

    Raises:
        SchemaUnknown: nothing was changed.
        sqlite3.Error: nothing was changed.
    """
    if version_of(connection) == target:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        before = version_of(connection)  # another process may have been quicker
        for version in range(before, target):
            for statement in MIGRATIONS[version]:
                connection.execute(statement)
        if before < target:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {target}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def version_of(connection: sqlite3.Connection) -> int:
    """The version of the schema; 0 for an empty database.

    Raises:
        SchemaUnknown: it is of a later version, or of another program.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    # Last: where another process has just made the tables, it is theirs to see as well.
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    if owner != APPLICATION_ID and (tables or version):
        raise SchemaUnknown("it is the database of another program; choose another path")
    if version > VERSION:
        raise SchemaUnknown(
            f"it needs a version of Leadline that reads schema {version} or later; upgrade to use it"
        )
    return int(version)
