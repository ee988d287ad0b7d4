"""The roles of one run as child agents: started with what they may use, awaited, and always freed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import anyio

from leadline.core.agent.agent import Agent
from leadline.core.agent.signals import AgentCreated
from leadline.core.agent.spec import TurnBudget
from leadline.core.clock import Clock
from leadline.core.llm.jsonvalue import JsonValue
from leadline.core.llm.request import ModelRef
from leadline.core.session.errors import (
    SessionLocked,
    SessionNotFound,
    SessionUnreadable,
    SessionWriteFailed,
)
from leadline.core.session.events import Event, TurnEnd
from leadline.core.session.log import Session
from leadline.core.session.spending import Spending, total
from leadline.core.session.store import SessionStore
from leadline.core.spend.account import Account
from leadline.core.tools.registry import ToolRegistry
from leadline.core.tools.spec import Tool
from leadline.kernel.errors import LeadlineError
from leadline.orchestration.subagent.outcome import prompt_of
from leadline.orchestration.subagent.seam import SubagentRequest, SubagentResult, SubagentRun, Subagents
from leadline.research.engine.accounts import Reached, RunAccounts
from leadline.research.engine.config import EngineConfig
from leadline.research.engine.role_log import Attempt, RoleLog
from leadline.research.engine.spent_before import SpentBefore
from leadline.research.events import Noted, RoleEnded, RoleStarted, UnitStarted
from leadline.research.evidence.carried import carried
from leadline.research.evidence.governor import SourceGovernor
from leadline.research.evidence.record_evidence import record_evidence_tool, restore_evidence
from leadline.research.evidence.shelf import SourceShelf, UnitSources
from leadline.research.methods.seam import Phase, RoleAnswer, RoleCall
from leadline.research.roles.prompts import persona
from leadline.window.carry import Carry
from leadline.window.spill import RECALL

_UNREACHABLE = frozenset({"AUTH", "MISSING_CREDENTIAL", "QUOTA", "NOT_FOUND", "GAVE_UP"})
"""Failures of a provider that outlast the retries inside a call."""

_PHASES: dict[str, Phase] = {"completed": "completed", "max-tokens": "partial", "aborted": "cancelled"}


class Children:
    """Starts roles for a run. A planner or writer sees `structured_output` alone; a researcher sees its sources too,
    and what reads back what left its window.

    What a role came to is in the log of the run. When a run is taken up, what has an answer there is not asked
    again, and what was cut off goes on in its own session.
    """

    def __init__(
        self,
        subagents: Subagents,
        store: SessionStore,
        coordinator: Agent,
        shelf: SourceShelf,
        source_tools: Callable[[str], tuple[Tool, ...]],
        config: EngineConfig,
        models: Mapping[str, ModelRef],
        accounts: RunAccounts,
        before: SpentBefore,
        clock: Clock,
    ) -> None:
        """`source_tools` makes the tools of one attempt, whose name it is given; `models` are those of single roles;
        `before` is what the run used before it was taken up."""
        self._subagents = subagents
        self._store = store
        self._coordinator = coordinator
        self._shelf = shelf
        self._source_tools = source_tools
        self._config = config
        self._models = models
        self._log = RoleLog.of(shelf.record.facts)
        self._live: set[SubagentRun] = set()
        self._first = anyio.Event()
        self._accounts = accounts
        self._clock = clock
        self.usage = before.usage
        self._below: dict[str, dict[str, Session]] = {
            role: {one.id: one for one in below} for role, below in before.below.items()
        }
        """By role: the logs of what works for it, its own among them."""
        coordinator.ctx.on(AgentCreated, self._created)
        coordinator.ctx.on(Carry, self._carried)
        self.start_error: LeadlineError | None = None
        """Why the first role could not be started; None once one was."""

    async def first_started(self, over: anyio.Event) -> None:
        """Returns when a role is at work, none could be started, or `over` is set."""
        async with anyio.create_task_group() as waiters:
            for event in (self._first, over):
                waiters.start_soon(_then_cancel, event, waiters.cancel_scope)

    async def ask(self, call: RoleCall) -> RoleAnswer:
        """The answer of a role: from the log, or after it was started, awaited and freed; its failure is a value.

        Raises:
            SessionWriteFailed: a log could not be written. That is no failure of the role: the run stops, and goes on
                where it was when the disk is well.
            LeadlineError: the very first role could not be started.
        """
        attempt = await self._next_attempt(call)
        if attempt.ended is not None and attempt.settled:
            self._first.set()
            return recorded_answer(attempt.ended)
        account = self._account(call)
        reached = self._accounts.spent_out(account)
        if reached is not None:
            self._first.set()
            return self._stopped(reached, f"not begun: {reached.message}" if attempt.child is None else None)
        if call.unit is None:
            return await self._worked(call, attempt, account)
        if not await self._accounts.shares.turn(call.unit.id):
            reached = self._accounts.too_little()
            return self._stopped(reached, f"not begun: {reached.message}")
        try:
            return await self._worked(call, attempt, account)
        finally:
            self._accounts.shares.end(call.unit.id)

    async def _worked(self, call: RoleCall, attempt: Attempt, account: Account) -> RoleAnswer:
        """The answer of a role that is set to work, here and now."""
        try:
            attempt, child = await self._at_work(call, attempt, account)
        except LeadlineError as error:
            if self._first.is_set():
                self._check_disk(None, error)
                return RoleAnswer(status="failed", error=f"{call.label}: could not be started: {error}")
            self.start_error = error
            self._first.set()
            raise
        while True:
            self._live.add(child)
            self._first.set()
            try:
                await self._shelf.record.sync()  # while the model is at work: nobody waits for the disk
                result, in_time = await self._result(child, account)
                self._check_disk(child)
                answer = _answer(call, child, result)
                reached = None
                if answer.status != "completed":
                    reached = self._reached(account, child, in_time=in_time)
                if reached is None or not in_time or not await self._more(call, account):
                    if reached is not None:
                        answer = self._stopped(reached, child=child.session_id)
                    self._note_end(attempt, child, answer)
                    await self._shelf.record.sync()
                    return answer
            finally:
                with anyio.CancelScope(shield=True):
                    await self._free(child)
            child = await self._take_up(call, attempt, child.session_id, account)

    async def _more(self, call: RoleCall, account: Account) -> bool:
        """Whether a unit that has used up its share may go on with what the others left over."""
        if call.unit is None or self._accounts.spent_out(self._accounts.working) is not None:
            return False
        return await self._accounts.shares.more(call.unit.id)

    def _stopped(self, reached: Reached, error: str | None = None, child: str | None = None) -> RoleAnswer:
        """The answer of a role for which nothing is left of the budget."""
        self._accounts.note(reached)
        return RoleAnswer(
            status="failed",
            error=error or reached.message,
            exhausted=True,
            ceiling=reached.ceiling,
            child=child,
        )

    def _account(self, call: RoleCall) -> Account:
        """Who pays for a role: the writer may use all that there is, the others what is not kept for it."""
        if call.unit is not None:
            plan = self._shelf.record.ledger.plan
            planned = [unit.id for unit in plan.units] if plan is not None else []
            return self._accounts.shares.account(call.unit.id, planned)
        return self._accounts.run if call.role == "writer" else self._accounts.working

    async def _result(self, child: SubagentRun, account: Account) -> tuple[SubagentResult, bool]:
        """What became of a role, and whether it came to its end by itself; it is stopped when its time is up."""
        left = self._accounts.seconds_left(account)
        if left is None:
            return await child.result(), True
        stopped = False

        async def stop() -> None:
            nonlocal stopped
            await self._clock.sleep(left)
            stopped = True
            await child.cancel("the time of the run is up")

        async with anyio.create_task_group() as watch:
            watch.start_soon(stop)
            await child.result()
            if not stopped:
                watch.cancel_scope.cancel()
        return await child.result(), not stopped

    def _reached(self, account: Account, child: SubagentRun, *, in_time: bool) -> Reached | None:
        """The ceiling of the run that stopped a role, if one did."""
        if not in_time:
            return self._accounts.out_of_time(account)
        why = _over_budget(child.agent.last_turn_end if child.agent is not None else None)
        return None if why is None else self._accounts.stopped(account, why)

    def _created(self, signal: AgentCreated) -> None:
        """Keep the log of what works for a role, so that what it uses is counted."""
        session = signal.agent.session
        above = session.header.parent
        role = next((one for one, below in self._below.items() if above in below), session.id)
        self._below.setdefault(role, {})[session.id] = session

    async def _carried(self, signal: Carry) -> str | None:
        """What a role must not forget when its conversation is made shorter."""
        return carried(self._shelf.record.ledger, signal.agent.id)

    def used(self, child: str) -> tuple[Spending, ...]:
        """What a role used so far, what works for it included."""
        below = self._below.get(child)
        return self.usage.of(child) if below is None else self.usage.count(child, below.values())

    async def _next_attempt(self, call: RoleCall) -> Attempt:
        """The attempt that the log has next, where it is one at this very work; else a new one."""
        attempt = self._log.next(call.key)
        if not attempt.doubtful or attempt.child is None:
            return attempt
        try:
            asked = prompt_of(await self._store.read(attempt.child))
        except SessionNotFound:
            asked = None
        return attempt if asked == call.prompt else self._log.new(call.key)

    def _check_disk(self, child: SubagentRun | None, error: LeadlineError | None = None) -> None:
        sessions = [self._shelf.record.session]
        if child is not None and child.agent is not None:
            sessions.append(child.agent.session)
        for refused in (one.refused for one in sessions):
            if refused is not None:
                raise refused
        if len(sessions) > 1 and (open_ := sessions[1]).place.turn_open:
            # Nobody stopped it, and it could not be ended: a blob was refused, or the promise of a side effect.
            raise SessionWriteFailed(
                open_.where, "something of it could not be written down", f"see: leadline show {open_.id}"
            )
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, SessionWriteFailed):
                raise cause
            cause = cause.__cause__

    async def _at_work(
        self, call: RoleCall, attempt: Attempt, account: Account
    ) -> tuple[Attempt, SubagentRun]:
        """The role at work on the attempt: where it was cut off, or, where that cannot be, on a new one."""
        if attempt.child is not None:
            try:
                return attempt, await self._take_up(call, attempt, attempt.child, account)
            except (SessionLocked, SessionWriteFailed):
                raise
            except (SessionNotFound, SessionUnreadable):
                attempt = self._log.new(call.key)  # a power cut took it before anything of it was safe
            except LeadlineError as error:
                note = f"{call.label}: what was begun could not be taken up and was begun anew: {error}"
                self._shelf.record.append(Noted(text=note))
                attempt = self._log.new(call.key)
        return attempt, await self._subagents.start(self._request(call, attempt, None, account))

    async def _take_up(self, call: RoleCall, attempt: Attempt, child: str, account: Account) -> SubagentRun:
        before = await self._store.read(child)
        self._note_start(call, attempt, child)
        return await self._subagents.resume(self._request(call, attempt, before, account), child)

    def _note_start(self, call: RoleCall, attempt: Attempt, child: str) -> None:
        """Write down who does the work before it begins."""
        facts: list[Event] = []
        if attempt.child != child:
            attempt.child = child
            facts.append(RoleStarted(key=call.key, attempt=attempt.number, child=child))
        if call.unit is not None:
            known = self._shelf.record.ledger.units.get(call.unit.id)
            if known is None or known.child != child:
                facts.append(UnitStarted(unit=call.unit, attempt=attempt.number, child=child))
        if facts:
            self._shelf.record.append(*facts)

    def _note_end(self, attempt: Attempt, child: SubagentRun, answer: RoleAnswer) -> None:
        by = self.used(child.session_id)
        used = total(by)
        self._shelf.record.append(
            RoleEnded(
                key=attempt.key,
                attempt=attempt.number,
                child=child.session_id,
                status=answer.status,
                value=answer.value if isinstance(answer.value, Mapping) else None,
                error=answer.error,
                unreachable=answer.unreachable,
                exhausted=answer.exhausted,
                ceiling=answer.ceiling,
                calls=used.calls,
                tokens=used.tokens,
                by=by,
            )
        )

    async def dispose(self) -> None:
        """Free every role that is left. A failure leaves the role on the list, so that it can be tried again."""
        failures: list[Exception] = []
        for child in tuple(self._live):
            try:
                await self._free(child)
            except Exception as failure:  # noqa: BLE001 - every role is tried; all failures are raised together
                failures.append(failure)
        if failures:
            raise ExceptionGroup("roles of a run could not be freed", failures)

    async def _free(self, child: SubagentRun) -> None:
        await child.dispose()
        if child in self._live:
            self._live.discard(child)
            self.used(child.session_id)
            self._below.pop(child.session_id, None)

    def _request(
        self, call: RoleCall, attempt: Attempt, before: Session | None, account: Account
    ) -> SubagentRequest:
        """What the role is asked; `before` is the log of an attempt that is taken up."""
        return SubagentRequest(
            parent=self._coordinator,
            prompt=call.prompt,
            persona=persona(call.role),
            output_schema=call.schema,
            check=call.check,
            tools=self._recall(call),
            own_tools=self._unit_tools(call, attempt, before),
            model=self._models.get(call.role),
            purpose=call.purpose,
            label=call.label,
            budget=TurnBudget(max_steps=self._config.max_steps),
            account=account,
            proceed=before is not None and _over_budget(before.last(TurnEnd)) is not None,
            announce=lambda child: self._note_start(call, attempt, child),
        )

    def _unit_tools(self, call: RoleCall, attempt: Attempt, before: Session | None) -> tuple[Tool, ...]:
        if call.unit is None:
            return ()
        governor = SourceGovernor(self._config.source_calls, self._config.recovery_reads)
        tools = self._source_tools(f"{attempt.key}#{attempt.number}")
        sources = UnitSources(call.unit.id, self._shelf, tools, governor)
        if before is not None:
            sources.restore(before)
            restore_evidence(call.unit.id, self._shelf, before)
        return (*sources.tools, record_evidence_tool(call.unit.id, self._shelf))

    def _recall(self, call: RoleCall) -> tuple[str, ...]:
        """What a researcher reads back with that left its window; nothing where no row offers it."""
        registry = None if call.unit is None else self._coordinator.ctx.find(ToolRegistry)
        return (RECALL,) if registry is not None and registry.get(RECALL, self._coordinator.ctx.scope) else ()


async def _then_cancel(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


def recorded_answer(ended: RoleEnded) -> RoleAnswer:
    """What the log says that a role came to."""
    return RoleAnswer(
        status=ended.status,
        value=ended.value if ended.value is None else cast("JsonValue", ended.value),
        error=ended.error,
        unreachable=ended.unreachable,
        exhausted=ended.exhausted,
        ceiling=ended.ceiling,
        child=ended.child,
    )


def _answer(call: RoleCall, child: SubagentRun, result: SubagentResult) -> RoleAnswer:
    status = _PHASES.get(result.stop_reason, "failed")
    if status in ("completed", "partial") and result.structured is None:
        status = "failed"
    error = None if status == "completed" else _why(call, result)
    return RoleAnswer(
        status=status,
        value=result.structured,
        error=error,
        unreachable=status == "failed" and result.failure is not None and result.failure.code in _UNREACHABLE,
        exhausted=status == "failed" and _used_up(child),
        child=child.session_id,
    )


def _over_budget(end: TurnEnd | None) -> str | None:
    """What a ceiling of the run said when it ended a turn; None where it was not one of those that did."""
    if end is None:
        return None
    if end.failure is not None and end.failure.code == "BUDGET":
        return end.failure.message
    if end.reason != "budget" or end.cause is None or end.cause.detail.startswith("max_steps"):
        return None
    return end.cause.detail


def _used_up(child: SubagentRun) -> bool:
    end = child.agent.last_turn_end if child.agent is not None else None
    return end is not None and end.reason == "budget"


def _why(call: RoleCall, result: SubagentResult) -> str:
    return f"{call.label}: {result.diagnostic or f'it ended with {result.stop_reason} and no output'}"
