"""A work that uses all of a session store, for anybody's store.

work = StoreWork(lambda folder, types: MyStore(folder, types=types))

async def test_my_store_survives_crashes(tmp_path):
    journal = record("tests.test_my_store:work", tmp_path / "whole")
    found = await survive(work, journal, tmp_path, crashes(journal))
    assert found.ok, found
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Generic, TypeVar, cast

from leadline.core.session.errors import SessionNotFound
from leadline.core.session.log import Session
from leadline.core.session.registry import EventTypes
from leadline.core.session.store import SessionEntry, SessionStore
from leadline.testing.conformance.session_store import Noted, header, whole_turn
from leadline.testing.faults.images import Image
from leadline.testing.faults.work import Note

S = TypeVar("S", bound=SessionStore)

SESSIONS = ("s-1", "s-2", "s-3")
FORK = "s-4"
DELETED = "s-5"
ROUNDS = 4


async def _nothing(store: SessionStore) -> None:
    """A store that needs no closing."""


class StoreWork(Generic[S]):
    """Several sessions at once: turns appended one by one and together, synced, forked, deleted, closed.

    After a crash: every session that was told to be there is; each begins with everything that was promised
    (appended, after a kill; synced, after a power cut), byte for byte, and with nothing that was not written;
    nothing refuses to be listed, read or opened; and it goes on to the same end.
    """

    def __init__(
        self, opened: Callable[[Path, EventTypes], S], close: Callable[[S], Awaitable[None]] = _nothing
    ) -> None:
        """`opened` opens the store that is kept in a folder, as a new process does; `close` closes it."""
        self._opened = opened
        self._close = close

    async def start(self, folder: Path, note: Note) -> object:
        return await self._work(folder, note)

    async def resume(self, folder: Path, image: Image) -> object:
        store = self._opened(folder, EventTypes())
        try:
            listed: set[str] = set()
            for entry in await store.list():
                assert entry.status != "running", f"{entry.id} is listed as running, and its writer is dead"
                if entry.status == "unreadable":
                    _may_be_unreadable(image, entry)
                    await store.delete(entry.id)
                    continue
                listed.add(entry.id)
                await self._kept(store, entry.id, image)
            _promised(image, listed)
        finally:
            await self._close(store)
        return await self._work(folder, lambda name, value: None)

    async def _kept(self, store: SessionStore, session_id: str, image: Image) -> None:
        session = await store.read(session_id)
        texts = [event.text for event in session.of(Noted)]
        assert texts == [str(n) for n in range(len(texts))], f"{session_id} has {texts}"
        promise = "synced" if image.power_cut else "appended"
        least = max((n for of, n in _pairs(image, promise) if of == session_id), default=0)
        assert len(texts) >= least, f"{session_id} has {len(texts)} notes; {least} were {promise}"

    async def _work(self, folder: Path, note: Note) -> object:
        store = self._opened(folder, EventTypes())
        try:
            sessions = [await _open_or_create(store, session_id, note) for session_id in SESSIONS]
            for n in range(ROUNDS * 3):
                for session in sessions:
                    await _round(session, n, note)
            await self._fork(store, sessions[0], note)
            await self._delete(store, note)
            for session in sessions:
                await session.close()
            came_to = {
                session_id: [event.text for event in (await store.read(session_id)).of(Noted)]
                for session_id in (*SESSIONS, FORK)
            }
            gone = DELETED not in {entry.id for entry in await store.list()}
        finally:
            await self._close(store)
        return {"notes": came_to, "deleted": gone}

    async def _fork(self, store: SessionStore, source: Session, note: Note) -> None:
        try:
            fork = await store.open(FORK)
            if len(fork) < len(source):  # it was never synced, and the power was cut
                await fork.close()
                await store.delete(FORK)
                raise SessionNotFound(FORK)
        except SessionNotFound:
            fork = await store.fork(source, header(FORK))
        await fork.sync()
        note("made", FORK)
        await fork.close()

    async def _delete(self, store: SessionStore, note: Note) -> None:
        doomed = await _open_or_create(store, DELETED, lambda name, value: None)
        doomed.append_all(whole_turn(doomed.place.turn + 1))
        await doomed.close()
        await store.delete(DELETED)
        note("deleted", DELETED)


async def _open_or_create(store: SessionStore, session_id: str, note: Note) -> Session:
    try:
        session = await store.open(session_id)
    except SessionNotFound:
        session = await store.create(header(session_id))
    note("created", session_id)
    await session.sync()
    note("made", session_id)
    return session


async def _round(session: Session, n: int, note: Note) -> None:
    """The note number `n` and what goes with it, unless the log has it already."""
    done = sum(1 for _ in session.of(Noted))
    if done > n:
        return
    if n % 3 == 1:
        turn = session.place.turn + 1
        session.append_all([*whole_turn(turn), Noted(text=str(n))])
    else:
        session.append(Noted(text=str(n), weight=n / 7))
    note("appended", [session.id, n + 1])
    if n % 3 == 2:
        await session.sync()
        note("synced", [session.id, n + 1])


def _pairs(image: Image, name: str) -> list[tuple[str, int]]:
    return [cast("tuple[str, int]", tuple(cast("list[object]", value))) for value in image.noted(name)]


def _may_be_unreadable(image: Image, entry: SessionEntry) -> None:
    """Only a power cut may leave half a header, and only where nothing had been synced."""
    promised = image.noted("made") if image.power_cut else image.noted("created")
    assert image.power_cut and entry.id not in promised, f"{entry.id} cannot be read: {entry.reason}"


def _promised(image: Image, there: set[str]) -> None:
    made = {str(value) for value in image.noted("made" if image.power_cut else "created")}
    assert made <= there, f"{sorted(made - there)} had been made and are gone"
    if not image.power_cut:
        back = {str(value) for value in image.noted("deleted")} & there
        assert not back, f"{sorted(back)} had been deleted and are back"
