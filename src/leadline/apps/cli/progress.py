"""Live progress on stderr: who is doing what; one changing line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

from leadline.apps.cli.exits import say
from leadline.core.session.events import Event
from leadline.research.events import (
    Drafted,
    Ended,
    Noted,
    Planned,
    QuoteRecorded,
    Searched,
    SourceFound,
    SourceRead,
    Started,
    UnitEnded,
    UnitStarted,
    VersionFound,
)
from leadline.research.ledger.ledger import Ledger

_CLEAR_LINE = "\r\x1b[2K"
_INDEX_EVERY = 200


class Progress:
    """Turns the facts of a run into lines that a person can follow."""

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._ledger = Ledger()
        self._began = time.monotonic()
        self._status = ""

    def indexing(self, done: int, total: int, path: str) -> None:
        """One more document of the corpus was read."""
        if self._live:
            self._show(f"reading documents {done}/{total}  {path}")
        elif (done == total and total) or (done % _INDEX_EVERY == 0 and done):
            say(f"reading documents {done}/{total}")

    def fact(self, event: Event) -> None:
        """One more fact of the run."""
        self._ledger.add(event)
        line = self._line(event)
        if line:
            self._print(line)
        if self._live:
            self._show(self._counts())

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._live and self._status:
            sys.stderr.write(_CLEAR_LINE)
            sys.stderr.flush()
        self._status = ""

    def _line(self, event: Event) -> str | None:
        match event:
            case Started():
                return f"run {event.run}: {event.method} with {event.model}"
            case Planned():
                return f"plan: {len(event.units)} unit(s): " + "; ".join(unit.title for unit in event.units)
            case UnitStarted():
                again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
                return f"{event.unit.id} researches: {event.unit.question}{again}"
            case UnitEnded():
                found = len(self._ledger.evidence_of(event.unit))
                why = f": {event.error}" if event.error else ""
                return f"{event.unit} {event.status}, {found} quote(s){why}"
            case Drafted():
                return "report drafted; checking every sentence"
            case Noted():
                return f"note: {event.text}"
            case Ended():
                return f"{event.status} after {event.usage.wall_s:.1f} s, {event.usage.calls} model call(s)"
            case _:
                return self._source_line(event)

    def _source_line(self, event: Event) -> str | None:
        match event:
            case Searched():
                return f"{event.unit} searched “{event.query}”: {len(event.sources)} hit(s)"
            case SourceRead():
                source = self._ledger.sources.get(event.source)
                return f"{event.unit} read {source.location if source else event.source}"
            case QuoteRecorded():
                quote = event.quote
                source = self._ledger.sources.get(quote.source)
                return f"{quote.id} from {source.location if source else quote.source}"
            case VersionFound():
                names = (self._ledger.sources.get(event.newer), self._ledger.sources.get(event.older))
                newer, older = (source.location if source else "?" for source in names)
                return f"{newer} is a newer version of {older}"
            case SourceFound():
                usable = self._ledger.usable(event.source.id)
                return None if usable else f"cannot use {event.source.location}: {event.source.reason}"
            case _:
                return None

    def _counts(self) -> str:
        ledger = self._ledger
        working = [state.unit.id for state in ledger.units.values() if state.status == "running"]
        return (
            f"{time.monotonic() - self._began:5.1f} s  sources {len(ledger.sources)}  "
            f"reads {len(ledger.reads)}  quotes {len(ledger.quotes)}  {' '.join(working)}"
        )

    def _print(self, line: str) -> None:
        if self._live and self._status:
            sys.stderr.write(_CLEAR_LINE)
            self._status = ""
        say(line)

    def _show(self, status: str) -> None:
        import shutil

        width = shutil.get_terminal_size().columns
        self._status = status[: width - 1]
        encoding = sys.stderr.encoding or "utf-8"
        sys.stderr.write(_CLEAR_LINE + self._status.encode(encoding, "replace").decode(encoding))
        sys.stderr.flush()


@contextmanager
def open_progress() -> Generator[Progress]:
    """Progress for one run, live where stderr is a terminal."""
    progress = Progress(live=sys.stderr.isatty())
    try:
        yield progress
    finally:
        progress.close()
