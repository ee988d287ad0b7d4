"""What the loop keeps of one agent between its turns: all of it can be read from the log again."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from leadline.core.llm.messages import (
    AssistantMessage,
    Conversation,
    MessageSource,
    Text,
    ToolMessage,
    UserMessage,
)
from leadline.core.llm.request import CallConfig, LlmRequest, Purpose
from leadline.core.llm.tokens import Estimate, header_tokens, least_tokens
from leadline.core.loop.parts import header_parts, request_parts
from leadline.core.loop.sizing import Size
from leadline.core.loop.windows import Windows
from leadline.core.prompt.epoch import Epoch
from leadline.core.session.codec import canonical
from leadline.core.session.events import AssistantSaid, RequestEnded, RequestHeader, RequestSent

if TYPE_CHECKING:
    from leadline.core.agent.agent import Agent
    from leadline.core.llm.jsonvalue import JsonObject
    from leadline.core.llm.messages import Message
    from leadline.core.prompt.sections import Assembled, PromptSections
    from leadline.core.session.events import RequestParts
    from leadline.core.session.log import Session
    from leadline.core.tools.registry import ToolRegistry

SNAPSHOT = MessageSource("plugin", "prompt", "snapshot")
"""The source of messages that state the current facts."""


class Thread:
    """The fold of an agent's log that each of its requests is made from."""

    def __init__(self, agent: Agent, prompt: PromptSections, tools: ToolRegistry) -> None:
        session = agent.session
        self._session = session.id
        self.derived = session.derived()
        self.epoch = Epoch(prompt, tools, agent.ctx.scope)
        self.header = session.last(RequestHeader)
        """The latest that is in the log."""
        self._sealed = agent.spec.seed is not None
        """Whether the header that the session began with holds, whatever the registries give."""
        self.purpose = agent.spec.purpose
        self._purpose_digest = purpose_digest(self.purpose)
        self._purpose_logged = any(
            sent.purpose_data is not None and sent.purpose_digest == self._purpose_digest
            for sent in session.of(RequestSent)
        )
        self.estimate = Estimate()
        """How large requests are, with what was learned from those that were answered."""
        self.windows = Windows()
        """What was learned of the windows of its models."""
        self.call_ids: set[str] = set()
        """Ids of tool calls that the conversation has used."""
        self.snapshot: str | None = None
        """The text of the latest snapshot that the model still sees."""
        self._assembled: Assembled | None = None
        self._parts: tuple[RequestHeader, RequestParts] | None = None
        self._first_reason = "initial" if self.header is None else "resume"
        self._read(self.derived.conversation)
        self._learn(session)

    def new_header(self, config: CallConfig) -> RequestHeader | None:
        """The header that has to be logged before the next request; None where the latest still holds.

        Raises:
            PromptError: the system prompt cannot be assembled.
        """
        if self._sealed and self.header is not None:
            return None
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

    def size(self, header: RequestHeader, conversation: Conversation) -> Size:
        """How large the request is that they make."""
        raw = self.estimate.size(header.system, header.tools, conversation)
        model = str(header.config.model)
        return Size(raw, self.estimate.corrected(raw, model), self.estimate.knows(model))

    def least(self, header: RequestHeader, conversation: Conversation) -> int:
        """Tokens that no tokeniser goes below for the texts of that request."""
        return least_tokens(header.system) + sum(map(_least, conversation))

    def kept(self, conversation: Conversation) -> int:
        """Tokens that are certain of the parts of the next request that no server leaves out: its head, its end."""
        header = self.header
        total = 0 if header is None else header_tokens(header.system, header.tools) // 2
        for at in range(len(conversation) - 1, -1, -1):
            if isinstance(conversation[at], AssistantMessage):
                break
            total += _least(conversation[at])
        return total

    def request(self, header: RequestHeader, conversation: Conversation) -> LlmRequest:
        """The request that the log now stands for."""
        return request_of(header, self.purpose, conversation, self._session)

    def parts(self, header: RequestHeader, conversation: Conversation) -> RequestParts:
        """What the request is made of, for its `request/sent`."""
        if self._parts is None or self._parts[0] is not header:
            self._parts = (header, header_parts(header))
        return request_parts(self._parts[1], conversation)

    def purpose_fields(self) -> tuple[JsonObject | None, str]:
        """The purpose's facts as the next `request/sent` carries them: whole once, by their digest after that."""
        if self._purpose_logged or not self._purpose_digest:
            return None, self._purpose_digest
        return self.purpose.data, self._purpose_digest

    def purpose_was_logged(self) -> None:
        """A `request/sent` with the purpose's facts is in the log."""
        self._purpose_logged = True

    def _learn(self, session: Session) -> None:
        """Take in what providers reported for the requests that are logged."""
        sent: RequestSent | None = None
        for logged in session.logged:
            if logged.type == RequestSent.TYPE:
                sent = session.event(logged)  # pyright: ignore[reportAssignmentType]  # the class of that type
            elif logged.type == AssistantSaid.TYPE and sent is not None and sent.tokens is not None:
                said = session.event(logged)
                # Half of the estimate and less is what was new to a cache, or cut off: no size of the prompt.
                if (
                    isinstance(said, AssistantSaid)
                    and said.usage is not None
                    and (said.usage.prompt or 0) >= sent.tokens // 2
                ):
                    self.estimate.learn(sent.model, sent.tokens, said.usage.prompt)
                    self.windows.answered(sent.model, said.usage.prompt)
            elif logged.type == RequestEnded.TYPE and sent is not None:
                ended = session.event(logged)
                if isinstance(ended, RequestEnded) and ended.failure is not None:
                    self.windows.refused(sent.model, ended.failure)

    def _read(self, conversation: Conversation) -> None:
        for message in conversation:
            if isinstance(message, AssistantMessage):
                self.call_ids.update(call.id for call in message.tool_calls)
            elif isinstance(message, UserMessage) and message.source == SNAPSHOT:
                self.snapshot = "".join(part.text for part in message.content if isinstance(part, Text))


def _least(message: Message) -> int:
    if isinstance(message, ToolMessage):
        return least_tokens(message.content)
    return sum(least_tokens(part.text) for part in message.content if isinstance(part, Text))


def purpose_digest(purpose: Purpose) -> str:
    """sha256 in hex of the purpose's facts as canonical JSON; empty where it has none."""
    return sha256(canonical(purpose.data)).hexdigest() if purpose.data else ""


def request_of(
    header: RequestHeader, purpose: Purpose, conversation: Conversation, session: str = ""
) -> LlmRequest:
    """The request that a header and a conversation make: the one way, for sending and for auditing."""
    return LlmRequest(header.config, purpose, header.system, header.tools, conversation, session)
