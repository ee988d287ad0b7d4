"""The roles of one run as child agents: started with what they may use, awaited, and always freed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import anyio

from leadline.core.agent.agent import Agent
from leadline.core.agent.spec import TurnBudget
from leadline.core.tools.spec import Tool
from leadline.kernel.errors import LeadlineError
from leadline.orchestration.subagent.seam import SubagentRequest, SubagentResult, SubagentRun, Subagents
from leadline.research.engine.config import EngineConfig
from leadline.research.engine.usage import UsageCount
from leadline.research.events import UnitStarted
from leadline.research.evidence.governor import SourceGovernor
from leadline.research.evidence.record_evidence import record_evidence_tool
from leadline.research.evidence.shelf import SourceShelf, UnitSources
from leadline.research.methods.seam import Phase, RoleAnswer, RoleCall
from leadline.research.roles.prompts import persona

_UNREACHABLE = frozenset({"AUTH", "MISSING_CREDENTIAL", "QUOTA", "NOT_FOUND", "GAVE_UP"})
"""Failures of a provider that outlast the retries inside a call."""

_PHASES: dict[str, Phase] = {"completed": "completed", "max-tokens": "partial", "aborted": "cancelled"}


class Children:
    """Starts roles for a run. A planner or writer sees `structured_output` alone; a researcher sees its sources too."""

    def __init__(
        self,
        subagents: Subagents,
        coordinator: Agent,
        shelf: SourceShelf,
        source_tools: Callable[[], tuple[Tool, ...]],
        config: EngineConfig,
    ) -> None:
        self._subagents = subagents
        self._coordinator = coordinator
        self._shelf = shelf
        self._source_tools = source_tools
        self._config = config
        self._attempts: Counter[str] = Counter()
        self._live: set[SubagentRun] = set()
        self._first = anyio.Event()
        self.usage = UsageCount()
        self.start_error: LeadlineError | None = None
        """Why the first role could not be started; None once one was."""

    async def first_started(self, over: anyio.Event) -> None:
        """Returns when a role is at work, none could be started, or `over` is set."""
        async with anyio.create_task_group() as waiters:
            for event in (self._first, over):
                waiters.start_soon(_then_cancel, event, waiters.cancel_scope)

    async def ask(self, call: RoleCall) -> RoleAnswer:
        """Start a role, wait for it, free it; its failure is a value.

        Raises:
            LeadlineError: the very first role could not be started.
        """
        try:
            child = await self._subagents.start(self._request(call))
        except LeadlineError as error:
            if self._first.is_set():
                return RoleAnswer(status="failed", error=f"{call.label}: could not be started: {error}")
            self.start_error = error
            self._first.set()
            raise
        self._live.add(child)
        self._first.set()
        try:
            self._note_start(call, child)
            result = await child.result()
            return _answer(call, child, result)
        finally:
            with anyio.CancelScope(shield=True):
                await self._free(child)

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

    def _note_start(self, call: RoleCall, child: SubagentRun) -> None:
        if call.unit is not None:
            self._attempts[call.unit.id] += 1
            attempt = self._attempts[call.unit.id]
            self._shelf.record.append(UnitStarted(unit=call.unit, attempt=attempt, child=child.session_id))

    def _request(self, call: RoleCall) -> SubagentRequest:
        return SubagentRequest(
            parent=self._coordinator,
            prompt=call.prompt,
            persona=persona(call.role),
            output_schema=call.schema,
            check=call.check,
            tools=(),
            own_tools=self._unit_tools(call),
            purpose=call.purpose,
            label=call.label,
            budget=TurnBudget(max_steps=self._config.max_steps),
        )

    def _unit_tools(self, call: RoleCall) -> tuple[Tool, ...]:
        if call.unit is None:
            return ()
        governor = SourceGovernor(self._config.source_calls, self._config.recovery_reads)
        sources = UnitSources(call.unit.id, self._shelf, self._source_tools(), governor)
        return (*sources.tools, record_evidence_tool(call.unit.id, self._shelf))


async def _then_cancel(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


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
