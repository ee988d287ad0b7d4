"""One attempt at a request: what arrives is buffered here and nowhere else.

Viewers see it live. The log gets text in coarse chunks, so that a killed process leaves what a
person could already read; chunks derive nothing, so a failed attempt leaves nothing in history.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from leadline.core.agent.signals import AttemptReset, Streamed
from leadline.core.llm.assembler import Assembler, Completion
from leadline.core.llm.failure import Stop
from leadline.core.llm.stream import Finish, LimitsReport, ReasoningDelta, TextDelta, ToolCallDelta
from leadline.core.llm.wire import encode_text
from leadline.core.session.codec import MAX_EVENT_BYTES
from leadline.core.session.events import AssistantChunk

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from leadline.core.agent.agent import Agent
    from leadline.core.clock import Clock
    from leadline.core.llm.adapter import PreparedCall
    from leadline.core.llm.limits import RateLimits

CHUNK_CHARS = 4096
CHUNK_SECONDS = 1.0
CHUNK_MOST_CHARS = MAX_EVENT_BYTES // 8
"""More than this never stands in one chunk: a character takes at most six bytes of JSON."""
MAX_ANSWER_BYTES = MAX_EVENT_BYTES - 64 * 1024
"""Ceiling on the content of one answer as JSON: it has to fit into an event of the log."""


@dataclass
class _Channel:
    parts: list[str] = field(default_factory=list[str])
    chars: int = 0


class Attempt:
    """Streams one answer of `agent` and adds it up."""

    def __init__(
        self,
        agent: Agent,
        clock: Clock,
        *,
        turn: int,
        step: int,
        number: int,
        model: str,
        taken_ids: Container[str],
    ) -> None:
        self.number = number
        self.shown = False
        """Whether anything arrived that a viewer may have seen."""
        self._agent = agent
        self._clock = clock
        self._turn = turn
        self._step = step
        self._assembler = Assembler(producer=model, call_prefix=f"t{turn}s{step}", taken_ids=taken_ids)
        self._chars = 0
        self._channels: dict[Literal["text", "reasoning"], _Channel] = {}
        self._flushed_at = clock.monotonic()

    @property
    def completion(self) -> Completion:
        """What arrived so far, or in the end; a failure without content where it is too long to be logged."""
        made = self._assembler.completion()
        if self._chars <= MAX_ANSWER_BYTES // 6:
            return made
        if self._chars <= MAX_ANSWER_BYTES and len(encode_text(made.content)) <= MAX_ANSWER_BYTES:
            return made
        too_long = Stop(
            "UNSUPPORTED",
            f"the answer is longer than the {MAX_ANSWER_BYTES >> 20} MiB that one answer may have",
            next_step="set max_tokens, or ask for smaller pieces",
        )
        return Completion((), made.usage, Finish("error", too_long))

    async def run(
        self, call: PreparedCall, idempotency_key: str, heard: Callable[[RateLimits], None]
    ) -> Completion:
        """Make the attempt; a provider's failure is in the completion.

        `heard` is told at once what the head of the response says about rate limits; nobody else is.
        """
        add, ctx, listeners = self._assembler.add, self._agent.ctx, self._agent.ctx.kernel.listeners.table
        async with aclosing(call.stream(idempotency_key=idempotency_key)) as events:
            async for event in events:
                if isinstance(event, LimitsReport):
                    heard(event.limits)
                    continue
                add(event)
                if isinstance(event, TextDelta):
                    self._keep("text", event.text)
                elif isinstance(event, ReasoningDelta):
                    self._keep("reasoning", event.text)
                elif isinstance(event, ToolCallDelta):
                    self._chars += len(event.arguments)
                if Streamed in listeners:
                    ctx.notice(Streamed(self._agent, self._turn, self._step, self.number, event))
                if self._chars > MAX_ANSWER_BYTES:
                    break
        return self.completion

    def reset(self) -> None:
        """Tell viewers that what they saw of this attempt counts for nothing."""
        if self.shown:
            self._agent.ctx.notice(AttemptReset(self._agent, self._turn, self._step, self.number))

    def _keep(self, name: Literal["text", "reasoning"], text: str) -> None:
        self.shown = True
        channel = self._channels.get(name)
        if channel is None:
            channel = self._channels[name] = _Channel()
        channel.parts.append(text)
        channel.chars += len(text)
        self._chars += len(text)
        if channel.chars >= CHUNK_CHARS or self._clock.monotonic() - self._flushed_at >= CHUNK_SECONDS:
            self._flush()

    def _flush(self) -> None:
        for name, channel in self._channels.items():
            text = "".join(channel.parts)
            for at in range(0, len(text), CHUNK_MOST_CHARS):
                self._agent.session.append(
                    AssistantChunk(
                        turn=self._turn,
                        step=self._step,
                        attempt=self.number,
                        channel=name,
                        text=text[at : at + CHUNK_MOST_CHARS],
                    )
                )
        self._channels.clear()
        self._flushed_at = self._clock.monotonic()
