"""The points at which plugins see and steer an agent.

All are dispatched on the agent's own context: global listeners hear every agent, a listener on an
agent's context hears that agent and its descendants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from leadline.kernel.signals import Around, First, Gather, Notice

if TYPE_CHECKING:
    from leadline.core.agent.agent import Agent, Status
    from leadline.core.llm.failure import LlmFailure
    from leadline.core.llm.messages import UserMessage
    from leadline.core.llm.request import CallConfig
    from leadline.core.llm.stream import StreamEvent
    from leadline.core.session.events import TurnEnd
    from leadline.core.spend.limiter import Waiting


@dataclass(frozen=True)
class AgentCreated(Notice):
    """An agent is live: it can be found, told things and listened to."""

    agent: Agent


@dataclass(frozen=True)
class AgentDisposed(Notice):
    """An agent's work has stopped and all that belonged to it is undone."""

    agent: Agent


@dataclass(frozen=True)
class AgentStatusChanged(Notice):
    """An agent went to work, or came to rest."""

    agent: Agent
    status: Status


InboxChange: TypeAlias = Literal["inserted", "claimed", "cancelled", "dropped", "replaced"]


@dataclass(frozen=True)
class InboxChanged(Notice):
    """Messages entered or left an agent's queue; the fact is in the log already."""

    agent: Agent
    change: InboxChange
    messages: tuple[UserMessage, ...]


@dataclass(frozen=True)
class TurnEnded(Notice):
    """A turn is over and its end is in the log."""

    agent: Agent
    end: TurnEnd


@dataclass(frozen=True)
class Streamed(Notice):
    """A model said something, live. It is not history until the attempt has ended properly."""

    agent: Agent
    turn: int
    step: int
    attempt: int
    event: StreamEvent


@dataclass(frozen=True)
class AttemptReset(Notice):
    """What was streamed by this attempt counts for nothing: drop it from every view."""

    agent: Agent
    turn: int
    step: int
    attempt: int


@dataclass(frozen=True)
class Enter:
    """The step goes ahead with these messages: those that were claimed, fewer, changed or more."""

    messages: tuple[UserMessage, ...]


@dataclass(frozen=True)
class Reject:
    """The step does not happen; the turn ends `blocked` with this reason."""

    reason: str


StepDecision: TypeAlias = Enter | Reject


@dataclass(frozen=True)
class PreStep(Around[StepDecision]):
    """Messages are about to enter a step; they are still queued, so nothing that fails here loses them."""

    agent: Agent
    turn: int
    step: int
    messages: tuple[UserMessage, ...]


@dataclass(frozen=True)
class ProposeRequest(Around["CallConfig"]):
    """How the model is about to be asked; a listener may answer with another configuration."""

    agent: Agent
    config: CallConfig


@dataclass(frozen=True)
class RequestPending(Gather[None]):
    """A request is about to be made from the log. A listener may make what the model sees smaller first.

    It does so with an event that shapes the window (`window/changed`); the request is made from the log as it
    stands when every listener has returned.
    """

    agent: Agent
    turn: int
    step: int
    tokens: int
    """Estimated size of the whole request, what has just entered included."""
    window: int | None
    """Tokens that the model takes, prompt and answer together; None: not known."""
    output: int
    """Tokens that the answer may have."""


@dataclass(frozen=True)
class CallWaiting(Notice):
    """A call to a model stands in line, or the reason why it does has changed."""

    agent: Agent
    waiting: Waiting


@dataclass(frozen=True)
class Retry:
    """Make another attempt within the same step, now."""


@dataclass(frozen=True)
class GiveUp:
    """Let the turn end with this failure, which says more than the one that happened."""

    failure: LlmFailure


@dataclass(frozen=True)
class RequestFailed(First["Retry | GiveUp"]):
    """A request failed and the retry policy has given up; `Retry` takes the recovery over."""

    agent: Agent
    turn: int
    step: int
    attempt: int
    failure: LlmFailure


@dataclass(frozen=True)
class TurnStopping(Gather[None]):
    """The turn is about to end by itself. To object, steer the agent: only a message goes on."""

    agent: Agent
    turn: int
    step: int
