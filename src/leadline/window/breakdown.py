"""What fills the window of a session's next request, part by part; a pure reading of its log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from leadline.core.llm.messages import (
    HUMAN,
    AssistantMessage,
    Message,
    Reasoning,
    ToolCall,
    ToolMessage,
)
from leadline.core.llm.tokens import header_tokens, message_tokens, text_tokens
from leadline.core.session.derive import undone
from leadline.core.session.events import (
    AssistantSaid,
    InboxSpliced,
    RequestHeader,
    RequestSent,
    SeedEnded,
    UserEntered,
    WindowCause,
    WindowChanged,
)
from leadline.core.session.log import Session
from leadline.window.compact import SUMMARY
from leadline.window.gauge import reported_ratio
from leadline.window.memory import Memory

SYSTEM, SCHEMAS = "system text", "tool schemas"
WORDS, TEXT, REASONING, CALLS = "user's words", "assistant text", "reasoning", "tool calls"
SUMMARIES, STUBS = "summaries", "stubs of results"


class Part(msgspec.Struct, frozen=True):
    """A part of what fills the window."""

    what: str
    tokens: int
    """Estimated."""
    messages: int = 0
    """In how many messages it stands; 0 for what stands in none."""


class Change(msgspec.Struct, frozen=True):
    """One change of the window."""

    seq: int
    """Number of its event: what `--undo` takes."""
    cause: WindowCause
    before: int
    """Estimated tokens of the request before it, and after."""
    after: int
    stands: bool
    """Whether it counts still."""


class Recallable(msgspec.Struct, frozen=True):
    """Something that the model does not see, or only in part, and can read back."""

    id: str
    what: str


class Breakdown(msgspec.Struct, frozen=True):
    """What fills the window of one session."""

    id: str
    kind: str
    label: str
    """What the session is for, in the words of who made it."""
    model: str
    """`provider/name` of the latest request; empty where none was made."""
    window: int | None
    """Tokens that the model takes, prompt and answer together; None: not known."""
    tokens: int
    """Estimated size of the next request as it stands, corrected by what was reported; the sum of the parts."""
    reported: int | None
    """Prompt tokens of the latest request that the provider reported; None: none was reported."""
    estimated: int | None
    """What that request had been estimated at, before any correction."""
    parts: tuple[Part, ...]
    """The largest first."""
    waiting: Part
    """Prompts that wait in the inbox: they come on top."""
    changes: tuple[Change, ...]
    """In the order of the log."""
    recallable: tuple[Recallable, ...]
    problems: tuple[str, ...]
    """What is wrong with the log: the rest of it was read all the same."""

    @property
    def compactions(self) -> int:
        """How often a summary took the place of messages, and still does."""
        return sum(change.cause == "compact" and change.stands for change in self.changes)


def breakdown(session: Session, window: int | None) -> Breakdown:
    """What fills the window of `session`, whose model takes `window` tokens; never fails on a log that loads."""
    header = session.last(RequestHeader)
    model = "" if header is None else str(header.config.model)
    ratio = reported_ratio(session, model) if model else 1.0
    reported, estimated = _latest(session)
    parts = _parts(session, header, ratio)
    return Breakdown(
        id=session.id,
        kind=session.header.kind,
        label=session.header.label,
        model=model,
        window=window,
        tokens=sum(part.tokens for part in parts),
        reported=reported,
        estimated=estimated,
        parts=parts,
        waiting=_waiting(session, ratio),
        changes=_changes(session),
        recallable=tuple(Recallable(one.id, one.what) for one in Memory(session).left_out()),
        problems=tuple(map(str, session.problems)),
    )


def _parts(session: Session, header: RequestHeader | None, ratio: float) -> tuple[Part, ...]:
    found: dict[str, tuple[int, int]] = {}
    if header is not None:
        system = header_tokens(header.system, ())
        found[SYSTEM] = (system, 0)
        found[SCHEMAS] = (header_tokens(header.system, header.tools) - system, 0)
    stubs = {stub.message_id: stub.text for changed in session.of(WindowChanged) for stub in changed.stubs}
    for message in session.derived().conversation:
        for what, tokens in _of(message, stubs):
            before, count = found.get(what, (0, 0))
            found[what] = (before + tokens, count + 1)
    parts = (Part(what, round(tokens * ratio), count) for what, (tokens, count) in found.items() if tokens)
    return tuple(sorted(parts, key=lambda part: -part.tokens))


def _of(message: Message, stubs: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """The parts of a message; together they have the tokens of the whole."""
    whole = message_tokens(message)
    if isinstance(message, ToolMessage):
        stub = stubs.get(message.id) == message.content
        yield (STUBS if stub else f"results of {message.name}"), whole
    elif isinstance(message, AssistantMessage):
        thought = sum(text_tokens(part.text) for part in message.content if isinstance(part, Reasoning))
        said = text_tokens(message.text)
        if thought:
            yield REASONING, thought
        if not any(isinstance(part, ToolCall) for part in message.content):
            yield TEXT, whole - thought
            return
        if said:
            yield TEXT, said
        yield CALLS, whole - thought - said
    elif message.source == SUMMARY:
        yield SUMMARIES, whole
    elif message.source.kind == HUMAN.kind:
        yield WORDS, whole
    else:
        yield f"{message.source.form or 'messages'} of {message.source.name or message.source.kind}", whole


def _latest(session: Session) -> tuple[int | None, int | None]:
    """Prompt tokens of the latest request that was answered, as reported and as estimated: never a sum over several."""
    said: AssistantSaid | None = None
    for line in reversed(session.logged):
        event = session.event(line) if line.type in (AssistantSaid.TYPE, RequestSent.TYPE) else None
        if isinstance(event, AssistantSaid) and event.usage is not None and event.usage.prompt is not None:
            said = said or event
        elif isinstance(event, RequestSent) and said is not None and said.usage is not None:
            return said.usage.prompt, event.tokens
    return (said.usage.prompt if said is not None and said.usage is not None else None), None


def _waiting(session: Session, ratio: float) -> Part:
    """What stands in the inbox: inserted since the session was made, and neither removed nor claimed."""
    queued: dict[str, int] = {}
    for line in session.logged:
        event = session.event(line) if line.type in _INBOX else None
        if isinstance(event, SeedEnded):
            queued.clear()
        elif isinstance(event, InboxSpliced):
            gone: tuple[str, ...] = event.removed
            queued |= {message.id: message_tokens(message) for message in event.inserted}
            for message_id in gone:
                queued.pop(message_id, None)
        elif isinstance(event, UserEntered):
            for message_id in (event.message.id, *event.claims):
                queued.pop(message_id, None)
    return Part("waiting in the inbox", round(sum(queued.values()) * ratio), len(queued))


_INBOX = frozenset({SeedEnded.TYPE, InboxSpliced.TYPE, UserEntered.TYPE})


def _changes(session: Session) -> tuple[Change, ...]:
    changes = {line.seq: changed for line, changed in session.logged_of(WindowChanged)}
    gone = undone({seq: one.undoes for seq, one in changes.items() if one.undoes is not None})
    return tuple(
        Change(seq, one.cause, one.before, one.after, seq not in gone) for seq, one in changes.items()
    )
