"""Which event types this process understands; plugins add theirs as effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from leadline.core.session.codec import Logged
from leadline.core.session.errors import EventInvalid, EventUndecodable
from leadline.core.session.events import CORE_EVENTS, Event
from leadline.kernel.context import Context
from leadline.kernel.errors import DuplicateName
from leadline.kernel.plugin import Plugin
from leadline.kernel.services import Service


class EventTypes(Service, key="events"):
    """Event classes by type name. Those of core are always known."""

    def __init__(self, kinds: Iterable[type[Event]] = ()) -> None:
        self._kinds: dict[str, type[Event]] = {}
        self._uses: Counter[str] = Counter()
        for kind in (*CORE_EVENTS, *kinds):
            self._add(kind)

    def register(self, ctx: Context, *kinds: type[Event]) -> None:
        """Understand `kinds` for as long as the owner of `ctx` lives, or another who registered them.

        Raises:
            DuplicateName: another class has the type name.
            FiberInactive: the owner is unloading or disposed.
        """
        for kind in kinds:
            ctx.check_open(f"event {kind.TYPE}")
            self._add(kind)
            ctx.defer(f"event {kind.TYPE}", lambda kind=kind: self._remove(kind))

    def _add(self, kind: type[Event]) -> None:
        if not kind.TYPE:
            raise EventInvalid(f"{kind.__name__} has no TYPE; set one of the form '<domain>/<what>'")
        present = self._kinds.setdefault(kind.TYPE, kind)
        if present is not kind:
            raise DuplicateName(
                f"event type {kind.TYPE!r} is already {present.__module__}.{present.__name__}; "
                f"{kind.__module__}.{kind.__name__} needs a name of its own"
            )
        self._uses[kind.TYPE] += 1

    def _remove(self, kind: type[Event]) -> None:
        self._uses[kind.TYPE] -= 1
        if not self._uses[kind.TYPE]:
            del self._uses[kind.TYPE], self._kinds[kind.TYPE]

    def __iter__(self) -> Iterator[type[Event]]:
        return iter(tuple(self._kinds.values()))

    def get(self, type_: str) -> type[Event] | None:
        """The class of a type name, whatever version."""
        return self._kinds.get(type_)

    def known(self, logged: Logged) -> type[Event] | None:
        """The class that can read this event, or None for an unknown type or a newer version."""
        kind = self._kinds.get(logged.type)
        return kind if kind is not None and logged.v <= kind.VERSION else None

    def decode(self, logged: Logged) -> Event | None:
        """The typed event, or None when nothing here can read it."""
        kind = self.known(logged)
        if kind is None:
            return None
        try:
            return logged.as_(kind)
        except EventUndecodable:
            return None

    def obstacle(self, logged: Logged) -> str | None:
        """Why a session with this event cannot be continued; None when it can be."""
        if not logged.derives:
            return None
        where = f"event {logged.seq} ({logged.type}, version {logged.v}) shapes what the model sees"
        kind = self._kinds.get(logged.type)
        if kind is None:
            return f"{where}, and no plugin that is mounted knows the type; mount the one that wrote it"
        if logged.v > kind.VERSION:
            return f"{where}, and version {kind.VERSION} is the newest known; upgrade its plugin"
        try:
            logged.as_(kind)
        except EventUndecodable as error:
            return f"{where}, but: {error}"
        return None


async def _apply(ctx: Context, config: None) -> None:
    ctx.provide(EventTypes, EventTypes())


plugin: Plugin[None] = Plugin("events", _apply, provides=(EventTypes,))
