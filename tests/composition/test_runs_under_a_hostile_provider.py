"""A provider that limits, stalls, truncates, lies and changes its mind cannot make a run hang, overspend, overflow or lose evidence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from random import Random

import anyio
import pytest

from leadline import Leadline
from leadline.apps.sdk.options import BudgetOptions
from leadline.core.llm.adapter import Models
from leadline.core.loop.audit import audit
from leadline.core.session.events import ToolAnswered
from leadline.core.session.store import SessionStore
from leadline.research.bundle.verify import verify_bundle
from leadline.research.report.result import ResearchResult
from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.counting import Lie, ServerPrice
from leadline.testing.provider_server.limits import ServerLimits, ServerWindow
from leadline.testing.provider_server.server import ProviderServer, Received
from leadline.testing.researcher import ScriptedResearcher, topics, write_corpus

pytestmark = pytest.mark.anyio

QUESTION = "What did the reservoirs hold?"
PRICE = ServerPrice(input=1.0, output=4.0)
LIES: tuple[Lie | None, ...] = (None, None, "small", "large", "missing", "negative", "doubled", "scattered")
HONEST: frozenset[Lie | None] = frozenset({None, "doubled", "scattered", "large"})
"""What a meter that believes the bill can hold to a ceiling; the rest it has to estimate."""

MOODS = (
    Behaviour("rate_limit", retry_after="0"),
    Behaviour("server_error"),
    Behaviour("service_unavailable", retry_after="0"),
    Behaviour("error_body"),
    Behaviour("stream_disconnect"),
    Behaviour("partial_disconnect", text="half an ans"),
    Behaviour("truncated", text="half an ans"),
    Behaviour("stall", text="half an ans"),
    Behaviour("stall_before_headers"),
    Behaviour("connection_reset"),
    Behaviour("empty"),
    Behaviour("max_tokens", text="as long as it may be"),
    Behaviour("context_overflow"),
)

PATCH = """
- id: loop
  merge:
    retry: {first_s: 0.001, max_s: 0.004}
- id: models
  merge:
    providers:
      local: {settings: {idle_timeout_s: 1.0}}
- id: meter
  merge:
    prices:
      local/*: {input: 1.0, output: 4.0}
"""


@dataclass
class Hostile:
    """What a provider is like; all of it follows from a seed."""

    seed: int

    def __post_init__(self) -> None:
        random = Random(self.seed)
        self.rate = random.choice((0.0, 0.15, 0.4))
        self.lie: Lie | None = random.choice(LIES)
        self.limits = random.choice(
            (
                None,
                ServerLimits(concurrent=1, retry_after=False),
                ServerLimits(concurrent=2, busy_retry_s=0.0),
                ServerLimits(requests=6, per_s=0.4),
                ServerLimits(tokens=60_000, per_s=0.5, headers="none"),
            )
        )
        self.window = random.choice(
            (None, ServerWindow(tokens=7_000), ServerWindow(tokens=2_500, excess="truncate"))
        )
        budgets: tuple[BudgetOptions, ...] = (
            {},
            {"max_tokens": random.randint(5_000, 80_000)},
            {"max_cost": random.randint(5, 80) / 1000},
            {"max_calls": random.randint(2, 20)},
            {"max_seconds": 2.5},
        )
        self.budget = random.choice(budgets)


@dataclass
class Moody:
    """A researcher that fails in the middle of its work; the same seed fails at the same requests."""

    hostile: Hostile
    answers: ScriptedResearcher

    def __call__(self, request: Received) -> Behaviour:
        random = Random(f"{self.hostile.seed} {request.n}")
        return random.choice(MOODS) if random.random() < self.hostile.rate else self.answers(request)


@pytest.mark.parametrize("seed", range(24))
async def test_a_run_ends_within_its_budget_and_keeps_what_was_found(
    home: Path, tmp_path: Path, seed: int
) -> None:
    hostile, subjects = Hostile(seed), topics(3, sentences=3)
    write_corpus(tmp_path / "corpus", subjects)
    patch = tmp_path / "hostile.yml"
    patch.write_text(PATCH)
    server = ProviderServer(
        Moody(hostile, ScriptedResearcher(subjects)),
        limits=hostile.limits,
        window=hostile.window,
        prices=PRICE,
        lie=hostile.lie,
    )
    async with server, Leadline(model="local/fake", base_url=server.base_url, patches=[patch]) as app:
        with anyio.fail_after(60):
            result = await app.research(
                QUESTION, corpus=[tmp_path / "corpus"], breadth="broad", **hostile.budget
            )
        await check_evidence(app, result)
        check_budget(hostile, server)
        if result.report:
            bundle = tmp_path / "run.leadline"
            (await app.stored(result.id)).write_bundle(bundle)
            assert verify_bundle(bundle).ok


async def check_evidence(app: Leadline, result: ResearchResult) -> None:
    """What a unit recorded is in the report, and every log proves what was sent."""
    assert result.status in ("completed", "partial", "failed")
    recorded: set[str] = set()
    store, models = app.ctx.get(SessionStore), app.ctx.get(Models)
    for entry in await store.list():
        session = await store.read(entry.id)
        found = audit(session, models)
        assert found.ok, found
        for answered in session.of(ToolAnswered):
            if answered.message.name == "record_evidence" and not answered.message.is_error:
                recorded.update(re.findall(r"\bu\d+\.e\d+\b", answered.message.content))
    ledger = (await app.stored(result.id)).ledger
    assert set(ledger.quotes) == recorded
    if recorded:
        assert result.report
        assert result.citations
    else:
        assert result.status == "failed"
        assert result.error


def check_budget(hostile: Hostile, server: ProviderServer) -> None:
    """At most one call goes over; where the usage is not what is charged, an estimate has to do."""
    slack = 1.0 if hostile.lie in HONEST else 2.2
    charged = [charge.prompt_tokens + charge.completion_tokens for charge in server.bill]
    budget = hostile.budget
    tokens, cost, calls = budget.get("max_tokens"), budget.get("max_cost"), budget.get("max_calls")
    if tokens is not None and charged:
        assert sum(charged) <= tokens * slack + max(charged)
    if cost is not None and server.bill:
        costs = [charge.cost or 0 for charge in server.bill]
        assert sum(costs) <= cost * 1e12 * slack + max(costs)
    if calls is not None:
        assert len(server.requests) <= calls
