"""What of a text can match a term of a question: stems, concepts, codes, figures, pairs of characters."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

from leadline.core.patterns import lazy_pattern
from leadline.core.unspaced import SPACED
from leadline.research.extractive.concepts import cjk_concepts, concepts_of, phrase_at
from leadline.research.extractive.language import Language, stem
from leadline.research.extractive.periods import codes_in
from leadline.research.extractive.tokens import Token, is_year, tokens
from leadline.research.sources.dates import dates_in

_NUMBERED = lazy_pattern(rf"(?<!{SPACED})(?<![.,-])\d{{1,3}}-\d{{1,4}}(?!{SPACED}|[%-])")
"""Things that are called by two numbers: bed 7-14."""
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"
)  # fmt: skip
"""Names of the months as concepts, from January."""


@dataclass(frozen=True)
class Features:
    """A text as a set of things to match."""

    words: frozenset[str]
    """Folded words and the parts of hyphenated ones."""
    stems: frozenset[str]
    concepts: frozenset[str]
    codes: frozenset[str]
    numbers: frozenset[str]
    pairs: frozenset[str]
    """Adjacent tokens, the first as its stem, joined with a space."""
    cjk: str
    """Chinese and Japanese characters, runs divided by a space."""


@lru_cache(maxsize=32768)
def features(text: str, language: Language) -> Features:
    """The features of a text, stemmed as `language` is."""
    row = tokens(text)
    spelled = [part for token in row if token.kind == "word" for part in (token.text, *token.parts)]
    stems = {stem(word, language) for word in spelled}
    found = {name for word in spelled for name in concepts_of(word, language)}
    found |= {name for token in row if token.kind == "sign" for name in concepts_of(token.text, language)}
    found |= _phrase_concepts([token.text for token in row], language)
    found |= {MONTHS[int(date.iso[5:7]) - 1] for date in dates_in(text) if date.has_month}
    runs = [token.text for token in row if token.kind == "cjk"]
    found |= {name for run in runs for _, _, names in cjk_concepts(run) for name in names}
    return Features(
        words=frozenset(spelled),
        stems=frozenset(stems),
        concepts=frozenset(found),
        codes=frozenset({token.text for token in row if token.kind == "code"} | _spaced_codes(row, text))
        | codes_in(text)
        | frozenset(_NUMBERED.findall(text)),
        numbers=frozenset(
            {token.text for token in row if token.kind == "number"}
            | {str(int(date.iso[8:10])) for date in dates_in(text) if len(date.iso) == 10}
        ),
        pairs=frozenset(
            f"{stem(left.text, language)} {right.text}" for left, right in itertools.pairwise(row)
        ),
        cjk=" ".join(runs),
    )


def _phrase_concepts(words: list[str], language: Language) -> set[str]:
    found: set[str] = set()
    for at in range(len(words)):
        found |= phrase_at(words, at, language)[1]
    return found


def _spaced_codes(row: tuple[Token, ...], text: str) -> set[str]:
    """Codes written with a space: VLX 500 is the code vlx500."""
    return {
        left.text + right.text
        for left, right in itertools.pairwise(row)
        if left.kind == "word"
        and right.kind == "number"
        and not is_year(right)
        and left.surface[:1].isupper()
        and right.start - left.end == 1
        and text[left.end] == " "
    }
