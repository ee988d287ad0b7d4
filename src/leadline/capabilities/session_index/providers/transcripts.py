"""What every session tells of itself: its title, its first words, what was said, and what it used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec import structs

from leadline.capabilities.session_index.seam import Facts, IndexSource, Passage
from leadline.core.llm.messages import Text
from leadline.core.llm.usage import Usage
from leadline.core.session import titles
from leadline.core.session.codec import Header, Logged
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import (
    AssistantSaid,
    RequestEnded,
    RequestSent,
    ToolAnswered,
    ToolCalled,
    TurnStart,
    UserEntered,
)
from leadline.core.session.projection import Projection
from leadline.core.spend.money import dollars

_MAX_RESULT = 1_000
"""Code points of a tool's result that can be searched: it repeats what a document or a file says."""


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of the fold."""

    titles: titles.Titles
    model: str = ""
    turns: int = 0
    calls: int = 0
    tokens: int | None = None
    cost: int = 0
    """Picodollars, as far as it is known."""
    priced: int = 0
    """Calls that have ended and whose cost is known."""


def _begin(header: Header) -> Told:
    return Told(titles.Titles(label=header.label))


def _apply(state: Told, logged: Logged) -> Told:
    try:
        match logged.type:
            case TurnStart.TYPE:
                return structs.replace(state, turns=state.turns + 1)
            case RequestSent.TYPE:
                return structs.replace(state, calls=state.calls + 1, model=logged.as_(RequestSent).model)
            case AssistantSaid.TYPE:
                said = logged.as_(AssistantSaid)
                return _used(state, said.usage, said.cost)
            case RequestEnded.TYPE:
                ended = logged.as_(RequestEnded)
                return _used(state, ended.usage, ended.cost)
            case _:
                named = titles.apply(state.titles, logged)
                return state if named is state.titles else structs.replace(state, titles=named)
    except EventUndecodable:
        return state


def _used(state: Told, usage: Usage | None, cost: int | None) -> Told:
    total = usage.total if usage is not None else None
    return structs.replace(
        state,
        tokens=state.tokens if total is None else (state.tokens or 0) + total,
        cost=state.cost + (cost or 0),
        priced=state.priced + (cost is not None),
    )


def _view(state: Told) -> Facts:
    known = 0 < state.calls == state.priced
    return Facts(
        title=state.titles.given,
        question=state.titles.words,
        model=state.model,
        turns=state.turns,
        calls=state.calls,
        tokens=state.tokens,
        cost=dollars(state.cost) if known else None,
        currency="USD" if known else None,
    )


def _said_by_user(logged: Logged) -> Iterable[Passage]:
    message = logged.as_(UserEntered).message
    yield _transcript("\n".join(part.text for part in message.content if isinstance(part, Text)))


def _said_by_model(logged: Logged) -> Iterable[Passage]:
    yield _transcript(logged.as_(AssistantSaid).message.text)


def _called(logged: Logged) -> Iterable[Passage]:
    called = logged.as_(ToolCalled)
    yield _transcript(f"{called.name} {called.arguments}")


def _answered(logged: Logged) -> Iterable[Passage]:
    yield _transcript(logged.as_(ToolAnswered).message.content[:_MAX_RESULT])


def _transcript(text: str) -> Passage:
    return Passage(place="transcript", text=text)


_TEXTS: Mapping[str, Callable[[Logged], Iterable[Passage]]] = {
    UserEntered.TYPE: _said_by_user,
    AssistantSaid.TYPE: _said_by_model,
    ToolCalled.TYPE: _called,
    ToolAnswered.TYPE: _answered,
}

TRANSCRIPTS: IndexSource[Told] = IndexSource(
    facts=Projection(
        key="session/facts",
        version=2,
        state=Told,
        init=_begin,
        apply=_apply,
        view=_view,
        types=titles.TITLES.types
        | {TurnStart.TYPE, RequestSent.TYPE, AssistantSaid.TYPE, RequestEnded.TYPE, UserEntered.TYPE},
    ),
    texts=_TEXTS,
)
"""What core's own events say; every index knows it."""
