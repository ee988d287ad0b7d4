"""What the log of a run says its roles did: which attempts there were, and which answers need not be asked again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from leadline.core.session.events import Event
from leadline.research.events import (
    UNFINISHED,
    Ended,
    Resumed,
    RoleEnded,
    RoleStarted,
    UnitEnded,
    UnitStarted,
)


@dataclass
class Attempt:
    """One attempt at one piece of work."""

    key: str
    number: int
    """From 1."""
    child: str | None = None
    """The session in which it is made; None before there is one."""
    ended: RoleEnded | None = None
    """What became of it; None where it was cut off, or has not begun."""
    begun: int = 0
    """How many events of the run stand before it."""
    doubtful: bool = False
    """Whether units that had failed when it began were tried again since: it counts only if it was asked the same."""

    @property
    def settled(self) -> bool:
        """Whether its answer is a fact. One that was cancelled goes on when the run does."""
        return self.ended is not None and self.ended.status != "cancelled"


def _attempts() -> defaultdict[str, list[Attempt]]:
    return defaultdict(list)


@dataclass
class RoleLog:
    """A fold of the run's events, and how far the method that runs now has got through it."""

    _attempts: defaultdict[str, list[Attempt]] = field(default_factory=_attempts)
    _numbers: Counter[str] = field(default_factory=Counter[str])
    """The highest number of an attempt, by key; those that count no more included."""
    _asked: Counter[str] = field(default_factory=Counter[str])
    _over: bool = False
    _at: int = 0
    """How many events were folded."""
    _children: set[str] = field(default_factory=set[str])
    _unit_children: set[str | None] = field(default_factory=set[str | None])
    _failed: dict[str, int] = field(default_factory=dict[str, int])
    """Units that came to nothing, and how many events stand before that."""
    _ended: dict[tuple[str, int], RoleEnded] = field(default_factory=dict[tuple[str, int], RoleEnded])

    @classmethod
    def of(cls, events: Iterable[Event]) -> RoleLog:
        """After these events; nothing has been asked yet."""
        log = cls()
        for event in events:
            log._add(event)
        return log

    def _add(self, event: Event) -> None:
        self._at += 1
        match event:
            case RoleStarted():
                self._numbers[event.key] = max(self._numbers[event.key], event.attempt)
                self._children.add(event.child)
                counting = [one for one in self._attempts[event.key] if not one.doubtful]
                begun = Attempt(event.key, event.attempt, event.child, begun=self._at)
                self._attempts[event.key] = [*counting, begun]
            case UnitStarted():
                self._unit_children.add(event.child)
            case UnitEnded():
                self._failed.pop(event.unit, None)
                if event.status in UNFINISHED:
                    self._failed[event.unit] = self._at
            case RoleEnded():
                self._ended[event.key, event.attempt] = event
                for attempt in self._attempts[event.key]:
                    if attempt.number == event.attempt:
                        attempt.ended = event
            case Ended():
                self._over = True
            case Resumed() if self._over:
                self._over = False
                self._forget_failures()
            case _:
                pass

    def _forget_failures(self) -> None:
        """A run that ended and goes on does so since something may now work that failed.

        Where only the model could not be reached, or the budget was used up, the attempt goes on; any other failure
        is of the attempt.
        """
        for key, attempts in self._attempts.items():
            for one in attempts:
                if one.ended is not None and (one.ended.unreachable or one.ended.ceiling is not None):
                    self._ended.pop((one.key, one.number), None)
                    one.ended = None
            self._attempts[key] = [
                one for one in attempts if one.ended is None or one.ended.status != "failed"
            ]
        self._doubt_what_followed()

    def _doubt_what_followed(self) -> None:
        """What was begun behind a unit that failed, such as a report, was begun on less than there may be now."""
        since = min(self._failed.values(), default=self._at)
        self._failed.clear()
        for attempts in self._attempts.values():
            for one in attempts:
                if one.begun > since and one.child not in self._unit_children:
                    one.doubtful = True

    def next(self, key: str) -> Attempt:
        """The attempt that a method asks for now: the next one in the log, else a new one."""
        at = self._asked[key]
        self._asked[key] += 1
        known = self._attempts[key]
        if at < len(known):
            return known[at]
        return self.new(key)

    def new(self, key: str) -> Attempt:
        """A new attempt, numbered behind all that there were."""
        self._numbers[key] += 1
        return Attempt(key, self._numbers[key])

    @property
    def unsettled(self) -> Sequence[Attempt]:
        """Attempts that were cut off."""
        return [one for attempts in self._attempts.values() for one in attempts if not one.settled]

    @property
    def void(self) -> frozenset[str]:
        """Sessions of attempts that count no more, since the run went on after an end."""
        counting = {one.child for attempts in self._attempts.values() for one in attempts}
        return frozenset(self._children - counting)

    @property
    def settled(self) -> Sequence[RoleEnded]:
        """What every attempt that ended for good came to, those that count no more included."""
        return [one for one in self._ended.values() if one.status != "cancelled"]
