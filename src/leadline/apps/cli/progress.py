"""Live progress on stderr: who is doing what; one changing line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager

import anyio

from leadline.apps.cli.facts import Facts
from leadline.apps.cli.streams import put, say, visible
from leadline.apps.cli.widths import fitting
from leadline.core.agent.signals import CallWaiting
from leadline.core.session.events import Event, LlmRetry, RequestSent, TurnEnd
from leadline.core.session.log import SessionAppended
from leadline.core.spend.account import Account
from leadline.core.spend.lines import Waiting, WaitingFor
from leadline.core.spend.money import shown
from leadline.kernel.context import Context

_CLEAR_LINE = "\r\x1b[2K"
_INDEX_EVERY = 200
_WAIT_EVERY_S = 10.0
"""The same wait in line is not told again sooner."""
_SHORT_S = 1.0
"""A wait that is over sooner is not told: nobody would have read of it."""
_TICK_S = 0.5
"""How often the changing line is drawn again, where nothing happens."""


class Progress:
    """Shows the facts of a run as they come, and where it stands."""

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._facts = Facts()
        self._began = time.monotonic()
        self._status = ""
        self._account: Account | None = None
        self._waits: dict[tuple[str, str], float] = {}
        """When a wait of a kind was last told."""
        self._pending: dict[str, tuple[Waiting, float]] = {}
        """By session: the wait of a call that may be over soon, and since when it waits."""
        self._waiting = ""

    def spending(self, account: Account) -> None:
        """From now on show what is spent from `account`."""
        self._account = account

    def listen(self, ctx: Context) -> None:
        """From now on tell of calls that stand in line, and of those that are tried again."""
        ctx.on(CallWaiting, self._waits_in_line)
        ctx.on(SessionAppended, self._appended)
        ctx.spawn(self._ticking, name="progress")

    async def _ticking(self) -> None:
        """Keep the changing line up to date, and tell of waits that turn out to be long."""
        while True:
            await anyio.sleep(_TICK_S)
            lately = time.monotonic() - _SHORT_S
            for session, (waiting, since) in tuple(self._pending.items()):
                if since <= lately:
                    del self._pending[session]
                    self._tell(waiting)
            if self._status:
                self._show(self._counts())

    def waiting(self, waiting: Waiting, session: str) -> None:
        """A call stands in line."""
        self._pending.pop(session, None)
        if waiting.ahead or (waiting.seconds or 0.0) >= _SHORT_S:
            self._tell(waiting)
        else:
            self._pending[session] = (waiting, time.monotonic())

    def _tell(self, waiting: Waiting) -> None:
        line = told_wait(waiting)
        kind = (waiting.model, waiting.why)
        now = time.monotonic()
        if self._live:
            self._waiting = line
            self._show(self._counts())
        elif now - self._waits.get(kind, -_WAIT_EVERY_S) >= _WAIT_EVERY_S:
            self._waits[kind] = now
            say(line)

    def _waits_in_line(self, signal: CallWaiting) -> None:
        self.waiting(signal.waiting, signal.agent.id)

    def _appended(self, signal: SessionAppended) -> None:
        if signal.logged.type in (RequestSent.TYPE, TurnEnd.TYPE):
            self._waiting = ""
            self._pending.pop(signal.session.id, None)
        elif signal.logged.type == LlmRetry.TYPE:
            self.close()
            say(told_retry(signal.logged.as_(LlmRetry)))

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


def told_wait(waiting: Waiting) -> str:
    """For what a call waits, in a line."""
    reason = _WAITS[waiting.why]
    if waiting.why == "paused" and waiting.seconds is not None:
        return f"waiting for {waiting.model}: {reason} of {waiting.seconds:.0f} s"
    if waiting.why == "budget":
        return f"waiting for {waiting.model}: {reason}"
    told = f"{waiting.ahead} ahead" if waiting.ahead else reason
    if waiting.why in ("requests", "tokens"):
        told = reason + (f", {waiting.ahead} ahead" if waiting.ahead else "")
    return f"waiting for {waiting.model}: {told}" + (f", {waiting.seconds:.0f} s" if waiting.seconds else "")


_WAITS: Mapping[WaitingFor, str] = {
    "slots": "as many calls as may be are under way",
    "requests": "the calls of a minute are used up",
    "tokens": "the tokens of a minute are used up",
    "paused": "it asked for a pause",
    "children": "as many agents as may be are at work",
    "budget": "calls under way may need what is left of the budget",
}


def told_retry(retry: LlmRetry) -> str:
    """That a call is tried again, in a line."""
    what = _WHY.get(retry.failure.code) or " ".join(retry.failure.message.split())
    seconds = f"{retry.delay_s:.0f}" if retry.delay_s >= 1 else f"{retry.delay_s:.1f}"
    return f"retry in {seconds} s: {what}"


_WHY = {"RATE_LIMIT": "rate limited", "OVERLOADED": "the provider is overloaded"}


def tell_waits(ctx: Context) -> None:
    """From now on say in plain lines for what calls wait, and which are tried again."""
    Progress(live=False).listen(ctx)


@contextmanager
def open_progress() -> Generator[Progress]:
    """Progress for one run, live where stderr is a terminal."""
    terminal = bool(sys.stderr) and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    progress = Progress(live=terminal)
    try:
        yield progress
    finally:
        progress.close()
