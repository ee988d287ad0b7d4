"""Asks a model for the title of a session: in a child session of its own, so that the call is logged like any other.

The child is started before the first turn ends and awaited after it, so that nobody waits for a title
but a program that ends.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

from anyio import CancelScope, Event

from leadline.core.agent.agents import Agents
from leadline.core.agent.spec import AgentSpec, TurnBudget
from leadline.core.llm.messages import AssistantMessage, MessageSource, Text
from leadline.core.llm.request import Purpose
from leadline.core.session.events import AssistantSaid, Titled

if TYPE_CHECKING:
    from leadline.core.agent.agent import Agent
    from leadline.core.agent.signals import TurnStopping
    from leadline.core.llm.messages import Message
    from leadline.core.llm.request import ModelRef
    from leadline.core.session.log import Session
    from leadline.kernel.context import Context
    from leadline.kernel.effects import Effect

KIND = "title"
"""Kind of the sessions in which titles are asked for."""

PURPOSE = Purpose("session/title")
SOURCE = MessageSource("plugin", "titles", "relay")

MAX_TITLE = 80
"""Characters of a title that are kept."""

_SHOWN = 2000
"""Characters of each message that the model is shown."""

_MESSAGES = 4
_LABEL = re.compile(r"^(?:title|titel|titre|título|标题|標題|タイトル)\s*[::]\s*", re.IGNORECASE)
_AROUND = " \t\"'`*#“”„‟«»‹›「」『』《》‘’"


class Titler:
    """Titles the sessions of top-level agents."""

    def __init__(self, ctx: Context, model: ModelRef, timeout_s: float) -> None:
        self._ctx = ctx
        self._model = model
        self._timeout_s = timeout_s
        self._persona = (
            files("leadline.orchestration.titles").joinpath("persona.md").read_text(encoding="utf-8")
        )

    async def turn_stops(self, signal: TurnStopping) -> None:
        """The first turn of an agent is about to end by itself."""
        agent = signal.agent
        if agent.depth or signal.turn != 1 or _asked(agent.session):
            return
        began = _beginning(agent.session)
        if not began:
            return
        try:
            await self._ask(agent, began)
        except Exception as error:  # noqa: BLE001 - a turn does not fail for want of a title; the report says why
            self._ctx.report(error, f"title of {agent.id}")

    async def _ask(self, agent: Agent, began: str) -> None:
        child = await self._ctx.get(Agents).create(
            AgentSpec(
                kind=KIND,
                purpose=PURPOSE,
                model=self._model,
                persona=self._persona,
                parent=agent,
                label="title",
                tools_allow=(),
                budget=TurnBudget(max_steps=1, max_seconds=self._timeout_s),
            )
        )
        done = Event()

        async def end() -> None:
            done.set()
            await child.dispose()

        try:
            # Whatever becomes of the task, the child ends with this plugin.
            ended = self._ctx.defer(f"child for the title of {agent.id}", end)
            # What is registered on the agent after its child is undone before it: the title is awaited first.
            agent.ctx.defer("title", done.wait)
        except BaseException:
            with CancelScope(shield=True):
                await end()
            raise
        child.followup(child.message(began, SOURCE))
        self._ctx.spawn(self._title, agent, child, ended, name=f"title of {agent.id}")

    async def _title(self, agent: Agent, child: Agent, ended: Effect) -> None:
        try:
            await child.when_idle()
            end = child.last_turn_end
            said = child.session.last(AssistantSaid)
            title = cleaned(said.message.text) if said and end and end.reason == "completed" else ""
            if title and agent.session.writable:
                agent.session.append(Titled(title=title, source="model"))
        finally:
            with CancelScope(shield=True):
                await ended.dispose()


def cleaned(answer: str) -> str:
    """The title in a model's answer: its first line that has words, without decoration; empty where there is none."""
    for line in answer.splitlines():
        shown = " ".join(line.split()).strip(_AROUND)
        title = _LABEL.sub("", shown).strip(_AROUND).removesuffix(".").removesuffix("。").strip()
        if any(character.isalnum() for character in title):
            return title if len(title) <= MAX_TITLE else title[: MAX_TITLE - 1].rstrip() + "…"
    return ""


def _asked(session: Session) -> bool:
    """Whether somebody gave the session a title already."""
    return any(one.source != "first" for one in session.of(Titled))


def _beginning(session: Session) -> str:
    """How the conversation began, as text for a model."""
    messages = [message for message in session.derived().conversation if _told(message)]
    if not messages:
        return ""
    parts = [f"{_who(message)}:\n{_text(message)[:_SHOWN]}" for message in messages[:_MESSAGES]]
    return "\n\n".join(("This conversation is to be named.", *parts))


def _told(message: Message) -> bool:
    """Whether a person or the model said it in words."""
    ours = isinstance(message, AssistantMessage) or getattr(message, "source", None) == MessageSource("user")
    return ours and bool(_text(message).strip())


def _who(message: Message) -> str:
    return "Agent" if isinstance(message, AssistantMessage) else "Person"


def _text(message: Message) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    return "".join(part.text for part in content if isinstance(part, Text))
