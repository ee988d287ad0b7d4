"""A quick look whether a text can hold a term at all, so that most of a long document is passed over.

It may say yes too often, never no where `likeness` finds something.
"""

from __future__ import annotations

import re
from functools import lru_cache

from leadline.core.patterns import lazy_pattern
from leadline.core.unspaced import SPACED
from leadline.research.extractive.concepts import concepts_of, table
from leadline.research.extractive.features import MONTHS
from leadline.research.extractive.language import Language, stem
from leadline.research.extractive.question import Term

PREFIX = 4
"""Letters of a word that another word of its family begins with."""
_AMOUNTS = frozenset({"price", "budget", "share", "size"})
_SOUNDS = {
    **dict.fromkeys("ckz", "[ckz]"),
    **dict.fromkeys("iy", "[iy]"),
    **dict.fromkeys("eéèêë", "[eéèêë]"),
    **dict.fromkeys("aáàâä", "[aáàâä]"),
    **dict.fromkeys("oóòôö", "[oóòôö]"),
    **dict.fromkeys("uúùûü", "[uúùûü]"),
}
_ANYTHING = lazy_pattern("")
_DENSE = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff]")
_FREE = "free|frei|gratis|kostenlos|gratuit|免费|無料"


@lru_cache(maxsize=4096)
def hint(term: Term, language: Language) -> re.Pattern[str]:
    """A pattern that is found in every folded text that holds the term."""
    if term.kind == "code":
        letters = re.match(r"[^\W\d_]+", term.text)
        return re.compile(re.escape(letters[0] if letters else term.text))
    if term.kind == "number":
        return re.compile(r"\d")
    if term.kind == "year":
        return re.compile(re.escape(term.text))
    if term.kind == "pair":
        return re.compile(re.escape(term.stem[:PREFIX]))
    if term.concepts & frozenset(MONTHS):
        return _ANYTHING  # a month may stand as a number in a date
    words, anywhere = _of_word(term, language)
    beginning = rf"(?<!(?!_){SPACED})(?:{'|'.join(sorted(words))})"
    return re.compile("|".join((beginning, *sorted(anywhere))))


def _of_word(term: Term, language: Language) -> tuple[set[str], set[str]]:
    """With what a word that holds the term begins, and what may stand anywhere: in compounds, in dense scripts."""
    pieces = {term.text, term.stem, *term.text.split("-"), *term.text.split()}
    names = set(term.concepts).union(*(concepts_of(piece, language) for piece in term.text.split("-")))
    pieces |= {entry for name in names for entry in table()[name]}
    firsts = {piece.split()[0] for piece in pieces if piece.split()}
    dense = {first for first in firsts if _DENSE.match(first)}
    firsts -= dense
    words = {
        _loosely(one[:PREFIX])
        for first in firsts
        for one in (first, stem(first, language), stem(first, "de"))
    }
    anywhere = {re.escape(one) for first in firsts if len(one := stem(first, "de")) >= PREFIX}
    for run in dense:
        pairs = [run] if len(run) < 3 else [run[at : at + 2] for at in range(len(run) - 1)]
        anywhere |= {re.escape(pair) for pair in pairs}
    if names & _AMOUNTS:
        anywhere |= {r"\d", _FREE}
    return words or {re.escape(term.text)}, anywhere


def _loosely(beginning: str) -> str:
    """A beginning in which letters stand for those that another language writes for the same sound."""
    return "".join(_SOUNDS.get(letter, re.escape(letter)) for letter in beginning)


def may_hold(term: Term, text: str, language: Language) -> bool:
    """Whether a text, already folded, has something of a term."""
    return bool(hint(term, language).search(text))


def folded(text: str) -> str:
    """A text as `may_hold` wants it."""
    return text.casefold().replace("’", "'")
