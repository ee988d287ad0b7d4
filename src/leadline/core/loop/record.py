"""Writes the facts of one turn, in as few writes as their order allows."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from leadline.core.session.errors import SessionWriteFailed
from leadline.core.session.events import StepEnd, StepStart, TurnEnd

if TYPE_CHECKING:
    from collections.abc import Generator

    from leadline.core.agent.inbox import Inbox
    from leadline.core.session.events import Event
    from leadline.core.session.log import Session


class Record:
    """The turn as it is written. A fact that is held goes out in front of the next one.

    Only what nothing waits for is held: nobody awaits between holding and writing.
    """

    def __init__(self, session: Session, turn: int, step: int = 0, *, step_open: bool = False) -> None:
        """`step` and `step_open`: where a turn stands that goes on."""
        self.session = session
        self.turn = turn
        self.step = step
        """The step that is open, or was last; 0 before the first."""
        self._step_open = step_open
        self._held: list[Event] = []

    def write(self, *events: Event) -> None:
        """Log what is held and then `events`, in one go.

        Raises:
            SessionWriteFailed: the disk refused; what was held is held still, for the next time.
        """
        held, self._held = self._held, []
        with self._kept(held):
            self.session.append_all([*held, *events])

    @contextmanager
    def _kept(self, held: list[Event]) -> Generator[None]:
        try:
            yield
        except SessionWriteFailed:
            self._held = held
            raise

    def hold(self, event: Event) -> None:
        """Log `event` with whatever is written next."""
        self._held.append(event)

    def flush(self) -> None:
        """Log what is held."""
        if self._held:
            self.write()

    def start_step(self, entering: list[Event], inbox: Inbox) -> None:
        """Open the next step; what enters it leaves the inbox by the same fact."""
        self.step += 1
        self._step_open = True
        start = StepStart(turn=self.turn, step=self.step)
        if entering:
            held, self._held = self._held, []
            with self._kept([*held, start]):
                inbox.enter([*held, start, *entering])
        else:
            self.hold(start)

    def enter(self, entering: list[Event], inbox: Inbox) -> None:
        """Into the step that is open: what had not entered when the process died."""
        if entering:
            held, self._held = self._held, []
            with self._kept(held):
                inbox.enter([*held, *entering])

    def end_step(self) -> None:
        """Close the step."""
        self._step_open = False
        self.hold(StepEnd(turn=self.turn, step=self.step))

    def end_turn(self, end: TurnEnd) -> None:
        """Close the turn, and the step if it is open."""
        if self._step_open:
            self.end_step()
        self.write(end)
