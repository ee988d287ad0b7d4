"""One turn: claim what waits, ask the model, run the tools it calls, until it stops or is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.core.agent.signals import Enter, PreStep, Reject, StepDecision, TurnEnded, TurnStopping
from leadline.core.llm.failure import Wait
from leadline.core.llm.messages import MessageSource, Text, UserMessage
from leadline.core.loop.asking import Asking, End
from leadline.core.loop.calls import StepCalls
from leadline.core.loop.judgement import Answer, Correct, EndLength, Fail, Faults, StopLength, judge
from leadline.core.loop.record import Record
from leadline.core.loop.thread import SNAPSHOT
from leadline.core.session.errors import SessionError
from leadline.core.session.events import AbortCause, Event, InboxSpliced, TurnEnd, TurnStart, UserEntered
from leadline.core.session.repair import repairs
from leadline.core.tools.admission import described
from leadline.core.tools.invocation import Caller
from leadline.core.tools.scheduler import run_calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.core.agent.agent import Agent
    from leadline.core.agent.driver import Abort
    from leadline.core.llm.assembler import Completion
    from leadline.core.loop.driver import Loop
    from leadline.core.loop.thread import Thread
    from leadline.kernel.effects import TaskHandle

CORRECTION = MessageSource("plugin", "loop", "correction")
"""The source of messages that tell a model why its answer could not be used."""


class Turn:
    """One turn of one agent."""

    def __init__(self, loop: Loop, agent: Agent, thread: Thread, abort: Abort) -> None:
        self._loop = loop
        self._agent = agent
        self._thread = thread
        self._abort = abort
        self._budget = loop.config.budget(agent.spec.budget)
        self._record = Record(agent.session, agent.session.place.turn + 1)
        self._asking = Asking(loop, agent, thread, self._record)
        self._calls = StepCalls(loop, agent, self._record)
        self._caller = Caller(agent.ctx, agent.id, agent.session)
        self._faults = Faults()
        self._cut: str | None = None
        """What was said when an answer reached the output ceiling; the turn cannot end well after that."""

    async def run(self, *, proceed: bool) -> None:
        """From turn/start to turn/end; only a log that cannot be written makes this raise."""
        session = self._agent.session
        # A turn that could not be closed, say for a full disk, is closed before the next one opens.
        left_open = repairs(session) if session.place.turn_open else []
        session.append_all([*left_open, TurnStart(turn=self._record.turn)])
        deadline = self._deadline()
        end: End | None = None
        try:
            with self._abort.scope:
                end = await self._steps(proceed=proceed)
        except Exception as error:  # noqa: BLE001 - ends this turn as its error; the report tells who failed
            self._agent.ctx.report(error, f"turn {self._record.turn}")
            end = End("error", error=described(error))
        finally:
            if deadline is not None:
                deadline.cancel()
            # Cancellation owns every outcome but a completed one.
            if end is None or (self._abort.cause is not None and end.reason != "completed"):
                end = self._aborted()
            self._close(end)
        await self._sync()

    # the steps

    async def _steps(self, *, proceed: bool) -> End:
        stopping = False
        while True:
            claimed = self._waiting()
            if stopping and not claimed:
                await self._ask_to_stop()
                claimed = self._waiting()
                if not claimed:
                    return self._natural_end()
            over = self._over_budget()
            if over is not None:
                return over
            decision = await self._decide(claimed)
            if isinstance(decision, Reject):
                self._agent.inbox.drop(claimed)
                return End("blocked", cause=AbortCause("plugin", decision.reason))
            facts = self._entering(claimed, decision.messages)
            needless = stopping or (self._record.step == 0 and not proceed)
            if needless and not any(isinstance(fact, UserEntered) for fact in facts):
                self._agent.inbox.drop(claimed)
                return self._natural_end()
            facts += await self._news()
            self._record.start_step(facts, self._agent.inbox)
            outcome = await self._step()
            self._record.end_step()
            if isinstance(outcome, End):
                return outcome
            stopping = outcome

    def _waiting(self) -> tuple[UserMessage, ...]:
        return self._agent.inbox.waiting("step" if self._record.step else "turn")

    async def _decide(self, claimed: tuple[UserMessage, ...]) -> StepDecision:
        """What plugins make of the input; it stays queued until it has entered."""
        if not self._loop.heard(PreStep):
            return Enter(claimed)
        self._record.flush()

        async def enter(signal: PreStep) -> StepDecision:
            return Enter(signal.messages)

        signal = PreStep(self._agent, self._record.turn, self._record.step + 1, claimed)
        return await self._agent.ctx.around(signal, enter)

    def _entering(self, claimed: Sequence[UserMessage], messages: Sequence[UserMessage]) -> list[Event]:
        """The facts that enter `messages` and use `claimed` up.

        What was cancelled or replaced while plugins decided does not enter. What was merged into new
        messages is claimed by the first of them; what was left out leaves the queue without entering.
        """
        if not claimed and not messages:
            return []
        queued = {message.id for message in self._agent.inbox.still_queued(claimed)}
        gone = {message.id for message in claimed} - queued
        entering = [message for message in messages if message.id not in gone]
        unused = queued - {message.id for message in entering}
        facts: list[Event] = []
        for message in entering:
            claims: tuple[str, ...] = (message.id,) if message.id in queued else ()
            if message.id not in queued and unused:
                claims, unused = tuple(it.id for it in claimed if it.id in unused), set[str]()
            facts.append(
                UserEntered(
                    message=message, turn=self._record.turn, step=self._record.step + 1, claims=claims
                )
            )
        if unused:
            left = tuple(message.id for message in claimed if message.id in unused)
            facts.append(InboxSpliced(target="next-step", removed=left, outcome="dropped"))
        return facts

    async def _news(self) -> list[Event]:
        """The current facts as a message, where they are not what the model knows already."""
        snapshot = await self._loop.prompt.snapshot(self._agent.ctx)
        text = snapshot.change(self._thread.snapshot)
        if text is None:
            return []
        self._thread.snapshot = text
        message = UserMessage(self._loop.ids.new("m"), (Text(text),), SNAPSHOT)
        return [UserEntered(message=message, turn=self._record.turn, step=self._record.step + 1)]

    async def _step(self) -> End | bool:
        """One answer and its tools: the turn's end, or whether it stops unless something objects."""
        completion = await self._asking.answer()
        if isinstance(completion, End):
            return completion
        if completion.finish.state == "refused":
            self._record.flush()
            return End("refusal", failure=completion.finish.failure, error=completion.finish.detail or "")
        calls = completion.tool_calls
        ended = self._judged(completion)
        if ended is not None:
            return ended
        if not calls:
            return True
        outcomes = await run_calls(self._loop.pipeline, calls, self._caller, self._calls.log)
        return any(outcome.concludes_turn for outcome in outcomes)

    def _judged(self, completion: Completion) -> End | bool | None:
        """The turn's end, or False to ask again, where the answer is of no use; None where it is."""
        calls = completion.tool_calls or completion.dropped_calls
        self._faults, judgement = judge(
            self._faults,
            Answer(
                state=completion.finish.state,
                text=bool(completion.text.strip()),
                calls=tuple(call.name for call in calls),
                leaked_call=completion.finish.leaked_call,
                max_tokens=self._asking.max_tokens or completion.usage.completion,
            ),
        )
        if not completion.tool_calls:
            self._record.flush()
        match judgement:
            case Correct(kind, text):
                self._cut = text if kind == "truncated" else self._cut
                self._agent.inject(self._agent.message(text, CORRECTION))
                return False
            case StopLength(reason):
                self._cut = reason
                return True
            case EndLength(reason):
                return End("max-tokens", error=reason)
            case Fail(code, reason):
                return End("error", failure=Wait(code, reason))
            case _:
                return None

    # the end

    async def _ask_to_stop(self) -> None:
        self._record.flush()
        if self._loop.heard(TurnStopping):
            signal = TurnStopping(self._agent, self._record.turn, self._record.step)
            await self._agent.ctx.gather(signal)

    def _natural_end(self) -> End:
        return End("completed") if self._cut is None else End("max-tokens", error=self._cut)

    def _over_budget(self) -> End | None:
        steps, tokens = self._budget.max_steps, self._budget.max_tokens
        if steps is not None and self._record.step >= steps:
            return End(
                "budget", cause=AbortCause("budget", f"max_steps: all {steps} steps of the turn are used")
            )
        if tokens is not None and self._asking.tokens >= tokens:
            detail = f"max_tokens: {self._asking.tokens} tokens are used, the turn has {tokens}"
            return End("budget", cause=AbortCause("budget", detail))
        return None

    def _deadline(self) -> TaskHandle | None:
        seconds = self._budget.max_seconds
        if seconds is None:
            return None

        async def watch() -> None:
            await self._loop.clock.sleep(seconds)
            self._abort.abort(AbortCause("budget", f"max_seconds: the turn has used its {seconds:g} s"))

        return self._agent.ctx.spawn(watch, name="turn deadline")

    def _aborted(self) -> End:
        cause = self._abort.cause or AbortCause("disposed")
        return End("budget" if cause.kind == "budget" else "aborted", cause=cause)

    def _close(self, end: End) -> None:
        event = TurnEnd(
            turn=self._record.turn, reason=end.reason, cause=end.cause, failure=end.failure, error=end.error
        )
        self._record.end_turn(event)
        self._agent.last_turn_end = event
        self._agent.ctx.notice(TurnEnded(self._agent, event))

    async def _sync(self) -> None:
        try:
            async with self._loop.syncs:
                await self._agent.session.sync()
        except SessionError as error:
            self._agent.ctx.report(error, f"making turn {self._record.turn} survive a power cut")
