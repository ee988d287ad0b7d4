"""What an agent refuses.

LeadlineError
└── AgentError
    ├── AgentDisposed     the agent takes no more input: it is being disposed, or was
    ├── UnknownMessage    no queued message has this id
    ├── DuplicateMessage  the id is queued already, or was entered before
    └── UnknownAgent      no live agent has this id
"""

from __future__ import annotations

from leadline.kernel.errors import LeadlineError


class AgentError(LeadlineError):
    """Root of what an agent refuses."""


class AgentDisposed(AgentError):
    """The agent is being disposed or was disposed."""

    def __init__(self, agent_id: str) -> None:
        super().__init__(
            f"agent {agent_id} is disposed and takes no input; open its session again with Agents.resume"
        )
        self.agent_id = agent_id


class UnknownMessage(AgentError):
    """No queued message has this id: it was entered, cancelled, or never sent."""

    def __init__(self, message_id: str) -> None:
        super().__init__(
            f"no queued message is called {message_id!r}: it has entered a turn, was cancelled, or was never sent"
        )
        self.message_id = message_id


class DuplicateMessage(AgentError):
    """A message id is used a second time."""

    def __init__(self, message_id: str) -> None:
        super().__init__(f"message id {message_id!r} is queued already; give every message an id of its own")
        self.message_id = message_id


class UnknownAgent(AgentError):
    """No live agent has this id."""

    def __init__(self, agent_id: str) -> None:
        super().__init__(
            f"no live agent is called {agent_id!r}; create one, or open its session with Agents.resume"
        )
        self.agent_id = agent_id
