"""Chooses the older part of a conversation, and writes what stands in its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leadline.core.llm.messages import (
    AssistantMessage,
    Message,
    MessageSource,
    Text,
    ToolMessage,
    UserMessage,
)
from leadline.core.session.events import UserEntered
from leadline.core.session.log import Session
from leadline.window.gauge import Gauge

SUMMARY = MessageSource("plugin", "window", "summary")
"""The source of messages that stand for earlier ones. Nobody said them."""

SAID_BY = frozenset({"user", "agent"})
"""Whose words are kept as they are: a person's, and those of the agent that gave the work."""

_SHOWN = 60
"""Characters of a message that are shown where only its place is told."""


@dataclass(frozen=True)
class Span:
    """A run of whole units."""

    start: int
    end: int
    """Exclusive."""
    tokens: int

    def ids(self, messages: Sequence[Message]) -> tuple[str, str]:
        """Of the first and of the last message."""
        return messages[self.start].id, messages[self.end - 1].id


def span_to_replace(gauge: Gauge, keep: int, start: int = 0) -> Span | None:
    """Everything from message `start` on but the newest units of up to `keep` tokens; None where nothing is left.

    The latest answer with its results, and what came after it, always stays: the model has not answered it yet.
    """
    unread, kept = gauge.unread(), 0
    for unit in reversed(gauge.units()):
        if unit.start >= unread or kept + unit.tokens <= keep:
            kept += unit.tokens
            continue
        if unit.end <= start:
            return None
        return Span(start, unit.end, sum(gauge.sizes[start : unit.end]))
    return None


def beginning(gauge: Gauge, span: Span, most: int) -> Span | None:
    """As much of the beginning of `span` as a request of `most` tokens holds; None where that is nothing."""
    end, left = span.start, most - gauge.header - sum(gauge.sizes[: span.start])
    for unit in gauge.units():
        if unit.start < span.start:
            continue
        if unit.end > span.end or unit.tokens > left:
            break
        end, left = unit.end, left - unit.tokens
    return Span(span.start, end, sum(gauge.sizes[span.start : end])) if end > span.start else None


@dataclass(frozen=True)
class Bounds:
    """Tokens that the sections of a replacement may have."""

    words: int
    carried: int
    places: int

    @classmethod
    def of(cls, room: int) -> Bounds:
        """For a window in which a prompt may have `room` tokens."""
        return cls(
            words=min(max(room // 10, 200), 6000),
            carried=min(max(room // 6, 300), 12000),
            places=min(max(room // 40, 100), 1500),
        )


def replacement(
    message_id: str,
    gauge: Gauge,
    span: Span,
    *,
    summary: str,
    words: Sequence[UserMessage],
    carried: Sequence[str],
    bounds: Bounds,
    recall: bool,
) -> UserMessage:
    """The message that stands for the span: `summary`, empty where there is none, and what is no matter of memory."""
    replaced = gauge.messages[span.start : span.end]
    sections = [
        f"[This stands for {len(replaced)} earlier messages of this conversation. The program wrote it; nobody said it, "
        "and it asks for nothing.]"
    ]
    if summary:
        sections.append(f"## Summary\n\n{summary.strip()}")
    said = _verbatim(gauge, words, bounds.words, recall=recall)
    if said:
        sections.append(f"## What was asked, word for word\n\n{said}")
    state = _bounded(gauge, [text.strip() for text in carried if text.strip()], bounds.carried)
    if state:
        sections.append("## As it stands now\n\n" + "\n\n".join(state))
    places = _places(gauge, replaced, bounds.places * (1 if summary else 3), everything=not summary)
    if recall and places:
        sections.append("## What can be read again with recall, by id\n\n" + "\n".join(places))
    return UserMessage(message_id, (Text("\n\n".join(sections)),), SUMMARY)


def words_said(session: Session, shown: Iterable[Message]) -> list[UserMessage]:
    """What was asked of the session by those whose words are kept, without what the model still sees as it is."""
    seen = {message.id for message in shown}
    return [
        entered.message
        for entered in session.of(UserEntered)
        if entered.message.source.kind in SAID_BY and entered.message.id not in seen
    ]


def _verbatim(gauge: Gauge, words: Sequence[UserMessage], bound: int, *, recall: bool) -> str:
    """The words, whole as far as they fit: the first, then the newest. What does not fit is named."""
    kept: dict[str, str] = {}
    left, skipped = bound, 0
    for message in (*words[:1], *reversed(words[1:])):
        text = _text(message).strip()
        if not text or message.id in kept:
            continue
        size = gauge.text(text)
        if size > left and not kept:
            # What the work is about is never left out: its beginning and its end stay.
            text = _cut(text, max(200, int(len(text) * left / size)), message.id, recall=recall)
            size = gauge.text(text)
        if size <= left or not kept:
            kept[message.id] = text
            left -= size
        else:
            skipped += 1
    lines = [f'- (id "{message.id}") {kept[message.id]}' for message in words if message.id in kept]
    if skipped:
        lines.insert(1, f"- ({skipped} further messages are left out here)")
    return "\n".join(lines)


def _cut(text: str, characters: int, message_id: str, *, recall: bool) -> str:
    half = characters // 2
    where = f'; recall it with id "{message_id}"' if recall else ""
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters are left out here{where} ...]\n{text[-half:]}"


def _bounded(gauge: Gauge, texts: Sequence[str], bound: int) -> list[str]:
    """The texts, each whole line by line as far as they fit together."""
    kept: list[str] = []
    left = bound
    for text in texts:
        lines: list[str] = []
        for line in text.splitlines():
            size = gauge.text(line) + 1
            if size > left:
                lines.append("[the rest is left out here]")
                left = 0
                break
            lines.append(line)
            left -= size
        kept.append("\n".join(lines))
        if not left:
            break
    return kept


def _places(gauge: Gauge, replaced: Sequence[Message], bound: int, *, everything: bool) -> list[str]:
    """Where what was replaced can be found, the newest as far as they fit, in their order."""
    lines: list[str] = []
    left = bound
    for message in reversed(replaced):
        line = _place(message, everything=everything)
        if line is None:
            continue
        size = gauge.text(line) + 1
        if size > left:
            break
        lines.append(line)
        left -= size
    return lines[::-1]


def _place(message: Message, *, everything: bool) -> str | None:
    if isinstance(message, ToolMessage):
        return f'- "{message.id}": result of {message.name}, {len(message.content):,} characters'
    if not everything or (isinstance(message, UserMessage) and message.source == SUMMARY):
        return None
    text = " ".join(_text(message).split())
    if not text:
        return None
    who = "answer" if isinstance(message, AssistantMessage) else "message"
    return f'- "{message.id}": {who}: {text[:_SHOWN]}{"…" if len(text) > _SHOWN else ""}'


def _text(message: Message) -> str:
    if isinstance(message, ToolMessage):
        return message.content
    return "".join(part.text for part in message.content if isinstance(part, Text))
