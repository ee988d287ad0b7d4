"""The run's own log and its fold: one place through which every `research/*` fact passes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio

from leadline.core.session.events import Event
from leadline.core.session.log import Session
from leadline.research.ledger.ledger import Ledger


class RunRecord:
    """Appends facts to the session of a run and keeps the ledger at the same point."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.ledger = Ledger()
        self._facts: list[Event] = []
        self._grown = anyio.Event()
        self._closed = False

    def append(self, event: Event) -> None:
        """Write a fact; it is in the log and in the ledger when this returns.

        Raises:
            SessionWriteFailed: the disk refused; the ledger is as before.
        """
        self.session.append(event)
        self.ledger.add(event)
        self._facts.append(event)
        self._tell()

    def close(self) -> None:
        """Let followers go, also those of a run whose end could not be written. Idempotent."""
        self._closed = True
        self._tell()

    def _tell(self) -> None:
        self._grown.set()
        self._grown = anyio.Event()

    async def follow(self) -> AsyncIterator[Event]:
        """Every fact of the run in order, from the first, as they come; ends with the run."""
        at = 0
        while True:
            while at < len(self._facts):
                fact = self._facts[at]
                at += 1
                yield fact
            if self._closed:
                return
            await self._grown.wait()
