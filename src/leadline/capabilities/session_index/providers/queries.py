"""What is asked of a list as a condition for the index, and cursors as text."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TypeVar

import msgspec

from leadline.capabilities.session_index.providers.words import Words, folded, parse
from leadline.capabilities.session_index.seam import STATUSES, ListQuery, QueryRefused
from leadline.kernel.errors import did_you_mean

C = TypeVar("C", bound=msgspec.Struct)

MAX_LIMIT = 1_000


class ListCursor(msgspec.Struct, frozen=True, array_like=True):
    """The last session of a page."""

    unreadable: bool
    created: float
    id: str


class SearchCursor(msgspec.Struct, frozen=True, array_like=True):
    """How much of a search was shown."""

    every: bool
    """Whether all words are asked for, or any."""
    skip: int


class Condition:
    """Parts of a WHERE, and their values."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.values: list[object] = []

    def add(self, part: str, *values: object) -> None:
        """Demand `part` as well."""
        self._parts.append(part)
        self.values.extend(values)

    @property
    def text(self) -> str:
        """The condition; true where nothing is demanded."""
        return " AND ".join(self._parts) or "1"


def condition(query: ListQuery) -> Condition:
    """Everything but the words that are asked for, which need another table.

    Raises:
        QueryRefused: a time, a status, the limit or the cursor is none.
    """
    check_limit(query.limit)
    out = Condition()
    if query.parent is not None:
        out.add("parent = ?", query.parent)
    elif query.roots_only:
        out.add("depth = 0")
    if query.kind is not None:
        out.add("kind = ?", query.kind)
    if query.status:
        out.add(f"status IN ({', '.join('?' * len(query.status))})", *map(_status, query.status))
    if query.since is not None:
        out.add("created >= ?", _moment(query.since, "since")[0])
    if query.until is not None:
        out.add("created < ? AND status != 'unreadable'", _moment(query.until, "until")[1])
    _facts(query, out)
    if query.cursor is not None:
        last = opened(query.cursor, ListCursor)
        out.add(
            "((status = 'unreadable') > ? OR (status = 'unreadable') = ? AND (created < ? OR created = ? AND id < ?))",
            last.unreadable,
            last.unreadable,
            last.created,
            last.created,
            last.id,
        )
    return out


def _facts(query: ListQuery, out: Condition) -> None:
    for column, letters in (
        ("title_folded", query.title),
        ("corpora_folded", query.corpus),
        ("lower(model)", query.model),
    ):
        if letters is not None:
            out.add(f"instr({column}, ?) > 0", folded(letters))
    if query.min_cost is not None:
        out.add("cost >= ?", query.min_cost)
    if query.max_cost is not None:
        out.add("cost <= ?", query.max_cost)


def needs_facts(query: ListQuery) -> bool:
    """Whether logs have to be read to know which sessions are meant, not only to show them."""
    asked = (query.title, query.corpus, query.model, query.min_cost, query.max_cost, query.text)
    return bool(query.status) or any(one is not None for one in asked)


def check_limit(limit: int) -> None:
    """Refuse a limit that is none: raises QueryRefused."""
    if not 1 <= limit <= MAX_LIMIT or limit != int(limit):
        raise QueryRefused(f"limit {limit} cannot be used; give a number from 1 to {MAX_LIMIT}")


def words_in(text: str) -> Words:
    """What is searched for.

    Raises:
        QueryRefused: nothing is.
    """
    found = parse(text)
    if found is None:
        raise QueryRefused(f"there is no word in {text!r} that could be searched for; give letters or digits")
    return found


def _status(status: str) -> str:
    if status not in STATUSES:
        raise QueryRefused(f"{status!r} is no status of a session{did_you_mean(status, STATUSES)}")
    return status


def _moment(text: str, field: str) -> tuple[float, float]:
    """Seconds since 1970 at which a date or time begins and is over."""
    try:
        if len(text) == len("2026-01-01"):
            day = date.fromisoformat(text)
            start = datetime(day.year, day.month, day.day, tzinfo=UTC)
            return start.timestamp(), (start + timedelta(days=1)).timestamp()
        found = datetime.fromisoformat(text)
        start = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
        return start.timestamp(), start.timestamp() + (1e-6 if found.microsecond else 1.0)
    except (ValueError, OverflowError) as error:
        raise QueryRefused(
            f"{field} {text!r} is no date or time; write 2026-11-30 or 2026-11-30T17:45:00"
        ) from error


def closed(cursor: msgspec.Struct) -> str:
    """A cursor as text."""
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")


def opened(text: str, kind: type[C]) -> C:
    """A cursor from its text.

    Raises:
        QueryRefused: it is none.
    """
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=kind)
    except (ValueError, binascii.Error) as error:
        raise QueryRefused(
            f"{text!r} is no cursor of such a list; use the one that came with the page before"
        ) from error


def one_of(numbers: Sequence[int]) -> tuple[str, str]:
    """A part of a condition that a session's number is one of many, and its value."""
    return "n IN (SELECT value FROM json_each(?))", msgspec.json.encode(numbers).decode()
