"""Tools for a model that cannot call them: described in its system text, called and answered in plain text.

A request is rewritten before a wire format encodes it, so that every format carries it. The rewriting is message by
message: what was written once stays as it is, and requests of one conversation still extend each other.
The syntax is specified in ``docs/text-tools.md``.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from leadline.capabilities.models.providers.text_calls import Fault, Syntax, TextCallReader
from leadline.capabilities.models.providers.text_schema import schema_text
from leadline.core.llm.messages import (
    AssistantContent,
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
    WireEncoder,
    commas,
)
from leadline.core.llm.request import LlmRequest, ToolSchema
from leadline.core.llm.stream import Finish, StreamEvent
from leadline.core.llm.wire import encode_text, placeholder
from leadline.core.tools.spec import description_from

NO_OUTPUT = "(no output)"
_KEY_LETTERS = 6
_FAULTS: dict[Fault, str] = {
    "inline": "The block began within a line; its tags have to stand at the beginning of a line.",
    "fenced": "The block stood in a code fence; write it without one.",
    "unclosed": "The block had no closing tag.",
    "followed": "Text stood behind the block. Stop after the last block; you never write results yourself.",
    "tag": "The opening tag did not name a tool in the right form.",
}


@dataclass(frozen=True, slots=True)
class TextTools:
    """How the tools of one request are written."""

    syntax: Syntax
    offered: bool
    """Whether there is anything to call."""

    def message(self, message: Message) -> Message:
        """The message with calls and results as text; others as they are, but for what looks like a tag."""
        match message:
            case ToolMessage():
                content = message.content if message.content.strip() else NO_OUTPUT
                text = self.syntax.result(_name(message.name), content, is_error=message.is_error)
                return UserMessage(message.id, (Text(text),))
            case AssistantMessage():
                return self._said(message) if message.tool_calls else message
            case UserMessage():
                return self._told(message)

    def _said(self, message: AssistantMessage) -> AssistantMessage:
        others: list[AssistantContent] = [
            part for part in message.content if not isinstance(part, ToolCall | Text)
        ]
        blocks = [self.syntax.call(_name(call.name), call.arguments) for call in message.tool_calls]
        text = "\n\n".join(filter(None, (message.text.rstrip(), "\n".join(blocks))))
        return msgspec.structs.replace(message, content=(*others, Text(text)))

    def _told(self, message: UserMessage) -> UserMessage:
        key = self.syntax.key
        if not any(isinstance(part, Text) and key in part.text for part in message.content):
            return message
        content = tuple(
            Text(self.syntax.told(part.text)) if isinstance(part, Text) else part for part in message.content
        )
        return msgspec.structs.replace(message, content=content)

    def reader(self) -> _Reader | None:
        """What finds the calls in an answer; None where nothing can be called."""
        return _Reader(self.syntax) if self.offered else None


class _Reader:
    """Reads calls, and tells the model how they are written where it wrote them in another way."""

    def __init__(self, syntax: Syntax) -> None:
        self._syntax = syntax
        self._calls = TextCallReader(syntax, self._correction)

    def read(self, events: Iterable[StreamEvent]) -> Sequence[StreamEvent]:
        """What may be passed on now that these have come."""
        return [passed for event in events for passed in self._calls.feed(event)]

    def told(self, event: StreamEvent) -> StreamEvent:
        """An end that says that a call was written in some other syntax says what is the right one."""
        if isinstance(event, Finish) and event.leaked_call and not event.correction:
            return msgspec.structs.replace(event, correction=self._correction(None))
        return event

    def _correction(self, fault: Fault | None) -> str:
        why = _FAULTS[fault] if fault is not None else "It was not written in the form that is read here."
        form = self._syntax.call("NAME", '{"argument": "value"}')
        return (
            f"Your message seems to end with a tool call, and nothing was run. {why} To call a tool, end your "
            f"message with the following, at the beginning of a line and with nothing behind it:\n\n{form}\n\n"
            "If you did not mean to call a tool, answer without these tags."
        )


def text_tools(request: LlmRequest) -> TextTools:
    """How the tools of `request` are written: the same for each request of a conversation."""
    offered = bool(request.tools) and request.config.tool_choice != "none"
    return TextTools(Syntax(_key(request)), offered)


def _key(request: LlmRequest) -> str:
    """A word that stands in the tags of one conversation: made from what its requests have in common.

    So it is the same when a request is made again from a log, and whoever wrote a document could not know it.
    """
    first = next(iter(request.conversation), None)
    parts = [request.system, *(tool.name for tool in request.tools)]
    if isinstance(first, UserMessage):
        parts += [part.text for part in first.content if isinstance(part, Text)]
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).digest()
    return base64.b32encode(digest).decode().lower()[:_KEY_LETTERS]


def with_text_tools(request: LlmRequest, text: TextTools) -> LlmRequest:
    """`request` with its tools in its system text, and none beside it."""
    if not request.tools:
        return request
    config = msgspec.structs.replace(request.config, tool_choice=None)
    system = "\n\n".join(filter(None, (request.system, _described(request, text.syntax))))
    return dataclasses.replace(request, system=system, tools=(), config=config)


def _described(request: LlmRequest, syntax: Syntax) -> str:
    choice = request.config.tool_choice
    rules = description_from(__package__ or "", "text_tools.md").replace("{{key}}", syntax.key)
    tools = "\n\n".join(map(_tool, request.tools))
    wish = {
        None: "",
        "auto": "",
        "none": "Call no tool now: answer in plain text.",
        "required": "You have to call a tool now.",
    }
    return "\n\n".join(filter(None, (rules, tools, wish.get(choice, f"You have to call {choice} now."))))


def _tool(tool: ToolSchema) -> str:
    return f"## {_name(tool.name)}\n\n{tool.description.strip()}\n\nArguments: {schema_text(tool.parameters)}"


def _name(name: str) -> str:
    """A name as it can stand in a tag."""
    return "".join(char if char.isascii() and (char.isalnum() or char in "_.:-") else "_" for char in name)[
        :128
    ]


Rewriting: TypeAlias = Callable[[WireEncoder, TextTools], WireEncoder]
"""Makes the encoder of a wire format write calls and results as text. Pure: equal arguments, equal encoders."""


@dataclass(frozen=True, slots=True)
class TextEncoder:
    """Writes what another encoder writes, of messages with calls and results as text."""

    inner: WireEncoder
    text: TextTools

    @property
    def head(self) -> bytes:
        """As that of the other."""
        return self.inner.head

    @property
    def close(self) -> bytes:
        """As that of the other."""
        return self.inner.close

    def encode(self, message: Message) -> bytes:
        """One message."""
        return self.inner.encode(self.text.message(message))

    def join(self, before: Message | None, after: Message | None) -> bytes:
        """As the other joins messages of these roles."""
        return self.inner.join(_role(before), _role(after))


def _role(message: Message | None) -> Message | None:
    """What stands for a message where only its role counts."""
    return UserMessage(message.id, ()) if isinstance(message, ToolMessage) else message


@dataclass(frozen=True, slots=True)
class AlternatingChat(TextEncoder):
    """Chat completions for models whose template wants user and assistant in turn: what follows in one role is one
    message, of which each part is still encoded alone."""

    def encode(self, message: Message) -> bytes:
        """The content of one message, without what stands around it."""
        written = self.text.message(message)
        return encode_text(_content(written))[1:-1]

    def join(self, before: Message | None, after: Message | None) -> bytes:
        """The end of one message and the beginning of the next where the role changes."""
        was = None if before is None else isinstance(before, AssistantMessage)
        comes = None if after is None else isinstance(after, AssistantMessage)
        if was is not None and was == comes:
            return b"\\n\\n"
        end = b"" if was is None else b'"}'
        if comes is None:
            return end
        role = b"assistant" if comes else b"user"
        return end + commas(self.head, before, after) + b'{"role":"' + role + b'","content":"'


def _content(message: Message) -> str:
    match message:
        case AssistantMessage():
            return message.text
        case ToolMessage():
            return message.content
        case UserMessage():
            parts = (part.text if isinstance(part, Text) else placeholder(part) for part in message.content)
            return "\n\n".join(filter(None, parts))
