"""Asks a model to summarise a conversation: in a session of its own that begins with the same request, byte for byte.

So the provider has the whole of it in its cache but for one message. The child has no tools to run, one step, and a
deadline of its own; what it says is used only where it is a summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
from anyio import CancelScope

from leadline.core.agent.agents import Agents
from leadline.core.agent.spec import AgentSpec, TurnBudget
from leadline.core.llm.messages import Message, MessageSource
from leadline.core.llm.request import Purpose
from leadline.core.session.events import AssistantSaid, RequestEnded, RequestHeader, TurnEnd
from leadline.core.session.seeds import Seed
from leadline.kernel.errors import LeadlineError

if TYPE_CHECKING:
    from leadline.core.agent.agent import Agent
    from leadline.kernel.context import Context
    from leadline.window.events import SummaryFault

KIND = "summary"
"""Kind of the sessions in which summaries are asked for."""

PURPOSE = Purpose("window/compacting")
INSTRUCTION = MessageSource("plugin", "window", "instructions")


@dataclass(frozen=True)
class Summary:
    """What a model wrote."""

    text: str
    child: str
    """Id of the session in which it was asked for."""


@dataclass(frozen=True)
class NoSummary:
    """Why there is none."""

    fault: SummaryFault
    detail: str = ""
    child: str = ""


def instruction(words: int) -> str:
    """What the model is told, for a summary of up to `words` words."""
    text = files("leadline.window").joinpath("summarise.md").read_text(encoding="utf-8")
    return text.replace("{words}", f"{words:,}")


async def summarise(
    ctx: Context,
    agent: Agent,
    header: RequestHeader,
    messages: Sequence[Message],
    words: int,
    timeout_s: float,
) -> Summary | NoSummary:
    """Ask the model of `agent` for a summary of `messages`, which its last request began with.

    The call is charged to the agent. Nothing is left running when this returns or is cancelled.
    """
    try:
        child = await ctx.get(Agents).create(
            AgentSpec(
                kind=KIND,
                purpose=PURPOSE,
                model=header.config.model,
                options=agent.spec.options,
                parent=agent,
                label="summary",
                tools_allow=(),
                budget=TurnBudget(max_steps=1, max_seconds=timeout_s),
                priority=agent.spec.priority,
                seed=Seed(_plain(header), tuple(messages)),
            )
        )
    except LeadlineError as error:
        return NoSummary("not-asked", f"{type(error).__name__}: {error}")
    try:
        child.followup(child.message(instruction(words), INSTRUCTION))
        await child.when_idle()
        said = [*child.session.of(AssistantSaid, child.session.lifecycle_start)]
        ended = child.session.last(RequestEnded)
        late = ended is not None and ended.failure is not None and ended.failure.code == "TIMEOUT"
        return _judged(said[-1] if said else None, child.last_turn_end, child.id, late=late)
    finally:
        with CancelScope(shield=True):
            await child.dispose()


def _plain(header: RequestHeader) -> RequestHeader:
    """The header without what would forbid an answer in plain text."""
    config = header.config
    choice = config.tool_choice if config.tool_choice in ("auto", "none") else None
    return msgspec.structs.replace(
        header, config=msgspec.structs.replace(config, tool_choice=choice, output=None)
    )


def _judged(
    said: AssistantSaid | None, end: TurnEnd | None, child: str, *, late: bool
) -> Summary | NoSummary:
    """`late`: the provider took too long."""
    cause = end.cause if end is not None else None
    if cause is not None and cause.kind == "budget" and cause.detail.startswith("max_seconds"):
        return NoSummary("timeout", f"no summary after the time that one may take ({cause.detail})", child)
    failure = end.failure if end is not None else None
    if failure is not None:
        fault: SummaryFault = "timeout" if late else "not-asked"
        return NoSummary(fault, f"{failure.code}: {failure.message}", child)
    if said is None or said.state == "interrupted":
        return NoSummary("not-asked", "" if end is None else f"{end.reason} {end.error}".strip(), child)
    if said.state == "refused":
        return NoSummary("refused", said.detail, child)
    if said.state == "length":
        return NoSummary("cut-off", "the answer reached the output ceiling", child)
    if said.message.tool_calls or said.leaked_call:
        names = ", ".join(call.name for call in said.message.tool_calls)
        return NoSummary("called-tools", names or "as text", child)
    if not said.message.text.strip():
        return NoSummary("empty", "", child)
    return Summary(said.message.text.strip(), child)
