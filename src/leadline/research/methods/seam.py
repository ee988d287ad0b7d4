"""The seam of research methods: what a method is given, what it returns, where methods are found.

A method decides how a run goes from a question to a drafted report. It starts roles through `Run.ask`,
writes facts through `Run.append`, and reads what happened from `Run.ledger`. Everything around it (sources,
checks, rendering, status, cancellation) belongs to the engine.

A run that was interrupted is taken up by running its method again from the start. What was asked is answered
from the log, and what the ledger has is a fact: a method looks there before it works anything out, and does
the same whenever it is given the same answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, Protocol

from leadline.core.llm.jsonvalue import JsonObject, JsonValue
from leadline.core.llm.request import Purpose
from leadline.core.session.events import Event
from leadline.kernel.context import Context
from leadline.kernel.errors import LeadlineError
from leadline.kernel.services import Service
from leadline.research.events import CeilingName, Unit
from leadline.research.ledger.ledger import Ledger
from leadline.research.request import ResearchRequest
from leadline.research.roles.prompts import Role

Phase = Literal["completed", "partial", "failed", "cancelled"]


class UnknownMethod(LeadlineError):
    """No plugin offers the method that was asked for."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        near = get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Known methods: {', '.join(sorted(known)) or 'none'}."
        super().__init__(f"research method {name!r}: no plugin offers it. {hint}")


@dataclass(frozen=True, kw_only=True)
class RoleCall:
    """One role to start: what it reads, what it must return, what it may use."""

    role: Role
    label: str
    purpose: Purpose
    prompt: str
    schema: JsonObject
    check: Callable[[JsonValue], Sequence[str]] | None = None
    """What the schema cannot say; each returned sentence goes back to the model."""
    unit: Unit | None = None
    """The unit whose sources the role may search and whose evidence it may record; None: no sources."""
    part: str = ""
    """What tells this work from other work with the same purpose that is about no unit, such as a section."""

    @property
    def key(self) -> str:
        """What the work is, the same whenever the method is run again: recorded answers are found by it."""
        part = self.unit.id if self.unit is not None else self.part
        return f"{self.purpose.name}/{part}" if part else self.purpose.name


@dataclass(frozen=True, kw_only=True)
class RoleAnswer:
    """How a role ended. A failure is a value: it has an error and may still have a value."""

    status: Phase
    value: JsonValue = None
    error: str | None = None
    unreachable: bool = False
    """Whether it failed because the model cannot be used at all."""
    exhausted: bool = False
    """Whether it used up what one role may spend without coming to an end."""
    ceiling: CeilingName | None = None
    """The ceiling of the run that stopped it, or that kept it from being begun: asking again will not help."""
    child: str | None = None
    """Session of the role, for the record."""


@dataclass(frozen=True, kw_only=True)
class MethodResult:
    """What a method leaves behind beside the ledger."""

    status: Literal["completed", "partial", "failed"]
    """`completed` and `partial`: a `research/drafted` fact is in the ledger."""
    error: str | None = None


class Run(Protocol):
    """What the engine gives to a method."""

    @property
    def request(self) -> ResearchRequest: ...

    @property
    def ledger(self) -> Ledger: ...

    @property
    def corpus_names(self) -> tuple[str, ...]:
        """Names of the folders and files that may be searched."""
        ...

    @property
    def source_calls(self) -> int:
        """Source calls that one unit may make."""
        ...

    def window(self, role: Role) -> int | None:
        """Tokens that the model of a role takes, prompt and answer together; None where that is not known."""
        ...

    def append(self, event: Event) -> None:
        """Write a fact to the run's log; it is folded into `ledger` before this returns."""
        ...

    def relate_versions(self) -> None:
        """Compare the documents that came up and record which is a newer version of which."""
        ...

    def token(self, label: str) -> str:
        """A word that no stored text can know, for fencing what was retrieved; always the same for one label."""
        ...

    async def ask(self, call: RoleCall) -> RoleAnswer:
        """Start a role as a child agent and wait until it has ended and is gone.

        Work of that key which has an answer in the log is not done again; work that was cut off goes on where
        it was. A second call with the same key is another attempt.

        Cancelling the caller ends the child first. The child's failure is a value, never an exception.
        """
        ...


class Method(Protocol):
    """One way of doing research."""

    @property
    def name(self) -> str: ...

    async def run(self, run: Run) -> MethodResult:
        """Research until a report is drafted or nothing more can be had.

        Raises:
            Exception: a defect; the engine ends the run as failed and keeps its evidence.
        """
        ...


class Methods(Service, key="methods"):
    """The methods that are mounted, by name."""

    def __init__(self) -> None:
        self._methods: dict[str, Method] = {}

    def register(self, ctx: Context, method: Method) -> None:
        """Offer a method for as long as the caller's plugin is mounted."""
        if method.name in self._methods:
            raise ValueError(f"research method {method.name!r} is already offered")
        self._methods[method.name] = method
        ctx.defer(f"method {method.name}", lambda: self._remove(method.name))

    def _remove(self, name: str) -> None:
        self._methods.pop(name, None)

    def get(self, name: str) -> Method:
        """The method of that name.

        Raises:
            UnknownMethod: no mounted plugin offers it.
        """
        if name not in self._methods:
            raise UnknownMethod(name, list(self._methods))
        return self._methods[name]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._methods))
