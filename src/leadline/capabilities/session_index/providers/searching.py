"""One search of the index: passages that match, gathered under the session that a person started."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.capabilities.session_index.providers.queries import SearchCursor, closed, opened
from leadline.capabilities.session_index.providers.records import Match, Row
from leadline.capabilities.session_index.providers.words import Words, snippet
from leadline.capabilities.session_index.seam import Hit, Page, Summary

if TYPE_CHECKING:
    from leadline.capabilities.session_index.providers.index_file import IndexFile

_FIRST = 200
"""Passages that are fetched first; then four times as many, and so on, until the page is full."""

_WEIGHED = 4_000
"""Passages that are weighed against each other. Where more match, the word tells little: newer ones come first."""

_END = 1 << 62


@dataclass(frozen=True, slots=True)
class _Found:
    root: str
    session: str
    match: Match


class Search:
    """What is looked for, in the index as it is now. To be used in a worker thread."""

    def __init__(self, file: Callable[[], IndexFile], words: Words) -> None:
        self._file = file()
        self._words = words
        self._roots: dict[str, str] = {}

    def sessions(self, *, roots: bool) -> list[int]:
        """Numbers of all sessions that have all words; with `roots`, of those that they were made for."""
        found = self._file.matching_sessions(self._words.all)
        if not roots:
            return found
        family = self._file.family(found)
        self._climb([one for one in family.values() if one[2]])
        own = [n for n, (_, _, depth) in family.items() if not depth]
        above = {self._roots[id_] for id_, _, depth in family.values() if depth}
        return own + [row.n for row in self._file.by_ids(sorted(above)).values()]

    def page(
        self, kind: str | None, limit: int, cursor: str | None, shown: Callable[[Row], Summary]
    ) -> Page[Hit]:
        """Hits behind `cursor`."""
        at = opened(cursor, SearchCursor) if cursor is not None else SearchCursor(every=True, skip=0)
        found = self._gathered(self._words.all if at.every else self._words.any, kind, at.skip + limit + 1)
        if not found and cursor is None and len(self._words.terms) > 1:
            at = SearchCursor(every=False, skip=0)
            found = self._gathered(self._words.any, kind, limit + 1)
        expression = self._words.all if at.every else self._words.any
        chosen = found[at.skip : at.skip + limit]
        rows = self._file.by_ids([one.root for one in chosen])
        hits = tuple(self._hit(one, shown(rows[one.root]), expression) for one in chosen)
        more = len(found) > at.skip + limit
        return Page(hits, closed(SearchCursor(at.every, at.skip + limit)) if more else None)

    def _hit(self, found: _Found, summary: Summary, expression: str) -> Hit:
        line, marks = snippet(self._file.marked(found.match.row, expression), self._words.runs)
        return Hit(summary=summary, session=found.session, place=found.match.place, snippet=line, marks=marks)

    def _gathered(self, expression: str, kind: str | None, enough: int) -> list[_Found]:
        """The best passage of each root, best first, until there are enough."""
        seen: dict[str, _Found] = {}
        for block in self._blocks(expression):
            found = self._under_roots(block)
            kinds = self._file.by_ids(sorted({one.root for one in found})) if kind is not None else {}
            for one in found:
                if kind is None or kinds[one.root].kind == kind:
                    seen.setdefault(one.root, one)
            if len(seen) >= enough:
                break
        return list(seen.values())

    def _blocks(self, expression: str) -> Iterator[list[Match]]:
        before = _END
        while before:
            first = self._file.nth_newest(expression, before, _WEIGHED)
            offset, size = 0, _FIRST
            while block := self._file.matches(expression, first, before, size, offset):
                yield block
                offset, size = offset + len(block), size * 4
            before = first

    def _under_roots(self, matches: Sequence[Match]) -> list[_Found]:
        family = self._file.family(sorted({one.session for one in matches}))
        self._climb([one for one in family.values() if one[2]])
        return [
            _Found(
                self._roots.get(family[one.session][0], family[one.session][0]), family[one.session][0], one
            )
            for one in matches
            if one.session in family
        ]

    def _climb(self, below: Sequence[tuple[str, str | None, int]]) -> None:
        """Find for sessions (id, parent, depth) whom they were made for; where that is gone, as far up as there is."""
        at = {id_: (parent, depth) for id_, parent, depth in below}
        self._roots.update({id_: id_ for id_ in at})
        while at:
            rows = self._file.by_ids(sorted({parent for parent, _ in at.values() if parent}))
            above: dict[str, tuple[str | None, int]] = {}
            for id_, (parent, depth) in at.items():
                row = rows.get(parent) if parent else None
                if row is not None and row.depth < depth:  # a log that was altered may name any parent
                    self._roots[id_] = row.id
                    if row.depth:
                        above[id_] = (row.parent, row.depth)
            at = above
