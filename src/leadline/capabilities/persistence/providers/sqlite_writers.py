"""Who writes which session of a database: a lock that dies with its holder, and an epoch that does not.

Each process that opens sessions has a file of its own beside the database, locked with `flock` for as
long as it runs; the system gives the lock up however the process ends. A session names the writer that
has it, and the epoch, a number that rises with each; both are compared in the same transaction that
adds to a log, so that a writer which was taken for dead is refused. For a holder on another machine,
whose lock may not be seen from here, its heartbeat tells.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from leadline.capabilities.persistence.providers.lease import is_held
from leadline.core.session.errors import SessionLocked, SessionWriteFailed
from leadline.core.session.lease import STALE_S, Holder, here, is_alive


class Writers:
    """The writers of one database, as this process sees them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._token = ""
        self._fd = -1

    @property
    def own(self) -> str:
        """The token of this process; empty while it has none."""
        return self._token

    def others(self) -> bool:
        """Whether another process of this machine has sessions open."""
        try:
            return any(path.name != self._token and is_held(path) for path in self._folder.iterdir())
        except OSError:
            return False

    def enter(self) -> str:
        """The token of this process, which others see alive from now on. Idempotent.

        Raises:
            SessionWriteFailed: a lock cannot be had here.
        """
        try:
            while not self._token:
                self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._folder.mkdir(mode=0o700, exist_ok=True)
                self._sweep()
                self._enter(secrets.token_hex(8))
        except OSError as error:
            raise SessionWriteFailed(
                str(self._folder),
                error.strerror or str(error),
                "make the directory writable, free space, or use one on a file system that can lock files",
            ) from error
        return self._token

    def _enter(self, token: str) -> None:
        path = self._folder / token
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)  # another process sweeps, and found it before it was locked
            return
        except OSError:
            os.close(fd)
            path.unlink(missing_ok=True)
            raise
        if path.exists():
            self._token, self._fd = token, fd
        else:
            os.close(fd)

    def _sweep(self) -> None:
        """Remove the files of those who died."""
        for path in self._folder.iterdir():
            with suppress(OSError):
                fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()
                finally:
                    os.close(fd)

    def leave(self) -> None:
        """Give up the token; what still names it belongs to nobody. Idempotent."""
        token, self._token = self._token, ""
        fd, self._fd = self._fd, -1
        if token:
            with suppress(OSError):
                (self._folder / token).unlink(missing_ok=True)
            os.close(fd)

    def register(self, connection: sqlite3.Connection, now: float) -> None:
        """Tell the database of this process, and make it forget those who died and left nothing behind."""
        if connection.execute("SELECT 1 FROM writers WHERE token = ?", (self._token,)).fetchone():
            return
        me = here()
        connection.execute(
            "DELETE FROM writers WHERE heartbeat < ?"
            " AND token NOT IN (SELECT writer FROM sessions WHERE writer IS NOT NULL)",
            (now - STALE_S,),
        )
        connection.execute(
            "INSERT INTO writers (token, host, pid, boot, born, heartbeat) VALUES (?, ?, ?, ?, ?, ?)",
            (self._token, me.host, me.pid, me.boot, me.born, now),
        )

    def beat(self, connection: sqlite3.Connection, now: float) -> None:
        """Tell the database that this process is alive."""
        connection.execute("UPDATE writers SET heartbeat = ? WHERE token = ?", (now, self._token))

    def rule(self, now: float) -> Callable[[str, Holder], bool]:
        """Whether the writer of a token, who is told by a holder, can still write. Looks at each writer once."""
        known: dict[str, bool] = {}

        def alive(token: str, holder: Holder) -> bool:
            if token not in known:
                known[token] = self._is_alive(token, holder, now)
            return known[token]

        return alive

    def _is_alive(self, token: str, holder: Holder, now: float) -> bool:
        asking = here()
        if holder.boot == asking.boot and (asking.boot or holder.host == asking.host):
            return is_held(self._folder / token)
        return is_alive(holder, asking, now)


def locked(session_id: str, holder: Holder) -> SessionLocked:
    """The refusal of a session that `holder` has."""
    return SessionLocked(session_id, holder.host, holder.pid, holder.started)
