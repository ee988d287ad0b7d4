"""What a run used: by purpose and model, over the logs of its roles and of all that they started."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from leadline.core.llm.tokens import text_tokens
from leadline.core.llm.usage import Usage
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import AssistantSaid, Charged, Event, RequestEnded, RequestSent
from leadline.core.session.log import Session
from leadline.core.spend.account import Spent
from leadline.core.spend.money import Money, dollars
from leadline.research.events import RoleEnded, RunUsage, Spending
from leadline.research.roles.purposes import PLANNING, SYNTHESIS, UNIT

CURRENCY = "USD"

_COUNTED: Mapping[str, type[Event]] = {
    one.TYPE: one for one in (RequestSent, AssistantSaid, RequestEnded, Charged)
}
_TURNED_AWAY = frozenset(
    (
        "RATE_LIMIT",
        "OVERLOADED",
        "SERVER",
        "AUTH",
        "MISSING_CREDENTIAL",
        "QUOTA",
        "CONTEXT_WINDOW_EXCEEDED",
        "INVALID_REQUEST",
        "NOT_FOUND",
        "UNSUPPORTED",
        "CAPACITY",
        "BUDGET",
        "NO_PRICE",
    )
)
"""Failures before a provider did any work that it could charge for."""


@dataclass
class _Line:
    """What was used for one purpose with one model, growing."""

    calls: int = 0
    tokens: Usage = field(default_factory=Usage)
    cost: int = 0
    unpriced: int = 0
    estimated: int = 0

    def add(self, calls: int, usage: Usage | None, cost: int | None, estimate: int = 0) -> None:
        self.calls += calls
        self.cost += cost or 0
        self.unpriced += calls if cost is None else 0
        if usage is not None and usage.reported:
            self.tokens = self.tokens + usage
        else:
            self.estimated += estimate


Lines = dict[tuple[str, str], _Line]


def spendings(*sessions: Session) -> tuple[Spending, ...]:
    """What the calls of these sessions used, as far as their logs say; calls in flight are not over and not counted
    as answered: they have no usage, and no cost that is known."""
    lines: Lines = {}
    for session in sessions:
        _fold(session, lines)
    return _listed(lines)


def merged(parts: Iterable[Spending]) -> tuple[Spending, ...]:
    """One line for each purpose and model, sorted."""
    lines: Lines = {}
    for part in parts:
        line = lines.setdefault((part.purpose, part.what), _Line())
        line.calls += part.calls
        line.tokens = line.tokens + part.tokens
        line.cost += part.cost
        line.unpriced += part.unpriced
        line.estimated += part.estimated
    return _listed(lines)


def spent(parts: Iterable[Spending]) -> Spent:
    """The same as an account counts it."""
    total = Spent()
    for part in parts:
        tokens = (part.tokens.total or 0) + part.estimated
        total += Spent(tokens, Money(part.cost), part.calls, part.unpriced)
    return total


def _listed(lines: Lines) -> tuple[Spending, ...]:
    return tuple(
        Spending(
            purpose=purpose,
            what=what,
            calls=line.calls,
            tokens=line.tokens,
            cost=line.cost,
            unpriced=line.unpriced,
            estimated=line.estimated,
        )
        for (purpose, what), line in sorted(lines.items())
    )


def _fold(session: Session, lines: Lines) -> None:
    open_: RequestSent | None = None
    for event in _events(session):
        match event:
            case RequestSent():
                _unanswered(open_, lines)
                open_ = event
            case AssistantSaid() | RequestEnded() if open_ is not None:
                line = lines.setdefault((open_.purpose, open_.model), _Line())
                if _not_billed(event):
                    line.add(1, None, 0)
                else:
                    line.add(1, event.usage, event.cost, _estimate(open_, event))
                open_ = None
            case Charged():
                line = lines.setdefault((event.purpose, event.what), _Line())
                line.add(event.calls, event.usage, event.cost)
            case _:
                pass
    _unanswered(open_, lines)


def _events(session: Session) -> Iterator[Event]:
    for logged in session.since(session.lifecycle_start):
        kind = _COUNTED.get(logged.type)
        if kind is not None:
            with suppress(EventUndecodable):
                yield logged.as_(kind)


def _unanswered(sent: RequestSent | None, lines: Lines) -> None:
    """A call that was cut off: what it cost nobody knows."""
    if sent is not None:
        lines.setdefault((sent.purpose, sent.model), _Line()).add(1, None, None, sent.tokens or 0)


def _not_billed(ended: AssistantSaid | RequestEnded) -> bool:
    """Whether the provider turned the call away."""
    if isinstance(ended, AssistantSaid) or ended.failure is None:
        return False
    return ended.usage is None and ended.cost is None and ended.failure.code in _TURNED_AWAY


def _estimate(sent: RequestSent, ended: AssistantSaid | RequestEnded) -> int:
    """What is held against the budget where nothing was reported: a call that said nothing may not have been billed."""
    if isinstance(ended, RequestEnded):
        return 0
    return (sent.tokens or 0) + text_tokens(ended.message.text)


class UsageCount:
    """Calls, tokens and cost so far. A role that is counted again is counted once."""

    def __init__(self) -> None:
        self._by_role: dict[str, tuple[Spending, ...]] = {}

    def settled(self, ended: RoleEnded) -> None:
        """Count what a role used that ended before."""
        self._by_role[ended.child] = ended.by or _of_earlier_versions(ended)

    def count(self, child: str, sessions: Iterable[Session]) -> tuple[Spending, ...]:
        """Count a role by its own log and those of its children, in the place of what was counted for it before."""
        self._by_role[child] = spendings(*sessions)
        return self._by_role[child]

    def of(self, child: str) -> tuple[Spending, ...]:
        """What a role used."""
        return self._by_role.get(child, ())

    @property
    def by(self) -> tuple[Spending, ...]:
        """All of it, by purpose and model."""
        return merged(line for lines in self._by_role.values() for line in lines)

    @property
    def spent(self) -> Spent:
        """All of it, as an account counts it."""
        return spent(self.by)

    @property
    def calls(self) -> int:
        return sum(line.calls for line in self.by)

    @property
    def tokens(self) -> Usage:
        return sum((line.tokens for line in self.by), Usage())

    def usage(self, wall_s: float) -> RunUsage:
        """All of it, as the end of a run tells it."""
        by = self.by
        known = dollars(Money(sum(line.cost for line in by)))
        complete = not any(line.unpriced for line in by)
        return RunUsage(
            calls=self.calls,
            tokens=self.tokens,
            cost=known if complete else None,
            currency=CURRENCY if complete or known else None,
            wall_s=wall_s,
            cost_at_least=None if complete or not known else known,
            by=by,
        )


def _of_earlier_versions(ended: RoleEnded) -> tuple[Spending, ...]:
    if not ended.calls:
        return ()
    purpose = next((one for one in (PLANNING, UNIT, SYNTHESIS) if ended.key.startswith(one)), ended.key)
    return (Spending(purpose=purpose, what="", calls=ended.calls, tokens=ended.tokens, unpriced=ended.calls),)
