"""Words such as "last year", read as seen from the newest of the documents at hand."""

from __future__ import annotations

import re

from leadline.core.patterns import lazy_pattern
from leadline.research.extractive.library import Library

_YEARS: tuple[tuple[int, re.Pattern[str]], ...] = (
    (-1, lazy_pattern(r"(?<!\w)(?:(?:in |during )?(?:the )?(?:last|previous|past) year(?!s)|(?:im )?(?:letzte[nsm]?|vergangene[nsm]?|vorige[nsm]?) jahr(?:es)?|l'an(?:née)? dernière?|l'année passée|(?:el )?año pasado)(?!\w)|去年|昨年", re.IGNORECASE)),
    (0, lazy_pattern(r"(?<!\w)(?:(?:in |during )?(?:this|the current) year|(?:in )?diese[sm]? jahr(?:es)?|cette année|este año)(?!\w)|今年", re.IGNORECASE)),
    (1, lazy_pattern(r"(?<!\w)(?:(?:in )?(?:the )?(?:next|coming) year|(?:im )?(?:nächste[snm]?|kommende[snm]?) jahr(?:es)?|l'année prochaine|(?:el )?próximo año)(?!\w)|明年|来年", re.IGNORECASE)),
)  # fmt: skip
_NEARER = lazy_pattern(
    r"(?<!\w)(?:yesterday|tomorrow|(?:last|this|next|past|current) (?:week|month|quarter)|gestern|morgen|"
    r"(?:letzte[nr]?|diese[rn]?|nächste[rn]?) (?:woche|monat|quartal)|hier soir|demain|(?:la semaine|le mois) (?:dernière?|prochaine?)|"
    r"ayer|(?:la semana|el mes) (?:pasad[oa]|próxim[oa]))(?!\w)|昨天|明天|上周|下周|上个月|下个月|昨日|明日|先月|来月",
    re.IGNORECASE,
)


def is_relative(text: str) -> bool:
    """Whether a question names a year by its distance from now."""
    return any(pattern.search(text) for _, pattern in _YEARS)


def resolved(text: str, library: Library) -> str | None:
    """The question with years in figures; None where it names a time that no document can tell."""
    if _NEARER.search(text):
        return None
    if not is_relative(text):
        return text
    years = [one.dated.date[:4] for one in library.documents if one.dated]
    if not years:
        return None
    newest = int(max(years))
    for distance, pattern in _YEARS:
        text = pattern.sub(f" {newest + distance} ", text)
    return " ".join(text.split())
