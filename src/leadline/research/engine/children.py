"""The roles of one run as child agents: started with what they may use, awaited, and always freed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import anyio

from leadline.core.agent.agent import Agent
from leadline.core.agent.spec import TurnBudget
from leadline.core.llm.jsonvalue import JsonValue
from leadline.core.llm.request import ModelRef
from leadline.core.session.errors import (
    SessionLocked,
    SessionNotFound,
    SessionUnreadable,
    SessionWriteFailed,
)
from leadline.core.session.events import Event
from leadline.core.session.log import Session
from leadline.core.session.store import SessionStore
from leadline.core.tools.spec import Tool
from leadline.kernel.errors import LeadlineError
from leadline.orchestration.subagent.outcome import prompt_of
from leadline.orchestration.subagent.seam import SubagentRequest, SubagentResult, SubagentRun, Subagents
from leadline.research.engine.config import EngineConfig
from leadline.research.engine.role_log import Attempt, RoleLog
from leadline.research.engine.usage import UsageCount
from leadline.research.events import Noted, RoleEnded, RoleStarted, UnitStarted
from leadline.research.evidence.governor import SourceGovernor
from leadline.research.evidence.record_evidence import record_evidence_tool, restore_evidence
from leadline.research.evidence.shelf import SourceShelf, UnitSources
from leadline.research.methods.seam import Phase, RoleAnswer, RoleCall
from leadline.research.roles.prompts import persona

_UNREACHABLE = frozenset({"AUTH", "MISSING_CREDENTIAL", "QUOTA", "NOT_FOUND", "GAVE_UP"})
"""Failures of a provider that outlast the retries inside a call."""

_PHASES: dict[str, Phase] = {"completed": "completed", "max-tokens": "partial", "aborted": "cancelled"}


class Children:
    """Starts roles for a run. A planner or writer sees `structured_output` alone; a researcher sees its sources too.

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
    ) -> None:
        """`source_tools` makes the tools of one attempt, whose name it is given; `models` are those of single roles."""
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
        self.usage = UsageCount()
        for ended in self._log.settled:
            self.usage.count(ended.calls, ended.tokens)
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
        try:
            attempt, child = await self._at_work(call, attempt)
        except LeadlineError as error:
            if self._first.is_set():
                self._check_disk(None, error)
                return RoleAnswer(status="failed", error=f"{call.label}: could not be started: {error}")
            self.start_error = error
            self._first.set()
            raise
        self._live.add(child)
        self._first.set()
        try:
            await self._shelf.record.sync()  # while the model is at work: nobody waits for the disk
            result = await child.result()
            self._check_disk(child)
            answer = _answer(call, child, result)
            self._note_end(attempt, child, answer)
            await self._shelf.record.sync()
            return answer
        finally:
            with anyio.CancelScope(shield=True):
                await self._free(child)

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

    async def _at_work(self, call: RoleCall, attempt: Attempt) -> tuple[Attempt, SubagentRun]:
        """The role at work on the attempt: where it was cut off, or, where that cannot be, on a new one."""
        if attempt.child is not None:
            try:
                return attempt, await self._take_up(call, attempt, attempt.child)
            except (SessionLocked, SessionWriteFailed):
                raise
            except (SessionNotFound, SessionUnreadable):
                attempt = self._log.new(call.key)  # a power cut took it before anything of it was safe
            except LeadlineError as error:
                note = f"{call.label}: what was begun could not be taken up and was begun anew: {error}"
                self._shelf.record.append(Noted(text=note))
                attempt = self._log.new(call.key)
        return attempt, await self._subagents.start(self._request(call, attempt, None))

    async def _take_up(self, call: RoleCall, attempt: Attempt, child: str) -> SubagentRun:
        before = await self._store.read(child)
        self._note_start(call, attempt, child)
        try:
            return await self._subagents.resume(self._request(call, attempt, before), child)
        except LeadlineError:
            self.usage.add(before)
            raise

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
        used = UsageCount()
        if child.agent is not None:
            used.add(child.agent.session)
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
                calls=used.calls,
                tokens=used.tokens,
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
            if child.agent is not None:
                self.usage.add(child.agent.session)

    def _request(self, call: RoleCall, attempt: Attempt, before: Session | None) -> SubagentRequest:
        """What the role is asked; `before` is the log of an attempt that is taken up."""
        return SubagentRequest(
            parent=self._coordinator,
            prompt=call.prompt,
            persona=persona(call.role),
            output_schema=call.schema,
            check=call.check,
            tools=(),
            own_tools=self._unit_tools(call, attempt, before),
            model=self._models.get(call.role),
            purpose=call.purpose,
            label=call.label,
            budget=TurnBudget(max_steps=self._config.max_steps),
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


def _used_up(child: SubagentRun) -> bool:
    end = child.agent.last_turn_end if child.agent is not None else None
    return end is not None and end.reason == "budget"


def _why(call: RoleCall, result: SubagentResult) -> str:
    return f"{call.label}: {result.diagnostic or f'it ended with {result.stop_reason} and no output'}"
