"""Makes the next request from the log, and sees that it fits before anybody is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.core.agent.signals import ProposeRequest, RequestPending
from leadline.core.llm.request import CallConfig
from leadline.core.llm.room import within_window
from leadline.core.llm.tokens import header_tokens
from leadline.core.loop.sizing import UNSURE, answer_room, oversize

if TYPE_CHECKING:
    from leadline.core.agent.agent import Agent
    from leadline.core.llm.adapter import LlmAdapter, ModelInfo, PreparedCall
    from leadline.core.llm.failure import LlmFailure, Stop
    from leadline.core.llm.messages import Conversation
    from leadline.core.loop.driver import Loop
    from leadline.core.loop.record import Record
    from leadline.core.loop.sizing import Size
    from leadline.core.loop.thread import Thread
    from leadline.core.session.events import RequestHeader, RequestParts


@dataclass(frozen=True)
class Ready:
    """A request, encoded and named."""

    call: PreparedCall
    model: str
    conversation: Conversation
    parts: RequestParts
    size: Size
    max_tokens: int | None
    """The ceiling on output that the request names."""
    most_output: int | None
    """Tokens that the answer has at most; None: nobody says."""


class Preparing:
    """The making of one agent's requests in one turn."""

    def __init__(self, loop: Loop, agent: Agent, thread: Thread, record: Record) -> None:
        self._loop = loop
        self._agent = agent
        self._thread = thread
        self._record = record

    async def request(self, *, again: bool = False) -> Ready | Stop:
        """The request that the log stands for, or why it cannot be sent.

        `again`: with the header that is logged, if the model is the same; what is sent again is not made smaller.

        Raises:
            LeadlineError: the request could not be made: no such provider, no prompt.
        """
        thread = self._thread
        adapter, header = await self._header(again=again)
        model, info = str(header.config.model), adapter.info(header.config.model.model)
        window = self._window(model, info)
        if not again:
            await self._announce(header, info, window)
        # The conversation may only be read when what is held is of no account to it: it never is,
        # messages are written when they enter and results when they come.
        conversation = thread.derived.conversation
        size = thread.size(header, conversation)
        too_large = None if again else oversize(size, window, header.config.max_tokens, model)
        if too_large is not None:
            return too_large
        return Ready(
            adapter.prepare(thread.request(header, conversation)),
            model,
            conversation,
            thread.parts(header, conversation),
            size,
            header.config.max_tokens,
            header.config.max_tokens or info.max_output,
        )

    def least(self, ready: Ready, reported: int | None) -> int | None:
        """Tokens that the request had for certain, where so few are reported that it matters."""
        if reported is None or reported >= ready.size.raw // 2:
            return None
        assert self._thread.header is not None
        return self._thread.least(self._thread.header, ready.conversation)

    def learn(self, ready: Ready, reported: int | None, least: int | None) -> None:
        """Take in the size that the provider reported, unless it cannot be that of what was sent."""
        if least is None or (reported or 0) >= least:
            self._thread.estimate.learn(ready.model, ready.size.raw, reported)

    def counts_in_part(self, ready: Ready, reported: int | None) -> bool:
        """Whether what the provider reports is not the size of the prompt, but of what was new in it."""
        return bool(reported) and self._thread.windows.in_part(
            ready.model, reported, self._thread.kept(ready.conversation)
        )

    def answered(self, ready: Ready, reported: int | None) -> None:
        """Remember that a prompt of that size was read, and answered."""
        self._thread.windows.answered(ready.model, reported)

    def refused(self, ready: Ready, failure: LlmFailure) -> LlmFailure:
        """Remember the window that a refusal names; the failure, without one that cannot be true."""
        if failure.code != "CONTEXT_WINDOW_EXCEEDED":
            return failure
        header = self._thread.header
        least = 1 if header is None else int(header_tokens(header.system, header.tools) * UNSURE)
        return self._thread.windows.refused(ready.model, failure, least)

    def _window(self, model: str, info: ModelInfo) -> int | None:
        told = self._thread.windows.of(model)
        if told is None or info.context_window is None:
            return told or info.context_window
        return min(told, info.context_window)

    async def _header(self, *, again: bool) -> tuple[LlmAdapter, RequestHeader]:
        """Whom to ask, and how; a header that is new is held for the log."""
        thread = self._thread
        if not again or thread.header is None or thread.header.config.model != self._agent.model:
            header = thread.new_header(await self._config())
            if header is not None:
                self._record.hold(header)
                thread.header = header
        assert thread.header is not None
        adapter, _ = self._loop.models.resolve(thread.header.config.model)
        return adapter, thread.header

    async def _config(self) -> CallConfig:
        agent, options = self._agent, self._agent.spec.options
        max_tokens = options.max_tokens or self._bounded_answer()
        if max_tokens is not None:
            adapter, ref = self._loop.models.resolve(agent.model)
            max_tokens = within_window(max_tokens, adapter.info(ref.model).context_window)
        config = CallConfig(
            model=agent.model,
            max_tokens=max_tokens,
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

    def _bounded_answer(self) -> int | None:
        """A ceiling on the answer where one on tokens or cost holds: it could not hold over answers of any length."""
        if not self._agent.account.limited:
            return None
        adapter, ref = self._loop.models.resolve(self._agent.model)
        most = adapter.info(ref.model).max_output
        ours = self._loop.config.answer_tokens
        return ours if most is None else min(ours, most)

    async def _announce(self, header: RequestHeader, info: ModelInfo, window: int | None) -> None:
        """Let plugins make the window smaller before the request is made."""
        if not self._loop.heard(RequestPending):
            return
        size = self._thread.size(header, self._thread.derived.conversation)
        room = answer_room(window, header.config.max_tokens, info.max_output)
        self._record.flush()
        await self._agent.ctx.gather(
            RequestPending(
                agent=self._agent,
                turn=self._record.turn,
                step=self._record.step,
                tokens=size.tokens,
                window=window,
                output=room,
            )
        )
