"""A question with its likely typing errors mended, by the words of the documents at hand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache, lru_cache

from leadline.core.patterns import lazy_pattern
from leadline.core.unspaced import SPACED, UNSPACED
from leadline.research.extractive.concepts import table
from leadline.research.extractive.language import LANGUAGES, Language, Role, stem, words
from leadline.research.extractive.library import Library
from leadline.research.extractive.question import read_question

MIN_LENGTH = 6
MAX_LENGTH = 40
MAX_TEXT = 200_000
"""Characters of one document of which the words are looked at."""
_WORD = lazy_pattern(rf"[^\W\d_{UNSPACED}]{{4,}}")
_ROLES: tuple[Role, ...] = ("stop", "frame", "soft")


def respelled(text: str, library: Library) -> str:
    """The question with each word that no document has, and that is no known word, put right by one letter.

    Only where the documents, or the table of everyday words, have a word that is one letter off; names, codes and
    figures stay as they are.
    """
    question = read_question(text)
    seen: Counter[str] | None = None
    for term in question.strict:
        if (
            term.kind != "word"
            or term.concepts
            or not MIN_LENGTH <= len(term.text) <= MAX_LENGTH
            or not term.text.isalpha()
        ):
            continue
        seen = seen if seen is not None else _seen(library)
        if _is_known(term.text, question.language, seen):
            continue
        better = _nearest(term.text, seen)
        if better:
            text = re.sub(rf"(?<!{SPACED}){re.escape(term.surface)}(?!{SPACED})", better, text)
    return text


def _seen(library: Library) -> Counter[str]:
    found: Counter[str] = Counter()
    for document in library.documents:
        found.update(_words_of(document.text[:MAX_TEXT]))
    return found


@lru_cache(maxsize=256)
def _words_of(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(text.casefold()))


def _is_known(word: str, language: Language, seen: Counter[str]) -> bool:
    if word in seen or word in _everyday():
        return True
    own = stem(word, language)
    return any(other.startswith(word[:4]) and stem(other, language) == own for other in seen)


def _nearest(word: str, seen: Counter[str]) -> str | None:
    candidates = sorted(set(_one_off(word)) & seen.keys(), key=lambda one: (-seen[one], one))
    if not candidates:
        candidates = sorted(set(_one_off(word)) & _everyday())
    return candidates[0] if candidates else None


def _one_off(word: str) -> Iterator[str]:
    """Every word that a missing, a further, a wrong or two swapped letters behind the first could have been."""
    letters = sorted(set("abcdefghijklmnopqrstuvwxyzäöüßéèêàçñáíóú"))
    for at in range(1, len(word) + 1):
        yield from (word[:at] + letter + word[at:] for letter in letters)
        if at < len(word):
            yield word[:at] + word[at + 1 :]
            yield from (word[:at] + letter + word[at + 1 :] for letter in letters)
        if at + 1 < len(word):
            yield word[:at] + word[at + 1] + word[at] + word[at + 2 :]


@cache
def _everyday() -> frozenset[str]:
    entries = {entry for listed in table().values() for entry in listed if " " not in entry}
    return frozenset(entries).union(*(words(role, language) for role in _ROLES for language in LANGUAGES))
