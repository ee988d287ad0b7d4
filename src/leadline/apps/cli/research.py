"""`leadline research`: start a run, show who is doing what, hand over the report."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

import anyio

from leadline.apps.cli.exits import Exit, Quit, document, leave, say, usage_errors
from leadline.apps.cli.progress import Progress, open_progress
from leadline.apps.sdk.app import Leadline
from leadline.research.engine.run import ResearchRun
from leadline.research.report.result import ResearchResult


@dataclass(frozen=True, kw_only=True)
class ResearchCommand:
    """The command as it was typed; an option that was left out is None."""

    question: str
    corpus: tuple[Path, ...]
    method: str
    breadth: str | None
    format: str | None
    language: str | None
    purpose: str | None
    context: str | None
    output: Path | None
    bundle: Path | None
    as_json: bool
    model: str | None
    base_url: str | None
    profile: str | None
    patches: tuple[Path, ...]


def run_research(command: ResearchCommand) -> None:
    """Run it; ends the process with the exit code of the outcome.

    Raises:
        Quit: the command cannot be carried out; nothing was started.
    """
    for target in (command.output, command.bundle):
        if target is not None and not target.absolute().parent.is_dir():
            raise Quit(Exit.USAGE, f"{target}: there is no folder {target.parent}; make it, or name another")
    result = anyio.run(_research, command)
    _hand_over(command, result)
    leave(_exit_of(result))


async def _research(command: ResearchCommand) -> ResearchResult:
    with open_progress() as progress:
        app = Leadline(
            profile=command.profile or "research",
            patches=command.patches,
            model=command.model,
            base_url=command.base_url,
        )
        async with usage_errors(), app:
            run = await _start(app, command, progress)
            try:
                result = await _follow(run, progress)
            finally:
                await run.dispose()
            progress.close()
            if command.bundle is not None and result.report:
                digest = (await app.stored(run.id)).write_bundle(command.bundle)
                say(f"bundle {command.bundle}  sha256 {digest}")
            return result


async def _start(app: Leadline, command: ResearchCommand, progress: Progress) -> ResearchRun:
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
    )


async def _follow(run: ResearchRun, progress: Progress) -> ResearchResult:
    """Show the run as it goes; an interrupt cancels it and keeps what it had found."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_on_signal, run)
        async for fact in run.events():
            progress.fact(fact)
        tasks.cancel_scope.cancel()
    return await run.result()


async def _cancel_on_signal(run: ResearchRun) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for received in signals:
            await run.cancel(f"stopped by {received.name}")
            return


def _hand_over(command: ResearchCommand, result: ResearchResult) -> None:
    if command.output is not None and result.report:
        command.output.write_bytes(_rendered(command.output, result))
        say(f"report {command.output}")
    if command.as_json:
        document(result.to_json())
    elif result.status in ("completed", "partial") and command.output is None:
        document(result.report)
    if result.status != "completed":
        say(f"leadline: {result.status}: {result.error or 'see the notes in the report'}")
    if result.status in ("cancelled", "failed") and result.report:
        say(f"What was found: leadline show {result.id} --report")


def _rendered(path: Path, result: ResearchResult) -> bytes:
    if path.suffix.lower() == ".json":
        return result.to_json() + b"\n"
    if path.suffix.lower() in (".html", ".htm"):
        from leadline.research.report.html import render_html

        return render_html(result, None).encode()
    return result.report.encode()


def _exit_of(result: ResearchResult) -> Exit:
    if result.status == "cancelled":
        return Exit.CANCELLED
    return Exit.FAILED if result.status == "failed" else Exit.DONE
