"""The run's own log and its fold: one place through which every `research/*` fact passes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

import anyio

from leadline.core.session.errors import EventUndecodable, SessionClosed, SessionWriteFailed
from leadline.core.session.events import Event
from leadline.core.session.log import Session
from leadline.research.events import RESEARCH_EVENTS, QuoteRecorded, Searched, SourceRead, Withdrawn
from leadline.research.ledger.ledger import Ledger, withdrawn

OF_A_CALL = (Searched, SourceRead, QuoteRecorded)
"""Facts that stand for one tool call of a child, which they name."""

_TYPES: Mapping[str, type[Event]] = {kind.TYPE: kind for kind in RESEARCH_EVENTS}


def facts_of(session: Session) -> Iterator[Event]:
    """The `research/*` facts of a log in order; one that cannot be read is passed over."""
    for line in session.logged:
        if line.type in _TYPES:
            try:
                yield line.as_(_TYPES[line.type])
            except EventUndecodable:
                continue


class RunRecord:
    """Appends facts to the session of a run and keeps the ledger at the same point."""

    def __init__(self, session: Session, report: Callable[[BaseException, str], None]) -> None:
        """What the session has already is in the ledger at once. `report` is told what a disk could not promise."""
        self.report = report
        """Tells whoever watches the program what could not be done."""
        self.session = session
        self.ledger = Ledger()
        self._facts: list[Event] = []
        self._of_call: dict[tuple[str, int], Searched | SourceRead | QuoteRecorded] = {}
        self._grown = anyio.Event()
        self._closed = False
        for event in facts_of(session):
            self._fold(event)

    @property
    def facts(self) -> Sequence[Event]:
        """Every fact so far, in order."""
        return tuple(self._facts)

    def append(self, *events: Event) -> None:
        """Write facts, in one go; they are in the log and in the ledger when this returns.

        Raises:
            SessionWriteFailed: the disk refused; the ledger is as before.
        """
        self.session.append_all(events)
        for event in events:
            self._fold(event)
        self._tell()

    async def sync(self) -> None:
        """Make the facts so far survive a power cut, where the disk can promise that."""
        try:
            await self.session.sync()
        except (SessionWriteFailed, SessionClosed) as error:
            self.report(error, f"making run {self.session.id} survive a power cut")

    def of_call(self, child: str | None, seq: int | None) -> Event | None:
        """What was written down for one tool call of a child; None where nothing was yet."""
        return None if child is None or seq is None else self._of_call.get((child, seq))

    def _fold(self, event: Event) -> None:
        self.ledger.add(event)
        self._facts.append(event)
        if isinstance(event, OF_A_CALL) and event.child is not None and event.seq is not None:
            self._of_call[event.child, event.seq] = event
        elif isinstance(event, Withdrawn):
            for call in [one for one, fact in self._of_call.items() if withdrawn(fact, event)]:
                del self._of_call[call]

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
