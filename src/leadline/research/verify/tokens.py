"""A sentence as a row of tokens: words, figures and borders, so that two sentences can be laid side by side."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from leadline.core.patterns import lazy_pattern
from leadline.research.verify.blocks import BORDER, TextBlock, blocks
from leadline.research.verify.figures import Figure, figures
from leadline.research.verify.lexicon import IGNORABLE, NEGATION, OPPOSITES, REFUSALS, RESERVATION
from leadline.research.verify.markup import plain
from leadline.research.verify.names import names
from leadline.research.verify.typography import level

_TOKEN = lazy_pattern(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+(?:['./+&-][^\W_\u3040-\u30ff\u3400-\u9fff]+)*|[^\s\w]"
)
_STOPS = frozenset(".!?。！？|")
_BREAKS = frozenset(",;:()[]、，；：（）")


@dataclass(frozen=True)
class Token:
    """One token; two tokens with one key are the same word."""

    kind: Literal["word", "figure", "stop", "break"]
    key: str
    surface: str
    figure: Figure | None = None
    is_name: bool = False

    @property
    def ignorable(self) -> bool:
        return self.kind == "word" and self.key in IGNORABLE

    @property
    def negates(self) -> bool:
        return self.key in NEGATION or self.key.endswith("n't")

    @property
    def reserves(self) -> bool:
        """Whether leaving this word out could change what is said."""
        return self.key in RESERVATION or self.key.endswith("n't")

    @property
    def weighs(self) -> bool:
        """Whether a sentence that leaves this token out says something else or something wider."""
        if self.figure:
            return self.figure.required
        return self.is_name or self.reserves or direction(self.key) is not None


@lru_cache(maxsize=4096)
def tokens(text: str) -> tuple[Token, ...]:
    """The tokens of a text in order. Punctuation other than the borders of clauses is left out.

    Links, footnote marks and marks of Markdown are read as in the report, which shows their words alone.
    """
    spelled = level(plain(statements(text)))
    figure_at = {one.start: one for one in figures(spelled)}
    inside = {position for one in figure_at.values() for position in range(one.start, one.end)}
    named = {
        position for name in names(spelled) for position in range(name.start, name.start + len(name.text))
    }
    row: list[Token] = []
    for start in sorted(figure_at):
        row.append(Token("figure", "", figure_at[start].surface, figure_at[start]))
    placed = list(zip(sorted(figure_at), row, strict=True))
    for match in _TOKEN.finditer(spelled):
        token = None if match.start() in inside else _token(match.group(), match.start() in named)
        if token:
            placed.append((match.start(), token))
    placed.sort(key=lambda pair: pair[0])
    return tuple(token for _, token in placed)


def statements(text: str) -> str:
    """The words of a text without marks of Markdown, with a border between blocks that stand for themselves.

    A heading or an introduction that refuses ("Not reimbursed:") is part of what stands under it: no border there.
    """
    found = ""
    refused_by: TextBlock | None = None
    for block in blocks(text):
        if refused_by and block.kind in ("heading", "paragraph") and refused_by.kind != "heading":
            refused_by = None
        if refused_by and block.kind == "heading":
            refused_by = None
        found += (" " if refused_by else BORDER) + block.text if found else block.text
        if (block.kind == "heading" or block.text.endswith((":", "："))) and refuses(block.text):
            refused_by = block
    return found


def refuses(text: str) -> bool:
    """Whether a heading or an introduction turns round what stands under it."""
    return any(word in REFUSALS for word in re.findall(r"[^\W\d_]+", text.casefold()))


def _token(surface: str, is_name: bool) -> Token | None:
    if surface in _STOPS:
        return Token("stop", surface, surface)
    if surface in _BREAKS:
        return Token("break", surface, surface)
    if surface[0].isalnum():
        return Token("word", word_key(surface), surface, is_name=is_name)
    return None


def word_key(word: str) -> str:
    """A word without case, possessive ending and plural s; nothing else is levelled."""
    folded = word.casefold().removesuffix("'s").removesuffix("'")
    if (
        folded.isascii()
        and len(folded) > 3
        and folded.endswith("s")
        and not folded.endswith(("ss", "us", "is"))
    ):
        plain = folded.removesuffix("s")
        return folded if folded in RESERVATION or direction(folded) else plain
    return folded


def direction(key: str) -> tuple[int, int] | None:
    """Which pair of opposites a word belongs to, and on which side it stands."""
    for pair, sides in enumerate(OPPOSITES):
        for side, words in enumerate(sides):
            if key in words:
                return pair, side
    return None
