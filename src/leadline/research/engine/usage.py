"""What a run used: by purpose and model, over the logs of its roles and of all that they started."""

from __future__ import annotations

from collections.abc import Iterable

from leadline.core.llm.usage import Usage
from leadline.core.session.log import Session
from leadline.core.session.spending import Spending, merged, session_spending, total
from leadline.core.spend.account import Spent
from leadline.core.spend.money import dollars
from leadline.research.events import RoleEnded, RunUsage
from leadline.research.roles.purposes import PLANNING, SYNTHESIS, UNIT

CURRENCY = "USD"


class UsageCount:
    """Calls, tokens and cost so far. A role that is counted again is counted once."""

    def __init__(self) -> None:
        self._by_role: dict[str, tuple[Spending, ...]] = {}

    def settled(self, ended: RoleEnded) -> None:
        """Count what a role used that ended before."""
        self._by_role[ended.child] = ended.by or _of_earlier_versions(ended)

    def count(self, child: str, sessions: Iterable[Session]) -> tuple[Spending, ...]:
        """Count a role by its own log and those of its children, in the place of what was counted for it before."""
        self._by_role[child] = session_spending(*sessions)
        return self._by_role[child]

    def of(self, child: str) -> tuple[Spending, ...]:
        """What a role used."""
        return self._by_role.get(child, ())

    @property
    def by(self) -> tuple[Spending, ...]:
        """All of it, by purpose and model."""
        return merged(row for rows in self._by_role.values() for row in rows)

    @property
    def spent(self) -> Spent:
        """All of it, as an account counts it."""
        return total(self.by).spent

    @property
    def calls(self) -> int:
        return total(self.by).calls

    @property
    def tokens(self) -> Usage:
        return total(self.by).tokens

    def usage(self, wall_s: float) -> RunUsage:
        """All of it, as the end of a run tells it."""
        by = self.by
        whole = total(by)
        cost = whole.paid
        known = dollars(cost.known)
        return RunUsage(
            calls=whole.calls,
            tokens=whole.tokens,
            cost=known if cost.complete else None,
            currency=CURRENCY if cost.complete or cost.known else None,
            wall_s=wall_s,
            cost_at_least=None if cost.complete or not cost.known else known,
            by=by,
        )


def _of_earlier_versions(ended: RoleEnded) -> tuple[Spending, ...]:
    if not ended.calls:
        return ()
    purpose = next((one for one in (PLANNING, UNIT, SYNTHESIS) if ended.key.startswith(one)), ended.key)
    return (Spending(purpose=purpose, what="", calls=ended.calls, tokens=ended.tokens, unpriced=ended.calls),)
