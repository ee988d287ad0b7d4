"""Asks the model for one answer: as many attempts as the retry policy allows, all within one step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from leadline.core.agent.signals import CallWaiting, GiveUp, RequestFailed
from leadline.core.llm.assembler import Completion
from leadline.core.llm.failure import Wait
from leadline.core.llm.messages import AssistantMessage, Reasoning, Text, ToolCall
from leadline.core.llm.retry import Delay
from leadline.core.llm.stream import Finish
from leadline.core.llm.tokens import least_tokens, text_tokens
from leadline.core.llm.usage import Usage
from leadline.core.loop.attempt import Attempt
from leadline.core.loop.preparing import Preparing, Ready
from leadline.core.loop.sizing import cut_off
from leadline.core.session.events import (
    AbortCause,
    AssistantSaid,
    LlmRetry,
    RequestEnded,
    RequestSent,
    TurnReason,
)
from leadline.core.spend.meter import Opened, PaidCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.core.agent.agent import Agent
    from leadline.core.llm.failure import LlmFailure
    from leadline.core.llm.messages import AssistantContent
    from leadline.core.loop.cut import CutStep
    from leadline.core.loop.driver import Loop
    from leadline.core.loop.record import Record
    from leadline.core.loop.thread import Thread
    from leadline.core.session.events import AnswerState
    from leadline.core.spend.account import Account
    from leadline.core.spend.lines import Waiting
    from leadline.core.spend.money import Money


MOST_CHARACTERS = 8
"""Characters that a token of an answer has at most on the whole; where fewer tokens are reported, they are counted."""

MOST_RECOVERIES = 4
"""How often a failure of one answer may be taken over before the turn ends with it."""


@dataclass(frozen=True)
class End:
    """Why a turn is over."""

    reason: TurnReason
    cause: AbortCause | None = None
    failure: LlmFailure | None = None
    error: str = ""


@dataclass
class _Tries:
    """What the answer that is asked for has cost so far."""

    attempt: int = 0
    """Number of the latest attempt."""
    failures: int = 0
    """Attempts that failed: one that a kill cut off did not."""
    waited: float = 0.0
    """Seconds."""
    recovered: int = 0
    """How often a plugin took a failure over."""


class Asking:
    """The asking of one turn; keeps what the turn has spent."""

    def __init__(self, loop: Loop, agent: Agent, thread: Thread, record: Record, account: Account) -> None:
        """`account`: whom the turn's calls are charged to."""
        self._loop = loop
        self._agent = agent
        self._thread = thread
        self._record = record
        self._account = account
        self._preparing = Preparing(loop, agent, thread, record)
        self._cost: Money | None = None
        """What the latest attempt cost; None: not known."""
        self.max_tokens: int | None = None
        """The ceiling on output of the latest request."""

    async def answer(self, cut: CutStep | None = None) -> AssistantSaid | End:
        """The model's answer to the log as it stands; it is held for the log, or written.

        `cut`: what the step has of requests already. One that was in flight is sent again, byte for byte and under
        the same key; one that ended is not.

        Raises:
            LeadlineError: the request could not be made: no such provider, no prompt.
        """
        tries = _Tries()
        if cut is not None and cut.sent is not None:
            tries = _Tries(cut.sent.attempt, cut.failures, cut.waited)
            end = await self._after(cut, tries)
            if end is not None:
                return end
        ready = await self._ready(tries, again=cut is not None and cut.in_flight)
        while isinstance(ready, Ready):
            tries.attempt += 1
            completion = await self._attempt(ready, tries.attempt)
            if isinstance(completion, End):
                return completion
            if completion.finish.state in ("done", "length", "refused"):
                self._preparing.answered(ready, completion.usage.prompt)
                said = self._said(
                    completion.content, completion.finish.state, completion, ready, tries.attempt
                )
                self._record.hold(said)
                return said
            failure = completion.finish.failure or Wait("STREAM_CLOSED", "the answer ended before its end")
            tries.failures += 1
            failure = self._preparing.refused(ready, failure)
            outcome = await self._failed(
                tries, failure, self._ended(completion, ready, tries.attempt, failure)
            )
            if isinstance(outcome, End):
                return outcome
            if outcome == "anew":
                ready = await self._ready(tries)
        return ready

    def given_up(self, cut: CutStep) -> End | None:
        """The turn's end where the step was closed upon a failure that nothing was to be done about."""
        failure = cut.ended.failure if cut.ended is not None and cut.retry is None else None
        if failure is None:
            return None
        decision = self._loop.retry.decide(cut.failures, failure, cut.waited)
        return End("error", failure=failure if isinstance(decision, Delay) else decision.failure)

    async def _after(self, cut: CutStep, tries: _Tries) -> End | None:
        """What is left to do about the end of an earlier request; the turn's end where nothing is."""
        if cut.retry is not None:
            decided, delay = cut.retry
            # What has passed of the wait has passed; a clock that was set back makes it no longer.
            await self._loop.clock.sleep(min(max(0.0, decided + delay - self._loop.clock.now()), delay))
        elif cut.ended is not None and cut.ended.failure is not None:
            outcome = await self._failed(tries, cut.ended.failure)
            return outcome if isinstance(outcome, End) else None
        return None

    async def _failed(
        self, tries: _Tries, failure: LlmFailure, *ended: RequestEnded
    ) -> End | Literal["again", "anew"]:
        """Write that an attempt failed, and wait; whether the same request is tried again, or a new one is made."""
        decision = self._loop.retry.decide(tries.failures, failure, tries.waited, self._loop.unit())
        if isinstance(decision, Delay):
            retry = LlmRetry(
                turn=self._record.turn,
                step=self._record.step,
                attempt=tries.attempt,
                delay_s=decision.seconds,
                failure=failure,
            )
            self._record.write(*ended, retry)
            await self._loop.clock.sleep(decision.seconds)
            tries.waited += decision.seconds
            return "again"
        self._record.write(*ended)
        left = await self._left(tries, decision.failure)
        return "anew" if left is None else End("error", failure=left)

    async def _ready(self, tries: _Tries, *, again: bool = False) -> Ready | End:
        """The next request; where it is too large, plugins may make it smaller as often as it helps."""
        while True:
            ready = await self._preparing.request(again=again)
            if isinstance(ready, Ready):
                self.max_tokens = ready.max_tokens
                return ready
            self._record.flush()
            left = await self._left(tries, ready)
            if left is not None:
                return End("error", failure=left)

    async def _attempt(self, ready: Ready, number: int) -> Completion | End:
        """One attempt, from the reservation of what it may use to what it used; the turn's end where it is not made."""
        opened = await self._opened(ready)
        if isinstance(opened, End):
            return opened
        current = Attempt(
            self._agent,
            self._loop.clock,
            turn=self._record.turn,
            step=self._record.step,
            number=number,
            model=ready.model,
            taken_ids=self._thread.call_ids,
        )
        key = self._announced(opened, ready, number)
        try:
            if self._loop.config.durability == "synced":
                await self._record.session.sync()
            completion = await current.run(ready.call, key, opened.heard)
        except BaseException:
            self._settle(opened, ready, current.completion)
            self._cut_off(current.completion, ready, number)
            raise
        completion = self._settle(opened, ready, completion)
        if completion.finish.state in ("error", "incomplete"):
            current.reset()
        self._thread.call_ids.update(call.id for call in completion.tool_calls)
        return completion

    async def _opened(self, ready: Ready) -> Opened | End:
        """The right to make the call: what it may use is reserved, and it has had its turn in the line."""
        call = PaidCall(
            account=self._account,
            what=ready.model,
            purpose=self._thread.purpose.name,
            prompt_tokens=ready.size.tokens,
            most_output=ready.most_output,
            group=self._agent.group,
            priority=self._agent.spec.priority,
            child=self._agent.depth > 0,
        )
        opened = await self._loop.meter.open(call, self._waits)
        if isinstance(opened, Opened):
            return opened
        if opened.code == "BUDGET":
            return End("budget", cause=AbortCause("budget", opened.message))
        return End("error", failure=opened)

    def _waits(self, waiting: Waiting) -> None:
        """The call stands in line: what is held is written first, and who looks on is told."""
        self._record.flush()
        self._agent.ctx.notice(CallWaiting(self._agent, waiting))

    def _announced(self, opened: Opened, ready: Ready, number: int) -> str:
        """The idempotency key of an attempt that is in the log; where it cannot be, nothing is sent or charged."""
        key = f"{self._record.session.id}-{ready.call.digest[:32]}"
        try:
            self._record.write(self._sent(ready, number, key))
        except BaseException:
            opened.release()
            raise
        self._thread.purpose_was_logged()
        return key

    def _settle(self, opened: Opened, ready: Ready, completion: Completion) -> Completion:
        """Charge what was reported, else an estimate, and keep what it cost for the log.

        Returns the completion: a failure where the provider cannot have read what it was sent.
        """
        usage = completion.usage
        least = self._preparing.least(ready, usage.prompt)
        floor = _least_used(least, completion)
        guess = None if usage.reported else _guessed(ready, completion)
        cost = opened.settle(usage, None, completion.finish.failure, guess, floor)
        self._cost = None if cost is None or not cost.complete else cost.known
        self._preparing.learn(ready, usage.prompt, least)
        wrong = None if least is None else cut_off(least, usage.prompt, ready.model)
        if wrong is None or self._preparing.counts_in_part(ready, usage.prompt):
            return completion
        return Completion((), usage, Finish("error", wrong))

    async def _left(self, tries: _Tries, failure: LlmFailure) -> LlmFailure | None:
        """The failure that the turn ends with; None where a plugin wants another attempt, which it may not for ever."""
        if not self._loop.heard(RequestFailed) or tries.recovered >= MOST_RECOVERIES:
            return failure
        tries.recovered += 1
        signal = RequestFailed(self._agent, self._record.turn, self._record.step, tries.attempt, failure)
        answer = await self._agent.ctx.first(signal)
        if isinstance(answer, GiveUp):
            return answer.failure
        return failure if answer is None else None

    def _cut_off(self, partial: Completion, ready: Ready, attempt: int) -> None:
        """What a person could read by now is kept, without calls; where there is nothing, the end is."""
        kept = tuple(part for part in partial.content if isinstance(part, Text | Reasoning))
        if any(part.text.strip() for part in kept):
            self._record.write(self._said(kept, "interrupted", partial, ready, attempt))
        else:
            self._record.write(self._ended(partial, ready, attempt, None))

    def _sent(self, ready: Ready, attempt: int, key: str) -> RequestSent:
        data, digest = self._thread.purpose_fields()
        return RequestSent(
            turn=self._record.turn,
            step=self._record.step,
            attempt=attempt,
            purpose=self._thread.purpose.name,
            purpose_data=data,
            purpose_digest=digest,
            model=ready.model,
            digest=ready.call.digest,
            messages=len(ready.conversation),
            tokens=ready.size.raw,
            parts=ready.parts,
            idempotency_key=key,
        )

    def _said(
        self,
        content: Sequence[AssistantContent],
        state: AnswerState,
        completion: Completion,
        ready: Ready,
        attempt: int,
    ) -> AssistantSaid:
        return AssistantSaid(
            turn=self._record.turn,
            step=self._record.step,
            attempt=attempt,
            message=AssistantMessage(self._loop.ids.new("m"), tuple(content), ready.model),
            state=state,
            usage=_reported(completion.usage),
            cost=self._cost,
            digest=ready.call.digest,
            cut_calls=tuple(call.name for call in completion.dropped_calls),
            leaked_call=completion.finish.leaked_call,
            correction=completion.finish.correction,
            failure=completion.finish.failure if state == "refused" else None,
            detail=(completion.finish.detail or "") if state == "refused" else "",
        )

    def _ended(
        self, completion: Completion, ready: Ready, attempt: int, failure: LlmFailure | None
    ) -> RequestEnded:
        state: Literal["cancelled", "error", "incomplete"] = "cancelled"
        if failure is not None:
            state = "incomplete" if completion.finish.state == "incomplete" else "error"
        return RequestEnded(
            turn=self._record.turn,
            step=self._record.step,
            attempt=attempt,
            digest=ready.call.digest,
            state=state,
            failure=failure,
            usage=_reported(completion.usage),
            cost=self._cost,
        )


def _guessed(ready: Ready, completion: Completion) -> Usage:
    """What a call is taken to have used whose provider said nothing: its prompt, if it was answered at all."""
    written = sum(text_tokens(_words(part)) for part in (*completion.content, *completion.dropped_calls))
    answered = written > 0 or completion.finish.state in ("done", "length", "refused")
    return Usage(input=ready.size.tokens, output=written) if answered else Usage()


def _least_used(prompt: int | None, completion: Completion) -> Usage | None:
    """What a call used for certain, where less is reported; None where nothing speaks against the report."""
    reported = completion.usage.completion
    if reported is None:
        return None if prompt is None else Usage(input=prompt)
    words = [_words(part) for part in (*completion.content, *completion.dropped_calls)]
    written = 0
    if reported * MOST_CHARACTERS < sum(map(len, words)):
        written = sum(map(least_tokens, words))
    return Usage(input=prompt or 0, output=written) if prompt or written > reported else None


def _words(part: AssistantContent) -> str:
    return part.name + part.arguments if isinstance(part, ToolCall) else part.text


def _reported(usage: Usage) -> Usage | None:
    return usage if usage.reported else None
