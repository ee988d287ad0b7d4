"""`leadline resume`: go on with a run or an agent where it stopped."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from leadline.apps.cli.agent import ending, tell_reply
from leadline.apps.cli.exits import Exit, Quit, refusing
from leadline.apps.cli.placing import placed, repeated
from leadline.apps.cli.progress import open_progress
from leadline.apps.cli.research import Delivery, Files, Outcome, hand_over, see_through
from leadline.apps.cli.running import booted, run_stoppable
from leadline.apps.cli.stopping import Stop
from leadline.apps.cli.streams import say
from leadline.apps.cli.waits import tell_waits
from leadline.apps.sdk.app import AgentReply, Leadline, go_on, take_turn
from leadline.apps.sdk.options import BudgetOptions
from leadline.research.events import Resumed


@dataclass(frozen=True, kw_only=True)
class ResumeCommand:
    """The command as it was typed; an option that was left out is None."""

    id: str
    task: str
    corpus: tuple[Path, ...]
    budget: BudgetOptions
    output: Path | None
    bundle: Path | None
    as_json: bool
    model: str | None
    base_url: str | None
    profile: str | None
    patches: tuple[Path, ...]


def run_resume(command: ResumeCommand) -> Exit:
    """Print the report of the run, or the agent's last words; the exit code is that of the outcome.

    Raises:
        Quit: there is nothing to go on with, or somebody else is at work on it; nothing was started.
    """
    again = repeated(command.model, command.base_url)
    delivery = Delivery(output=command.output, bundle=command.bundle, as_json=command.as_json, again=again)
    files = delivery.files
    outcome = run_stoppable(lambda stop: _resume(command, files, stop))
    if isinstance(outcome, Outcome):
        return hand_over(outcome, delivery)
    return tell_reply(outcome, as_json=command.as_json, again=again)


async def _resume(command: ResumeCommand, files: Files, stop: Stop) -> Outcome | AgentReply:
    model, base_url = command.model, command.base_url
    if model is None and base_url is None:
        model, base_url = await placed(command.id, command.patches)
    app = Leadline(
        profile=command.profile or "research",
        patches=command.patches,
        model=model,
        base_url=base_url,
        corpus=command.corpus,
    )
    async with booted(app):
        with refusing():
            session = await app.session(command.id)
        if session.header.kind == "research":
            return await _run(app, command, files, stop)
        if files:
            raise Quit(Exit.USAGE, f"session {command.id} is an agent's; it has no report to write")
        return await _agent(app, command, stop)


async def _run(app: Leadline, command: ResumeCommand, files: Files, stop: Stop) -> Outcome:
    if command.task:
        raise Quit(Exit.USAGE, f"run {command.id} goes on with its own question; a task is for agents")
    with open_progress() as progress:
        progress.listen(app.ctx)
        with refusing():
            run = await app.resume_research(
                command.id, corpus=command.corpus, progress=progress.indexing, **command.budget
            )
        resumed = run.ledger.resumed[-1]
        _tell_in_flight(resumed)
        return await see_through(app, run, progress, files, stop)


def _tell_in_flight(resumed: Resumed) -> None:
    for call in resumed.in_flight:
        say(
            f"leadline: a call to {call.model} ({call.purpose}) was in flight and is sent again, "
            f"with idempotency key {call.idempotency_key}; it may be billed twice"
        )


async def _agent(app: Leadline, command: ResumeCommand, stop: Stop) -> AgentReply:
    tell_waits(app.ctx)
    with refusing():
        opened = app.open_agent(resume=command.id, **command.budget)
        agent = await opened.__aenter__()
    try:
        stop.gently(ending(agent))
        if command.task:
            return await take_turn(agent, command.task)
        with refusing():
            return await go_on(agent)
    finally:
        await opened.__aexit__(None, None, None)
