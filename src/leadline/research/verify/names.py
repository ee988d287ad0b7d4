"""Reading the names of a text: capitalised words, acronyms, product codes, and quotations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from leadline.core.patterns import lazy_pattern
from leadline.core.unspaced import UNSPACED
from leadline.research.verify.typography import level

_CODE = lazy_pattern(
    r"(?<![\w-])(?=[\w./+-]*\d)(?=[\w./+-]*[A-Za-z])[A-Za-z0-9]+(?:[-./+][A-Za-z0-9]+)*(?![\w-])"
)
_NOT_A_CODE = lazy_pattern(
    r"\d[\d.,]*(?:st|nd|rd|th|s|[kKmMbBtTgGwWhHlLsSvVxXA%]|[kMGTm]?Wh?|[kKMGT]B|[kcmµ]?[mgl]|[kMG]?Hz|bn|mn|tn|ms|min|mAh|Ah|dB|pp|bp|bps)|[QHqh][1-4]|FY\d+|\d+-[a-z-]+|v\d[\d.]*"
)
_WORD = lazy_pattern(r"(?<!\w)[^\W\d_]+(?:['.&-][^\W\d_]+)*")
_FOLDED_WORD = lazy_pattern(rf"(?:[^\W{UNSPACED}]|')+|[{UNSPACED}]+")
_CJK = lazy_pattern(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_LETTER = lazy_pattern(r"[^\W\d_]")
_OPENERS = frozenset(".!?:;\"'([{•*#|\n")
_LINKING = frozenset(
    [
        "of",
        "the",
        "and",
        "for",
        "de",
        "la",
        "du",
        "van",
        "von",
        "der",
        "den",
        "di",
        "da",
        "y",
        "&",
        "to",
        "in",
        "on",
    ]
)
_PLAIN = frozenset(
    [
        "i",
        "i'm",
        "i'd",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "english",
        "german",
        "french",
        "chinese",
        "spanish",
    ]
)
_GERMAN = frozenset(
    [
        "der",
        "die",
        "das",
        "und",
        "ist",
        "nicht",
        "ein",
        "eine",
        "mit",
        "von",
        "zu",
        "den",
        "dem",
        "für",
        "auf",
        "im",
        "sich",
        "wird",
        "sind",
        "wurde",
    ]
)
_QUOTED = lazy_pattern(r'"([^"]{2,400})"|「([^」]{2,400})」|『([^』]{2,400})』')


@dataclass(frozen=True)
class Name:
    """One name as written, in levelled spelling."""

    text: str
    start: int

    @property
    def words(self) -> tuple[str, ...]:
        """Its words, folded for comparing."""
        return folded_words(self.text)


@lru_cache(maxsize=4096)
def folded_words(text: str) -> tuple[str, ...]:
    """The words of a text without case, possessive endings and punctuation."""
    return tuple(
        word.removesuffix("'s").strip("'")
        for word in _FOLDED_WORD.findall(level(text).casefold())
        if word.strip("'")
    )


def names(text: str) -> tuple[Name, ...]:
    """Names that stand in a text of a script with capital letters.

    A single capitalised word that opens a sentence is not taken for a name; nor is a German noun.
    """
    spelled = level(text)
    found = [
        Name(match.group(), match.start())
        for match in _CODE.finditer(spelled)
        if not _NOT_A_CODE.fullmatch(match.group())
    ]
    covered = {position for name in found for position in range(name.start, name.start + len(name.text))}
    german = is_german(spelled)
    for run, opens in _capital_runs(spelled):
        if any(word.start() in covered for word in run):
            continue
        while len(run) > 1 and not _is_capital(run[-1].group()):
            run = run[:-1]
        text_of_run = spelled[run[0].start() : run[-1].end()]
        if _is_name([word.group() for word in run], opens, german):
            found.append(Name(text_of_run, run[0].start()))
    return tuple(sorted(found, key=lambda name: name.start))


def _is_name(run: list[str], opens: bool, german: bool) -> bool:
    capitals = [word for word in run if _is_capital(word)]
    if len(run) == 1:
        word = run[0]
        if word.casefold() in _PLAIN or len(word) == 1:
            return False
        if _is_marked(word):
            return True
        return not opens and not german
    if opens and len(capitals) == 1:
        return False
    return not german or any(_is_marked(word) for word in capitals)


def _capital_runs(text: str) -> list[tuple[list[re.Match[str]], bool]]:
    """Runs of capitalised words with linking words between, and whether each opens a sentence."""
    runs: list[tuple[list[re.Match[str]], bool]] = []
    run: list[re.Match[str]] = []
    for word in _WORD.finditer(text):
        adjoining = bool(run) and text[run[-1].end() : word.start()] == " "
        if _is_capital(word.group()):
            if not adjoining:
                runs.append((run := [word], _opens(text, word.start())))
            else:
                run.append(word)
        elif adjoining and word.group().casefold() in _LINKING:
            run.append(word)
        else:
            run = []
    return [(_without_opening_word(run, opens), opens) for run, opens in runs]


def _without_opening_word(run: list[re.Match[str]], opens: bool) -> list[re.Match[str]]:
    """Drop an article or preposition that is capitalised only because it opens the sentence."""
    if opens and len(run) > 1 and run[0].group().casefold() in _SENTENCE_WORDS:
        rest = run[1:]
        while rest and not _is_capital(rest[0].group()):
            rest = rest[1:]
        return rest or run[:1]
    return run


_SENTENCE_WORDS = frozenset(
    [
        "the",
        "a",
        "an",
        "in",
        "on",
        "at",
        "by",
        "for",
        "from",
        "with",
        "as",
        "to",
        "of",
        "and",
        "but",
        "or",
        "if",
        "when",
        "while",
        "after",
        "before",
        "since",
        "both",
        "this",
        "that",
        "these",
        "those",
        "its",
        "their",
        "his",
        "her",
        "our",
        "we",
        "he",
        "she",
        "they",
        "it",
        "is",
        "are",
        "was",
        "were",
        "however",
        "although",
        "according",
        "between",
        "under",
        "over",
        "during",
        "until",
        "because",
        "there",
        "here",
        "no",
        "not",
        "all",
        "some",
        "most",
        "many",
        "each",
        "every",
        "one",
        "two",
        "three",
        "der",
        "die",
        "das",
        "ein",
        "eine",
        "im",
        "am",
        "bei",
        "mit",
        "nach",
        "vor",
        "für",
    ]
)


def _is_capital(word: str) -> bool:
    return word[0].isupper()


def _is_marked(word: str) -> bool:
    """Whether more than the first letter is a capital: WHO, OpenAI."""
    return sum(letter.isupper() for letter in word) > 1


def _opens(text: str, start: int) -> bool:
    before = text[:start].rstrip(" ")
    return not before or before[-1] in _OPENERS


def quotations(text: str) -> tuple[str, ...]:
    """What stands in quotation marks in a text, where it is more than one word."""
    inside = ("".join(match.groups(default="")) for match in _QUOTED.finditer(level(text)))
    return tuple(one.strip() for one in inside if " " in one.strip() or (is_cjk(one) and len(one) >= 4))


def is_cjk(text: str) -> bool:
    """Whether most letters of a text are Chinese, Japanese or Korean."""
    letters = _LETTER.findall(text)
    return bool(letters) and 2 * len(_CJK.findall(text)) > len(letters)


def is_german(text: str) -> bool:
    """Whether a text reads as German, where every noun has a capital."""
    words = [word.group().casefold() for word in _WORD.finditer(text)]
    return sum(word in _GERMAN for word in words) * 8 >= len(words) > 0
