"""Whether a passage holds the kind of thing that a question wants: an amount, a date, a person, a place."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leadline.core.patterns import lazy_pattern
from leadline.core.unspaced import SPACED
from leadline.research.extractive.concepts import concepts_of
from leadline.research.extractive.features import features
from leadline.research.extractive.language import Language, word_set
from leadline.research.extractive.matching import likeness
from leadline.research.extractive.question import Question, Term, Wanted
from leadline.research.extractive.tokens import Token, is_year, tokens
from leadline.research.sources.dates import MONTH_NUMBERS, dates_in

_MONEY = lazy_pattern(
    rf"[$€£¥]\s?\d|(?<!{SPACED})(?:EUR|USD|GBP|JPY|CHF|CNY|RMB|US\$|CAD|AUD|SEK|NOK|DKK|PLN|KRW|INR)\s?\d|\d[\d.,]*\s?(?:[kKmMbB]n?\s?|[千万亿億]\s?)?"
    rf"(?:[$€£¥]|EUR|USD|GBP|JPY|CHF|CNY|euros?|dollars?|pounds?|yen|franken|francs?|cents?|pence|pesos?|marks?|mark|schillings?|guilders?|gulden|roubles?|rubles?|lire|lira|kron(?:or|er|e|a)|crowns?|rupees?|won|baht|pesetas?)(?!{SPACED})"
    r"|\d[\d.,]*\s?[千万亿億]?(?:元|円|块|원|欧元|美元|日元)"
    rf"|(?<!{SPACED})(?:free(?: of charge)?|no charge|gratis|kostenlos|frei|gratuite?|免费|無料)(?!{SPACED})",
    re.IGNORECASE,
)
_MONEY_UNIT = lazy_pattern(
    rf"[$€£¥]|(?<!{SPACED})(?:EUR|USD|GBP|JPY|CHF|CNY|euros?|dollars?|pounds?|price|fee|preis|prix|precio)(?!{SPACED})|元|円|원|价|料金",
    re.IGNORECASE,
)
_SPELLED = (
    r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|ein\w*|zwei|drei|vier|fünf|sechs|sieben|acht|neun|"
    r"zehn|elf|zwölf|une?|deux|trois|quatre|cinq|sept|huit|neuf|dix|douze|uno?|dos|tres|cuatro|cinco|seis|siete|ocho|"
    r"nueve|diez|doce|half|halbe[ns]?"
)
_DURATION = lazy_pattern(
    rf"(?:\d+(?:[.,]\d+)?|{_SPELLED})[\s-]*(?:\w+\s)?(?:calendar\s|working\s|business\s|full\s)?"
    r"(?:years?|months?|weeks?|days?|hours?|minutes?|seconds?|nights?|h|min|jahren?|monaten?|wochen?|tagen?|stunden?|"
    rf"minuten?|an(?:née)?s?|mois|semaines?|jours?|heures?|años?|mes(?:es)?|semanas?|días?|horas?)(?!{SPACED})"
    r"|[\d一二三四五六七八九十两半]+\s*个?(?:年|月|周|星期|天|日|小时|分钟|分|時間|週間|日間|か月|ヶ月)"
    rf"|(?<!{SPACED})(?:from|vom|du|del|de)\s\d{{1,2}}\.?(?:\s\w+)?\s(?:to|until|bis|au|al|a)\s(?:zum\s)?\d{{1,2}}\.?\s\w+",
    re.IGNORECASE,
)
_NUMBERED_TIME = lazy_pattern(
    r"(?<!\w)(?:day|week|month|year|tag|woche|monat|jahr|jour|semaine|mois|día|semana|mes|año)s? \d",
    re.IGNORECASE,
)
_AT_ONCE = lazy_pattern(
    r"(?<!\w)(?:immediately|at once|same day|without delay|promptly|sofort|unverzüglich|immédiatement|"
    r"inmediatamente|de inmediato)(?!\w)|立即|马上|直ちに|すぐに",
    re.IGNORECASE,
)
_TIME_UNIT = lazy_pattern(
    r"years?|months?|weeks?|days?|hours?|minutes?|nights?|jahren?|monaten?|wochen?|tagen?|stunden?|minuten?|"
    r"ans?|années?|mois|semaines?|jours?|heures?|años?|mes(?:es)?|semanas?|días?|horas?",
    re.IGNORECASE,
)
_WHEN = lazy_pattern(
    rf"(?<!{SPACED})(?:\d{{1,2}}[:.h]\d{{2}}|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|daily|weekly|monthly|annually|yearly|quarterly|nightly|"
    rf"every (?:day|week|month|year)|[QH][1-4](?!{SPACED})|(?:spring|summer|autumn|winter|christmas|easter)|within \d+|in advance|"
    rf"next (?:business )?day|(?:january|february|march|april|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)(?!{SPACED})|may \d|\d may|"
    r"(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?|sonnabends?|täglich|wöchentlich|monatlich|jährlich|uhr|"
    r"januar|februar|märz|mai|juni|juli|oktober|dezember|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|"
    r"janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre|lunes|martes|miércoles|jueves|"
    rf"viernes|sábado|domingo|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre)(?!{SPACED})"
    r"|(?:day|week|month|year|tag|woche|monat|jour|semaine|mois|día|semana|mes) \d|[年月日时時点曜]|周[一二三四五六日]|星期",
    re.IGNORECASE,
)
_ONCE = lazy_pattern(
    r"^\W*(?:when|wann|quand|cuándo)\s+(?:was|were|did|wurden?|war|waren|hat|a|ont|fue|fueron)(?!\w)",
    re.IGNORECASE,
)
"""Asks when something happened: no length of time and no time of the day answers."""
_IN_A_YEAR = lazy_pattern(
    rf"(?<!{SPACED})(?:{'|'.join(name for name in MONTH_NUMBERS if name not in ('may', 'mar', 'mai'))}|[qh][1-4]|may \d|\d may|"
    r"spring|summer|autumn|winter|christmas|easter|frühling|sommer|herbst|weihnachten|ostern|printemps|été|automne|hiver|"
    rf"primavera|verano|otoño|invierno|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)(?!{SPACED})|[年月]",
    re.IGNORECASE,
)
_OFTEN = lazy_pattern(
    r"(?<!\w)(?:daily|weekly|monthly|quarterly|annually|yearly|nightly|hourly|every|each|once|twice|times|per (?:day|week|month|year)|a (?:day|week|month|year)|"
    r"täglich|wöchentlich|monatlich|jährlich|jede[nrsm]?|alle|einmal|zweimal|mal|chaque|tous les|toutes les|par (?:jour|semaine|mois|an)|fois|"
    r"cada|todos los|todas las|al (?:día|mes|año)|veces|vez)(?!\w)|每|次|毎|回",
    re.IGNORECASE,
)
_CLOCK = lazy_pattern(r"\d{1,2}(?:[:.]\d{2}|\s?(?:h|uhr|am|pm|时|点|時))(?!\d)", re.IGNORECASE)
_PLACE = lazy_pattern(
    r"(?<!\w)(?:in|at|on|near|behind|beside|opposite|inside|outside|next to|im|am|beim|vor dem|hinter|neben|auf dem|dans|chez|"
    r"devant|derrière|au|aux|en|junto a|frente a)\s(?:the\s|der\s|dem\s|den\s|la\s|le\s|les\s|el\s)?\w{3,}",
    re.IGNORECASE,
)
_PERCENT = lazy_pattern(
    rf"\d\s?%|(?<!{SPACED})(?:percent|per cent|prozent|pour cent|por ciento)(?!{SPACED})|百分之|％",
    re.IGNORECASE,
)
_NUMBER_WORD = lazy_pattern(
    r"(?<!\w)(?:zero|none|no|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twenty|thirty|forty|"
    r"fifty|hundred|thousand|million|once|twice|all|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|"
    r"zwölf|zwanzig|dreißig|hundert|tausend|einmal|zweimal|keine?|deux|trois|quatre|cinq|sept|huit|neuf|dix|douze|"
    r"vingt|cent|mille|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|doce|veinte|cien|mil)(?!\w)"
    r"|[一二两三四五六七八九十百千万]+[个人名条台次只艘种年月天日周]",
    re.IGNORECASE,
)
_MARKER = lazy_pattern(r"\s*(?:[-*•]\s+)?\(?\d{1,3}[.)]\s")
_ROLE = lazy_pattern(
    r"(?<!\w)(?:C[A-Z]O|VP|SVP|EVP|president|director|manager|lead|leader|head|chair(?:man|woman|person)?|officer|owner|"
    r"executive|engineer|treasurer|secretary|board|committee|team|desk|department|office|council|captain|skipper|curator|"
    r"warden|mayor|minister|supervisor|coordinator|administrator|staff|marketing|sales|legal|finance|hr|it|"
    r"(?:geschäftsführer|leiter|direktor|vorsitzende|vorstand|kassenwart|schatzmeister|sekretär|chef|meister|wart|beauftragte|abteilung|rat)(?:in|r|n)?|"
    r"directeur|directrice|président|présidente|trésorier|trésorière|gerente|presidente|presidenta|tesorero|"
    r"landlord|landlady|tenant|lessor|lessee|buyer|seller|owner|parents?|members?|employer|employees?|customers?|"
    r"vermieter(?:in)?|mieter(?:in)?|käufer(?:in)?|verkäufer(?:in)?|eigentümer(?:in)?|arbeitgeber(?:in)?|"
    r"bailleur|bailleresse|locataire|propriétaire|acheteur|vendeur|syndic|"
    r"arrendadora?|arrendatari[oa]|inquilin[oa]|propietari[oa]|comprador|vendedor)(?!\w)"
    r"|馆长|主任|经理|主席|会长|部长|船长|秘书|委员会|理事|館長|議長|会長|部長|委員",
    re.IGNORECASE,
)
_JOINS_NAMES = lazy_pattern(
    r"[ \n](?:(?:de|del|della|da|di|do|dos|du|la|le|van|von|vom|zu|den|der|ten|ter|bin|al|af|av)[ \n]){0,2}"
)
"""What may stand between the words of one name: a space, or particles as in "Piet de Boer"."""
_CJK_NAME = lazy_pattern(r"[\u4e00-\u9fff\u30a0-\u30ff]{2,}")
_SURNAMES = "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林郑谢罗梁宋唐许韩冯邓曹彭曾萧肖田董潘袁蔡蒋余于杜叶程苏魏吕丁任卢姚沈钟姜崔谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严赖覃洪武莫孔"
"""Chinese family names: with one of them a name begins."""
_SURNAME = lazy_pattern(
    r"(?:[\u4e00-\u9fff]{1,3}(?:先生|女士|氏|さん|様))|(?:[:：是为]\s*[\u4e00-\u9fff]{2,4}(?![\u4e00-\u9fff]))"
    rf"|(?:馆长|主任|经理|主席|会长|部长|船长|秘书|理事|校长|院长|所长)[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}"
)


def satisfies(question: Question, text: str, head: str = "") -> bool:
    """Whether a passage holds what the question wants, beyond what the question says itself.

    Args:
        question: decides which kind is wanted.
        text: the passage.
        head: names of the columns, when the passage is the row of a table.
    """
    return _holds(question.wanted, question, text, head)


def _holds(wanted: Wanted, question: Question, text: str, head: str) -> bool:
    if wanted in ("any", "yesno"):
        return True
    body = _MARKER.sub("", text, count=1)
    if wanted == "money":
        in_table = bool(_MONEY_UNIT.search(head)) and has_number(question, body)
        return bool(_MONEY.search(body)) or in_table
    if wanted == "percent":
        return bool(_PERCENT.search(body)) or has_number(question, body)
    if wanted == "date":
        if _ONCE.search(question.text):
            return bool(dates_in(body) or _IN_A_YEAR.search(body))
        return bool(dates_in(body) or _WHEN.search(body) or _DURATION.search(body))
    if wanted == "duration":
        return any(one.search(body) for one in (_DURATION, _CLOCK, _AT_ONCE, _NUMBERED_TIME))
    if wanted == "often":
        return bool(_OFTEN.search(body)) or has_number(question, body)
    if wanted == "count":
        return not _counts_another(question, body) and any(
            has_number(question, part) and _counts_something(question, part)
            for part in _with_matter(question, body)
        )
    if wanted == "amount":
        return has_number(question, body)
    if wanted == "person":
        return _has_person(question, body)
    return bool(new_names(question, body) or _CJK_NAME.search(body) or _PLACE.search(body))


_SENTENCE = lazy_pattern(r"(?<=[.!?])\s+(?=[^\W\d_a-z])|(?<=[。！？])")


def about_matter(question: Question, text: str) -> str:
    """The sentences of a text that speak of the matter of a question, as one text."""
    return " ".join(_with_matter(question, text))


def _with_matter(question: Question, text: str) -> list[str]:
    """The sentences of a text that speak of what is counted; all of it where none does."""
    matter = matter_of(question)
    parts = _SENTENCE.split(text)
    if matter is None or len(parts) == 1:
        return [text]
    speaking = [part for part in parts if likeness(matter, part, question.language) > 0]
    return speaking or [text]


_SHARED_OUT = lazy_pattern(
    r"(?P<name>[^\W\d_][^\W\d_ .-]*(?: [^\W\d_]+){0,2}):\s*(?P<number>\d+(?:[.,]\d+)*)(?:\s+(?P<unit>[^\W\d_]+))?"
)


def _counts_another(question: Question, text: str) -> bool:
    """Whether what is asked of has a number of its own in a list, and that counts something else.

    "3,120 robots (EU: 29 sites, Japan: 4)" does not tell how many robots are in Japan.
    """
    matter = matter_of(question)
    shares = list(_SHARED_OUT.finditer(text))
    if matter is None or len(shares) < 2:
        return False
    unit = next((one["unit"] for one in shares if one["unit"]), None)
    if unit is None or likeness(matter, unit, question.language) > 0:
        return False
    others = [term for term in question.strict if term != matter and term.text != matter.text]
    return any(likeness(term, one["name"], question.language) > 0 for term in others for one in shares)


def has_number(question: Question, text: str) -> bool:
    """Whether a text holds a number that is neither a year nor already in the question."""
    asked = _asked_numbers(question)
    numbers = [token for token in tokens(text) if token.kind == "number"]
    if any(token.text not in asked and not is_year(token) for token in numbers):
        return True
    return bool(_NUMBER_WORD.search(text)) or bool(_MONEY.search(text) and numbers)


def _asked_numbers(question: Question) -> frozenset[str]:
    return frozenset(token.text for token in tokens(question.text) if token.kind == "number")


def _counts_something(question: Question, text: str) -> bool:
    """Whether a number counts anything but time, money or shares; of time, where time is counted."""
    if question.counted and _TIME_UNIT.fullmatch(question.counted.text):
        return True
    row = tokens(text)
    if _is_only_a_unit(question, row):
        return False
    if _NUMBER_WORD.search(text):
        return True
    for at, token in enumerate(row):
        if token.kind != "number" or is_year(token) or _ranks(row, at):
            continue
        following = row[at + 1].text if at + 1 < len(row) else ""
        stretch = text[max(0, token.start - 4) : token.end + 2]
        if not (_TIME_UNIT.fullmatch(following) or following == "%" or _MONEY.search(stretch)):
            return True
    return False


def number_words(text: str) -> tuple[str, ...]:
    """The numbers that a text spells out, in order."""
    spelled = re.findall(
        rf"(?<!\w)(?:{_SPELLED})(?!\w)|[一二两三四五六七八九十百千]+(?=[个名天年月周次日岁条件度分])",
        text,
        re.IGNORECASE,
    )
    return tuple(sorted(word.casefold() for word in (*spelled, *_NUMBER_WORD.findall(text))))


_DENIES = lazy_pattern(
    r"(?<!\w)(?:not|no|never|none|nobody|nothing|without|cannot|yes|nicht|kein\w*|nie|niemals|ohne|ja|nein|pas|aucune?|"
    r"jamais|sans|oui|non|nunca|ningún|ninguna|sin|sí)(?!\w)|n't|不|没有|无|はい|いいえ|ません|ない|できます",
    re.IGNORECASE,
)


def permits(text: str, language: Language) -> bool:
    """Whether a text allows, forbids, affirms or denies something."""
    return bool(_DENIES.search(text)) or "allow" in features(text, language).concepts


def states_money(text: str) -> bool:
    """Whether a text holds an amount of money, or says that something is free."""
    return bool(_MONEY.search(text))


_AREA = lazy_pattern(
    r"\d\s?[KMGT]i?B\b|_[KMGT]B\b|\d\s?(?:m²|m2\b|qm\b|sqm\b|km²|ha\b|acres?\b|hectares?\b|square|平方|平米|坪|㎡)",
    re.IGNORECASE,
)


def states_area(text: str) -> bool:
    """Whether a text holds the size of a surface or of data."""
    return bool(_AREA.search(text))


def states_percent(text: str) -> bool:
    """Whether a text holds a percentage."""
    return bool(_PERCENT.search(text))


def nearness(question: Question, text: str) -> float:
    """1 when a new number stands next to what is counted or measured, less with the distance, 0 without any.

    A number that counts something else ("22 days" of employees) is not near.
    """
    row = tokens(_MARKER.sub("", text, count=1))
    asked = _asked_numbers(question)
    matter = matter_of(question)
    if matter is None:
        return 0.0
    places = {
        at
        for at, token in enumerate(row)
        if token.kind in ("word", "cjk")
        and likeness(matter, token.surface, question.language) > 0
        and not _is_unit_of_rate(row, at)
    }
    best = 0.0
    for at, token in enumerate(row):
        if not _is_number(token) or token.text in asked or is_year(token) or _ranks(row, at):
            continue
        if question.wanted == "count" and at + 1 < len(row) and row[at + 1].text == "%":
            continue
        counts_other = at + 1 < len(row) and _counts(row[at + 1], question)
        usable = [place for place in places if place > at or not counts_other or at + 1 in places]
        best = max([best, *(1.0 - 0.2 * (abs(place - at) - 1) for place in usable)])
    return best


_RANKING = frozenset(
    ["top", "phase", "cycle", "level", "series", "step", "stage", "version", "no", "nr", "page"]
)


def _ranks(row: Sequence[Token], at: int) -> bool:
    """Whether a number only ranks or names: the 3 of "top 3", the 2 of "phase 2"."""
    return at > 0 and row[at - 1].text in _RANKING


_PLURAL = lazy_pattern(rf"(?!one|ein|un|half|halbe)(?:{_SPELLED})", re.IGNORECASE)


def _is_number(token: Token) -> bool:
    """Whether a token is a number, in figures or spelled out; "one" and "a" may be none."""
    return token.kind == "number" or (token.kind == "word" and bool(_PLURAL.fullmatch(token.text)))


_PER = frozenset(["per", "each", "every", "pro", "je", "par", "chaque", "por", "cada"])


def _is_unit_of_rate(row: Sequence[Token], at: int) -> bool:
    """Whether a word stands in "per employee": a rate tells nothing of how many there are."""
    return at > 0 and row[at - 1].text in _PER


def _is_only_a_unit(question: Question, row: Sequence[Token]) -> bool:
    """Whether a text speaks of what is counted only as what something is given for: "EUR 900 per employee"."""
    matter = matter_of(question)
    if matter is None:
        return False
    places = [
        at
        for at, token in enumerate(row)
        if token.kind == "word" and likeness(matter, token.surface, question.language) > 0
    ]
    return bool(places) and all(_is_unit_of_rate(row, at) for at in places)


def _counts(token: Token, question: Question) -> bool:
    """Whether the word behind a number makes it a number of something else than what is asked for."""
    if question.wanted == "amount":
        return bool(_TIME_UNIT.fullmatch(token.text))
    return (
        question.wanted == "count"
        and token.kind == "word"
        and token.text not in word_set("stop", question.language)
    )


def matter_of(question: Question) -> Term | None:
    """What is counted, measured or told: the word behind "how many", else the first that is no code or figure."""
    if question.counted is not None:
        return question.counted
    return next(
        (term for term in question.terms if term.strict and term.kind in ("word", "name", "cjk")), None
    )


_SHARE = lazy_pattern(
    r"(?:%|percent|prozent|pour cent|share|half)\s+(?:of|der|des|von|de|du|del)\s+(?:the\s+|la\s+)?$",
    re.IGNORECASE,
)


def is_only_a_share(question: Question, text: str) -> bool:
    """Whether a text speaks of the matter only in "44% of ARR": a share of it is not the thing itself."""
    matter = matter_of(question)
    if matter is None or question.wanted == "percent":
        return False
    places = [
        token.start
        for token in tokens(text)
        if token.kind == "word" and likeness(matter, token.surface, question.language) > 0
    ]
    return bool(places) and all(_SHARE.search(text[:place]) for place in places)


def _has_person(question: Question, text: str) -> bool:
    fresh = new_names(question, text)
    if question.identity:
        known = _asked_words(question)
        runs = [run for run in fresh if len(run) >= 2 and not any(word in known for word in run)]
        return bool(runs) or bool(_SURNAME.search(text)) or _is_named(question, text)
    if fresh or _SURNAME.search(text):
        return True
    asked = _asked_words(question)
    return any(match.group().casefold() not in asked for match in _ROLE.finditer(text))


def _is_named(question: Question, text: str) -> bool:
    """Whether a Chinese or Japanese text puts a name right behind the office that is asked for."""
    offices = [term.text for term in question.strict if term.kind == "cjk"]
    name = f"[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}" if question.language == "zh" else "[\u4e00-\u9fff]{2,6}"
    return any(re.search(rf"{re.escape(office)}[のは是为：:・ ]?{name}", text) for office in offices)


def names_person(question: Question, text: str) -> bool:
    """Whether a text holds what surely is a person or an office: two names in a row, or a role."""
    asked = _asked_words(question)
    if any(len(run) >= 2 for run in new_names(question, text)) or _SURNAME.search(text):
        return True
    return any(match.group().casefold() not in asked for match in _ROLE.finditer(text))


def _asked_words(question: Question) -> frozenset[str]:
    return frozenset(token.text for token in tokens(question.text))


def new_names(question: Question, text: str) -> list[tuple[str, ...]]:
    """Runs of capitalised words that the question does not hold, without one that only opens a sentence."""
    asked = _asked_words(question)
    runs: list[list[Token]] = []
    last: Token | None = None
    for token in tokens(text):
        if token.kind != "word" or not token.surface[:1].isupper() or _is_function(token, question.language):
            continue
        if last and _JOINS_NAMES.fullmatch(text, last.end, token.start):
            runs[-1].append(token)
        else:
            runs.append([token])
        last = token
    runs = [run for run in runs if not all(_is_plain(token, question.language) for token in run)]
    found: list[tuple[str, ...]] = []
    for run in runs:
        opens = not text[: run[0].start].strip(" \n-*•#|_0123456789.)")
        kept = run[1:] if opens and len(run) == 1 else run
        fresh = [token for token in kept if token.text not in asked]
        if fresh and len(fresh) * 2 >= len(kept):
            found.append(tuple(token.text for token in kept))
    return found


def _is_function(token: Token, language: Language) -> bool:
    """Whether a capitalised word can be no part of a name: a function word, a role, a month or day."""
    return (
        token.text in word_set("stop", language)
        or bool(_ROLE.fullmatch(token.surface))
        or bool(_WHEN.fullmatch(token.surface))
    )


def _is_plain(token: Token, language: Language) -> bool:
    """Whether a capitalised word is none of a name: a function word, a month, a role, an everyday word."""
    if token.text in word_set("stop", language) or _ROLE.fullmatch(token.surface):
        return True
    return bool(concepts_of(token.text, language)) or bool(_WHEN.fullmatch(token.surface))
