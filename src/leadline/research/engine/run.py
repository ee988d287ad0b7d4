"""One run: a question on its way to a report, with everything that was found kept in the run's own log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import anyio

from leadline.capabilities.corpus.seam import Corpus
from leadline.core.agent.agent import Agent
from leadline.core.session.events import Event
from leadline.core.spend.account import Account
from leadline.core.tools.admission import described
from leadline.core.tools.fence import derived_token
from leadline.kernel.context import Context
from leadline.kernel.effects import TaskHandle
from leadline.research.engine.accounts import RunAccounts
from leadline.research.engine.children import Children
from leadline.research.engine.finish import Finisher
from leadline.research.engine.versions import relate
from leadline.research.evidence.record import RunRecord
from leadline.research.evidence.shelf import SourceShelf
from leadline.research.ledger.ledger import Ledger
from leadline.research.methods.seam import Method, MethodResult, RoleAnswer, RoleCall
from leadline.research.report.result import ResearchResult
from leadline.research.request import ResearchRequest
from leadline.research.roles.prompts import Role


@dataclass(frozen=True, kw_only=True)
class RunParts:
    """What the engine put together for a run."""

    request: ResearchRequest
    method: Method
    corpus: Corpus
    coordinator: Agent
    record: RunRecord
    shelf: SourceShelf
    children: Children
    accounts: RunAccounts
    finisher: Finisher
    secret: str
    """What the delimiters of fences are derived from."""
    source_calls: int
    freed: Callable[[ResearchRun], None]
    """Told once the run holds nothing any more."""


class ResearchRun:
    """A run that was started. Follow it with `events`, wait with `result`, end it with `dispose`.

    It is also what a method is given (`leadline.research.methods.seam.Run`).
    """

    def __init__(self, ctx: Context, parts: RunParts) -> None:
        self._ctx = ctx
        self._parts = parts
        self._scope = anyio.CancelScope()
        self._cancelled: str | None = None
        self._settled = anyio.Event()
        self._result: ResearchResult | None = None
        self._defect: BaseException | None = None
        self._company: list[TaskHandle] = []

    def begin(self) -> None:
        """Set the method to work; done once, by the engine."""
        self._ctx.spawn(self._drive, name=f"run {self.id}")

    def accompany(self, task: TaskHandle) -> None:
        """Let a task of the engine end with the run."""
        self._company.append(task)

    @property
    def id(self) -> str:
        """Id of the run, which is the id of its session."""
        return self._parts.record.session.id

    @property
    def account(self) -> Account:
        """What it may spend, and what it has spent so far, with what it spent before it was taken up."""
        return self._parts.accounts.run

    @property
    def shelf(self) -> SourceShelf:
        """Its corpus as sources of its ledger."""
        return self._parts.shelf

    def events(self) -> AsyncIterator[Event]:
        """The facts of the run in order, from the first one, as they come; ends with the run."""
        return self._parts.record.follow()

    async def published(self) -> None:
        """Returns when the first role is at work, or the run is over.

        Raises:
            Exception: the first role could not be started; the run holds nothing then.
        """
        await self._parts.children.first_started(self._settled)
        if self._parts.children.start_error is not None:
            raise self._parts.children.start_error

    async def result(self) -> ResearchResult:
        """The result, whatever became of the run; failure and cancellation are values.

        Raises:
            Exception: the log could not be written; nothing about the run can be relied on then.
        """
        await self._settled.wait()
        if self._result is None:
            raise self._defect or RuntimeError(f"run {self.id} ended without a result")
        return self._result

    async def cancel(self, reason: str = "") -> None:
        """End the run early; returns when nothing of it writes any more.

        What was found is kept. A report that the writer had handed in before is not taken back. Idempotent.
        """
        if self._cancelled is None:
            self._cancelled = reason or "cancelled"
        self._scope.cancel()
        await self._settled.wait()

    async def dispose(self) -> None:
        """Cancel what still runs and free everything that the run holds, even if the caller is cancelled.

        Idempotent; may be tried again.
        """
        with anyio.CancelScope(shield=True):
            if not self._settled.is_set():
                await self.cancel("disposed")
            for task in self._company:
                await task.stop()
            await self._parts.children.dispose()
            await self._parts.coordinator.dispose()
            self._parts.corpus.close()
        self._parts.freed(self)

    async def _drive(self) -> None:
        outcome: MethodResult | None = None
        try:
            with self._scope:
                outcome = await self._parts.method.run(self)
        except Exception as defect:  # noqa: BLE001 - a method that breaks ends its run, with what was found; reported
            self._ctx.report(defect, f"run {self.id}")
            outcome = MethodResult(status="failed", error=described(defect))
        finally:
            self._settle(outcome)
            with anyio.CancelScope(shield=True):
                await self._parts.record.sync()
                self._settled.set()

    def _settle(self, outcome: MethodResult | None) -> None:
        if outcome is None and self._cancelled is None:
            self._cancelled = "the program ended"
        try:
            self._result = self._parts.finisher.finish(outcome, cancelled=self._cancelled)
        except Exception as defect:  # noqa: BLE001 - told to whoever awaits the result
            self._ctx.report(defect, f"run {self.id}")
            self._defect = defect
        self._parts.record.close()

    # --- what a method uses ---

    @property
    def request(self) -> ResearchRequest:
        return self._parts.request

    @property
    def ledger(self) -> Ledger:
        return self._parts.record.ledger

    @property
    def corpus_names(self) -> tuple[str, ...]:
        return self._parts.corpus.roots

    @property
    def source_calls(self) -> int:
        return self._parts.source_calls

    def window(self, role: Role) -> int | None:
        """See `leadline.research.methods.seam.Run`; what it was when the run began."""
        started = self.ledger.started
        return None if started is None else started.windows.get(role)

    def append(self, event: Event) -> None:
        self._parts.record.append(event)

    def relate_versions(self) -> None:
        relate(self._parts.corpus, self._parts.record)

    def token(self, label: str) -> str:
        return derived_token(self._parts.secret, label)

    async def ask(self, call: RoleCall) -> RoleAnswer:
        return await self._parts.children.ask(call)
