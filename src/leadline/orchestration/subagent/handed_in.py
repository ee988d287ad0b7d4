"""What a child handed in before its process died, read from its log in the order in which it was judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

from leadline.core.llm.messages import MessageSource
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import AssistantSaid, InboxSpliced, ToolAnswered, ToolCalled
from leadline.core.tools.arguments import Arguments, parse_arguments
from leadline.core.tools.outcome import Code

if TYPE_CHECKING:
    from leadline.core.llm.jsonvalue import JsonValue
    from leadline.core.session.codec import Logged
    from leadline.core.session.log import Session

CORRECTION = MessageSource("plugin", "subagent", "correction")
"""The source of the message that tells a child what is wrong with its output; there is one at most."""

_NOT_RUN = frozenset((Code.UNKNOWN_TOOL, Code.DENIED, Code.ABORTED_BEFORE_DISPATCH))


@dataclass(frozen=True)
class Answered:
    """A call of the child that has its result."""

    call_id: str
    parent: str | None
    """Id of the call whose body made it; None for a call of the model."""
    failed: bool
    value: JsonValue = None
    handed_in: bool = False
    """Whether it handed `value` in, and the value was looked at."""


@dataclass(frozen=True)
class Corrected:
    """The child's last words were found wanting, and it was told so."""

    text: str


HandedIn: TypeAlias = Answered | Corrected


def handed_in(session: Session, tool: str) -> Iterator[HandedIn]:
    """All that may have been, or have become, the child's output; `tool` is what it hands in with."""
    words, calls = "", dict[str, ToolCalled]()
    for line in session.since(session.lifecycle_start):
        match _event(line):
            case AssistantSaid(message=message):
                words = message.text if message.text.strip() else words
            case InboxSpliced(inserted=inserted) if any(one.source == CORRECTION for one in inserted):
                yield Corrected(words)
            case ToolCalled() as called:
                calls[called.call_id] = called
            case ToolAnswered() as answered:
                yield _answered(answered, calls.get(answered.message.call_id), tool)
            case _:
                pass


def was_corrected(session: Session) -> bool:
    """Whether the child was told that its output cannot be used."""
    return any(
        message.source == CORRECTION
        for spliced in session.of(InboxSpliced, session.lifecycle_start)
        for message in spliced.inserted
    )


def _event(line: Logged) -> AssistantSaid | InboxSpliced | ToolCalled | ToolAnswered | None:
    for kind in (AssistantSaid, InboxSpliced, ToolCalled, ToolAnswered):
        if line.type == kind.TYPE:
            try:
                return line.as_(kind)
            except EventUndecodable:
                return None
    return None


def _answered(answered: ToolAnswered, called: ToolCalled | None, tool: str) -> Answered:
    call_id = answered.message.call_id
    parent = call_id.rpartition(":")[0] if answered.root_call_id is not None else None
    failed = answered.message.is_error
    if called is None or called.name != tool or answered.synthesised or answered.error_code in _NOT_RUN:
        return Answered(call_id, parent, failed)
    arguments = parse_arguments(called.arguments)
    if not isinstance(arguments, Arguments):
        return Answered(call_id, parent, failed)
    return Answered(call_id, parent, failed, cast("JsonValue", arguments.fresh()), handed_in=True)
