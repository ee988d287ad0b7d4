"""The words in front of a sentence that say which document speaks: read here, checked by `checks.attribution`.

Accepted is a form of `attribution_forms.txt`, in English, German, French, Spanish, Chinese or Japanese, at the very
start of a cited sentence, followed by the statement (or by nothing, where a list or table follows):

    According to “Expense Policy (2026)”: Hotel caps: EUR 180.
    According to the report “Expense Policy” (2026-03), hotel caps are EUR 180.
    In / From / Per “Expense Policy”: ...
    “Expense Policy” (March 2026) says: ...              also states, reports, notes, writes; ", " or " that" for ":"
    “Expense Policy” (2026): ...
    An older version of this document says: ...          also The; earlier, previous, superseded, outdated
    An older version of this document, “VLX-500 Concept One-Pager (v0.2)” (2025-06), says: ...
    According to / In / From an older version of this document, “VLX-500 Concept” (2025-06): ...
    “VLX-500 Concept” (2025-06), an older version of this document, says: ...
    Older version, “VLX-500 Concept” (2025-06): ...
    the same with newer / later / more recent, and with latest / newest / current / most recent

    Laut „Spesenordnung (2026)“: ...   In „Spesenordnung“ heißt es: ...   „Spesenordnung“ besagt: ...
    Eine ältere Fassung dieses Dokuments, „Konzept v0.2“ (2025-06), besagt: ...
    Selon « Politique de frais » (2026) : ...   Une version plus ancienne de ce document, « Concept » (2025-06), dit : ...
    Según «Política de gastos» (2026): ...   Una versión anterior de este documento, «Concepto» (2025-06), dice: ...
    根据《差旅制度》（2026）：...   《差旅制度》称：...   该文件的旧版本《概念书》（2025-06）称：...
    「旅費規程」（2026年）によると：...   この文書の古い版「構想書」（2025-06）では：...

A document is named by its title, whole or most of it, in quotation marks of any kind or bare, or by its location or
file name. Its date stands in brackets behind it or after a word such as "of", "from", "dated", "published", "vom",
"du", "de", as ISO date, month and year, year, or in words. Titles of other documents, further words, and
attributions at the end of a sentence are not read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, cast, get_args

from leadline.research.verify.figures import Date, figures
from leadline.research.verify.lexicon import RESERVATION
from leadline.research.verify.names import folded_words, is_cjk
from leadline.research.verify.typography import level

Version = Literal["older", "newer", "latest"]
MOST = 0.5
"""Share of the letters of a title that still name the document."""
_MIN_BARE_NAME = 6

_DATE_WORDS = "of|from|dated|published|published on|published in|as of|vom|von|veröffentlicht|Stand|du|de|publié|publié le|del"
_DAY = r"(?=[^()\":]*[12]\d{3})[^()\":]{4,40}?"
_DATED = rf" ?\( ?(?:(?:{_DATE_WORDS}) )?(?P<date>{_DAY}) ?\)| (?:{_DATE_WORDS}) (?P<date2>{_DAY})|, (?P<date3>{_DAY})"
_TITLE = "|".join(
    rf"{opens} ?(?P<{name}>[^\n]{{1,300}}?) ?{shuts}"
    for name, opens, shuts in (
        ("t1", '"', '"'),
        ("t2", "(?<!\\w)'", "'(?!\\w)"),
        ("t3", "「", "」"),
        ("t4", "『", "』"),
        ("t5", "《", "》"),
        ("t6", "\u2039", "\u203a"),
    )
)
_SOURCE = rf"(?:{_TITLE})(?:{_DATED})?"


@dataclass(frozen=True)
class Attribution:
    """What a sentence says of where it comes from. `title` or `version` is given."""

    words: str
    title: str | None = None
    date: str | None = None
    version: Version | None = None


@dataclass(frozen=True)
class Day:
    """A date, as far as it is given."""

    year: int
    month: int | None = None
    day: int | None = None


@dataclass(frozen=True)
class _Form:
    version: Version | None
    bare: bool
    pattern: re.Pattern[str]


def read_attribution(text: str, cited: Sequence[str], known: Sequence[str]) -> tuple[Attribution | None, str]:
    """The attribution at the start of a text, and the rest; (None, text) where there is none.

    Args:
        text: a sentence.
        cited: names of the documents that it cites, which may stand without quotation marks.
        known: names of all documents of the run.
    """
    spelled = level(text)
    for candidate in (spelled, *_with_marks(spelled, cited)):
        for form in forms():
            found = form.pattern.match(candidate)
            if not found:
                continue
            attribution = _attribution(form, found)
            if attribution.title is None and attribution.version is None:
                continue
            named = attribution.title or ""
            if form.bare and not any(agreement(named, one) for one in known):
                continue
            return attribution, candidate[found.end() :].strip()
    return None, text


def agreement(named: str, title: str) -> Literal["whole", "most"] | None:
    """Whether a name is the title of a document: all of it, or most of it with nothing of weight left out."""
    ours, theirs = folded_words(named), folded_words(title)
    if not ours or not theirs:
        return None
    if ours == theirs:
        return "whole"
    if is_cjk(title):
        short, long = "".join(ours), "".join(theirs)
        return "most" if short in long and len(short) >= MOST * len(long) else None
    rest = iter(theirs)
    if not all(word in rest for word in ours):
        return None
    left_out = list(theirs)
    for word in ours:
        left_out.remove(word)
    enough = len("".join(ours)) >= MOST * len("".join(theirs))
    return "most" if enough and not any(word in RESERVATION for word in left_out) else None


def day_of(text: str) -> Day | None:
    """The date that a text is, in any spelling; None where it is none or more than one."""
    iso = re.fullmatch(r"([12]\d{3})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?", text.strip())
    if iso:
        year, month, day = (int(part) if part else None for part in iso.groups())
        return Day(year or 0, month, day)
    found = figures(text)
    if len(found) != 1 or any(letter.isalnum() for letter in level(text).replace(found[0].surface, "", 1)):
        return None
    reading = found[0].readings[0]
    if isinstance(reading, Date) and reading.year and not reading.quarter:
        return Day(reading.year, reading.month, reading.day)
    return None


def _with_marks(text: str, names: Sequence[str]) -> list[str]:
    """The text with a bare name of a cited document in quotation marks, for each name that stands in it."""
    found: list[str] = []
    for name in sorted({level(one) for one in names}, key=len, reverse=True):
        at = text.casefold().find(name.casefold()) if len(name) >= _MIN_BARE_NAME else -1
        if at >= 0:
            found.append(f'{text[:at]}"{text[at : at + len(name)]}"{text[at + len(name) :]}')
    return found


def _attribution(form: _Form, found: re.Match[str]) -> Attribution:
    groups = found.groupdict()
    title = next((groups[name] for name in ("t1", "t2", "t3", "t4", "t5", "t6") if groups.get(name)), None)
    date = next((groups[name] for name in ("date", "date2", "date3") if groups.get(name)), None)
    return Attribution(
        words=found.group().strip(),
        title=title.strip() if title else None,
        date=date.strip() if date else None,
        version=form.version,
    )


@cache
def forms() -> tuple[_Form, ...]:
    """The forms that are recognised, compiled once; that takes some 50 ms."""
    text = (files(__package__ or "") / "attribution_forms.txt").read_text(encoding="utf-8")
    rows = (line.split(" ", 2) for line in text.splitlines() if line and not line.startswith("#"))
    return tuple(
        _Form(
            cast("Version", kind) if kind in get_args(Version) else None,
            kind == "bare",
            re.compile(_pattern(form), re.IGNORECASE),
        )
        for kind, _, form in rows
    )


def _pattern(form: str) -> str:
    """A form as a pattern; spaces next to quotation marks and colons may be left out."""
    parts: list[str] = []
    for part in re.findall(r"\{source\}|[()|\[\]]|[^(){}|\[\]]+", level(form) if form.isascii() else form):
        match part:
            case "{source}":
                parts.append(_SOURCE)
            case "(":
                parts.append("(?:")
            case "[":
                parts.append("(?:")
            case "]":
                parts.append(")?")
            case ")" | "|":
                parts.append(part)
            case _:
                parts.append(re.sub(r"\\ ", " ?" if part.strip() == "" else " +", re.escape(part)))
    return "".join(parts).replace("(?::", "(?: ?:") + " *"
