"""The seam between an agent and what runs its turns."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anyio import CancelScope, Event

from leadline.core.session.events import AbortCause
from leadline.kernel.services import Service

if TYPE_CHECKING:
    from leadline.core.agent.agent import Agent


@dataclass
class Abort:
    """The one way to end a turn from outside; the first cause wins."""

    scope: CancelScope = field(default_factory=CancelScope)
    cause: AbortCause | None = None
    ended: Event = field(default_factory=Event)
    """Set when the turn is over and nothing of it runs."""

    def abort(self, cause: AbortCause) -> None:
        """End the turn with `cause`, unless it is ending already."""
        if self.cause is None:
            self.cause = cause
            self.scope.cancel()


class Driver(Service, key="driver"):
    """Runs the turns of agents. `core/loop` provides it; another one may replace it."""

    @abstractmethod
    async def run_turn(self, agent: Agent, abort: Abort, *, proceed: bool = False) -> None:
        """Run one turn of `agent`, from `turn/start` to `turn/end`.

        `proceed`: go on with the latest turn where it is open in the log, or was aborted, interrupted or left by the
        model's provider; else ask the model even though nothing waits in the inbox. Without it a turn that is open is closed as interrupted first.

        Both facts are in the log when this returns, whatever happened between them, cancellation
        through `abort` included. Expected failure is the turn's end, not an exception.
        """
