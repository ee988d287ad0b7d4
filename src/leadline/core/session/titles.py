"""What a session is called: as a person says, else as a model says, else by its first words."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

import msgspec
from msgspec import structs

from leadline.core.llm.messages import HUMAN, Text, UserMessage
from leadline.core.session.codec import Header, Logged
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import InboxSpliced, Titled, UserEntered
from leadline.core.session.projection import Projection

MAX_TITLE = 72
"""Columns of a title that is cut from first words; a letter of Chinese or Japanese takes two."""

MAX_FIRST = 4_000
"""Code points of the first words that are kept."""

_LEAST: Final = 24
"""A title is cut behind a sentence or a word only where at least so many columns are left."""

_MARKUP = re.compile(r"^(?:[#>*\-\s]|\d+[.)]\s)+|[`*]{1,3}(?=\w)|(?<=\w)[`*]{1,3}(?!\w)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")
_BREAK = re.compile(r"\s|(?<=[、，；：,;:])")


class Titles(msgspec.Struct, frozen=True, omit_defaults=True):
    """Every title that a session was given, and its first words."""

    user: str = ""
    model: str = ""
    first: str = ""
    words: str = ""
    """What the session began with: the first message of a person, else the first of anybody."""
    human: bool = False
    """Whether `words` are a person's."""
    label: str = ""
    """What the header calls it."""

    @property
    def given(self) -> str:
        """The title that holds of those that were given; empty where none was."""
        return self.user or self.model or self.first

    @property
    def title(self) -> str:
        """The title that holds; empty where there is nothing to make one of."""
        return self.given or cut_title(self.words) or cut_title(self.label)


def cut_title(text: str, width: int = MAX_TITLE) -> str:
    """A title in one line from the beginning of `text`: its first sentence, or as many words as fit."""
    line = one_line(_MARKUP.sub("", text[:MAX_FIRST]))
    end = _SENTENCE_END.search(line)
    sentence = line[: end.end()] if end and _columns(line[: end.end()]) >= _LEAST else line
    if _columns(sentence) <= width:
        return sentence
    kept = sentence[: _fitting(sentence, width - 1)]
    breaks = [found.start() for found in _BREAK.finditer(kept) if _columns(kept[: found.start()]) >= _LEAST]
    # Scripts without spaces have few places to break at; there the last letter that fits does.
    if breaks and _columns(kept[breaks[-1] :]) <= _LEAST:
        kept = kept[: breaks[-1]]
    return kept.rstrip(" 、，；：,;:-–—(（「『") + "…"


def one_line(text: str) -> str:
    """`text` in one line, without control characters."""
    return " ".join(_CONTROL.sub(" ", text).split())


def _columns(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_column, text))


def _column(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _fitting(text: str, width: int) -> int:
    """How many code points of `text` fit; never cut between a letter and what belongs to it."""
    used = 0
    for index, char in enumerate(text):
        used += _column(char)
        if used > width:
            while index and (_column(text[index]) == 0 or text[index - 1] == "\u200d"):
                index -= 1
            return index
    return len(text)


def words_of(message: UserMessage) -> str:
    """The text of a message, as much as is kept of first words."""
    return "\n".join(part.text for part in message.content if isinstance(part, Text))[:MAX_FIRST].strip()


def _titled(state: Titles, event: Titled) -> Titles:
    title = one_line(event.title)
    match event.source:
        case "user":
            return structs.replace(state, user=title)
        case "model":
            return structs.replace(state, model=title)
        case "first":
            return structs.replace(state, first=title)


def _begun(state: Titles, message: UserMessage) -> Titles:
    human = message.source.kind == HUMAN.kind
    if state.human or (state.words and not human):
        return state
    words = words_of(message)
    return structs.replace(state, words=words, human=human) if words else state


def apply(state: Titles, logged: Logged) -> Titles:
    """The titles after one more event."""
    try:
        match logged.type:
            case Titled.TYPE:
                return _titled(state, logged.as_(Titled))
            case UserEntered.TYPE if not state.human:
                return _begun(state, logged.as_(UserEntered).message)
            case InboxSpliced.TYPE if not state.human:
                for message in logged.as_(InboxSpliced).inserted:
                    state = _begun(state, message)
            case _:
                pass
    except EventUndecodable:
        return state
    return state


def _init(header: Header) -> Titles:
    return Titles(label=header.label)


TITLES: Projection[Titles, str] = Projection(
    key="session/title",
    version=1,
    state=Titles,
    init=_init,
    apply=apply,
    view=lambda state: state.title,
    types=frozenset({Titled.TYPE, UserEntered.TYPE, InboxSpliced.TYPE}),
)
"""The title of a session, by `project(TITLES, session)`."""
