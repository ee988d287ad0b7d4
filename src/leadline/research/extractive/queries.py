"""A question in several wordings, as a search by words needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leadline.research.extractive.concepts import synonyms
from leadline.research.extractive.language import Language, is_cjk
from leadline.research.extractive.question import Question, Term, read_question

MAX_SYNONYMS = 40
"""Words that one query gets from the table of synonyms."""
MAX_QUERY = 900


def formulations(facets: Sequence[str], count: int) -> list[str]:
    """At most `count` different queries: the question's own words, their synonyms, their families, its names.

    With several facets, each comes in its own words as far as the number allows. One query alone joins all.
    """
    questions = [read_question(facet) for facet in facets]
    own = [_own(question) for question in questions]
    other = " ".join(_other_words(question) for question in questions).strip()
    names = " ".join(_names(question) for question in questions).strip()
    if count == 1:
        wanted = [" ".join((*own, other))]
    elif len(own) == 1:
        wanted = [own[0], f"{names} {other}".strip(), " ".join(_families(questions[0])), names]
    else:
        wanted = [*own[: count - 1], " ".join((*own[count - 1 :], other))]
    queries = [query[:MAX_QUERY].strip() for query in wanted]
    return list(dict.fromkeys(query for query in queries if query))[:count]


def _own(question: Question) -> str:
    return " ".join(term.surface for term in (*question.terms, *question.frame)) or question.text


def _names(question: Question) -> str:
    telling = [term for term in question.terms if term.is_entity] or list(question.strict)
    return " ".join(term.surface for term in telling)


_ENDINGS: Mapping[Language, tuple[str, ...]] = {
    "en": ("", "ing", "ed", "er", "ion", "ation", "ment", "al"),
    "de": ("", "en", "ung", "er", "t", "te"),
    "fr": ("", "er", "age", "ement", "ation", "eur", "é"),
    "es": ("", "ar", "er", "ado", "ción", "miento", "o", "a"),
}


def _families(question: Question) -> list[str]:
    """Words that may come from the same stem as those of the question, such as the noun for a verb."""
    endings = _ENDINGS.get(question.language, ())
    telling = [
        term
        for term in question.strict
        if term.kind == "word" and len(term.stem) > 3 and " " not in term.stem
    ]
    return [term.stem + ending for term in telling for ending in endings]


def _other_words(question: Question) -> str:
    """Synonyms in the question's language and in the scripts that a folder may be written in."""
    found = [word for term in question.strict for word in _synonyms(term, question.language)]
    return " ".join(list(dict.fromkeys(found))[:MAX_SYNONYMS])


def _synonyms(term: Term, language: Language) -> list[str]:
    share = max(8, MAX_SYNONYMS // 4)
    near = synonyms(term.concepts, language)[:share]
    across = synonyms(term.concepts, "en")[:share] if is_cjk(language) else ()
    return [word for word in (*near, *across) if word != term.text]
