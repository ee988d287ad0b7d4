"""Ranks what matches a query: best passage of each document, the same order on every machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from leadline.capabilities.corpus.providers.index import Index, PassageRow
from leadline.capabilities.corpus.providers.query import Query, fold
from leadline.capabilities.corpus.seam import CorpusDocument, Excerpt, Hit

_SNIPPET = 600
"""Code points of the window shown of the best passage."""

_FURTHER = 300
"""The same for further passages."""

_PASSAGES = 3
_POOL = 24
"""Documents that are looked at closely, at least; three times the limit where that is more."""

_FIRST_ROWS = 256
"""Matches ranked at first; enough unless a few long documents hold them all, or many match equally."""

_MOST_ROWS = 20_000
_COVERAGE = 0.6
"""What holding every word of the query adds to the score; with a share of them, the share squared of it."""

_DIGITS = 6
"""Scores that agree to so many significant digits are equal; the location decides."""

_STOP = re.compile(r"[.!?][\"”’)\]*_]*\s+|[。！？；]|\n\s*")


@dataclass(frozen=True)
class _Passage:
    row: PassageRow
    score: float
    places: tuple[tuple[int, int, int], ...]
    """Start and end in the body, and number of the term, in order."""


def search(index: Index, documents: Mapping[int, CorpusDocument], query: Query, limit: int) -> list[Hit]:
    """The best `limit` documents; `documents` by their number in the index."""
    if limit < 1:
        return []
    with index.locked():
        pool = _pool(index, documents, query, max(_POOL, 3 * limit))
        passages = {
            seq: sorted(
                (_closer(index.passage(row), score, documents[seq].title, query) for row, score in rows),
                key=lambda each: (-each.score, each.row.start),
            )
            for seq, rows in pool.items()
        }
    order = sorted(passages, key=lambda seq: (-passages[seq][0].score, documents[seq].location))
    return [
        _hit(documents[seq], passages[seq], query, rank) for rank, seq in enumerate(order[:limit], start=1)
    ]


def _pool(
    index: Index, documents: Mapping[int, CorpusDocument], query: Query, size: int
) -> dict[int, list[tuple[int, float]]]:
    """The best rows of the best documents. Rows that tie with the last one are all seen, so that the cut
    does not depend on the order in which files came into the index."""
    pool, complete = _gathered(index.ranked(query.expression, _FIRST_ROWS), size, _FIRST_ROWS)
    if not complete:
        pool, _ = _gathered(index.ranked(query.expression), size, _MOST_ROWS)
    if len(pool) <= size:
        return pool
    best = sorted(pool, key=lambda seq: (-pool[seq][0][1], documents[seq].location))[:size]
    return {seq: pool[seq] for seq in best}


def _gathered(
    ranked: Iterable[tuple[int, int, float]], size: int, most: int
) -> tuple[dict[int, list[tuple[int, float]]], bool]:
    """Rows by document until there are `size` documents, and whether what follows in `ranked` is worse."""
    pool: dict[int, list[tuple[int, float]]] = {}
    last, count = 0.0, 0
    for seq, row, exact in ranked:
        score = _rounded(exact)
        if len(pool) >= size and score < last:
            return pool, True
        count += 1
        if count > most:
            break
        rows = pool.setdefault(seq, [])
        if len(rows) < _PASSAGES:
            rows.append((row, score))
            last = score
    return pool, count < most


def _rounded(score: float) -> float:
    return float(f"{score:.{_DIGITS}g}")


def _closer(row: PassageRow, score: float, title: str, query: Query) -> _Passage:
    places = tuple(sorted(query.found_in(fold(row.body))))
    held = {number for _, _, number in places}
    if len(held) < len(query.terms):
        held.update(number for _, _, number in query.found_in(fold(f"{title}\n{row.heading}")))
    share = sum(query.terms[number].weight for number in held) / sum(term.weight for term in query.terms)
    boost = 1 + _COVERAGE * share * share
    return _Passage(row, _rounded(score * boost), places)


def _hit(document: CorpusDocument, passages: list[_Passage], query: Query, rank: int) -> Hit:
    best, *further = (
        _excerpt(document, passage, _FURTHER if number else _SNIPPET)
        for number, passage in enumerate(passages)
    )
    return Hit(
        document=document,
        score=passages[0].score,
        rank=rank,
        start=best.start,
        end=best.end,
        snippet=best.text,
        page=best.page,
        more=tuple(further),
    )


def _excerpt(document: CorpusDocument, passage: _Passage, size: int) -> Excerpt:
    body = passage.row.body
    start, end = _window(body, passage.places, size)
    absolute = passage.row.start + start
    return Excerpt(absolute, passage.row.start + end, body[start:end], document.snapshot.page_at(absolute))


def _window(body: str, places: tuple[tuple[int, int, int], ...], size: int) -> tuple[int, int]:
    """The part of `body` of about `size` that holds most different terms, from the start of a sentence."""
    if len(body) <= size:
        return 0, len(body)
    lead = size // 3
    best = (0, 0, 0)
    for first, _, _ in places:
        inside = [number for start, end, number in places if start >= first and end <= first + size - lead]
        best = max(best, (len(set(inside)), len(inside), -first))
    before, last = -best[2] - lead // 2, len(body) - size
    start = max(0, min(before, last))
    if start:
        stops = [found.end() for found in _STOP.finditer(body, max(0, start - lead), -best[2])]
        earliest = start - lead // 2 if before <= last else start  # else it ends before what was found
        near = [stop for stop in stops if stop >= earliest]
        start = near[0] if near else _next_word(body, start)
    end = min(len(body), start + size)
    if end < len(body):
        stops = [found.end() for found in _STOP.finditer(body, start + size // 2, end)]
        end = stops[-1] if stops else _word_end(body, start, end)
    return start, start + len(body[start:end].rstrip())


def _next_word(body: str, position: int) -> int:
    found = re.compile(r"\s+").search(body, position, position + 40)
    return found.end() if found else position


def _word_end(body: str, start: int, end: int) -> int:
    space = max(body.rfind(" ", start, end), body.rfind("\n", start, end))
    return space if space > start + (end - start) // 2 else end
