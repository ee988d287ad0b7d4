"""Runs the calls of one message: bodies overlap where they may, everything that is logged is in the model's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anyio import CancelScope, Event, Lock, create_task_group, get_cancelled_exc_class, move_on_after
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint_if_cancelled

from leadline.core.llm.messages import ToolCall
from leadline.core.tools.arguments import Arguments, parse_arguments
from leadline.core.tools.flight import CallLog, Flight
from leadline.core.tools.invocation import Caller, ToolInvocation
from leadline.core.tools.outcome import ToolOutcome, aborted
from leadline.core.tools.pipeline import ToolPipeline
from leadline.core.tools.spec import Tool, ToolOutput

REVIEW_GRACE_S = 5.0
"""Seconds that listeners get to review a finished result after the turn was cancelled."""


async def run_calls(
    pipeline: ToolPipeline, calls: Sequence[ToolCall], caller: Caller, log: CallLog
) -> tuple[ToolOutcome, ...]:
    """The outcomes of `calls`, in their order; each was given to the log before this returns.

    A call that is not declared parallel runs alone: it starts when all before it have ended, and the next
    starts when it has. Consecutive parallel calls overlap, `pipeline.max_parallel` at most.

    When cancelled: nothing starts any more, bodies that run are cancelled and awaited, every call still
    gets its pair in the log, and the cancellation goes on.

    Raises:
        Exception: the log failed. What ran was cancelled and awaited; no result was made up.
    """
    return await _Batch(pipeline, calls, caller, log).run()


@dataclass(eq=False)
class _Slot:
    call: ToolCall
    called: bool = False
    flight: Flight | None = None
    output: ToolOutput | None = None
    """What dispatch gave, or what a cancellation made of it; waits for its turn to be settled."""


class _Batch:
    """The calls of one message on their way."""

    def __init__(
        self, pipeline: ToolPipeline, calls: Sequence[ToolCall], caller: Caller, log: CallLog
    ) -> None:
        self._pipeline = pipeline
        self._caller = caller
        self._log = log
        self._slots = [_Slot(call) for call in calls]
        self._outcomes: list[ToolOutcome] = []
        self._running = 0
        self._changed: Event
        self._commit: Lock
        """These two are for calls that overlap; a message with one call has no use for them."""
        self._failure: Exception | None = None
        self._scope: CancelScope | None = None

    async def run(self) -> tuple[ToolOutcome, ...]:
        try:
            if len(self._slots) == 1:
                await self._only(self._slots[0])
            else:
                self._changed, self._commit = Event(), Lock(fast_acquire=True)
                async with create_task_group() as group:
                    self._scope = group.cancel_scope
                    await self._start_all(group)
        except get_cancelled_exc_class():
            await self._finish_cancelled()
            raise
        if self._failure is not None:
            raise self._failure
        return tuple(self._outcomes)

    async def _finish_cancelled(self) -> None:
        try:
            with CancelScope(shield=True):
                await self._close_cancelled()
        except Exception as error:  # noqa: BLE001 - the cancellation goes on; the report tells what failed
            self._failure = self._failure or error
        if self._failure is not None:
            self._caller.ctx.report(self._failure, "logging tool calls while being cancelled")

    async def _only(self, slot: _Slot) -> None:
        """The one call of a message: nothing can overlap with it, so it is run without a task group."""
        await checkpoint_if_cancelled()
        self._call(slot)
        slot.flight = await self._pipeline.admit(slot.call, self._caller, self._log)
        await self._dispatch(slot, slot.flight)
        await checkpoint_if_cancelled()
        await self._commit_next()

    # starting

    def _call(self, slot: _Slot) -> None:
        """Write down that the call is made, unless an earlier process did."""
        slot.called = True
        if self._log.earlier.call(slot.call.id) is None:
            self._log.on_call(slot.call)

    async def _start_all(self, group: TaskGroup) -> None:
        try:
            for slot in self._slots:
                await checkpoint_if_cancelled()
                await self._start(slot, group)
        except Exception as error:  # noqa: BLE001 - kept, and raised once everything has ended
            self._fail(error)

    async def _start(self, slot: _Slot, group: TaskGroup) -> None:
        await self._until_below(self._room(slot))
        self._call(slot)
        slot.flight = await self._pipeline.admit(slot.call, self._caller, self._log)
        # Asked again: a policy may have taken its time, and the registry may have changed meanwhile.
        room = self._room(slot)
        await self._until_below(room)
        self._running += 1
        if room > 1:
            group.start_soon(self._body, slot, slot.flight, name=f"call {slot.call.id}")
        else:
            await self._body(slot, slot.flight)

    def _room(self, slot: _Slot) -> int:
        """How many bodies may run together with this one, itself included."""
        return self._pipeline.max_parallel if self._is_parallel(slot) else 1

    def _is_parallel(self, slot: _Slot) -> bool:
        tool = self._pipeline.registry.get(slot.call.name, self._caller.ctx.scope)
        if tool is None:
            return False
        if not callable(tool.parallel):
            return tool.parallel is True
        return self._rule_says(tool, slot)

    def _rule_says(self, tool: Tool, slot: _Slot) -> bool:
        parsed = parse_arguments(slot.call.arguments)
        if not callable(tool.parallel) or not isinstance(parsed, Arguments):
            return False
        try:
            return tool.parallel(tool.takes.accept(parsed.text)) is True
        except Exception as error:  # noqa: BLE001 - a rule that fails means: alone
            if slot.flight is not None and slot.flight.refusal is None:
                self._caller.ctx.report(error, f"the parallel rule of tool {tool.name}; the call runs alone")
            return False

    async def _until_below(self, room: int) -> None:
        while self._running >= room:
            await self._changed.wait()

    # running

    async def _body(self, slot: _Slot, flight: Flight) -> None:
        try:
            await self._run_body(slot, flight)
        except Exception as error:  # noqa: BLE001 - kept, and raised once everything has ended
            self._fail(error)
        finally:
            self._running -= 1
            self._changed.set()
            self._changed = Event()

    async def _run_body(self, slot: _Slot, flight: Flight) -> None:
        await self._dispatch(slot, flight)
        await self._commit_ready()

    async def _dispatch(self, slot: _Slot, flight: Flight) -> None:
        try:
            slot.output = await self._pipeline.dispatch(flight)
        except get_cancelled_exc_class():
            slot.output = flight.when_cancelled()
            raise

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        if self._scope is not None:
            self._scope.cancel()

    # committing

    async def _commit_ready(self) -> None:
        """Settle and log every result whose turn it is."""
        async with self._commit:
            while await self._commit_next():
                pass

    async def _commit_next(self) -> bool:
        """Settle and log the next result; False where there is none yet."""
        slot = self._next()
        if slot is None or slot.flight is None or slot.output is None:
            return False
        outcome = await self._pipeline.settle(slot.flight, slot.output)
        self._write(slot, slot.flight, outcome)
        return True

    def _next(self) -> _Slot | None:
        at = len(self._outcomes)
        return self._slots[at] if at < len(self._slots) and self._failure is None else None

    def _write(self, slot: _Slot, flight: Flight, outcome: ToolOutcome) -> None:
        self._outcomes.append(outcome)
        self._log.on_result(slot.call, outcome)
        self._pipeline.announce(flight, outcome)

    async def _close_cancelled(self) -> None:
        """Give every call that has none its pair: nothing runs any more."""
        while (slot := self._next()) is not None:
            if not slot.called:
                self._call(slot)
            flight = slot.flight or self._unadmitted(slot.call)
            self._write(slot, flight, await self._cancelled_outcome(slot, flight))

    def _unadmitted(self, call: ToolCall) -> Flight:
        flight = Flight(ToolInvocation(call.id, call.name, self._caller), self._log)
        flight.take_up(self._log.earlier.call(call.id))
        return flight

    async def _cancelled_outcome(self, slot: _Slot, flight: Flight) -> ToolOutcome:
        output = slot.output or flight.when_cancelled()
        if output == aborted(started=flight.started):
            return await self._pipeline.closed(flight, output)
        with move_on_after(REVIEW_GRACE_S):
            return await self._pipeline.settle(flight, output)
        return await self._pipeline.closed(flight, aborted(started=True))
