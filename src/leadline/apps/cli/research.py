"""`leadline research`: start a run, show who is doing what, hand over the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import anyio
import msgspec
from anyio.lowlevel import checkpoint

from leadline.apps.cli.exits import Exit, Quit, refusing, told, told_defect
from leadline.apps.cli.files import Form, check_writable, form_of, write_report
from leadline.apps.cli.placing import repeated
from leadline.apps.cli.progress import Progress, open_progress
from leadline.apps.cli.running import booted, run_stoppable
from leadline.apps.cli.stopping import Stop
from leadline.apps.cli.streams import document, say
from leadline.apps.sdk.app import Leadline
from leadline.apps.sdk.options import BudgetOptions
from leadline.core.home import Home
from leadline.core.llm.adapter import Models
from leadline.kernel.errors import LeadlineError
from leadline.orchestration.subagent.seam import NO_USABLE_OUTPUT
from leadline.research.engine.run import ResearchRun
from leadline.research.events import BUDGET_REACHED
from leadline.research.report.result import ResearchResult

_FIRST = (
    "no language model yet: the embedded one answers by extraction. "
    "One that writes: leadline models add PROVIDER/NAME --default"
)
"""Said once, when there is no data directory yet."""

Files: TypeAlias = Sequence[tuple[Path, Form]]
"""What was asked to be written."""


@dataclass(frozen=True, kw_only=True)
class ResearchCommand:
    """The command as it was typed; an option that was left out is None."""

    question: str
    corpus: tuple[Path, ...]
    method: str | None
    breadth: str | None
    format: str | None
    language: str | None
    purpose: str | None
    context: str | None
    budget: BudgetOptions
    output: Path | None
    bundle: Path | None
    as_json: bool
    model: str | None
    base_url: str | None
    profile: str | None
    patches: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """Where the report of a run is wanted."""

    output: Path | None
    bundle: Path | None
    as_json: bool
    again: str = ""
    """What has to be typed again to go on: options that follow the id."""

    @property
    def files(self) -> Files:
        """What is to be written.

        Raises:
            Quit: a name says no form, or the file cannot be written.
        """
        files: list[tuple[Path, Form]] = []
        if self.output is not None:
            files.append((self.output, form_of(self.output, bundle=False)))
        if self.bundle is not None:
            if self.output is not None and self.output.absolute() == self.bundle.absolute():
                raise Quit(Exit.USAGE, f"{self.bundle}: report and bundle are two files; name another")
            files.append((self.bundle, "bundle"))
        for path, form in files:
            check_writable(path, form)
        return files


@dataclass(frozen=True)
class Outcome:
    """How a run went, and whether every file that was asked for is there."""

    result: ResearchResult
    delivered: bool


def run_research(command: ResearchCommand) -> Exit:
    """Run it; returns the exit code of the outcome.

    Raises:
        Quit: the command cannot be carried out; nothing was started.
    """
    delivery = Delivery(
        output=command.output,
        bundle=command.bundle,
        as_json=command.as_json,
        again=repeated(command.model, command.base_url),
    )
    files = delivery.files
    return hand_over(run_stoppable(lambda stop: _research(command, files, stop)), delivery)


def hand_over(outcome: Outcome, delivery: Delivery) -> Exit:
    """Print what a run came to, as it was asked for; returns the exit code."""
    result = outcome.result
    _tell(result, delivery)
    if delivery.as_json:
        _print(result.to_json(), result)
    elif result.status in ("completed", "partial") and delivery.output is None:
        _print(result.report, result)
    code = _exit_of(result)
    return code if outcome.delivered or code != Exit.DONE else Exit.FAILED


async def _research(command: ResearchCommand, files: Files, stop: Stop) -> Outcome:
    app = Leadline(
        profile=command.profile or "research",
        patches=command.patches,
        model=command.model,
        base_url=command.base_url,
    )
    first = not Home.default().sessions.exists()
    async with booted(app):
        with open_progress() as progress:
            progress.listen(app.ctx)
            run = await _start(app, command, progress)
            if first and app.ctx.get(Models).default.provider == "extractive":
                say(_FIRST)
            return await see_through(app, run, progress, files, stop)


async def see_through(
    app: Leadline, run: ResearchRun, progress: Progress, files: Files, stop: Stop
) -> Outcome:
    """Show how a run goes on until it ends, and write the files that were asked for."""
    stop.gently(run.cancel)
    progress.spending(run.account)
    try:
        result = await _followed(app, run, progress)
    finally:
        await run.dispose()
    progress.close()
    return Outcome(result, await _deliver(app, files, result))


async def _start(app: Leadline, command: ResearchCommand, progress: Progress) -> ResearchRun:
    with refusing():
        return await app.start_research(
            command.question,
            corpus=command.corpus,
            method=command.method,
            breadth=command.breadth,
            format=command.format,
            language=command.language,
            purpose=command.purpose,
            context=command.context,
            progress=progress.indexing,
            **command.budget,
        )


async def _followed(app: Leadline, run: ResearchRun, progress: Progress) -> ResearchResult:
    """The result. Of a run whose log could not be written to its end, what the log has."""
    done: list[ResearchResult] = []
    async with anyio.create_task_group() as tasks:
        shown = anyio.Event()
        tasks.start_soon(_show, run, progress, shown)
        done.append(await _result(app, run))
        # The facts of a run end with its end, which a log that cannot be written never gets.
        if run.ledger.ended is None:
            await checkpoint()
        else:
            await shown.wait()
        tasks.cancel_scope.cancel()
    return done[0]


async def _result(app: Leadline, run: ResearchRun) -> ResearchResult:
    try:
        return await run.result()
    except Exception as defect:  # noqa: BLE001 - told as the reason why the run failed; what was found is not lost
        why = told(defect) if isinstance(defect, LeadlineError) else told_defect(defect)
        found = (await app.stored(run.id)).result()
        return msgspec.structs.replace(found, status="failed", error=why)


async def _show(run: ResearchRun, progress: Progress, shown: anyio.Event) -> None:
    async for fact in run.events():
        progress.fact(fact)
    shown.set()


async def _deliver(app: Leadline, files: Files, result: ResearchResult) -> bool:
    """Write the files that were asked for; a file that cannot be written costs nobody the run."""
    unwritten = [str(path) for path, form in files if not result.report and form != "json"]
    if unwritten:
        say(f"leadline: there is no report to write into {', '.join(unwritten)}")
    files = [(path, form) for path, form in files if str(path) not in unwritten]
    if not files:
        return not unwritten
    run = await app.stored(result.id)
    delivered = not unwritten
    for path, form in files:
        try:
            say(write_report(path, form, run, result))
        except (OSError, LeadlineError) as error:
            why = told(error) if isinstance(error, LeadlineError) else error.strerror or str(error)
            say(f"leadline: cannot write {path}: {why}. Try again with: leadline export {result.id} FILE")
            delivered = False
    return delivered


def _tell(result: ResearchResult, delivery: Delivery) -> None:
    if result.status != "completed":
        say(f"leadline: {result.status}: {result.error or 'see the notes in the report'}")
    if result.status == "failed" and NO_USABLE_OUTPUT in (result.error or ""):
        where = delivery.again or f" {result.metadata.get('model')}"
        say(
            f"Whether the model answers and calls tools: leadline models test{where.replace(' --model', '', 1)}"
        )
    reached = result.metadata.get(BUDGET_REACHED)
    if reached:
        option = "--max-time" if reached == "seconds" else f"--max-{reached}"
        say(f"Go on with more: leadline resume {result.id} {option} MORE{delivery.again}")
    if result.status in ("cancelled", "failed") and result.report:
        say(f"What was found: leadline show {result.id} --report")
    if result.status == "cancelled":
        say(f"Go on with it: leadline resume {result.id}{delivery.again}")


def _print(text: str | bytes, result: ResearchResult) -> None:
    try:
        document(text)
    except Quit as ending:
        again = f"leadline show {result.id} --report"
        raise Quit(ending.code, f"{ending.message}. The report is at: {again}") from None


def _exit_of(result: ResearchResult) -> Exit:
    if result.status == "cancelled":
        return Exit.CANCELLED
    return Exit.FAILED if result.status == "failed" else Exit.DONE
