"""Everyday words that mean the same: from a word or phrase to the concepts it can stand for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files

from leadline.research.extractive.language import Language, language_of, stem

MAX_PHRASE = 4
"""Words in the longest phrase that is looked for."""


@cache
def table() -> dict[str, tuple[str, ...]]:
    """Concept name to its words and phrases, folded, in the order of `lexicon/concepts.txt`."""
    text = (files(__package__ or "") / "lexicon" / "concepts.txt").read_text(encoding="utf-8")
    lines = (line.partition(":") for line in text.splitlines() if line and not line.startswith("#"))
    return {
        name: tuple(word.replace("_", " ") for word in rest.casefold().split()) for name, _, rest in lines
    }


@cache
def _by_stem(language: Language) -> dict[str, frozenset[str]]:
    """Stemmed word or phrase to concepts, as seen with the stems of one language."""
    found: dict[str, set[str]] = {}
    for name, entries in table().items():
        for entry in entries:
            for key in {entry, " ".join(stem(word, language) for word in entry.split())}:
                found.setdefault(key, set()).add(name)
    return {key: frozenset(names) for key, names in found.items()}


@cache
def _cjk_entries() -> tuple[tuple[str, frozenset[str]], ...]:
    found: dict[str, set[str]] = {}
    for name, entries in table().items():
        for entry in entries:
            if language_of(entry) in ("zh", "ja"):
                found.setdefault(entry, set()).add(name)
    return tuple(
        (entry, frozenset(names)) for entry, names in sorted(found.items(), key=lambda one: -len(one[0]))
    )


@lru_cache(maxsize=65536)
def concepts_of(word: str, language: Language) -> frozenset[str]:
    """The concepts of a folded word or phrase; empty when it has none."""
    known = _by_stem(language)
    direct = known.get(word)
    if direct is not None:
        return direct
    stemmed = known.get(" ".join(stem(part, language) for part in word.split()))
    if stemmed is not None or language == "en":
        return stemmed or frozenset()
    return concepts_of(word, "en")


def phrase_at(words: Sequence[str], at: int, language: Language) -> tuple[int, frozenset[str]]:
    """How many words from `at` on form the longest known phrase (0: none of two or more), and its concepts."""
    for length in range(min(MAX_PHRASE, len(words) - at), 1, -1):
        found = concepts_of(" ".join(words[at : at + length]), language)
        if found:
            return length, found
    return 0, frozenset()


def cjk_concepts(text: str) -> list[tuple[int, int, frozenset[str]]]:
    """Where known Chinese or Japanese words stand in a run, longest first, without overlap."""
    taken = [False] * len(text)
    found: list[tuple[int, int, frozenset[str]]] = []
    for entry, names in _cjk_entries():
        at = text.find(entry)
        while at >= 0:
            if not any(taken[at : at + len(entry)]):
                taken[at : at + len(entry)] = [True] * len(entry)
                found.append((at, at + len(entry), names))
            at = text.find(entry, at + 1)
    return sorted(found)


def synonyms(names: frozenset[str], language: Language) -> tuple[str, ...]:
    """Words for a concept that a document in `language` may use, at most eight, in the order of the table."""
    found = [
        entry
        for name in sorted(names)
        for entry in table()[name]
        if (language in ("zh", "ja")) == (language_of(entry) in ("zh", "ja"))
    ]
    return tuple(dict.fromkeys(found))
