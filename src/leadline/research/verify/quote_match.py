"""Finding a quote in the text that it is said to come from: exactly, or up to typography; never approximately."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from leadline.core.patterns import lazy_pattern
from leadline.research.events import MatchKind
from leadline.research.verify.typography import JOIN, Normal, normalise

MIN_WORD_CHARACTERS = 3
"""A quote with fewer letters and digits could stand anywhere."""

_COUNT_LIMIT = 1000
_WORD = lazy_pattern(r"\w")
_ELLIPSIS = lazy_pattern(r"\.\.\.|\u2026|\[\s*\.\.\.\s*\]")
_BOUND = lazy_pattern(r"[^\W_\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]")
"""A letter or digit of a script that separates words by spaces."""


@dataclass(frozen=True)
class Match:
    """Where a quote stands."""

    start: int
    """In Unicode code points of the text as given."""
    end: int
    kind: MatchKind
    text: str
    """The text of the span: what is to be quoted."""
    count: int = 1
    """Occurrences; the span is that of the first."""


@dataclass(frozen=True)
class QuoteMiss:
    """Why a quote was not accepted, in words that help the one who quoted."""

    code: Literal["too-short", "ellipsis", "not-found"]
    message: str


class QuotedText:
    """A text in which several quotes are to be found; its normal form is made once, when first needed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._normal: Normal | None = None

    @property
    def normal(self) -> Normal:
        if self._normal is None:
            self._normal = normalise(self.text)
        return self._normal

    def find(self, quote: str, *, min_word_characters: int = MIN_WORD_CHARACTERS) -> Match | QuoteMiss:
        """The first place where the quote stands, or why there is none. Case counts; nothing is guessed.

        A span never begins or ends inside a word or a number: "rose by 1" is not in "rose by 10 %".
        """
        wanted = quote.strip()
        if len(_WORD.findall(wanted)) < min_word_characters:
            return QuoteMiss(
                "too-short",
                f"the quote has fewer than {min_word_characters} letters or digits; quote the whole sentence",
            )
        spans = list(_limited(_exact(self.text, wanted)))
        if spans:
            return self._match(spans, "exact")
        spans = list(_limited(self._normalised(wanted)))
        if spans:
            return self._match(spans, "normalised")
        if _ELLIPSIS.search(wanted):
            return QuoteMiss(
                "ellipsis",
                "the quote leaves words out (an ellipsis stands for nothing here); "
                "record each unbroken passage as its own quote",
            )
        return QuoteMiss("not-found", self._advice(wanted))

    def _match(self, spans: list[tuple[int, int]], kind: MatchKind) -> Match:
        start, end = spans[0]
        return Match(start, end, kind, self.text[start:end], len(spans))

    def _normalised(self, quote: str) -> Iterator[tuple[int, int]]:
        normal = self.normal
        for start, end in _exact_or_joined(normal.text, normalise(quote).text.strip()):
            yield normal.span(start, end)

    def _advice(self, quote: str) -> str:
        """Says how far the quote agrees with the text, which is where the mistake is."""
        words = quote.split()
        low, high = 0, len(words)
        while low < high:
            middle = (low + high + 1) // 2
            if next(self._normalised(" ".join(words[:middle])), None) is not None:
                low = middle
            else:
                high = middle - 1
        if low < 2:
            return "these words are not in the document; copy the passage exactly as it was read"
        start, end = next(self._normalised(" ".join(words[:low])))
        goes_on = " ".join(self.text[end : end + 80].split())
        begins = " ".join(self.text[start:end].split())[-80:]
        return f"not in the document as quoted: after “{begins}” it goes on “{goes_on}”; copy it exactly"


def find_quote(text: str, quote: str, *, min_word_characters: int = MIN_WORD_CHARACTERS) -> Match | QuoteMiss:
    """Find one quote in a text; see `QuotedText.find`, which is cheaper for several quotes of one text."""
    return QuotedText(text).find(quote, min_word_characters=min_word_characters)


def _limited(spans: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for count, span in enumerate(spans):
        if count == _COUNT_LIMIT:
            return
        yield span


def _exact(text: str, quote: str) -> Iterator[tuple[int, int]]:
    start = text.find(quote)
    while start >= 0:
        end = start + len(quote)
        if _whole(text, start, end):
            yield start, end
        start = text.find(quote, start + 1)


def _exact_or_joined(text: str, quote: str) -> Iterator[tuple[int, int]]:
    if not quote:
        return
    if JOIN not in text and JOIN not in quote:
        yield from _exact(text, quote)
        return
    for found in _joined_pattern(quote).finditer(text):
        if _whole(text, *found.span()):
            yield found.span()


def _joined_pattern(quote: str) -> re.Pattern[str]:
    """The quote as a pattern in which a hyphen at a line end may be a hyphen or nothing, on either side."""
    parts: list[str] = []
    position = 0
    while position < len(quote):
        here, after = quote[position], quote[position + 1 : position + 2]
        before = quote[position - 1 : position] if position else ""
        if here == JOIN:
            parts.append(f"[-{JOIN}]?")
        elif (
            here == "-" and after == " " and before.isalpha() and quote[position + 2 : position + 3].isalpha()
        ):
            parts.append(f"(?:- |{JOIN})")
            position += 1
        elif here == "-":
            parts.append(f"[-{JOIN}]")
        else:
            parts.append(re.escape(here))
            if here.isalpha() and after.isalpha():
                parts.append(f"{JOIN}?")
        position += 1
    return re.compile("".join(parts))


def _whole(text: str, start: int, end: int) -> bool:
    """Whether the span begins and ends at the borders of words and numbers."""
    before, first = text[start - 1 : start] if start else "", text[start]
    last, after = text[end - 1], text[end : end + 1]
    if (_BOUND.match(before) and _BOUND.match(first)) or (_BOUND.match(last) and _BOUND.match(after)):
        return False
    if JOIN in (before, after):
        return False
    if first.isdigit() and before in (".", ",") and text[start - 2 : start - 1].isdigit() and start >= 2:
        return False
    return not (last.isdigit() and after in (".", ",") and text[end + 1 : end + 2].isdigit())
