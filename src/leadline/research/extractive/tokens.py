"""Words, codes, figures and signs of a text, as the comparison of a question with a passage sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from leadline.core.patterns import lazy_pattern
from leadline.core.unspaced import SPACED

Kind = Literal["word", "code", "number", "sign", "cjk"]

_CJK = "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3"
_LETTER = rf"[^\W\d_{_CJK}{_HANGUL}]"
_TOKEN = lazy_pattern(
    rf"""
      (?P<cjk>[{_CJK}]+)
    | (?P<dotted>(?<!{SPACED})(?<!\.)v?\d+(?:\.\d+){{2,}}(?!(?:{SPACED}|\.)*\d{{4}}))
    | (?P<code>{_LETTER}(?:{_LETTER}|\d)*\d[^\W_{_CJK}{_HANGUL}]*(?:[-.]\d[^\W_{_CJK}{_HANGUL}]*)*|{_LETTER}+[-‐‑–]\d[^\W_{_CJK}{_HANGUL}]*(?:[-.][^\W_{_CJK}{_HANGUL}]+)*)
    | (?P<acronym>(?:[A-Z]\.){{2,}})
    | (?P<word>{_LETTER}+(?:['’]{_LETTER}+)*(?:[-‐‑]{_LETTER}+)*\+?|[{_HANGUL}]+)
    | (?P<number>\d+(?:[.,'’ ]\d{{3}}(?!\d))*(?:[.,]\d+)?)
    | (?P<sign>[$€£¥%°])
    """,
    re.VERBOSE,
)
_POSSESSIVE = lazy_pattern(r"['’]s?$")
_ELIDED = lazy_pattern(r"^(?:[ldnsjcmt]|qu|jusqu|lorsqu|puisqu)'(?=..)")
_HYPHENS = lazy_pattern(r"[-‐‑–]")


@dataclass(frozen=True)
class Token:
    """One token. `text` is folded; a code has no hyphens (`vlx500`), a number no separators (`1180`)."""

    text: str
    surface: str
    start: int
    end: int
    kind: Kind

    @property
    def parts(self) -> tuple[str, ...]:
        """The words that a hyphen joins, when there are several."""
        pieces = tuple(part for part in _HYPHENS.split(self.text) if part)
        return pieces if self.kind == "word" and len(pieces) > 1 else ()


@lru_cache(maxsize=16384)
def tokens(text: str) -> tuple[Token, ...]:
    """The tokens of a text in order."""
    return tuple(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        group, surface = match.lastgroup or "word", match.group()
        start, end = match.span()
        folded = surface.casefold().replace("’", "'")
        if group == "dotted":
            yield Token(folded.removeprefix("v"), surface, start, end, "code")
        elif group == "code":
            yield Token(_HYPHENS.sub("", folded), surface, start, end, "code")
        elif group == "acronym":
            yield Token(folded.replace(".", ""), surface, start, end, "word")
        elif group == "word":
            yield Token(_POSSESSIVE.sub("", _ELIDED.sub("", folded)), surface, start, end, "word")
        elif group == "number":
            yield Token(plain_number(surface), surface, start, end, "number")
        else:
            yield Token(folded, surface, start, end, "cjk" if group == "cjk" else "sign")


def plain_number(surface: str) -> str:
    """A number without separators of thousands and with a point before its fraction: 1180, 21.4."""
    digits = surface.replace("’", "'")
    if digits.isdigit():
        return digits.lstrip("0") or "0"
    if re.fullmatch(r"\d{1,3}(?:[.,' ]\d{3})+", digits):
        return re.sub(r"\D", "", digits)
    whole, separator, fraction = digits.rpartition("." if digits.rfind(".") > digits.rfind(",") else ",")
    if not separator:
        return re.sub(r"\D", "", digits)
    return f"{re.sub(r'[^0-9]', '', whole)}.{fraction}"


def is_year(token: Token) -> bool:
    """Whether a number is written like a year of our time."""
    return (
        token.kind == "number"
        and token.surface.isdigit()
        and len(token.text) == 4
        and "1900" <= token.text <= "2100"
    )
