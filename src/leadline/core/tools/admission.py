"""Decides whether a call may run: known tool, strict arguments, policies, approval, guards. Denial is the default."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from typing import cast, get_args

from leadline.core.tools.approval import ApprovalDecision, ApprovalOutcome, ApprovalRequest, Approvals
from leadline.core.tools.arguments import Arguments, BadArguments
from leadline.core.tools.flight import Flight
from leadline.core.tools.outcome import Code, failed
from leadline.core.tools.policy import Allow, Ask, Deny, PreExecute
from leadline.core.tools.registry import ToolRegistry
from leadline.core.tools.sanitise import sanitise
from leadline.core.tools.shape import Violations
from leadline.core.tools.spec import Tool, ToolOutput

MAX_NESTING = 8
"""How deeply tools may call tools."""

_SHOWN_NAMES = 30
_OUTCOMES: frozenset[str] = frozenset(get_args(ApprovalOutcome))

_UNANSWERED: dict[ApprovalOutcome, str] = {
    "expired": "nobody answered the request for approval in time; it may be asked for again",
    "cancelled": "the request for approval was cancelled",
    "no-approver": "it needs approval, and nobody here can give it",
}


def unknown_tool(name: str, known: Collection[str]) -> ToolOutput:
    """The result of a call that names no visible tool; names the nearest ones."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    names = sorted(known)
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    there_are = f" Available: {', '.join(names[:_SHOWN_NAMES])}{more}." if names else " No tool is available."
    return failed(Code.UNKNOWN_TOOL, f"There is no tool {name!r}.{hint}{there_are}")


def fitted(flight: Flight, parsed: Arguments | BadArguments) -> ToolOutput | None:
    """Why the arguments do not fit the tool's parameters; None where they do."""
    tool = flight.tool
    if tool is None:
        return None
    if isinstance(parsed, BadArguments):
        return failed(Code.INVALID_ARGS, f"{tool.name} did not run. {parsed.problem}")
    try:
        flight.accept(tool)
    except Violations as error:
        lines = "\n".join(f"- {line}" for line in error.lines)
        return failed(
            Code.INVALID_ARGS,
            f"{tool.name} did not run: its arguments do not fit its parameters.\n{lines}\n"
            f"Correct this and call {tool.name} again.",
        )
    except Exception as error:  # noqa: BLE001 - a validator of the tool's own may fail in any way
        flight.call.ctx.report(error, f"validating the arguments of tool {tool.name}")
        return failed(Code.TOOL_FAILED, f"{tool.name} could not check its arguments: {described(error)}")
    return None


async def judged(flight: Flight, tool: Tool, registry: ToolRegistry) -> ToolOutput | None:
    """Why policies, approval or guards forbid the call; None where it may run."""
    decision = _denied_before(flight) or await _policies(flight, tool)
    if isinstance(decision, Ask):
        decision = await _approval(flight, tool, decision.reason)
    if isinstance(decision, Allow):
        decision = await _guards(flight, registry)
    return _denied(tool, decision.reason) if isinstance(decision, Deny) else None


def described(error: BaseException) -> str:
    """An error for a model and a log: class, message, and where the kernel says it was raised."""
    if isinstance(error, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return "; ".join(described(one) for one in inner)
    where = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {error}{where}"


def _denied(tool: Tool, reason: str) -> ToolOutput:
    return failed(Code.DENIED, f"{tool.name} did not run: denied. Reason: {reason}")


async def _policies(flight: Flight, tool: Tool) -> Allow | Ask | Deny:
    ctx = flight.call.ctx
    if not ctx.heard(PreExecute):
        return Allow()
    try:
        answers = await ctx.gather(PreExecute(flight.call, tool))
    except Exception as error:  # noqa: BLE001 - a policy that fails denies; the kernel's report tells who
        flight.unreviewed = True
        ctx.report(error, f"policy for tool {tool.name}; the call was denied")
        return Deny(f"a policy failed: {described(error)}")
    return _strictest(answers)


def _strictest(answers: Sequence[object]) -> Allow | Ask | Deny:
    given = [answer for answer in answers if answer is not None]
    strange = [Deny(f"a policy answered {it!r}") for it in given if not isinstance(it, Allow | Deny | Ask)]
    denials = strange + [it for it in given if isinstance(it, Deny)]
    if denials:
        return Deny("; ".join(it.reason for it in denials))
    questions = [it for it in given if isinstance(it, Ask)]
    return Ask("; ".join(it.reason for it in questions)) if questions else Allow()


async def _approval(flight: Flight, tool: Tool, reason: str) -> Allow | Deny:
    call = flight.call
    approvals = call.ctx.find(Approvals)
    if approvals is None:
        return Deny(f"{_UNANSWERED['no-approver']} ({reason})")
    request = _request(flight, tool, reason)
    decision = flight.past.decided(request) if flight.past is not None else None
    return _answer(decision or await _asked(approvals, request, flight), request.reason)


def _request(flight: Flight, tool: Tool, reason: str) -> ApprovalRequest:
    call = flight.call
    return ApprovalRequest(
        call_id=call.call_id,
        root_call_id=call.root_call_id,
        tool=tool.name,
        arguments=flight.arguments.text,
        side_effects=tool.side_effects,
        reason=sanitise(reason),
        agent_id=call.agent_id,
        session_id=call.session.id if call.session else None,
    )


async def _asked(approvals: Approvals, request: ApprovalRequest, flight: Flight) -> ApprovalDecision:
    """What whoever is asked decides, with the question and the answer in the log.

    Raises:
        Exception: they could not be logged.
    """
    flight.log.on_asked(request)
    await flight.log.before_side_effect()
    try:
        decision = _well_formed(await approvals.decide(request))
    except Exception as error:  # noqa: BLE001 - no answer is a no; the kernel's report tells who failed
        flight.call.ctx.report(error, f"approval of tool {request.tool}; the call was denied")
        decision = ApprovalDecision("denied", sanitise(f"asking for approval failed: {described(error)}"))
    flight.log.on_decided(request, decision)
    return decision


def _well_formed(given: object) -> ApprovalDecision:
    """The decision as a log can keep it; what is none is a no."""
    if isinstance(given, ApprovalDecision) and given.outcome in _OUTCOMES:
        return ApprovalDecision(given.outcome, sanitise(str(given.reason)))
    return ApprovalDecision("denied", sanitise(f"the approver gave {given!r}, which is no decision"))


def _denied_before(flight: Flight) -> Deny | None:
    """The answer that an earlier process got and had no time to act on, where it is a no: that holds."""
    asked = flight.past.question if flight.past is not None else None
    if asked is None or asked.decision is None:
        return None
    answer = _answer(asked.decision, asked.reason)
    return answer if isinstance(answer, Deny) else None


def _answer(decision: ApprovalDecision, reason: str) -> Allow | Deny:
    """`decision` about a question that was asked for `reason`, as a policy's answer."""
    if decision.outcome == "allowed-once":
        return Allow()
    why = decision.reason or _UNANSWERED.get(decision.outcome, "approval was refused")
    return Deny(f"{why} ({reason})")


async def _guards(flight: Flight, registry: ToolRegistry) -> Allow | Deny:
    call = flight.call
    for guard in registry.guards(call.scope):
        try:
            refusal = cast("object", await guard.refusal(call))
        except Exception as error:  # noqa: BLE001 - a guard that fails denies; the kernel's report tells which
            flight.unreviewed = True
            call.ctx.report(error, f"guard {guard.name} of {guard.owner}; the call was denied")
            return Deny(f"guard {guard.name} of {guard.owner} failed: {described(error)}")
        if refusal is not None:
            return Deny(refusal if isinstance(refusal, str) else f"guard {guard.name} answered {refusal!r}")
    return Allow()
