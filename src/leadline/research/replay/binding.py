"""Which recorded session a live one stands for: by lineage and purpose, never by the order of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.core.loop.thread import purpose_digest
from leadline.research.engine.role_log import RoleLog
from leadline.research.events import RoleStarted
from leadline.research.evidence.record import facts_of

if TYPE_CHECKING:
    from leadline.core.agent.agent import Agent
    from leadline.core.agent.agents import Agents
    from leadline.research.replay.recording import RecordedSession


class Binding:
    """Binds the sessions of live agents to those of one recording, each at most once."""

    def __init__(self, agents: Agents, root: RecordedSession) -> None:
        self._agents = agents
        self._root = root
        self._bound: dict[str, RecordedSession | None] = {}
        self._taken: set[str] = set()
        self._roles: dict[str, RoleLog] = {}
        """By id of a recorded run: how far its attempts at each piece of work are used up."""

    def bind_root(self, session_id: str) -> None:
        """Let the live session of that id stand for the one that was recorded."""
        self._bound[session_id] = self._root
        self._taken.add(self._root.id)

    @property
    def rooted(self) -> bool:
        """Whether something stands for the root yet."""
        return self._root.id in self._taken

    def belongs(self, session_id: str) -> bool:
        """Whether a live session is the root's, or descends from it."""
        while session_id not in self._bound:
            agent = self._agents.find(session_id)
            above = agent.session.header.parent if agent else None
            if above is None:
                return False
            session_id = above
        return True

    def of(self, session_id: str) -> RecordedSession | None:
        """What a live session stands for; None where nothing like it was recorded."""
        if session_id not in self._bound:
            agent = self._agents.find(session_id)
            self._bound[session_id] = self._found(agent) if agent else None
        return self._bound[session_id]

    def _found(self, agent: Agent) -> RecordedSession | None:
        above = agent.session.header.parent
        parent = self.of(above) if above else None
        if above is None or parent is None:
            return None
        found = self._as_role(agent, above, parent) or self._as_alike(agent, parent)
        if found is not None:
            self._taken.add(found.id)
        return found

    def _as_role(self, agent: Agent, above: str, parent: RecordedSession) -> RecordedSession | None:
        """As the attempt at a piece of work that a run says it is."""
        live = self._agents.find(above)
        started = live.session.of(RoleStarted) if live else ()
        key = next((one.key for one in started if one.child == agent.id), None)
        if key is None:
            return None
        roles = self._roles.get(parent.id)
        if roles is None:
            roles = self._roles[parent.id] = RoleLog.of(facts_of(parent.session))
        child = roles.next(key).child
        return next((one for one in parent.children if one.id == child), None)

    def _as_alike(self, agent: Agent, parent: RecordedSession) -> RecordedSession | None:
        """As the oldest that is left of those that were there for the same."""
        purpose = (agent.spec.purpose.name, purpose_digest(agent.spec.purpose))
        kind = agent.session.header.kind
        left = [one for one in parent.children if one.id not in self._taken]
        # One that asked nothing itself, as the coordinator of a run, is known by its kind.
        alike = [
            one for one in left if one.purpose in (purpose, ("", "")) and one.session.header.kind == kind
        ]
        named = [one for one in alike if one.label == agent.session.header.label]
        return next(iter(named or alike), None)
