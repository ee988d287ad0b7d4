"""Asks the model for one answer: as many attempts as the retry policy allows, all within one step."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from leadline.core.agent.signals import ProposeRequest, RequestFailed
from leadline.core.llm.failure import Wait
from leadline.core.llm.messages import AssistantMessage, Reasoning, Text
from leadline.core.llm.request import CallConfig
from leadline.core.llm.retry import Delay
from leadline.core.loop.attempt import Attempt
from leadline.core.session.events import (
    AbortCause,
    AssistantSaid,
    LlmRetry,
    RequestEnded,
    RequestSent,
    TurnReason,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.core.agent.agent import Agent
    from leadline.core.llm.adapter import PreparedCall
    from leadline.core.llm.assembler import Completion
    from leadline.core.llm.failure import LlmFailure
    from leadline.core.llm.messages import AssistantContent
    from leadline.core.llm.usage import Usage
    from leadline.core.loop.cut import CutStep
    from leadline.core.loop.driver import Loop
    from leadline.core.loop.record import Record
    from leadline.core.loop.thread import Thread
    from leadline.core.session.events import AnswerState, RequestParts


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


@dataclass(frozen=True)
class _Ready:
    """A request, encoded and named."""

    call: PreparedCall
    model: str
    messages: int
    parts: RequestParts
    max_tokens: int | None


class Asking:
    """The asking of one turn; keeps what the turn has spent."""

    def __init__(self, loop: Loop, agent: Agent, thread: Thread, record: Record) -> None:
        self._loop = loop
        self._agent = agent
        self._thread = thread
        self._record = record
        self.tokens = 0
        """Tokens that providers reported for this turn so far, failed attempts included."""
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
        ready = await self._prepare(again=cut is not None and cut.in_flight)
        while True:
            tries.attempt += 1
            completion = await self._attempt(ready, tries.attempt)
            if completion.finish.state in ("done", "length", "refused"):
                said = self._said(
                    completion.content, completion.finish.state, completion, ready, tries.attempt
                )
                self._record.hold(said)
                return said
            failure = completion.finish.failure or Wait("STREAM_CLOSED", "the answer ended before its end")
            tries.failures += 1
            outcome = await self._failed(
                tries, failure, self._ended(completion, ready, tries.attempt, failure)
            )
            if isinstance(outcome, End):
                return outcome
            if outcome == "anew":
                ready = await self._prepare()

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
        if await self._recovered(tries.attempt, decision.failure):
            return "anew"
        return End("error", failure=decision.failure)

    async def _prepare(self, *, again: bool = False) -> _Ready:
        """The request that the log stands for; `again`: with the header that is logged, if the model is the same."""
        thread = self._thread
        if not again or thread.header is None or thread.header.config.model != self._agent.model:
            header = thread.new_header(await self._config())
            if header is not None:
                self._record.hold(header)
                thread.header = header
        assert thread.header is not None
        config = thread.header.config
        # The conversation may only be read when what is held is of no account to it: it never is,
        # messages are written when they enter and results when they come.
        request = thread.request(thread.header, thread.derived.conversation)
        adapter, _ = self._loop.models.resolve(config.model)
        self.max_tokens = config.max_tokens
        return _Ready(
            adapter.prepare(request),
            str(config.model),
            len(request.conversation),
            thread.parts(thread.header, request.conversation),
            config.max_tokens,
        )

    async def _config(self) -> CallConfig:
        agent, options = self._agent, self._agent.spec.options
        config = CallConfig(
            model=agent.model,
            max_tokens=options.max_tokens,
            temperature=options.temperature,
            effort=options.effort,
            tool_choice=options.tool_choice,
        )
        if not self._loop.heard(ProposeRequest):
            return config
        self._record.flush()

        async def as_proposed(signal: ProposeRequest) -> CallConfig:
            return signal.config

        return await agent.ctx.around(ProposeRequest(agent, config), as_proposed)

    async def _attempt(self, ready: _Ready, number: int) -> Completion:
        loop, record = self._loop, self._record
        current = Attempt(
            self._agent,
            loop.clock,
            turn=record.turn,
            step=record.step,
            number=number,
            model=ready.model,
            taken_ids=self._thread.call_ids,
        )
        gate = loop.gate if self._agent.depth else nullcontext()
        if gate is loop.gate and loop.gate.value == 0:
            record.flush()
        async with gate:
            key = f"{record.session.id}-{ready.call.digest[:32]}"
            record.write(self._sent(ready, number, key))
            self._thread.purpose_was_logged()
            try:
                if loop.config.durability == "synced":
                    await record.session.sync()
                completion = await current.run(ready.call, key)
            except BaseException:
                self._cut_off(current.completion, ready, number)
                raise
        self.tokens += completion.usage.total or 0
        if completion.finish.state in ("error", "incomplete"):
            current.reset()
        self._thread.call_ids.update(call.id for call in completion.tool_calls)
        return completion

    async def _recovered(self, attempt: int, failure: LlmFailure) -> bool:
        """Whether a plugin takes the failure over and wants another attempt."""
        if not self._loop.heard(RequestFailed):
            return False
        signal = RequestFailed(self._agent, self._record.turn, self._record.step, attempt, failure)
        return await self._agent.ctx.first(signal) is not None

    def _cut_off(self, partial: Completion, ready: _Ready, attempt: int) -> None:
        """What a person could read by now is kept, without calls; where there is nothing, the end is."""
        kept = tuple(part for part in partial.content if isinstance(part, Text | Reasoning))
        if any(part.text.strip() for part in kept):
            self._record.write(self._said(kept, "interrupted", partial, ready, attempt))
        else:
            self._record.write(self._ended(partial, ready, attempt, None))

    def _sent(self, ready: _Ready, attempt: int, key: str) -> RequestSent:
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
            messages=ready.messages,
            parts=ready.parts,
            idempotency_key=key,
        )

    def _said(
        self,
        content: Sequence[AssistantContent],
        state: AnswerState,
        completion: Completion,
        ready: _Ready,
        attempt: int,
    ) -> AssistantSaid:
        return AssistantSaid(
            turn=self._record.turn,
            step=self._record.step,
            attempt=attempt,
            message=AssistantMessage(self._loop.ids.new("m"), tuple(content), ready.model),
            state=state,
            usage=_reported(completion.usage),
            digest=ready.call.digest,
            cut_calls=tuple(call.name for call in completion.dropped_calls),
            leaked_call=completion.finish.leaked_call,
            correction=completion.finish.correction,
            failure=completion.finish.failure if state == "refused" else None,
            detail=(completion.finish.detail or "") if state == "refused" else "",
        )

    def _ended(
        self, completion: Completion, ready: _Ready, attempt: int, failure: LlmFailure | None
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
        )


def _reported(usage: Usage) -> Usage | None:
    return usage if usage.reported else None
