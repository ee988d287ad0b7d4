"""The seam of session stores: what a store promises, whatever it keeps the logs in.

`leadline.testing.conformance.session_store` holds the promises as checks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msgspec import structs

from leadline.core.session.codec import Header, Logged, chain, compose, encode_header, recompose
from leadline.core.session.errors import ForkRefused
from leadline.core.session.events import SeedEnded
from leadline.core.session.lease import Holder
from leadline.core.session.load import Loaded
from leadline.core.session.log import Hooks, Session, Veto
from leadline.core.session.place import place_of
from leadline.kernel.context import Context
from leadline.kernel.services import Service

SessionStatus: TypeAlias = Literal["running", "interrupted", "finished", "idle", "unreadable"]
"""running: a live process writes it. interrupted: its writer died inside a turn or run. finished: its
last turn or run was closed. idle: it never had one. unreadable: its header cannot be used."""


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """One line of the list of sessions."""

    id: str
    status: SessionStatus
    kind: str = ""
    created: float = 0.0
    """Seconds since 1970, UTC."""
    parent: str | None = None
    depth: int = 0
    cwd: str = ""
    label: str = ""
    size: int = 0
    """Bytes of the log, not compressed."""
    modified: float = 0.0
    """When it was last written; seconds since 1970, UTC."""
    path: str = ""
    reason: str = ""
    """Why it is unreadable, and what to do."""
    holder: Holder | None = None
    """Who writes it now; given exactly when the status is `running`."""
    archived: bool = False
    """Whether it was put away compressed; reading and opening work as ever."""
    packed: int | None = None
    """Bytes that its archive takes in the store; None where it is not archived."""


MAX_LABEL = 200
"""Characters of a label that are kept."""


class SessionStore(Service, key="sessions"):
    """Sessions that outlive the process. One writer a session; any number of readers."""

    def __init__(self) -> None:
        self.hooks = Hooks()
        """Shared by every session that this store opens."""

    @abstractmethod
    async def create(self, header: Header, seed: Sequence[Logged] | None = None) -> Session:
        """A new session, open for writing. `seed` is copied in and closed with session/end-seed.

        Raises:
            SessionExists: the id is taken.
            EventInvalid: the header cannot be written.
            SessionWriteFailed: the store could not be written; no session was made.
        """

    @abstractmethod
    async def open(self, session_id: str, *, repair: bool = True) -> Session:
        """The session, open for writing. What a dead writer left open is closed by events first.

        Without `repair` the turn that it left open stays open, for somebody who goes on with it. Damage at the
        end of the log is moved to a file beside it, in either case, and told in `problems`. An archived
        session is taken out of its archive.

        Raises:
            SessionNotFound: there is none of that id.
            SessionLocked: someone writes it now.
            SessionFormatTooNew, SessionUnreadable: it was left untouched.
            SessionNotContinuable: it was left untouched; `read` shows it.
            SessionWriteFailed: the repair could not be written.
        """

    @abstractmethod
    async def read(self, session_id: str) -> Session:
        """The session as it is in the store now, for reading only; a live writer does not matter.

        Total: damage of any kind gives a session with problems.

        Raises:
            SessionNotFound: there is none of that id.
        """

    @abstractmethod
    async def list(self) -> list[SessionEntry]:
        """Every session, oldest first, those that cannot be read last. Reads headers and ends only."""

    @abstractmethod
    async def entry(self, session_id: str) -> SessionEntry:
        """The line of the list that one session has now. Total, as `list` is.

        Raises:
            SessionNotFound: there is none of that id.
        """

    @abstractmethod
    async def stamps(self) -> dict[str, str]:
        """For each session, by id, a token that changes whenever its log changes; nothing of a log is read.

        Compare tokens for equality only. That a writer came or went changes no token: ask `entry` for that.
        """

    @abstractmethod
    def raw(self, session_id: str) -> AsyncIterator[bytes]:
        """The bytes of the log exactly as they stand, damage included, in pieces; never compressed.

        Raises:
            SessionNotFound: there is none of that id.
            SessionUnreadable: the store cannot read them.
        """

    @abstractmethod
    async def add_raw(
        self, chunks: AsyncIterable[bytes], beside: Mapping[str, bytes] | None = None
    ) -> SessionEntry:
        """Take in a log exactly as it is, under the id in its header: whole and synced, or not at all.

        `beside` holds what `beside` gave of the session that the log comes from.

        Raises:
            SessionExists: the id is taken; nothing was overwritten.
            SessionUnreadable: the bytes do not begin with a header that can be used, or a name in `beside` is
                not one that `beside` gives.
            SessionFormatTooNew: the log was written by a later version.
            SessionWriteFailed: the store could not be written; nothing was added.
        """

    @abstractmethod
    async def archive(self, session_id: str) -> SessionEntry:
        """Put a session away compressed; it is still listed, read and opened as ever. Idempotent.

        Raises:
            SessionNotFound: there is none of that id.
            SessionLocked: someone writes it now.
            SessionWriteFailed: the store could not be written; the session is as before.
        """

    @abstractmethod
    async def beside(self, session_id: str) -> dict[str, bytes]:
        """What the store keeps of a session beside its log, by name: the damage that was moved out of it.

        Raises:
            SessionNotFound: there is none of that id.
            SessionUnreadable: it cannot be read.
        """

    async def tail(self, session_id: str, start: int) -> AsyncGenerator[bytes]:
        """As `raw`, from byte `start` on; nothing where the log is no longer than that."""
        async for chunk in self.raw(session_id):
            if start < len(chunk):
                yield chunk[start:]
            start = max(0, start - len(chunk))

    async def writers(self) -> dict[str, Holder]:
        """Who writes which session now, by its id. Cheap where a store keeps account of it."""
        return {one.id: one.holder for one in await self.list() if one.holder is not None}

    async def mark(self) -> str | None:
        """A token that changes whenever a session is made, removed, archived, opened for writing or closed.

        While it stays as it was, no log but those of `writers` has changed through a store. None: the store
        cannot tell just now; look at `stamps`.
        """
        return None

    @abstractmethod
    async def delete(self, session_id: str) -> None:
        """Remove the session and everything that is kept beside it. Blobs stay.

        Raises:
            SessionNotFound: there is none of that id.
            SessionLocked: someone writes it now.
        """

    async def fork(self, source: Session, header: Header, upto_seq: int | None = None) -> Session:
        """A new session that begins with the events of `source` up to number `upto_seq`, inclusive.

        None means all of them. `header` names the new session; where it came from is filled in.

        Raises:
            ForkRefused: the number is not in the log, or the turn it lies in is still open there.
            as `create`.
        """
        last = len(source) - 1 if upto_seq is None else upto_seq
        if not -1 <= last < len(source):
            raise ForkRefused(
                f"session {source.id} has no event {last}; choose a number from 0 to {len(source) - 1}"
            )
        prefix = [*source.logged[: last + 1]]
        place = place_of(prefix)
        if place.turn_open:
            raise ForkRefused(
                f"session {source.id} is inside turn {place.turn} at event {last}; fork before it or after its end"
            )
        return await self.create(forked(header, source, last), prefix)

    def veto(self, ctx: Context, veto: Veto) -> None:
        """Ask `veto` before each append to a session of this store, while the owner of `ctx` lives.

        Raises:
            FiberInactive: the owner is unloading or disposed.
        """
        ctx.check_open("veto of appends")
        self.hooks.vetoes.append(veto)
        ctx.defer("veto of appends", lambda: self.hooks.vetoes.remove(veto))


def forked(header: Header, source: Session, last: int) -> Header:
    """`header`, with where it was forked from."""
    return structs.replace(header, parent=source.id, forked_at=last)


def first_lines(header: Header, seed: Sequence[Logged] | None, now: float) -> tuple[bytes, Header, Loaded]:
    """The bytes that a new log begins with: the header, and the seed with its end.

    The label is cut to one line that a list can show. Also the header as it was written, and what loading those bytes would give.

    Raises:
        EventInvalid: the header cannot be written.
    """
    header = structs.replace(
        header,
        seed=header.seed if seed is None else len(seed),
        label=_shown(" ".join(header.label.split()))[:MAX_LABEL],
        cwd=_shown(header.cwd),
    )
    head = encode_header(header)
    loaded = Loaded(header=header, header_sound=True, digest=chain(head[:-1]))
    lines = [head]
    for entry in seed or ():
        _add(loaded, lines, recompose(entry, len(loaded.logged), loaded.digest))
    if seed is not None and (not seed or seed[-1].type != SeedEnded.TYPE):
        _add(loaded, lines, compose(SeedEnded(), len(loaded.logged), now, loaded.digest))
    written = b"".join(lines)
    loaded.end = loaded.size = len(written)
    return written, header, loaded


def _shown(text: str) -> str:
    """`text` as it can be written: what is no character, as in the name of a folder in another encoding, is `?`."""
    return text.encode("utf-8", "replace").decode()


def _add(loaded: Loaded, lines: list[bytes], composed: tuple[bytes, Logged, str]) -> None:
    line, logged, loaded.digest = composed
    lines.append(line)
    loaded.logged.append(logged)
