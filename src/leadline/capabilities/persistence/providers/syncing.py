"""Makes many files survive a power cut at once: in as few threads as the disk is fast, as many as it is slow.

A disk that answers in a tenth of a millisecond is waited for by one thread for several files, since handing
each to a thread of its own costs more than the disk does. One that takes milliseconds is given every file at
once, since a file system commits what is asked of it together.
"""

from __future__ import annotations

import os
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import anyio
from anyio import CapacityLimiter, to_thread

_FAST_S = 0.0005
"""A file that takes less is synced on a fast disk."""
_FAST_THREADS, _FAST_BATCH = 4, 25
_SLOW_THREADS, _SLOW_BATCH = 64, 1
_WEIGHT = 0.2
"""What the newest time counts in the running mean."""


@dataclass(slots=True, eq=False)
class _Wanted:
    fd: int
    done: bool = False
    error: OSError | None = None
    woken: anyio.Event = field(default_factory=anyio.Event)


class Syncing:
    """Syncs open files; shared by the files of one store. For one event loop."""

    def __init__(self) -> None:
        self._waiting: deque[_Wanted] = deque()
        self._busy = 0
        self._took_s = _FAST_S
        self._threads: CapacityLimiter | None = None
        self._named = 0
        self._names_synced = 0
        self._naming = anyio.Lock()

    def named(self) -> int:
        """Count a file whose name is in the store's directory now; the number for `names`."""
        self._named += 1
        return self._named

    async def names(self, directory: Path, number: int) -> None:
        """Return when the names of the files up to `number` survive a power cut.

        Raises:
            OSError: the disk does not promise it.
        """
        if number <= self._names_synced:
            return
        async with self._naming:
            if number > self._names_synced:
                named = self._named
                await to_thread.run_sync(sync_place, directory)
                self._names_synced = named

    async def sync(self, fd: int) -> None:
        """Return when what was written to the open file `fd` survives a power cut; it must stay open.

        Raises:
            OSError: the disk does not promise it.
        """
        wanted = _Wanted(fd)
        self._waiting.append(wanted)
        # A file that a thread has taken up must not be closed under it, so that nobody leaves before.
        with anyio.CancelScope(shield=True):
            while not wanted.done:
                threads, files = self._share()
                if self._busy < threads and self._waiting:
                    await self._lead(files)
                else:
                    await wanted.woken.wait()
                    wanted.woken = anyio.Event()
        if wanted.error is not None:
            raise wanted.error

    def _share(self) -> tuple[int, int]:
        """How many threads may be busy, and with how many files each."""
        return (_FAST_THREADS, _FAST_BATCH) if self._took_s < _FAST_S else (_SLOW_THREADS, _SLOW_BATCH)

    async def _lead(self, files: int) -> None:
        """Take up to `files` of those that wait to a thread, and wake who waits for them."""
        batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), files))]
        if self._threads is None:
            self._threads = CapacityLimiter(_SLOW_THREADS)
        self._busy += 1
        try:
            took_s = await to_thread.run_sync(_sync_all, batch, limiter=self._threads)
        finally:
            self._busy -= 1
            for one in batch:
                one.done = True
                one.woken.set()
        self._took_s += _WEIGHT * (took_s / len(batch) - self._took_s)
        threads, _ = self._share()
        for one in islice(self._waiting, max(0, threads - self._busy)):
            one.woken.set()


def sync_place(path: Path) -> None:
    """Make the names in a directory survive a power cut, and the names of the directories that lead to it.

    Three levels up: a fresh home is as new as its logs. Where nothing changed, a sync costs next to nothing.
    """
    sync_directory(path)
    for above in [*path.absolute().parents][:3]:
        try:
            sync_directory(above)
        except PermissionError:
            return  # made by somebody else, and not now


def sync_directory(path: Path) -> None:
    """Make the names in a directory survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _sync_all(batch: list[_Wanted]) -> float:
    """Sync each; the seconds that it took."""
    began = time.perf_counter()
    for one in batch:
        try:
            os.fdatasync(one.fd)
        except OSError as error:
            one.error = error
    return time.perf_counter() - began
