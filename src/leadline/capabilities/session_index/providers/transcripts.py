"""What every session tells of itself: its title, its first words, what was said, and what it used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec import structs

from leadline.capabilities.session_index.seam import Facts, IndexSource, Passage
from leadline.core.llm.messages import Text
from leadline.core.session import titles
from leadline.core.session.codec import Header, Logged
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import (
    AssistantSaid,
    RequestSent,
    ToolAnswered,
    ToolCalled,
    TurnStart,
    UserEntered,
)
from leadline.core.session.projection import Projection
from leadline.core.session.spending import SPENDING, Spendings, total
from leadline.core.spend.money import dollars

_MAX_RESULT = 1_000
"""Code points of a tool's result that can be searched: it repeats what a document or a file says."""


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of the fold."""

    titles: titles.Titles
    model: str = ""
    turns: int = 0
    paid: Spendings = Spendings()


def _begin(header: Header) -> Told:
    return Told(titles.Titles(label=header.label))


def _apply(state: Told, logged: Logged) -> Told:
    try:
        match logged.type:
            case TurnStart.TYPE:
                return structs.replace(state, turns=state.turns + 1)
            case kind if kind in SPENDING.types:
                model = logged.as_(RequestSent).model if kind == RequestSent.TYPE else state.model
                return structs.replace(state, model=model, paid=SPENDING.apply(state.paid, logged))
            case _:
                named = titles.apply(state.titles, logged)
                return state if named is state.titles else structs.replace(state, titles=named)
    except EventUndecodable:
        return state


def _view(state: Told) -> Facts:
    paid = total(SPENDING.view(state.paid))
    known = bool(paid.calls) and paid.paid.complete
    return Facts(
        title=state.titles.given,
        question=state.titles.words,
        model=state.model,
        turns=state.turns,
        calls=paid.calls,
        tokens=paid.tokens.total,
        cost=dollars(paid.cost) if known else None,
        currency="USD" if known else None,
        cost_at_least=dollars(paid.cost) if paid.cost and not known else None,
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
        version=3,
        state=Told,
        init=_begin,
        apply=_apply,
        view=_view,
        types=titles.TITLES.types | SPENDING.types | {TurnStart.TYPE, UserEntered.TYPE},
    ),
    texts=_TEXTS,
)
"""What core's own events say; every index knows it."""
