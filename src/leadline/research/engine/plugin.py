"""Mounts the research engine, its checks and its methods' registry, and makes its events known."""

from __future__ import annotations

from leadline.capabilities.corpus.seam import Corpora
from leadline.capabilities.documents.seam import Documents
from leadline.core.agent.agents import Agents
from leadline.core.clock import Clock
from leadline.core.config import ConfigParser
from leadline.core.llm.adapter import Models
from leadline.core.session.blobs import Blobs
from leadline.core.session.invariants import Invariants
from leadline.core.session.registry import EventTypes
from leadline.core.session.store import SessionStore
from leadline.core.spend.meter import Meter
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.orchestration.subagent.seam import Subagents
from leadline.research.engine.config import EngineConfig
from leadline.research.engine.engine import ResearchEngine
from leadline.research.engine.interrupted import Placed
from leadline.research.engine.invariants import guard_runs
from leadline.research.engine.own_reports import OwnReports
from leadline.research.events import RESEARCH_EVENTS
from leadline.research.methods.seam import Methods
from leadline.research.verify.registry import Checks


async def apply(ctx: Context, config: EngineConfig) -> None:
    ctx.get(EventTypes).register(ctx, Placed, *RESEARCH_EVENTS)
    if documents := ctx.find(Documents):
        documents.register(ctx, OwnReports())
    ctx.provide(Checks, Checks())
    ctx.provide(Methods, Methods())
    guard_runs(ctx)
    engine = ResearchEngine(ctx, config)
    ctx.provide(ResearchEngine, engine)
    ctx.defer("runs", engine.drain)


plugin = Plugin(
    "research",
    apply,
    config=ConfigParser(EngineConfig),
    needs=(Agents, Subagents, Corpora, Models, Clock, EventTypes, SessionStore, Blobs, Meter),
    wants=(Documents, Invariants),
    provides=(ResearchEngine, Methods, Checks),
)
