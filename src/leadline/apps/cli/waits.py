"""For what calls wait, and which are tried again, on stderr in plain lines."""

from __future__ import annotations

import time
from collections.abc import Mapping

import anyio

from leadline.apps.cli.streams import say
from leadline.core.agent.signals import CallWaiting
from leadline.core.session.events import LlmRetry, RequestSent, TurnEnd
from leadline.core.session.log import SessionAppended
from leadline.core.spend.lines import Waiting, WaitingFor
from leadline.kernel.context import Context

_WAIT_EVERY_S = 10.0
"""The same wait in line is not told again sooner."""
_SHORT_S = 1.0
"""A wait that is over sooner is not told: nobody would have read of it."""
_TICK_S = 0.5
"""How often it is looked whether a wait has become long."""


class Waits:
    """Tells of waits that are long, and of retries."""

    def __init__(self) -> None:
        self._waits: dict[tuple[str, str], float] = {}
        """When a wait of a kind was last told."""
        self._pending: dict[str, tuple[Waiting, float]] = {}
        """By session: the wait of a call that may be over soon, and since when it waits."""

    def listen(self, ctx: Context) -> None:
        """From now on tell of calls that stand in line, and of those that are tried again."""
        ctx.on(CallWaiting, self._waits_in_line)
        ctx.on(SessionAppended, self._appended)
        ctx.spawn(self._ticking, name="progress")

    def waiting(self, waiting: Waiting, session: str) -> None:
        """A call stands in line."""
        self._pending.pop(session, None)
        if waiting.ahead or (waiting.seconds or 0.0) >= _SHORT_S:
            self._tell(waiting)
        else:
            self._pending[session] = (waiting, time.monotonic())

    def close(self) -> None:
        """Make room for a plain line."""

    async def _ticking(self) -> None:
        while True:
            await anyio.sleep(_TICK_S)
            lately = time.monotonic() - _SHORT_S
            for session, (waiting, since) in tuple(self._pending.items()):
                if since <= lately:
                    del self._pending[session]
                    self._tell(waiting)
            self._ticked()

    def _ticked(self) -> None:
        """Some time has passed."""

    def _tell(self, waiting: Waiting) -> None:
        kind = (waiting.model, waiting.why)
        now = time.monotonic()
        if now - self._waits.get(kind, -_WAIT_EVERY_S) >= _WAIT_EVERY_S:
            self._waits[kind] = now
            say(told_wait(waiting))

    def _over(self) -> None:
        """A call waits no more."""

    def _waits_in_line(self, signal: CallWaiting) -> None:
        self.waiting(signal.waiting, signal.agent.id)

    def _appended(self, signal: SessionAppended) -> None:
        if signal.logged.type in (RequestSent.TYPE, TurnEnd.TYPE):
            self._over()
            self._pending.pop(signal.session.id, None)
        elif signal.logged.type == LlmRetry.TYPE:
            self.close()
            say(told_retry(signal.logged.as_(LlmRetry)))


def tell_waits(ctx: Context) -> None:
    """From now on say in plain lines for what calls wait, and which are tried again."""
    Waits().listen(ctx)


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
