"""The language of a text, its word stems, and the words that carry no matter in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal, Protocol, cast

from leadline.core.patterns import lazy_pattern

Language = Literal["en", "de", "fr", "es", "zh", "ja"]
Role = Literal["stop", "frame", "soft"]

LANGUAGES: tuple[Language, ...] = ("en", "de", "fr", "es", "zh", "ja")
_STEMMERS: Mapping[Language, str] = {"en": "english", "de": "german", "fr": "french", "es": "spanish"}
_KANA = lazy_pattern(r"[\u3040-\u30ff]")
_HAN = lazy_pattern(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_LETTERS = lazy_pattern(r"[^\W\d_]")
_WORD = lazy_pattern(r"[^\W\d_]+")
_NAMED: Mapping[str, Language] = {
    "en": "en", "english": "en", "englisch": "en", "anglais": "en", "inglés": "en",
    "de": "de", "german": "de", "deutsch": "de", "allemand": "de", "alemán": "de",
    "fr": "fr", "french": "fr", "français": "fr", "französisch": "fr",
    "es": "es", "spanish": "es", "español": "es", "spanisch": "es",
    "zh": "zh", "chinese": "zh", "中文": "zh", "汉语": "zh", "简体中文": "zh", "chinesisch": "zh",
    "ja": "ja", "japanese": "ja", "日本語": "ja", "japanisch": "ja",
}  # fmt: skip


@cache
def words(role: Role, language: Language) -> tuple[str, ...]:
    """The words of a role in a language, as written in `lexicon/words.txt`."""
    return _table().get((role, language), ())


@cache
def word_set(role: Role, language: Language) -> frozenset[str]:
    """The words of a role in a language, for looking one up."""
    return frozenset(words(role, language))


@cache
def stem_set(role: Role, language: Language) -> frozenset[str]:
    """The stems of the words of a role."""
    return frozenset(stem(word, language) for word in words(role, language))


@cache
def _table() -> dict[tuple[str, str], tuple[str, ...]]:
    text = (files(__package__ or "") / "lexicon" / "words.txt").read_text(encoding="utf-8")
    table: dict[tuple[str, str], tuple[str, ...]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            head, _, rest = line.partition(":")
            role, language = head.split()
            table[role, language] = tuple(rest.split())
    return table


def is_cjk(language: Language) -> bool:
    """Whether the language is written without spaces between words."""
    return language in ("zh", "ja")


@lru_cache(maxsize=1024)
def language_of(text: str) -> Language:
    """The language of a text by its script and its function words; English where nothing tells."""
    letters = len(_LETTERS.findall(text))
    han, kana = len(_HAN.findall(text)), len(_KANA.findall(text))
    if letters and (han + kana) * 3 >= letters:
        return "ja" if kana * 8 >= han + kana and kana else "zh"
    counts: Counter[Language] = Counter()
    for word in _WORD.findall(text.casefold()):
        for language in ("en", "de", "fr", "es"):
            counts[language] += word in word_set("stop", language)
    best = max(("en", "de", "fr", "es"), key=lambda one: counts[one])
    return best if counts[best] else "en"


def named_language(name: str | None) -> Language | None:
    """The language that a request names, by code or name; None for others."""
    if not name:
        return None
    folded = name.strip().casefold()
    return _NAMED.get(folded) or _NAMED.get(re.split(r"[-_ (]", folded)[0])


@lru_cache(maxsize=65536)
def stem(word: str, language: Language) -> str:
    """The stem of a folded word; the word itself where the language has no stems."""
    name = _STEMMERS.get(language)
    return _stemmer(name).stemWord(word) if name else word


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 - the library's name


@cache
def _stemmer(name: str) -> _Stemmer:
    import snowballstemmer  # noqa: PLC0415 - loaded when the first question is asked

    return cast("_Stemmer", snowballstemmer.stemmer(name))  # pyright: ignore[reportUnknownMemberType] - it has no types


class _Sentences(Protocol):
    def get_sentence_boundaries(self, language: str, text: str) -> list[Mapping[str, int]]: ...


def boundaries(language: Language, text: str) -> list[tuple[int, int]]:
    """Where the sentences of a text begin and end, white space behind them included."""
    import sentencex  # noqa: PLC0415 - loaded when the first document is read

    untyped = cast("_Sentences", sentencex)
    find = untyped.get_sentence_boundaries
    return [(one["start_index"], one["end_index"]) for one in find(language, text)]
