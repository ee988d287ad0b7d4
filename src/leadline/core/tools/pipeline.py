"""The road of one call: admit, dispatch, settle. What comes out is always a value.

- `admit`: the tool is known, its arguments are strict JSON and fit, policies, approval and guards let it run.
- `dispatch`: the body and what is wrapped around it, after the log was made durable for side effects.
- `settle`: post-execute listeners, sanitising, the size limit.

A failure of a tool, a policy or a listener is an outcome. Exceptions are cancellation, and defects of the
log the pipeline was given.
"""

from __future__ import annotations

from functools import partial

from anyio import to_thread

from leadline.core.llm.jsonvalue import JsonObject, JsonValue
from leadline.core.llm.messages import ToolCall
from leadline.core.session.blobs import Blobs
from leadline.core.tools.admission import MAX_NESTING, described, fitted, judged, unknown_tool
from leadline.core.tools.arguments import NO_ARGUMENTS, Arguments, BadArguments, of_object, parse_arguments
from leadline.core.tools.budget import ALWAYS_SHOWN, ResultRoom, Room, bounded
from leadline.core.tools.dispatch import checked_output, run_wrapped
from leadline.core.tools.earlier import EarlierCall
from leadline.core.tools.flight import SILENT, CallLog, Flight
from leadline.core.tools.invocation import Caller, ToolInvocation
from leadline.core.tools.outcome import Code, ToolOutcome, Truncation, canonical, failed
from leadline.core.tools.policy import PostExecute, ToolFinished
from leadline.core.tools.registry import ToolRegistry
from leadline.core.tools.sanitise import sanitise
from leadline.core.tools.spec import ToolOutput
from leadline.kernel.context import Context
from leadline.kernel.services import Service

MAX_VALUE_BYTES = 4 * 1024 * 1024
"""A value with more bytes of JSON than this is not logged; what the model reads tells what was left out."""
EMPTY = "(no output)"
"""What a model reads where a tool said nothing: nothing empty goes on a wire."""


class ToolPipeline(Service, key="tool-pipeline"):
    """Runs calls of the tools in a registry."""

    def __init__(
        self, registry: ToolRegistry, *, max_result_chars: int = 50_000, max_parallel: int = 10
    ) -> None:
        """`max_result_chars`: characters of one result that a model reads; `max_parallel`: bodies of one
        message that overlap at most."""
        self.registry = registry
        self.max_result_chars = max_result_chars
        self.max_parallel = max_parallel

    async def call(self, call: ToolCall, caller: Caller, log: CallLog = SILENT) -> ToolOutcome:
        """One call from start to end, for programs; a model's calls go through `run_calls`.

        The log's `on_call` and `on_result` are told. Cancellation propagates, after the body has ended.
        """
        log.on_call(call)
        flight = await self.admit(call, caller, log)
        outcome = await self.settle(flight, await self.dispatch(flight))
        log.on_result(call, outcome)
        self.announce(flight, outcome)
        return outcome

    async def admit(self, call: ToolCall, caller: Caller, log: CallLog) -> Flight:
        """The call as far as policy brings it; `Flight.refusal` says why it may not run."""
        parsed = parse_arguments(call.arguments)
        arguments = parsed if isinstance(parsed, Arguments) else NO_ARGUMENTS
        invocation = ToolInvocation(
            call.id,
            call.name,
            caller,
            arguments.value,
            reenter=partial(self._nested, log),
            repeated=_begun(log.earlier.call(call.id)),
        )
        return await self._admitted(invocation, parsed, log)

    async def _admitted(
        self, invocation: ToolInvocation, parsed: Arguments | BadArguments, log: CallLog
    ) -> Flight:
        name, scope = invocation.name, invocation.scope
        entry = self.registry.find(name, scope)
        flight = Flight(invocation, log, entry, parsed if isinstance(parsed, Arguments) else NO_ARGUMENTS)
        flight.take_up(log.earlier.call(invocation.call_id))
        if flight.refusal is not None:
            return flight
        if entry is None:
            flight.refusal = unknown_tool(name, self.registry.view(scope))
        elif invocation.depth > MAX_NESTING:
            flight.refusal = failed(Code.DENIED, f"Tools may call tools at most {MAX_NESTING} levels deep.")
        else:
            flight.refusal = fitted(flight, parsed) or await judged(flight, entry.tool, self.registry)
        return flight

    async def dispatch(self, flight: Flight) -> ToolOutput:
        """What the body gives, or why it did not run.

        Raises:
            Exception: the log could not be made durable, so the body did not start.
        """
        if flight.refusal is not None or flight.entry is None:
            return flight.refusal or unknown_tool(flight.call.name, ())
        tool, call = flight.entry.tool, flight.call
        if self.registry.find(call.name, call.scope) is not flight.entry:
            return failed(
                Code.UNKNOWN_TOOL,
                f"{tool.name} was removed or replaced before the call started; it did not run.",
            )
        if tool.changes_the_world:
            await flight.log.before_side_effect()
        return await run_wrapped(flight, flight.entry)

    async def settle(self, flight: Flight, output: ToolOutput) -> ToolOutcome:
        """`output` after every listener had its say, cleaned and cut to size."""
        given = output if output is flight.output else checked_output(flight, output)
        return await self.closed(flight, given if flight.unreviewed else await self._reviewed(flight, given))

    async def closed(self, flight: Flight, output: ToolOutput) -> ToolOutcome:
        """The outcome of `output` without asking listeners."""
        content, value = sanitise(_rendered(output)), canonical(output.value)
        if len(value) > MAX_VALUE_BYTES:
            value = b"null"
        shown, truncation = await self._shown(flight.call, content)
        return ToolOutcome(
            call_id=flight.call.call_id,
            root_call_id=flight.call.root_call_id,
            name=flight.call.name,
            content=shown if shown.strip() else EMPTY,
            value=value,
            is_error=output.is_error,
            error_code=output.error_code,
            concludes_turn=output.concludes_turn,
            started=flight.started,
            side_effects=tuple(sorted(flight.tool.side_effects)) if flight.started and flight.tool else (),
            truncation=truncation,
        )

    def room(self, call: ToolInvocation) -> Room:
        """How much of the result of `call` a model reads."""
        chosen = call.ctx.find(ResultRoom)
        return Room(self.max_result_chars) if chosen is None else chosen.room(call, self.max_result_chars)

    async def _shown(self, call: ToolInvocation, content: str) -> tuple[str, Truncation | None]:
        if len(content) <= ALWAYS_SHOWN:
            return content, None
        room = self.room(call)
        if room.holds(content):
            return content, None
        return bounded(content, room, await _stored(call.ctx, content))

    def announce(self, flight: Flight, outcome: ToolOutcome) -> None:
        """Tell observers that a logged call has ended."""
        if flight.call.ctx.heard(ToolFinished):
            flight.call.ctx.notice(ToolFinished(flight.call, outcome))

    async def _reviewed(self, flight: Flight, output: ToolOutput) -> ToolOutput:
        call = flight.call
        if not call.ctx.heard(PostExecute):
            return output

        async def accept(signal: PostExecute) -> ToolOutput:
            return signal.output

        try:
            answer = await call.ctx.around(PostExecute(call, flight.tool, output), accept)
        except Exception as error:  # noqa: BLE001 - what could not be reviewed is not shown
            call.ctx.report(error, f"reviewing the result of tool {call.name}")
            return failed(
                output.error_code or Code.TOOL_FAILED,
                f"The result of {call.name} could not be reviewed, so it is withheld: {described(error)}",
            )
        reviewed = checked_output(flight, answer)
        if not output.is_error:
            return reviewed
        return ToolOutput(reviewed.value, reviewed.content, is_error=True, error_code=output.error_code)

    async def _nested(
        self, log: CallLog, parent: ToolInvocation, name: str, given: JsonObject
    ) -> ToolOutcome:
        parsed = of_object(given)
        arguments = parsed if isinstance(parsed, Arguments) else NO_ARGUMENTS
        call_id = log.earlier.nested(parent, name, arguments.text)
        past = log.earlier.call(call_id)
        if past is not None and past.outcome is not None:
            return past.outcome
        invocation = ToolInvocation(
            call_id,
            name,
            parent.caller,
            arguments.value,
            root_call_id=parent.root_call_id,
            parent=parent,
            reenter=partial(self._nested, log),
            repeated=_begun(past),
        )
        if past is None:
            log.on_nested_call(parent, ToolCall(call_id, name, arguments.text))
        flight = await self._admitted(invocation, parsed, log)
        outcome = await self.settle(flight, await self.dispatch(flight))
        log.on_nested_result(flight.call, outcome)
        self.announce(flight, outcome)
        return outcome


def _begun(past: EarlierCall | None) -> bool:
    return past is not None and past.begun


def _rendered(output: ToolOutput) -> str:
    if output.content is not None:
        return output.content
    value: JsonValue = output.value
    if value is None or isinstance(value, str):
        return value or ""
    return canonical(value).decode()


async def _stored(ctx: Context, content: str) -> str | None:
    blobs = ctx.find(Blobs)
    if blobs is None:
        return None
    try:
        return await to_thread.run_sync(blobs.put, content.encode())
    except Exception as error:  # noqa: BLE001 - the result is worth more than its full text
        ctx.report(error, "storing the full text of a tool result")
        return None
