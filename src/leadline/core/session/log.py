"""A session: its log in memory, and the one way to add to it."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol, TypeVar, overload

import anyio

from leadline.core.clock import Clock
from leadline.core.session.codec import Header, Logged, Problem, compose
from leadline.core.session.derive import Derived
from leadline.core.session.errors import (
    AppendVetoed,
    EventInvalid,
    EventUndecodable,
    ReentrantAppend,
    SessionClosed,
    SessionNotContinuable,
    SessionWriteFailed,
)
from leadline.core.session.events import Event, SeedEnded
from leadline.core.session.load import Loaded, Quarantined
from leadline.core.session.place import Place, place_of
from leadline.core.session.registry import EventTypes
from leadline.kernel.signals import Notice

E = TypeVar("E", bound=Event)


class Sink(Protocol):
    """Where the lines of one session go: the part of a store that a session holds."""

    @property
    def where(self) -> str:
        """What to call the place in a message, such as a path."""
        ...

    def write(self, lines: bytes) -> None:
        """Add whole lines behind what is there: all of them or nothing, and they survive this process.

        Raises:
            SessionWriteFailed: nothing was added; it may be tried again.
            StaleLease: another writer has taken over; nothing was added.
        """
        ...

    async def sync(self) -> None:
        """Return when everything written survives a power cut.

        Raises:
            SessionWriteFailed: it may not.
        """
        ...

    async def close(self) -> None:
        """Give up the lease. Idempotent."""
        ...


@dataclass(frozen=True)
class BeforeAppend:
    """What a veto is asked about. It raises to refuse; nothing has been written yet."""

    session: Session
    event: Event
    seq: int
    """The number that it will have."""
    ahead: Sequence[Logged] = ()
    """What goes into the log with it, in front of it: none of it is written yet."""

    @property
    def log(self) -> Sequence[Logged]:
        """Everything that will stand before the event."""
        return [*self.session.logged, *self.ahead][: self.seq]


@dataclass(frozen=True)
class SessionAppended(Notice):
    """An event was logged. Told once for each, in order, after it was written."""

    session: Session
    logged: Logged


@dataclass(frozen=True)
class SessionClosing(Notice):
    """A session is being closed; nothing is appended to it any more."""

    session: Session


Veto = Callable[[BeforeAppend], None]


def _log(error: BaseException, where: str) -> None:
    logging.getLogger("leadline").error("%s: %s", where, error, exc_info=error)


def _nobody(signal: Notice) -> None:
    """Where there is no kernel, nobody listens."""


def _maybe(signal: type[Notice]) -> bool:
    return True


@dataclass
class Hooks:
    """Who is asked before an append and told after it. Shared by the sessions of a store."""

    vetoes: list[Veto] = field(default_factory=list[Veto])
    notice: Callable[[Notice], None] = _nobody
    heard: Callable[[type[Notice]], bool] = _maybe
    """Whether anyone at all listens to a kind of notice: what nobody hears is not made."""
    report: Callable[[BaseException, str], None] = _log


class _View(Sequence[Logged]):
    """The events of a session, to read; grows with it."""

    __slots__ = ("_items",)

    def __init__(self, items: list[Logged]) -> None:
        self._items = items

    @overload
    def __getitem__(self, index: int) -> Logged: ...
    @overload
    def __getitem__(self, index: slice) -> list[Logged]: ...
    def __getitem__(self, index: int | slice) -> Logged | list[Logged]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Logged]:
        return iter(self._items)


class Session:
    """One log, open for writing (it holds the lease) or for reading only.

    Made by a `SessionStore`. `append` is synchronous and done when it returns: the event survives the
    death of this process. `sync` makes everything so far survive a power cut.
    """

    def __init__(
        self,
        header: Header,
        loaded: Loaded,
        sink: Sink | None,
        *,
        types: EventTypes,
        clock: Clock,
        hooks: Hooks | None = None,
    ) -> None:
        self.header = header
        self._loaded = loaded
        self._items = loaded.logged
        self._digest = loaded.digest
        self._sink = sink
        self._types = types
        self._clock = clock
        self._hooks = hooks or Hooks()
        self._observers: list[Callable[[Logged], None]] = []
        self._busy = False
        self._changed: anyio.Event | None = None
        self._place: Place | None = None
        self.logged: Sequence[Logged] = _View(self._items)
        """Every event, by `seq`; grows as events are appended."""
        self.refused: SessionWriteFailed | None = None
        """The latest failure of the store to write or sync it, even if a later try went well; None before there was one."""
        self.notice: Callable[[Notice], None] = self._hooks.notice
        """Where notices about this session are sent; an agent sets its own context's `notice`, so
        that listeners of its scope hear them."""

    def __repr__(self) -> str:
        return f"<Session {self.id} of kind {self.header.kind}, {len(self._items)} events>"

    # what it is

    @property
    def id(self) -> str:
        """The id, unique in the store."""
        return self.header.id

    @property
    def where(self) -> str:
        """Where the log is kept; empty for a session that was only read."""
        return self._sink.where if self._sink else ""

    @property
    def writable(self) -> bool:
        """Whether it was opened for writing and not closed since."""
        return self._sink is not None

    @property
    def problems(self) -> Sequence[Problem]:
        """What in the log could not be used when it was loaded."""
        return self._loaded.problems

    @property
    def quarantined(self) -> Sequence[Quarantined]:
        """Lines that were found when it was loaded and are not part of the session."""
        return self._loaded.quarantined

    @property
    def digest(self) -> str:
        """The end of the hash chain: what the next event will have as `prev`."""
        return self._digest

    @property
    def place(self) -> Place:
        """Where it stands in its turns."""
        if self._place is None:
            self._place = place_of(self._items)
        return self._place

    @property
    def lifecycle_start(self) -> int:
        """`seq` of the first event that is not seed: what was left open before it is over."""
        for line in reversed(self._items):
            if line.type == SeedEnded.TYPE:
                return line.seq + 1
        return 0

    @property
    def obstacle(self) -> SessionNotContinuable | None:
        """Why it cannot be continued, or None; depends on which event types are registered now."""
        if self._loaded.newer_format is not None or not self._loaded.header_sound:
            reason = self._loaded.problems[0].reason if self._loaded.problems else "its header is damaged"
            return SessionNotContinuable(self.id, reason)
        for line in self._items:
            missing = self._types.obstacle(line)
            if missing is not None:
                return SessionNotContinuable(self.id, missing, type_=line.type, seq=line.seq)
        return None

    @property
    def continuable(self) -> bool:
        """Whether everything that shapes the window is understood."""
        return self.obstacle is None

    # reading

    def __len__(self) -> int:
        return len(self._items)

    def since(self, seq: int) -> Sequence[Logged]:
        """The events from number `seq` on."""
        return self._items[max(0, seq) :]

    def of(self, kind: type[E], since: int = 0) -> Iterator[E]:
        """The events of one class from number `since` on; those that it cannot read are passed over."""
        for _, event in self.logged_of(kind, since):
            yield event

    def logged_of(self, kind: type[E], since: int = 0) -> Iterator[tuple[Logged, E]]:
        """As `of`, with each event as it stands in the log."""
        for line in islice(self._items, max(0, since), len(self._items)):
            if line.type == kind.TYPE:
                try:
                    event = line.as_(kind)
                except EventUndecodable:
                    continue
                yield line, event

    def last(self, kind: type[E]) -> E | None:
        """The latest event of one class, or None."""
        for line in reversed(self._items):
            if line.type == kind.TYPE:
                try:
                    return line.as_(kind)
                except EventUndecodable:
                    continue
        return None

    def event(self, logged: Logged) -> Event | None:
        """The typed event of a line, or None for a type that is not registered (an unknown event)."""
        return self._types.decode(logged)

    def derived(self) -> Derived:
        """A new fold of this log to messages; keep it, it follows the log at the cost of what is new."""
        return Derived(self.logged)

    async def follow(self, since: int = 0) -> AsyncGenerator[Logged]:
        """Every event from number `since` on, those to come included; ends when the session is closed."""
        at = max(0, since)
        while True:
            while at < len(self._items):
                yield self._items[at]
                at += 1
            if not self.writable:
                return
            if self._changed is None:
                self._changed = anyio.Event()
            await self._changed.wait()

    def observe(self, observer: Callable[[Logged], None]) -> Callable[[], None]:
        """Call `observer` after each append, until what is returned is called.

        An observer that raises is reported and stops nobody. It may not append.
        """

        def told(logged: Logged) -> None:
            observer(logged)

        self._observers.append(told)

        def remove() -> None:
            if told in self._observers:
                self._observers.remove(told)

        return remove

    # writing

    def append(self, event: Event) -> Logged:
        """Log one event. When this returns, it is in the file and everyone was told.

        Raises:
            EventInvalid: a field breaks the event's schema, or another class has its type name.
            EventOutOfPlace: it contradicts what is logged.
            AppendVetoed: a veto refused.
            ReentrantAppend: called by a veto or an observer of this session.
            SessionClosed, StaleLease: this session may not be written any more.
            SessionWriteFailed: the disk refused. The session is as before and may be tried again.
        """
        sink = self._begin()
        try:
            line, logged, digest, place = self._compose(
                event, self._clock.now(), self._digest, self.place, len(self._items), ()
            )
            self._write(sink, line)
            self._items.append(logged)
            self._digest, self._place = digest, place
            self._tell(logged)
        finally:
            self._busy = False
        return logged

    def append_all(self, events: Sequence[Event]) -> list[Logged]:
        """Log several events in one write, as of one time: all of them or none.

        Raises:
            as `append`.
        """
        sink = self._begin()
        try:
            now, digest, place = self._clock.now(), self._digest, self.place
            lines: list[bytes] = []
            entries: list[Logged] = []
            for seq, event in enumerate(events, len(self._items)):
                line, logged, digest, place = self._compose(event, now, digest, place, seq, entries)
                lines.append(line)
                entries.append(logged)
            if entries:
                self._write(sink, b"".join(lines))
                self._items.extend(entries)
                self._digest, self._place = digest, place
                for logged in entries:
                    self._tell(logged)
        finally:
            self._busy = False
        return entries

    def _begin(self) -> Sink:
        if self._sink is None:
            raise SessionClosed(f"session {self.id} is not open for writing; open it to append")
        if self._busy:
            raise ReentrantAppend(
                f"session {self.id} is telling of an append; append from a task of your own, not from inside"
            )
        self._busy = True
        return self._sink

    def _write(self, sink: Sink, lines: bytes) -> None:
        try:
            sink.write(lines)
        except SessionWriteFailed as error:
            self.refused = error
            raise

    def _compose(
        self, event: Event, now: float, digest: str, place: Place, seq: int, ahead: Sequence[Logged]
    ) -> tuple[bytes, Logged, str, Place]:
        kind = type(event)
        if self._types.get(kind.TYPE) is not kind:
            self._check_class(kind)
        line, logged, digest = compose(event, seq, now, digest)
        place = place.after(event)
        if self._hooks.vetoes:
            self._ask(BeforeAppend(self, event, seq, ahead))
        return line, logged, digest, place

    def _check_class(self, kind: type[Event]) -> None:
        """An event class that is not registered may be logged, unless reading it back needs it registered."""
        known = self._types.get(kind.TYPE)
        if known is not None:
            raise EventInvalid(
                f"event type {kind.TYPE!r} belongs to {known.__module__}.{known.__name__}, "
                f"not to {kind.__module__}.{kind.__name__}; give the latter its own TYPE"
            )
        if kind.DERIVES:
            raise EventInvalid(
                f"event type {kind.TYPE!r} shapes what the model sees, but is not registered; "
                "register its class with EventTypes first"
            )

    def _ask(self, before: BeforeAppend) -> None:
        for veto in tuple(self._hooks.vetoes):
            try:
                veto(before)
            except Exception as error:
                raise AppendVetoed(f"event {before.event.TYPE!r} was vetoed: {error}") from error

    def _tell_observers(self, logged: Logged) -> None:
        for observer in tuple(self._observers):
            try:
                observer(logged)
            except Exception as error:  # noqa: BLE001 - the event is logged; the report tells of the observer
                self._hooks.report(error, f"observer of session {self.id}")

    def _tell(self, logged: Logged) -> None:
        """Tell everyone; nothing that a listener does can make the append fail."""
        if self._observers:
            self._tell_observers(logged)
        if self.notice is not _nobody and self._hooks.heard(SessionAppended):
            try:
                self.notice(SessionAppended(self, logged))
            except Exception as error:  # noqa: BLE001 - as above
                self._hooks.report(error, f"notice of session {self.id}")
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def sync(self) -> None:
        """Return when everything appended so far survives a power cut.

        Raises:
            SessionWriteFailed: the disk could not promise it.
            SessionClosed: the session is not open for writing.
        """
        if self._sink is None:
            raise SessionClosed(f"session {self.id} is not open for writing; nothing to sync")
        try:
            await self._sink.sync()
        except SessionWriteFailed as error:
            self.refused = error
            raise

    async def close(self) -> None:
        """Give up the lease. Idempotent. What was appended stays; nothing more may be."""
        sink, self._sink = self._sink, None
        if sink is None:
            return
        if self._changed is not None:
            self._changed.set()
            self._changed = None
        self.notice(SessionClosing(self))
        with anyio.CancelScope(shield=True):
            await sink.close()
