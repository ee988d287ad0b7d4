"""What an agent has been told and has not yet entered into its history.

Two lists: `next_turn` holds prompts that each open a turn, `next_step` what joins the step that
comes next. Every change is one event, in the log before the lists change. A message that enters a
step is taken out by the very `user/message` that enters it, so there is no moment at which it is
neither queued nor history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from leadline.core.agent.errors import DuplicateMessage, UnknownMessage
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import Event, InboxSpliced, InboxTarget, UserEntered

if TYPE_CHECKING:
    from leadline.core.agent.signals import InboxChange
    from leadline.core.llm.messages import UserMessage
    from leadline.core.session.log import Session

Boundary: TypeAlias = Literal["turn", "step"]
Told: TypeAlias = "Callable[[InboxChange, tuple[UserMessage, ...]], None]"


@dataclass
class Queue:
    """The two lists, as a fold of the log."""

    next_turn: list[UserMessage] = field(default_factory=list["UserMessage"])
    next_step: list[UserMessage] = field(default_factory=list["UserMessage"])

    def apply(self, event: Event) -> None:
        """Take one fact in; facts of other kinds change nothing."""
        if isinstance(event, InboxSpliced):
            self._drop(event.removed)
            queued = self.list_of(event.target)
            at = len(queued) if event.position is None else event.position
            queued[at:at] = event.inserted
        elif isinstance(event, UserEntered):
            self._drop((event.message.id, *event.claims))

    @classmethod
    def of(cls, session: Session, before: int | None = None) -> Queue:
        """What waits, by the log of `session` up to event number `before`, exclusive.

        What a seed brought along belongs to another agent.
        """
        queue = cls()
        for line in session.since(session.lifecycle_start):
            if line.seq == before:
                break
            # A change that cannot be read is passed over, as it is for every other reader of the log.
            with suppress(EventUndecodable):
                if line.type == InboxSpliced.TYPE:
                    queue.apply(line.as_(InboxSpliced))
                elif line.type == UserEntered.TYPE:
                    queue.apply(line.as_(UserEntered))
        return queue

    def list_of(self, target: InboxTarget) -> list[UserMessage]:
        """The list that a target names."""
        return self.next_turn if target == "next-turn" else self.next_step

    def find(self, message_id: str) -> tuple[InboxTarget, int] | None:
        """Where a message waits, or None."""
        targets: tuple[InboxTarget, ...] = ("next-turn", "next-step")
        for target in targets:
            for at, message in enumerate(self.list_of(target)):
                if message.id == message_id:
                    return target, at
        return None

    def _drop(self, ids: Sequence[str]) -> None:
        if ids and (self.next_turn or self.next_step):
            for queued in (self.next_turn, self.next_step):
                queued[:] = [message for message in queued if message.id not in ids]


class Appends(Protocol):
    """Where the facts go; a session is one."""

    def append(self, event: Event, /) -> object: ...
    def append_all(self, events: Sequence[Event], /) -> object: ...


class Inbox:
    """The queue of one agent; every change is durable before it shows."""

    def __init__(self, session: Appends, queue: Queue, told: Told) -> None:
        """`told` hears of every change after it has been made."""
        self._session = session
        self._queue = queue
        self._told = told

    @property
    def next_turn(self) -> tuple[UserMessage, ...]:
        """Prompts, each of which opens a turn, in the order they will."""
        return tuple(self._queue.next_turn)

    @property
    def next_step(self) -> tuple[UserMessage, ...]:
        """What joins the next step, in order."""
        return tuple(self._queue.next_step)

    def __len__(self) -> int:
        return len(self._queue.next_turn) + len(self._queue.next_step)

    def insert(self, target: InboxTarget, message: UserMessage) -> None:
        """Queue a message at the end of a list.

        Raises:
            DuplicateMessage: its id is queued already.
        """
        if self._queue.find(message.id) is not None:
            raise DuplicateMessage(message.id)
        self._commit(InboxSpliced(target=target, inserted=(message,)))
        self._told("inserted", (message,))

    def cancel(self, message_id: str) -> None:
        """Take a queued message back.

        Raises:
            UnknownMessage: it is not queued: entered, cancelled, or never sent.
        """
        target, at = self._place(message_id)
        message = self._queue.list_of(target)[at]
        self._commit(InboxSpliced(target=target, removed=(message_id,), outcome="cancelled"))
        self._told("cancelled", (message,))

    def cancel_all(self) -> None:
        """Take back all that is queued."""
        messages = (*self._queue.next_step, *self._queue.next_turn)
        targets: tuple[InboxTarget, ...] = ("next-step", "next-turn")
        events = [
            InboxSpliced(target=target, removed=ids, outcome="cancelled")
            for target in targets
            if (ids := tuple(message.id for message in self._queue.list_of(target)))
        ]
        if events:
            self._session.append_all(events)
            for event in events:
                self._queue.apply(event)
            self._told("cancelled", messages)

    def drop(self, messages: Iterable[UserMessage], refused: str | None = None) -> None:
        """Take out what was not let in: it neither enters nor waits any more. `refused` says why, where a plugin did.

        It is one fact, so that no part of it is left waiting whenever the process dies.
        """
        dropped = self.still_queued(messages)
        if dropped:
            removed = tuple(message.id for message in dropped)
            self._commit(
                InboxSpliced(target="next-step", removed=removed, outcome="dropped", refused=refused)
            )
            self._told("dropped", dropped)

    def replace(self, message_id: str, message: UserMessage) -> None:
        """Put another message in the place of a queued one.

        Raises:
            UnknownMessage: `message_id` is not queued.
            DuplicateMessage: the id of `message` is queued already.
        """
        target, at = self._place(message_id)
        if message.id != message_id and self._queue.find(message.id) is not None:
            raise DuplicateMessage(message.id)
        self._commit(
            InboxSpliced(
                target=target, inserted=(message,), position=at, removed=(message_id,), outcome="replaced"
            )
        )
        self._told("replaced", (message,))

    def waiting(self, boundary: Boundary) -> tuple[UserMessage, ...]:
        """What a step would claim now: all of `next_step`, and at a turn's start one of `next_turn`."""
        if boundary == "step" or not self._queue.next_turn:
            return tuple(self._queue.next_step)
        return (*self._queue.next_step, self._queue.next_turn[0])

    def still_queued(self, messages: Iterable[UserMessage]) -> tuple[UserMessage, ...]:
        """Those of `messages` that are queued unchanged."""
        places = ((message, self._queue.find(message.id)) for message in messages)
        return tuple(
            message
            for message, place in places
            if place and self._queue.list_of(place[0])[place[1]] is message
        )

    def enter(self, events: Sequence[Event]) -> None:
        """Write facts, among them those that enter queued messages, in one go; the lists follow."""
        before = (*self._queue.next_step, *self._queue.next_turn)
        self._session.append_all(events)
        if before:
            for event in events:
                self._queue.apply(event)
            claimed = tuple(message for message in before if self._queue.find(message.id) is None)
            if claimed:
                self._told("claimed", claimed)

    def _place(self, message_id: str) -> tuple[InboxTarget, int]:
        found = self._queue.find(message_id)
        if found is None:
            raise UnknownMessage(message_id)
        return found

    def _commit(self, event: InboxSpliced) -> None:
        self._session.append(event)
        self._queue.apply(event)
