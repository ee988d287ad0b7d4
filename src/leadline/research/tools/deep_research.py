"""The tool with which an agent has a question researched: bound to the person's own words, relayed verbatim."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from leadline.core.agent.agent import Agent
from leadline.core.agent.agents import Agents
from leadline.core.config import ConfigParser
from leadline.core.llm.messages import MessageSource, Text
from leadline.core.session.blobs import Blobs
from leadline.core.session.codec import Logged
from leadline.core.session.events import ToolCalled, TurnStart, UserEntered
from leadline.core.session.log import Session
from leadline.core.session.store import SessionStore
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.registry import ToolRegistry
from leadline.core.tools.spec import Tool, ToolOutput, description_from
from leadline.kernel.context import Context
from leadline.kernel.errors import LeadlineError
from leadline.kernel.plugin import Plugin
from leadline.research.engine.engine import Execution, ResearchEngine
from leadline.research.engine.interrupted import RUN_KIND
from leadline.research.engine.run import ResearchRun
from leadline.research.report.result import ResearchResult
from leadline.research.request import ResearchRequest, checked

if TYPE_CHECKING:
    from leadline.research.stored import StoredRun

NAME = "deep_research"


class Config(BaseModel):
    """Configuration of the tool."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    corpus: tuple[Path, ...] = ()
    """Folders and files that the tool may search; empty: the tool says that there is nothing to search."""
    method: str = "adaptive"
    """Method of a call that names none."""


class DeepResearch(BaseModel):
    """Arguments of `deep_research`."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1, description="The question, in the person's own words.")
    method: str | None = Field(default=None, description="How the research is done, such as adaptive.")
    breadth: Literal["focused", "balanced", "broad"] | None = Field(
        default=None, description="How many units at most."
    )
    format: Literal["report", "brief", "memo"] | None = Field(default=None, description="Form of the answer.")
    language: str | None = Field(default=None, description="Language of the report.")


def deep_research_tool(ctx: Context, config: Config) -> Tool:
    """The tool, for any agent that may see it."""

    async def execute(arguments: DeepResearch, call: ToolInvocation) -> ToolOutput:
        agent = ctx.get(Agents).find(call.agent_id) if call.agent_id else None
        if agent is None:
            return _failed("deep_research is for agents: this call has none behind it")
        try:
            result = await _research(ctx, arguments, config, agent, call)
        except LeadlineError as error:
            return _failed(str(error))
        if result.status in ("failed", "cancelled"):
            return _failed(f"The research {result.status}: {result.error}")
        agent.inject(
            agent.message(
                description_from(__package__ or "", "relay.md"), MessageSource("plugin", NAME, "instructions")
            )
        )
        return ToolOutput(msgspec.to_builtins(result), result.report)

    return Tool(
        name=NAME,
        description=description_from(__package__ or "", "deep_research.md"),
        parameters=DeepResearch,
        execute=execute,
        side_effects=frozenset({"reads", "network"}),
        idempotent=True,
    )


async def _research(
    ctx: Context, asked: DeepResearch, config: Config, agent: Agent, call: ToolInvocation
) -> ResearchResult:
    """The result, handed back only after the run is disposed of."""
    engine = ctx.get(ResearchEngine)
    execution = Execution(parent=agent, call=call)
    begun = await _begun(ctx, agent, call) if call.repeated else None
    if begun is not None and begun.complete:
        return begun.result()
    if begun is not None:
        return await _result(engine, await engine.resume(begun.id, execution))
    request = checked(
        human_words(agent.session, call.root_call_id) or asked.question,
        corpus=config.corpus,
        method=asked.method or config.method,
        breadth=asked.breadth,
        format=asked.format,
        language=asked.language,
    )
    stopped = await _stopped(ctx, agent, request)
    if stopped is not None:
        return await _result(engine, await engine.resume(stopped.id, execution))
    return await _result(engine, await engine.start(request, execution))


async def _result(engine: ResearchEngine, run: ResearchRun) -> ResearchResult:
    try:
        return await run.result()
    finally:
        await engine.dispose(run)


async def _begun(ctx: Context, agent: Agent, call: ToolInvocation) -> StoredRun | None:
    """The run that this very call began before its process died; None where it did not get that far."""
    from leadline.research.stored import load_run  # noqa: PLC0415 - with it comes what writes bundles

    store, blobs = ctx.get(SessionStore), ctx.get(Blobs)
    for entry in await store.list():
        if entry.parent == agent.id and entry.kind == RUN_KIND:
            run = await load_run(store, blobs, entry.id)
            if run.ledger.started is not None and run.ledger.started.call == call.call_id:
                return run
    return None


async def _stopped(ctx: Context, agent: Agent, request: ResearchRequest) -> StoredRun | None:
    """The latest run of this agent that was asked the very same and was stopped before its end: it goes on."""
    from leadline.research.stored import load_run  # noqa: PLC0415 - with it comes what writes bundles

    asked = (request.question, request.method, request.breadth, request.format, request.language)
    store, blobs = ctx.get(SessionStore), ctx.get(Blobs)
    live = {run.id for run in ctx.get(ResearchEngine).runs}
    below = [one for one in await store.list() if one.parent == agent.id and one.kind == RUN_KIND]
    for entry in sorted(
        (one for one in below if one.id not in live), key=lambda one: one.created, reverse=True
    ):
        run = await load_run(store, blobs, entry.id)
        started = run.ledger.started
        if started is None or run.ledger.status not in ("running", "cancelled"):
            continue
        of = started.request
        if (of.question, started.method, of.breadth, of.format, of.language) == asked:
            return run
    return None


def human_words(session: Session, root_call: str) -> str:
    """What the person said in the turn that the call belongs to; empty if no person spoke in it."""
    logged = session.logged
    at = next((n for n in reversed(range(len(logged))) if _is_call(logged, n, root_call)), None)
    if at is None:
        return ""
    start = next((n for n in reversed(range(at)) if logged[n].type == TurnStart.TYPE), 0)
    said = [one.as_(UserEntered).message for one in logged[start:at] if one.type == UserEntered.TYPE]
    texts = [
        part.text
        for message in said
        if message.source.kind == "user"
        for part in message.content
        if isinstance(part, Text)
    ]
    return "\n".join(texts).strip()


def _is_call(logged: Sequence[Logged], at: int, root_call: str) -> bool:
    return logged[at].type == ToolCalled.TYPE and logged[at].as_(ToolCalled).call_id == root_call


def _failed(message: str) -> ToolOutput:
    return ToolOutput({"error": message}, message, is_error=True, error_code="RESEARCH_FAILED")


async def apply(ctx: Context, config: Config) -> None:
    ctx.get(ToolRegistry).register(ctx, deep_research_tool(ctx, config))


plugin = Plugin(
    "research.tools.deep_research",
    apply,
    config=ConfigParser(Config),
    needs=(ToolRegistry, ResearchEngine, Agents),
)
