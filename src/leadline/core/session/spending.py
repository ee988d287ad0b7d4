"""What a session paid for: its calls by purpose and by whom was paid, with tokens and cost, as a fold of its log."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import structs

from leadline.core.llm.tokens import text_tokens
from leadline.core.llm.usage import NOT_REPORTED, Usage
from leadline.core.session.codec import Header, Logged
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import AssistantSaid, Charged, RequestEnded, RequestSent, SeedEnded
from leadline.core.session.log import Session
from leadline.core.session.projection import Projection, project
from leadline.core.spend.account import Spent
from leadline.core.spend.money import Cost, Money


class Spending(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was paid for one purpose to one model or service."""

    purpose: str
    what: str
    """`provider/model`, or the name of a service."""
    calls: int = 0
    """Failed attempts included, and those of which nobody knows how they ended."""
    tokens: Usage = NOT_REPORTED
    """As providers reported them."""
    cost: int = 0
    """The part that is known, in picodollars, at the prices that held then."""
    unpriced: int = 0
    """Calls whose cost is not known."""
    estimated: int = 0
    """Tokens of calls for which nobody reported any, as they were estimated."""
    unanswered: int = 0
    """Calls that were sent, and how they ended is not in the log: they may have been billed."""

    def __add__(self, other: Spending) -> Spending:
        """Both together, under the names of this one."""
        return structs.replace(
            self,
            calls=self.calls + other.calls,
            tokens=self.tokens + other.tokens,
            cost=self.cost + other.cost,
            unpriced=self.unpriced + other.unpriced,
            estimated=self.estimated + other.estimated,
            unanswered=self.unanswered + other.unanswered,
        )

    @property
    def paid(self) -> Cost:
        """What it cost, and whether that is all."""
        return Cost(Money(self.cost), not self.unpriced)

    @property
    def spent(self) -> Spent:
        """The same as an account counts it."""
        tokens = (self.tokens.total or 0) + self.estimated
        return Spent(tokens, Money(self.cost), self.calls, self.unpriced)


def merged(parts: Iterable[Spending]) -> tuple[Spending, ...]:
    """One row for each purpose and whom was paid, sorted. The sum over rows is the sum over `parts`."""
    rows: dict[tuple[str, str], Spending] = {}
    for part in parts:
        row = rows.get((part.purpose, part.what))
        rows[part.purpose, part.what] = part if row is None else row + part
    return tuple(rows[key] for key in sorted(rows))


def total(parts: Iterable[Spending]) -> Spending:
    """All of it in one row without names."""
    return sum(parts, Spending(purpose="", what=""))


def session_spending(*sessions: Session) -> tuple[Spending, ...]:
    """What sessions paid for, by purpose and whom was paid; what a fork took over from another is not its own.

    Children are sessions of their own: give them too.
    """
    return merged(row for session in sessions for row in project(SPENDING, session))


def spent_since(session: Session, seq: int) -> Spent:
    """What was used from event `seq` on, as an account counts it; a request that has not ended as it was estimated."""
    state = Spendings()
    for line in session.since(seq):
        state = _apply(state, line)
    return total(state.all()).spent


class _Sent(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request that has not ended."""

    purpose: str
    what: str
    tokens: int = 0


class Spendings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of the fold."""

    rows: tuple[Spending, ...] = ()
    open: _Sent | None = None

    def plus(self, row: Spending) -> Spendings:
        return Spendings(merged((*self.rows, row)))

    def all(self) -> tuple[Spending, ...]:
        """The rows, with the request that has not ended."""
        sent = self.open
        return self.rows if sent is None else merged((*self.rows, _unanswered(sent)))


def _apply(state: Spendings, logged: Logged) -> Spendings:
    try:
        match logged.type:
            case RequestSent.TYPE:
                sent = logged.as_(RequestSent)
                return Spendings(state.all(), _Sent(sent.purpose, sent.model, sent.tokens or 0))
            case AssistantSaid.TYPE if state.open is not None:
                return state.plus(_ended(state.open, logged.as_(AssistantSaid)))
            case RequestEnded.TYPE if state.open is not None:
                return state.plus(_ended(state.open, logged.as_(RequestEnded)))
            case Charged.TYPE:
                return Spendings(state.plus(_charged(logged.as_(Charged))).rows, state.open)
            case SeedEnded.TYPE:
                return Spendings()
            case _:
                return state
    except EventUndecodable:
        return state


def _unanswered(sent: _Sent) -> Spending:
    return Spending(
        purpose=sent.purpose, what=sent.what, calls=1, unpriced=1, estimated=sent.tokens, unanswered=1
    )


def _ended(sent: _Sent, event: AssistantSaid | RequestEnded) -> Spending:
    return Spending(
        purpose=sent.purpose,
        what=sent.what,
        calls=1,
        tokens=event.usage or NOT_REPORTED,
        cost=event.cost or 0,
        unpriced=int(event.cost is None),
        estimated=_estimate(sent, event),
    )


def _estimate(sent: _Sent, event: AssistantSaid | RequestEnded) -> int:
    """What is taken to have been used where nothing was reported: nothing where nothing was said."""
    if event.usage is not None or isinstance(event, RequestEnded):
        return 0
    return sent.tokens + text_tokens(event.message.text)


def _charged(event: Charged) -> Spending:
    return Spending(
        purpose=event.purpose,
        what=event.what,
        calls=event.calls,
        tokens=event.usage or NOT_REPORTED,
        cost=event.cost or 0,
        unpriced=0 if event.cost is not None else event.calls,
    )


def _init(header: Header) -> Spendings:
    return Spendings()


SPENDING: Projection[Spendings, tuple[Spending, ...]] = Projection(
    key="session/spending",
    version=1,
    state=Spendings,
    init=_init,
    apply=_apply,
    view=Spendings.all,
    types=frozenset({RequestSent.TYPE, AssistantSaid.TYPE, RequestEnded.TYPE, Charged.TYPE, SeedEnded.TYPE}),
)
"""What a session paid for, by `project(SPENDING, session)`."""
