"""`leadline agent`: one agent, one turn."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from leadline.apps.cli.exits import Exit, Quit, refusing
from leadline.apps.cli.placing import repeated
from leadline.apps.cli.running import booted, run_stoppable
from leadline.apps.cli.stopping import End, Stop
from leadline.apps.cli.streams import document, say, visible
from leadline.apps.cli.waits import tell_waits
from leadline.apps.sdk.app import AgentReply, Leadline, take_turn
from leadline.apps.sdk.options import BudgetOptions
from leadline.core.agent.agent import Agent
from leadline.core.llm.adapter import Models
from leadline.core.llm.failure import LlmFailure, Wait
from leadline.core.session.events import AbortCause


@dataclass(frozen=True, kw_only=True)
class AgentCommand:
    """The command as it was typed; an option that was left out is None."""

    task: str
    corpus: tuple[Path, ...]
    budget: BudgetOptions
    as_json: bool
    model: str | None
    base_url: str | None
    profile: str | None
    patches: tuple[Path, ...]


def run_agent(command: AgentCommand) -> Exit:
    """Print the agent's last words; exit code 0 when the turn completed.

    Raises:
        Quit: the task is blank, or the composition or the model cannot be used; nothing was started.
    """
    if not command.task.strip():
        raise Quit(Exit.USAGE, "task: it is blank. Say what the agent should do.")
    if command.corpus:
        _check(command.corpus)
    reply = run_stoppable(lambda stop: _turn(command, stop))
    return tell_reply(reply, as_json=command.as_json, again=repeated(command.model, command.base_url))


def tell_reply(reply: AgentReply, *, as_json: bool, again: str = "") -> Exit:
    """Print what a turn came to; returns the exit code. `again` are options that going on with it needs."""
    if not reply.completed:
        say(f"leadline: the turn {_why(reply)}; see: leadline show {reply.session}")
    if as_json:
        document(msgspec.json.encode({"text": reply.text, "session": reply.session, "end": reply.end}))
    elif reply.text and reply.end.reason != "error":
        document(visible(reply.text) if sys.stdout.isatty() else reply.text)
    if reply.completed and not as_json and sys.stderr and sys.stderr.isatty():
        say(f'go on with: leadline resume {reply.session} "TASK"{again}')
    return Exit.DONE if reply.completed else _exit_of(reply)


def _check(corpus: Sequence[Path]) -> None:
    from leadline.research.request import existing

    with refusing():
        for path in corpus:
            existing(path)


async def _turn(command: AgentCommand, stop: Stop) -> AgentReply:
    app = Leadline(
        profile=command.profile or ("research" if command.corpus else "headless"),
        patches=command.patches,
        model=command.model,
        base_url=command.base_url,
        corpus=command.corpus,
    )
    async with booted(app):
        tell_waits(app.ctx)
        with refusing():
            app.ctx.get(Models).resolve()
            opened = app.open_agent(label=command.task, **command.budget)
            agent = await opened.__aenter__()
        try:
            stop.gently(ending(agent))
            return await take_turn(agent, command.task)
        finally:
            await opened.__aexit__(None, None, None)


def ending(agent: Agent) -> End:
    """How a signal ends the turn of an agent."""

    async def end(reason: str) -> None:
        await agent.cancel(AbortCause("user", reason))

    return end


def _why(reply: AgentReply) -> str:
    end = reply.end
    detail = end.error or (_failure(end.failure) if end.failure else "")
    detail = detail or (end.cause.detail if end.cause else "")
    ended = "failed" if end.reason == "error" else f"ended {end.reason}"
    return f"{ended}: {' '.join(detail.split())}" if detail else ended


def _failure(failure: LlmFailure) -> str:
    step = None if isinstance(failure, Wait) else failure.next_step
    return f"{failure.message.removesuffix('.')}; {step}" if step else failure.message


def _exit_of(reply: AgentReply) -> Exit:
    return Exit.CANCELLED if reply.end.reason in ("aborted", "interrupted") else Exit.FAILED
