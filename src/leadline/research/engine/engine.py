"""The engine: checks a request, puts a run together, and answers for its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
from anyio import to_thread

from leadline.capabilities.corpus.seam import Corpora, Corpus, CorpusUnavailable, Progress
from leadline.capabilities.corpus.tools.tools import corpus_tools
from leadline.core.agent.agent import Agent
from leadline.core.agent.agents import Agents
from leadline.core.agent.spec import AgentSpec
from leadline.core.clock import Clock
from leadline.core.llm.adapter import Models
from leadline.core.llm.request import ModelRef, Purpose
from leadline.core.session.blobs import Blobs
from leadline.core.session.store import SessionStore
from leadline.core.spend.account import Account
from leadline.core.spend.meter import Meter
from leadline.core.tools.fence import derived_token
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import Tool
from leadline.kernel.context import Context
from leadline.kernel.services import Service
from leadline.orchestration.subagent.seam import Subagents
from leadline.research.engine.accounts import RunAccounts, check_prices
from leadline.research.engine.children import Children
from leadline.research.engine.config import EngineConfig
from leadline.research.engine.finish import Finisher
from leadline.research.engine.interrupted import (
    RUN_KIND,
    Interrupted,
    NotResumable,
    Placed,
    calls_in_flight,
    check_budget,
    interrupted,
    lost_calls,
)
from leadline.research.engine.listing import store_listing
from leadline.research.engine.run import ResearchRun, RunParts
from leadline.research.engine.spent_before import SpentBefore, spent_before
from leadline.research.engine.warmup import warm_up
from leadline.research.engine.windows import check_question, result_tokens, windows_of
from leadline.research.events import (
    NO_CEILINGS,
    USABLE_OUTCOMES,
    Noted,
    Request,
    Resumed,
    RunBudget,
    Started,
)
from leadline.research.evidence.pinned import PinnedCorpus
from leadline.research.evidence.record import RunRecord
from leadline.research.evidence.shelf import SourceShelf
from leadline.research.methods.seam import Method, Methods
from leadline.research.request import RequestRefused, ResearchRequest
from leadline.research.roles.prompts import MODEL_ROLE
from leadline.research.verify.judge import CHECKS_VERSION
from leadline.research.verify.registry import Checks

_NAMED_PARTIAL = 10
"""Documents that were read in part and are named; the rest are counted."""


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Live circumstances of a run; never logged as they are."""

    parent: Agent | None = None
    """The agent on whose behalf the run is made; the run is then its child."""
    call: ToolInvocation | None = None
    """The tool call of that agent which the run answers."""
    progress: Progress | None = None
    """Told how far reading the corpus has got."""
    paths: tuple[Path, ...] = ()
    """Where the corpus of a run that is taken up is now; empty: where it was."""
    corpus: Corpus | None = None
    """A corpus that is open already, in the place of the paths of the request; the run closes it."""
    seed: str | None = None
    """What the delimiters of fences are derived from; None: the id of the run, which is random."""
    of: str | None = None
    """Id of the run whose evidence and sources are used again."""
    budget: RunBudget = NO_CEILINGS
    """Ceilings that a run which is taken up has from now on; where it says nothing, those that it had."""
    base_url: str = ""
    """Where the model is reached, if the request came with an address; it stays on this machine."""
    models: Mapping[str, str] | None = None
    """Roles that another model does, each with its `provider/name`; None: as configured, where the request names
    no model."""
    windows: Mapping[str, int] | None = None
    """Tokens that the model of each role takes; None: what its provider says now."""


class ResearchEngine(Service, key="research"):
    """Starts runs. A run that was started always gets a result; what cannot be run is refused before."""

    def __init__(self, ctx: Context, config: EngineConfig) -> None:
        self._ctx = ctx
        self._config = config
        self._runs: dict[str, ResearchRun] = {}

    @property
    def runs(self) -> Sequence[ResearchRun]:
        """Runs that were started and not disposed of."""
        return tuple(self._runs.values())

    async def start(self, request: ResearchRequest, execution: Execution | None = None) -> ResearchRun:
        """A run whose first role is at work.

        The caller owns it: await `result`, then `dispose`. Cancelling the caller before this returns frees everything.

        Raises:
            RequestRefused: nothing to search, or a corpus without files.
            CorpusUnavailable: a path of the corpus cannot be read.
            UnknownProvider, NoDefaultModel, UnknownMethod: what was named is not there.
            RequestRefused: the question leaves no room in the window of a model, or there is a ceiling on cost and a model whose price nobody knows.
            LeadlineError: the first role could not be started.
        """
        execution = execution or Execution()
        if execution.corpus is None:  # what is played again has the ceilings that it had
            request = replace(request, budget=self._config.budget.over(request.budget))
        method = self._ctx.get(Methods).get(request.method)
        given = request.model or (execution.parent.model if execution.parent else None)
        _, model = self._ctx.get(Models).resolve(given)
        models = self._routed(request, execution)
        check_prices(self._ctx.get(Meter), request.budget.cost, _asked(model, models))
        if execution.windows is None:
            execution = replace(execution, windows=windows_of(self._ctx.get(Models), model, models))
        check_question(request, execution.windows or {})
        corpus = execution.corpus or await self._open(request.corpus, execution)
        async with AsyncExitStack() as unwind:
            unwind.callback(corpus.close)
            coordinator = await self._ctx.get(Agents).create(_coordinator(request, model, execution.parent))
            unwind.push_async_callback(_shielded, coordinator.dispose)
            listing = await to_thread.run_sync(store_listing, self._ctx.get(Blobs), corpus)
            record = self._begun(request, method, corpus, coordinator, model, models, execution, listing)
            run = self._assemble(request, method, corpus, coordinator, record, execution, SpentBefore())
            self._list_unreadable(corpus, run.shelf)
            self._note_partial(corpus, run.shelf)
            unwind.pop_all()
        return await self._published(run)

    async def resume(self, run_id: str, execution: Execution | None = None) -> ResearchRun:
        """The run of that id, at work again where it stopped; as `start` from there on.

        What its log has is a fact: plan, units that ended, answers of models, results of tools, quotes. Model calls
        that were in flight are sent again under the same idempotency key and are told in the result.

        Raises:
            SessionNotFound: there is none.
            NotResumable: it is no run, was never started, is complete, or its corpus is not where it was.
            SessionLocked: another process is at work on it.
            as `start`.
        """
        execution = execution or Execution()
        store = self._ctx.get(SessionStore)
        before = interrupted(await store.read(run_id))
        budget = _raised(before.budget, execution.budget)
        check_prices(self._ctx.get(Meter), budget.cost, _asked(before.model, before.started.models))
        check_budget(run_id, before, budget, (await spent_before(store, before.facts)).usage.spent)
        method = self._ctx.get(Methods).get(before.started.method)
        _, model = self._ctx.get(Models).resolve(before.model)
        corpus = execution.corpus or await self._found_again(run_id, before, execution)
        async with AsyncExitStack() as unwind:
            unwind.callback(corpus.close)
            spec = _coordinator(before.request, model, execution.parent)
            coordinator = await self._ctx.get(Agents).resume(run_id, spec)
            unwind.push_async_callback(_shielded, coordinator.dispose)
            # Read again now that nobody else can write it.
            before = interrupted(coordinator.session)
            record = RunRecord(coordinator.session, self._ctx.report)
            in_flight = await calls_in_flight(store, before.facts)
            now = iso_now(self._ctx.get(Clock))
            lost = await lost_calls(store, before.facts)
            resumed = Resumed(
                resumed_at=now(),
                spent_s=round(before.spent_s, 3),
                in_flight=in_flight,
                budget=None if budget == before.budget else budget,
            )
            used = await spent_before(store, before.facts)
            record.append(resumed, *lost)
            run = self._assemble(before.request, method, corpus, coordinator, record, execution, used)
            unwind.pop_all()
        return await self._published(run)

    async def _found_again(self, run_id: str, before: Interrupted, execution: Execution) -> Corpus:
        try:
            return await self._open(execution.paths or before.request.corpus, execution)
        except (CorpusUnavailable, RequestRefused) as error:
            raise NotResumable(
                f"run {run_id}: {error} If it was moved: leadline resume {run_id} --corpus PATH"
            ) from error

    async def _published(self, run: ResearchRun) -> ResearchRun:
        self._runs[run.id] = run
        run.begin()
        try:
            await run.published()
        except BaseException:
            await self.dispose(run)
            raise
        run.accompany(self._ctx.spawn(warm_up, self._ctx.get(Clock), name="warm up"))
        return run

    async def dispose(self, run: ResearchRun) -> None:
        """Free a run, whoever is cancelled meanwhile; if freeing fails it stays on the list, to be tried again."""
        with anyio.CancelScope(shield=True):
            await run.dispose()

    def _freed(self, run: ResearchRun) -> None:
        self._runs.pop(run.id, None)

    async def drain(self) -> None:
        """Free every run that is left."""
        failures: list[Exception] = []
        for run in self.runs:
            try:
                await self.dispose(run)
            except Exception as failure:  # noqa: BLE001 - every run is tried; all failures are raised together
                failures.append(failure)
        if failures:
            raise ExceptionGroup("runs could not be freed", failures)

    async def _open(self, paths: Sequence[Path], execution: Execution) -> Corpus:
        if not paths:
            raise RequestRefused(
                "corpus",
                "there is nothing to search",
                "Name a folder or a file, for example --corpus ./documents.",
            )
        corpus = await self._ctx.get(Corpora).open(paths, progress=execution.progress)
        if not corpus.documents():
            corpus.close()
            names = ", ".join(str(path) for path in paths)
            raise RequestRefused("corpus", f"{names} holds no files", "Name a folder with documents in it.")
        if not any(document.readable for document in corpus.documents()):
            refused = _unreadable(corpus)
            corpus.close()
            raise refused
        return corpus

    def _routed(self, request: ResearchRequest, execution: Execution) -> Mapping[str, str]:
        """The roles that a model of their own does. A model that the request names does all of them."""
        if execution.models is not None:
            return execution.models
        models, parent = self._ctx.get(Models), execution.parent
        if request.model is not None or (parent is not None and not models.is_default(parent.model)):
            return {}
        named = {role: models.for_role(wanted) for role, wanted in MODEL_ROLE.items()}
        return {role: str(models.resolve(ref)[1]) for role, ref in named.items() if ref is not None}

    def _begun(
        self,
        request: ResearchRequest,
        method: Method,
        corpus: Corpus,
        coordinator: Agent,
        model: ModelRef,
        models: Mapping[str, str],
        execution: Execution,
        listing: str,
    ) -> RunRecord:
        """The record of a new run, with what it is asked and where its corpus is."""
        record = RunRecord(coordinator.session, self._ctx.report)
        paths = tuple(str(path.absolute()) for path in request.corpus)
        coordinator.session.append(Placed(corpus=paths, listing=listing, base_url=execution.base_url))
        record.append(
            Started(
                run=coordinator.id,
                request=Request(
                    question=request.question,
                    purpose=request.purpose,
                    context=request.context,
                    breadth=request.breadth,
                    format=request.format,
                    language=request.language,
                ),
                roots=corpus.roots,
                method=method.name,
                model=str(model),
                models=models,
                windows=execution.windows or {},
                checks_version=CHECKS_VERSION,
                mode="delegated" if execution.parent is not None else "direct",
                call=execution.call.call_id if execution.call is not None else None,
                of=execution.of,
                budget=request.budget,
                started_at=iso_now(self._ctx.get(Clock))(),
            )
        )
        return record

    def _assemble(
        self,
        request: ResearchRequest,
        method: Method,
        corpus: Corpus,
        coordinator: Agent,
        record: RunRecord,
        execution: Execution,
        before: SpentBefore,
    ) -> ResearchRun:
        ctx, clock = self._ctx, self._ctx.get(Clock)
        now, secret = iso_now(clock), execution.seed or coordinator.id
        corpus = PinnedCorpus(corpus, lambda: record.ledger.sources, ctx.get(Blobs))
        shelf = SourceShelf(corpus, record, now, ctx.get(Blobs))

        started = record.ledger.started
        window = started.windows.get("researcher") if started else None
        tokens = result_tokens(window, self._config.source_calls + self._config.recovery_reads)

        def source_tools(attempt: str) -> tuple[Tool, ...]:
            return corpus_tools(corpus, lambda call: derived_token(secret, attempt, call.call_id), tokens)

        routed = {role: ModelRef.parse(name) for role, name in started.models.items()} if started else {}
        spent = record.ledger.resumed[-1].spent_s if record.ledger.resumed else 0.0
        accounts = RunAccounts(
            record.ledger.budget,
            _above(execution),
            clock.monotonic,
            spent=before.usage.spent,
            seconds=spent,
            by_unit=before.by_unit,
            price=ctx.get(Meter).price(str(routed.get("researcher", coordinator.model))),
        )
        children = Children(
            ctx.get(Subagents),
            ctx.get(SessionStore),
            coordinator,
            shelf,
            source_tools,
            self._config,
            routed,
            accounts,
            before,
            clock,
        )
        finisher = Finisher(record, corpus, ctx.get(Checks), children.usage, now, accounts)
        parts = RunParts(
            request=request,
            method=method,
            corpus=corpus,
            coordinator=coordinator,
            record=record,
            shelf=shelf,
            children=children,
            accounts=accounts,
            finisher=finisher,
            secret=secret,
            source_calls=self._config.source_calls,
            freed=self._freed,
        )
        return ResearchRun(ctx, parts)

    def _list_unreadable(self, corpus: Corpus, shelf: SourceShelf) -> None:
        """Documents that cannot be evidence are in the coverage from the start: no search returns them."""
        unreadable = [one for one in corpus.documents() if one.outcome not in USABLE_OUTCOMES]
        for document in unreadable[: self._config.listed_unreadable]:
            shelf.find(document, None)
        rest = len(unreadable) - self._config.listed_unreadable
        if rest > 0:
            shelf.record.append(Noted(text=f"{rest} more documents of the corpus could not be read."))

    def _note_partial(self, corpus: Corpus, shelf: SourceShelf) -> None:
        """What was not read of documents is said even if no search returns them: it may be where the answer is."""
        partial = [one for one in corpus.documents() if one.outcome == "partial"]
        if not partial:
            return
        named = [f"{one.location} ({one.reason})" for one in partial[:_NAMED_PARTIAL]]
        more = len(partial) - len(named)
        rest = f"; and {more} more documents" if more > 0 else ""
        shelf.record.append(Noted(text=f"Only partly read: {'; '.join(named)}{rest}."))


def _unreadable(corpus: Corpus) -> RequestRefused:
    """The refusal of a corpus of which no file can be read, with the reason of the first ones."""
    documents = corpus.documents()
    told = "; ".join(f"{one.location}: {one.reason or one.outcome}" for one in documents[:3])
    more = f"; and {len(documents) - 3} more" if len(documents) > 3 else ""
    return RequestRefused(
        "corpus",
        f"none of its {len(documents)} file(s) can be read ({told}{more})",
        "Name documents with text.",
    )


def _coordinator(request: ResearchRequest, model: ModelRef, parent: Agent | None) -> AgentSpec:
    """The idle agent that a run's roles are children of; its session is the run's log."""
    return AgentSpec(
        kind=RUN_KIND, model=model, parent=parent, purpose=Purpose("research/run"), label=request.question
    )


def _above(execution: Execution) -> Account | None:
    """What a run draws on: of a run that a tool call is for, the account of the turn that called."""
    if execution.call is not None and execution.call.caller.account is not None:
        return execution.call.caller.account
    return execution.parent.account if execution.parent is not None else None


def _asked(model: ModelRef, models: Mapping[str, str]) -> Sequence[str]:
    """The models that the roles of a run ask, each once."""
    return tuple(dict.fromkeys(models.get(role, str(model)) for role in MODEL_ROLE))


def _raised(before: RunBudget, by: RunBudget) -> RunBudget:
    """The ceilings that a run had, with those that it is given now in their place."""
    return RunBudget(
        tokens=before.tokens if by.tokens is None else by.tokens,
        cost=before.cost if by.cost is None else by.cost,
        calls=before.calls if by.calls is None else by.calls,
        seconds=before.seconds if by.seconds is None else by.seconds,
        keep=before.keep if by.keep is None else by.keep,
        unit_share=before.unit_share if by.unit_share is None else by.unit_share,
    )


async def _shielded(release: Callable[[], Awaitable[None]]) -> None:
    with anyio.CancelScope(shield=True):
        await release()


def iso_now(clock: Clock) -> Callable[[], str]:
    """The clock's time as ISO 8601 in UTC, to the second."""
    return lambda: (
        datetime.fromtimestamp(clock.now(), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    )
