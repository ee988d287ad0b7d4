"""The row of a table that has the most or the least of what a question asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from leadline.core.patterns import lazy_pattern
from leadline.research.extractive.answer import Match
from leadline.research.extractive.concepts import concepts_of
from leadline.research.extractive.language import stem
from leadline.research.extractive.matching import likeness
from leadline.research.extractive.question import Question, Term
from leadline.research.extractive.tokens import tokens
from leadline.research.sources.dates import dates_in

_MOST = lazy_pattern(
    r"(?<!\w)(?:most|largest|biggest|highest|greatest|longest|heaviest|deepest|tallest|widest|fastest|latest|newest|"
    r"dearest|most expensive|costliest|maximum|meisten|größte\w*|höchste\w*|längste\w*|schwerste\w*|tiefste\w*|teuerste\w*|"
    r"neueste\w*|schnellste\w*|le plus|la plus|les plus|más|mayor)(?!\w)|最多|最大|最高|最长|最重|最深|最贵|最新|最も",
    re.IGNORECASE,
)
_LEAST = lazy_pattern(
    r"(?<!\w)(?:least|fewest|smallest|lowest|shortest|lightest|shallowest|narrowest|slowest|earliest|oldest|cheapest|"
    r"minimum|wenigsten|kleinste\w*|niedrigste\w*|kürzeste\w*|leichteste\w*|billigste\w*|günstigste\w*|älteste\w*|"
    r"langsamste\w*|le moins|la moins|menos|menor)(?!\w)|最少|最小|最低|最短|最轻|最便宜|最旧",
    re.IGNORECASE,
)
_DATED = lazy_pattern(r"latest|newest|earliest|oldest|neueste|älteste|最新|最旧", re.IGNORECASE)
_MEASURED = {
    "deep": "depth", "tief": "depth", "high": "height", "tall": "height", "long": "length", "läng": "length",
    "heav": "weight", "light": "weight", "wid": "width", "fast": "speed", "slow": "speed", "cheap": "price",
    "expensive": "price", "cost": "price", "dear": "price", "larg": "size", "big": "size", "small": "size",
}  # fmt: skip
_NUMBER = lazy_pattern(r"[-−]?\d[\d,.' ]*")
_SCALE = {"k": 1e3, "m": 1e6, "bn": 1e9, "b": 1e9}


def asks_extreme(question: Question) -> bool:
    """Whether a question asks for the most or the least of something."""
    return _wanted(question) is not None


def extreme_row(question: Question, matches: Sequence[Match]) -> Match | None:
    """Of the rows of one table that answer, the one with the most or least in the column that is asked for.

    None where the question asks for no such thing, the rows are of several tables, or no one column is meant.
    """
    wanted = _wanted(question)
    rows = [one for one in matches if one.passage.kind == "row"]
    if wanted is None or len(rows) < 2 or len({(one.document.source, one.passage.head) for one in rows}) > 1:
        return None
    names = rows[0].passage.lead.strip().strip("|").split("|") if "|" in rows[0].passage.lead else None
    header = [name.strip() for name in names] if names else rows[0].passage.lead.split("  ")
    table = [one.passage.words.split("  ") for one in rows]
    if any(len(cells) != len(header) for cells in table):
        return None
    column = _column(question, header, table)
    if column is None:
        return None
    values = [_value(cells[column], dated=bool(_DATED.search(question.text))) for cells in table]
    known = [(value, one) for value, one in zip(values, rows, strict=True) if value is not None]
    if len(known) < 2:
        return None
    best = (max if wanted == "most" else min)(value for value, _ in known)
    winners = [one for value, one in known if value == best]
    return winners[0] if len(winners) == 1 else None


def _wanted(question: Question) -> Literal["most", "least"] | None:
    if _LEAST.search(question.text):
        return "least"
    return "most" if _MOST.search(question.text) else None


def _column(question: Question, header: Sequence[str], table: Sequence[Sequence[str]]) -> int | None:
    """The column that the question names or measures by, else the only one behind the first that has figures."""
    dated = bool(_DATED.search(question.text))
    figures = [
        at
        for at in range(len(header))
        if at and sum(_value(cells[at], dated=dated) is not None for cells in table) >= 2
    ]
    word = (_LEAST.search(question.text) or _MOST.search(question.text) or [""])[0].casefold()
    measure = next((name for key, name in _MEASURED.items() if key in word), "")
    asked = [term for term in question.terms if term.kind in ("word", "soft", "cjk")]
    if measure:
        asked.append(Term(measure, measure, "word", stem(measure, "en"), concepts_of(measure, "en")))
    named = [at for at in figures if any(likeness(one, header[at], question.language) > 0 for one in asked)]
    if len(named) == 1:
        return named[0]
    return figures[0] if len(figures) == 1 else None


def _value(cell: str, *, dated: bool) -> float | None:
    """A cell as something to compare: a date where dates are asked for, else its one figure."""
    if dated:
        found = dates_in(cell)
        return float(found[0].iso.replace("-", "").ljust(8, "0")) if found else None
    if dates_in(cell) and not re.fullmatch(r"\s*\d{4}\s*", cell):
        return None
    match = _NUMBER.search(cell)
    if match is None:
        return None
    token = next((one for one in tokens(match.group()) if one.kind == "number"), None)
    if token is None:
        return None
    scale = re.match(r"\s*(bn|[kmb])(?![a-z])", cell[match.end() :], re.IGNORECASE)
    sign = -1 if match.group().startswith(("-", "−")) else 1
    return sign * float(token.text) * (_SCALE[scale[1].casefold()] if scale else 1)
