"""Which documents are versions of one document, and which of two is newer, with the reason.

What counts is inside the documents: a statement that one is superseded or replaces another, a version
number, a date. Folder and file names decide nothing. Issues of a periodical (a report for each quarter, minutes
of each meeting) are not versions of one another: each stays true of its own period.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from leadline.core.patterns import lazy_pattern
from leadline.research.sources.dates import DatedBy, dates_in, document_date, header_lines

SAME_TITLE = 0.6
"""Share of title words that two versions of one document have in common at least."""
SAME_TEXT = 0.5
"""Share of five-word runs that make two texts versions of one document, whatever their titles."""
RELATED_TITLE = 0.2
_HEAD = 1500
_FOOT = 500
_SHINGLE = 5
_MAX_SHINGLED = 60_000


@dataclass(frozen=True)
class DocInfo:
    """What is compared of a document."""

    id: str
    title: str
    location: str
    published: str | None
    text: str


@dataclass(frozen=True)
class Version:
    """Two sources that are versions of one document."""

    newer: str
    older: str
    reason: str
    """Names the statement, the numbers or the dates that tell."""


_VERSION = lazy_pattern(
    r"(?<![\w.])(?:v(?:ersion|er)?\.?\s*|rev(?:ision)?\.?\s*|edition\s+|ausgabe\s+|fassung\s+|auflage\s+|版本\s*|第\s*)"
    r"(\d+(?:\.\d+){0,3})(?![\w])|(?<!\d)(\d{1,2})(?:st|nd|rd|th|\.)\s+(?:edition|auflage|ausgabe)",
    re.IGNORECASE,
)
_SUPERSEDED = lazy_pattern(
    r"superseded|obsolete|withdrawn|out\s*dated|no\s+longer\s+(?:valid|in\s+force|applicable|current)|replaced\s+by|"
    r"ersetzt\s+durch|abgelöst\s+durch|überholt|veraltet|ungültig|außer\s+kraft|nicht\s+mehr\s+gültig|"
    r"remplacée?\s+par|obsolète|périmée?|abrogée?|sustituid[oa]\s+por|reemplazad[oa]\s+por|obsolet[oa]|derogad[oa]|"
    r"废止|作废|已失效|取代$|被.{0,30}取代|旧版|廃止|失効|旧版",
    re.IGNORECASE,
)
_SUPERSEDED_BY = lazy_pattern(
    r"(?:superseded|replaced)\s+by|(?:ersetzt|abgelöst)\s+durch|remplacée?\s+par|(?:sustituid|reemplazad)[oa]\s+por",
    re.IGNORECASE,
)
_REPLACES = lazy_pattern(
    r"(?<!\w)(?:(?:replac|supersed)(?:es?|ing)(?!\w)|ersetzt(?!\s+durch)|annule\s+et\s+remplace|remplace(?!e?r?\s+par)|"
    r"sustituye|reemplaza|取代|代替|替换|に代わる|を廃止)",
    re.IGNORECASE,
)
_DRAFT = lazy_pattern(
    r"(?<!\w)(?:draft|entwurf|brouillon|borrador|草案|草稿|下書き|preliminary|vorläufig)(?!\w)", re.IGNORECASE
)
_PERIODIC = lazy_pattern(
    r"report|minutes|newsletter|bulletin|review|results|statement|calendar|agenda|digest|journal|log\b|notes|"
    r"bericht|protokoll|rundbrief|kalender|abschluss|rapport|compte[- ]rendu|procès|bilan|informe|acta|boletín|"
    r"报告|纪要|记录|通讯|简报|报表|日历|報告|議事録|会報|予定",
    re.IGNORECASE,
)
_OF_A_MEETING = lazy_pattern(
    r"minutes|newsletter|bulletin|protokoll|niederschrift|rundbrief|compte[- ]rendu|procès[- ]verbal|acta(?!\w)|boletín|"
    r"纪要|会议记录|简报|議事録|会報",
    re.IGNORECASE,
)
"""Titles of what tells of one occasion, so that its date alone sets it apart from another of the same title."""
_TITLE_WORD = lazy_pattern(r"[^\W_]+(?:-[^\W_]+)*")
_CJK_RUN = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff]+")
_NOT_CORE = frozenset(
    [
        "v",
        "version",
        "ver",
        "rev",
        "revision",
        "edition",
        "draft",
        "final",
        "superseded",
        "obsolete",
        "copy",
        "old",
        "new",
        "current",
        "of",
        "the",
        "a",
        "an",
        "and",
        "for",
        "in",
        "on",
        "to",
        "by",
        "entwurf",
        "der",
        "die",
        "das",
        "und",
        "von",
        "für",
        "le",
        "la",
        "les",
        "du",
        "des",
        "de",
        "et",
        "el",
        "los",
        "las",
        "y",
        "excerpt",
        "approved",
        "internal",
    ]
)


class _Reading:
    """What one document says about itself."""

    def __init__(self, doc: DocInfo) -> None:
        self.doc = doc

    @cached_property
    def title(self) -> str:
        stem = re.sub(r"[_-]+", " ", self.doc.location.rsplit("/", 1)[-1].rsplit(".", 1)[0])
        return self.doc.title or stem

    @cached_property
    def head(self) -> str:
        return self.doc.text[:_HEAD]

    @cached_property
    def dated(self) -> DatedBy | None:
        return document_date(self.doc.text, self.doc.published)

    @cached_property
    def core(self) -> frozenset[str]:
        """The words of the title that say what the document is about."""
        spans = [(date.start, date.end) for date in dates_in(self.title)] + [
            match.span() for match in _VERSION.finditer(self.title)
        ]
        rest = "".join(
            " " if any(start <= at < end for start, end in spans) else letter
            for at, letter in enumerate(self.title)
        )
        return title_words(rest)

    @cached_property
    def version(self) -> tuple[int, ...] | None:
        for line in [self.title, *header_lines(self.doc.text)[:4]]:
            match = _VERSION.search(line)
            if match:
                return tuple(int(part) for part in (match[1] or match[2]).split("."))
        return None

    @cached_property
    def superseded(self) -> str | None:
        """The statement that the document is no longer current."""
        for match in _SUPERSEDED.finditer(self.head):
            sentence = _sentence(self.head, match.start())
            if _replaces(sentence) is None:
                return sentence
        return self.title if _SUPERSEDED.search(self.title) else None

    @cached_property
    def superseded_by(self) -> str | None:
        for part in (self.head, self.doc.text[-_FOOT:]):
            match = _SUPERSEDED_BY.search(part)
            if match:
                return part[match.end() : match.end() + 160]
        return None

    @cached_property
    def superseding_sentence(self) -> str | None:
        for part in (self.head, self.doc.text[-_FOOT:]):
            match = _SUPERSEDED_BY.search(part)
            if match:
                return _sentence(part, match.start())
        return None

    @cached_property
    def replaces(self) -> str | None:
        for part in (self.head, self.doc.text[-_FOOT:]):
            found = _replaces(part)
            if found:
                return found
        return None

    @cached_property
    def is_draft(self) -> bool:
        return bool(
            _DRAFT.search(self.title) or any(_DRAFT.search(line) for line in header_lines(self.doc.text))
        )

    @cached_property
    def periods(self) -> frozenset[str]:
        """The dates in its title; of minutes and the like without one, the date of the document."""
        titled = frozenset(date.iso for date in dates_in(self.title))
        if titled or self.dated is None or not _OF_A_MEETING.search(self.title):
            return titled
        return frozenset({self.dated.date})

    @cached_property
    def is_issue(self) -> bool:
        """Whether the title is that of one issue of a periodical."""
        return bool(self.periods) and bool(
            _PERIODIC.search(self.title) or any(len(period) > 4 for period in self.periods)
        )

    @cached_property
    def shingles(self) -> frozenset[int]:
        words = re.findall(r"\w+", self.doc.text[:_MAX_SHINGLED].casefold())
        return frozenset(hash(tuple(words[at : at + _SHINGLE])) for at in range(len(words) - _SHINGLE + 1))


def title_words(title: str) -> frozenset[str]:
    """The telling words of a title; Chinese and Japanese as pairs of characters."""
    folded = title.casefold()
    words = {word for word in _TITLE_WORD.findall(_CJK_RUN.sub(" ", folded)) if word not in _NOT_CORE}
    for run in _CJK_RUN.findall(folded):
        words |= {run[at : at + 2] for at in range(len(run) - 1)} or {run}
    return frozenset(words)


def relate_versions(docs: Sequence[DocInfo]) -> list[Version]:
    """Every pair of documents that are versions of one document and of which one is surely newer.

    In the order of `docs`. Copies with the same text are no versions; where neither a statement nor a version
    number nor a date tells which is newer, nothing is said.
    """
    readings = [_Reading(doc) for doc in docs]
    found = (_relate(first, second) for first, second in combinations(readings, 2))
    return [version for version in found if version]


def same_series(first: DocInfo, second: DocInfo) -> bool:
    """Whether two documents are issues of one periodical: the same title but for its period."""
    one, other = _Reading(first), _Reading(second)
    both = one.is_issue and other.is_issue and one.periods != other.periods
    return both and _overlap(one, other) >= SAME_TITLE


def is_superseded(statement: str) -> bool:
    """Whether a line says that the document it stands in is no longer current."""
    return bool(_SUPERSEDED.search(statement)) and _replaces(statement) is None


def _relate(first: _Reading, second: _Reading) -> Version | None:
    if first.doc.text.strip() == second.doc.text.strip():
        return None
    for newer, older in ((first, second), (second, first)):
        stated = _stated(newer, older)
        if stated:
            return Version(newer.doc.id, older.doc.id, stated)
    if not _one_document(first, second):
        return None
    return _newer(first, second)


def _stated(newer: _Reading, older: _Reading) -> str | None:
    """The statement in either document that names the other."""
    if older.superseded_by and _names(older.superseded_by, newer) and _overlap(older, newer) > 0:
        return f"“{older.title}” says: “{older.superseding_sentence}”"
    if (
        newer.replaces
        and _names(newer.replaces, older)
        and _overlap(older, newer) > 0
        and not _is_later(older, newer)
    ):
        return f"“{newer.title}” says that it replaces “{newer.replaces}”"
    return None


def _names(target: str, doc: _Reading) -> bool:
    """Whether words such as "the 2026 product brief" mean this document."""
    words = title_words(target)
    years = {date.iso[:4] for date in dates_in(target)}
    own = {date.iso[:4] for date in dates_in(doc.title)} | ({doc.dated.date[:4]} if doc.dated else set[str]())
    if years and own and not years & own:
        return False
    shared = words & doc.core
    return len(shared) >= 2 or (bool(shared) and (len(doc.core) <= 2 or bool(years & own)))


def _one_document(first: _Reading, second: _Reading) -> bool:
    if first.is_issue and second.is_issue and first.periods != second.periods:
        return False
    overlap = _overlap(first, second)
    if overlap >= SAME_TITLE:
        return True
    if (first.superseded or second.superseded) and overlap >= RELATED_TITLE and _share_code(first, second):
        return True
    return _same_text(first, second)


def _share_code(first: _Reading, second: _Reading) -> bool:
    return any(any(letter.isdigit() for letter in word) for word in first.core & second.core)


def _overlap(first: _Reading, second: _Reading) -> float:
    union = first.core | second.core
    return len(first.core & second.core) / len(union) if union else 0.0


def _same_text(first: _Reading, second: _Reading) -> bool:
    smaller = min(len(first.shingles), len(second.shingles))
    return smaller >= 20 and len(first.shingles & second.shingles) / smaller >= SAME_TEXT


def _newer(first: _Reading, second: _Reading) -> Version | None:
    if bool(first.superseded) != bool(second.superseded):
        older, newer = (first, second) if first.superseded else (second, first)
        return Version(newer.doc.id, older.doc.id, f"“{older.title}” says: “{older.superseded}”")
    if first.version and second.version and first.version != second.version:
        newer, older = (first, second) if first.version > second.version else (second, first)
        if not _is_later(older, newer):
            return Version(
                newer.doc.id, older.doc.id, f"version {_dotted(newer)} is after version {_dotted(older)}"
            )
    for newer, older in ((first, second), (second, first)):
        if _is_later(newer, older) and newer.dated and older.dated:
            return Version(
                newer.doc.id, older.doc.id, f"“{newer.dated.statement}” is after “{older.dated.statement}”"
            )
    if first.is_draft != second.is_draft:
        older, newer = (first, second) if first.is_draft else (second, first)
        return Version(newer.doc.id, older.doc.id, f"“{older.title}” is a draft")
    return None


def _is_later(one: _Reading, other: _Reading) -> bool:
    if one.dated is None or other.dated is None:
        return False
    mine, theirs = one.dated.date, other.dated.date
    width = min(len(mine), len(theirs))
    return mine[:width] > theirs[:width]


def _dotted(reading: _Reading) -> str:
    return ".".join(str(part) for part in reading.version or ())


def _replaces(text: str) -> str | None:
    match = _REPLACES.search(text)
    if match is None:
        return None
    rest = re.split(r"[.;。；\n]\s|[。；]|\n\n", text[match.end() : match.end() + 200], maxsplit=1)[0]
    return " ".join(rest.split()).strip("*_ ") or None


def _sentence(text: str, at: int) -> str:
    """The line, joined with its continuation, in which `at` stands."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[start : end if end >= 0 else len(text)]
    return " ".join(line.strip().strip("#*_>| ").replace("**", "").split())
