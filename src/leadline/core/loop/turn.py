"""One turn: claim what waits, ask the model, run the tools it calls, until it stops or is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.core.agent.signals import Enter, PreStep, Reject, StepDecision, TurnEnded, TurnStopping
from leadline.core.agent.spec import TurnBudget
from leadline.core.llm.failure import Wait
from leadline.core.llm.messages import MessageSource, Text, UserMessage
from leadline.core.loop.asking import Asking, End
from leadline.core.loop.calls import StepCalls
from leadline.core.loop.cut import Spoken
from leadline.core.loop.judgement import Accept, Answer, Correct, EndLength, Fail, Faults, StopLength, judge
from leadline.core.loop.record import Record
from leadline.core.loop.thread import SNAPSHOT
from leadline.core.session.errors import SessionError, refused_by_disk
from leadline.core.session.events import (
    AbortCause,
    Event,
    InboxSpliced,
    TurnEnd,
    TurnLimits,
    TurnStart,
    UserEntered,
)
from leadline.core.session.repair import repairs
from leadline.core.spend.account import Ceilings, Hold
from leadline.core.spend.money import Money, dollars, money
from leadline.core.tools.admission import described
from leadline.core.tools.invocation import Caller
from leadline.core.tools.scheduler import run_calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.core.agent.agent import Agent
    from leadline.core.agent.driver import Abort
    from leadline.core.loop.cut import CutStep, CutTurn
    from leadline.core.loop.driver import Loop
    from leadline.core.loop.judgement import Judgement
    from leadline.core.loop.thread import Thread
    from leadline.core.spend.account import Account
    from leadline.kernel.effects import TaskHandle

_ANY_CALL = Hold(tokens=1, cost=Money(1), calls=1)

CORRECTION = MessageSource("plugin", "loop", "correction")
"""The source of messages that tell a model why its answer could not be used."""


class Turn:
    """One turn of one agent."""

    def __init__(
        self, loop: Loop, agent: Agent, thread: Thread, abort: Abort, cut: CutTurn | None = None
    ) -> None:
        """`cut`: the turn that is open in the log, to go on with it; None opens a new one."""
        self._loop = loop
        self._agent = agent
        self._thread = thread
        self._abort = abort
        self._cut = cut
        self._budget = loop.config.budget(self._given())
        self._record = (
            Record(agent.session, agent.session.place.turn + 1)
            if cut is None
            else Record(agent.session, cut.number, cut.step.number, step_open=cut.step.open)
        )
        self._account = self._opened_account()
        self._asking = Asking(loop, agent, thread, self._record, self._account)
        self._calls = StepCalls(loop, agent, self._record)
        self._caller = Caller(agent.ctx, agent.id, agent.session, self._account, agent.group)
        self._faults = Faults()
        self._too_long: str | None = None
        """What was said when an answer reached the output ceiling; the turn cannot end well after that."""

    def _given(self) -> TurnBudget:
        """What this turn was given; one that was cut off and is given nothing now has what it was given then."""
        given = self._agent.spec.budget
        before = self._cut.limits if self._cut is not None else None
        if before is None or self._limits() is not None:
            return given
        cost = None if before.cost is None else dollars(before.cost)
        return TurnBudget(given.max_steps, before.seconds, before.tokens, cost, before.calls)

    def _limits(self) -> TurnLimits | None:
        """The ceilings that somebody set on this turn; those of a child are kept by whom it works for."""
        if self._agent.depth:
            return None
        own, account = self._agent.spec.budget, self._agent.account.ceilings
        cost = None if own.max_cost is None else money(own.max_cost)
        limits = TurnLimits(
            own.max_tokens if account.tokens is None else account.tokens,
            cost if account.cost is None else account.cost,
            own.max_calls if account.calls is None else account.calls,
            own.max_seconds if account.seconds is None else account.seconds,
        )
        return None if limits == TurnLimits() else limits

    def _opened_account(self) -> Account:
        """What the turn may spend, what it spent before it was cut off taken away."""
        budget, cut = self._budget, self._cut
        ceilings = Ceilings(
            tokens=budget.max_tokens,
            cost=None if budget.max_cost is None else money(budget.max_cost),
            calls=budget.max_calls,
        )
        account = self._agent.account.child(f"turn {self._record.turn}", ceilings)
        return account if cut is None else account.restored(cut.spent, above=False)

    async def run(self, *, proceed: bool) -> None:
        """From turn/start to turn/end.

        Raises:
            SessionWriteFailed, BlobWriteFailed: what happened cannot be written down. The turn is left open where it
                was, as by a process that dies, and can go on from there when the disk is well.
        """
        self._agent.session.append_all(self._opening(proceed=proceed))
        deadline = self._deadline()
        end: End | None = None
        left_open = False
        try:
            with self._abort.scope:
                end = await self._steps(proceed=proceed)
        except Exception as error:
            if refused_by_disk(error):
                left_open = True
                raise
            self._agent.ctx.report(error, f"turn {self._record.turn}")
            end = End("error", error=described(error))
        finally:
            if deadline is not None:
                deadline.cancel()
            # Cancellation owns every outcome but a completed one.
            if end is None or (self._abort.cause is not None and end.reason != "completed"):
                end = self._aborted()
            if not left_open:
                self._close(end)
        await self._sync()

    def _opening(self, *, proceed: bool) -> list[Event]:
        cut, session = self._cut, self._agent.session
        if cut is not None:
            return [cut.resumed]
        # A turn that was left open, say by a process that died, is closed before the next one opens.
        left_open = repairs(session) if session.place.turn_open else []
        return [*left_open, TurnStart(turn=self._record.turn, proceeds=proceed, limits=self._limits())]

    # the steps

    async def _steps(self, *, proceed: bool) -> End:
        stopping = False
        if self._cut is not None:
            outcome = await self._take_up(self._cut)
            if isinstance(outcome, End):
                return outcome
            stopping, proceed = outcome, self._cut.proceeds
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
            step = self._record.step + 1
            decision = await self._decide(claimed, step)
            if isinstance(decision, Reject):
                return self._blocked(claimed, decision.reason)
            facts = self._entering(claimed, decision.messages, step)
            needless = stopping or (self._record.step == 0 and not proceed)
            if needless and not any(isinstance(fact, UserEntered) for fact in facts):
                self._agent.inbox.drop(claimed)
                return self._natural_end()
            facts += await self._news(step)
            self._record.start_step(facts, self._agent.inbox)
            outcome = await self._step()
            self._record.end_step()
            if isinstance(outcome, End):
                return outcome
            stopping = outcome

    def _blocked(self, claimed: Sequence[UserMessage], reason: str) -> End:
        self._agent.inbox.drop(claimed, refused=reason)
        return End("blocked", cause=AbortCause("plugin", reason))

    def _waiting(self) -> tuple[UserMessage, ...]:
        return self._agent.inbox.waiting("step" if self._record.step else "turn")

    async def _decide(self, claimed: tuple[UserMessage, ...], step: int) -> StepDecision:
        """What plugins make of the input; it stays queued until it has entered."""
        if not self._loop.heard(PreStep):
            return Enter(claimed)
        self._record.flush()

        async def enter(signal: PreStep) -> StepDecision:
            return Enter(signal.messages)

        signal = PreStep(self._agent, self._record.turn, step, claimed)
        return await self._agent.ctx.around(signal, enter)

    def _entering(
        self, claimed: Sequence[UserMessage], messages: Sequence[UserMessage], step: int
    ) -> list[Event]:
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
            facts.append(UserEntered(message=message, turn=self._record.turn, step=step, claims=claims))
        if unused:
            left = tuple(message.id for message in claimed if message.id in unused)
            facts.append(InboxSpliced(target="next-step", removed=left, outcome="dropped"))
        return facts

    async def _news(self, step: int) -> list[Event]:
        """The current facts as a message, where they are not what the model knows already."""
        snapshot = await self._loop.prompt.snapshot(self._agent.ctx)
        text = snapshot.change(self._thread.snapshot)
        if text is None:
            return []
        self._thread.snapshot = text
        message = UserMessage(self._loop.ids.new("m"), (Text(text),), SNAPSHOT)
        return [UserEntered(message=message, turn=self._record.turn, step=step)]

    async def _step(self, cut: CutStep | None = None) -> End | bool:
        """One answer and its tools: the turn's end, or whether it stops unless something objects."""
        answer = await self._asking.answer(cut)
        if isinstance(answer, End):
            return answer
        return await self._used(Spoken(answer, self._asking.max_tokens), cut)

    async def _used(self, spoken: Spoken, cut: CutStep | None) -> End | bool:
        """What an answer comes to; its calls are run, but for those that a step which was cut off has results of."""
        verdict = self._verdict(spoken, cut)
        if verdict is not None:
            return verdict
        calls, done = spoken.said.message.tool_calls, cut.answers if cut is not None else {}
        concluded = any(done[call.id].concludes_turn for call in calls if call.id in done)
        left = [call for call in calls if call.id not in done]
        if left and (cut is None or cut.open):
            log = self._calls.log() if cut is None else self._calls.log(cut.earlier)
            outcomes = await run_calls(self._loop.pipeline, left, self._caller, log)
            concluded = concluded or any(outcome.concludes_turn for outcome in outcomes)
        return concluded or not calls

    def _verdict(self, spoken: Spoken, cut: CutStep | None) -> End | bool | None:
        """The turn's end, or False to ask again, where the answer is of no use; None where it is."""
        said = spoken.said
        if not said.message.tool_calls:
            self._record.flush()
        if said.state == "interrupted":
            return False
        if said.state == "refused":
            return End("refusal", failure=said.failure, error=said.detail)
        match self._weighed(spoken):
            case Correct(_, text):
                # What was told before the process died is told once.
                if cut is None or (cut.open and CORRECTION not in cut.told):
                    self._agent.inject(self._agent.message(text, CORRECTION))
                return False
            case StopLength():
                return True
            case EndLength(reason):
                return End("max-tokens", error=reason)
            case Fail(code, reason):
                return End("error", failure=Wait(code, reason))
            case _:
                return None

    def _weighed(self, spoken: Spoken) -> Judgement:
        """What is to be done about an answer, with what the turn keeps of it."""
        said = spoken.said
        if said.state not in ("done", "length"):
            return Accept()
        self._faults, judgement = judge(
            self._faults,
            Answer(
                state=said.state,
                text=bool(said.message.text.strip()),
                calls=tuple(call.name for call in said.message.tool_calls) or said.cut_calls,
                leaked_call=said.leaked_call,
                correction=said.correction,
                max_tokens=spoken.max_tokens or (said.usage.completion if said.usage else None),
            ),
        )
        if isinstance(judgement, StopLength):
            self._too_long = judgement.reason
        elif isinstance(judgement, Correct) and judgement.kind == "truncated":
            self._too_long = judgement.text
        return judgement

    # going on with a turn that was cut off

    async def _take_up(self, cut: CutTurn) -> End | bool:
        """Finish the step that was cut off; as `_step`, for the last step of the log."""
        step = cut.step
        for spoken in cut.spoken[: len(cut.spoken) - (step.said is not None)]:
            self._weighed(spoken)
        if cut.refused is not None:
            return End("blocked", cause=AbortCause("plugin", cut.refused))
        if not step.number:
            return False
        if not step.open:
            return await self._closed_step(cut)
        outcome = await self._open_step(cut)
        self._record.end_step()
        return outcome

    async def _closed_step(self, cut: CutTurn) -> End | bool:
        step = cut.step
        if step.said is not None:
            return await self._used(cut.spoken[-1], step)
        return self._asking.given_up(step) or False

    async def _open_step(self, cut: CutTurn) -> End | bool:
        step = cut.step
        if step.said is not None:
            return await self._used(cut.spoken[-1], step)
        if step.sent is None:
            end = await self._enter_rest(cut)
            if end is not None:
                return end
        return await self._step(step)

    async def _enter_rest(self, cut: CutTurn) -> End | None:
        """Let in what the step was opened for and had not entered when the process died."""
        inbox, step = self._agent.inbox, cut.step
        opens = step.number == 1 and any(message.id == cut.prompt for message in inbox.next_turn)
        claimed = inbox.waiting("turn" if opens else "step")
        facts: list[Event] = []
        if claimed or not step.entered:
            decision = await self._decide(claimed, step.number)
            if isinstance(decision, Reject):
                return self._blocked(claimed, decision.reason)
            facts = self._entering(claimed, decision.messages, step.number)
        self._record.enter([*facts, *await self._news(step.number)], inbox)
        return None

    # the end

    async def _ask_to_stop(self) -> None:
        self._record.flush()
        if self._loop.heard(TurnStopping):
            signal = TurnStopping(self._agent, self._record.turn, self._record.step)
            await self._agent.ctx.gather(signal)

    def _natural_end(self) -> End:
        return End("completed") if self._too_long is None else End("max-tokens", error=self._too_long)

    def _over_budget(self) -> End | None:
        steps = self._budget.max_steps
        if steps is not None and self._record.step >= steps:
            return End(
                "budget", cause=AbortCause("budget", f"max_steps: all {steps} steps of the turn are used")
            )
        used_up = self._account.exhausted(_ANY_CALL)
        return None if used_up is None else End("budget", cause=AbortCause("budget", used_up.message))

    def _deadline(self) -> TaskHandle | None:
        seconds = self._budget.max_seconds
        if seconds is None:
            return None
        left = max(0.0, seconds - (self._cut.seconds if self._cut is not None else 0.0))

        async def watch() -> None:
            await self._loop.clock.sleep(left)
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
            await self._agent.session.sync()
        except SessionError as error:
            self._agent.ctx.report(error, f"making turn {self._record.turn} survive a power cut")
