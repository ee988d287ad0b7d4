"""Quarters and halves of a year in words, as the code that reports write: "first quarter" is Q1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from leadline.core.patterns import lazy_pattern

_ORDINALS: Sequence[str] = (
    "first|1st|erste[nsmr]?|1\\.|premier|1er|primer|第一|第1|一",
    "second|2nd|zweite[nsmr]?|2\\.|deuxième|2e|segundo|第二|第2|二",
    "third|3rd|dritte[nsmr]?|3\\.|troisième|3e|tercer|第三|第3|三",
    "fourth|4th|last|vierte[nsmr]?|4\\.|quatrième|4e|cuarto|第四|第4|四",
)
_QUARTER = r"(?:quarters?|quartals?|trimestre|季度|四半期)"
_HALF = r"(?:half(?:[ -]year)?|halbjahrs?|semestre|半年|上半期)"
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (
        f"{letter}{number}",
        lazy_pattern(rf"(?<![A-Za-z0-9À-ÿ.])(?:{ordinal})\s*{name}(?![a-zà-ÿ])", re.IGNORECASE),
    )
    for letter, name, ordinals in (("Q", _QUARTER, _ORDINALS), ("H", _HALF, _ORDINALS[:2]))
    for number, ordinal in enumerate(ordinals, start=1)
)


@lru_cache(maxsize=1024)
def with_codes(text: str) -> str:
    """The text with every quarter and half-year that it spells out as a code, such as Q1 or H2."""
    for code, pattern in _PATTERNS:
        text = pattern.sub(code, text)
    return text


def codes_in(text: str) -> frozenset[str]:
    """The folded codes of the quarters and half-years that a text spells out."""
    if not re.search(rf"{_QUARTER}|{_HALF}", text, re.IGNORECASE):
        return frozenset()
    return frozenset(code.casefold() for code, pattern in _PATTERNS if pattern.search(text))
