"""Reading the figures of a text: numbers with their units and scales, dates, quarters, ordinals, codes.

A spelling can have more than one reading ("1.234" in English and in German, "03/04/2024" on two continents,
"5 m" of cable and "5m" of revenue). The first reading is the usual one; another reading that fits makes two
figures possibly the same, never surely.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal, TypeAlias

from leadline.core.patterns import lazy_pattern
from leadline.core.unspaced import SPACED
from leadline.research.verify.typography import level
from leadline.research.verify.units import (
    CARDINALS,
    LETTER_SCALES,
    MONTHS,
    ORDINALS,
    SCALES,
    UNIT_NAMES,
    YEN_OR_YUAN,
)


@dataclass(frozen=True)
class Number:
    """A value and its unit; an empty unit is none."""

    value: Decimal
    unit: str = ""


@dataclass(frozen=True)
class Date:
    """A day, month, year or a part of them."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    quarter: int | None = None


@dataclass(frozen=True)
class Fixed:
    """Something that is only ever equal to itself: a version, a time, an ordinal, a decade."""

    text: str


Reading: TypeAlias = Number | Date | Fixed


@dataclass(frozen=True)
class Figure:
    """One figure of a text, in the levelled spelling of `typography.level`."""

    surface: str
    start: int
    end: int
    readings: tuple[Reading, ...]
    required: bool = True
    """False for words such as "one" and "first" that mostly count nothing."""

    @property
    def is_year(self) -> bool:
        """Whether it reads as a calendar year or a date."""
        first = self.readings[0]
        return isinstance(first, Date) or _year_of(first) is not None


Agreement = Literal["same", "possible", "absent"]

_MONTH = "(?P<{0}>" + "|".join(sorted(map(re.escape, MONTHS), key=len, reverse=True)) + r")(?![^\W\d_])\.?"
_Y, _D = r"(?P<y>[12]\d{3})(?!\d)", r"(?P<d>\d{1,2})"
_ORD = r"(?:st|nd|rd|th|\.)?"
_QUARTER_WORDS = "|".join(list(ORDINALS)[:4])
_START, _END = rf"(?<!{SPACED})", rf"(?!{SPACED})"
"""Borders of a word; letters of scripts without spaces between words may be glued to it."""
_DATE_PATTERNS: tuple[str, ...] = (
    rf"{_START}(?<![.-]){_Y}([-/.])(?P<m>\d{{1,2}})\2(?P<d>\d{{1,2}})(?!\d)",
    rf"{_START}(?<![.-]){_Y}-(?P<m>0\d)(?![\d-])",
    rf"{_START}(?<!\.)(?P<d>\d{{1,2}})\. ?(?P<m>\d{{1,2}})\. ?(?P<y>[12]\d{{3}}|\d{{2}})(?![\d.])",
    rf"{_START}(?<![./])(?P<a>\d{{1,2}})/(?P<b>\d{{1,2}})/(?P<y>[12]\d{{3}}|\d{{2}})(?![\d/])",
    rf"(?<![\w.,]){_D}{_ORD} (?:of )?{_MONTH.format('mn')}(?:,? {_Y})?",
    rf"(?<!\w){_MONTH.format('mn')} {_D}(?:st|nd|rd|th)?(?![\d.,]*\d)(?:,? {_Y})?",
    rf"(?<!\w){_MONTH.format('mn')},? {_Y}",
    rf"(?<=\bin )(?<!\w){_MONTH.format('mn')}(?!\w)",
    r"(?<!\d)(?P<y>[12]\d{3})年(?:(?P<m>\d{1,2})月(?:(?P<d>\d{1,2})[日号])?)?",
    r"(?<!\d)(?P<m>\d{1,2})月(?P<d>\d{1,2})[日号]",
    rf"{_START}q(?P<q>[1-4])(?:(?: of|/|-)? ?{_Y})?{_END}",
    rf"{_START}(?<!\.){_Y}[ -]?q(?P<q>[1-4]){_END}",
    rf"(?<!\w)(?P<qw>{_QUARTER_WORDS}|1st|2nd|3rd|4th)[ -]quarter(?:(?: of)? {_Y})?(?!\w)",
    rf"(?<!\w)(?:fy|fiscal|fiscal year|financial year) ?{_Y}",
)
_ALSO_WORDS = frozenset({"may", "march", "mar", "mars"})
"""Months that, in lower case, are other words."""
_DATES = tuple(lazy_pattern(pattern, re.IGNORECASE) for pattern in _DATE_PATTERNS)

_LITERALS = lazy_pattern(
    rf"{_START}(?<!\.)v?\d+(?:\.\d+){{2,}}{_END}|{_START}(?<!:)\d{{1,2}}:\d{{2}}(?::\d{{2}})?{_END}|{_START}\d{{4}}s{_END}"
    rf"|{_START}\d+(?:st|nd|rd|th){_END}|{_START}\d+\^-?\d+|{_START}\d+[⁰¹²³⁴-⁹⁻]+",
    re.IGNORECASE,
)
_GROUPED = lazy_pattern(r"\d{1,3}(?:\.\d{3}){2,}")
_SYMBOLS = r"US\$|[$€£¥₩₹]|(?:USD|EUR|GBP|CHF|CNY|RMB|JPY|INR|KRW)(?![^\W\d_])"
_NUMBER = lazy_pattern(
    rf"(?P<sign>(?<![\w)])[-+](?=[\d$€£¥₩₹]))?(?P<currency>{_SYMBOLS})? ?(?<![^\W\u2e80-\U0003ffff])(?<![^\W\d_\u2e80-\U0003ffff]-)(?<!\d[.,])"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)|\d{1,3}(?:\.\d{3})+(?:,\d+)?(?!\d)"
    r"|\d{1,3}(?:'\d{3})+(?:[.,]\d+)?(?!\d)|\d{1,3}(?: \d{3})+(?:[.,]\d+)?(?!\d)|\d+[.,]\d+|\d+)"
)
_SCALE_WORDS = "|".join(sorted(map(re.escape, SCALES), key=len, reverse=True))
_SCALE = lazy_pattern(rf"[ -]?(?P<word>{_SCALE_WORDS})(?![^\W\d_\u2e80-\U0003ffff])", re.IGNORECASE)
_LETTER = lazy_pattern(r"(?P<letter>[kKmMbBtT])(?![^\W_])")
_UNIT_WORDS = "|".join(sorted(map(re.escape, UNIT_NAMES), key=len, reverse=True))
_UNIT = lazy_pattern(rf"[ -]?(?P<unit>{_UNIT_WORDS})(?![^\W_\u2e80-\U0003ffff])", re.IGNORECASE)
_WORD_NUMBER = lazy_pattern(
    rf"(?<![\w-])(?P<cardinal>{'|'.join(CARDINALS)})(?![\w'])|(?<![\w-])(?P<ordinal>{'|'.join(ORDINALS)})(?!\w)",
    re.IGNORECASE,
)
_RANGE = lazy_pattern(r" ?(?:-|to|bis|~|à|至|到|or|and|und) ?", re.IGNORECASE)


def figures(text: str) -> tuple[Figure, ...]:
    """The figures of a text in order. Digits inside names (VLX-500, 3D) are not figures but parts of names."""
    spelled = level(text)
    taken = [False] * len(spelled)
    found: list[Figure] = []

    def claim(one: Figure) -> None:
        if not any(taken[one.start : one.end]):
            taken[one.start : one.end] = [True] * (one.end - one.start)
            found.append(one)

    for pattern in _DATES:
        for match in pattern.finditer(spelled):
            readings = _date_readings(match)
            if readings:
                claim(Figure(match.group(), *match.span(), readings))
    for match in _LITERALS.finditer(spelled):
        if not _GROUPED.fullmatch(match.group()):
            claim(Figure(match.group(), *match.span(), (Fixed(match.group().casefold()),)))
    for match in _NUMBER.finditer(spelled):
        one = _number(spelled, match)
        if one:
            claim(one)
    for match in _WORD_NUMBER.finditer(spelled):
        claim(_spelled_out(spelled, match))
    found.sort(key=lambda one: one.start)
    return _share_units(spelled, found)


def agreement(figure: Figure, pool: Iterable[Figure]) -> Agreement:
    """Whether a figure occurs in a pool of figures: surely, possibly (another reading or no unit), or not."""
    best: Agreement = "absent"
    others = tuple(pool)
    for other in others:
        if _same(figure.readings[0], other.readings[0]):
            return "same"
        if best == "absent" and any(_near(a, b) for a in figure.readings for b in other.readings):
            best = "possible"
    first = figure.readings[0]
    if best == "absent" and isinstance(first, Date) and _in_parts(first, others):
        return "possible"
    return best


def same_unit(left: Figure, right: Figure) -> bool:
    """Whether two figures measure the same thing, so that their values can differ."""
    a, b = left.readings[0], right.readings[0]
    if isinstance(a, Number) and isinstance(b, Number):
        return a.unit == b.unit and left.is_year == right.is_year
    return type(a) is type(b)


def _same(a: Reading, b: Reading) -> bool:
    if isinstance(a, Date):
        return isinstance(b, Date) and _covers(a, b)
    year = _year_of(a)
    if year is not None and isinstance(b, Date):
        return b.year == year
    return a == b


def _near(a: Reading, b: Reading) -> bool:
    if _same(a, b):
        return True
    if isinstance(a, Number) and isinstance(b, Number):
        return a.value == b.value and not (a.unit and b.unit)
    return False


def _covers(asked: Date, there: Date) -> bool:
    pairs = (
        (asked.year, there.year),
        (asked.month, there.month),
        (asked.day, there.day),
        (asked.quarter, there.quarter),
    )
    return all(want is None or want == have for want, have in pairs)


def _in_parts(asked: Date, pool: Sequence[Figure]) -> bool:
    rest = replace(asked, year=None)
    if asked.year is None or rest == Date():
        return False
    year = Figure("", 0, 0, (Number(Decimal(asked.year)),))
    return agreement(year, pool) == "same" and any(
        _covers(rest, one.readings[0]) for one in pool if isinstance(one.readings[0], Date)
    )


def _year_of(reading: Reading) -> int | None:
    if (
        isinstance(reading, Number)
        and not reading.unit
        and reading.value == reading.value.to_integral_value()
    ):
        return int(reading.value) if 1000 <= reading.value <= 2199 else None
    return None


def _date_readings(match: re.Match[str]) -> tuple[Reading, ...]:
    part = match.groupdict()
    if part.get("mn") in _ALSO_WORDS:
        return ()
    year = int(part["y"]) if part.get("y") else None
    if year is not None and year < 100:
        year += 2000 if year < 70 else 1900
    if part.get("a"):
        a, b = int(part["a"]), int(part["b"])
        return tuple(Date(year, m, d) for m, d in ((a, b), (b, a)) if _is_day(m, d))
    if part.get("q") or part.get("qw"):
        word = (part.get("q") or part.get("qw") or "").casefold()
        return (Date(year, quarter=int(word[0]) if word[0].isdigit() else ORDINALS[word]),)
    month = MONTHS[part["mn"].casefold()] if part.get("mn") else int(part["m"]) if part.get("m") else None
    day = int(part["d"]) if part.get("d") else None
    if month is not None and not _is_day(month, day or 1):
        return ()
    return (Date(year, month, day),)


def _is_day(month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= 31


def _number(text: str, match: re.Match[str]) -> Figure | None:
    values = _values(match["digits"])
    if match["sign"] == "-":
        values = tuple(-value for value in values)
    end = match.end()
    currency = UNIT_NAMES[match["currency"].casefold()] if match["currency"] else ""
    scales: tuple[Decimal, ...] = (Decimal(1),)
    scale = _SCALE.match(text, end)
    letter = _LETTER.match(text, end)
    units: tuple[str, ...] = (currency,)
    if scale:
        scales, end = (SCALES[scale["word"].casefold()],), scale.end()
    elif letter and (currency or letter["letter"] in "kKMB"):
        scales, end = (LETTER_SCALES[letter["letter"].casefold()],), letter.end()
    elif letter and letter["letter"] == "m":
        scales = (Decimal(1), LETTER_SCALES["m"])
    unit = _UNIT.match(text, end)
    if unit and not currency and not _is_article(text, unit):
        units, end = (UNIT_NAMES[unit["unit"].casefold()],), unit.end()
    elif not scale and text[end : end + 1].isalpha() and _is_attached_word(text, end):
        return None
    if units[0] == "JPY" and "¥" in match.group():
        units = YEN_OR_YUAN
    readings = [Number(value * by, name) for value in values for by in scales for name in units]
    if len(scales) > 1:
        readings = [one for one in readings if not (one.unit == "m" and one.value not in values)]
        readings.extend(Number(value * LETTER_SCALES["m"]) for value in values)
    start = match.start() + (len(match.group()) - len(match.group().lstrip()))
    return Figure(text[start:end], start, end, tuple(dict.fromkeys(readings)))


def _is_article(text: str, unit: re.Match[str]) -> bool:
    """Whether a one-letter unit after a space is more likely a word ("in 2020 a law")."""
    return unit.group() == " a"


def _is_attached_word(text: str, end: int) -> bool:
    """Whether letters follow the digits directly: 3D and 4K are names."""
    return text[end].isascii()


def _values(digits: str) -> tuple[Decimal, ...]:
    """The values that a spelling can have, the usual one first."""
    if " " in digits or "'" in digits:
        return (Decimal(digits.replace(" ", "").replace("'", "").replace(",", ".")),)
    commas, dots = digits.count(","), digits.count(".")
    if commas and dots:
        decimal = max(digits.rfind(","), digits.rfind("."))
        whole = digits[:decimal].replace(",", "").replace(".", "")
        return (Decimal(f"{whole}.{digits[decimal + 1 :]}"),)
    if not commas and not dots:
        return (Decimal(digits),)
    mark = "," if commas else "."
    plain = Decimal(digits.replace(mark, ""))
    if commas + dots > 1:
        return (plain,)
    decimal_value = Decimal(digits.replace(mark, "."))
    head, tail = digits.split(mark)
    if len(tail) != 3 or head.startswith("0"):
        return (decimal_value,)
    return (plain, decimal_value) if mark == "," else (decimal_value, plain)


def _spelled_out(text: str, match: re.Match[str]) -> Figure:
    if match["ordinal"]:
        value = ORDINALS[match["ordinal"].casefold()]
        suffix = {1: "st", 2: "nd", 3: "rd"}.get(value, "th")
        adverb = value <= 2 or text[match.end() : match.end() + 1] == ","
        return Figure(match.group(), *match.span(), (Fixed(f"{value}{suffix}"),), required=not adverb)
    value = Decimal(CARDINALS[match["cardinal"].casefold()])
    end = match.end()
    scale = _SCALE.match(text, end)
    if scale:
        value, end = value * SCALES[scale["word"].casefold()], scale.end()
    unit = _UNIT.match(text, end)
    name = ""
    if unit and len(unit["unit"]) > 1:
        name, end = UNIT_NAMES[unit["unit"].casefold()], unit.end()
    required = value != 1 or bool(name) or scale is not None
    return Figure(text[match.start() : end], match.start(), end, (Number(value, name),), required=required)


def _share_units(text: str, found: list[Figure]) -> tuple[Figure, ...]:
    """Give the first number of a range the unit and scale of the second: 5-10 %, 3 to 4 million."""
    shared = list(found)
    for index in range(len(shared) - 1):
        left, right = shared[index], shared[index + 1]
        a, b = left.readings[0], right.readings[0]
        between = text[left.end : right.start]
        if not (isinstance(a, Number) and isinstance(b, Number)) or a.unit or not _RANGE.fullmatch(between):
            continue
        scale = _SCALE.search(right.surface)
        by = SCALES[scale["word"].casefold()] if scale else Decimal(1)
        if not b.unit and by == 1:
            continue
        both = (Number(a.value * by, b.unit), *left.readings)
        if between.strip().casefold() in ("and", "und", "or"):
            both = (left.readings[0], both[0], *left.readings[1:])
        shared[index] = replace(left, readings=tuple(dict.fromkeys(both)))
    return tuple(shared)
