"""What a store promises of the keeping of sessions: lists, stamps, raw logs, archives, damage, many at once."""

from __future__ import annotations

import io
import os

import anyio

from leadline.core.session.codec import encode_header
from leadline.core.session.errors import (
    SessionExists,
    SessionFormatTooNew,
    SessionLocked,
    SessionNotFound,
    SessionUnreadable,
)
from leadline.core.session.events import (
    DamageMoved,
)
from leadline.core.session.load import load
from leadline.core.session.log import Session
from leadline.core.session.registry import EventTypes
from leadline.core.session.store import SessionStore
from leadline.testing.conformance.session_words import (
    Check,
    Noted,
    Stores,
    asked,
    header,
    pieces,
    raw_of,
    refused,
    same_events,
    whole_turn,
    written,
)


async def one_session_is_told_as_the_list_tells_it(stores: Stores) -> None:
    store = stores(EventTypes())
    for number, events in enumerate([whole_turn(), asked(), whole_turn()], 1):
        session = await store.create(header(f"s-{number}"))
        session.append_all(events)
        if number < 3:
            await session.close()
    other = stores(EventTypes())
    assert [await other.entry(it.id) for it in await other.list()] == await other.list()
    await refused(SessionNotFound, lambda: other.entry("s-none"))


async def who_writes_a_session_is_told(stores: Stores) -> None:
    store = stores(EventTypes())
    session = await store.create(header())
    holder = (await stores(EventTypes()).entry("s-1")).holder
    assert holder is not None and holder.pid == os.getpid() and holder.host, holder
    await session.close()
    assert (await stores(EventTypes()).entry("s-1")).holder is None
    again = await stores(EventTypes()).open("s-1")
    following = (await stores(EventTypes()).entry("s-1")).holder
    assert following is not None
    await again.close()


async def a_stamp_changes_with_the_log_alone(stores: Stores) -> None:
    store, other = stores(EventTypes()), stores(EventTypes())
    assert await other.stamps() == {}
    session = await store.create(header())
    await (await store.create(header("s-2"))).close()
    before = await other.stamps()
    assert set(before) == {"s-1", "s-2"}
    await other.read("s-1")
    assert await other.stamps() == before
    seen = {before["s-1"]}
    for event in whole_turn():
        session.append(event)
        now = await other.stamps()
        assert now["s-2"] == before["s-2"] and now["s-1"] not in seen, f"{event} changed no stamp"
        seen.add(now["s-1"])
    await session.close()
    await store.delete("s-2")
    assert set(await other.stamps()) == {"s-1"}


async def raw_bytes_are_the_log(stores: Stores) -> None:
    session = await stores(EventTypes()).create(header())
    session.append_all([*whole_turn(), Noted(text="ü")])
    await session.close()
    content = await raw_of(stores, "s-1")
    loaded = load(io.BytesIO(content))
    assert content.startswith(encode_header(session.header)) and content.endswith(b"\n")
    assert not loaded.problems and loaded.digest == session.digest and loaded.size == len(content)
    assert (await stores(EventTypes()).entry("s-1")).size == len(content)

    async def missing() -> None:
        await raw_of(stores, "s-none")

    await refused(SessionNotFound, missing)


async def the_rest_of_a_log_is_what_stands_behind_its_beginning(stores: Stores) -> None:
    content = await written(stores, "s-1", whole_turn())
    for start in (200, 0, 1, 200, len(content), len(content) + 9):
        rest = b"".join([chunk async for chunk in stores(EventTypes()).tail("s-1", start)])
        assert rest == content[start:], f"from {start}"
        await stores(EventTypes()).archive("s-1")  # from the second look on


async def who_writes_what_is_told_of_all(stores: Stores) -> None:
    session, other = await stores(EventTypes()).create(header()), stores(EventTypes())
    writers = await other.writers()
    assert writers == {"s-1": (await other.entry("s-1")).holder} and writers["s-1"] is not None
    await session.close()
    assert await other.writers() == {}


async def a_mark_that_stays_means_that_nothing_happened(stores: Stores) -> None:
    store, other = stores(EventTypes()), stores(EventTypes())
    seen = {await _settled(other)}

    async def told(what: str) -> None:
        mark = await _settled(other)
        assert mark is None or mark not in seen, f"no mark told that a session was {what}"
        seen.add(mark)

    session = await store.create(header())
    await told("made")
    await session.close()
    await told("closed")
    session = await store.open("s-1")
    await told("opened")
    await session.close()
    await store.archive("s-1")
    await told("archived")
    await store.delete("s-1")
    await told("deleted")


async def _settled(store: SessionStore) -> str | None:
    """The mark, once the store can tell; None where it does not within the time that the coarsest clock needs."""
    for _ in range(30):
        if (mark := await store.mark()) is not None:
            return mark
        await anyio.sleep(0.01)
    return None


async def a_log_is_taken_in_as_it_is(stores: Stores) -> None:
    content = await written(stores, "s-1", asked())
    line = content.split(b"\n")[3] + b"\n"
    for damaged in (content, content + b"torn", content + line, content[:-9], content.replace(line, b"")):
        store = stores(EventTypes())
        await store.delete("s-1")
        entry = await store.add_raw(pieces(damaged))
        assert entry.id == "s-1" and entry.size == len(damaged) and not entry.archived
        assert await raw_of(stores, "s-1") == damaged
        read = await stores(EventTypes()).read("s-1")
        assert bool(read.problems) == (damaged != content)
        await refused(SessionExists, lambda store=store: store.add_raw(pieces(content)))
    assert await raw_of(stores, "s-1") == content.replace(line, b"")


async def what_is_no_log_is_not_taken_in(stores: Stores) -> None:
    store = stores(EventTypes())
    good = encode_header(header())
    for wrong in (b"", b"no log\n", good[:-1], good.replace(b"s-1", b"../s-1"), b"{}\n" + good):
        await refused(SessionUnreadable, lambda wrong=wrong: store.add_raw(pieces(wrong)))
    newer = good.replace(b'"format":1', b'"format":99')
    await refused(SessionFormatTooNew, lambda: store.add_raw(pieces(newer)))
    for name in ("../s-1.damaged-1", "s-2.damaged-1", "s-1.damaged-", "s-1.jsonl"):
        await refused(SessionUnreadable, lambda name=name: store.add_raw(pieces(good), {name: b"x"}))
    assert await store.list() == [] and await store.stamps() == {}


async def an_archived_session_is_as_before(stores: Stores) -> None:
    content = await written(stores, "s-1", [*whole_turn(1), *asked(2)])
    store, other = stores(EventTypes()), stores(EventTypes())
    before, read = await store.entry("s-1"), await store.read("s-1")
    entry = await store.archive("s-1")
    assert entry.archived and entry == await store.archive("s-1") == await other.entry("s-1")
    assert [entry] == await other.list() and set(await other.stamps()) == {"s-1"}
    assert (entry.status, entry.size, entry.kind) == ("interrupted", len(content), "agent")
    assert (entry.created, entry.cwd, entry.modified) == (before.created, before.cwd, before.modified)
    same_events(read, await other.read("s-1"))
    assert await raw_of(stores, "s-1") == content
    await refused(SessionExists, lambda: other.create(header()))
    await refused(SessionExists, lambda: other.add_raw(pieces(content)))


async def an_archived_session_goes_on(stores: Stores) -> None:
    await written(stores, "s-1", whole_turn())
    store = stores(EventTypes())
    await store.archive("s-1")
    again = await stores(EventTypes()).open("s-1")
    await refused(SessionLocked, lambda: store.archive("s-1"))
    again.append_all(whole_turn(2))
    await again.close()
    same_events(again, await store.read("s-1"))
    assert not (await store.entry("s-1")).archived and len(again) == 12
    await store.archive("s-1")
    await store.delete("s-1")
    assert await store.list() == [] and await store.stamps() == {}
    await refused(SessionNotFound, lambda: store.archive("s-1"))


async def damage_is_moved_beside_and_stays_readable(stores: Stores) -> None:
    content = await written(stores, "s-1", whole_turn())
    fork = content.split(b"\n")[2].replace(b'"seq":1', b'"seq":3') + b"\n"
    store = stores(EventTypes())
    await store.delete("s-1")
    await store.add_raw(pieces(content + fork + b"torn"))
    assert await store.beside("s-1") == {}
    session = await store.open("s-1")
    await session.close()
    assert session.logged[6].type == DamageMoved.TYPE
    beside = await stores(EventTypes()).beside("s-1")
    assert [*beside.values()] == [fork + b"torn"], beside
    moved = await raw_of(stores, "s-1")
    await store.delete("s-1")
    await refused(SessionNotFound, lambda: store.beside("s-1"))
    await store.add_raw(pieces(moved), beside)
    assert await store.beside("s-1") == beside
    read = await stores(EventTypes()).read("s-1")
    assert [it.event.type for it in read.quarantined if it.event] == ["step/start"]
    await store.delete("s-1")


async def of_many_at_once_one_gets_the_session(stores: Stores) -> None:
    made: list[Session] = []
    told: list[Exception] = []

    async def make() -> None:
        try:
            made.append(await stores(EventTypes()).create(header()))
        except SessionExists as error:
            told.append(error)

    async def take() -> None:
        try:
            made.append(await stores(EventTypes()).open("s-1"))
        except SessionLocked as error:
            told.append(error)

    for doing in (make, take):
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(doing)
        assert len(made) == 1 and len(told) == 7, f"{len(made)} got it, {told}"
        made[0].append(Noted(text="mine"))
        await made[0].close()
        made.clear()
        told.clear()
    assert len(await stores(EventTypes()).read("s-1")) == 2


async def many_sessions_are_synced_at_once(stores: Stores) -> None:
    store = stores(EventTypes())
    sessions = [await store.create(header(f"s-{number}")) for number in range(20)]

    async def work(session: Session) -> None:
        for number in range(3):
            session.append(Noted(text=f"{session.id} {number}"))
            await session.sync()
        await session.close()

    async with anyio.create_task_group() as tasks:
        for session in sessions:
            tasks.start_soon(work, session)
    other = stores(EventTypes())
    for session in sessions:
        same_events(session, await other.read(session.id))


async def every_beginning_of_a_log_is_read_and_goes_on(stores: Stores) -> None:
    content = await written(stores, "s-1", asked())
    whole = await stores(EventTypes()).read("s-1")
    store = stores(EventTypes())
    head = content.index(b"\n") + 1
    ends = [at + 1 for at, byte in enumerate(content) if byte == 10]
    for end in sorted({*ends, *(at - 1 for at in ends[1:]), *range(head, len(content), 331)}):
        await store.delete("s-1")
        await store.add_raw(pieces(content[:end]))
        read = await store.read("s-1")
        count = content[:end].count(b"\n") - 1
        assert [bytes(it.data) for it in read.logged] == [bytes(it.data) for it in whole.logged[:count]]
        assert bool(read.problems) == (end not in ends)
        session = await store.open("s-1")
        session.append(Noted(text="on"))
        await session.close()
        again = await store.read("s-1")
        same_events(session, again)
        assert again.place.turn_open is False and again.derived().conversation.pairing_problem is None


KEEPING: tuple[Check, ...] = (
    one_session_is_told_as_the_list_tells_it,
    who_writes_a_session_is_told,
    a_stamp_changes_with_the_log_alone,
    raw_bytes_are_the_log,
    the_rest_of_a_log_is_what_stands_behind_its_beginning,
    who_writes_what_is_told_of_all,
    a_mark_that_stays_means_that_nothing_happened,
    a_log_is_taken_in_as_it_is,
    what_is_no_log_is_not_taken_in,
    an_archived_session_is_as_before,
    an_archived_session_goes_on,
    damage_is_moved_beside_and_stays_readable,
    of_many_at_once_one_gets_the_session,
    many_sessions_are_synced_at_once,
    every_beginning_of_a_log_is_read_and_goes_on,
)
"""Part of the promises of the seam; `session_store.CHECKS` has all of them."""
