"""The one owner of how much of a result a model reads: beginning and end are kept, and what is missing is told.

The whole of what is cut goes to the blob store; a notice in the gap says how much is missing and where it is read.
The gap stands outside of every fence, so that a text from outside cannot write a notice of its own that looks the same.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.core.llm.tokens import text_tokens
from leadline.core.tools.fence import FENCE_NOTICE, FenceLine, fence_lines
from leadline.core.tools.graphemes import cut_after, cut_before
from leadline.core.tools.outcome import Truncation
from leadline.kernel.services import Service

if TYPE_CHECKING:
    from leadline.core.tools.invocation import ToolInvocation

ALWAYS_SHOWN = 400
"""Characters that are shown in any window: nothing so short is cut."""

ID_DIGITS = 16
"""How many digits of a hash name a blob to a model."""

FRAME_CHARS = 1_000
FRAME_TOKENS = 160
"""Room for what stands around a part of a text: where it is from, and its fence."""

LEAST_PART = 32
"""Tokens of a part in however little room."""

_NOTICE_TOKENS = 64
_MOST_CHARS_A_TOKEN = 8
_SCRIPT_TOKENS = 4
"""No character of any script is more tokens than that."""


@dataclass(frozen=True)
class Room:
    """How much of one result a model reads."""

    chars: int
    tokens: int | None = None
    """None: characters alone count."""
    tool: str = ""
    """Name of the tool with which the model reads what was left out; empty where it has none."""

    def holds(self, content: str) -> bool:
        """Whether all of `content` is shown."""
        if len(content) > self.chars:
            return False
        if self.tokens is None or len(content) * _SCRIPT_TOKENS <= self.tokens:
            return True
        return text_tokens(content) <= self.tokens


class ResultRoom(Service, key="result-room"):
    """Says how much of a result is shown, where more counts than a number of characters."""

    @abstractmethod
    def room(self, call: ToolInvocation, most: int) -> Room:
        """For the result of `call`: at most `most` characters."""


def bounded(content: str, room: Room, blob: str | None = None) -> tuple[str, Truncation | None]:
    """`content` if there is room for it, else its head and tail and the exact count between.

    `blob` is the sha256 under which the whole is stored. The notice comes on top of the characters of the
    room, and out of its tokens.
    """
    if room.holds(content):
        return content, None
    head, tail = _ends(content, room)
    if head >= tail:
        return content, None
    opened = _moved(content, head, tail)
    head, tail = opened.head, opened.tail
    made = Truncation(len(content), tail - head, blob, head, len(content) - tail)
    shown = [content[:head], *opened.closing, notice(made, room.tool), *opened.opening, content[tail:]]
    return "\n".join(shown), made


def notice(made: Truncation, tool: str) -> str:
    """What stands in the gap."""
    gap = f"{made.omitted_chars} of {made.total_chars} characters left out here"
    if made.blob is None:
        return f"[{gap}; they are not stored: ask for less at a time to see them]"
    if not tool:
        return f"[{gap}; the whole text is stored as {made.blob}]"
    first = made.head_chars + 1
    last = made.head_chars + made.omitted_chars
    return (
        f"[{gap}: {first} to {last}. Read them with {tool}: "
        f'{{"id": "{made.blob[:ID_DIGITS]}", "from": {first}}}]'
    )


def _ends(content: str, room: Room) -> tuple[int, int]:
    """Where the head ends and the tail begins."""
    tail_chars = room.chars // 4
    head_chars = room.chars - tail_chars
    if room.tokens is not None:
        tokens = max(room.tokens - _NOTICE_TOKENS, room.tokens // 2)
        head_chars = longest(lambda size: content[:size], min(head_chars, len(content)), tokens - tokens // 4)
        tail_chars = longest(
            lambda size: content[len(content) - size :], min(tail_chars, len(content)), tokens // 4
        )
    return cut_before(content, head_chars), cut_after(content, max(0, len(content) - tail_chars))


def fitting(room: Room, text: str, start: int, most: int) -> int:
    """How many characters of `text` from `start` on, at most `most`, there is room for beside a frame of their own.

    For tools that give long texts part by part: what fits is not cut. At least 1, where there is any.
    """
    size = max(1, min(most, len(text) - start, room.chars - FRAME_CHARS))
    if room.tokens is None:
        return size
    tokens = max(room.tokens - FRAME_TOKENS, LEAST_PART)
    return max(1, longest(lambda size: text[start : start + size], size, tokens))


def longest(part: Callable[[int], str], most: int, tokens: int) -> int:
    """How many characters, at most `most`, a part may have so that it has about `tokens`, and no more."""
    size = min(most, tokens * _MOST_CHARS_A_TOKEN)
    while size > 0 and (found := text_tokens(part(size))) > tokens:
        size = min(size - 1, int(size * tokens / found))
    return max(size, 0)


@dataclass(frozen=True)
class _Gap:
    head: int
    tail: int
    closing: tuple[str, ...] = ()
    """Lines that end the fence in which the head ends."""
    opening: tuple[str, ...] = ()
    """Lines that begin the fence in which the tail begins."""


def _moved(content: str, head: int, tail: int) -> _Gap:
    """The gap without halves of fence lines, and what has to stand around it so that all data stays fenced."""
    lines = fence_lines(content)
    for line in lines:
        if line.start < head < line.end:
            head = line.start
        if line.start < tail < line.end:
            tail = line.end
    outer, inner = _open_at(lines, head), _open_at(lines, tail)
    closing = (f"{outer}>>>",) if outer else ()
    opening: tuple[str, ...] = (f"<<<{inner}",) if inner else ()
    if inner and f"<<<{inner}" not in content[:head]:
        opening = (FENCE_NOTICE.format(delimiter=inner, label='"the same result"'), *opening)
    return _Gap(head, tail, closing, opening)


def _open_at(lines: tuple[FenceLine, ...], at: int) -> str:
    """The delimiter of the fence that is open there; empty where none is."""
    return next((line.opens for line in reversed(lines) if line.end <= at), "")
