"""Says how many tokens a text has, without a tokeniser: near enough to know what fits into a window."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from leadline.core.llm.messages import (
    AssistantMessage,
    Conversation,
    ImageRef,
    Message,
    Reasoning,
    Text,
    ToolMessage,
)
from leadline.core.llm.request import ToolSchema

IMAGE_TOKENS = 1200
"""What an image counts, whatever the size of its file: providers scale images down to about that."""

_MESSAGE = 4
"""Tokens around each message: role and marks."""
_CALL = 8
"""Tokens around each call of a tool and each schema of one."""


def text_tokens(text: str) -> int:
    """About how many tokens `text` has; 0 for none.

    Bytes are sorted into classes (letters, digits, marks, white space, scripts by their first byte), and runs and
    borders of classes are weighed. The weights are fitted to the tokenisers of several makers, see `evals/tokens`.
    """
    if not text:
        return 0
    raw = text.encode("utf-8", "surrogatepass")
    if text.isascii():
        return max(1, round(_ascii(raw, raw.translate(_CLASSES))))
    classes = raw.translate(_CLASSES, _CONTINUATION)
    return max(1, round(_ascii(raw, classes) + _beyond_ascii(raw, classes)))


def least_tokens(text: str) -> int:
    """What no tokeniser in use goes below for `text`: none makes one token of several words."""
    if not text:
        return 0
    classes = text.encode("utf-8", "surrogatepass").translate(_CLASSES, _CONTINUATION)
    words = (b" " + classes.translate(_ANY_LETTERS)).count(b" a")
    if text.isascii():
        return max(1, words)
    return max(1, words + sum(classes.count(script) for script in (b"z", b"k", b"o", b"i")) // 4)


def _ascii(raw: bytes, classes: bytes) -> float:
    count = classes.count
    letters = b" " + classes.translate(_LETTERS)
    words = letters.count(b" a")
    total = _WORD * words
    if b"A" in classes:
        total += _UPPER_BEHIND_LOWER * count(b"aA") + _UPPER_PAIR * count(b"AA")
    if marks := count(b"."):
        total += (
            _MARK * marks
            + _WORD_BEHIND_MARK * (count(b".a") + count(b".A"))
            + _MARK_BEHIND_SPACE * count(b" .")
        )
        if marks > _LONG and (runs := count(b"....")):
            total += _MARKS * max(0, runs - sum(map(raw.count, _RULES)))
    if b"n" in classes:
        total += _BLANK_LINE * count(b"nn") + _INDENT * (count(b"n ") + count(b"nt"))
    if len(classes) >= _LONG:
        total += _LONG_SPACE * (count(b" " * _LONG) + count(b"t" * _LONG))
        total += _TAB_BEHIND_SPACE * count(b" t") + _CONTROL * count(b"b")
        total += _UNBROKEN * letters.count(b"a" * _LETTERS_UNBROKEN)
    if digits := count(b"0"):
        total -= _DIGIT_BESIDE_LETTER * (count(b"a0") + count(b"0a"))
        total += _DIGIT * digits + _NUMBER * (b" " + classes.translate(_DIGITS)).count(b" a")
    if words:
        sampled = raw[:_SAMPLE].split()
        foreign = min(1.0, 10 * len([word for word in sampled if word in _FOREIGN]) / max(1, len(sampled)))
        if foreign:
            total += foreign * (
                _FOREIGN_LETTER * letters.count(b"a") + _FOREIGN_LONG * letters.count(b"a" * 8)
            )
    return total


def _beyond_ascii(raw: bytes, classes: bytes) -> float:
    present = frozenset(classes)
    total = 0.0
    for script, (each, word) in _SCRIPTS.items():
        if script in present:
            total += each * classes.count(script)
            if word:
                words = b" " + classes.translate(_WORDS_OF[script])
                total += word * words.count(b" a") + _UNBROKEN * words.count(b"a" * _LETTERS_UNBROKEN)
    if ord("i") in present:
        # One first byte stands for many scripts here; two of them have far fewer tokens.
        total -= _OTHER_THAI * (raw.count(b"\xe0\xb8") + raw.count(b"\xe0\xb9"))
        total -= _OTHER_DEVANAGARI * (raw.count(b"\xe0\xa4") + raw.count(b"\xe0\xa5"))
    return total


def message_tokens(message: Message) -> int:
    """About how many tokens a message has in a request."""
    if isinstance(message, ToolMessage):
        return _MESSAGE + _CALL + text_tokens(message.content)
    if isinstance(message, AssistantMessage):
        total = _MESSAGE
        for part in message.content:
            if isinstance(part, Text | Reasoning):
                total += text_tokens(part.text)
            else:
                total += _CALL + text_tokens(part.name) + text_tokens(part.arguments)
        return total
    return _MESSAGE + sum(
        IMAGE_TOKENS if isinstance(part, ImageRef) else text_tokens(part.text) for part in message.content
    )


def header_tokens(system: str, tools: Sequence[ToolSchema]) -> int:
    """About how many tokens a request has beside its messages."""
    total = _MESSAGE + text_tokens(system) if system else 0
    return total + sum(
        _CALL
        + text_tokens(tool.name)
        + text_tokens(tool.description)
        + text_tokens(msgspec.json.encode(tool.parameters).decode())
        for tool in tools
    )


def ratio_of(raw: int, reported: int) -> float:
    """What a provider counts for each token of the estimate; fixed costs count little where the prompt is small."""
    return min(max((reported + _FIXED) / (raw + _FIXED), _LEAST_RATIO), _MOST_RATIO)


class Estimate:
    """The size of the requests of one conversation: counts what is new, and learns from what is reported."""

    def __init__(self) -> None:
        self._header: tuple[str, Sequence[ToolSchema]] | None = None
        self._header_tokens = 0
        self._counted: Conversation | None = None
        self._tokens = 0
        """Of the settled messages of `_counted`."""
        self._ratios: dict[str, float] = {}

    def size(self, system: str, tools: Sequence[ToolSchema], conversation: Conversation) -> int:
        """About how many tokens the request has; costs the messages that were not counted the last time."""
        header = self._header
        if header is None or header[0] is not system or header[1] is not tools:
            self._header, self._header_tokens = (system, tools), header_tokens(system, tools)
        counted = self._counted
        start = 0
        if counted is not None and conversation.extends(counted):
            start = counted.settled
        else:
            self._tokens = 0
        settled = conversation.settled
        self._tokens += sum(message_tokens(conversation[at]) for at in range(start, settled))
        self._counted = conversation
        tail = sum(message_tokens(conversation[at]) for at in range(settled, len(conversation)))
        return self._header_tokens + self._tokens + tail

    def learn(self, model: str, raw: int, reported: int | None) -> None:
        """Take in what a provider reported for a prompt that was estimated at `raw` tokens; None: nothing."""
        if not reported or raw < _LEARNED_FROM:
            return
        ratio, known = ratio_of(raw, reported), self._ratios.get(model)
        self._ratios[model] = ratio if known is None else (known + ratio) / 2

    def corrected(self, raw: int, model: str) -> int:
        """The estimate `raw`, corrected by what was reported for earlier requests to the same model."""
        return round(raw * self._ratios.get(model, 1.0))

    def knows(self, model: str) -> bool:
        """Whether anything was reported for `model`."""
        return model in self._ratios


_LEARNED_FROM = 200
"""Tokens of a prompt below which nothing is learned from it."""
_FIXED = 500
_LEAST_RATIO = 0.25
_MOST_RATIO = 4.0


def _class_table() -> bytes:
    """For each byte the class that it belongs to; of a longer character the first byte alone counts."""
    table = bytearray(b"." * 256)
    for first, last, name in (
        (0x61, 0x7A, "a"), (0x41, 0x5A, "A"), (0x30, 0x39, "0"), (0x20, 0x20, " "), (0x09, 0x09, "t"),
        (0x00, 0x08, "b"), (0x0B, 0x0C, "b"), (0x0E, 0x1F, "b"), (0x7F, 0x7F, "b"), (0x0A, 0x0A, "n"), (0x0D, 0x0D, "n"), (0xC2, 0xC2, "p"), (0xC3, 0xC3, "l"), (0xC4, 0xCB, "x"),
        (0xCC, 0xCD, "m"), (0xCE, 0xCF, "g"), (0xD0, 0xD4, "c"), (0xD5, 0xD7, "h"), (0xD8, 0xDB, "r"),
        (0xDC, 0xE0, "i"), (0xE1, 0xE1, "v"), (0xE2, 0xE2, "s"), (0xE3, 0xE3, "k"), (0xE4, 0xE9, "z"),
        (0xEA, 0xED, "o"), (0xEE, 0xEF, "f"), (0xF0, 0xFF, "e"),
    ):  # fmt: skip
        table[first : last + 1] = name.encode() * (last + 1 - first)
    return bytes(table)


def _only(classes: bytes) -> bytes:
    """A table that makes `a` of some classes and a blank of all others."""
    table = bytearray(b" " * 256)
    for one in classes:
        table[one] = ord("a")
    return bytes(table)


_CLASSES = _class_table()
_CONTINUATION = bytes(range(0x80, 0xC0))
_LETTERS = _only(b"aAlxv")
_RULES = tuple(bytes((mark,)) * 4 for mark in b"-=_*#.~/+<>|")
"""Four marks of a line that is drawn, which are one token."""
_ANY_LETTERS = _only(b"aAlxvgchr")
_DIGITS = _only(b"0")

_SAMPLE = 3000
"""Bytes that are looked at to tell whether words are of a language other than English."""
_FOREIGN = frozenset(
    b"de la en que und der die het van di il och og det na se je nie ve az hogy et les da att som til egy nem ist "
    b"per los za bir af er mit een".split()
)

# The weights, in tokens. English and code have about one token a word; other languages that are written in Latin
# letters have more the longer their words are.
_WORD = 1.18
_UPPER_BEHIND_LOWER = 1.44
_UPPER_PAIR = 0.32
_MARK = 0.054
_WORD_BEHIND_MARK = 0.58
_MARK_BEHIND_SPACE = 1.44
_BLANK_LINE = 0.41
_INDENT = 0.8
_LONG_SPACE = 0.7
_LONG = 16
"""Blanks of which that is said."""
_TAB_BEHIND_SPACE = 0.8
_CONTROL = 1.0
_MARKS = 1.6
"""Of four marks in a row that are not a drawn line."""
_UNBROKEN = 8.0
"""Of so many letters without a border; no word of prose is so long, but sequences and dumps are."""
_LETTERS_UNBROKEN = 24
_DIGIT = 0.38
_NUMBER = 1.11
_DIGIT_BESIDE_LETTER = 0.2
_FOREIGN_LETTER = 0.03
_FOREIGN_LONG = 2.4
_OTHER_THAI = 0.48
_OTHER_DEVANAGARI = 0.31
_SCRIPTS: dict[int, tuple[float, float]] = {
    ord("l"): (0.3, 0.0),
    ord("x"): (1.62, 0.0),
    ord("v"): (0.9, 0.0),
    ord("p"): (0.5, 0.0),
    ord("s"): (1.3, 0.0),
    ord("g"): (0.12, 2.1),
    ord("c"): (0.0, 2.35),
    ord("h"): (0.68, 0.0),
    ord("r"): (0.45, 0.0),
    ord("i"): (0.99, 0.0),
    ord("k"): (0.68, 0.0),
    ord("z"): (0.83, 0.0),
    ord("o"): (0.91, 0.0),
    ord("f"): (1.0, 0.0),
    ord("e"): (1.77, 0.0),
    ord("m"): (0.5, 0.0),
}
"""By class: tokens of each character, and of each word."""

_WORDS_OF = {script: _only(bytes((script,))) for script, (_, word) in _SCRIPTS.items() if word}
