"""Runs one body: in a task that its caller's cancellation and its deadline reach, whatever is wrapped around it."""

from __future__ import annotations

from math import inf
from typing import cast

from anyio import (
    CancelScope,
    Event,
    create_task_group,
    current_effective_deadline,
    get_cancelled_exc_class,
    move_on_after,
)
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint_if_cancelled

from leadline.core.llm.jsonvalue import JsonValue
from leadline.core.session.errors import BlobWriteFailed, SessionWriteFailed
from leadline.core.spend.meter import BudgetReached
from leadline.core.tools.admission import described
from leadline.core.tools.flight import Flight
from leadline.core.tools.outcome import Code, aborted, canonical, failed
from leadline.core.tools.policy import AroundExecute
from leadline.core.tools.registry import Registered
from leadline.core.tools.sanitise import NotJson, sanitise_value
from leadline.core.tools.shape import Violations
from leadline.core.tools.spec import ToolOutput


async def run_wrapped(flight: Flight, entry: Registered) -> ToolOutput:
    """What the body and everything around it gives. Returns, or is cancelled, only once the body has ended.

    Raises:
        SessionWriteFailed, BlobWriteFailed: what the body did could not be written down. The turn ends with it, and
            goes on from there when the disk is well.
    """
    if flight.call.ctx.heard(AroundExecute):
        output = await _around_body(flight, entry)
    else:
        output = await _body(flight, entry)
    if not output.is_error and current_effective_deadline() == -inf:
        return aborted(started=flight.started)
    return output


async def _around_body(flight: Flight, entry: Registered) -> ToolOutput:
    """What the wrappers answer."""
    call, tool = flight.call, entry.tool
    output = aborted(started=False)
    async with create_task_group() as group:

        async def end(_: AroundExecute) -> ToolOutput:
            return await _in_own_task(group, flight, entry)

        try:
            output = _as_output(await call.ctx.around(AroundExecute(call, tool), end))
        except (SessionWriteFailed, BlobWriteFailed):
            raise
        except Exception as error:  # noqa: BLE001 - told to the model and to the kernel's report
            flight.unreviewed = True
            call.ctx.report(error, f"around tool {tool.name}")
            output = failed(
                Code.TOOL_FAILED, f"What is wrapped around {tool.name} failed: {described(error)}"
            )
    return output


async def _body(flight: Flight, entry: Registered) -> ToolOutput:
    """The body's output, checked."""
    await checkpoint_if_cancelled()
    flight.started = True
    try:
        flight.output = checked_output(flight, await _timed(flight, entry))
    except get_cancelled_exc_class():
        # Of the caller, or of something that the body waited for; the latter ends this call alone.
        await checkpoint_if_cancelled()
    return flight.output or aborted(started=True)


def checked_output(flight: Flight, output: object) -> ToolOutput:
    """`output` as a valid one: plain JSON, text as content, a success of the declared shape."""
    tool = flight.tool
    made = _as_output(output)
    content = cast("object", made.content)
    try:
        if content is not None and not isinstance(content, str):
            raise NotJson(f"content is a {type(content).__name__}, not text")
        value = sanitise_value(made.value)
        text = canonical(value)
        if tool is not None and tool.gives is not None and not made.is_error:
            tool.gives.accept(text.decode())
    except (NotJson, Violations) as error:
        name = flight.call.name
        flight.call.ctx.report(error, f"the result of tool {name}")
        return failed(Code.INVALID_TOOL_OUTPUT, f"{name} ran, but its result cannot be used: {error}")
    return ToolOutput(
        value,
        made.content,
        is_error=made.is_error,
        error_code=(made.error_code or Code.TOOL_FAILED) if made.is_error else None,
        concludes_turn=made.concludes_turn and not made.is_error,
    )


def _as_output(answer: object) -> ToolOutput:
    """What a body or a wrapper answered, a bare value included."""
    return answer if isinstance(answer, ToolOutput) else ToolOutput(cast("JsonValue", answer))


async def _in_own_task(group: TaskGroup, flight: Flight, entry: Registered) -> ToolOutput:
    """The body's output. The task belongs to the caller, so a wrapper that shields itself cannot shield the body."""
    done, scope = Event(), CancelScope()

    async def run() -> None:
        try:
            with scope:
                await _body(flight, entry)
        finally:
            done.set()

    group.start_soon(run, name=f"tool {entry.tool.name}")
    try:
        await done.wait()
    except get_cancelled_exc_class():
        scope.cancel()
        with CancelScope(shield=True):
            await done.wait()
        raise
    return flight.output or aborted(started=flight.started)


async def _timed(flight: Flight, entry: Registered) -> ToolOutput:
    tool = entry.tool
    if tool.timeout_s is None:
        return await _attempts(flight, entry)
    with move_on_after(tool.timeout_s) as deadline:
        return await _attempts(flight, entry)
    if deadline.cancelled_caught:
        return failed(
            Code.TOOL_TIMEOUT,
            f"{tool.name} was stopped after {tool.timeout_s:g} s without a result; it may have done part of its work.",
        )
    return failed(Code.TOOL_FAILED, f"{tool.name} gave up without a result.")


async def _attempts(flight: Flight, entry: Registered) -> ToolOutput:
    tool = entry.tool
    for attempt in range(1, tool.attempts + 1):
        try:
            answer = await entry.run(lambda: tool.execute(flight.accepted(tool), flight.call))
        except (SessionWriteFailed, BlobWriteFailed):
            # Nothing that is for a model to act on: what it would do about it could not be written down either.
            raise
        except BudgetReached as error:
            return failed(Code.BUDGET, f"{tool.name} could not pay for what it needs: {error}")
        except Exception as error:  # noqa: BLE001 - told to the model and to the kernel's report
            if attempt < tool.attempts:
                continue
            flight.call.ctx.report(error, f"tool {tool.name}")
            return failed(Code.TOOL_FAILED, f"{tool.name} failed: {described(error)}")
        if answer is None:
            return failed(
                Code.TOOL_FAILED, f"{tool.name} was removed while it ran; it may have done part of its work."
            )
        return _as_output(answer[0])
    raise AssertionError("a tool has at least one attempt")
