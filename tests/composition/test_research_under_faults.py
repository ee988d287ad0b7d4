"""Runs against a provider that fails at random: whatever it does, a run ends with a result that its log proves."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import anyio
import pytest

from leadline import Leadline
from leadline.core.agent.agents import Agents
from leadline.core.llm.adapter import Models
from leadline.core.loop.audit import audit
from leadline.core.session.events import RequestSent
from leadline.core.session.log import Session
from leadline.core.session.store import SessionStore
from leadline.research.bundle.verify import verify_bundle
from leadline.research.engine.engine import ResearchEngine
from leadline.research.report.result import ResearchResult
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.server import ProviderServer, Received
from tests.composition.conftest import HOTEL, FakeResearcher, call, schema_of

pytestmark = pytest.mark.anyio

QUESTION = "What may a hotel night cost?"

FAULTS = (
    Behaviour("rate_limit", retry_after="0"),
    Behaviour("server_error"),
    Behaviour("service_unavailable", retry_after="0"),
    Behaviour("connection_reset"),
    Behaviour("stream_disconnect"),
    Behaviour("partial_disconnect", text="half an ans"),
    Behaviour("partial_eof", text="half an ans"),
    Behaviour("stream_eof"),
    Behaviour("stall", text="half an ans"),
    Behaviour("empty_body"),
    Behaviour("empty"),
    Behaviour("malformed_json"),
    Behaviour("malformed_event"),
    Behaviour("error_event"),
    Behaviour("wrong_content_type"),
    Behaviour("html_error"),
    Behaviour("max_tokens", text="as long as it may be"),
    Behaviour("max_tokens", calls=(CallSpec("structured_output", '{"brief": "b", "uni'),)),
    Behaviour("tool_call_success", calls=(CallSpec("structured_output", "not JSON at all"),)),
    Behaviour("tool_call_success", calls=(CallSpec("no_such_tool", {}),)),
    Behaviour(text="I would rather talk about it."),
    Behaviour("reasoning_success", text="Let me see.", usage={}),
    Behaviour("refused", text="no"),
    Behaviour("auth_error"),
    Behaviour("context_overflow"),
    Behaviour("quota_exceeded"),
)

FAST = """
- id: loop
  merge:
    retry: {first_s: 0.001, max_s: 0.004}
- id: models
  merge:
    providers:
      local: {settings: {idle_timeout_s: 1.0}}
"""


@dataclass
class Unreliable:
    """A model that fails at random; the same seed fails at the same places, whatever the order of arrival."""

    seed: int
    rate: float
    answers: FakeResearcher
    asked: Counter[str] = field(default_factory=Counter[str])
    arrived: anyio.Event = field(default_factory=anyio.Event)
    stop_at: int | None = None

    def __call__(self, request: Received) -> Behaviour:
        if request.n == self.stop_at:
            self.arrived.set()
        place = self.place(request)
        self.asked[place] += 1
        random = Random(f"{self.seed} {place} {self.asked[place]}")
        if random.random() < self.rate:
            return random.choice(FAULTS)
        return self.written(request) if "sections" in schema_of(request) else self.answers(request)

    def written(self, request: Received) -> Behaviour:
        """A report on the first evidence that there is."""
        evidence = re.findall(r"u\d\.e\d", str(request.messages[1]["content"]))[0]
        leaf = {"text": HOTEL, "evidence": [evidence], "label": "finding"}
        section = {"heading": "Answer", "blocks": [{"kind": "paragraph", "sentences": [leaf]}]}
        return call("structured_output", {"title": "Hotel caps", "sections": [section]})

    def place(self, request: Received) -> str:
        """Where in the run the request is made: role, unit, and how far the role has come."""
        results = sum(message["role"] == "tool" for message in request.messages)
        unit = re.search(r"question \d", str(request.messages[1]["content"]))
        return f"{sorted(schema_of(request))} {unit and unit.group()} {results}"


@pytest.mark.parametrize("seed", range(20))
async def test_whatever_the_provider_does_the_run_ends_with_a_result_that_its_logs_prove(
    home: Path, corpus: Path, tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    model = Unreliable(seed, random.choice((0.1, 0.3, 0.6)), FakeResearcher(units=random.randint(1, 3)))
    cancelled = seed % 4 == 3
    model.stop_at = random.randint(0, 5) if cancelled else None
    patch = tmp_path / "fast.yml"
    patch.write_text(FAST)
    async with (
        ProviderServer(model, strict=True) as server,
        Leadline(model="local/fake", base_url=server.base_url, patches=[patch]) as app,
    ):
        before = tasks()
        with anyio.fail_after(60):
            result = await outcome(app, model, corpus)
        await anyio.wait_all_tasks_blocked()
        assert app.ctx.get(Agents).live == ()
        assert app.ctx.get(ResearchEngine).runs == ()
        assert list((tasks() - before).elements()) == []
        check_result(result)
        told = (result.report.encode(), *(request.raw for request in server.requests))
        assert not any(b"half an ans" in text for text in told), "an attempt that failed left something"
        assert (await app.stored(result.id)).result() == result
        unsent = await check_logs(app, server)
        assert result.usage.calls == len(server.requests) + unsent
        if not cancelled:
            # A cancelled call may not have left, or was billed without a report of it.
            assert not unsent
            tokens = result.usage.tokens
            assert (tokens.prompt or 0) == sum(charge.prompt_tokens for charge in server.bill)
            assert (tokens.completion or 0) == sum(charge.completion_tokens for charge in server.bill)
        if result.report:
            bundle = tmp_path / "run.leadline"
            (await app.stored(result.id)).write_bundle(bundle)
            assert verify_bundle(bundle).ok
        # The program is as good as before for whoever asks next.
        model.rate, model.stop_at = 0.0, None
        assert (await app.research(QUESTION, corpus=[corpus])).status == "completed"


async def outcome(app: Leadline, model: Unreliable, corpus: Path) -> ResearchResult:
    """The result of a run, cancelled where the seed says so."""
    run = await app.start_research(QUESTION, corpus=[corpus], breadth="broad")

    async def cancel_it() -> None:
        await model.arrived.wait()
        await run.cancel("enough")

    try:
        async with anyio.create_task_group() as group:
            if model.stop_at is not None:
                group.start_soon(cancel_it)
            await run.result()
            group.cancel_scope.cancel()
        return await run.result()
    finally:
        await run.dispose()


def tasks() -> Counter[str]:
    """The tasks of the event loop, by name."""
    return Counter(str(task.name) for task in anyio.get_running_tasks())


def check_result(result: ResearchResult) -> None:
    """Whatever the status, the result is of one piece."""
    assert result.status in ("completed", "partial", "cancelled", "failed")
    assert (result.error is None) == (result.status == "completed")
    if result.status in ("completed", "partial"):
        assert result.report
        assert result.citations
    numbers = {one.n for one in result.citations}
    assert all(set(sentence.citations) <= numbers for sentence in result.sentences)
    assert {one.source for one in result.citations} <= {one.n for one in result.sources}


async def check_logs(app: Leadline, server: ProviderServer) -> int:
    """Every log is whole and closed, and together they prove every body that arrived.

    Returns how many requests were about to be sent and were not.
    """
    store, models = app.ctx.get(SessionStore), app.ctx.get(Models)
    sent: Counter[str] = Counter()
    for entry in await store.list():
        session: Session = await store.read(entry.id)
        found = audit(session, models)
        assert found.ok, found
        assert not session.place.turn_open
        assert session.derived().open_calls == []
        sent.update(one.digest for one in session.of(RequestSent))
    arrived = Counter(hashlib.sha256(request.raw).hexdigest() for request in server.requests)
    assert not arrived - sent
    return (sent - arrived).total()
