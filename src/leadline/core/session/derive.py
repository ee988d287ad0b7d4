"""From a log to the messages that a model reads: the only road.

`Derived` follows a session and folds each event once, so that a step costs what is new and not what
is old. What it gives always ends pair-complete, whatever the log holds:

- every call of an answer that was kept is followed by exactly one result, in the order of the calls;
  a call without a logged result gets one that says whether it was started;
- what came between a call and its result in the log stands behind the results;
- empty messages, second results, results without a call and second entries of one message are left out;
- an answer that did not end properly keeps its text and loses its tool calls;
- what a turn/resumed calls void is left out from there on;
- what a window/changed replaces is replaced from there on, a span of it by whole answers with their results;
  one that is undone later counts as if it had never been written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from leadline.core.llm.messages import (
    AssistantMessage,
    Conversation,
    ImageRef,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from leadline.core.session.codec import Logged
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import (
    AssistantSaid,
    Event,
    ToolAnswered,
    ToolCalled,
    TurnResumed,
    UserEntered,
    WindowChanged,
)

_E = TypeVar("_E", bound=Event)

NOT_STARTED = "TOOL_NOT_STARTED"
OUTCOME_UNKNOWN = "TOOL_OUTCOME_UNKNOWN"

NOT_STARTED_TEXT = (
    "This call was interrupted before it started; nothing was done. It is safe to make the call again."
)
OUTCOME_UNKNOWN_TEXT = (
    "This call was started and then interrupted; its outcome is unknown. Make it again only if doing it "
    "twice does no harm; otherwise find out first what it did, or ask."
)


@dataclass(slots=True)
class OpenCall:
    """A tool call of the last answer, and what the log says of it so far."""

    call: ToolCall
    said: AssistantSaid
    """The answer that asks for it."""
    called: ToolCalled | None = None
    """The intent to run it; None when it was not started."""
    result: ToolMessage | None = None

    def settled(self) -> ToolMessage:
        """Its result: the logged one, or one that says what is known and what the model may do."""
        return self.result or ToolMessage(
            id=f"{self.said.message.id}.{self.call.id}.unanswered",
            call_id=self.call.id,
            name=self.call.name,
            content=NOT_STARTED_TEXT if self.called is None else OUTCOME_UNKNOWN_TEXT,
            is_error=True,
        )


@dataclass(slots=True)
class _State:
    conversation: Conversation = field(default_factory=Conversation)
    calls: dict[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    held: list[UserMessage] = field(default_factory=list[UserMessage])
    seen: set[str] = field(default_factory=set[str])


class Derived:
    """The messages of a log, as far as it has been followed."""

    def __init__(self, logged: Sequence[Logged]) -> None:
        """`logged` may grow; `session.logged` is what one passes."""
        self._logged = logged
        self._next = 0
        self._state = _State()
        self._void: set[str] = set()
        self._undos: dict[int, int] = {}
        """Number of each event that undoes one, with the number of that one."""
        self._undone: frozenset[int] = frozenset()
        self._folds: dict[str, Callable[[Logged], None]] = {
            TurnResumed.TYPE: self._resumed,
            UserEntered.TYPE: self._user,
            AssistantSaid.TYPE: self._assistant,
            ToolCalled.TYPE: self._called,
            ToolAnswered.TYPE: self._answered,
            WindowChanged.TYPE: self._changed,
        }

    @property
    def conversation(self) -> Conversation:
        """What a model would read now, everything logged so far included."""
        return self.at(len(self._logged))

    @property
    def open_calls(self) -> list[OpenCall]:
        """The calls of the last answer that have no logged result, in their order."""
        self._advance(len(self._logged))
        return [call for call in self._state.calls.values() if call.result is None]

    def at(self, seq: int) -> Conversation:
        """What a model would have read when `seq` events were logged: those before number `seq`.

        Going forward costs the events between; going back starts again from the first.
        """
        if seq < self._next:
            self._void.clear()
            self._undos.clear()
            self._undone = frozenset()
            self._restart()
        self._advance(seq)
        state = self._state
        if not state.calls and not state.held:
            return state.conversation
        return state.conversation.with_tail(*self._tail())

    def _restart(self) -> None:
        self._next = 0
        self._state = _State()

    def _advance(self, seq: int) -> None:
        logged, folds = self._logged, self._folds
        while self._next < seq:
            line = logged[self._next]
            self._next += 1
            fold = folds.get(line.type)
            if fold is not None:
                fold(line)

    def _tail(self) -> list[Message]:
        return [*(call.settled() for call in self._state.calls.values()), *self._state.held]

    def _settle(self) -> None:
        state = self._state
        if state.calls or state.held:
            state.conversation = state.conversation.extended(*self._tail())
            state.calls.clear()
            state.held.clear()

    def _first_time(self, message_id: str) -> bool:
        if message_id in self._state.seen:
            return False
        self._state.seen.add(message_id)
        return True

    def _resumed(self, line: Logged) -> None:
        resumed = _decoded(line, TurnResumed)
        if resumed is None:
            return
        if not self._void.issuperset(resumed.void):
            # What is void has been folded already: fold again without it, once.
            self._void.update(resumed.void)
            upto = self._next
            self._restart()
            self._advance(upto)
            return
        for call_id in resumed.unbegun:
            if call := self._state.calls.get(call_id):
                call.called = None

    def _user(self, line: Logged) -> None:
        entered = _decoded(line, UserEntered)
        message = _kept_user(entered.message) if entered else None
        if message is None or not self._first_time(message.id):
            return
        state = self._state
        if state.calls:
            state.held.append(message)
            return
        self._settle()
        state.conversation = state.conversation.extended(message)

    def _assistant(self, line: Logged) -> None:
        said = _decoded(line, AssistantSaid)
        message = _kept_assistant(said) if said else None
        if said is None or message is None or message.id in self._void or not self._first_time(message.id):
            return
        self._settle()
        state = self._state
        state.conversation = state.conversation.extended(message)
        for call in message.tool_calls:
            state.calls[call.id] = OpenCall(call, said)

    def _called(self, line: Logged) -> None:
        called = _decoded(line, ToolCalled)
        if (
            called is not None
            and called.root_call_id is None
            and (call := self._state.calls.get(called.call_id))
        ):
            call.called = called

    def _answered(self, line: Logged) -> None:
        answered = _decoded(line, ToolAnswered)
        if answered is None or answered.root_call_id is not None or answered.message.id in self._void:
            return
        state, message = self._state, answered.message
        call = state.calls.get(message.call_id)
        if call is None or call.result is not None:
            return
        call.result = message
        if all(call.result is not None for call in state.calls.values()):
            self._settle()

    def _changed(self, line: Logged) -> None:
        changed = None if line.seq in self._undone else _decoded(line, WindowChanged)
        if changed is None:
            return
        if changed.undoes is not None:
            self._undo(line.seq, changed.undoes)
            return
        state = self._state
        seen = state.conversation
        stubs = {stub.message_id: stub.text for stub in changed.stubs}
        messages = _stubbed(seen, stubs) if stubs else list(seen)
        summary = _kept_user(changed.summary) if changed.summary is not None else None
        span = _span(messages, changed.first, changed.last) if summary is not None else None
        if summary is not None and span is not None and self._first_time(summary.id):
            messages[span] = [summary]
        if len(messages) != len(seen) or any(new is not old for new, old in zip(messages, seen, strict=True)):
            state.conversation = Conversation(messages)

    def _undo(self, seq: int, undoes: int) -> None:
        if seq in self._undos or undoes >= seq:
            return
        self._undos[seq] = undoes
        now = undone(self._undos)
        if now == self._undone:
            return
        self._undone = now
        # What no longer counts has been folded already: fold again without it, once.
        upto = self._next
        self._restart()
        self._advance(upto)


def undone(undos: Mapping[int, int]) -> frozenset[int]:
    """The numbers of the events that count no more. `undos`: what each event that undoes one undoes, by its number.

    An event that undoes another can be undone itself; then the other counts again.
    """
    gone: set[int] = set()
    for seq, target in sorted(undos.items(), reverse=True):
        if seq not in gone and target < seq:
            gone.add(target)
    return frozenset(gone)


def derive(logged: Sequence[Logged]) -> Conversation:
    """What a model reads of a whole log."""
    return Derived(logged).conversation


def _decoded(line: Logged, kind: type[_E]) -> _E | None:
    try:
        return line.as_(kind)
    except EventUndecodable:
        return None


def _kept_user(message: UserMessage) -> UserMessage | None:
    """The message without empty parts; None when nothing is left."""
    if all(isinstance(part, ImageRef) or part.text for part in message.content):
        kept = message
    else:
        parts = tuple(part for part in message.content if isinstance(part, ImageRef) or part.text)
        kept = UserMessage(id=message.id, content=parts, source=message.source)
    blank = all(isinstance(part, Text) and not part.text.strip() for part in kept.content)
    return None if blank else kept


def _stubbed(messages: Sequence[Message], stubs: dict[str, str]) -> list[Message]:
    """The messages, with the content of some results replaced."""
    return [
        msgspec.structs.replace(message, content=stubs[message.id])
        if isinstance(message, ToolMessage) and message.id in stubs
        else message
        for message in messages
    ]


def _span(messages: Sequence[Message], first: str, last: str) -> slice | None:
    """From `first` to `last`, without what would part a call from its results; None where nothing is left."""
    ids = [message.id for message in messages]
    if first not in ids or last not in ids:
        return None
    start, end = ids.index(first), ids.index(last) + 1
    while start < end and isinstance(messages[start], ToolMessage):
        start += 1
    pending: set[str] = set()
    whole = start
    for at in range(start, end):
        message = messages[at]
        if isinstance(message, ToolMessage):
            pending.discard(message.call_id)
        elif isinstance(message, AssistantMessage):
            pending = {call.id for call in message.tool_calls}
        if not pending:
            whole = at + 1
    return slice(start, whole) if whole > start else None


def _kept_assistant(said: AssistantSaid) -> AssistantMessage | None:
    """What of an answer is shown to the model again; None when there is nothing to show."""
    message = said.message
    parts: list[Text | Reasoning | ToolCall] = []
    ids: set[str] = set()
    for part in message.content:
        if isinstance(part, ToolCall):
            if said.state != "done" or not part.id or part.id in ids:
                continue
            ids.add(part.id)
        elif isinstance(part, Text) and not part.text:
            continue
        parts.append(part)
    if not ids and not any(isinstance(part, Text) and part.text.strip() for part in parts):
        return None
    if len(parts) == len(message.content):
        return message
    return AssistantMessage(id=message.id, content=tuple(parts), model=message.model)
