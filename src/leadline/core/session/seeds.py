"""Makes the beginning of a session out of messages, so that what it derives first is just these."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from leadline.core.llm.messages import AssistantMessage, Message, ToolMessage, UserMessage
from leadline.core.session.codec import Logged, encode_event
from leadline.core.session.events import AssistantSaid, Event, RequestHeader, ToolAnswered, UserEntered


@dataclass(frozen=True)
class Seed:
    """What a new session begins with."""

    header: RequestHeader
    """System text, tools and configuration of its requests."""
    messages: tuple[Message, ...]
    """Pair-complete, as a log derives them."""


def seed_lines(seed: Seed, now: float) -> list[Logged]:
    """The seed as events, for `SessionStore.create`."""
    header = msgspec.structs.replace(seed.header, reason="initial")
    return [
        Logged(
            v=type(event).VERSION,
            seq=seq,
            t=now,
            type=event.TYPE,
            prev="",
            derives=event.DERIVES,
            held=msgspec.Raw(encode_event(event)),
        )
        for seq, event in enumerate((header, *_entered(seed.messages)))
    ]


def _entered(messages: Iterable[Message]) -> Iterable[Event]:
    for message in messages:
        match message:
            case UserMessage():
                yield UserEntered(message=message)
            case AssistantMessage():
                yield AssistantSaid(message=message)
            case ToolMessage():
                # What it did is told by the log that it comes from.
                code = SEEDED if message.is_error else None
                yield ToolAnswered(message=message, error_code=code, started=False, synthesised=True)


SEEDED = "SEEDED"
"""Error code of a failed call's result in a seed: the code itself is in the log that it comes from."""
