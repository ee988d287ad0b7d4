"""A run once more: from its own answers and sources, or with another model, method or checks over its sources."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import anyio
from msgspec import structs

from leadline.capabilities.corpus.seam import Corpora, Corpus
from leadline.core.agent.agents import Agents
from leadline.core.clock import Clock
from leadline.core.llm.adapter import Models
from leadline.core.llm.request import LlmRequest, ModelRef
from leadline.core.session.blobs import Blobs
from leadline.kernel.errors import LeadlineError
from leadline.research.engine.engine import Execution, ResearchEngine
from leadline.research.engine.interrupted import Placed
from leadline.research.engine.listing import stored_listing
from leadline.research.events import BUDGET_REACHED, RunBudget
from leadline.research.evidence.pinned import stored_text
from leadline.research.replay.clock import RecordedClock
from leadline.research.replay.corpus import RecordedCorpus, RecordedSources, Texts, recorded_sources
from leadline.research.replay.differences import text_difference
from leadline.research.replay.player import (
    ROLES,
    AskedRequest,
    Leaves,
    Live,
    Player,
    UnaskedRequest,
    nothing_live,
)
from leadline.research.replay.recording import RecordedSession, load_recording
from leadline.research.request import ResearchRequest
from leadline.research.stored import StoredRun, load_run
from leadline.research.verify.registry import Checks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from leadline.capabilities.corpus.seam import CorpusDocument
    from leadline.core.session.store import SessionStore
    from leadline.kernel.context import Context
    from leadline.research.engine.run import ResearchRun
    from leadline.research.events import Started
    from leadline.research.ledger.ledger import Ledger
    from leadline.research.report.result import ResearchResult
    from leadline.research.request import Breadth
    from leadline.research.roles.purposes import ReportFormat

_LOOK_S = 0.02
"""How often is looked whether a recording that was cut short has been played to its end."""
_STUCK_S = 5.0
"""After this long without a further request, what is left of a recording that was cut short is not asked for."""


class NotReplayable(LeadlineError):
    """The run cannot be replayed; says why, and what to do instead."""


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """What is to be different from the recorded run; nothing by default."""

    model: ModelRef | None = None
    """Who is asked instead of playing recorded answers."""
    roles: Collection[str] = ()
    """Whom `model` answers for: planner, researcher, writer. Empty: for all."""
    method: str | None = None
    """How the research is done. Recorded answers are played where it asks just what was asked; the rest goes to the
    model."""
    checks: Collection[str] = ()
    """Names of the checks that judge the sentences. Empty: all that are mounted."""

    def __post_init__(self) -> None:
        for role in self.roles:
            if role not in ROLES.values():
                raise NotReplayable(f"role {role!r} is not known; there are {', '.join(ROLES.values())}")
        if self.roles and self.model is None:
            raise NotReplayable("roles were named, but no model to ask for them; name one with --model")

    @property
    def differs(self) -> bool:
        """Whether anything is to be different: then a new run is made, else the old one is proved."""
        return self.model is not None or self.method is not None or bool(self.checks)

    @property
    def plays(self) -> bool:
        """Whether all answers are recorded ones."""
        return self.model is None and self.method is None

    def live(self) -> Live:
        """Which requests may leave."""
        if self.model is None:
            return nothing_live if self.method is None else _unrecorded
        rest: Leaves = "never" if self.method is None else "unrecorded"
        return lambda request: "always" if self._asks(request) else rest

    def _asks(self, request: LlmRequest) -> bool:
        return not self.roles or ROLES.get(request.purpose.name) in self.roles


def _unrecorded(request: LlmRequest) -> Leaves:
    return "unrecorded"


@dataclass(frozen=True)
class RecordedRun:
    """All that a replay needs of a run, read from the store."""

    recording: RecordedSession
    stored: StoredRun
    started: Started
    sources: RecordedSources
    texts: Texts

    def budget(self, what_if: WhatIf) -> RunBudget:
        """The ceilings that the run had last. Played from a recording, it takes no time to speak of."""
        had = self.stored.ledger.budget
        return structs.replace(had, seconds=None) if what_if.plays else had

    def request(self, what_if: WhatIf) -> ResearchRequest:
        """What was asked, with what is to be different."""
        asked = self.started.request
        return ResearchRequest(
            question=asked.question,
            method=what_if.method or self.started.method,
            breadth=cast("Breadth", asked.breadth),
            format=cast("ReportFormat", asked.format),
            language=asked.language,
            purpose=asked.purpose,
            context=asked.context,
            model=what_if.model or ModelRef.parse(self.started.model),
            budget=self.budget(what_if),
        )


async def load_recorded_run(store: SessionStore, blobs: Blobs, run_id: str) -> RecordedRun:
    """The run of that id with everything that was recorded of it. Reads only.

    Raises:
        SessionNotFound, NotARun: there is no run of that id.
        NotReplayable: it has not ended.
        SourcesLost: texts that it rests on are not in the store any more.
    """
    stored = await load_run(store, blobs, run_id)
    ledger = stored.ledger
    if ledger.started is None or stored.interrupted:
        raise NotReplayable(
            f"run {run_id} has not ended, so there is no report to compare with; first: leadline resume {run_id}"
        )
    recording = await load_recording(store, run_id)
    known: dict[str, str] = {}

    def text(sha256: str) -> str:
        if sha256 not in known:
            known[sha256] = stored_text(blobs, sha256)
        return known[sha256]

    placed = recording.session.last(Placed)
    listed = stored_listing(blobs, placed.listing) if placed else ()
    sources = recorded_sources(recording, ledger, text, listed)
    sources.check(text, ledger)
    return RecordedRun(recording, stored, ledger.started, sources, text)


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """What became of a replay."""

    id: str
    """The run that was replayed."""
    run: str | None
    """The new run, where something was to be different; a replay proper leaves none behind."""
    recorded: ResearchResult
    result: ResearchResult
    asked: tuple[AskedRequest, ...]
    """Every request, in the order in which they came."""
    unasked: tuple[UnaskedRequest, ...]
    """Recorded answers that nobody asked for."""

    @property
    def report_diff(self) -> str:
        """The unified diff of the reports, in Markdown; empty where they are equal byte for byte."""
        now = self.run or "replayed"
        return text_difference(self.recorded.report, self.result.report, f"{self.id} recorded", now)

    @property
    def differing(self) -> tuple[AskedRequest, ...]:
        """Requests that are not what was recorded, or that the recording has no answer to."""
        return tuple(one for one in self.asked if one.differences or one.answered in ("missing", "live"))

    @property
    def same_report(self) -> bool:
        """Whether report, status and reason are what was recorded."""
        was, now = self.recorded, self.result
        return (was.report, was.status, was.error) == (now.report, now.status, now.error)

    @property
    def same(self) -> bool:
        """Whether nothing at all differs: every request, every answer used, the report."""
        return self.same_report and not self.differing and not self.unasked


async def replay_run(
    ctx: Context,
    recorded: RecordedRun,
    what_if: WhatIf | None = None,
    *,
    started: Callable[[ResearchRun], None] | None = None,
) -> Replayed:
    """Run it again in a composition that has no other run, and compare. `started` is told the live run.

    Nothing leaves the machine unless `what_if` names a model or a method: a request without a recorded answer fails.

    Raises:
        NotReplayable: what became of it depended on something that is in no recording.
        UnknownProvider, UnknownMethod, UnknownCheck: what was named is not there.
        LeadlineError: the first role could not be started.
    """
    what_if = what_if or WhatIf()
    ended = recorded.stored.ledger.ended
    if what_if.plays and ended is not None and ended.metadata.get(BUDGET_REACHED) == "seconds":
        raise NotReplayable(
            f"run {recorded.recording.id}: its time was up; how far it came depended on the clock, which no recording "
            "has. To see what a model makes of its sources: --model PROVIDER/NAME"
        )
    if what_if.model is not None:
        ctx.get(Models).resolve(what_if.model)  # before the player answers for every provider
    clock = ctx.get(Clock)
    cancelled = recorded.stored.ledger.status == "cancelled" and what_if.plays
    player = Player(
        ctx.get(Agents),
        recorded.recording,
        live=what_if.live(),
        answered=clock.reach if isinstance(clock, RecordedClock) else None,
        adopt=True,
        cut_short=cancelled,
    )
    if what_if.checks:
        ctx.get(Checks).restrict(ctx, what_if.checks)
    player.mount(ctx)
    execution = Execution(
        corpus=RecordedCorpus(recorded.sources, recorded.texts, _restoring(ctx, recorded.texts)),
        seed=None if what_if.differs else recorded.recording.id,
        of=recorded.recording.id if what_if.differs else None,
        models=recorded.started.models if what_if.model is None else {},
        windows=recorded.started.windows if what_if.model is None else None,
    )
    run = await ctx.get(ResearchEngine).start(recorded.request(what_if), execution)
    if started is not None:
        started(run)
    result = await _seen_through(ctx, run, player, recorded.stored if cancelled else None)
    replayed = Replayed(
        id=recorded.recording.id,
        run=result.id if what_if.differs else None,
        recorded=recorded.stored.result(),
        result=result,
        asked=tuple(player.asked),
        unasked=player.unasked,
    )
    if what_if.plays and not replayed.same and _ended_where_it_was_taken_up(recorded.stored.ledger):
        raise NotReplayable(
            f"run {recorded.recording.id}: its budget ended it after it was taken up; how far it came depended on "
            "what had been used until then, such as by calls that were cut off, which no recording has. To see what "
            "a model makes of its sources: --model PROVIDER/NAME"
        )
    return replayed


def _ended_where_it_was_taken_up(recorded: Ledger) -> bool:
    """Whether a ceiling ended a run that was not made in one go: played in one go, other work is what it pays for."""
    return bool(recorded.resumed) and recorded.ended is not None and BUDGET_REACHED in recorded.ended.metadata


async def _seen_through(
    ctx: Context, run: ResearchRun, player: Player, cancelled: StoredRun | None
) -> ResearchResult:
    """The result, once all of the run is gone; where the recorded one was `cancelled`, so is this."""
    async with AsyncExitStack() as unwind:
        unwind.push_async_callback(ctx.get(ResearchEngine).dispose, run)
        async with anyio.create_task_group() as tasks:
            if cancelled is not None:
                tasks.start_soon(_cut_short, ctx.get(Clock), run, player, cancelled.ledger)
            await run.result()
            tasks.cancel_scope.cancel()
        return await run.result()


async def _cut_short(clock: Clock, run: ResearchRun, player: Player, recorded: Ledger) -> None:
    """Cancel the run where the recorded one was cancelled: when all that was recorded has come about."""
    asked, since = -1, clock.monotonic()
    while not (player.at_the_end and _has_come_to(run.ledger, recorded)):
        if clock.monotonic() - since > _STUCK_S:
            break
        await clock.sleep(_LOOK_S)
        if len(player.asked) != asked:
            asked, since = len(player.asked), clock.monotonic()
    await run.cancel((recorded.ended.error if recorded.ended else None) or "cancelled")


def _has_come_to(live: Ledger, recorded: Ledger) -> bool:
    """Whether everything that had ended when the recorded run was cancelled has ended now."""
    over = {
        one: state.status
        for one, state in recorded.units.items()
        if state.status in ("completed", "partial", "failed")
    }
    return live.quotes.keys() >= recorded.quotes.keys() and all(
        one in live.units and live.units[one].status == status for one, status in over.items()
    )


def _restoring(ctx: Context, texts: Texts) -> RestoreDocuments:
    return RestoreDocuments(ctx.get(Corpora), ctx.get(Blobs), texts)


@dataclass(frozen=True)
class RestoreDocuments:
    """Makes recorded documents searchable in a composition that may have other blobs than the recording."""

    corpora: Corpora
    blobs: Blobs
    texts: Texts

    def __call__(self, roots: Sequence[str], documents: Sequence[CorpusDocument]) -> Corpus:
        return self.corpora.restore(
            roots, [one for one in documents if self._is_there(one.snapshot.text_sha256)]
        )

    def _is_there(self, sha256: str) -> bool:
        """Whether the text is in the blobs of the composition, now at the latest; one that is lost is not."""
        if not sha256 or self.blobs.has(sha256):
            return True
        text = self.texts(sha256)
        return bool(text) and self.blobs.put(text.encode("utf-8", "surrogatepass")) == sha256
