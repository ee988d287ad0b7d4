"""What a question asks: its terms and how much each weighs, the kind of answer it wants, a span of time."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from leadline.core.patterns import lazy_pattern
from leadline.research.extractive.concepts import cjk_concepts, concepts_of, phrase_at
from leadline.research.extractive.language import (
    Language,
    Role,
    is_cjk,
    language_of,
    stem,
    stem_set,
    word_set,
    words,
)
from leadline.research.extractive.periods import with_codes
from leadline.research.extractive.tokens import Token, is_year, tokens

TermKind = Literal["name", "code", "year", "number", "pair", "word", "cjk", "soft"]
Wanted = Literal[
    "person", "date", "place", "duration", "count", "money", "amount", "often", "percent", "yesno", "any"
]


@dataclass(frozen=True)
class Term:
    """One thing that an answer has to be about."""

    text: str
    """Folded; of a `pair` the stem and the designator, as in `seri c`."""
    surface: str
    kind: TermKind
    stem: str
    concepts: frozenset[str] = frozenset()

    @property
    def strict(self) -> bool:
        """Whether a passage that lacks the term is no answer."""
        return self.kind != "soft"

    @property
    def is_entity(self) -> bool:
        return self.kind in ("name", "code", "year", "number", "pair")


@dataclass(frozen=True)
class TimeSpan:
    """The years over which a development is asked for; None on a side that is open."""

    first: int | None = None
    last: int | None = None

    def holds(self, year: int) -> bool:
        return (self.first is None or year >= self.first) and (self.last is None or year <= self.last)


@dataclass(frozen=True)
class Question:
    """A question as something that passages can be held against."""

    text: str
    language: Language
    terms: tuple[Term, ...]
    wanted: Wanted
    identity: bool = False
    """Asks who somebody is: only a name answers."""
    overview: bool = False
    """Asks to be told about something, without naming what of it."""
    span: TimeSpan | None = None
    """Set when a development over time is asked for."""
    counted: Term | None = None
    """What stands behind "how many"."""
    frame: tuple[Term, ...] = field(default=())
    """Words such as "policy": too general to be asked for, of use when there is nothing else."""

    @property
    def strict(self) -> tuple[Term, ...]:
        return tuple(term for term in self.terms if term.strict)


_WANTED_PATTERNS: tuple[tuple[Wanted, str], ...] = (
    ("person", r"(?<!\w)(?:who|whom|whose)(?!\w)|(?<!\w)(?:wer|wem|wen)(?!\w)|^qui(?!\w)|(?<!\w)par qui(?!\w)|(?<!\w)quién(?:es)?(?!\w)|谁|誰|どなた|だれ"),
    ("often", r"\bhow (?:often|frequently)\b|wie oft|wie häufig|(?:quelle|à quelle) fréquence|qué frecuencia|多久一次|どのくらいの頻度"),
    ("duration", r"\bhow (?:quickly|promptly|rapidly|swiftly)\b(?= (?:must|should|do|does|did|will|can|are|is|was|were|may|has|have)\b)|\bhow long\b(?! ago| (?:is|are|was|were) the \w+\s*\?)|\bfor how (?:many|long)\b|how (?:many|much) (?:time|minutes|hours)|wie lange|combien de temps|cuánto tiempo|多久|多长时间|几天|どのくらいの(?:期間|時間)|何(?:日|時間|分)間?"),
    ("count", r"\b(?:maximum|minimum|total|average|what|which|the) number of\b|\bwie hoch ist die (?:zahl|anzahl) der\b|\ble nombre (?:de|d')|\bel número de\b|\bhow many\b|wie ?viele|combien (?:de|d')|cuánt[oa]s|几[个人台名位]|多少[个人台名位次]|何[人台個回名]|いくつ"),
    ("percent", r"\bpercent(?:age)?\b|\bwhat (?:share|proportion|fraction)\b|\b(?:market share|share of the)\b|prozent|anteil|pourcentage|porcentaje|百分|比例|割合|%\s*\?"),
    ("date", r"\bwhen\b|\b(?:what|which|by what|on which|on what) (?:date|year|month|day|days|weekday|quarter)\b|\bhow (?:soon|old)\b|(?<!\w)wann(?!\w)|(?:welche[mnrs]|an welchem|bis wann) (?:jahr|monat|tag|datum|quartal)|(?<!\w)quand(?!\w)|cuándo|\b(?:at )?what time\b|um wie ?viel uhr|quelle heure|qué hora|何時|什么时候|何时|哪[一]?[年天月]|几点|几月|いつ|何[年月曜]"),
    ("place", r"\bwhere\b|(?<!\w)(?:wo|woher|wohin)(?!\w)|(?<!\w)où(?!\w)|dónde|哪里|哪儿|在哪|どこ"),
    ("money", r"多少钱|いくら"),
    ("amount", r"\bhow (?:long|much|high|big|large|fast|far|heavy|tall|deep|wide|hot|cold|strong)\b|wie (?:viel|hoch|groß|schnell|schwer|weit|tief|breit|alt)|(?<!\w)combien|cuánto|cuánta|多少|多[大高深快重远]|どれくらい|どのくらい"),
)  # fmt: skip
_WANTED: tuple[tuple[Wanted, re.Pattern[str]], ...] = tuple(
    (wanted, lazy_pattern(pattern, re.IGNORECASE)) for wanted, pattern in _WANTED_PATTERNS
)
_IDENTITY = lazy_pattern(
    r"(?<!\w)(?:who (?:is|are|was|were)|who's|wer (?:ist|sind|war|waren)|qui (?:est|sont|était)|quién(?:es)? (?:es|son|era|fue))(?!\w)"
    r"|(?:name|names|namen?|nom) (?:of|des|der|von|du|de)|叫什么|名字|是谁|は誰|名前",
    re.IGNORECASE,
)
_YES_NO = lazy_pattern(
    r"^(?:is|are|was|were|do|does|did|can|could|may|must|has|have|had|will|would|should|shall|ist|sind|war|waren|hat|"
    r"haben|darf|dürfen|kann|können|muss|müssen|gibt|wird|werden|soll|sollte|gilt|est-ce|y a-t-il|peut-on|faut-il|"
    r"es|son|hay|puede|pueden|se puede|debe|tiene|tienen)(?!\w)|(?:吗|么)[?？]?$|(?<!の)ますか|できますか",
    re.IGNORECASE,
)
_OVERVIEW = lazy_pattern(
    r"^\W*(?:(?:please |can you |could you )?(?:tell (?:me|us) (?:about|of)|describe|summari[sz]e|explain|give (?:me |us )?an overview)|what is known about|"
    r"(?:bitte )?(?:beschreibe|erzähle?|erkläre|fasse)(?!\w)|was ist bekannt über|décri(?:s|vez)|présente[rz]?|résume[rz]?|describ[ae]|resum[ae]|"
    r"请?介绍|概述|总结|について(?:教えて|説明))",
    re.IGNORECASE,
)
_WHY_HOW = lazy_pattern(
    r"(?<!\w)(?:why|warum|wieso|weshalb|pourquoi|por qué)(?!\w)|为什么|为何|なぜ", re.IGNORECASE
)
_TREND = lazy_pattern(
    r"\bover (?:time|the (?:years|quarters|months))\b|\byear (?:over|by|on|to|after) year\b|"
    r"\b(?:develop(?:ed|s|ment)?|evol(?:ve[ds]?|ution)|trend|progress(?:ed|ion)?)\b|\b(?:grown|grew|changed?|risen|rose|fallen|fell|grow|increased?|decreased?)\b(?=.*\b(?:since|from|between|over)\b)|"
    r"\bentwick(?:elt|elte|elten|lung)\b|\bverändert\b|im laufe der|\bévolu(?:é|e|tion)\b|évolué|evolucion|变化|发展|趋势|逐年|推移|変化",
    re.IGNORECASE,
)
_PASSIVE = lazy_pattern(
    r"(?<!\w)(?:is|are|was|were|be|been)\s(?:.*\s)?((?:\w+(?:ed|en|wn|eld|old|ught|ept|ilt))|sent|lent|spent)\s*\?*$",
    re.IGNORECASE,
)
_SINCE = lazy_pattern(r"(?:since|seit|depuis|desde|自|从)\s*(?:q[1-4]\s*)?((?:19|20)\d{2})(?!.*(?:19|20)\d{2})|((?:19|20)\d{2})\s*年?\s*(?:以来|から)(?!.*(?:19|20)\d{2})", re.IGNORECASE)  # fmt: skip
_NUMBERED = lazy_pattern(r"(?<![\w.,-])\d{1,3}-\d{1,4}(?![\w%-]|\s*(?:%|percent|prozent))")
_IN_MAY = lazy_pattern(
    r"(?:(?:in|of|since|until|till|by|from|before|after|during|late|early|mid|next|last|this)\s+|\d\s+)May(?!\w)|(?<!^)May\s+\d"
)
"""The month, which but for its capital is a word that says nothing."""
_YEAR = lazy_pattern(r"(?<![\d.,])(?:19|20)\d{2}(?![\d%])")
_MONEY = frozenset({"price", "revenue", "profit", "salary", "budget", "cash", "refund", "valuation", "loss"})
_KATAKANA_OR_HAN = lazy_pattern(r"[\u30a0-\u30ff]+|[\u3005\u3400-\u9fff]+")


@lru_cache(maxsize=1024)
def read_question(text: str) -> Question:
    """The terms of a question and the kind of answer it wants."""
    language = language_of(text)
    terms, frame = _terms(text, language)
    if not (_MANNER.match(text) and _wanted(text, terms) == "any"):
        terms = _with_general_verb(text, terms)
    terms = (*_of_measure(text, terms), *_measures(text, language))
    span = _span(text)
    if span:
        terms = tuple(term for term in terms if term.kind != "year" and not _TREND.fullmatch(term.surface))
    if not any(term.strict for term in terms):
        terms, frame = _promoted(terms, frame), ()
    overview = bool(_OVERVIEW.search(text))
    identity = bool(_IDENTITY.search(text))
    wanted = _wanted(text, terms)
    counted = _counted(text, language) if wanted == "count" else None
    return Question(text, language, terms, wanted, identity, overview, span, counted, frame)


_HOW_MANY_DENSE = lazy_pattern(r"(?:多少|几)[个名位台人只艘条种次]?([\u4e00-\u9fff]{1,4})")
_HOW_MANY = lazy_pattern(
    r"how many|number of|(?:zahl|anzahl) der|nombre (?:de |d')|número de|wie ?viele|combien (?:de |d')|cuánt[oa]s",
    re.IGNORECASE,
)


def _counted(text: str, language: Language) -> Term | None:
    dense = _HOW_MANY_DENSE.search(text)
    if dense:
        return next(iter(_cjk_terms(dense[1], language)), None)
    found = _HOW_MANY.search(text)
    if found is None:
        return None
    row = tokens(text[found.end() :])
    length, phrase = phrase_at([token.text for token in row], 0, language)
    if length:
        name = " ".join(token.text for token in row[:length])
        return Term(name, name, "word", name, phrase)
    for token in row:
        if token.kind == "word" and token.text not in word_set("stop", language):
            return Term(
                token.text,
                token.surface,
                "word",
                stem(token.text, language),
                concepts_of(token.text, language),
            )
    return None


_MEASURE = lazy_pattern(
    r"(?:how|wie) (long|deep|wide|tall|heavy|lang|tief|breit|schwer) (?:is|are|was|were|ist|sind|war|waren)(?!\w)",
    re.IGNORECASE,
)


def _measures(text: str, language: Language) -> list[Term]:
    """The adjective of "how deep is the harbour" as a soft term, for what it measures."""
    found = _MEASURE.search(text)
    if found is None:
        return []
    word = found[1].casefold()
    return [Term(word, found[1], "soft", stem(word, language), concepts_of(word, language))]


_MANNER = lazy_pattern(r"\W*(?:how|why|wie|warum|comment|pourquoi|cómo|por qué)(?!\w)", re.IGNORECASE)
"""Asks by what means something is done: then the verb is the matter."""
_OF_A_NOUN = lazy_pattern(r"(?:how|wie) (\w+) (?:a|an|ein|eine|einen) (?=\w)", re.IGNORECASE)


def _of_measure(text: str, terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms with the adjective of "how heavy a load" as a soft one: it only says that a figure is wanted."""
    found = _OF_A_NOUN.search(text)
    if found is None:
        return terms
    return tuple(
        Term(one.text, one.surface, "soft", one.stem, one.concepts) if one.surface == found[1] else one
        for one in terms
    )


def _with_general_verb(text: str, terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The participle that closes "when must reports be sealed?" as a soft term: a document may say it otherwise.

    Only beside other telling terms, and only a word without known synonyms.
    """
    match = _PASSIVE.search(text)
    last = terms[-1] if terms else None
    if match is None or last is None or last.surface != match[1] or last.kind != "word" or last.concepts:
        return terms
    if sum(term.strict for term in terms) < 3:
        return terms
    return (*terms[:-1], Term(last.text, last.surface, "soft", last.stem))


def _promoted(terms: tuple[Term, ...], frame: tuple[Term, ...]) -> tuple[Term, ...]:
    """With nothing telling in the question its general words are all there is to go by."""
    return tuple(Term(one.text, one.surface, "word", one.stem, one.concepts) for one in (*terms, *frame))


def _wanted(text: str, terms: tuple[Term, ...]) -> Wanted:
    for wanted, pattern in _WANTED:
        if pattern.search(text):
            return "money" if wanted == "amount" and _asks_money(terms) else wanted
    if _WHY_HOW.search(text):
        return "any"
    if _YES_NO.search(text.strip()):
        return "yesno"
    return "money" if any(term.concepts & {"price", "budget"} for term in terms) else "any"


def _asks_money(terms: tuple[Term, ...]) -> bool:
    return any(term.concepts & _MONEY for term in terms)


def _span(text: str) -> TimeSpan | None:
    years = sorted({int(year) for year in _YEAR.findall(text)})
    since = _SINCE.search(text)
    if since:
        return TimeSpan(int(since[1] or since[2]), None)
    if len(years) >= 2:
        return TimeSpan(years[0], years[-1])
    return TimeSpan() if not years and _TREND.search(text) else None


def _terms(text: str, language: Language) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    numbered = [Term(one, one, "code", one) for one in _NUMBERED.findall(text)]
    if language == "en" and _IN_MAY.search(text):
        numbered.append(Term("may_month", "May", "name", "may_month", frozenset({"may"})))
    text = with_codes(_NUMBERED.sub(" ", text))
    row = tokens(text)
    folded = [token.text for token in row]
    shouted = text.isupper()
    terms: list[Term] = numbered
    frame: list[Term] = []
    at = 0
    while at < len(row):
        length, found = _phrase(row, folded, at, language)
        if length and not found:
            at += length
        elif length:
            phrase = " ".join(folded[at : at + length])
            terms.append(Term(phrase, text[row[at].start : row[at + length - 1].end], "word", phrase, found))
            at += length
        elif _is_pair(row, at):
            first, second = row[at], row[at + 1]
            key = f"{stem(first.text, language)} {second.text}"
            terms.append(Term(key, text[first.start : second.end], "pair", stem(first.text, language)))
            at += 2
        else:
            one = row[at]
            if one.kind == "cjk":
                terms.extend(_cjk_terms(one.text, language))
            else:
                _sort_in(one, at == 0, shouted, language, terms, frame)
            at += 1
    return tuple(dict.fromkeys(terms)), tuple(dict.fromkeys(frame))


def _phrase(
    row: tuple[Token, ...], folded: list[str], at: int, language: Language
) -> tuple[int, frozenset[str]]:
    length, found = phrase_at(folded, at, language)
    stop = word_set("stop", language)
    if len(row) > at + 1 and "_".join(folded[at : at + 2]) in word_set("frame", language):
        return 2, frozenset()
    return (0, frozenset()) if all(word in stop for word in folded[at : at + length]) else (length, found)


def _is_pair(row: tuple[Token, ...], at: int) -> bool:
    """Whether a word and its designator stand here: Series C, week 3, phase 2."""
    if at + 1 >= len(row) or row[at].kind != "word" or row[at + 1].start - row[at].end != 1:
        return False
    first, second = row[at], row[at + 1]
    if first.text in word_set("stop", "en") or len(first.text) < 3:
        return False
    if second.kind == "word":
        return len(second.surface) == 1 and second.surface.isupper() and second.surface != "I"
    if second.kind != "number" or is_year(second) or not second.surface.isdigit() or len(second.surface) > 2:
        return False
    follows = row[at + 2] if at + 2 < len(row) else None
    return follows is None or follows.kind != "sign"


def _sort_in(
    token: Token, opens: bool, shouted: bool, language: Language, terms: list[Term], frame: list[Term]
) -> None:
    """Put a token with the terms or with the words of the frame, by what it weighs."""
    if token.kind == "number":
        kind: TermKind = "year" if is_year(token) else "soft" if token.text == "1" else "number"
        terms.append(Term(token.text, token.surface, kind, token.text))
        return
    if token.kind == "code":
        terms.append(Term(token.text, token.surface, "code", token.text))
        return
    found = concepts_of(token.text, language)
    if token.kind == "sign":
        if found:
            terms.append(Term(token.text, token.surface, "word", token.text, found))
        return
    term = Term(token.text, token.surface, "word", stem(token.text, language), found)
    acronym = len(token.surface) > 1 and token.surface.isupper() and not shouted
    pieces = token.parts or (token.text,)
    if not acronym and (all(part in word_set("stop", language) for part in pieces) or len(token.text) < 2):
        return
    if not acronym and _is_one_of("frame", token.text, language):
        frame.append(term)
    elif not acronym and _is_one_of("soft", token.text, language):
        terms.append(Term(term.text, term.surface, "soft", term.stem, found))
    elif acronym or (token.surface[:1].isupper() and not opens and language != "de"):
        terms.append(Term(term.text, term.surface, "name", term.stem, found))
    else:
        terms.append(term)


def _is_one_of(role: Role, word: str, language: Language) -> bool:
    """Whether a word plays a role; by its stem alone only where it means nothing of its own, as "manager" does."""
    if word in word_set(role, language):
        return True
    return not concepts_of(word, language) and stem(word, language) in stem_set(role, language)


def _cjk_terms(run: str, language: Language) -> list[Term]:
    language = language if is_cjk(language) else language_of(run)
    terms: list[Term] = []
    rest = run
    for start, end, found in cjk_concepts(run):
        soft = run[start:end] in word_set("soft", language)
        terms.append(Term(run[start:end], run[start:end], "soft" if soft else "cjk", run[start:end], found))
        rest = rest[:start] + " " * (end - start) + rest[end:]
    for word in sorted(words("stop", language), key=len, reverse=True):
        rest = rest.replace(word, " ")
    for word in sorted(words("soft", language), key=len, reverse=True):
        rest = rest.replace(word, " ")
    pieces = _KATAKANA_OR_HAN.findall(rest) if language == "ja" else rest.split()
    terms += [Term(piece, piece, "cjk" if len(piece) > 1 else "soft", piece) for piece in pieces]
    return terms
