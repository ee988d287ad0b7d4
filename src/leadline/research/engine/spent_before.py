"""What a run used before it was taken up: read from the logs of its roles, which are all that is believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from leadline.core.session.errors import SessionNotFound, SessionUnreadable
from leadline.core.session.events import Event, WindowChanged
from leadline.core.session.log import Session
from leadline.core.session.spending import total
from leadline.core.session.store import SessionStore
from leadline.core.spend.account import Spent
from leadline.research.engine.role_log import RoleLog
from leadline.research.engine.usage import UsageCount
from leadline.research.events import RoleStarted, UnitStarted


@dataclass(frozen=True)
class SpentBefore:
    """What was used, in all and by unit, with the logs of what worked for roles that are not over."""

    usage: UsageCount = field(default_factory=UsageCount)
    below: Mapping[str, Sequence[Session]] = field(default_factory=dict[str, Sequence[Session]])
    """By role: the logs of what worked for it."""
    by_unit: Mapping[str, Spent] = field(default_factory=dict[str, Spent])


async def spent_before(store: SessionStore, facts: Sequence[Event]) -> SpentBefore:
    """What the log of a run, and those of its roles that were cut off, say that was used."""
    usage, log = UsageCount(), RoleLog.of(facts)
    settled = {ended.child for ended in log.settled}
    for ended in log.settled:
        usage.settled(ended)
    below: dict[str, Sequence[Session]] = {}
    for child in dict.fromkeys(one.child for one in facts if isinstance(one, RoleStarted)):
        if child not in settled:
            below[child] = await _logs(store, child)
            usage.count(child, below[child])
    by_unit: dict[str, Spent] = {}
    children: set[str] = set()
    for fact in facts:
        if isinstance(fact, UnitStarted) and fact.child is not None and fact.child not in children:
            children.add(fact.child)
            by_unit[fact.unit.id] = by_unit.get(fact.unit.id, Spent()) + total(usage.of(fact.child)).spent
    return SpentBefore(usage, below, by_unit)


async def _logs(store: SessionStore, role: str) -> Sequence[Session]:
    """The log of a role and those of what made its window smaller; those that are lost are left out."""
    found: list[Session] = []
    todo = [role]
    while todo:
        try:
            session = await store.read(todo.pop())
        except (SessionNotFound, SessionUnreadable):
            continue
        found.append(session)
        known = {one.id for one in found}
        todo += [one.child for one in session.of(WindowChanged) if one.child and one.child not in known]
    return found
