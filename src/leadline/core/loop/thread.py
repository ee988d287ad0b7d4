"""What the loop keeps of one agent between its turns: all of it can be read from the log again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.core.llm.messages import AssistantMessage, Conversation, MessageSource, Text, UserMessage
from leadline.core.llm.request import CallConfig, LlmRequest, Purpose
from leadline.core.prompt.epoch import Epoch
from leadline.core.session.codec import canonical
from leadline.core.session.events import RequestHeader

if TYPE_CHECKING:
    from leadline.core.agent.agent import Agent
    from leadline.core.llm.jsonvalue import JsonObject
    from leadline.core.prompt.sections import Assembled, PromptSections
    from leadline.core.tools.registry import ToolRegistry

SNAPSHOT = MessageSource("plugin", "prompt", "snapshot")
"""The source of messages that state the current facts."""

KEPT_PURPOSE_BYTES = 1024


@dataclass(frozen=True)
class LoggedPurpose:
    """A purpose in the form in which `request/sent` carries it."""

    purpose: Purpose
    data: JsonObject | None
    digest: str

    @classmethod
    def of(cls, purpose: Purpose) -> LoggedPurpose:
        """Facts that are small are kept, others named by their digest."""
        if not purpose.data:
            return cls(purpose, None, "")
        encoded = canonical(purpose.data)
        if len(encoded) <= KEPT_PURPOSE_BYTES:
            return cls(purpose, purpose.data, "")
        from hashlib import sha256  # noqa: PLC0415 - large purposes are rare

        return cls(purpose, None, sha256(encoded).hexdigest())


class Thread:
    """The fold of an agent's log that each of its requests is made from."""

    def __init__(self, agent: Agent, prompt: PromptSections, tools: ToolRegistry) -> None:
        session = agent.session
        self.derived = session.derived()
        self.epoch = Epoch(prompt, tools, agent.ctx.scope)
        self.header = session.last(RequestHeader)
        """The latest that is in the log."""
        self.purpose = LoggedPurpose.of(agent.spec.purpose)
        self.call_ids: set[str] = set()
        """Ids of tool calls that the conversation has used."""
        self.snapshot: str | None = None
        """The text of the latest snapshot that the model still sees."""
        self._assembled: Assembled | None = None
        self._first_reason = "initial" if self.header is None else "resume"
        self._read(self.derived.conversation)

    def new_header(self, config: CallConfig) -> RequestHeader | None:
        """The header that has to be logged before the next request; None where the latest still holds.

        Raises:
            PromptError: the system prompt cannot be assembled.
        """
        assembled, header = self.epoch.current(), self.header
        if header is not None and assembled is self._assembled and header.config == config:
            return None
        same = (
            header is not None
            and header.config == config
            and header.system == assembled.system
            and header.tools == assembled.tools
        )
        self._assembled = assembled
        if same:
            return None
        reason = self._first_reason
        self._first_reason = "change"
        return RequestHeader(
            config=config,
            system=assembled.system,
            tools=assembled.tools,
            reason="initial" if reason == "initial" else "resume" if reason == "resume" else "change",
        )

    def request(self, header: RequestHeader, conversation: Conversation) -> LlmRequest:
        """The request that the log now stands for."""
        return request_of(header, self.purpose.purpose, conversation)

    def _read(self, conversation: Conversation) -> None:
        for message in conversation:
            if isinstance(message, AssistantMessage):
                self.call_ids.update(call.id for call in message.tool_calls)
            elif isinstance(message, UserMessage) and message.source == SNAPSHOT:
                self.snapshot = "".join(part.text for part in message.content if isinstance(part, Text))


def request_of(header: RequestHeader, purpose: Purpose, conversation: Conversation) -> LlmRequest:
    """The request that a header and a conversation make: the one way, for sending and for auditing."""
    return LlmRequest(header.config, purpose, header.system, header.tools, conversation)
