"""A run is made once more from its own answers and sources: without a provider, to the byte."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from leadline import Leadline, SyncLeadline
from leadline.core.llm.adapter import UnknownProvider
from leadline.core.session.events import LlmRetry
from leadline.core.session.log import SessionAppended
from leadline.core.session.store import SessionStore
from leadline.research.methods.seam import UnknownMethod
from leadline.research.replay.corpus import SourcesLost
from leadline.research.replay.replay import NotReplayable
from leadline.research.replay.told import told
from leadline.research.report.result import ResearchResult
from leadline.research.verify.registry import UnknownCheck
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.server import ProviderServer, Received
from tests.composition.conftest import FakeResearcher, call

pytestmark = pytest.mark.anyio

QUESTION = "What may a hotel night cost?"


@asynccontextmanager
async def recorded(
    researcher: FakeResearcher, corpus: Path, breadth: str = "balanced"
) -> AsyncGenerator[tuple[Leadline, ResearchResult]]:
    """A program whose provider answered one run and is gone, and whose documents are gone too."""
    async with ProviderServer(researcher, strict=True) as server:
        address = server.base_url
        async with Leadline(model="local/fake", base_url=address) as app:
            result = await app.research(QUESTION, corpus=[corpus], breadth=breadth)
    shutil.rmtree(corpus)
    async with Leadline(model="local/fake", base_url=address) as app:
        yield app, result


def stored(home: Path) -> set[tuple[str, bytes]]:
    kept = [path for part in ("sessions", "blobs", "corpora") for path in (home / part).rglob("*")]
    return {(str(path), path.read_bytes()) for path in kept if path.is_file()}


async def test_a_replay_gives_the_report_to_the_byte_without_provider_or_documents_and_leaves_nothing(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with recorded(researcher, corpus) as (app, result):
        before = stored(home)
        replayed = await app.replay(result.id)
        assert stored(home) == before
    assert replayed.result.report == result.report
    assert replayed.differing == ()
    assert replayed.unasked == ()
    assert [one.answered for one in replayed.asked] == ["recorded"] * 6
    assert replayed.same
    assert replayed.report_diff == ""
    assert replayed.run is None


async def test_several_units_at_once_are_bound_by_what_they_are_and_not_by_the_order_of_calls(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.units = 3
    async with recorded(researcher, corpus, breadth="broad") as (app, result):
        assert result.coverage.asked == 3
        replayed = await app.replay(result.id)
    assert replayed.same, "\n".join(told(replayed))
    assert len(replayed.asked) == 14


async def test_recorded_failures_are_failures_again_and_retries_are_not_waited_for(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.units = 2
    busy = iter((Behaviour("service_unavailable"), Behaviour("server_error")))

    def unit(request: Received) -> Behaviour:
        if "question 1?" in str(request.messages[1]["content"]):
            return Behaviour("invalid_request")
        return next(busy, None) or researcher.researched(request)

    researcher.unit = unit
    async with recorded(researcher, corpus) as (app, result):
        assert result.status == "partial"
        replayed = await app.replay(result.id)
    assert replayed.same, "\n".join(told(replayed))
    assert replayed.result.status == "partial"
    assert replayed.result.error == result.error
    assert replayed.result.usage.calls == result.usage.calls


async def test_a_provider_that_gave_up_gives_up_again(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.writer = lambda request: Behaviour("auth_error")
    async with recorded(researcher, corpus) as (app, result):
        replayed = await app.replay(result.id)
    assert replayed.same, "\n".join(told(replayed))
    assert replayed.result.status == "partial"


async def test_a_failed_run_without_a_report_fails_again_for_the_same_reason(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.unit = lambda request: call(
        "structured_output", {"findings": "", "unresolved": ["nothing about it"]}
    )
    async with recorded(researcher, corpus) as (app, result):
        replayed = await app.replay(result.id)
    assert result.status == "failed"
    assert replayed.same, "\n".join(told(replayed))
    assert replayed.result.error == result.error


async def test_what_was_asked_of_the_model_for_its_mistakes_is_asked_again(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    """Answers that were empty, cut off inside a call, or wrote a call as text are judged as they were."""
    odd = iter(
        [
            Behaviour(text=""),
            Behaviour("max_tokens", calls=(CallSpec("corpus_search", {"query": "hotel"}),)),
            Behaviour(
                text='<tool_call>{"name": "corpus_search", "arguments": {"query": "hotel"}}</tool_call>'
            ),
        ]
    )

    researcher.unit = lambda request: next(odd, None) or researcher.researched(request)
    async with recorded(researcher, corpus) as (app, result):
        replayed = await app.replay(result.id)
    assert result.usage.calls == 9
    assert replayed.same, "\n".join(told(replayed))


class Stalling:
    """A writer that begins to answer and never ends."""

    def __init__(self) -> None:
        self.asked = anyio.Event()

    def __call__(self, request: Received) -> Behaviour:
        self.asked.set()
        return Behaviour("stall", text="The hotel")


async def test_a_run_that_was_cancelled_ends_where_it_was_cancelled(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.writer = stalling = Stalling()
    async with (
        ProviderServer(researcher) as server,
        Leadline(model="local/fake", base_url=server.base_url) as app,
    ):
        run = await app.start_research(QUESTION, corpus=[corpus])
        await stalling.asked.wait()
        await run.cancel("enough")
        result = await run.result()
        await run.dispose()
    async with Leadline() as app:
        replayed = await app.replay(result.id)
        stricter = await app.replay(result.id, checks=["provenance"])
    assert (result.status, result.error) == ("cancelled", "enough")
    assert result.report
    assert replayed.same, "\n".join(told(replayed))
    assert (stricter.result.status, stricter.result.error) == ("cancelled", "enough")


async def test_a_run_that_was_cancelled_while_it_waited_to_try_again_ends_there(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.writer = lambda request: Behaviour("rate_limit", retry_after="60")
    async with (
        ProviderServer(researcher) as server,
        Leadline(model="local/fake", base_url=server.base_url) as app,
    ):
        waits = anyio.Event()
        app.ctx.on(SessionAppended, lambda told: waits.set() if told.logged.type == LlmRetry.TYPE else None)
        run = await app.start_research(QUESTION, corpus=[corpus])
        await waits.wait()
        await run.cancel("enough")
        result = await run.result()
        await run.dispose()
    async with Leadline() as app:
        replayed = await app.replay(result.id)
    assert result.status == "cancelled"
    assert replayed.same, "\n".join(told(replayed))


async def test_a_run_that_was_taken_up_after_its_cancellation_is_replayed_in_one_go(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    researcher.writer = stalling = Stalling()
    async with (
        ProviderServer(researcher) as server,
        Leadline(model="local/fake", base_url=server.base_url) as app,
    ):
        run = await app.start_research(QUESTION, corpus=[corpus])
        await stalling.asked.wait()
        await run.cancel("enough")
        await run.dispose()
        researcher.writer = None
        taken_up = await app.resume_research(run.id)
        result = await taken_up.result()
        await taken_up.dispose()
    assert result.status == "completed", result.error
    async with Leadline() as app:
        replayed = await app.replay(result.id)
    assert replayed.same, "\n".join(told(replayed))


async def test_a_provider_that_is_configured_no_more_stops_nothing(
    home: Path, corpus: Path, researcher: FakeResearcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()  # noqa: ASYNC240 - before anything else runs
    async with ProviderServer(researcher, strict=True) as server:
        own = {"profile": "local", "base_url": server.base_url, "api_key": "!env HOUSE_KEY"}
        lines = "".join(f"        {key}: {value}\n" for key, value in own.items())
        (home / "leadline.yml").write_text(f"- id: models\n  merge:\n    providers:\n      house:\n{lines}")
        monkeypatch.setenv("HOUSE_KEY", "secret")
        async with Leadline(model="house/m") as app:
            result = await app.research(QUESTION, corpus=[corpus])
    assert result.status == "completed", result.error
    (home / "leadline.yml").unlink()
    async with Leadline() as app:
        replayed = await app.replay(result.id)
    assert replayed.same, "\n".join(told(replayed))


async def test_a_request_without_a_recorded_answer_fails_and_names_role_and_step(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with recorded(researcher, corpus) as (app, result):
        store = app.ctx.get(SessionStore)
        (writer,) = [one for one in await store.list() if one.label == "write the report"]
        await store.delete(writer.id)
        replayed = await app.replay(result.id)
    assert not replayed.same
    assert replayed.differing[-1].place == "writer (write the report), turn 1, step 1"
    assert replayed.differing[-1].answered == "missing"
    assert replayed.result.status == "partial"
    assert "no answer is on record for the writer (write the report), turn 1, step 1" in (
        replayed.result.error or ""
    )
    lines = "\n".join(told(replayed))
    assert "no answer is on record: writer (write the report), turn 1, step 1" in lines
    assert f"--- {result.id} recorded\n+++ replayed\n" in lines


async def test_a_changed_prompt_is_named_with_the_roles_that_read_it(
    home: Path, corpus: Path, researcher: FakeResearcher, tmp_path: Path
) -> None:
    async with recorded(researcher, corpus) as (_, result):
        pass
    patch = tmp_path / "terse.yml"
    patch.write_text("- id: prompt\n  config: {identity: false}\n")
    async with Leadline(patches=[patch]) as app:
        replayed = await app.replay(result.id)
    assert replayed.same_report
    assert not replayed.same
    assert {(one.role, tuple(part.part for part in one.differences)) for one in replayed.differing} == {
        ("planner", ("system",)),
        ("researcher", ("system",)),
        ("writer", ("system",)),
    }


async def test_a_run_that_has_not_ended_is_refused_with_what_to_do_first(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with recorded(researcher, corpus) as (app, result):
        log = home / "sessions" / f"{result.id}.jsonl"
        kept = [line for line in log.read_bytes().splitlines(keepends=True) if b"research/ended" not in line]
        log.write_bytes(b"".join(kept))
        with pytest.raises(NotReplayable, match=f"leadline resume {result.id}"):
            await app.replay(result.id)


async def test_sources_whose_texts_are_gone_are_named(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with recorded(researcher, corpus) as (app, result):
        (home / "blobs" / result.sources[0].snapshot[:2] / result.sources[0].snapshot).unlink()
        with pytest.raises(SourcesLost, match=r"finance/expenses\.md is gone"):
            await app.replay(result.id)


async def test_an_extractive_run_is_replayed_to_the_byte(home: Path, corpus: Path) -> None:
    async with Leadline() as app:
        result = await app.research(QUESTION, corpus=[corpus], breadth="broad")
        shutil.rmtree(corpus)
        replayed = await app.replay(result.id)
    assert result.status == "completed"
    assert replayed.same, "\n".join(told(replayed))


# --- what if ---------------------------------------------------------------------------------------------------------


async def test_another_model_is_asked_over_the_sources_as_they_were_and_a_new_run_names_the_old_one(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with recorded(researcher, corpus) as (_, result):
        pass
    other = FakeResearcher(query="annual leave", quote="Employees in the EU have 28 days of leave.")
    other.sentence = other.quote
    async with (
        ProviderServer(other, strict=True) as server,
        Leadline(model="local/other", base_url=server.base_url) as app,
    ):
        replayed = await app.replay(result.id, model="local/other")
        assert replayed.run is not None
        stored = await app.stored(replayed.run)
    # The first run never searched for this, and its documents are gone from the disk.
    assert replayed.result.citations[0].quote == other.quote
    assert other.seen == ["plan", "unit", "unit", "unit", "unit", "write"]
    assert stored.ledger.started is not None
    assert stored.ledger.started.of == result.id
    assert stored.ledger.started.model == "local/other"
    assert stored.result().report == replayed.result.report
    assert "+" in replayed.report_diff


async def test_one_role_is_asked_anew_and_the_evidence_stays_what_it_was(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with recorded(researcher, corpus) as (_, result):
        pass
    other = FakeResearcher(sentence="EUR 180 is the hotel cap in the EU.")
    async with (
        ProviderServer(other, strict=True) as server,
        Leadline(model="local/other", base_url=server.base_url) as app,
    ):
        replayed = await app.replay(result.id, model="local/other", roles=["writer"])
    assert set(other.seen) == {"write"}
    assert replayed.result.citations == result.citations
    assert "EUR 180 is the hotel cap" in replayed.result.report


async def test_a_new_run_can_be_replayed_itself(home: Path, corpus: Path, researcher: FakeResearcher) -> None:
    async with recorded(researcher, corpus) as (_, result):
        pass
    async with (
        ProviderServer(FakeResearcher(), strict=True) as server,
        Leadline(model="local/other", base_url=server.base_url) as app,
    ):
        first = await app.replay(result.id, model="local/other")
    assert first.run is not None
    async with Leadline() as app:
        replayed = await app.replay(first.run)
    assert replayed.same, "\n".join(told(replayed))


async def test_other_checks_judge_the_recorded_sentences_without_a_model(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with recorded(researcher, corpus) as (app, result):
        replayed = await app.replay(result.id, checks=["provenance", "integrity", "figures"])
        assert replayed.run is not None
        entries = [one.id for one in await app.ctx.get(SessionStore).list() if one.kind == "research"]
    assert sorted(entries) == sorted([result.id, replayed.run])
    assert result.sentences[0].verdict == "supported"
    assert replayed.result.sentences[0].verdict == "not_established"
    assert replayed.result.citations == result.citations


async def test_another_method_gets_recorded_answers_where_it_asks_the_same_and_a_model_elsewhere(
    home: Path, corpus: Path, researcher: FakeResearcher, tmp_path: Path
) -> None:
    async with recorded(researcher, corpus) as (_, result):
        pass
    patch = tmp_path / "plain.yml"
    patch.write_text("- id: unplanned\n  plugin: tests.replay.unplanned:plugin\n")
    other = FakeResearcher()
    async with (
        ProviderServer(other, strict=True) as server,
        Leadline(model="local/fake", base_url=server.base_url, patches=[patch]) as app,
    ):
        replayed = await app.replay(result.id, method="unplanned")
    assert replayed.result.status == "completed", replayed.result.error
    assert replayed.result.metadata["method"] == "unplanned"
    assert "plan" not in other.seen
    assert "unit" in other.seen


async def test_what_is_not_there_is_refused_before_anything_starts(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    async with recorded(researcher, corpus) as (app, result):
        before = stored(home)
        with pytest.raises(UnknownCheck, match="did you mean 'wording'"):
            await app.replay(result.id, checks=["wordng"])
        with pytest.raises(UnknownMethod):
            await app.replay(result.id, method="adaptve")
        with pytest.raises(UnknownProvider):
            await app.replay(result.id, model="nowhere/m")
        with pytest.raises(NotReplayable, match="planner, researcher, writer"):
            await app.replay(result.id, model="local/m", roles=["editor"])
        assert stored(home) == before


async def test_a_run_that_was_exported_is_replayed_where_it_was_imported(
    home: Path, corpus: Path, researcher: FakeResearcher, tmp_path: Path
) -> None:
    async with recorded(researcher, corpus) as (app, result):
        await app.sessions.export(result.id, tmp_path / "run.zip")
    async with Leadline(home=tmp_path / "elsewhere") as app:
        await app.sessions.import_(tmp_path / "run.zip")
        replayed = await app.replay(result.id)
    assert replayed.same, "\n".join(told(replayed))


async def test_a_run_in_a_database_is_replayed_and_so_is_one_that_was_archived(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    sqlite = Path(__file__).parents[1] / "composition" / "sqlite_store.yml"
    async with (
        ProviderServer(researcher, strict=True) as server,
        Leadline(model="local/fake", base_url=server.base_url, patches=[sqlite]) as app,
    ):
        result = await app.research(QUESTION, corpus=[corpus])
    async with Leadline(patches=[sqlite]) as app:
        assert (await app.replay(result.id)).same
        await app.sessions.archive(result.id)
        replayed = await app.replay(result.id)
    assert replayed.same, "\n".join(told(replayed))


def test_a_program_without_an_event_loop_replays_too(home: Path, corpus: Path) -> None:
    with SyncLeadline() as app:
        result = app.research(QUESTION, corpus=[corpus])
        replayed = app.replay(result.id)
        stricter = app.replay(result.id, checks=["provenance"])
    assert replayed.same
    assert stricter.run is not None
    assert stricter.recorded == result
