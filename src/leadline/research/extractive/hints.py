"""A quick look whether a text can hold a term at all, so that most of a long document is passed over.

It may say yes too often, never no where `likeness` finds something.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from leadline.research.extractive.concepts import concepts_of, table
from leadline.research.extractive.language import Language, stem
from leadline.research.extractive.question import Question, Term

PREFIX = 4
"""Letters of a word that another word of its family begins with."""
_AMOUNTS = ("price", "budget", "share")
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
    return re.compile("|".join(sorted(_of_word(term, language))))


def _of_word(term: Term, language: Language) -> set[str]:
    pieces = [term.text, term.stem, *term.text.split("-"), *term.text.split()]
    names = set(term.concepts).union(*(concepts_of(piece, language) for piece in term.text.split("-")))
    entries = [entry for name in names for entry in table()[name]]
    found = {re.escape(part) for piece in pieces for part in _beginnings(piece, language)}
    found |= {re.escape(part) for entry in entries for part in _beginnings(entry, language)}
    if names & set(_AMOUNTS):
        found |= {r"\d", _FREE}
    return found or {re.escape(term.text)}


def _beginnings(piece: str, language: Language) -> Iterable[str]:
    """What a word of the same family has to contain: its first letters, or two characters of a dense script."""
    if re.match(r"[\u3040-\u30ff\u3400-\u9fff]", piece):
        return {piece} if len(piece) < 3 else {piece[at : at + 2] for at in range(len(piece) - 1)}
    first = piece.split()[0] if piece.split() else piece
    return {first[:PREFIX], stem(first, language)[:PREFIX]}


def may_answer(question: Question, text: str) -> bool:
    """Whether a text has something of at least one term of a question."""
    folded = text.casefold().replace("’", "'")
    return any(hint(term, question.language).search(folded) for term in question.terms)


def may_hold(term: Term, text: str, language: Language) -> bool:
    """Whether a text, already folded, has something of a term."""
    return bool(hint(term, language).search(text))
