"""An agent that works longer than its window: a model that reads on and on, and holds every request to its window."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from leadline.core.agent.agent import Agent
from leadline.core.agent.spec import AgentSpec
from leadline.core.clock import Clock
from leadline.core.llm.adapter import ModelInfo
from leadline.core.llm.failure import Stop
from leadline.core.llm.jsonvalue import JsonObject
from leadline.core.llm.messages import Message, Text, ToolMessage, UserMessage
from leadline.core.llm.request import LlmRequest
from leadline.core.llm.tokens import header_tokens, message_tokens
from leadline.core.llm.usage import Usage
from leadline.core.loop.config import LoopConfig
from leadline.core.session.events import WindowChanged
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import Tool
from leadline.kernel.plugin import Mountable
from leadline.testing.agents import AgentStack, agent_stack
from leadline.testing.scripted import Call, Playable, Reply, ScriptedModel
from leadline.window import plugin as window_plugin
from leadline.window.config import WindowConfig
from leadline.window.summary import INSTRUCTION
from leadline.window.window import Window

PAGE = "The harbour office keeps a book of every ship that comes in and goes out, with the depth at the bar. "


def size_of(request: LlmRequest) -> int:
    """Tokens of a request by the estimate."""
    return header_tokens(request.system, request.tools) + sum(map(message_tokens, request.conversation))


def asks_for_a_summary(request: LlmRequest) -> bool:
    """Whether a request is for a summary of its conversation."""
    last = request.conversation[-1]
    return isinstance(last, UserMessage) and last.source == INSTRUCTION


def text_of(message: Message) -> str:
    """What a model reads of a message."""
    if isinstance(message, ToolMessage):
        return message.content
    return "".join(part.text for part in message.content if isinstance(part, Text))


class LongWork:
    """A model that calls `read` a number of times and then says that it is done."""

    def __init__(
        self,
        rounds: int,
        *,
        window: int = 8_000,
        told: bool = True,
        output: int = 500,
        summary: Playable | Callable[[LlmRequest], Playable] = "So far: the office was founded in 1887.",
    ) -> None:
        """`told`: whether the provider says how large the window is. `summary`: what is answered to who asks for one."""
        self.left = rounds
        self.window = window
        self.summary = summary
        self.first: Callable[[LlmRequest], Playable | None] = lambda request: None
        """Asked before each answer; what it gives is answered instead."""
        self.refused: list[int] = []
        """Sizes of requests that were too large."""
        info = ModelInfo(
            "scripted", context_window=window if told else None, max_output=output, origin="script"
        )
        self.model = ScriptedModel(self._answer, info=info)

    @property
    def own(self) -> list[LlmRequest]:
        """The requests of the work itself, without those for summaries and those that were refused."""
        return [
            one for one in self.model.requests if not asks_for_a_summary(one) and size_of(one) <= self.window
        ]

    @property
    def for_summaries(self) -> list[LlmRequest]:
        """The requests for summaries."""
        return [one for one in self.model.requests if asks_for_a_summary(one)]

    def breaks(self) -> int:
        """How many requests of the work do not begin with the whole of the one before."""
        found, own = 0, self.own
        for earlier, later in pairwise(own):
            before = tuple(earlier.conversation)
            found += tuple(later.conversation)[: len(before)] != before
        return found

    def _answer(self, request: LlmRequest) -> Playable:
        assert request.conversation.pairing_problem is None
        size = size_of(request)
        if size > self.window:
            self.refused.append(size)
            return Stop(
                "CONTEXT_WINDOW_EXCEEDED",
                f"this model's maximum context length is {self.window} tokens",
                window_tokens=self.window,
            )
        return self._counted(self.first(request) or self._reply(request), size)

    def _reply(self, request: LlmRequest) -> Playable:
        if asks_for_a_summary(request):
            return self.summary(request) if callable(self.summary) else self.summary
        if self.left <= 0:
            return "Done."
        self.left -= 1
        return Call("read", {"page": self.left})

    def _counted(self, playable: Playable, size: int) -> Playable:
        """The reply with a bill over just what was estimated."""
        match playable:
            case str():
                return Reply(playable, usage=Usage(input=size, output=10))
            case Call():
                return Reply(calls=(playable,), usage=Usage(input=size, output=10))
            case Reply() if playable.usage is None:
                return replace(playable, usage=Usage(input=size, output=10))
            case _:
                return playable


@dataclass(frozen=True)
class Desk:
    """The agent at its long work, and what is mounted around it."""

    stack: AgentStack
    agent: Agent
    window: Window

    async def ask(self, text: str = "Read the book, page by page.") -> None:
        """Tell the agent something and wait until it rests."""
        self.agent.send(text)
        await self.agent.when_idle()

    @property
    def changes(self) -> list[WindowChanged]:
        """What was done to the window."""
        return [*self.agent.session.of(WindowChanged)]

    @property
    def end(self) -> str:
        """How the latest turn ended."""
        return "" if self.agent.last_turn_end is None else self.agent.last_turn_end.reason


@asynccontextmanager
async def long_work(
    folder: Path,
    work: LongWork,
    config: WindowConfig | None = None,
    *,
    page: str = PAGE * 10,
    spec: AgentSpec | None = None,
    plugins: Sequence[Mountable] = (),
    clock: Clock | None = None,
    loop: LoopConfig | None = None,
    invariants: bool = True,
) -> AsyncGenerator[Desk]:
    """An agent with the tool `read`, which gives `page`, and the window plugin with `config`; the rest as `agent_stack`."""
    async with agent_stack(
        folder,
        work.model,
        plugins=[*plugins],
        clock_service=clock,
        loop=loop or LoopConfig(max_steps=None),
        invariants=invariants,
    ) as stack:
        await stack.ctx.mount(window_plugin.plugin, config or WindowConfig())

        async def read(args: object, call: ToolInvocation) -> str:
            return page

        number: JsonObject = {"type": "object", "properties": {"page": {"type": "integer"}}}
        stack.tools.register(stack.ctx, Tool("read", "Reads a page.", number, read))
        agent = await stack.agents.create(spec or AgentSpec())
        yield Desk(stack, agent, stack.ctx.get(Window))
