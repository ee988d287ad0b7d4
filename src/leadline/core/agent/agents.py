"""Creates agents, keeps the live ones, opens those of earlier processes again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import CancelScope

from leadline.core.agent.agent import Agent
from leadline.core.agent.driver import Driver
from leadline.core.agent.errors import UnknownAgent
from leadline.core.agent.inbox import Queue
from leadline.core.agent.signals import AgentCreated, AgentDisposed
from leadline.core.agent.spec import AgentSpec
from leadline.core.clock import Clock
from leadline.core.ids import Ids
from leadline.core.llm.adapter import Models
from leadline.core.llm.request import ModelRef
from leadline.core.prompt.sections import PERSONA_ORDER, PromptSections
from leadline.core.session.codec import Header
from leadline.core.session.events import RequestHeader, TurnEnd
from leadline.core.session.seeds import seed_lines
from leadline.core.session.store import SessionStore
from leadline.core.spend.account import Account
from leadline.core.tools.registry import ToolRegistry
from leadline.kernel.context import Context
from leadline.kernel.scope import Scope
from leadline.kernel.services import Service

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from leadline.core.session.log import Session
    from leadline.kernel.context import SubContext


class Agents(Service, key="agents"):
    """The live agents, by the id of their session."""

    def __init__(self, ctx: Context) -> None:
        """`ctx` owns agents that are created without an owner of their own."""
        self._ctx = ctx
        self._live: dict[str, Agent] = {}

    def __len__(self) -> int:
        return len(self._live)

    @property
    def live(self) -> tuple[Agent, ...]:
        """The live agents, in the order in which they were created."""
        return tuple(self._live.values())

    def get(self, agent_id: str) -> Agent:
        """The live agent of that id.

        Raises:
            UnknownAgent: there is none.
        """
        found = self._live.get(agent_id)
        if found is None:
            raise UnknownAgent(agent_id)
        return found

    def find(self, agent_id: str) -> Agent | None:
        """The live agent of that id, or None."""
        return self._live.get(agent_id)

    async def create(self, spec: AgentSpec, *, owner: Context | None = None) -> Agent:
        """A new agent on a new session, live when this returns.

        It belongs to its parent, else to `owner`, else to the agents plugin, and is disposed with
        it. `spec.setup` has run before anyone can see it.

        Raises:
            Exception: whatever failed, `spec.setup` included. All is undone and nothing was seen.
        """
        spec = _completed(spec)

        async def start() -> Session:
            header = self._header(spec)
            store = self._ctx.get(SessionStore)
            if spec.seed is not None:
                return await store.create(header, seed_lines(spec.seed, header.created))
            if not spec.seed_turns or spec.parent is None:
                return await store.create(header)
            source = spec.parent.session
            last = max((line.seq for line, _ in source.logged_of(TurnEnd)), default=None)
            if last is None:
                return await store.create(header, ())
            return await store.fork(source, header, last)

        return await self._publish(spec, start, owner, fresh=True)

    async def resume(
        self, session_id: str, spec: AgentSpec | None = None, *, owner: Context | None = None
    ) -> Agent:
        """The agent of a session that has no live one, with the prompts that were waiting in it.

        It is idle. `proceed` goes on with a turn in which its process died, or that was broken off, where that
        happened: what is in the log is a fact and not asked or done again. `wake` and `send` set it to work on what
        waits; a turn that is open is closed as interrupted then. The model is that of `spec`, else the last one the session asked.

        Raises:
            SessionNotFound, SessionLocked, SessionNotContinuable, ...: as `SessionStore.open`.
            Exception: whatever failed in `spec.setup`; all is undone.
        """
        spec = _completed(spec or AgentSpec())

        async def start() -> Session:
            return await self._ctx.get(SessionStore).open(session_id, repair=False)

        return await self._publish(spec, start, owner, fresh=False)

    async def dispose_all(self) -> None:
        """Dispose every live agent, the youngest first, so that children end before their parents."""
        while self._live:
            await self._live[next(reversed(self._live))].dispose()

    async def _publish(
        self,
        spec: AgentSpec,
        start: Callable[[], Awaitable[Session]],
        owner: Context | None,
        *,
        fresh: bool,
    ) -> Agent:
        above = spec.parent.ctx if spec.parent else owner or self._ctx
        above.check_open("an agent")
        session = await start()
        try:
            home = above.subcontext(f"agent {session.id}", Scope(above.scope, f"agent {session.id}"))
        except BaseException:
            await self._undone(session, fresh=fresh)
            raise
        home.defer("session", session.close)
        try:
            agent = self._made(spec, session, home)
            if spec.setup is not None:
                await spec.setup(agent)
            home.check_open("publication")
        except BaseException:
            await home.dispose()
            await self._undone(session, fresh=fresh)
            raise
        self._live[agent.id] = agent
        agent.ctx.notice(AgentCreated(agent))
        return agent

    async def _undone(self, session: Session, *, fresh: bool) -> None:
        """Leave nothing of a session that no agent was made for."""
        with CancelScope(shield=True):
            await session.close()
            if fresh:
                await self._ctx.get(SessionStore).delete(session.id)

    def _made(self, spec: AgentSpec, session: Session, home: SubContext) -> Agent:
        """The agent with all that its spec registers; dispose undoes it in the reverse order."""
        model = spec.model or _last_model(session, spec.parent) or (spec.parent and spec.parent.model)
        _, chosen = self._ctx.get(Models).resolve(model)
        home.defer("publication", lambda: self._unpublish(session.id, home))
        ctx = home.subcontext("own")
        agent = Agent(
            session=session,
            spec=spec,
            model=chosen,
            queue=Queue.of(session),
            home=home,
            ctx=ctx,
            driver=self._ctx.get(Driver),
            ids=self._ctx.get(Ids),
            account=spec.account or self._account(session, spec.parent),
            group=spec.parent.group if spec.parent else session.id,
        )
        agent.last_turn_end = _last_turn_end(session)
        home.defer("turn", agent.quiesce)
        session.notice = ctx.notice
        if spec.tools_allow is not None:
            self._ctx.get(ToolRegistry).restrict(ctx, allow=spec.tools_allow)
        if spec.persona:
            self._ctx.get(PromptSections).section(ctx, "persona", PERSONA_ORDER, spec.persona)
        return agent

    def _account(self, session: Session, parent: Agent | None) -> Account:
        above = parent.account if parent else None
        return Account(f"agent {session.id}", parent=above, clock=self._ctx.get(Clock).monotonic)

    def _unpublish(self, agent_id: str, home: SubContext) -> None:
        agent = self._live.pop(agent_id, None)
        if agent is not None:
            home.notice(AgentDisposed(agent))

    def _header(self, spec: AgentSpec) -> Header:
        parent = spec.parent
        return Header(
            id=self._ctx.get(Ids).new("s"),
            kind=spec.kind,
            created=self._ctx.get(Clock).now(),
            parent=parent.id if parent else None,
            depth=parent.depth + 1 if parent else 0,
            cwd=spec.cwd,
            label=spec.label,
        )


def _completed(spec: AgentSpec) -> AgentSpec:
    if spec.cwd:
        return spec
    return replace(spec, cwd=spec.parent.session.header.cwd if spec.parent else _here())


def _here() -> str:
    """The process's working folder; empty where it was removed."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return ""


def _last_turn_end(session: Session) -> TurnEnd | None:
    """How the agent's latest turn ended; those in a seed were another agent's."""
    ends = [*session.of(TurnEnd, session.lifecycle_start)]
    return ends[-1] if ends else None


def _last_model(session: Session, parent: Agent | None) -> ModelRef | None:
    """The model that the session asked last. What a child copied of its parent's turns was asked by the parent."""
    own = session.of(RequestHeader, session.lifecycle_start if parent else 0)
    header = next(reversed([*own]), None)
    return header.config.model if header else None
