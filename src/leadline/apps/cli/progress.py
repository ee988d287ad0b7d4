"""Live progress on stderr: who is doing what; one changing line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

from leadline.apps.cli.facts import Facts
from leadline.apps.cli.streams import put, say, visible
from leadline.apps.cli.waits import Waits, told_wait
from leadline.apps.cli.widths import fitting
from leadline.core.session.events import Event
from leadline.core.spend.account import Account
from leadline.core.spend.lines import Waiting
from leadline.core.spend.money import shown

_CLEAR_LINE = "\r\x1b[2K"
_INDEX_EVERY = 200


class Progress(Waits):
    """Shows the facts of a run as they come, and where it stands."""

    def __init__(self, *, live: bool) -> None:
        super().__init__()
        self._live = live
        self._facts = Facts()
        self._began = time.monotonic()
        self._status = ""
        self._account: Account | None = None
        self._waiting = ""

    def spending(self, account: Account) -> None:
        """From now on show what is spent from `account`."""
        self._account = account

    def _ticked(self) -> None:
        if self._status:
            self._show(self._counts())

    def _tell(self, waiting: Waiting) -> None:
        if not self._live:
            super()._tell(waiting)
            return
        self._waiting = told_wait(waiting)
        self._show(self._counts())

    def _over(self) -> None:
        self._waiting = ""

    def indexing(self, done: int, total: int, path: str) -> None:
        """One more document of the corpus was read."""
        if self._live:
            self._show(f"reading documents {done}/{total}  {path}")
        elif (done == total and total) or (done % _INDEX_EVERY == 0 and done):
            say(f"reading documents {done}/{total}")

    def fact(self, event: Event) -> None:
        """One more fact of the run."""
        line = self._facts.line(event)
        if line:
            self.close()
            say(line)
        if self._live:
            self._show(self._counts())

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._status:
            put(_CLEAR_LINE)
        self._status = ""

    def _counts(self) -> str:
        ledger = self._facts.ledger
        working = [state.unit.id for state in ledger.units.values() if state.status == "running"]
        return (
            f"{time.monotonic() - self._began:5.1f} s  {self._spent()}sources {len(ledger.sources)}  "
            f"reads {len(ledger.reads)}  quotes {len(ledger.quotes)}  {self._waiting or ' '.join(working)}"
        )

    def _spent(self) -> str:
        """What is spent so far; nothing where nothing is paid for."""
        if self._account is None:
            return ""
        spent, top = self._account.spent, self._account.ceilings
        told: list[str] = []
        if spent.cost or top.cost is not None:
            least = "at least " if spent.unpriced else ""
            told.append(
                f"{least}{shown(spent.cost)}" + ("" if top.cost is None else f" of {shown(top.cost)}")
            )
        if spent.tokens or top.tokens is not None:
            told.append(f"{spent.tokens:,}{'' if top.tokens is None else f' of {top.tokens:,}'} tokens")
        if top.calls is not None:
            told.append(f"{spent.calls} of {top.calls} calls")
        return "  ".join([*told, ""])

    def _show(self, status: str) -> None:
        width = shutil.get_terminal_size().columns
        self._status = fitting(visible(status.replace("\n", " ")), width - 1)
        put(_CLEAR_LINE + self._status)


@contextmanager
def open_progress() -> Generator[Progress]:
    """Progress for one run, live where stderr is a terminal."""
    terminal = bool(sys.stderr) and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    progress = Progress(live=terminal)
    try:
        yield progress
    finally:
        progress.close()
