"""The facets of a question: what can be answered apart from the rest."""

from __future__ import annotations

import re

from leadline.core.patterns import lazy_pattern
from leadline.research.extractive.language import Language, language_of, word_set
from leadline.research.extractive.question import read_question

MIN_WORDS = 2
_MARKS = lazy_pattern(
    r"(?<=[?？])\s*(?=\S)|[;；]\s*|\n+\s*(?:[-*•]\s+|\d+[.)]\s+)?|(?<=[.。])\s+(?=[A-ZÄÖÜ])"
)
_ASKING = (
    r"(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can|may|must|has|have|will|should|"
    r"by when|at what|in which|on which|wer|wem|was|wann|wo|wie|warum|welche[rsnm]?|wieviel|ist|sind|hat|darf|kann|muss|gibt|"
    r"qui|que|quoi|quand|où|comment|combien|pourquoi|quels?|quelles?|est-ce|peut-on|quién|qué|cuándo|cuántos?|cuántas?|"
    r"cuánto|dónde|cómo|cuál(?:es)?|por qué)"
)
_JOINED = lazy_pattern(
    rf"\s*,?\s+(?:and|und|sowie|et|y|e|as well as)\s+(?=(?:also\s+|auch\s+)?{_ASKING}(?!\w))", re.IGNORECASE
)
_COMMA = lazy_pattern(rf",\s+(?={_ASKING}\s)", re.IGNORECASE)
_CJK_JOINED = lazy_pattern(
    r"[，,、]\s*(?:以及|并且|还有|而且|另外)?(?=[^，,、?？]*(?:什么|多少|谁|哪|几|如何|怎么|是否|吗))|(?:以及|并且|还有)(?=[^?？]*(?:什么|多少|谁|哪|几|如何|怎么|是否|吗))|、?(?:また|そして|それと)、?|(?<=か)、\s*"
)
_PRONOUN = lazy_pattern(r"(?<!\w)(?:it|its|they|their|them|he|she|his|her|this|these|er|seine[nmrs]?|ihre[nmrs]?|elle|ils?|elles)(?!\w)|它|他们?|她|それ|その", re.IGNORECASE)  # fmt: skip
_AND = {
    "en": "and|or|as well as",
    "de": "und|sowie|oder",
    "fr": "et|ou",
    "es": "y|e|o",
    "zh": "和|与|及|、",
    "ja": "と|や|、",
}
_VERSUS = lazy_pattern(
    r"\s+(?:versus|vs\.?|compared (?:with|to)|im vergleich (?:zu|mit)|par rapport à)\s+", re.IGNORECASE
)


_ASKING_LAST = (
    r"(?:by whom|from whom|for whom|with whom|who|where|when|why|how|how much|von wem|wer|wo|wann|warum|wie|par qui|qui|"
    r"où|quand|pourquoi|por quién|quién|dónde|cuándo|por qué|cómo)"
)
_ELLIPTIC = lazy_pattern(
    rf"^\W*(?P<first>{_ASKING_LAST})\s+(?P<rest>.+?),?\s+(?:and|und|et|y)\s+(?P<last>{_ASKING_LAST})\s*\??\s*$",
    re.IGNORECASE,
)
_TWO_FIRST = lazy_pattern(
    rf"^\W*(?P<first>{_ASKING_LAST})\s+(?:and|und|et|y)\s+(?P<last>{_ASKING_LAST})\s+(?P<rest>.+?)\s*\??\s*$",
    re.IGNORECASE,
)


def _spelled_out(piece: str) -> str:
    """ "When was it founded and by whom?" as two whole questions."""
    found = _ELLIPTIC.match(piece) or _TWO_FIRST.match(piece)
    if found is None:
        return piece
    last = found["last"][:1].upper() + found["last"][1:]
    return f"{found['first']} {found['rest']}?\n{last} {found['rest']}?"


def split(question: str) -> list[str]:
    """The facets of a question in order; the question itself where it has only one.

    A facet that speaks of "it" is told what it is about.
    """
    spelled = "\n".join(_spelled_out(piece) for piece in _MARKS.split(question) if piece)
    parts = [part for piece in _MARKS.split(spelled) for part in _clauses(piece)]
    parts = [part.strip(" ,，、") for part in parts]
    kept = [part for part in parts if part and _is_facet(part)]
    if len(kept) < 2:
        return [question.strip()]
    return [_anchored(part, kept[:at]) for at, part in enumerate(kept)]


def _clauses(text: str) -> list[str]:
    if language_of(text) in ("zh", "ja"):
        return _CJK_JOINED.split(text)
    pieces = _JOINED.split(text)
    return [clause for piece in pieces for clause in _COMMA.split(piece)]


def _is_facet(part: str) -> bool:
    question = read_question(part)
    return bool(question.terms) and (len(part.split()) >= MIN_WORDS or question.language in ("zh", "ja"))


def _anchored(part: str, before: list[str]) -> str:
    """A facet with the names of an earlier one, when it only points at them."""
    own = read_question(part)
    names = [term for term in own.terms if term.is_entity]
    if names or not before or not (_PRONOUN.search(part) or len(own.strict) < 1):
        return part
    before_terms = [term for facet in reversed(before) for term in read_question(facet).terms]
    earlier = [term for term in before_terms if term.kind in ("code", "name", "pair")]
    if not earlier:
        earlier = [term for term in read_question(before[-1]).strict if not term.is_entity][-1:]
    earlier = [term for term in earlier if term not in own.terms]
    if not earlier:
        return part
    closing = part[-1] if part[-1] in "?？" else ""
    return f"{part.rstrip('?？ ')} ({', '.join(dict.fromkeys(term.surface for term in earlier))}){closing}"


def sub_questions(facet: str) -> list[str]:
    """A facet that joins things with "and", once for each of them; empty where it joins none.

    "The payload and top speed of the VLX-500" asks for its payload and for its top speed.
    """
    language = language_of(facet)
    versus = _VERSUS.split(facet)
    if len(versus) == 2:
        return _around(facet, versus[0], versus[1], language)
    if language in ("zh", "ja"):
        return _split_dense(facet, language)
    match = re.search(rf"\s+(?:{_AND[language]})\s+", facet, re.IGNORECASE)
    return _around(facet, facet[: match.start()], facet[match.end() :], language) if match else []


def _around(facet: str, before: str, after: str, language: Language) -> list[str]:
    """The questions that result when of several joined things one is kept at a time."""
    left, items = _left_items(before, language)
    item, right = _right_item(after, language)
    if not items or not item:
        return []
    joined = [*items, item]
    return [" ".join(f"{left} {one} {right}".split()) for one in joined]


def _left_items(before: str, language: Language) -> tuple[str, list[str]]:
    """What stands before the joined things, and those of them that stand before the conjunction."""
    pieces = [piece for piece in re.split(r",\s*", before) if piece.strip()]
    words = pieces[0].split() if pieces else []
    at = len(words)
    while at and not _is_border(words[at - 1], language):
        at -= 1
    first = " ".join(words[at:])
    return " ".join(words[:at]), [
        one for one in (first, *(_bare(piece, language) for piece in pieces[1:])) if one
    ]


def _right_item(after: str, language: Language) -> tuple[str, str]:
    words = after.split()
    while words and _is_border(words[0], language):
        words = words[1:]
    at = 0
    while at < len(words) and not _is_border(words[at], language):
        at += 1
    return " ".join(words[:at]), " ".join(words[at:])


def _bare(piece: str, language: Language) -> str:
    words = piece.split()
    while words and _is_border(words[0], language):
        words = words[1:]
    return " ".join(words)


def _is_border(word: str, language: Language) -> bool:
    folded = word.casefold().strip("?.,()")
    return folded in word_set("stop", language) and not (word.isupper() and len(word) > 1)


def _split_dense(facet: str, language: Language) -> list[str]:
    match = re.search(
        rf"([\u3400-\u9fff\u30a0-\u30ffA-Za-z0-9-]{{2,8}})(?:{_AND[language]})([\u3400-\u9fff\u30a0-\u30ffA-Za-z0-9-]{{2,}})",
        facet,
    )
    if not match:
        return []
    return [
        facet[: match.start()] + match[1] + "？",
        facet[: match.start(2)].replace(match[0], "") + facet[match.start(2) :],
    ]
