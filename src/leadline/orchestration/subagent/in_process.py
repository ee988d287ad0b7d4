"""Runs a child as an agent of this process, on a session of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import Event, fail_after

from leadline.core.agent.agents import Agents
from leadline.core.agent.errors import AgentDisposed
from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.messages import MessageSource
from leadline.core.session.errors import SessionError
from leadline.core.session.events import AbortCause, TurnEnd
from leadline.core.tools.registry import ToolRegistry
from leadline.orchestration.subagent.capture import TOOL_NAME, Capture
from leadline.orchestration.subagent.errors import SubagentDepthError, SubagentNotStarted
from leadline.orchestration.subagent.handed_in import CORRECTION, Corrected, handed_in, was_corrected
from leadline.orchestration.subagent.outcome import (
    bounded,
    diagnosis_of,
    output_of,
    stop_reason_of,
    usage_of,
)
from leadline.orchestration.subagent.schema import OutputSchema, listed
from leadline.orchestration.subagent.seam import (
    NO_USABLE_OUTPUT,
    Capability,
    Mode,
    StopReason,
    SubagentDriver,
    SubagentRequest,
    SubagentResult,
    SubagentRun,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from leadline.core.agent.agent import Agent
    from leadline.core.llm.jsonvalue import JsonObject
    from leadline.kernel.context import Context

ANY_OBJECT: JsonObject = {"type": "object"}
_BROKEN_OFF = frozenset(("aborted", "interrupted", "error"))
"""Ends of a turn after which the work is not done."""


class InProcess(SubagentDriver):
    """Children as agents of this process."""

    name = "in-process"
    capabilities: frozenset[Capability] = frozenset(
        ("fork", "output_schema", "depth_limit", "tools", "own_tools", "persona")
    )

    def __init__(self, ctx: Context, *, start_timeout_s: float = 30.0) -> None:
        """`start_timeout_s`: seconds that a child's session and setup may take."""
        self._ctx = ctx
        self._start_timeout_s = start_timeout_s

    async def start(self, request: SubagentRequest) -> SubagentRun:
        """See `SubagentDriver.start`."""
        capture = self._capture(request)
        spec = self._spec(request, capture)
        child = await self._made(request, self._ctx.get(Agents).create(spec))
        try:
            run = InProcessRun(child, request, capture)
            if request.announce is not None:
                request.announce(child.id)
            run.begin()
        except BaseException:
            await child.dispose()
            raise
        return run

    async def resume(self, request: SubagentRequest, session_id: str) -> SubagentRun:
        """See `SubagentDriver.resume`."""
        capture = self._capture(request, again=True)
        spec = self._spec(request, capture)
        child = await self._made(request, self._ctx.get(Agents).resume(session_id, spec), (SessionError,))
        try:
            run = InProcessRun(child, request, capture)
            run.go_on()
        except BaseException:
            await child.dispose()
            raise
        return run

    def _capture(self, request: SubagentRequest, *, again: bool = False) -> Capture | None:
        attempted = request.parent.depth + 1
        if attempted > request.max_depth:
            raise SubagentDepthError(attempted, request.max_depth)
        if request.output_schema is None:
            return None
        return Capture(OutputSchema(request.output_schema, asserted_before=again), request.check)

    def _spec(self, request: SubagentRequest, capture: Capture | None) -> AgentSpec:
        async def setup(child: Agent) -> None:
            tools, inherited = child.ctx.get(ToolRegistry), child.ctx.scope and child.ctx.scope.parent
            if tools.get(TOOL_NAME, inherited) is not None:
                # The parent's own way of handing in a result is not the child's.
                tools.restrict(child.ctx, deny=(TOOL_NAME,))
            for tool in request.own_tools:
                tools.register(child.ctx, tool)
            if capture is not None:
                capture.install(child)

        return AgentSpec(
            kind="agent",
            purpose=request.purpose,
            model=request.model,
            options=request.options,
            persona=request.persona,
            parent=request.parent,
            label=request.label,
            tools_allow=request.tools,
            budget=request.budget,
            account=request.account,
            seed_turns=request.mode == "fork",
            setup=setup,
        )

    async def _made(
        self, request: SubagentRequest, making: Awaitable[Agent], told: tuple[type[Exception], ...] = ()
    ) -> Agent:
        """The agent; failures of the kinds `told` go on as they are."""
        try:
            with fail_after(self._start_timeout_s):
                return await making
        except TimeoutError as error:
            waited = TimeoutError(
                f"its session and setup took longer than {self._start_timeout_s:g} s; see what holds the "
                "folder of sessions"
            )
            raise SubagentNotStarted(request.label or request.purpose.name, waited) from error
        except told:
            raise
        except Exception as error:
            raise SubagentNotStarted(request.label or request.purpose.name, error) from error


class InProcessRun:
    """A child at work. Its task belongs to the child and ends with it, and so does the corrective turn."""

    def __init__(self, child: Agent, request: SubagentRequest, capture: Capture | None) -> None:
        self._child = child
        self._request = request
        self._capture = capture
        self._result: SubagentResult | None = None
        self._done = Event()
        self._cancelled = False
        self._corrected = False
        """Whether the child was told what is wrong with its output: it is told once."""

    @property
    def id(self) -> str:
        return self._child.id

    @property
    def session_id(self) -> str:
        return self._child.id

    @property
    def agent(self) -> Agent | None:
        return self._child

    @property
    def mode(self) -> Mode:
        """How the child's history began."""
        return self._request.mode

    def begin(self) -> None:
        """Give the child its prompt and set it to work."""
        self._prompt()
        self._child.ctx.spawn(self._work, name="delegated work")

    def go_on(self) -> None:
        """Set the child to work on what its log leaves to be done, which may be nothing."""
        child, end = self._child, self._child.last_turn_end
        self._corrected = was_corrected(child.session)
        self._look_again()
        if self._corrected:
            self._hold()
        if child.session.place.turn_open:
            child.proceed()
        elif len(child.inbox):
            child.wake()
        elif end is None:
            self._prompt()
        elif self._broken_off(end) and (self._capture is None or self._capture.captured is None):
            child.proceed()
        child.ctx.spawn(self._work, name="delegated work")

    def _broken_off(self, end: TurnEnd) -> bool:
        return end.reason in _BROKEN_OFF or (end.reason == "budget" and self._request.proceed)

    def _prompt(self) -> None:
        source = MessageSource("agent", self._request.parent.id)
        self._child.send(self._child.message(self._request.prompt, source))

    def _look_again(self) -> None:
        """Show the check what it was shown before."""
        if self._capture is not None:
            self._capture.restore(self._child)
        elif self._request.check is not None:
            for past in handed_in(self._child.session, TOOL_NAME):
                if isinstance(past, Corrected):
                    self._request.check(past.text)

    async def result(self) -> SubagentResult:
        await self._done.wait()
        assert self._result is not None
        return self._result

    async def cancel(self, reason: str = "") -> None:
        self._cancelled = True
        await self._child.cancel(AbortCause("parent", reason), keep_inbox=False)
        await self._done.wait()

    async def dispose(self) -> None:
        self._cancelled = True
        await self._child.dispose()

    async def _work(self) -> None:
        try:
            await self._child.when_idle()
            problems = self._missing()
            completed = stop_reason_of(self._child.last_turn_end) == "completed"
            if problems and completed and not self._cancelled and not self._corrected:
                self._corrected = True
                self._hold()
                self._child.send(self._child.message(_correction(problems), CORRECTION))
                await self._child.when_idle()
                problems = self._missing()
            self._result = self._settled(problems)
        except AgentDisposed:
            self._result = self._made("aborted", "disposed before it was done")
        except Exception as error:  # noqa: BLE001 - a child's failure is its result; the report tells who failed
            self._child.ctx.report(error, "delegated work")
            self._result = self._made("error", f"{type(error).__name__}: {error}")
        finally:
            if self._result is None:
                self._result = self._made("aborted", "disposed before it was done")
            self._done.set()

    def _hold(self) -> None:
        if self._capture is not None:
            self._capture.hold(self._child)

    def _missing(self) -> Sequence[str]:
        """What is wrong with the output; nothing where there is a good one, or where none was asked for."""
        output = output_of(self._child.session)
        if self._capture is None:
            return listed(self._request.check(output)) if self._request.check else ()
        if self._capture.captured is not None:
            return ()
        return self._capture.accept_text(output)

    def _settled(self, problems: Sequence[str]) -> SubagentResult:
        end = self._child.last_turn_end
        if not problems and (self._capture is not None or stop_reason_of(end) == "completed"):
            return self._made("completed", None)
        if self._cancelled:
            return self._made(
                "aborted", diagnosis_of(end) if stop_reason_of(end) == "aborted" else "cancelled"
            )
        reason = stop_reason_of(end)
        if reason != "completed":
            return self._made(reason, diagnosis_of(end))
        return self._made("error", f"{NO_USABLE_OUTPUT}: " + "; ".join(problems))

    def _made(self, reason: StopReason, diagnostic: str | None) -> SubagentResult:
        captured = self._capture.captured if self._capture is not None and reason == "completed" else None
        return SubagentResult(
            output=output_of(self._child.session),
            structured=captured.value if captured is not None else None,
            stop_reason=reason,
            diagnostic=None if diagnostic is None else bounded(diagnostic),
            failure=end.failure if (end := self._child.last_turn_end) is not None else None,
            usage=usage_of(self._child.session),
        )


def _correction(problems: Sequence[str]) -> str:
    lines = "\n".join(f"- {problem}" for problem in problems)
    return (
        f"Your answer cannot be used as the result:\n{lines}\n"
        "Correct all of this and hand the result in now. There is no further attempt."
    )
