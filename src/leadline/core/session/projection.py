"""Read models: pure folds of a log, and shortcuts to a fold that was done before.

A projection is a value: where a fold begins, what one event changes, what is shown of it. Whoever
keeps the state of a fold keeps a `Checkpoint` with it, which says up to which event of which chain the
state goes. It is believed only where that chain is still the beginning of the log, and only by the
version that made it; everywhere else the log is folded again. So a checkpoint saves time and never
decides what is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from leadline.core.session.codec import Header, Logged
from leadline.core.session.log import Session
from leadline.kernel.context import Context
from leadline.kernel.errors import DuplicateName
from leadline.kernel.plugin import Plugin
from leadline.kernel.services import Service

S = TypeVar("S", bound=msgspec.Struct)
V = TypeVar("V")


@dataclass(frozen=True)
class Projection(Generic[S, V]):
    """A pure fold of a log.

    `init` and `apply` may depend on their arguments alone, and `apply` gives a new state rather than
    changing the one that it is given. Events that it does not know leave the state as it is.
    """

    key: str
    """Names it in registries and checkpoints: `<owner>/<what>`."""
    version: int
    """Rises with every change of what the fold gives; states of other versions are not used."""
    state: type[S]
    """The class of the state; a frozen `msgspec.Struct`, so that it can be kept."""
    init: Callable[[Header], S]
    """The state before the first event."""
    apply: Callable[[S, Logged], S]
    """The state after one more event. Total: it raises for no event, however damaged."""
    view: Callable[[S], V]
    """What readers are given."""
    types: frozenset[str] = frozenset()
    """The types of the events that change the state; others need not be folded. Empty: any may."""


class Checkpoint(msgspec.Struct, frozen=True):
    """The state of a fold after the first `count` events of one log."""

    key: str
    version: int
    session: str
    count: int
    digest: str
    """What event number `count` has as `prev`: identifies everything before it."""
    state: bytes


@dataclass(frozen=True)
class Folded(Generic[S]):
    """A fold as far as it has come."""

    state: S
    count: int
    """How many events were folded."""
    digest: str
    """What event number `count` has as `prev`."""


class Projections(Service, key="projections"):
    """Projections by key; plugins add theirs as effects."""

    def __init__(self) -> None:
        self._by_key: dict[str, Projection[msgspec.Struct, object]] = {}

    def register(self, ctx: Context, *projections: Projection[S, V]) -> None:
        """Offer `projections` for as long as the owner of `ctx` lives.

        Raises:
            DuplicateName: another one has the key.
            FiberInactive: the owner is unloading or disposed.
        """
        for one in projections:
            ctx.check_open(f"projection {one.key}")
            if one.key in self._by_key:
                raise DuplicateName(f"projection {one.key!r} is there already; choose another key")
            self._by_key[one.key] = one  # pyright: ignore[reportArgumentType]  # state and view fit each other
            ctx.defer(f"projection {one.key}", lambda key=one.key: self._remove(key))

    def _remove(self, key: str) -> None:
        self._by_key.pop(key, None)

    def __iter__(self) -> Iterator[Projection[msgspec.Struct, object]]:
        return iter(tuple(self._by_key.values()))

    def get(self, key: str) -> Projection[msgspec.Struct, object] | None:
        """The projection of a key."""
        return self._by_key.get(key)


def project(projection: Projection[S, V], session: Session) -> V:
    """What the projection shows of the session as it is now."""
    return projection.view(fold(projection, session).state)


def fold(projection: Projection[S, V], session: Session, known: Checkpoint | None = None) -> Folded[S]:
    """Fold the session, from `known` on where that still holds."""
    begun = continued(projection, session, known) or Folded(projection.init(session.header), 0, "")
    state, apply, types = begun.state, projection.apply, projection.types
    for logged in session.since(begun.count):
        if not types or logged.type in types:
            state = apply(state, logged)
    return Folded(state, len(session), session.digest)


def checkpoint(projection: Projection[S, V], session_id: str, folded: Folded[S]) -> Checkpoint:
    """`folded`, to be kept."""
    return Checkpoint(
        key=projection.key,
        version=projection.version,
        session=session_id,
        count=folded.count,
        digest=folded.digest,
        state=_encoder.encode(folded.state),
    )


def restored(projection: Projection[S, V], session_id: str, known: Checkpoint | None) -> Folded[S] | None:
    """What was kept, or None where another version or another session left it, or it cannot be read."""
    if known is None or (known.key, known.version, known.session) != (
        projection.key,
        projection.version,
        session_id,
    ):
        return None
    try:
        state = msgspec.msgpack.decode(known.state, type=projection.state)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return Folded(state, known.count, known.digest)


def continued(projection: Projection[S, V], session: Session, known: Checkpoint | None) -> Folded[S] | None:
    """What was kept, where it is the fold of a beginning of this session; else None."""
    begun = restored(projection, session.id, known)
    return begun if begun is not None and _digest_at(session, begun.count) == begun.digest else None


def _digest_at(session: Session, count: int) -> str | None:
    logged: Sequence[Logged] = session.logged
    if not 0 < count <= len(logged):
        return None
    return logged[count].prev if count < len(logged) else session.digest


_encoder = msgspec.msgpack.Encoder()


async def _apply(ctx: Context, config: None) -> None:
    ctx.provide(Projections, Projections())


plugin: Plugin[None] = Plugin("projections", _apply, provides=(Projections,))
