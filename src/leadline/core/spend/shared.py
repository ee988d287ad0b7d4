"""The seam of lines that several processes of one machine stand in together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from leadline.core.llm.limits import RateLimits
from leadline.core.spend.lines import WaitingFor
from leadline.kernel.errors import LeadlineError
from leadline.kernel.services import Service


class SharedLinesUnusable(LeadlineError):
    """What the processes share cannot be used; names the file, the cause and the next step."""


@dataclass(frozen=True, slots=True)
class SharedLimits:
    """The ceilings that one process asks the others to keep with it."""

    max: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A call that is under way, as the other processes see it."""

    number: int


@dataclass(frozen=True, slots=True)
class Held:
    """Why a call of this process has to wait for others."""

    why: WaitingFor
    seconds: float | None
    """Seconds until it may go at the earliest; None: as soon as another process gives up its place."""


@dataclass(frozen=True, slots=True)
class SharedState:
    """One line over all processes."""

    model: str
    active: int
    """Calls that are under way."""
    waiting: int
    """Processes that wait for a place."""
    requests: int
    """Calls of the last minute."""
    tokens: int
    """Tokens of the last minute."""
    paused_s: float | None = None
    ceiling: int | None = None
    """Calls that may be under way at once, as a process learned from refusals."""
    learned: RateLimits | None = None
    """What the provider said last, with the seconds until reset counted from now."""
    learned_ago_s: float | None = None


class SharedLines(Service, key="shared_lines"):
    """Lines of all processes of this machine that use one home directory.

    Nothing here waits: a process asks again. What a process holds is free as soon as the process is gone,
    however it ended. Processes are served about first come, each with one of its calls at a time.
    """

    @abstractmethod
    def take(self, model: str, limits: SharedLimits, tokens: int) -> Place | Held:
        """A place for one call of this process, which is to be given back, or why there is none.

        A process that was told to wait keeps its turn for as long as it asks again, at least once a second,
        or until `leave`.

        Raises:
            SharedLinesUnusable.
        """

    @abstractmethod
    def give_back(self, model: str, place: Place, tokens: int | None, *, made: bool = True) -> None:
        """The call has ended. `tokens`: what it took; None: what was thought. Not `made`: it took nothing at all.

        Raises:
            SharedLinesUnusable.
        """

    @abstractmethod
    def leave(self, model: str) -> None:
        """Nobody of this process waits for others in this line any more.

        Raises:
            SharedLinesUnusable.
        """

    @abstractmethod
    def tell(
        self, model: str, *, learned: RateLimits | None, ceiling: int | None, paused_s: float | None
    ) -> None:
        """Tell the others what this process learned; a pause holds for all of them.

        Raises:
            SharedLinesUnusable.
        """

    @abstractmethod
    def states(self) -> Sequence[SharedState]:
        """Every line that anybody uses or knows something of, by model. Makes nothing where there is none.

        Raises:
            SharedLinesUnusable.
        """
