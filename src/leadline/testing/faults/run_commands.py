"""The commands that begin a research run and go on with it, to be run, and killed, as processes of their own."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.core.session.store import SessionStore
from leadline.testing.faults.bills import Asked, asked_in
from leadline.testing.faults.research_work import QUESTION

if TYPE_CHECKING:
    from leadline.apps.sdk.app import Leadline


class RunCommands:
    """Commands over one home, one corpus and one provider."""

    def __init__(self, home: Path, corpus: Path, base_url: str, patches: Sequence[Path] = ()) -> None:
        """`base_url` is that of a `ProviderServer` which outlives the processes."""
        self._home = home
        self._corpus = corpus
        self._patches = tuple(patches)
        self._options = ["--model", "local/fake", "--base-url", base_url]
        for patch in patches:
            self._options += ["--patch", str(patch)]

    @property
    def env(self) -> Mapping[str, str]:
        """What the processes find in their environment beside what this one has."""
        return {"LEADLINE_HOME": str(self._home)}

    def research(self) -> list[str]:
        """Ask the question."""
        asked = ["research", QUESTION, "--corpus", str(self._corpus), "--breadth", "broad"]
        return [*_program(), *asked, *self._options]

    def resume(self, run: str) -> list[str]:
        """Go on with a run."""
        return [*_program(), "resume", run, *self._options]

    def audit(self, run: str) -> list[str]:
        """Prove its requests from its logs."""
        patches = [part for patch in self._patches for part in ("--patch", str(patch))]
        return [*_program(), "audit", run, *patches]

    async def next(self, attempt: int = 0) -> list[str]:
        """Begin; once there is a run that began, go on with it."""
        run = await self.found()
        return self.resume(run) if run else self.research()

    async def found(self) -> str | None:
        """The id of the run that began; None where there is none yet."""
        async with self._app() as app:
            for entry in await app.ctx.get(SessionStore).list():
                if entry.kind == "research" and (await app.stored(entry.id)).ledger.started is not None:
                    return entry.id
        return None

    async def asked(self) -> Asked:
        """What the logs tell of calls to models."""
        async with self._app() as app:
            return await asked_in(app.ctx.get(SessionStore))

    def _app(self) -> Leadline:
        from leadline.apps.sdk.app import Leadline  # noqa: PLC0415 - the whole program, and only when it is used

        return Leadline(home=self._home, patches=self._patches)


def _program() -> list[str]:
    return [str(Path(sys.executable).with_name("leadline"))]
