"""Who writes a session, and the rule that tells whether they are still there; the same for every store.

A holder is told by host, boot and process. On the machine that asks, the process itself is looked at:
its number and the moment it was started, so that a number that was given out again fools nobody. A
holder of another machine is believed for as long as its heartbeat is fresh.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

BEAT_S = 10.0
"""Seconds between two heartbeats of a session that is open."""

STALE_S = 60.0
"""Seconds without a heartbeat after which a holder of another machine counts as dead."""

_CLOCKS_APART_S = 86_400.0
"""How far ahead the clock of another machine may be; a heartbeat from further in the future is none."""

_START_FIELD = 19
"""Place of the start time in /proc/<pid>/stat, counted behind the name of the process."""


class Holder(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who has, or last had, the right to write a session."""

    epoch: int
    """Rises by one with each holder of the session."""
    host: str
    pid: int
    boot: str
    """Identity of the machine's boot; empty where the system tells none."""
    started: float
    """When it took the session; seconds since 1970, UTC."""
    heartbeat: float = 0.0
    """When it last said that it is there; seconds since 1970, UTC."""
    born: int = 0
    """When its process was started, in the system's own ticks since boot; 0 where that cannot be told."""
    released: bool = False
    """Whether it gave the session up by itself."""


@dataclass(frozen=True, slots=True)
class Here:
    """The machine and the process that ask."""

    host: str
    boot: str
    pid: int
    born: int
    born_of: Callable[[int], int | None]
    """When the process of a number was started, in ticks since boot: 0 where that cannot be told, None where
    there is no such process."""

    def holder(self, epoch: int, now: float) -> Holder:
        """This process as the holder of number `epoch`."""
        return Holder(epoch, self.host, self.pid, self.boot, now, heartbeat=now, born=self.born)


def is_alive(holder: Holder, here: Here, now: float) -> bool:
    """Whether `holder` can still write, as far as `here` can tell at `now` (seconds since 1970, UTC).

    Same boot and host: its process exists and is the same one. Same host, other boot: no. Anywhere else, a
    container beside this one included: its heartbeat is younger than `STALE_S`.
    """
    if holder.released:
        return False
    if holder.host == here.host:
        if holder.boot != here.boot:
            return False
        born = here.born_of(holder.pid)
        return born is not None and (born == holder.born or 0 in {born, holder.born})
    return -_CLOCKS_APART_S < now - max(holder.heartbeat, holder.started) < STALE_S


def here() -> Here:
    """This machine and process, as the system tells."""
    pid = os.getpid()
    return Here(socket.gethostname(), boot_id(), pid, process_born(pid) or 0, process_born)


def boot_id() -> str:
    """Identity of the machine's boot; empty where the system tells none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def process_born(pid: int) -> int | None:
    """When the process `pid` was started, in ticks since boot; 0: it exists, more cannot be told; None: it does not.

    A process that ended and was not collected by its parent does not exist any more: it writes nothing.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0 if not Path("/proc/self/stat").exists() and _exists(pid) else None
    if not fields or fields[0] in {b"Z", b"X"}:
        return None
    return int(fields[_START_FIELD]) if len(fields) > _START_FIELD else 0


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
