"""`Leadline`: the whole program as one object, for other programs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, Unpack, overload

from anyio import CancelScope

from leadline.apps.sdk.composition import Options, composed
from leadline.apps.sdk.options import BudgetOptions, ResearchOptions
from leadline.apps.sdk.sessions import Sessions
from leadline.core.clock import Clock
from leadline.core.llm.request import ModelRef
from leadline.core.session.blobs import Blobs
from leadline.core.session.events import AssistantSaid, TurnEnd
from leadline.core.session.store import SessionStore
from leadline.core.tools.registry import ToolRegistry
from leadline.core.tools.spec import ANY_EFFECT, SideEffect, Tool
from leadline.kernel.context import Context, Kernel
from leadline.kernel.errors import ConfigError, LeadlineError
from leadline.kernel.loader.reconcile import boot
from leadline.kernel.plugin import Plugin

if TYPE_CHECKING:
    from leadline.apps.sdk.windows import WindowView
    from leadline.capabilities.corpus.seam import Progress
    from leadline.core.agent.agent import Agent
    from leadline.core.session.events import WindowChanged
    from leadline.core.session.log import Session
    from leadline.core.spend.account import Account
    from leadline.research.engine.run import ResearchRun
    from leadline.research.events import RunBudget
    from leadline.research.replay.replay import Replayed
    from leadline.research.report.result import ResearchResult
    from leadline.research.stored import StoredRun

F = TypeVar("F", bound=Callable[..., object])


class NotRunning(LeadlineError):
    """The object was used outside of its `async with` block."""

    def __init__(self) -> None:
        super().__init__("Leadline is not running; use it inside `async with Leadline() as app:`")


class NothingToResume(LeadlineError):
    """An agent was to go on, but its last turn ended and nothing waits in its inbox."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"session {session_id}: its last turn ended and nothing is waiting; "
            f'give it something to do: leadline resume {session_id} "TASK"'
        )


class MadeForAnother(LeadlineError):
    """A session was to go on by itself that a run or an agent made for work of its own, with its own tools."""

    def __init__(self, session_id: str, parent: str) -> None:
        super().__init__(
            f"session {session_id} is a part of {parent}, which goes on with it: leadline resume {parent}; "
            f"to talk to it apart from that: leadline sessions fork {session_id}"
        )


@dataclass(frozen=True, kw_only=True)
class AgentReply:
    """What one turn of an agent came to."""

    text: str
    """The agent's last words."""
    session: str
    """Id of the log, for `leadline show`."""
    end: TurnEnd
    """How the turn ended."""

    @property
    def completed(self) -> bool:
        return self.end.reason == "completed"


class Leadline:
    """A running composition: `async with Leadline() as app: await app.research(...)`.

    Everything that is started through it has ended when the block is left.
    """

    def __init__(
        self,
        *,
        profile: str | Path = "research",
        patches: Sequence[Path] = (),
        model: str | None = None,
        base_url: str | None = None,
        home: Path | None = None,
        corpus: Sequence[str | Path] = (),
    ) -> None:
        """Nothing is read or started before the block is entered.

        Args:
            profile: a shipped profile (`base`, `headless`, `research`) or a YAML file of rows.
            patches: YAML patches over it, in order.
            model: `provider/name`; without it the default model, which is the embedded one where none was set.
            base_url: an OpenAI-compatible server for the provider of `model`.
            home: data directory; without it `LEADLINE_HOME`, else `~/.leadline`.
            corpus: what the tool `deep_research` of agents may search.
        """
        if isinstance(corpus, str | Path):
            raise ConfigError(f"corpus is one path, not a list of paths; write corpus=[{str(corpus)!r}]")
        self._options = Options(
            profile=profile,
            patches=tuple(patches),
            model=model,
            base_url=base_url,
            home=home,
            corpus=tuple(Path(path) for path in corpus),
        )
        self._tools: list[Tool] = []
        self._stack = AsyncExitStack()
        self._ctx: Context | None = None
        self._tools_ctx: Context | None = None

    @property
    def ctx(self) -> Context:
        """The root context, for plugins and services.

        Raises:
            NotRunning: outside of the block.
        """
        if self._ctx is None:
            raise NotRunning
        return self._ctx

    @overload
    def tool(self, function: F) -> F: ...
    @overload
    def tool(self, *, side_effects: Collection[SideEffect]) -> Callable[[F], F]: ...
    def tool(
        self, function: F | None = None, *, side_effects: Collection[SideEffect] = ANY_EFFECT
    ) -> F | Callable[[F], F]:
        """Give agents a function as a tool; usable as a decorator, before the block is entered or within.

        Its name, typed signature and docstring are what a model reads. `side_effects` says what it does to the
        world: any of `reads`, `writes` and `network`. A call that a kill cut off is made again only where that
        is none of it or `reads`; what nobody said is taken to be all of it.

        Raises:
            BadToolSpec: the signature or the docstring does not do.
            DuplicateName: there is a tool of that name.
        """
        if function is None:
            return partial(self._add_tool, side_effects)
        return self._add_tool(side_effects, function)

    def _add_tool(self, side_effects: Collection[SideEffect], function: F) -> F:
        from leadline.core.tools.function import tool_from_function

        tool = tool_from_function(function, side_effects=frozenset(side_effects))
        if self._tools_ctx is not None:
            self._tools_ctx.get(ToolRegistry).register(self._tools_ctx, tool)
        self._tools.append(tool)
        return function

    async def __aenter__(self) -> Self:
        """Boot.

        Raises:
            ConfigError: the composition cannot be used; with file and line.
            BootFailed: a plugin did not start; with its deepest cause.
        """
        composition = composed(self._options)
        async with AsyncExitStack() as stack:
            kernel = await stack.enter_async_context(Kernel())
            await boot(kernel.root, composition)
            await kernel.root.mount(Plugin("program", self._register_tools, needs=(ToolRegistry,)))
            self._ctx = kernel.root
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ctx = self._tools_ctx = None
        await self._stack.__aexit__(kind, error, trace)

    async def _register_tools(self, ctx: Context, config: None) -> None:
        for tool in self._tools:
            ctx.get(ToolRegistry).register(ctx, tool)
        self._tools_ctx = ctx

    async def research(
        self,
        question: str,
        *,
        corpus: Sequence[str | Path] = (),
        bundle: str | Path | None = None,
        **options: Unpack[ResearchOptions],
    ) -> ResearchResult:
        """Research a question and return the result, whatever became of it.

        Args:
            question: what you want to know.
            corpus: files and folders to search.
            bundle: where to write the run as one file, if anywhere.
            options: as `ResearchOptions`.

        Raises:
            as `start_research`.
        """
        from leadline.research.request import writable

        target = None if bundle is None else writable("bundle", bundle)
        run = await self.start_research(question, corpus=corpus, **options)
        try:
            result = await run.result()
        finally:
            await run.dispose()
        if target is not None:
            (await self.stored(run.id)).write_bundle(target)
        return result

    async def start_research(
        self, question: str, *, corpus: Sequence[str | Path] = (), **options: Unpack[ResearchOptions]
    ) -> ResearchRun:
        """Start a run. Follow it with `events()`, wait with `result()`, and always `dispose()` of it.

        Raises:
            RequestRefused: the request cannot be run; names the field, the cause and the next step.
            LeadlineError: a model, method or path that is not there. Nothing was started.
        """
        from leadline.research.engine.engine import Execution, ResearchEngine
        from leadline.research.request import checked

        model = options.get("model")
        request = checked(
            question,
            corpus=corpus,
            method=options.get("method"),
            breadth=options.get("breadth"),
            format=options.get("format"),
            language=options.get("language"),
            purpose=options.get("purpose"),
            context=options.get("context"),
            model=ModelRef.parse(model) if model else None,
            budget=run_budget(options),
        )
        execution = Execution(progress=options.get("progress"), base_url=_address(self._options.base_url))
        return await self.ctx.get(ResearchEngine).start(request, execution)

    async def resume_research(
        self,
        run_id: str,
        *,
        corpus: Sequence[str | Path] = (),
        progress: Progress | None = None,
        **budget: Unpack[BudgetOptions],
    ) -> ResearchRun:
        """Go on with a run that was interrupted, cancelled or failed; use it as one of `start_research`.

        What its log has is not asked again. Model calls that were in flight are sent again under the same
        idempotency key; `run.ledger.resumed[-1].in_flight` lists them.

        Args:
            run_id: its id, or the beginning of it.
            corpus: where the corpus is now; empty: where it was.
            progress: told how far reading the corpus has got.
            budget: ceilings from now on, on all that the run uses, what it used before included; one that is absent
                stays as it was.

        Raises:
            SessionNotFound, AmbiguousId, NotResumable: there is nothing to go on with, or the ceiling that ended
                it was not raised.
            RequestRefused: a ceiling is none.
            SessionLocked: another process is at work on it.
            LeadlineError: its model, method or corpus is not there. Nothing was started.
        """
        from leadline.research.engine.engine import Execution, ResearchEngine
        from leadline.research.request import checked_budget, existing

        ceilings = checked_budget(run_budget(budget))
        found = await self.sessions.resolve(run_id)
        execution = Execution(
            progress=progress, paths=tuple(existing(path) for path in corpus), budget=ceilings
        )
        return await self.ctx.get(ResearchEngine).resume(found, execution)

    async def replay(
        self,
        run_id: str,
        *,
        model: str | None = None,
        roles: Collection[str] = (),
        method: str | None = None,
        checks: Collection[str] = (),
    ) -> Replayed:
        """Run it again from its own recorded answers and sources, and say what differs; the beginning of its id does.

        Without further arguments nothing leaves the machine and nothing is stored. With them a new run is stored.

        Args:
            run_id: a run that ended.
            model: `provider/name` of a model that is asked instead of playing what was recorded.
            roles: whom it answers for (`planner`, `researcher`, `writer`); default: all.
            method: another way of doing the research; what it asks beyond the recording goes to the model.
            checks: names of the checks that judge the sentences; default: all.

        Raises:
            SessionNotFound, AmbiguousId, NotARun: there is no run of that id, or several begin with it.
            NotReplayable, SourcesLost: it has not ended, or texts that it rests on are gone.
            LeadlineError: a model, method or check that is not there. Nothing was started.
        """
        from leadline.apps.sdk.replaying import replay
        from leadline.research.replay.replay import WhatIf

        what_if = WhatIf(
            model=ModelRef.parse(model) if model else None,
            roles=tuple(roles),
            method=method,
            checks=tuple(checks),
        )
        return await replay(self.ctx, self._options, await self.sessions.resolve(run_id), what_if)

    async def agent(
        self, task: str, *, model: str | None = None, persona: str = "", **budget: Unpack[BudgetOptions]
    ) -> AgentReply:
        """Run one agent for one turn, with the tools of the composition.

        Args:
            task: what it should do.
            model: `provider/name`; default: that of the composition.
            persona: who the agent is, for the model.
            budget: ceilings on all that the turn uses, what it has others do included.

        Raises:
            LeadlineError: the model is not there, or the session cannot be written.
        """
        async with self.open_agent(model=model, persona=persona, label=task, **budget) as agent:
            return await take_turn(agent, task)

    @asynccontextmanager
    async def open_agent(
        self,
        *,
        model: str | None = None,
        persona: str = "",
        label: str = "",
        resume: str | None = None,
        **budget: Unpack[BudgetOptions],
    ) -> AsyncGenerator[Agent]:
        """An agent for as many turns as you like (`take_turn`); it is freed when the block is left.

        Args:
            model: `provider/name`; default: that of the composition.
            persona: who the agent is, for the model.
            label: what lists of sessions show.
            resume: id of a session to go on with (`take_turn`, or `go_on` with a turn that was cut off).
            budget: ceilings on all that it does until the block is left, what it has others do included; the time
                is that of each turn.

        Raises:
            SessionNotFound, SessionLocked, SessionNotContinuable: the session to go on with cannot be.
            MadeForAnother: it is work of a run or of another agent, which goes on with it.
            RequestRefused: a ceiling is none, or it is one on cost and nobody knows the price of the model.
            LeadlineError: the model is not there, or the session cannot be written.
        """
        from leadline.core.agent.agents import Agents
        from leadline.core.agent.spec import AgentSpec, TurnBudget

        chosen = ModelRef.parse(model) if model else None
        spec = AgentSpec(
            model=chosen,
            persona=persona,
            label=label,
            account=self._account(chosen, budget),
            budget=TurnBudget(max_seconds=budget.get("max_seconds")),
        )
        agents = self.ctx.get(Agents)
        found = await self._own(resume) if resume else None
        agent = await (agents.resume(found, spec) if found else agents.create(spec))
        try:
            yield agent
        finally:
            with CancelScope(shield=True):
                await agent.dispose()

    def _account(self, model: ModelRef | None, budget: BudgetOptions) -> Account | None:
        """An account with these ceilings; None where there are none."""
        if not any(budget.values()):
            return None
        from leadline.core.llm.adapter import Models
        from leadline.core.spend.account import Account, Ceilings
        from leadline.core.spend.meter import Meter
        from leadline.core.spend.money import money
        from leadline.research.engine.accounts import check_prices
        from leadline.research.request import checked_budget

        wanted = checked_budget(run_budget(budget))
        _, asked = self.ctx.get(Models).resolve(model)
        check_prices(self.ctx.get(Meter), wanted.cost, (str(asked),))
        cost = None if wanted.cost is None else money(wanted.cost)
        return Account(
            "the turn",
            Ceilings(wanted.tokens, cost, wanted.calls),
            clock=self.ctx.get(Clock).monotonic,
        )

    async def _own(self, session_id: str) -> str:
        """The id of a session that a person may go on with."""
        session = await self.sessions.read(session_id)
        if session.header.depth and session.header.parent is not None:
            raise MadeForAnother(session.id, session.header.parent)
        return session.id

    @property
    def sessions(self) -> Sessions:
        """All that is stored: lists, searches, forks, exports, deletes.

        Raises:
            NotRunning: outside of the block.
        """
        return Sessions(self.ctx)

    async def stored(self, run_id: str) -> StoredRun:
        """A run from the store, to render it or to write it into a bundle; the beginning of its id does.

        Raises:
            SessionNotFound, AmbiguousId, NotARun: there is no run of that id, or several begin with it.
        """
        from leadline.research.stored import load_run

        found = await self.sessions.resolve(run_id)
        return await load_run(self.ctx.get(SessionStore), self.ctx.get(Blobs), found)

    async def context(self, session_id: str) -> WindowView:
        """What fills the window of a session's next request, and those of the sessions below it; the beginning of its id does.

        Works on sessions and runs in any state, also while somebody writes them.

        Raises:
            SessionNotFound, AmbiguousId: there is none of that id, or several begin with it.
        """
        from leadline.apps.sdk.windows import window_view

        return await window_view(self.ctx, await self.sessions.resolve(session_id))

    async def compact(self, session_id: str) -> WindowChanged:
        """Put a summary in the place of the older part of what the model of an agent's session sees. The log keeps it all.

        Raises:
            NotCompacted: there is too little to summarise, or the summary did not come; nothing has changed.
            as `open_agent` with `resume`.
        """
        from leadline.apps.sdk.windows import compacted

        async with self.open_agent(resume=session_id) as agent:
            return await compacted(self.ctx, agent)

    async def undo_compaction(self, session_id: str, seq: int | None = None) -> WindowChanged:
        """Let the model of an agent's session see again what the change of that number hid; None: the latest one.

        Raises:
            WindowError: there is no such change, or it counts no more.
            as `open_agent` with `resume`.
        """
        from leadline.window.window import Window

        async with self.open_agent(resume=session_id) as agent:
            return self.ctx.get(Window).undo(agent.session, seq)

    async def session(self, session_id: str) -> Session:
        """A session from the store, for reading; the beginning of its id does.

        Raises:
            SessionNotFound, AmbiguousId: there is none of that id, or several begin with it.
        """
        return await self.sessions.read(session_id)


def _address(base_url: str | None) -> str:
    """An address as it may be written down: none that has a name and a password in it."""
    return base_url if base_url and "@" not in base_url else ""


def run_budget(options: BudgetOptions) -> RunBudget:
    """The ceilings as a run has them."""
    from leadline.research.events import RunBudget

    return RunBudget(
        tokens=options.get("max_tokens"),
        cost=options.get("max_cost"),
        calls=options.get("max_calls"),
        seconds=options.get("max_seconds"),
        keep=options.get("keep"),
    )


async def take_turn(agent: Agent, task: str) -> AgentReply:
    """Give an agent a task and wait until it rests.

    Raises:
        LeadlineError: the agent is gone, or its log cannot be written.
    """
    before = len(agent.session)
    agent.followup(task)
    return await _reply(agent, before)


async def go_on(agent: Agent) -> AgentReply:
    """Let an agent that was taken up go on with the turn that was cut off, and with what waits in its inbox.

    Raises:
        NothingToResume: no turn was cut off and nothing waits.
        LeadlineError: as `take_turn`.
    """
    end = agent.last_turn_end
    if not agent.session.place.turn_open and not agent.inbox.waiting("turn") and _ended_well(end):
        raise NothingToResume(agent.id)
    before = len(agent.session)
    agent.proceed()
    return await _reply(agent, before)


def _ended_well(end: TurnEnd | None) -> bool:
    return end is None or end.reason in ("completed", "refusal", "blocked")


async def _reply(agent: Agent, before: int) -> AgentReply:
    """What the agent comes to from event `before` on."""
    await agent.when_idle()
    end = agent.last_turn_end
    if end is None:
        raise LeadlineError(f"agent {agent.id} ended without a turn; see: leadline show {agent.id}")
    said = [one.as_(AssistantSaid) for one in agent.session.since(before) if one.type == AssistantSaid.TYPE]
    words = [one.message.text for one in said if one.message.text.strip()]
    return AgentReply(text=words[-1] if words else "", session=agent.id, end=end)
