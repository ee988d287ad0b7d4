"""Whether two quotes say nearly the same in the same words."""

from __future__ import annotations

import re

from leadline.research.extractive.kinds import number_words

SHINGLE = 3
ALIKE = 0.75


def alike(one: str, other: str) -> bool:
    """Whether two quotes say nearly the same in the same words; different figures make them different."""
    if sorted(re.findall(r"\d+", one)) != sorted(re.findall(r"\d+", other)):
        return False
    if number_words(one) != number_words(other):
        return False
    first, second = _shingles(one), _shingles(other)
    smaller = min(len(first), len(second))
    return bool(smaller) and len(first & second) / smaller >= ALIKE


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = re.findall(r"\w", text) if _is_dense(text) else re.findall(r"\w+", text.casefold())
    size = min(SHINGLE, max(1, len(words)))
    return frozenset(tuple(words[at : at + size]) for at in range(len(words) - size + 1))


def _is_dense(text: str) -> bool:
    return bool(re.search(r"[\u3040-\u30ff\u3400-\u9fff]{6,}", text))
