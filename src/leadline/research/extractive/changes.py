"""What differs between two versions of a document: statements about the same thing, side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leadline.core.patterns import lazy_pattern
from leadline.research.extractive.alike import alike
from leadline.research.extractive.answer import Match
from leadline.research.extractive.language import Language, stem, word_set
from leadline.research.extractive.library import Document, Library
from leadline.research.extractive.matching import likeness
from leadline.research.extractive.passages import Passage
from leadline.research.extractive.plain import plain
from leadline.research.extractive.question import Question
from leadline.research.extractive.tokens import tokens
from leadline.research.sources.versions import Version, title_words

SAME_MATTER = 0.6
"""How much two statements share of what they are about, to be put side by side."""
MAX_PAIRS = 8
_CHANGE = lazy_pattern(
    r"(?<!\w)(?:chang(?:e[sd]?|ing)|differ(?:s|ed|ence|ences|ent)?|compar(?:e[sd]?|ison)|versus|vs|"
    r"(?:ge|ver)änder\w*|änderung\w*|unterschied\w*|unterscheide\w*|vergleich\w*|changé\w*|changements?|différen\w*|"
    r"compar\w+|cambi\w+|diferenci\w+)(?!\w)|变化|改变|不同|区别|变更|変更|違い|変わ",
    re.IGNORECASE,
)
_OF_VERSIONS = frozenset(
    [
        "version",
        "versions",
        "edition",
        "draft",
        "concept",
        "brief",
        "document",
        "old",
        "older",
        "new",
        "newer",
        "current",
        "previous",
        "earlier",
        "former",
        "original",
        "latest",
        "fassung",
        "fassungen",
        "alt",
        "alte",
        "alten",
        "neu",
        "neue",
        "neuen",
        "aktuell",
        "entwurf",
        "ancienne",
        "ancien",
        "nouvelle",
        "nouveau",
        "actuelle",
        "antigua",
        "antiguo",
        "nueva",
        "nuevo",
        "actual",
        "版",
        "版本",
        "旧版",
        "新版",
    ]
)


def changes(question: Question, library: Library, versions: Sequence[Version]) -> list[tuple[Match, Match]]:
    """Pairs of statements, the newer one first, when the question asks how versions of a document differ."""
    if not _CHANGE.search(question.text):
        return []
    known = {one.source: one for one in library.documents}
    for version in versions:
        newer, older = known[version.newer], known[version.older]
        if _are_meant(question, newer, older):
            return _pairs(newer, older)
    return []


def _are_meant(question: Question, newer: Document, older: Document) -> bool:
    """Whether all that the question tells of is what the two documents are called."""
    telling = [
        term
        for term in question.strict
        if not (_OF_VERSIONS & {term.text, term.stem})
        and term.kind != "year"
        and not _CHANGE.fullmatch(term.text)
    ]
    names = f"{newer.name}\n{older.name}"
    return bool(telling) and all(
        likeness(term, names, question.language, newer.language) > 0 for term in telling
    )


def _pairs(newer: Document, older: Document) -> list[tuple[Match, Match]]:
    fresh = _statements(newer)
    found: list[tuple[Passage, Passage]] = []
    for old in _statements(older):
        best = max(fresh, key=lambda one: _shared(one, old, newer.language), default=None)
        if best is None or _shared(best, old, newer.language) < SAME_MATTER or _says_the_same(best, old):
            continue
        if not any(one is best for one, _ in found):
            found.append((best, old))
    return [(_match(newer, new), _match(older, old)) for new, old in found[:MAX_PAIRS]]


def _statements(document: Document) -> list[Passage]:
    """What a document states, without the lines with which it names and dates itself."""
    return [
        one
        for one in document.passages
        if one.kind in ("item", "row", "sentence") and plain(one.text) not in document.header
    ]


def _says_the_same(new: Passage, old: Passage) -> bool:
    return alike(new.words, old.words) or " ".join(new.words.split()) == " ".join(old.words.split())


def _match(document: Document, passage: Passage) -> Match:
    return Match(document, passage, 1.0, (), True, 1.0, 1.0)


def _shared(new: Passage, old: Passage, language: Language) -> float:
    """How much two statements are about the same: what each names itself by, found in the other."""
    ours, theirs = _named(new, language), _named(old, language)
    if not ours or not theirs:
        return 0.0
    in_new = len(theirs & _said(new, language)) / len(theirs)
    in_old = len(ours & _said(old, language)) / len(ours)
    return (in_new + in_old) / 2


def _named(passage: Passage, language: Language) -> frozenset[str]:
    """What a statement is about: the words before a colon, in the first cell, else all of its words."""
    if passage.kind == "row":
        label = passage.words.split("  ", 1)[0]
    else:
        label = re.split(r"[:：]\s", passage.text, maxsplit=1)[0]
        label = label if len(label) <= 60 else passage.text
    return _stems(label, language) or _said(passage, language)


def _said(passage: Passage, language: Language) -> frozenset[str]:
    return _stems(" ".join((passage.words, *passage.headings[-1:])), language)


def _stems(text: str, language: Language) -> frozenset[str]:
    dense = {word for word in title_words(text) if re.match(r"[\u3040-\u30ff\u3400-\u9fff]", word)}
    return frozenset(
        stem(token.text, language)
        for token in tokens(text)
        if token.kind in ("word", "code") and token.text not in word_set("stop", language)
    ) | frozenset(dense)
