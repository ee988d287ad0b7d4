"""A whole research run as a work: several units at once, over real HTTP, with the bill of the provider.

work = ResearchWork()                                    # the shipped profile, session files
work = ResearchWork(patches=[Path("mine.yml")])          # your store, your plugins
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from leadline.core.session.store import SessionStore
from leadline.kernel.errors import LeadlineError
from leadline.testing.faults.bills import Asked, asked_in, check_bill
from leadline.testing.faults.images import Image
from leadline.testing.faults.work import Note
from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import ProviderServer, Received
from leadline.testing.researcher import ScriptedResearcher, Topic, topics, write_corpus

if TYPE_CHECKING:
    from leadline.apps.sdk.app import Leadline
    from leadline.research.engine.run import ResearchRun
    from leadline.research.report.result import ResearchResult
    from leadline.research.stored import StoredRun

QUESTION = "How much water did the reservoirs hold?"
CORPUS = "corpus"
HOME = "home"


class RunFell(LeadlineError):
    """A run ended without a report; with its error."""


class ResearchWork:
    """One run, from the question to the report; taken up with `Leadline.resume_research`.

    After a crash: every session can be listed and read, none is shown as running, the report comes out the same,
    and the provider is paid for no answer that was logged. The run lists each call that was sent again.
    """

    def __init__(
        self,
        *,
        units: int = 3,
        sentences: int = 2,
        reads: int = 1,
        delay_s: float = 0.0,
        patches: Sequence[Path] = (),
        corpus: Path | None = None,
        stopped_at: int | None = None,
    ) -> None:
        """`corpus` is where the documents are; None: beside the folder that the work is done in.

        `stopped_at` is the number of the request, from 0, in which the run is cancelled and then taken up, so that
        crashes while it is stopped and taken up are tried too.
        """
        self._topics: tuple[Topic, ...] = topics(units, sentences)
        self._researcher = ScriptedResearcher(self._topics, delay_s=delay_s, reads=reads)
        self._answers = 2 + units * (reads + 3)
        """A plan and a report; a unit searches, reads, quotes and hands in."""
        self._patches = tuple(patches)
        self._corpus = corpus
        self._stopped_at = stopped_at

    async def start(self, folder: Path, note: Note) -> object:
        corpus = self._corpus or folder.parent / CORPUS
        write_corpus(corpus, self._topics)
        note("corpus", str(corpus))

        reached = anyio.Event()

        def answer(request: Received) -> Behaviour:
            note("charged", request.headers.get("idempotency-key", ""))
            if request.n == self._stopped_at:
                reached.set()
                return Behaviour("stall")
            return self._researcher(request)

        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(ProviderServer(answer, strict=True))
            app = await stack.enter_async_context(self._app(folder, server))
            run = await app.start_research(QUESTION, corpus=[corpus], breadth="broad")
            if self._stopped_at is not None:
                run = await _stopped(app, run, reached)
            return await _outcome(run)

    async def resume(self, folder: Path, image: Image) -> object:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(ProviderServer(self._researcher, strict=True))
            app = await stack.enter_async_context(self._app(folder, server))
            before = await asked_in(app.ctx.get(SessionStore))
            found = await _stored_run(app, image)
            if found is None:
                corpus = Path(str(image.noted("corpus")[0]))
                run = await app.start_research(QUESTION, corpus=[corpus], breadth="broad")
            elif found.complete:
                return _came_to(found.result())
            else:
                run = await app.resume_research(found.id)
            outcome = await _outcome(run)
            _check(image, before, run, server)
            after = len((await asked_in(app.ctx.get(SessionStore))).answered)
            assert image.power_cut or after == self._answers, (
                f"{after} answers were asked for, and not {self._answers}: something that was known was asked anew"
            )
            return outcome

    def _app(self, folder: Path, server: ProviderServer) -> Leadline:
        from leadline.apps.sdk.app import Leadline  # noqa: PLC0415 - the whole program, and only when it is used

        return Leadline(
            model="local/fake", base_url=server.base_url, home=folder / HOME, patches=self._patches
        )


async def _stored_run(app: Leadline, image: Image) -> StoredRun | None:
    """The run that the crash left; None where it left none that had begun."""
    for entry in await app.ctx.get(SessionStore).list():
        assert entry.status != "running", f"{entry.id} is shown as running, and its process is dead"
        if entry.status == "unreadable":
            assert image.power_cut, f"{entry.id} cannot be read: {entry.reason}"
        elif entry.kind == "research":
            found = await app.stored(entry.id)
            if found.ledger.started is not None:
                return found
    return None


async def _stopped(app: Leadline, run: ResearchRun, reached: anyio.Event) -> ResearchRun:
    """The run again, after it was cancelled."""
    try:
        await reached.wait()
        await run.cancel("stopped")
    finally:
        await run.dispose()
    return await app.resume_research(run.id)


async def _outcome(run: ResearchRun) -> object:
    try:
        result = await run.result()
    finally:
        await run.dispose()
    if result.status != "completed":
        raise RunFell(f"run {run.id} ended {result.status}: {result.error}")
    return _came_to(result)


def _came_to(result: ResearchResult) -> object:
    """A result without what is of its moment."""
    return {
        "report": result.report,
        "sentences": [[one.text, one.verdict, list(one.citations)] for one in result.sentences],
        "quotes": [[one.n, one.quote, one.start, one.end] for one in result.citations],
    }


def _check(image: Image, before: Asked, run: ResearchRun, server: ProviderServer) -> None:
    """The bill, and what the run says of it."""
    keys = [charge.idempotency_key or "" for charge in server.bill]
    check_bill(before, map(str, image.noted("charged")), keys, power_cut=image.power_cut)
    listed = {call.idempotency_key for one in run.ledger.resumed for call in one.in_flight}
    repeated = before.in_flight & set(keys)
    assert repeated <= listed, f"sent again and not listed: {sorted(repeated - listed)}"
