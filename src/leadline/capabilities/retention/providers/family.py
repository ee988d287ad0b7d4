"""Which sessions belong together: who was made for whom, who is a fork, and what forks share."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from leadline.capabilities.retention.providers.scan import SessionIds
from leadline.core.session.codec import MAX_HEADER_BYTES, Header, decode_header
from leadline.core.session.errors import SessionError, SessionLocked, SessionNotFound, SessionUnreadable
from leadline.core.session.store import SessionEntry, SessionStore


@dataclass(frozen=True)
class Family:
    """A session and all that was made for it."""

    members: tuple[SessionEntry, ...]
    """The root first, then by depth."""
    forks: tuple[str, ...]
    """Ids of the forks of any of them, and of forks of those: no members."""
    adopted: tuple[SessionEntry, ...] = ()
    """Where the root is a fork: children of the session that it was forked from, which its log names."""

    @property
    def root(self) -> SessionEntry:
        """The session that the family is called by."""
        return self.members[0]

    @property
    def all(self) -> tuple[SessionEntry, ...]:
        """Members and adopted."""
        return self.members + self.adopted


class Kin:
    """All sessions of a store as they were at one moment, and how they belong together."""

    def __init__(self, store: SessionStore, entries: Iterable[SessionEntry]) -> None:
        self._store = store
        self.entries = {one.id: one for one in entries}
        self._children: dict[str, list[SessionEntry]] = {}
        for one in self.entries.values():
            if one.parent is not None:
                self._children.setdefault(one.parent, []).append(one)
        self._fork: dict[str, bool] = {}

    @classmethod
    async def of(cls, store: SessionStore) -> Kin:
        """The kin as the store lists it now."""
        return cls(store, await store.list())

    def forget(self, ids: Iterable[str]) -> None:
        """Sessions of these ids are gone."""
        for session_id in ids:
            entry = self.entries.pop(session_id, None)
            if entry is not None and entry.parent in self._children:
                self._children[entry.parent].remove(entry)

    async def family(self, session_id: str, *, adopt: bool = True) -> Family:
        """The family of a session.

        Raises:
            SessionNotFound: there is none of that id.
        """
        root = self.entries.get(session_id)
        if root is None or root.status == "unreadable":  # a list also names files that cannot be a session
            root = await self._store.entry(session_id)
        members, forks = await self._below([root])
        adopted: list[SessionEntry] = []
        if adopt and root.parent is not None and await self.is_fork(root):
            adopted = await self._adopted(root, {one.id for one in members})
        return Family((root, *_ordered(members[1:])), tuple(forks), tuple(adopted))

    async def is_root(self, entry: SessionEntry) -> bool:
        """Whether it belongs to nobody's family but its own."""
        return entry.parent is None or entry.parent not in self.entries or await self.is_fork(entry)

    async def is_fork(self, entry: SessionEntry) -> bool:
        """Whether a person forked it from its parent, as opposed to an agent that made it for itself."""
        if entry.depth:  # a child may begin with its parent's turns and is a child all the same
            return False
        if entry.id not in self._fork:
            header = await header_of(self._store, entry.id)
            self._fork[entry.id] = header is not None and header.forked_at is not None
        return self._fork[entry.id]

    async def shared(self, family: Family) -> set[str]:
        """Ids of those of the family, the root excepted, that somebody outside needs.

        Those are the children that a fork names, and what the root adopted while its parent is still there.
        """
        inside = {one.id for one in family.all}
        wanted = inside - {family.root.id}
        forks: set[str] = set(family.forks)
        if family.adopted:
            forks |= {one.id for one in self.entries.values() if one.parent and await self.is_fork(one)}
        needed: set[str] = set()
        for fork in sorted(forks - inside):
            needed |= await named_in(self._store, fork, wanted)
        adopted = {one.id for one in family.adopted}
        needed |= {
            one.id for one in family.adopted if one.parent in self.entries and one.parent not in adopted
        }
        below, _ = await self._below([self.entries[one] for one in sorted(needed)])
        return needed | {one.id for one in below}

    async def above(self, entry: SessionEntry) -> list[SessionEntry]:
        """The sessions that it was made for, the nearest first."""
        found: list[SessionEntry] = []
        seen = {entry.id}
        while entry.parent is not None and not await self.is_fork(entry):
            above = self.entries.get(entry.parent)
            if above is None or above.id in seen:
                break
            seen.add(above.id)
            found.append(above)
            entry = above
        return found

    async def _below(self, roots: list[SessionEntry]) -> tuple[list[SessionEntry], list[str]]:
        """`roots` and what was made for them, and the forks of all those. Ends on any links, a circle too."""
        members = list(roots)
        seen = {one.id for one in roots}
        forks: list[str] = []
        for one in members:
            for child in self._children.get(one.id, ()):
                if child.id in seen:
                    continue
                seen.add(child.id)
                if await self.is_fork(child):
                    forks.append(child.id)
                else:
                    members.append(child)
        for fork in forks:
            for child in self._children.get(fork, ()):
                if child.id not in seen and await self.is_fork(child):
                    seen.add(child.id)
                    forks.append(child.id)
        return members, forks

    async def _adopted(self, root: SessionEntry, inside: AbstractSet[str]) -> list[SessionEntry]:
        sources: set[str] = set()
        source = root
        while source.parent is not None and source.parent not in sources and await self.is_fork(source):
            sources.add(source.parent)
            above = self.entries.get(source.parent)
            if above is None:
                break
            source = above
        wanted = {
            one.id
            for source_id in sources
            for one in self._children.get(source_id, ())
            if one.id not in inside and not await self.is_fork(one)
        }
        if not wanted:
            return []
        named = await named_in(self._store, root.id, wanted)
        below, _ = await self._below([self.entries[one] for one in sorted(named)])
        return _ordered(one for one in below if one.id not in inside)


@asynccontextmanager
async def raw(store: SessionStore, session_id: str) -> AsyncGenerator[AsyncIterator[bytes]]:
    """As `SessionStore.raw`; whoever reads only some of it leaves no open file behind."""
    chunks = store.raw(session_id)
    try:
        yield chunks
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()


async def digest_of(store: SessionStore, session_id: str) -> str | None:
    """sha256 of a log in hex; None where there is no such session, empty where it cannot be read."""
    digest = hashlib.sha256()
    try:
        async with raw(store, session_id) as chunks:
            async for chunk in chunks:
                digest.update(chunk)
    except SessionNotFound:
        return None
    except SessionError:
        return ""
    return digest.hexdigest()


async def header_of(store: SessionStore, session_id: str) -> Header | None:
    """The header of a session; None where there is none that can be read, or no session."""
    head = b""
    try:
        async with raw(store, session_id) as chunks:
            async for chunk in chunks:
                head += chunk
                if b"\n" in chunk or len(head) > MAX_HEADER_BYTES:
                    break
    except (SessionNotFound, SessionUnreadable):
        return None
    found = decode_header(head.partition(b"\n")[0])
    return found if isinstance(found, Header) else None


async def named_in(store: SessionStore, session_id: str, wanted: AbstractSet[str]) -> set[str]:
    """Which of `wanted` the log of a session names; none where there is no such session."""
    ids = SessionIds(wanted)
    if wanted:
        with suppress(SessionNotFound):
            async with raw(store, session_id) as chunks:
                async for chunk in chunks:
                    ids.feed(chunk)
    return ids.found


def locked(entry: SessionEntry) -> SessionLocked:
    """The refusal to touch a session that somebody writes."""
    holder = entry.holder
    if holder is None:
        return SessionLocked(entry.id, "", None, None)
    return SessionLocked(entry.id, holder.host, holder.pid, holder.started)


def _ordered(entries: Iterable[SessionEntry]) -> list[SessionEntry]:
    return sorted(entries, key=lambda one: (one.depth, one.created, one.id))
