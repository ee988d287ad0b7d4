"""`Leadline` for programs without an event loop: the same calls, each returning when it is done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, Unpack, overload

from anyio.from_thread import BlockingPortal, start_blocking_portal

from leadline.apps.sdk.app import AgentReply, Leadline, NotRunning
from leadline.apps.sdk.options import BudgetOptions, ResearchOptions
from leadline.apps.sdk.sync_sessions import SyncSessions
from leadline.core.tools.spec import ANY_EFFECT, SideEffect

if TYPE_CHECKING:
    from leadline.apps.sdk.windows import WindowView
    from leadline.core.session.events import WindowChanged
    from leadline.research.replay.replay import Replayed
    from leadline.research.report.result import ResearchResult

F = TypeVar("F", bound=Callable[..., object])


class SyncLeadline:
    """`with SyncLeadline() as app: app.research(...)`. Takes what `Leadline` takes."""

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
        self._app = Leadline(
            profile=profile, patches=patches, model=model, base_url=base_url, home=home, corpus=corpus
        )
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._portal = stack.enter_context(start_blocking_portal())
            stack.enter_context(self._portal.wrap_async_context_manager(self._app))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._portal = None
        self._stack.__exit__(kind, error, trace)

    @overload
    def tool(self, function: F) -> F: ...
    @overload
    def tool(self, *, side_effects: Collection[SideEffect]) -> Callable[[F], F]: ...
    def tool(
        self, function: F | None = None, *, side_effects: Collection[SideEffect] = ANY_EFFECT
    ) -> F | Callable[[F], F]:
        """As `Leadline.tool`."""

        def add(function: F) -> F:
            register = self._app.tool(side_effects=side_effects)
            return register(function) if self._portal is None else self._portal.call(register, function)

        return add if function is None else add(function)

    def research(
        self,
        question: str,
        *,
        corpus: Sequence[str | Path] = (),
        bundle: str | Path | None = None,
        **options: Unpack[ResearchOptions],
    ) -> ResearchResult:
        """As `Leadline.research`."""
        return self._running.call(
            lambda: self._app.research(question, corpus=corpus, bundle=bundle, **options)
        )

    def resume_research(
        self,
        run_id: str,
        *,
        corpus: Sequence[str | Path] = (),
        bundle: str | Path | None = None,
        **budget: Unpack[BudgetOptions],
    ) -> ResearchResult:
        """As `Leadline.resume_research`, to the end: returns the result.

        Args:
            run_id: its id, or the beginning of it.
            corpus: where the corpus is now; empty: where it was.
            bundle: where to write the run as one file, if anywhere.
            budget: ceilings from now on.
        """

        async def resume() -> ResearchResult:
            from leadline.research.request import writable

            target = None if bundle is None else writable("bundle", bundle)
            run = await self._app.resume_research(run_id, corpus=corpus, **budget)
            try:
                result = await run.result()
            finally:
                await run.dispose()
            if target is not None:
                (await self._app.stored(run.id)).write_bundle(target)
            return result

        return self._running.call(resume)

    def replay(
        self,
        run_id: str,
        *,
        model: str | None = None,
        roles: Collection[str] = (),
        method: str | None = None,
        checks: Collection[str] = (),
    ) -> Replayed:
        """As `Leadline.replay`."""
        return self._running.call(
            lambda: self._app.replay(run_id, model=model, roles=roles, method=method, checks=checks)
        )

    def agent(
        self, task: str, *, model: str | None = None, persona: str = "", **budget: Unpack[BudgetOptions]
    ) -> AgentReply:
        """As `Leadline.agent`."""
        return self._running.call(lambda: self._app.agent(task, model=model, persona=persona, **budget))

    def context(self, session_id: str) -> WindowView:
        """As `Leadline.context`."""
        return self._running.call(self._app.context, session_id)

    def compact(self, session_id: str) -> WindowChanged:
        """As `Leadline.compact`."""
        return self._running.call(self._app.compact, session_id)

    def undo_compaction(self, session_id: str, seq: int | None = None) -> WindowChanged:
        """As `Leadline.undo_compaction`."""
        return self._running.call(self._app.undo_compaction, session_id, seq)

    @property
    def sessions(self) -> SyncSessions:
        """As `Leadline.sessions`."""
        return SyncSessions(self._app.sessions, self._running)

    @property
    def _running(self) -> BlockingPortal:
        if self._portal is None:
            raise NotRunning
        return self._portal
