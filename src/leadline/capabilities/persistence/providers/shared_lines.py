"""Lines before models that all processes of one home directory stand in: one small database, and signs of life.

What is in it matters for a minute: places, turns, what was used, pauses. So it is not synced, and where it is
damaged it is made anew. A place belongs to a process; that of one that died is free when the next asks for it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from pydantic import BaseModel, ConfigDict

from leadline.capabilities.persistence.providers.presence import Presence, is_present, sweep
from leadline.core.clock import Clock
from leadline.core.config import ConfigParser
from leadline.core.home import Home, HomeUnusable
from leadline.core.ids import Ids
from leadline.core.llm.limits import Bucket, RateLimits
from leadline.core.spend.shared import (
    Held,
    Place,
    SharedLimits,
    SharedLines,
    SharedLinesUnusable,
    SharedState,
)
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin

if TYPE_CHECKING:
    import sqlite3

FOLDER = "lines"
FILE = "lines-1.sqlite"
"""Its name has the version of the tables: what another version keeps there is of no use to this one."""

_BUSY_S = 0.25
_MINUTE_S = 60.0
_KEPT_S = 2.0
"""Seconds for which a process that does not ask again keeps its turn, beyond the wait that it was told."""
_SOON_S = 0.1
"""A wait whose end depends on those whose turn is before."""
_APART_S = 5.0
"""What lies further in the future was written before the clock was set back."""
_LONGEST_PAUSE_S = 900.0
_REMEMBERED_S = 86_400.0

_TABLES = """
create table if not exists place (
  number integer primary key autoincrement, model text not null, process text not null
) strict;
create index if not exists place_of_model on place (model);
create table if not exists ticket (
  number integer primary key autoincrement, model text not null, process text not null,
  tokens integer not null, until real not null, unique (model, process)
) strict;
create table if not exists used (
  place integer not null, model text not null, at real not null, requests integer not null, tokens integer not null
) strict;
create index if not exists used_of_model on used (model, at);
create index if not exists used_of_place on used (place);
create table if not exists learned (
  model text primary key, heard real not null, said text not null, ceiling integer, paused_until real not null
) strict;
"""
_MODELS = " union ".join(f"select model from {table}" for table in ("place", "ticket", "used", "learned"))


@dataclass(frozen=True, slots=True)
class _Ahead:
    """Those of other processes whose turn is before this one's."""

    count: int
    tokens: int


class SqliteSharedLines(SharedLines):
    """`SharedLines` over a database in a folder of the home directory. Nothing is made before it is needed."""

    def __init__(self, home: Home, clock: Clock, name: str) -> None:
        """Lines of `home`; `name` tells this process from all others."""
        self._home = home
        self._clock = clock
        self._name = name
        self._folder = home.path / FOLDER
        self._db: sqlite3.Connection | None = None
        self._presence: Presence | None = None
        self._ended: list[tuple[Place, str, int | None, bool]] = []
        """Calls that have ended and could not be written down yet."""

    # the seam

    def take(self, model: str, limits: SharedLimits, tokens: int) -> Place | Held:
        """See `SharedLines.take`."""
        now = self._clock.now()
        try:
            with self._writing() as db:
                self._write_ended(db, now)
                _forget_old(db, model, now)
                held = self._held(db, model, limits, tokens, now)
                if held is not None:
                    until = now + (held.seconds or 0.0) + _KEPT_S
                    db.execute(
                        "insert into ticket (model, process, tokens, until) values (?, ?, ?, ?)"
                        " on conflict do update set tokens = excluded.tokens, until = excluded.until",
                        (model, self._name, tokens, until),
                    )
                    return held
                return self._placed(db, model, tokens, now)
        except _Busy:
            return Held("slots", None)

    def give_back(self, model: str, place: Place, tokens: int | None, *, made: bool = True) -> None:
        """See `SharedLines.give_back`."""
        self._ended.append((place, model, tokens, made))
        with suppress(_Busy), self._writing() as db:
            self._write_ended(db, self._clock.now())

    def leave(self, model: str) -> None:
        """See `SharedLines.leave`."""
        with suppress(_Busy), self._writing() as db:
            db.execute("delete from ticket where model = ? and process = ?", (model, self._name))

    def tell(
        self, model: str, *, learned: RateLimits | None, ceiling: int | None, paused_s: float | None
    ) -> None:
        """See `SharedLines.tell`."""
        now = self._clock.now()
        said = msgspec.json.encode(learned).decode()
        until = now + min(paused_s or 0.0, _LONGEST_PAUSE_S)
        with suppress(_Busy), self._writing() as db:
            db.execute(
                "insert into learned (model, heard, said, ceiling, paused_until) values (?, ?, ?, ?, ?)"
                " on conflict do update set heard = excluded.heard, said = excluded.said,"
                " ceiling = excluded.ceiling, paused_until = max(paused_until, excluded.paused_until)",
                (model, now, said, ceiling, until),
            )

    def states(self) -> Sequence[SharedState]:
        """See `SharedLines.states`."""
        if not (self._folder / FILE).exists():
            return ()
        now = self._clock.now()
        try:
            with self._writing() as db:
                _forget_old(db, None, now)
                self._forget_dead(db)
                models = [model for (model,) in db.execute(_MODELS)]
                return tuple(self._state(db, model, now) for model in sorted(models))
        except _Busy:
            raise SharedLinesUnusable(
                f"{self._folder / FILE} is kept busy by another process; try again"
            ) from None

    def close(self) -> None:
        """Give back everything that this process has. Idempotent."""
        db, self._db = self._db, None
        if db is not None:
            import sqlite3  # noqa: PLC0415  as in `_writing`

            with suppress(sqlite3.Error):
                db.execute("delete from place where process = ?", (self._name,))
                db.execute("delete from ticket where process = ?", (self._name,))
            with suppress(sqlite3.Error):
                db.close()
        presence, self._presence = self._presence, None
        if presence is not None:
            presence.end()

    # decisions, inside of one transaction

    def _held(
        self, db: sqlite3.Connection, model: str, limits: SharedLimits, tokens: int, now: float
    ) -> Held | None:
        """What keeps a call of this process from going now."""
        found = db.execute("select paused_until from learned where model = ?", (model,)).fetchone()
        if found is not None and now < found[0] <= now + _LONGEST_PAUSE_S:
            return Held("paused", found[0] - now)
        ahead = self._ahead(db, model, now)
        if self._full(db, model, limits, ahead):
            self._forget_dead(db)
            ahead = self._ahead(db, model, now)
            if self._full(db, model, limits, ahead):
                return Held("slots", None)
        alone = not ahead.count
        if limits.requests_per_minute is not None and (
            wait_s := _minute(
                db, model, "requests", 1 + ahead.count, limits.requests_per_minute, now, alone=alone
            )
        ):
            return Held("requests", wait_s)
        if limits.tokens_per_minute is not None and (
            wait_s := _minute(
                db, model, "tokens", tokens + ahead.tokens, limits.tokens_per_minute, now, alone=alone
            )
        ):
            return Held("tokens", wait_s)
        return None

    def _full(self, db: sqlite3.Connection, model: str, limits: SharedLimits, ahead: _Ahead) -> bool:
        if limits.max is None:
            return False
        (active,) = db.execute("select count(*) from place where model = ?", (model,)).fetchone()
        return active + ahead.count >= limits.max

    def _ahead(self, db: sqlite3.Connection, model: str, now: float) -> _Ahead:
        mine = "select number from ticket where model = ? and process = ?"
        count, tokens = db.execute(
            "select count(*), ifnull(sum(tokens), 0) from ticket where model = ? and process <> ?"
            f" and until > ? and number < ifnull(({mine}), 9e18)",
            (model, self._name, now, model, self._name),
        ).fetchone()
        return _Ahead(count, tokens)

    def _placed(self, db: sqlite3.Connection, model: str, tokens: int, now: float) -> Place:
        db.execute("delete from ticket where model = ? and process = ?", (model, self._name))
        row = db.execute("insert into place (model, process) values (?, ?)", (model, self._name))
        number = row.lastrowid or 0
        db.execute("insert into used values (?, ?, ?, 1, ?)", (number, model, now, tokens))
        return Place(number)

    def _write_ended(self, db: sqlite3.Connection, now: float) -> None:
        for place, model, tokens, made in self._ended:
            db.execute("delete from place where number = ?", (place.number,))
            if not made:
                db.execute("delete from used where place = ?", (place.number,))
            elif tokens is not None:
                _correct(db, place, model, tokens, now)
        self._ended.clear()

    def _forget_dead(self, db: sqlite3.Connection) -> None:
        """Free what processes had that are no more."""
        query = "select process from place union select process from ticket"
        for (process,) in db.execute(query).fetchall():
            if process != self._name and not is_present(self._folder, process):
                db.execute("delete from place where process = ?", (process,))
                db.execute("delete from ticket where process = ?", (process,))

    def _state(self, db: sqlite3.Connection, model: str, now: float) -> SharedState:
        (active,) = db.execute("select count(*) from place where model = ?", (model,)).fetchone()
        (waiting,) = db.execute(
            "select count(*) from ticket where model = ? and until > ?", (model, now)
        ).fetchone()
        requests, tokens = db.execute(
            "select ifnull(sum(requests), 0), ifnull(sum(tokens), 0) from used where model = ?", (model,)
        ).fetchone()
        row = db.execute(
            "select heard, said, ceiling, paused_until from learned where model = ?", (model,)
        ).fetchone()
        if row is None:
            return SharedState(model, active, waiting, requests, tokens)
        heard, said, ceiling, paused_until = row
        paused_s = paused_until - now if now < paused_until <= now + _LONGEST_PAUSE_S else None
        ago_s = max(0.0, now - heard)
        learned = _said(said, ago_s)
        return SharedState(model, active, waiting, requests, tokens, paused_s, ceiling, learned, ago_s)

    # the file

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        """A transaction that nobody else writes beside.

        Raises:
            _Busy: another process keeps the file for longer than it may.
            SharedLinesUnusable: it cannot be used.
        """
        import sqlite3  # noqa: PLC0415  most programs never have a line that is shared

        try:
            db = self._opened()
            db.execute("begin immediate")
            try:
                yield db
            except BaseException:
                db.execute("rollback")
                raise
            db.execute("commit")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise _Busy from None
            raise self._unusable(error) from error
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error

    def _opened(self) -> sqlite3.Connection:
        import sqlite3  # noqa: PLC0415  as in `_writing`

        if self._db is not None and self._presence is not None and self._presence.seen:
            return self._db
        self.close()
        try:
            self._home.make(FOLDER)
        except HomeUnusable as error:
            raise SharedLinesUnusable(str(error)) from error
        sweep(self._folder)
        self._presence = Presence.give(self._folder, self._name)
        try:
            self._db = _connected(self._folder / FILE)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise
            for suffix in ("", "-wal", "-shm"):
                (self._folder / f"{FILE}{suffix}").unlink(missing_ok=True)
            self._db = _connected(self._folder / FILE)
        return self._db

    def _unusable(self, error: Exception) -> SharedLinesUnusable:
        self.close()
        return SharedLinesUnusable(
            f"{self._folder / FILE} cannot be used ({error}), so that other processes are not reckoned with; "
            "make its folder writable, or remove it while nothing runs"
        )


class _Busy(Exception):
    """Another process keeps the file for longer than it may."""


def _connected(path: Path) -> sqlite3.Connection:
    import sqlite3  # noqa: PLC0415  as in `_writing`

    path.touch(mode=0o600)
    db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
    try:
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = off")
        db.executescript(_TABLES)
        now_unused = "delete from learned where heard < (select max(heard) from learned) - ?"
        db.execute(now_unused, (_REMEMBERED_S,))
    except BaseException:
        db.close()
        raise
    return db


def _minute(
    db: sqlite3.Connection, model: str, what: str, amount: int, limit: int, now: float, *, alone: bool
) -> float:
    """Seconds until `amount` of requests or tokens fits into the minute; zero where it does.

    What never fits does as soon as nothing else is used, if it is one call `alone`.
    """
    (used,) = db.execute(f"select ifnull(sum({what}), 0) from used where model = ?", (model,)).fetchone()
    excess = used + (min(amount, limit) if alone else amount) - limit
    if excess <= 0:
        return 0.0
    for at, one in db.execute(f"select at, {what} from used where model = ? order by at", (model,)):
        excess -= one
        if excess <= 0:
            return max(_SOON_S, at + _MINUTE_S - now)
    return _SOON_S


def _correct(db: sqlite3.Connection, place: Place, model: str, tokens: int, now: float) -> None:
    """More than was thought counts from now; less counts as never used."""
    row = db.execute("select tokens from used where place = ?", (place.number,)).fetchone()
    if row is None:
        return
    if tokens > row[0]:
        db.execute("insert into used values (0, ?, ?, 0, ?)", (model, now, tokens - row[0]))
    else:
        db.execute("update used set tokens = ? where place = ?", (tokens, place.number))


def _forget_old(db: sqlite3.Connection, model: str | None, now: float) -> None:
    of = "" if model is None else "model = ? and "
    args = () if model is None else (model,)
    db.execute(f"delete from used where {of}(at <= ? or at > ?)", (*args, now - _MINUTE_S, now + _APART_S))
    db.execute(f"delete from ticket where {of}until <= ?", (*args, now - _MINUTE_S))


def _said(text: str, ago_s: float) -> RateLimits | None:
    try:
        said = msgspec.json.decode(text, type=RateLimits | None)
    except msgspec.MsgspecError:
        return None
    return RateLimits(_later(said.requests, ago_s), _later(said.tokens, ago_s)) if said is not None else None


def _later(bucket: Bucket | None, ago_s: float) -> Bucket | None:
    if bucket is None or bucket.resets_in_s is None:
        return bucket
    return Bucket(bucket.limit, bucket.remaining, max(0.0, bucket.resets_in_s - ago_s), bucket.steady)


class SharedLinesConfig(BaseModel):
    """Lines that several processes share: there is nothing to set."""

    model_config = ConfigDict(extra="forbid")


async def _apply(ctx: Context, config: SharedLinesConfig) -> None:
    lines = SqliteSharedLines(ctx.get(Home), ctx.get(Clock), ctx.get(Ids).token(16))
    ctx.defer("places in shared lines", lines.close)
    ctx.provide(SharedLines, lines)


plugin: Plugin[SharedLinesConfig] = Plugin(
    "shared_lines",
    _apply,
    config=ConfigParser(SharedLinesConfig),
    needs=(Home, Clock, Ids),
    provides=(SharedLines,),
)
