"""Dates that a document states: every date in a text, and the one date of the document itself.

Which sentence was taken for the document's date is part of the answer, so that a reader can judge it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from leadline.core.patterns import lazy_pattern
from leadline.core.unspaced import SPACED

HEAD_CHARS = 1500
"""How far from its beginning a document is asked for its date."""
FOOT_CHARS = 500
HEADER_LINES = 6
HEADER_WIDTH = 140

_MONTHS = {
    1: "january jan januar jän jänner janvier janv enero ene gennaio janeiro januari",
    2: "february feb februar février fevrier févr febrero febbraio fevereiro februari",
    3: "march mar märz mär maerz mars marzo março maart",
    4: "april apr avril avr abril aprile",
    5: "may mai mayo maggio maio mei",
    6: "june jun juni juin junio giugno junho",
    7: "july jul juli juillet juil julio luglio julho",
    8: "august aug août aout agosto augustus",
    9: "september sep sept septembre septiembre settembre setembro",
    10: "october oct oktober okt octobre octubre ottobre outubro",
    11: "november nov novembre noviembre novembro",
    12: "december dec dezember dez décembre decembre diciembre dicembre dezembro",
}
MONTH_NUMBERS: dict[str, int] = {name: number for number, names in _MONTHS.items() for name in names.split()}
"""Names and abbreviations of months in several languages, folded, to their number."""

_MONTH = "(?:" + "|".join(sorted(MONTH_NUMBERS, key=len, reverse=True)) + r")(?![^\W\d_])\.?"
_YEAR = r"(?:19|20)\d{2}(?!\d)"
_OF = r"(?:\s+(?:of|de|del|di))?"
_PATTERN = lazy_pattern(
    rf"""
      (?P<iso>(?<![\d.,-])(?P<iso_y>{_YEAR})-(?P<iso_m>0[1-9]|1[0-2])(?:-(?P<iso_d>[0-3]\d))?(?![\d-]))
    | (?P<dmy>(?<!\d)(?P<dmy_d>[0-3]?\d)(?:st|nd|rd|th|er|\.|º)?{_OF}\s+(?P<dmy_m>{_MONTH}){_OF},?\s+(?P<dmy_y>{_YEAR}))
    | (?P<mdy>(?<!\w)(?P<mdy_m>{_MONTH})\s+(?P<mdy_d>[0-3]?\d)(?:st|nd|rd|th)?,?\s+(?P<mdy_y>{_YEAR}))
    | (?P<my>(?<!\w)(?P<my_m>{_MONTH}){_OF},?\s+(?P<my_y>{_YEAR}))
    | (?P<dot>(?<![\d.])(?P<dot_d>[0-3]?\d)\.\s?(?P<dot_m>[01]?\d)\.\s?(?P<dot_y>{_YEAR}))
    | (?P<slash>(?<![\d/])(?P<slash_a>[0-3]?\d)/(?P<slash_b>[0-3]?\d)/(?P<slash_y>{_YEAR}))
    | (?P<cjk>(?P<cjk_y>(?:19|20)\d{{2}})\s*年(?:\s*(?P<cjk_m>[01]?\d)\s*月(?:\s*(?P<cjk_d>[0-3]?\d)\s*日)?)?)
    | (?P<era>(?P<era_n>令和|平成)\s*(?P<era_y>元|\d{{1,2}})\s*年(?:\s*(?P<era_m>[01]?\d)\s*月(?:\s*(?P<era_d>[0-3]?\d)\s*日)?)?)
    | (?P<quarter>(?<!{SPACED})[QqTt](?P<quarter_n>[1-4])[\s/-]*(?P<quarter_y>{_YEAR})|(?<!\d)(?P<quarter_y2>{_YEAR})[\s/-]*[QqTt](?P<quarter_n2>[1-4])(?!{SPACED}))
    | (?P<year>(?<![\w.,$€£¥])(?P<year_y>{_YEAR})(?![\w%]|[.,]\d))
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ERAS = {"令和": 2018, "平成": 1988}

_REVISED = (
    r"last\s+(?:updated?|revised|modified|reviewed|changed)|updated|revised|revision\s+date|"
    r"zuletzt\s+(?:aktualisiert|geändert)|letzte\s+(?:änderung|aktualisierung)|aktualisiert|geändert\s+am|stand|fassung\s+vom|"
    r"(?:dernière\s+)?mise\s+à\s+jour|mis\s+à\s+jour|révisé|última\s+(?:actualización|revisión)|actualizado|revisado|"
    r"ultimo\s+aggiornamento|最后更新|最近更新|更新日期|更新于|修订|最終更新日?|更新日|改訂"
)
_IN_FORCE = (
    r"signed|unterzeichnet|signée?|firmad[oa]|签署|签订|締結|effective|in\s+force|in\s+effect|valid|applies\s+from|as\s+(?:of|at)|dated?|issued|published|approved|adopted|"
    r"gültig|in\s+kraft|gilt\s+ab|beschlossen|datum|ausgabe|en\s+vigueur|valable|publié|adopté|vigente|en\s+vigor|"
    r"publicado|aprobado|fecha|生效|施行|实施|発行日?|日期|日付|制定|発効|公布"
)
_BETWEEN = r"[^\S\n]*(?:[:：*_]|\b(?:on|from|as\s+of|since|in|am|ab|seit|vom|zum|le|du|depuis|à\s+partir\s+du|el|desde|del|a\s+partir\s+del|date)\b|[^\S\n])*"
_LABELLED = tuple(
    lazy_pattern(rf"(?<!\w)(?:{labels}){_BETWEEN}$", re.IGNORECASE) for labels in (_REVISED, _IN_FORCE)
)


@dataclass(frozen=True)
class DateFound:
    """A date in a text: `iso` is YYYY, YYYY-MM or YYYY-MM-DD, as precise as the text is."""

    iso: str
    start: int
    end: int
    kind: str
    """`year`, `quarter` (its last month), or a form that names at least the month (`cjk` may name a year alone)."""

    @property
    def has_month(self) -> bool:
        """Whether the text itself names the month."""
        return len(self.iso) >= 7 and self.kind != "quarter"


@dataclass(frozen=True)
class DatedBy:
    """The date of a document, and the words that say so."""

    date: str
    """ISO, possibly partial: `2026-05`."""
    statement: str
    """The line of the document; `metadata` when only its metadata has a date."""


@lru_cache(maxsize=2048)
def dates_in(text: str) -> tuple[DateFound, ...]:
    """Every date in a text, in order. A numeric date that could be read two ways counts as its year."""
    return tuple(_found(text))


def _found(text: str) -> Iterator[DateFound]:
    for match in _PATTERN.finditer(text):
        kind = match.lastgroup or ""
        kind = next(
            name
            for name in ("iso", "dmy", "mdy", "my", "dot", "slash", "cjk", "era", "quarter", "year")
            if match[name]
        )
        iso = _iso(kind, match)
        if iso:
            yield DateFound(iso, match.start(), match.end(), kind)


def _iso(kind: str, match: re.Match[str]) -> str | None:
    if kind == "quarter":
        year = match["quarter_y"] or match["quarter_y2"]
        return f"{year}-{3 * int(match['quarter_n'] or match['quarter_n2']):02d}"
    if kind == "era":
        count = 1 if match["era_y"] == "元" else int(match["era_y"])
        return _joined(str(_ERAS[match["era_n"]] + count), match["era_m"], match["era_d"])
    if kind == "slash":
        first, second = int(match["slash_a"]), int(match["slash_b"])
        if (first > 12) == (second > 12) and first != second:
            return match["slash_y"]
        month, day = (second, first) if first > 12 else (first, second)
        return _joined(match["slash_y"], str(month), str(day))
    if kind == "year":
        return match["year_y"]
    month = match[f"{kind}_m"]
    if month and not month[0].isdigit():
        month = str(MONTH_NUMBERS[month.casefold().rstrip(".")])
    day = None if kind == "my" else match[f"{kind}_d"]
    return _joined(match[f"{kind}_y"], month, day)


def _joined(year: str, month: str | None, day: str | None) -> str | None:
    if not month:
        return year
    if not 1 <= int(month) <= 12:
        return None
    if not day or not 1 <= int(day) <= 31:
        return f"{year}-{int(month):02d}"
    return f"{year}-{int(month):02d}-{int(day):02d}"


def document_date(text: str, metadata_date: str | None = None) -> DatedBy | None:
    """The date of a document, from what it says about itself, else from its metadata.

    In this order: a statement that it was revised, a statement since when it is in force, a date in its
    header lines, a period or year in its title, the metadata. None where there is nothing of the kind.
    """
    edges = _edges(text)
    for labelled in _LABELLED:
        for offset, part in edges:
            for date in dates_in(part):
                if labelled.search(part[max(0, date.start - 60) : date.start]):
                    return DatedBy(date.iso, _line(text, offset + date.start))
    header = header_lines(text)
    stated = [(date, line) for line in header for date in dates_in(line)]
    stated.sort(key=lambda one: not one[0].has_month)
    if stated:
        return DatedBy(stated[0][0].iso, _plain(stated[0][1]))
    return DatedBy(metadata_date, "metadata") if metadata_date else None


def header_lines(text: str) -> list[str]:
    """The short lines with which a document begins: title, subtitle, date line."""
    lines = [line for line in text[:HEAD_CHARS].splitlines() if line.strip()]
    found: list[str] = []
    for line in lines[:HEADER_LINES]:
        plain = _plain(line)
        marked = line.lstrip().startswith(("#", "*", "_"))
        if len(plain) > HEADER_WIDTH or line.lstrip().startswith(("- ", "* ", "|", "##")):
            break
        if found and not marked and plain.endswith((".", "。", ":")) and len(plain.split()) > 12:
            break
        found.append(line)
    return found


def _edges(text: str) -> list[tuple[int, str]]:
    head = text[:HEAD_CHARS]
    foot_at = max(len(head), len(text) - FOOT_CHARS)
    return [(0, head), (foot_at, text[foot_at:])]


def _line(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return _plain(text[start : end if end >= 0 else len(text)])


def _plain(line: str) -> str:
    return " ".join(line.strip().strip("#*_>| ").replace("**", "").split())
