"""Measures a conversation against a window: sizes of its messages, its whole units, what fills it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.core.llm.messages import HUMAN, AssistantMessage, Message, ToolMessage
from leadline.core.llm.tokens import header_tokens, message_tokens, ratio_of, text_tokens
from leadline.core.session.events import AssistantSaid, RequestHeader, RequestSent
from leadline.window.events import Filling

if TYPE_CHECKING:
    from leadline.core.session.log import Session


@dataclass(frozen=True)
class Unit:
    """Messages that stand or fall together: one message, or an answer with the results of all its calls."""

    start: int
    end: int
    """Exclusive."""
    tokens: int


class Gauge:
    """The sizes of one conversation, in tokens as its model counts them."""

    def __init__(self, messages: Sequence[Message], header: RequestHeader | None, ratio: float = 1.0) -> None:
        """`ratio`: what the model's provider counts for each token of the estimate."""
        self.messages = tuple(messages)
        self.ratio = ratio
        self.header = 0 if header is None else round(header_tokens(header.system, header.tools) * ratio)
        self._header = header
        self.sizes = tuple(max(1, round(message_tokens(message) * ratio)) for message in self.messages)

    @property
    def total(self) -> int:
        """The whole request."""
        return self.header + sum(self.sizes)

    def message(self, message: Message) -> int:
        """A further message."""
        return max(1, round(message_tokens(message) * self.ratio))

    def text(self, text: str) -> int:
        """A text of its own."""
        return round(text_tokens(text) * self.ratio)

    def units(self) -> list[Unit]:
        """The conversation in whole units, in order."""
        made: list[Unit] = []
        start = 0
        pending: set[str] = set()
        for at, message in enumerate(self.messages):
            if isinstance(message, AssistantMessage):
                pending = {call.id for call in message.tool_calls}
            elif isinstance(message, ToolMessage):
                pending.discard(message.call_id)
            if not pending:
                made.append(Unit(start, at + 1, sum(self.sizes[start : at + 1])))
                start = at + 1
        return made

    def unread(self) -> int:
        """Place of the first message that no answer stands behind: the model has not been shown it yet.

        The latest answer is counted among them, as its results belong to it.
        """
        for at in range(len(self.messages) - 1, -1, -1):
            if isinstance(self.messages[at], AssistantMessage):
                return at
        return 0

    def parts(self) -> tuple[Filling, ...]:
        """What fills the window, the largest part first."""
        found: dict[str, tuple[int, int]] = {}
        if self._header is not None:
            found["system text"] = (self.text(self._header.system), 0)
            found["tool schemas"] = (max(0, self.header - found["system text"][0]), 0)
        for message, size in zip(self.messages, self.sizes, strict=True):
            tokens, count = found.get(name := _part(message), (0, 0))
            found[name] = (tokens + size, count + 1)
        parts = (Filling(what, tokens, count) for what, (tokens, count) in found.items() if tokens)
        return tuple(sorted(parts, key=lambda part: -part.tokens))


def _part(message: Message) -> str:
    if isinstance(message, ToolMessage):
        return f"results of {message.name}"
    if isinstance(message, AssistantMessage):
        return "answers"
    if message.source.kind == HUMAN.kind:
        return "user's messages"
    return f"{message.source.form or 'messages'} of {message.source.name or message.source.kind}"


def table(parts: Sequence[Filling]) -> str:
    """The parts as lines of text."""
    width = max((len(f"{part.tokens:,}") for part in parts), default=0)
    return "\n".join(
        f"{part.tokens:>{width},} tokens  {part.what}"
        + (f" ({part.messages} message{'s' if part.messages != 1 else ''})" if part.messages else "")
        for part in parts
    )


def reported_ratio(session: Session, model: str) -> float:
    """What the provider counted for each token of the estimate, in the latest answered request to `model`; 1 where nothing is known."""
    usage: AssistantSaid | None = None
    for line in reversed(session.logged):
        if line.type == AssistantSaid.TYPE:
            event = session.event(line)
            usage = event if isinstance(event, AssistantSaid) else None
        elif line.type == RequestSent.TYPE and usage is not None:
            sent = session.event(line)
            reported = usage.usage.prompt if usage.usage is not None else None
            if (
                isinstance(sent, RequestSent)
                and sent.model == model
                and sent.tokens
                and reported
                and reported >= sent.tokens // 2  # less is what was new to a cache, and not the prompt
            ):
                return ratio_of(sent.tokens, reported)
            usage = None
    return 1.0
