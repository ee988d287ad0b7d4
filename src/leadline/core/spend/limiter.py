"""The one place that says when a call of a model may go: a line for each provider and model."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import anyio
from pydantic import BaseModel, ConfigDict, Field

from leadline.core.clock import Clock
from leadline.core.config import ConfigParser
from leadline.core.llm.failure import LlmFailure, Stop
from leadline.core.llm.limits import RateLimits
from leadline.core.spend.lines import Ask, LineState, Waiting
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.kernel.services import Service


class LineConfig(BaseModel):
    """What one model, or each model of a provider, may be asked for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    """``provider/name``, or ``provider/*`` for each model of the provider that has no row of its own."""
    max: int | None = Field(default=None, ge=1)
    """Calls that may be under way at once."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)


class LimiterConfig(BaseModel):
    """How many calls of models may be under way."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    limits: tuple[LineConfig, ...] = ()
    """Ceilings of models; a model that is in none has those that its provider tells."""
    children: int = Field(default=16, ge=1)
    """Calls that agents with a parent may have under way at a time, over the whole process."""
    queue_timeout_s: float = Field(default=600.0, gt=0)
    """Longest wait of one call, in seconds."""
    max_queued: int = Field(default=10_000, ge=1)
    """Calls that may stand in one line; one more is refused at once."""
    shared: bool = True
    """Whether a line with a ceiling is one line for all processes that use this home directory."""


class Permit:
    """The right to make one call. `done` has to be called, however the call ends."""

    __slots__ = ("_done", "ask")

    def __init__(self, ask: Ask, done: Callable[[Permit], None]) -> None:
        self.ask = ask
        self._done: Callable[[Permit], None] | None = done

    def done(
        self,
        tokens: int | None = None,
        limits: RateLimits | None = None,
        failure: LlmFailure | None = None,
    ) -> None:
        """The call has ended; the second time nothing happens. Never raises.

        Args:
            tokens: what it took in all; None: not known, the estimate counts.
            limits: what the response said about rate limits.
            failure: how it failed; None also where it was cancelled.
        """
        done, self._done = self._done, None
        if done is not None:
            done(self)


class _Line:
    def __init__(self) -> None:
        self.active = 0
        self.waiting: deque[tuple[Ask, anyio.Event]] = deque()


class Limiter(Service, key="limiter"):
    """Admits calls to models. One for the whole process."""

    def __init__(self, clock: Clock, config: LimiterConfig | None = None) -> None:
        self._clock = clock
        self.config = config or LimiterConfig()
        self._max = {row.model: row.max for row in self.config.limits}
        self._lines: dict[str, _Line] = {}
        self._children = 0

    async def admit(self, ask: Ask, waiting: Callable[[Waiting], None] | None = None) -> Permit | Stop:
        """A permit, as soon as it is this call's turn; a `Stop` (``CAPACITY``) after `queue_timeout_s`.

        `waiting` is called when a wait begins and when its reason changes, in the task of the caller.
        Cancellation leaves the line and propagates.
        """
        line = self._lines.setdefault(ask.model, _Line())
        if line.waiting or not self._free(line, ask):
            event = anyio.Event()
            place = (ask, event)
            line.waiting.append(place)
            if waiting is not None:
                waiting(Waiting(ask.model, "slots", len(line.waiting) - 1, None))
            try:
                await event.wait()
            except BaseException:
                if place in line.waiting:
                    line.waiting.remove(place)
                else:
                    self._left(ask)
                raise
        else:
            self._take(line, ask)
        return Permit(ask, lambda permit: self._left(permit.ask))

    def lines(self) -> tuple[LineState, ...]:
        """Every line that has somebody in it or knows something, by model."""
        return tuple(
            LineState(model, line.active, len(line.waiting), max=self._max.get(model))
            for model, line in sorted(self._lines.items())
        )

    def _free(self, line: _Line, ask: Ask) -> bool:
        ceiling = self._max.get(ask.model)
        if ceiling is not None and line.active >= ceiling:
            return False
        return not ask.child or self._children < self.config.children

    def _take(self, line: _Line, ask: Ask) -> None:
        line.active += 1
        self._children += ask.child

    def _left(self, ask: Ask) -> None:
        self._lines[ask.model].active -= 1
        self._children -= ask.child
        for model, line in tuple(self._lines.items()):
            while line.waiting and self._free(line, line.waiting[0][0]):
                chosen, event = line.waiting.popleft()
                self._take(line, chosen)
                event.set()
            if not line.active and not line.waiting:
                del self._lines[model]


async def _apply(ctx: Context, config: LimiterConfig) -> None:
    ctx.provide(Limiter, Limiter(ctx.get(Clock), config))


plugin: Plugin[LimiterConfig] = Plugin(
    "limiter",
    _apply,
    config=ConfigParser(LimiterConfig),
    needs=(Clock,),
    provides=(Limiter,),
)
