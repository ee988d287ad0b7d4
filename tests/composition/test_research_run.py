"""A run through the shipped profile, with only the model replaced: contract, status, fallbacks, cancellation."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from leadline import Leadline
from leadline.core.agent.agents import Agents
from leadline.core.session.store import SessionStore
from leadline.research.engine.engine import ResearchEngine
from leadline.research.events import Planned, UnitStarted
from leadline.research.methods.seam import UnknownMethod
from leadline.research.request import RequestRefused
from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import ProviderServer, Received
from tests.composition.conftest import HOTEL, FakeResearcher, call, schema_of

pytestmark = pytest.mark.anyio

QUESTION = "What may a hotel night cost?"


@asynccontextmanager
async def running(researcher: FakeResearcher) -> AsyncGenerator[tuple[Leadline, ProviderServer]]:
    async with (
        ProviderServer(researcher, strict=True) as server,
        Leadline(model="local/fake", base_url=server.base_url) as app,
    ):
        yield app, server


async def test_a_question_becomes_a_report_whose_citation_is_a_span_of_the_document(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with running(researcher) as (app, _):
        result = await app.research(QUESTION, corpus=[corpus])
    assert result.status == "completed", result.error
    assert researcher.seen == ["plan", "unit", "unit", "unit", "unit", "write"]
    (citation,) = result.citations
    assert citation.quote == HOTEL
    text = (corpus / "finance" / "expenses.md").read_text()
    assert text[citation.start : citation.end] == HOTEL
    assert result.sources[0].location == "finance/expenses.md"
    assert result.sentences[0].verdict == "supported"
    assert "[1]" in result.report
    assert result.usage.calls == 6
    assert result.coverage.searched == 1
    assert result.coverage.read == 1


async def test_each_role_sees_its_own_tools_and_no_others(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with running(researcher) as (app, server):

        @app.tool
        async def outside(word: str) -> str:
            """A tool of the program that no role of a run may use."""
            return word

        await app.research(QUESTION, corpus=[corpus])
        tools = [request.tools for request in server.requests]
    assert tools[0] == ("structured_output",)
    assert tools[1] == ("corpus_search", "read", "recall", "record_evidence", "structured_output")
    assert tools[-1] == ("structured_output",)


async def test_roles_are_siblings_one_below_the_run_and_none_is_left(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with running(researcher) as (app, _):
        result = await app.research(QUESTION, corpus=[corpus])
        entries = {entry.id: entry for entry in await app.ctx.get(SessionStore).list()}
        assert app.ctx.get(Agents).live == ()
        assert app.ctx.get(ResearchEngine).runs == ()
    run = entries.pop(result.id)
    assert run.kind == "research"
    assert run.depth == 0
    assert len(entries) == 3
    assert {(entry.parent, entry.depth) for entry in entries.values()} == {(run.id, 1)}


async def test_breadth_is_a_ceiling_and_no_order_to_fan_out(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with running(researcher) as (app, _):
        result = await app.research(QUESTION, corpus=[corpus], breadth="broad")
    assert result.coverage.asked == 1


async def test_surplus_units_are_left_out_with_a_note_and_the_rest_is_researched(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.units = 4
    async with running(researcher) as (app, _):
        result = await app.research(QUESTION, corpus=[corpus], breadth="balanced")
    assert result.status == "completed"
    assert result.coverage.asked == 2
    assert sum("not researched" in note for note in result.notes) == 2


async def test_a_planner_that_gives_no_plan_leads_to_the_fallback_and_a_partial_run(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.plan = lambda request: Behaviour(text="I would rather talk about it.")
    async with running(researcher) as (app, _):
        result = await app.research(QUESTION, corpus=[corpus])
    assert result.status == "partial"
    assert any("without a plan" in note for note in result.notes)
    assert result.citations


async def test_one_failed_unit_is_tried_once_more_and_makes_the_run_partial(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.units = 2

    def second_fails(request: Received) -> Behaviour:
        if "question 1?" in str(request.messages[1]["content"]):
            return Behaviour("invalid_request")
        return researcher.researched(request)

    researcher.unit = second_fails
    async with running(researcher) as (app, server):
        result = await app.research(QUESTION, corpus=[corpus])
        tries = [
            request for request in server.requests if "question 1?" in str(request.messages[1]["content"])
        ]
    assert result.status == "partial"
    assert len([one for one in tries if "sections" not in schema_of(one)]) == 2
    assert result.citations
    assert any("question 1?" in text for text in result.coverage.unresolved)


async def test_without_any_evidence_the_run_fails_with_what_was_tried_and_nothing_is_written(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.unit = lambda request: call(
        "structured_output", {"findings": "", "unresolved": ["nothing about it"]}
    )
    async with running(researcher) as (app, _):
        result = await app.research(QUESTION, corpus=[corpus])
    assert result.status == "failed"
    assert "write" not in researcher.seen
    assert result.report == ""
    assert result.error is not None
    assert result.error.startswith("not found in share")
    assert "nothing about it" in result.coverage.unresolved


async def test_a_writer_that_fails_leaves_the_evidence_as_the_report(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.writer = lambda request: Behaviour("auth_error")
    async with running(researcher) as (app, _):
        result = await app.research(QUESTION, corpus=[corpus])
    assert result.status == "partial"
    assert HOTEL in result.report
    assert any("not written" in note for note in result.notes)
    assert result.citations[0].quote == HOTEL


async def test_a_quote_that_is_not_in_the_source_is_refused_and_the_model_is_told_where_it_differs(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.quote = HOTEL.replace("180", "190")
    async with running(researcher) as (app, server):
        result = await app.research(QUESTION, corpus=[corpus])
        told = [str(m["content"]) for m in server.requests[-1].messages if m["role"] == "tool"]
    assert result.status == "failed"
    assert any("not in the document" in text for text in told)


@pytest.mark.case("R05", "R13")
async def test_a_report_with_unknown_ids_or_links_goes_back_to_the_writer(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    drafts = iter(["u9.e9", "u1.e1"])

    def writes(request: Received) -> Behaviour:
        evidence = next(drafts)
        leaf = {"text": HOTEL, "evidence": [evidence], "label": "finding"}
        block = {"kind": "paragraph", "sentences": [leaf]}
        return call("structured_output", {"title": "t", "sections": [{"heading": "h", "blocks": [block]}]})

    researcher.writer = writes
    async with running(researcher) as (app, server):
        result = await app.research(QUESTION, corpus=[corpus])
        told = str(server.requests[-1].messages[-1]["content"])
    assert result.status == "completed"
    assert "no evidence has the id u9.e9" in told


async def test_a_writer_that_never_mends_its_links_is_cleaned_and_the_report_says_so(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.sentence = f"{HOTEL} See [the policy](https://evil.example/x)."
    async with running(researcher) as (app, _):
        result = await app.research(QUESTION, corpus=[corpus])
    assert result.citations
    assert "evil.example" not in result.report
    assert any("taken out" in note for note in result.notes)


async def test_source_calls_beyond_the_limit_are_refused_by_code(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    def searches_for_ever(request: Received) -> Behaviour:
        answered = [message for message in request.messages if message["role"] == "tool"]
        if len(answered) < 7:
            return call("corpus_search", {"query": f"hotel {len(answered)}"})
        return call("structured_output", {"findings": "", "unresolved": ["all of it"]})

    researcher.unit = searches_for_ever
    async with running(researcher) as (app, server):
        result = await app.research(QUESTION, corpus=[corpus])
        told = [str(m["content"]) for m in server.requests[-1].messages if m["role"] == "tool"]
    assert result.coverage.searched == 4
    assert sum("source calls of this unit are used" in text for text in told) == 3


async def test_units_run_in_parallel_and_reach_the_writer_in_plan_order(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.units = 3
    open_now, most = 0, 0

    async with running(researcher) as (app, server):
        run = await app.start_research(QUESTION, corpus=[corpus], breadth="broad")
        started: list[str] = []
        async for fact in run.events():
            if isinstance(fact, UnitStarted):
                started.append(fact.unit.id)
                open_now += 1
                most = max(most, open_now)
            if fact.TYPE == "research/unit-ended":
                open_now -= 1
        result = await run.result()
        await app.ctx.get(ResearchEngine).dispose(run)
        prompt = str(server.requests[-1].messages[-1]["content"])
    assert sorted(started) == ["u1", "u2", "u3"]
    assert most == 3
    assert result.status == "completed"
    assert prompt.index("Unit u1") < prompt.index("Unit u2") < prompt.index("Unit u3")


@pytest.mark.parametrize("phase", ["plan", "unit", "writer"])
async def test_a_run_can_be_cancelled_in_any_phase_and_keeps_what_it_found(
    home: Path, corpus: Path, researcher: FakeResearcher, phase: str
) -> None:
    stalled = anyio.Event()

    def stall(request: Received) -> Behaviour:
        if phase == "unit" and len([m for m in request.messages if m["role"] == "tool"]) < 3:
            return researcher.researched(request)
        stalled.set()
        return Behaviour("stall")

    setattr(researcher, phase, stall)
    async with running(researcher) as (app, server):
        run = await app.start_research(QUESTION, corpus=[corpus])
        await stalled.wait()
        await run.cancel("enough")
        asked = len(server.requests)
        result = await run.result()
        await app.ctx.get(ResearchEngine).dispose(run)
        assert len(server.requests) == asked
        assert app.ctx.get(Agents).live == ()
        stored = (await app.stored(run.id)).result()
    assert result.status == "cancelled"
    assert result.error == "enough"
    assert stored == result
    assert (HOTEL in result.report) == (phase != "plan")


async def test_a_report_that_was_handed_in_is_not_taken_back_by_a_later_cancel(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with running(researcher) as (app, _):
        run = await app.start_research(QUESTION, corpus=[corpus])
        result = await run.result()
        await run.cancel("too late")
        assert await run.result() == result
        await app.ctx.get(ResearchEngine).dispose(run)
    assert result.status == "completed"


async def test_disposing_twice_is_harmless_and_ends_a_run_that_is_under_way(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.plan = lambda request: Behaviour("stall")
    async with running(researcher) as (app, _):
        engine = app.ctx.get(ResearchEngine)
        run = await app.start_research(QUESTION, corpus=[corpus])
        await engine.dispose(run)
        await engine.dispose(run)
        assert engine.runs == ()
        assert (await run.result()).status == "cancelled"


async def test_leaving_the_program_ends_its_runs(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.plan = lambda request: Behaviour("stall")
    async with running(researcher) as (app, _):
        run = await app.start_research(QUESTION, corpus=[corpus])
    assert (await run.result()).status == "cancelled"


async def test_what_cannot_be_run_is_refused_before_a_session_exists(
    home: Path, corpus: Path, tmp_path: Path, researcher: FakeResearcher
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    async with running(researcher) as (app, server):
        with pytest.raises(RequestRefused, match="nothing to search"):
            await app.research(QUESTION)
        with pytest.raises(RequestRefused, match="holds no files"):
            await app.research(QUESTION, corpus=[empty])
        with pytest.raises(UnknownMethod, match="Known methods: adaptive"):
            await app.research(QUESTION, corpus=[corpus], method="magic")
        with pytest.raises(Exception, match="no model provider is called 'nobody'"):
            await app.research(QUESTION, corpus=[corpus], model="nobody/x")
        assert await app.ctx.get(SessionStore).list() == []
        assert server.requests == []


async def test_files_that_cannot_be_read_are_in_the_coverage(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    (corpus / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    async with running(researcher) as (app, _):
        result = await app.research(QUESTION, corpus=[corpus])
    assert result.coverage.blocked == 1
    assert result.coverage.blocked_sources[0].location == "broken.pdf"


async def test_the_log_says_what_the_result_says(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with running(researcher) as (app, _):
        result = await app.research(QUESTION, corpus=[corpus])
        stored = await app.stored(result.id)
    assert stored.result() == result
    assert stored.ledger.ended is not None
    assert stored.ledger.ended.result_digest == result.digest
    assert (
        stored.ledger.plan == Planned(brief="b", units=stored.ledger.plan.units)
        if stored.ledger.plan
        else False
    )


@pytest.mark.parametrize("fault", ["auth_error", "quota_exceeded"])
async def test_a_model_that_cannot_be_used_fails_the_run_at_once_with_its_own_reason(
    home: Path, corpus: Path, researcher: FakeResearcher, fault: str
) -> None:
    researcher.plan = lambda request: Behaviour(fault)  # pyright: ignore[reportArgumentType]
    async with running(researcher) as (app, server):
        result = await app.research(QUESTION, corpus=[corpus])
        assert len(server.requests) == 1
    assert result.status == "failed"
    assert result.error is not None
    assert "not found in" not in result.error
    assert result.error.startswith("plan: ")


async def test_where_every_unit_failed_the_reason_is_their_failure_and_not_that_nothing_was_found(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.units = 2
    researcher.unit = lambda request: Behaviour("auth_error")
    async with running(researcher) as (app, server):
        result = await app.research(QUESTION, corpus=[corpus])
        assert len(server.requests) == 3
    assert result.status == "failed"
    assert result.error is not None
    assert "not found in" not in result.error


async def test_a_report_that_cites_nothing_on_record_gives_way_to_the_evidence(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    def writes(request: Received) -> Behaviour:
        leaf = {"text": "It depends.", "evidence": ["u7.e7"], "label": "analysis"}
        section = {"heading": "h", "blocks": [{"kind": "paragraph", "sentences": [leaf]}]}
        return call("structured_output", {"title": "t", "sections": [section]})

    researcher.writer = writes
    async with running(researcher) as (app, _):
        result = await app.research(QUESTION, corpus=[corpus])
    assert result.status == "partial"
    assert result.citations
    assert HOTEL in result.report


@pytest.mark.case("A15")
async def test_a_researcher_that_goes_round_in_circles_is_stopped_and_its_evidence_is_reported_with_the_gap(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    def circles(request: Received) -> Behaviour:
        answered = [message for message in request.messages if message["role"] == "tool"]
        if len(answered) < 3:
            return researcher.researched(request)
        return call("corpus_search", {"query": f"hotel {len(answered)}"})

    researcher.unit = circles
    async with running(researcher) as (app, server):
        result = await app.research(QUESTION, corpus=[corpus])
        assert len(server.requests) < 30
    assert result.status == "partial"
    assert result.citations[0].quote == HOTEL
    assert any("question 0?" in text for text in result.coverage.unresolved)
    assert result.coverage.searched <= 4
