"""What delegation is: a request, a run, a result, and the drivers that can carry one out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from leadline.core.agent.spec import CallOptions, TurnBudget
from leadline.core.llm.request import Purpose
from leadline.core.llm.usage import Usage
from leadline.kernel.services import Service
from leadline.orchestration.subagent.errors import UnsupportedCapability

if TYPE_CHECKING:
    from leadline.core.agent.agent import Agent
    from leadline.core.llm.failure import LlmFailure
    from leadline.core.llm.jsonvalue import JsonObject, JsonValue
    from leadline.core.llm.request import ModelRef
    from leadline.core.spend.account import Account
    from leadline.core.tools.spec import Tool
    from leadline.kernel.context import Context

StopReason: TypeAlias = Literal["completed", "aborted", "error", "max-tokens", "refusal"]
Mode: TypeAlias = Literal["spawn", "fork"]
Capability: TypeAlias = Literal["fork", "output_schema", "depth_limit", "tools", "own_tools", "persona"]
Check: TypeAlias = "Callable[[JsonValue], Sequence[str]]"

NO_USABLE_OUTPUT = "no usable output"
"""How the diagnostic of work begins whose model handed nothing in that fits the schema."""
MAX_DIAGNOSTIC_BYTES = 4096
DELEGATE = Purpose("subagent/turn")


@dataclass(frozen=True, kw_only=True)
class SubagentRequest:
    """One piece of work for a child."""

    parent: Agent
    """Whose child: the child is one deeper, has at most its authority, and ends before it."""
    prompt: str
    mode: Mode = "spawn"
    """`spawn`: an empty history. `fork`: the parent's completed turns come first."""
    persona: str = ""
    output_schema: JsonObject | None = None
    """JSON Schema of an object; the child then has to answer with the tool `structured_output`."""
    check: Check | None = None
    """What a schema cannot say about the output: the problems with a value, told to the child."""
    tools: tuple[str, ...] | None = None
    """Which of the tools it would inherit it may use; None: all of them."""
    own_tools: tuple[Tool, ...] = ()
    """Tools registered for the child alone; `tools` does not filter them."""
    model: ModelRef | None = None
    """None: the parent's."""
    options: CallOptions = field(default_factory=CallOptions)
    purpose: Purpose = DELEGATE
    label: str = ""
    announce: Callable[[str], None] | None = None
    """Told the id of the child's session before the child is set to work, so that who needs to find it again can
    write it down first. If it raises, nothing is started."""
    max_depth: int = 3
    """Deepest position a child may have; a root agent's child has depth 1."""
    budget: TurnBudget = field(default_factory=TurnBudget)
    account: Account | None = None
    """Whom the child's calls are charged to; None: an account of its own that draws on the parent's."""
    proceed: bool = False
    """Whether a child that is taken up goes on also where its last turn had used up its budget."""
    driver: str = "in-process"

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """What a driver has to be able to do for this request."""
        wanted: tuple[tuple[Capability, bool], ...] = (
            ("fork", self.mode == "fork"),
            ("output_schema", self.output_schema is not None or self.check is not None),
            ("tools", self.tools is not None),
            ("own_tools", bool(self.own_tools)),
            ("persona", bool(self.persona)),
        )
        return tuple(capability for capability, needed in wanted if needed)


@dataclass(frozen=True, kw_only=True)
class SubagentResult:
    """What became of the work. A child's failure is one of these, never an exception."""

    output: str
    """The child's last words, visible text only."""
    structured: JsonValue = None
    """The output that was asked for; only where `stop_reason` is `completed` and a schema was given."""
    stop_reason: StopReason
    diagnostic: str | None = None
    """Why it did not complete, at most 4,096 bytes of UTF-8."""
    failure: LlmFailure | None = None
    """Given where the model's provider failed, so that the child's work says nothing about its task."""
    usage: Usage = field(default_factory=Usage)
    """Tokens of all the child's model calls, failed attempts included, its own children left out."""


class SubagentRun(Protocol):
    """A child at work. Whoever starts one disposes it."""

    @property
    def id(self) -> str:
        """The run's id: that of the child's session."""
        ...

    @property
    def session_id(self) -> str:
        """The child's session, readable after the run."""
        ...

    @property
    def agent(self) -> Agent | None:
        """The child, where the driver runs it in this process."""
        ...

    async def result(self) -> SubagentResult:
        """What became of the work, once all of it has stopped. The same value whenever asked."""
        ...

    async def cancel(self, reason: str = "") -> None:
        """Stop the work; returns when nothing of it runs or writes."""
        ...

    async def dispose(self) -> None:
        """Cancel and free everything but the child's session file. Idempotent."""
        ...


class SubagentDriver(ABC):
    """One way to carry out requests."""

    name: str
    capabilities: frozenset[Capability]

    @abstractmethod
    async def start(self, request: SubagentRequest) -> SubagentRun:
        """A run whose child is published and at work.

        Raises:
            SubagentDepthError, OutputSchemaError, SubagentNotStarted: nothing is left behind.
        """

    async def resume(self, request: SubagentRequest, session_id: str) -> SubagentRun:
        """The run of a child that an earlier process started; see `Subagents.resume`.

        Raises:
            UnsupportedCapability: this driver takes no work up again.
            as `start`, and SessionNotFound, SessionLocked, SessionNotContinuable, ... as `SessionStore.open`:
            the child's log is as it was.
        """
        raise UnsupportedCapability(self.name, ("resume",))


class Subagents(Service, key="subagents"):
    """Starts children through named drivers."""

    @abstractmethod
    def register(self, ctx: Context, driver: SubagentDriver) -> None:
        """Offer a driver for as long as `ctx` lives.

        Raises:
            DuplicateDriver: the name is taken.
        """

    @abstractmethod
    async def start(self, request: SubagentRequest) -> SubagentRun:
        """Start a child; returns once it is at work.

        Raises:
            UnknownDriver, UnsupportedCapability, SubagentDepthError, OutputSchemaError,
            SubagentNotStarted: nothing was started.
        """

    @abstractmethod
    async def resume(self, request: SubagentRequest, session_id: str) -> SubagentRun:
        """Go on with the work of a child where its log ends; `request` is the one it was started with.

        What the log has is a fact: answers and results are not asked for again, an output that was accepted is the
        output, and work that was done is settled at once. What `check` was shown before it is shown again, in
        the same order. A turn that was cut off goes on; one that was aborted or failed is followed by another.

        Raises:
            UnknownDriver, UnsupportedCapability, SubagentDepthError, OutputSchemaError, SubagentNotStarted,
            SessionNotFound, SessionLocked, SessionNotContinuable, ...: nothing was started.
        """
