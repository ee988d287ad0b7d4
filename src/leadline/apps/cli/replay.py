"""`leadline replay`: a run again from what was recorded, and what differs; or with another model, method or checks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import anyio
import msgspec

from leadline.apps.cli.exits import Exit, refusing
from leadline.apps.cli.progress import Progress, open_progress
from leadline.apps.cli.running import booted, run_stoppable, stored_in
from leadline.apps.cli.stopping import Stop
from leadline.apps.cli.streams import document, say, visible
from leadline.apps.sdk.app import Leadline
from leadline.apps.sdk.composition import Options
from leadline.apps.sdk.replaying import replay
from leadline.core.llm.request import ModelRef
from leadline.kernel.errors import LeadlineError
from leadline.research.engine.run import ResearchRun
from leadline.research.replay.player import AskedRequest, UnaskedRequest
from leadline.research.replay.replay import Replayed, WhatIf
from leadline.research.replay.told import told


@dataclass(frozen=True, kw_only=True)
class ReplayCommand:
    """The command as it was typed; an option that was left out is None or empty."""

    id: str
    roles: tuple[str, ...]
    method: str | None
    checks: tuple[str, ...]
    as_json: bool
    model: str | None
    base_url: str | None
    profile: str | None
    patches: tuple[Path, ...]


def run_replay(command: ReplayCommand) -> Exit:
    """Print what differs, or the report of the new run.

    A replay proper ends with 0 where nothing differs and 1 where something does; a new run as `research` does.

    Raises:
        Quit: there is no such run, or it cannot be replayed; nothing was started.
    """
    with refusing():
        what_if = WhatIf(
            model=ModelRef.parse(command.model) if command.model else None,
            roles=command.roles,
            method=command.method,
            checks=command.checks,
        )
    done = run_stoppable(lambda stop: _replay(command, what_if, stop))
    if command.as_json:
        document(msgspec.json.encode(_plain(done)))
    elif done.run is None:
        document(visible("\n".join(told(done))))
    elif done.result.status in ("completed", "partial"):
        document(done.result.report)
    return _ending(done)


async def _replay(command: ReplayCommand, what_if: WhatIf, stop: Stop) -> Replayed:
    options = Options(
        profile=command.profile or "research",
        patches=command.patches,
        model=command.model,
        base_url=command.base_url,
    )
    # The store alone is enough to read a recording: providers that cannot be used any more are in nobody's way.
    async with booted(stored_in(command.patches)) as app:
        with refusing():
            run_id = await app.sessions.resolve(command.id)
        with open_progress() as progress:
            return await _followed(app, options, run_id, what_if, progress, stop)


async def _followed(
    app: Leadline, options: Options, run_id: str, what_if: WhatIf, progress: Progress, stop: Stop
) -> Replayed:
    """The outcome; a new run is shown as it goes on, and a signal ends it as any other."""
    done: list[Replayed] = []
    refused: list[LeadlineError] = []
    async with anyio.create_task_group() as tasks:

        def started(run: ResearchRun) -> None:
            stop.gently(run.cancel)
            if what_if.differs:
                tasks.start_soon(_show, run, progress)

        try:
            done.append(await replay(app.ctx, options, run_id, what_if, started))
        except LeadlineError as error:
            refused.append(error)
    if refused:
        with refusing():
            raise refused[0]
    return done[0]


async def _show(run: ResearchRun, progress: Progress) -> None:
    async for fact in run.events():
        progress.fact(fact)


def _ending(done: Replayed) -> Exit:
    if done.result.status == "cancelled" and done.recorded.status != "cancelled":
        say(f"leadline: cancelled: {done.result.error}")
        if done.run is not None and done.result.report:
            say(f"What was found: leadline show {done.run} --report")
        return Exit.CANCELLED
    if done.run is None:
        return Exit.DONE if done.same else Exit.FAILED
    result = done.result
    if result.status != "completed":
        say(f"leadline: {result.status}: {result.error or 'see the notes in the report'}")
    if result.status == "failed" and result.report:
        say(f"What was found: leadline show {done.run} --report")
    say(f"What if: run {done.run} over the sources of run {done.id}; {_changed(done)}")
    return Exit.FAILED if result.status == "failed" else Exit.DONE


def _changed(done: Replayed) -> str:
    lines = [line for line in done.report_diff.splitlines()[2:] if line.startswith(("+", "-"))]
    return f"{len(lines)} lines of the report differ" if lines else "the report is the same"


def _plain(done: Replayed) -> dict[str, object]:
    return {
        "id": done.id,
        "run": done.run,
        "same": done.same,
        "same_report": done.same_report,
        "requests": len(done.asked),
        "differing": [{**_fields(one), "differences": one.differences} for one in done.differing],
        "unasked": [_fields(one) for one in done.unasked],
        "report_diff": done.report_diff,
        "result": msgspec.Raw(done.result.to_json()),
    }


def _fields(one: AskedRequest | UnaskedRequest) -> dict[str, object]:
    told: dict[str, object] = {
        "role": one.role,
        "label": one.label,
        "session": one.session,
        "turn": one.turn,
        "step": one.step,
    }
    if isinstance(one, AskedRequest):
        told |= {"attempt": one.attempt, "answered": one.answered}
    return told
