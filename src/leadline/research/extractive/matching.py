"""How well a text covers one term of a question, and by what likeness."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

from leadline.core.patterns import lazy_pattern
from leadline.research.extractive.concepts import concepts_of, table
from leadline.research.extractive.features import Features, features
from leadline.research.extractive.language import Language, stem
from leadline.research.extractive.question import Term

SAME = 1.0
SYNONYM = 0.85
DERIVED = 0.85
COMPOUND = 0.8
COGNATE = 0.75
IN_RANGE = 0.9
MIN_STEM = 4
_ENDINGS = frozenset(
    [
        "s",
        "es",
        "er",
        "ers",
        "or",
        "ors",
        "ing",
        "ings",
        "ed",
        "ion",
        "ions",
        "ation",
        "ations",
        "ment",
        "ments",
        "al",
        "als",
        "ance",
        "ence",
        "ity",
        "ities",
        "ness",
        "ly",
        "ive",
        "able",
        "ist",
        "ists",
        "y",
        "ies",
        "ship",
        "hood",
        "age",
        "ag",
        "oir",
        "e",
        "en",
        "n",
        "ern",
        "ung",
        "ungen",
        "in",
        "innen",
        "lich",
        "isch",
        "keit",
        "heit",
        "eur",
        "euse",
        "ateur",
        "eté",
        "mente",
        "ción",
        "ciones",
        "dor",
    ]
)
_DENSE = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff]")
_NUMBER = r"\d+(?:[.,]\d+)?"
_RANGE = lazy_pattern(
    rf"({_NUMBER})\s*%?\s*(?:-|–|—|to|bis|à|a|至|到|~|～|〜|から)\s*({_NUMBER})", re.IGNORECASE
)
_OVER = lazy_pattern(rf"(?:above|over|more than|exceeding|beyond|from|at least|über|mehr als|ab|mindestens|plus de|dès|más de|超过|超過|以上|至少)\s*(?:\D{{0,4}})({_NUMBER})", re.IGNORECASE)  # fmt: skip
_UNDER = lazy_pattern(rf"(?:up to|under|below|less than|at most|no more than|until|within|bis zu|unter|weniger als|höchstens|jusqu'à|moins de|hasta|menos de|不超过|以下|最多|未満)\s*(?:\D{{0,4}})({_NUMBER})", re.IGNORECASE)  # fmt: skip


def likeness(term: Term, text: str, language: Language, document: Language | None = None) -> float:
    """From 0 (the text has nothing of the term) to 1 (it has the term itself).

    Args:
        term: what is looked for.
        text: a passage, or what stands over it.
        language: of the question; both sides are compared with its stems.
        document: language of the text; where it is another one, related spellings count. None: the same.
    """
    found = features(text, language)
    if term.kind == "code":
        return _code(term, found)
    if term.kind in ("year", "number"):
        return _number(term, found, text)
    if term.kind == "pair":
        return _pair(term, found, text)
    if term.kind == "cjk" or _DENSE.match(term.text):
        return _characters(term, found)
    return _word(term, found, language, document or language)


def _code(term: Term, found: Features) -> float:
    return SAME if term.text in found.codes or term.text in found.words else 0.0


def _number(term: Term, found: Features, text: str) -> float:
    if term.text in found.numbers:
        return SAME
    if term.kind == "year":
        return SAME if any(code.endswith(term.text) for code in found.codes) else 0.0
    return IN_RANGE if _within(float(term.text), text) else 0.0


@lru_cache(maxsize=8192)
def _within(value: float, text: str) -> bool:
    """Whether a range or a bound that the text states holds the value."""
    if any(_value(match[1]) <= value <= _value(match[2]) for match in _RANGE.finditer(text)):
        return True
    if any(value > _value(match[1]) for match in _OVER.finditer(text)):
        return True
    return any(value <= _value(match[1]) for match in _UNDER.finditer(text))


def _value(digits: str) -> float:
    return float(digits.replace(",", "."))


def _pair(term: Term, found: Features, text: str) -> float:
    if term.text in found.pairs:
        return SAME
    word, _, designator = term.text.rpartition(" ")
    if designator.isdigit() and word in found.stems and _in_run(word, int(designator), text):
        return COMPOUND
    return SAME if (word + designator) in found.codes else 0.0


@lru_cache(maxsize=4096)
def _in_run(word: str, designator: int, text: str) -> bool:
    """Whether a text names a thing among several of its kind: week 3 in "weeks 2-4" or "weeks 1, 2 and 3"."""
    for match in re.finditer(
        rf"(?<!\w){re.escape(word)}\w*\s+(\d+(?:\s*(?:,|and|und|et|y|&|-|–|to|bis)\s*\d+)+)",
        text,
        re.IGNORECASE,
    ):
        numbers = [int(one) for one in re.findall(r"\d+", match[1])]
        if designator in numbers or (len(numbers) == 2 and numbers[0] <= designator <= numbers[1]):
            return True
    return False


def _word(term: Term, found: Features, language: Language, document: Language) -> float:
    if term.stem in found.stems or term.text in found.words:
        return SAME
    if term.concepts & found.concepts:
        return SYNONYM
    if term.kind == "name" and len(term.text) <= 3:
        return 0.0
    if "-" in term.text and all(_part_matches(part, found, language) for part in term.text.split("-")):
        return DERIVED
    if any(_derived(term.stem, other) for other in found.stems):
        return DERIVED
    if document == "de" and any(_compound(term, word) for word in found.words):
        return COMPOUND
    if document != language and any(_cognate(term.text, word) for word in found.words):
        return COGNATE
    return 0.0


def _part_matches(part: str, found: Features, language: Language) -> bool:
    """Whether a part of a hyphenated word, as in EU-Mitarbeiter, is in the text."""
    if part in found.words or stem(part, language) in found.stems:
        return True
    return bool(concepts_of(part, language) & found.concepts)


def _derived(stem: str, other: str) -> bool:
    """Whether two stems come from one word: found and founder, invest and investor."""
    shorter, longer = (stem, other) if len(stem) <= len(other) else (other, stem)
    return len(shorter) >= MIN_STEM and longer.startswith(shorter) and longer[len(shorter) :] in _ENDINGS


def _compound(term: Term, word: str) -> bool:
    """Whether one German word is built from the other: Urlaub and Jahresurlaub."""
    shorter, longer = (term.stem, word) if len(term.stem) <= len(word) else (word, term.text)
    if len(shorter) > MIN_STEM and (longer.startswith(shorter) or longer.endswith(shorter)):
        return True
    return len(word) > 2 * MIN_STEM - 1 and any(
        word.startswith(part) or word.endswith(part) for part in _german_parts(term.concepts)
    )


@cache
def _german_parts(concepts: frozenset[str]) -> tuple[str, ...]:
    """Stems of one-word German synonyms, long enough to be recognised inside a compound."""
    entries = {entry for name in concepts for entry in table()[name] if " " not in entry}
    return tuple(sorted(part for part in (stem(entry, "de") for entry in entries) if len(part) >= MIN_STEM))


def _cognate(text: str, word: str) -> bool:
    """Whether words of two languages are spelled alike: Batterie and battery."""
    mine, theirs = _levelled(text), _levelled(word)
    shared = 0
    for left, right in zip(mine, theirs, strict=False):
        if left != right:
            break
        shared += 1
    return shared >= 5 and shared * 4 >= 3 * max(len(mine), len(theirs)) - 3


@lru_cache(maxsize=16384)
def _levelled(word: str) -> str:
    """A word without accents and without the letters by which languages spell one sound differently."""
    letters = unicodedata.normalize("NFD", word)
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return bare.replace("ph", "f").replace("k", "c").replace("y", "i").replace("z", "c")


def _characters(term: Term, found: Features) -> float:
    if not found.cjk and not term.concepts & found.concepts:
        return 0.0
    if term.text in found.cjk:
        return SAME
    if term.concepts & found.concepts:
        return SYNONYM
    if len(term.text) < 3:
        return 0.0
    covered = [False] * len(term.text)
    for at in range(len(term.text) - 1):
        if term.text[at : at + 2] in found.cjk:
            covered[at] = covered[at + 1] = True
    share = sum(covered) / len(covered)
    return share * SYNONYM if share >= 0.6 else 0.0
