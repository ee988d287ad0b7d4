"""Which of the six languages of reports a text is in, by script and function words; and languages by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from leadline.core.patterns import lazy_pattern

Language = Literal["en", "de", "fr", "es", "zh", "ja"]

LANGUAGES: tuple[Language, ...] = ("en", "de", "fr", "es", "zh", "ja")

_LETTER = lazy_pattern(r"[^\W\d_]")
_WORD = lazy_pattern(r"[^\W\d_]+")
_HAN = lazy_pattern(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_KANA = lazy_pattern(r"[\u3040-\u30ff]")
_LATIN = lazy_pattern(r"[A-Za-z\u00c0-\u024f]")

_WORDS_OF: tuple[tuple[Language, str], ...] = (
    (
        "en",
        "the a an of to in on at for from with by and or is are was were be been has have had do does did will would "
        "can could should may might what which who whom whose when where why how many much long far this that these "
        "those it its their there than about into between not no if as we our you your i my",
    ),
    (
        "de",
        "der die das den dem des ein eine einen einem einer und oder ist sind war waren wird werden wurde wurden hat "
        "haben hatte kann können soll sollen darf was welche welcher welches welchen wer wem wen wessen wann wo wohin "
        "warum wieso wie viel viele lange im in am an auf aus bei mit nach von vom zu zum zur für über unter gegen "
        "ohne um nicht kein keine es sie er wir man sich als auch gibt dieser diese dieses pro",
    ),
    (
        "fr",
        "le la les un une des du de d l et ou est sont était étaient sera seront a ont avait peut peuvent doit que qui "
        "quoi quel quelle quels quelles quand où pourquoi comment combien dans sur sous avec sans pour par entre vers "
        "chez ne pas plus ce cette ces cet il elle ils elles on nous vous se au aux en y t",
    ),
    (
        "es",
        "el la los las un una unos unas de del y o es son era eran será serán fue fueron ha han había puede pueden debe "
        "que qué quien quién quiénes cuál cuáles cuándo cuando dónde donde por porqué cómo como cuánto cuánta cuántos "
        "cuántas en sobre con sin para entre hasta desde no más este esta estos estas se su sus al lo hay tiene tienen",
    ),
)
_FUNCTION_WORDS: Mapping[Language, frozenset[str]] = {
    language: frozenset(words.split()) for language, words in _WORDS_OF
}

_NAMES_OF: tuple[tuple[Language, str], ...] = (
    ("en", "en english englisch anglais inglés 英语 英文 英語"),
    ("de", "de german deutsch allemand alemán 德语 德文 ドイツ語"),
    ("fr", "fr french français francais französisch francés 法语 法文 フランス語"),
    ("es", "es spanish español espanol spanisch espagnol 西班牙语 スペイン語"),
    ("zh", "zh chinese chinesisch chinois chino mandarin 中文 汉语 漢語 简体中文 繁體中文 中国語"),
    ("ja", "ja jp japanese japanisch japonais japonés 日语 日文 日本語"),
)
_NAMES: Mapping[str, Language] = {name: language for language, names in _NAMES_OF for name in names.split()}


@lru_cache(maxsize=1024)
def language_of(text: str) -> Language | None:
    """The language of a text; None where nothing tells, or it is in a script of none of the six."""
    letters = len(_LETTER.findall(text))
    han, kana = len(_HAN.findall(text)), len(_KANA.findall(text))
    if letters and 3 * (han + kana) >= letters:
        return "ja" if kana and 8 * kana >= han + kana else "zh"
    if 2 * len(_LATIN.findall(text)) < letters:
        return None
    words = _WORD.findall(text.casefold())
    counts = {language: sum(word in known for word in words) for language, known in _FUNCTION_WORDS.items()}
    best = max(_FUNCTION_WORDS, key=lambda language: counts[language])
    return best if counts[best] else None


def named_language(name: str | None) -> Language | None:
    """The language that a code or name means: `de`, `de-AT`, `German`, `Deutsch`; None for another."""
    if not name:
        return None
    folded = name.strip().casefold()
    return _NAMES.get(folded) or _NAMES.get(re.split(r"[-_ (（]", folded)[0])


def report_language(asked: str | None, question: str) -> Language:
    """The language of what code writes in a report: the one asked for, else that of the question, else English."""
    if asked and asked.strip():
        return named_language(asked) or "en"
    return language_of(question) or "en"
