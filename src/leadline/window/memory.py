"""What a session has had in its window, whether or not a model still sees it: what `recall` reads from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leadline.core.llm.messages import (
    AssistantMessage,
    ImageRef,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from leadline.core.session.derive import derive
from leadline.core.session.events import Spilled, ToolAnswered, WindowChanged
from leadline.core.session.log import Session
from leadline.core.tools.budget import ID_DIGITS

_LEAST_BEGINNING = 8
"""Characters of an id that have to be given at least."""


@dataclass(frozen=True)
class Kept:
    """Something that can be read back."""

    id: str
    """How it is named: a message's id, or the beginning of a blob's hash."""
    what: str
    """What it is, in words."""
    messages: tuple[Message, ...]
    """Where it stands in the log: one message, or those that a summary stands for."""
    outside: bool = True
    """Whether text from elsewhere may be in it."""


class Ambiguous(ValueError):
    """Several things have an id that begins like that."""


class Memory:
    """What one session had in its window, what it inherited as a fork included; nothing of any other session."""

    def __init__(self, session: Session) -> None:
        logged = session.logged
        self._had: dict[str, Message] = {}
        """By id, in the order of the log."""
        for message in derive([line for line in logged if line.type != WindowChanged.TYPE]):
            self._had[message.id] = message
        self._sees = {message.id: message for message in derive(logged)}
        self._spans = {
            changed.summary.id: (changed.first, changed.last)
            for changed in session.of(WindowChanged)
            if changed.summary is not None
        }
        self._spilled: dict[str, Spilled] = {}
        """By the id of the message that has the rest."""
        self._nested: list[tuple[ToolMessage, Spilled]] = []
        for answered in session.of(ToolAnswered):
            if answered.spilled is None:
                continue
            if answered.message.id in self._had:
                self._spilled[answered.message.id] = answered.spilled
            elif answered.root_call_id is not None:
                self._nested.append((answered.message, answered.spilled))

    def spilled(self, message: Message) -> Spilled | None:
        """Where the whole of a message is of which a part was shown."""
        found = self._spilled.get(message.id)
        if found is None:
            found = next((where for nested, where in self._nested if nested.id == message.id), None)
        return found

    def left_out(self) -> list[Kept]:
        """What is not in the window or only in part, in the order of the log."""
        found: list[Kept] = []
        for message in self._had.values():
            if self._sees.get(message.id) is not message and not self._seen_alike(message):
                found.append(self._kept(message))
            elif message.id in self._spilled:
                short = self._spilled[message.id].blob[:ID_DIGITS]
                found.append(Kept(short, self._kept(message).what, (message,)))
        return found

    def _seen_alike(self, message: Message) -> bool:
        return self._sees.get(message.id) == message

    def find(self, name: str) -> Kept | None:
        """What is called `name`: the id of a message or of a tool call, or the beginning of one or of a blob's hash.

        Raises:
            Ambiguous: several begin like that.
        """
        if name in self._had:
            return self._kept(self._had[name])
        if name in self._spans:
            return self._summary(name)
        called = [one for one in self._had.values() if isinstance(one, ToolMessage) and one.call_id == name]
        if called:
            return self._kept(called[-1])
        if len(name) < _LEAST_BEGINNING:
            return None
        found = {kept.id: kept for kept in (*self._blobs(name.lower()), *self._begun(name))}
        if len(found) > 1:
            raise Ambiguous(", ".join(found))
        return next(iter(found.values()), None)

    def _begun(self, name: str) -> Iterator[Kept]:
        yield from (self._kept(one) for one in self._had.values() if one.id.startswith(name))
        yield from (self._summary(one) for one in self._spans if one.startswith(name))

    def _blobs(self, name: str) -> Iterator[Kept]:
        """Results whose blob is called so. The same text stored twice is one blob."""
        seen: set[str] = set()
        own = [(self._had[at], where) for at, where in self._spilled.items()]
        for message, where in (*own, *self._nested):
            if not where.blob.startswith(name) or where.blob in seen:
                continue
            if message.id not in self._had and not self._named(where.blob[:ID_DIGITS]):
                continue  # the tool that made the call did not pass it on
            seen.add(where.blob)
            yield Kept(where.blob[:ID_DIGITS], self._kept(message).what, (message,))

    def _named(self, short: str) -> bool:
        return any(isinstance(one, ToolMessage) and short in one.content for one in self._had.values())

    def _kept(self, message: Message) -> Kept:
        if isinstance(message, ToolMessage):
            return Kept(message.id, f"result of {message.name}", (message,))
        if isinstance(message, AssistantMessage):
            return Kept(message.id, "an answer of the assistant", (message,), outside=False)
        human = message.source.kind == "user"
        what = "words of the user" if human else f"a message of {message.source.name or message.source.kind}"
        return Kept(message.id, what, (message,), outside=not human)

    def _summary(self, summary: str) -> Kept:
        messages = tuple(self._span(summary))
        return Kept(summary, f"{len(messages)} messages that a summary stands for", messages)

    def _span(self, summary: str) -> Iterator[Message]:
        first, last = self._end(summary, 0), self._end(summary, 1)
        ids = list(self._had)
        if first in self._had and last in self._had:
            yield from (self._had[one] for one in ids[ids.index(first) : ids.index(last) + 1])

    def _end(self, message_id: str, side: int) -> str:
        """The first (0) or last (1) message that a summary stands for; that may be a summary again."""
        entered: set[str] = set()
        while message_id in self._spans and message_id not in entered:
            entered.add(message_id)
            message_id = self._spans[message_id][side]
        return message_id


def words_of(message: Message) -> str:
    """A message as text: what was said, and which tools were called."""
    if isinstance(message, ToolMessage):
        return message.content
    parts: Sequence[Text | ImageRef | Reasoning | ToolCall] = message.content
    return "\n".join(filter(None, map(_part, parts)))


def _part(part: Text | ImageRef | Reasoning | ToolCall) -> str:
    match part:
        case Text():
            return part.text
        case ToolCall():
            return f"[you called {part.name}: {part.arguments}]"
        case ImageRef():
            return f"[an image, {part.media_type}]"
        case Reasoning():
            return ""


def role_of(message: Message) -> str:
    """Who a message is from, for a transcript."""
    if isinstance(message, ToolMessage):
        return f"result of {message.name}"
    if isinstance(message, UserMessage):
        return "user" if message.source.kind == "user" else message.source.name or message.source.kind
    return "you"
