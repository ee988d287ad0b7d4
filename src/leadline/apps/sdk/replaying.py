"""A second composition for a replay: the same plugins, with a home of their own where nothing may be left behind."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from leadline.apps.sdk.composition import Options, composed
from leadline.core.session.blobs import Blobs
from leadline.core.session.store import SessionStore
from leadline.kernel.context import Context, Kernel, Report
from leadline.kernel.errors import BootFailed, ConfigError
from leadline.kernel.loader.compose import Composition, Layer, compose
from leadline.kernel.loader.patch import all_rows
from leadline.kernel.loader.reconcile import boot

if TYPE_CHECKING:
    from leadline.research.engine.run import ResearchRun
    from leadline.research.replay.replay import RecordedRun, Replayed, WhatIf


async def replay(
    ctx: Context,
    options: Options,
    run_id: str,
    what_if: WhatIf,
    started: Callable[[ResearchRun], None] | None = None,
) -> Replayed:
    """Replay the run of that id.

    Args:
        ctx: a running composition with the store that has the run.
        options: what the replay is composed of.
        run_id: the run.
        what_if: what is to be different.
        started: told the live run, to follow or cancel it.

    Raises:
        SessionNotFound, NotARun, NotReplayable, SourcesLost: the run cannot be replayed.
        ConfigError, BootFailed: the composition cannot be used.
        LeadlineError: a model, method or check that is not there.
    """
    from leadline.research.replay.replay import load_recorded_run, replay_run

    recorded = await load_recorded_run(ctx.get(SessionStore), ctx.get(Blobs), run_id)
    async with _composition(options, recorded, what_if) as inner:
        return await replay_run(inner, recorded, what_if, started=started)


@asynccontextmanager
async def _composition(options: Options, recorded: RecordedRun, what_if: WhatIf) -> AsyncGenerator[Context]:
    composition = composed(options)
    if what_if.differs:
        async with Kernel() as kernel:
            await boot(kernel.root, composition)
            yield kernel.root
        return
    with TemporaryDirectory(prefix="leadline-replay-") as folder:
        proper = _recorded(composition, recorded.recording.session.header.created, Path(folder))
        async with _booted(proper) as inner:
            yield inner


def _recorded(composition: Composition, begins: float, home: Path) -> Composition:
    """With the clock of the recording, on an empty home: sessions, blobs and indexes of the replay go with it."""
    clock = {
        "id": "recorded-clock",
        "plugin": "leadline.research.replay.clock:plugin",
        "config": {"begins": begins},
    }
    return _patched(
        composition,
        {"id": "clock", "disabled": True},
        {"insert": clock, "before": "clock"},
        {"id": "home", "config": {"path": str(home)}},
        {"id": "persistence", "config": {}},
        {"id": "loop", "merge": {"retry": {"first_s": 0.001, "max_s": 0.001}}},
    )


@asynccontextmanager
async def _booted(composition: Composition) -> AsyncGenerator[Context]:
    """The composition; where it does not start as it is, with the providers as they ship: none of them is asked."""
    reports = _Reports()
    async with Kernel(on_report=reports) as kernel:
        try:
            await boot(kernel.root, composition)
            reports.release()
        except (ConfigError, BootFailed):
            async with Kernel() as bare:
                await boot(bare.root, _patched(composition, {"id": "models", "config": {}}))
                yield bare.root
        else:
            yield kernel.root


class _Reports:
    """Keeps the reports of a start back until it has succeeded: of one that is made again otherwise, nobody is told."""

    def __init__(self) -> None:
        self._kept: list[Report] | None = []

    def __call__(self, report: Report) -> None:
        if self._kept is not None:
            self._kept.append(report)
        else:
            logging.getLogger("leadline").error("%s: %s", report.where, report.error, exc_info=report.error)

    def release(self) -> None:
        """Tell what was kept, and from now on everything at once."""
        kept, self._kept = self._kept or (), None
        for report in kept:
            self(report)


def _patched(composition: Composition, *patches: Mapping[str, object]) -> Composition:
    present = {row.id for row in all_rows(composition.rows)}
    fitting = [one for one in patches if one.get("id", one.get("before")) in present]
    return compose([Layer("replay", json.dumps(fitting, indent=0))], composition)
