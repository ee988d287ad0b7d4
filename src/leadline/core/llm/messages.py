"""The one message vocabulary, and the conversation that a request carries.

How a message looks on a provider's wire is the provider's business (see ``wire.py`` for the
part they share); which messages a model sees is decided by ``core/session/derive.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias, overload

import msgspec


class Text(msgspec.Struct, frozen=True, tag_field="kind", tag="text"):
    """Plain text."""

    text: str


class Reasoning(msgspec.Struct, frozen=True, tag_field="kind", tag="reasoning", omit_defaults=True):
    """What a model thought before it answered, kept exactly as received."""

    text: str
    opaque: str | None = None
    """Provider state (a signature, an encrypted block), byte for byte."""
    producer: str | None = None
    """``provider/model`` that made it; opaque state goes back to its producer only."""


class ImageRef(msgspec.Struct, frozen=True, tag_field="kind", tag="image"):
    """A durable reference to an image."""

    blob: str
    """sha256 of the bytes in the blob store."""
    media_type: str


class ToolCall(msgspec.Struct, frozen=True, tag_field="kind", tag="tool_call"):
    """A model's wish to call a tool; nothing about it has been validated."""

    id: str
    name: str
    arguments: str
    """Raw JSON text as received."""


class MessageSource(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who a user-role message comes from."""

    kind: str
    """``user`` is a human's own words and nothing else; ``plugin``, ``agent``, ... are the rest."""
    name: str | None = None
    """Which plugin or agent."""
    form: str | None = None
    """What sort of text it is: ``instructions``, ``snapshot``, ``notice``, ``relay``, ..."""


HUMAN = MessageSource("user")


class UserMessage(msgspec.Struct, frozen=True, tag_field="kind", tag="user", omit_defaults=True):
    """Something the model is told."""

    id: str
    content: tuple[Text | ImageRef, ...]
    source: MessageSource = HUMAN


class AssistantMessage(msgspec.Struct, frozen=True, tag_field="kind", tag="assistant"):
    """Something a model said."""

    id: str
    content: tuple[Text | Reasoning | ToolCall, ...]
    model: str
    """``provider/model`` that said it."""

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls in the order the model made them."""
        return tuple(part for part in self.content if isinstance(part, ToolCall))

    @property
    def text(self) -> str:
        """The visible text, without reasoning."""
        return "".join(part.text for part in self.content if isinstance(part, Text))


class ToolMessage(msgspec.Struct, frozen=True, tag_field="kind", tag="tool", omit_defaults=True):
    """The result of one tool call."""

    id: str
    call_id: str
    name: str
    content: str
    is_error: bool = False
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """The result as canonical JSON. Never sent on a wire; read by programs."""


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage
AssistantContent: TypeAlias = Text | Reasoning | ToolCall


class WireEncoder(Protocol):
    """How one provider writes a request; hashable, and equal when its bytes are equal."""

    @property
    def head(self) -> bytes:
        """Everything before the first message of the conversation."""
        ...

    @property
    def close(self) -> bytes:
        """Everything after the last message."""
        ...

    def encode(self, message: Message) -> bytes:
        """One message as wire bytes; empty when the wire must not carry it."""
        ...

    def join(self, before: Message | None, after: Message | None) -> bytes:
        """What stands between two messages that the wire carries; None is an end of the list.

        So a wire on which several messages make one (results of parallel calls) writes the shared
        parts here, and each message is still encoded alone. See `commas`.
        """
        ...

    def __hash__(self) -> int: ...


def commas(head: bytes, before: Message | None, after: Message | None) -> bytes:
    """The `WireEncoder.join` of a wire on which every message stands for itself."""
    first = before is None and head.endswith(b"[")
    return b"" if first or after is None else b","


class Wire(msgspec.Struct, frozen=True):
    """The bytes of one request."""

    body: bytes
    digest: str
    """sha256 of ``body`` in hex."""


class _Pairing:
    """Folds messages and remembers the first breach of call and result pairing."""

    __slots__ = ("pending", "problem")

    def __init__(self) -> None:
        self.pending: tuple[str, ...] = ()
        self.problem: str | None = None

    def copy(self) -> _Pairing:
        twin = _Pairing()
        twin.pending, twin.problem = self.pending, self.problem
        return twin

    def add(self, message: Message) -> None:
        if self.problem is not None:
            return
        if isinstance(message, ToolMessage):
            if message.call_id not in self.pending:
                self.problem = f"result {message.id!r} answers call {message.call_id!r}, which is not open"
            self.pending = tuple(call for call in self.pending if call != message.call_id)
            return
        if self.pending:
            self.problem = f"message {message.id!r} stands between call {self.pending[0]!r} and its result"
            return
        if isinstance(message, AssistantMessage):
            calls = tuple(call.id for call in message.tool_calls)
            if len(set(calls)) != len(calls):
                self.problem = f"message {message.id!r} uses one call id twice"
            self.pending = calls


class _Prefix:
    """Wire bytes of the settled messages for one encoder, and where each message ends."""

    __slots__ = ("buffer", "encoder", "ends", "hash", "last")

    def __init__(self, encoder: WireEncoder) -> None:
        self.encoder = encoder
        self.buffer = bytearray(encoder.head)
        self.ends: list[int] = []
        self.last: list[Message | None] = []
        """For each message the latest one up to it that the wire carries."""
        self.hash = hashlib.sha256(self.buffer)

    def extend(self, messages: Sequence[Message], upto: int) -> None:
        last = self.last[-1] if self.last else None
        for message in messages[len(self.ends) : upto]:
            if part := self.encoder.encode(message):
                part = self.encoder.join(last, message) + part
                last = message
                self.buffer += part
                self.hash.update(part)
            self.ends.append(len(self.buffer))
            self.last.append(last)

    def end(self, count: int) -> int:
        return self.ends[count - 1] if count else len(self.encoder.head)

    def rest(self, count: int, tail: Iterable[Message]) -> bytes:
        """What follows the first ``count`` messages when ``tail`` is all that comes."""
        last = self.last[count - 1] if count else None
        rest = bytearray()
        for message in tail:
            if part := self.encoder.encode(message):
                rest += self.encoder.join(last, message) + part
                last = message
        return bytes(rest + self.encoder.join(last, None) + self.encoder.close)


class _Sum:
    """The digest of the settled messages as one encoder writes them, without keeping the bytes."""

    __slots__ = ("count", "hash")

    def __init__(self) -> None:
        self.count = 0
        self.hash = hashlib.sha256()

    def extend(self, encoder: WireEncoder, messages: Sequence[Message], upto: int) -> None:
        for message in messages[self.count : upto]:
            self.hash.update(encoder.encode(message) + b"\n")
        self.count = max(self.count, upto)


class _Store:
    """The settled messages that every snapshot of one conversation shares."""

    __slots__ = ("messages", "pairing", "prefixes", "sums")

    def __init__(self, messages: Iterable[Message]) -> None:
        self.messages: list[Message] = []
        self.pairing = _Pairing()
        self.prefixes: dict[WireEncoder, _Prefix] = {}
        self.sums: dict[WireEncoder, _Sum] = {}
        self.append(messages)

    def append(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.messages.append(message)
            self.pairing.add(message)


_KEPT_PREFIXES = 3


class Conversation(Sequence[Message]):
    """An immutable run of messages: a settled prefix and a short volatile tail.

    ``extended`` adds to the settled prefix and ``with_tail`` replaces the tail; both give a new
    value that shares the old one's storage, so extending the newest value costs the new
    messages only. A settled message is encoded once for each encoder.
    """

    __slots__ = ("_settled", "_store", "_tail")

    def __init__(self, settled: Iterable[Message] = (), tail: Iterable[Message] = ()) -> None:
        self._store = _Store(settled)
        self._settled = len(self._store.messages)
        self._tail: tuple[Message, ...] = tuple(tail)

    @classmethod
    def _of(cls, store: _Store, settled: int, tail: tuple[Message, ...]) -> Conversation:
        made = cls.__new__(cls)
        made._store, made._settled, made._tail = store, settled, tail
        return made

    def extended(self, *messages: Message) -> Conversation:
        """This conversation with ``messages`` settled behind its prefix, and no tail."""
        store = self._store
        if len(store.messages) != self._settled:
            store = _Store(store.messages[: self._settled])
        store.append(messages)
        return self._of(store, len(store.messages), ())

    def with_tail(self, *messages: Message) -> Conversation:
        """This conversation's settled prefix, followed by ``messages`` for now."""
        return self._of(self._store, self._settled, messages)

    @property
    def settled(self) -> int:
        """How many messages will never change."""
        return self._settled

    def extends(self, earlier: Conversation) -> bool:
        """Whether its settled messages begin with those of `earlier` for certain; costs nothing."""
        return self._store is earlier._store and self._settled >= earlier._settled

    @property
    def pairing_problem(self) -> str | None:
        """Why a provider would refuse the pairing of calls and results; None when it is right."""
        state = self._pairing()
        for message in self._tail:
            state.add(message)
        if state.problem is None and state.pending:
            return f"call {state.pending[0]!r} has no result"
        return state.problem

    def _pairing(self) -> _Pairing:
        if len(self._store.messages) == self._settled:
            return self._store.pairing.copy()
        state = _Pairing()
        for message in self._store.messages[: self._settled]:
            state.add(message)
        return state

    def wire(self, encoder: WireEncoder) -> Wire:
        """The request body for ``encoder`` and its digest.

        The digest continues a copied hash state of the settled prefix, so it costs the new
        messages only.
        """
        prefix = self._prefix(encoder)
        prefix.extend(self._store.messages, self._settled)
        end = prefix.end(self._settled)
        rest = prefix.rest(self._settled, self._tail)
        with memoryview(prefix.buffer) as view, view[:end] as head:
            state = prefix.hash.copy() if end == len(prefix.buffer) else hashlib.sha256(head)
            state.update(rest)
            return Wire(b"".join((head, rest)), state.hexdigest())

    def digest(self, encoder: WireEncoder) -> str:
        """sha256 in hex of the messages alone, as ``encoder`` writes them; costs the new messages only."""
        known = self._store.sums.setdefault(encoder, _Sum())
        if known.count > self._settled:
            known = _Sum()
        known.extend(encoder, self._store.messages, self._settled)
        state = known.hash.copy()
        for message in self._tail:
            state.update(encoder.encode(message) + b"\n")
        return state.hexdigest()

    def _prefix(self, encoder: WireEncoder) -> _Prefix:
        prefixes = self._store.prefixes
        prefix = prefixes.pop(encoder, None) or _Prefix(encoder)
        prefixes[encoder] = prefix
        while len(prefixes) > _KEPT_PREFIXES:
            del prefixes[next(iter(prefixes))]
        return prefix

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        size = len(self)
        at = index + size if index < 0 else index
        if not 0 <= at < size:
            raise IndexError(f"message {index} of {size}")
        return self._store.messages[at] if at < self._settled else self._tail[at - self._settled]

    def __len__(self) -> int:
        return self._settled + len(self._tail)

    def __iter__(self) -> Iterator[Message]:
        messages = self._store.messages
        for at in range(self._settled):
            yield messages[at]
        yield from self._tail

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Conversation) and tuple(self) == tuple(other)

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # equal by content, which may be long

    def __repr__(self) -> str:
        return f"Conversation({self._settled} settled, {len(self._tail)} in the tail)"
