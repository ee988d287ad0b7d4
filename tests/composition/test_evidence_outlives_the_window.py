"""A run over long documents comes to the same evidence and report in a small window as in a large one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from leadline import Leadline
from leadline.core.session.events import ToolAnswered, WindowChanged
from leadline.core.session.store import SessionStore
from leadline.research.report.result import ResearchResult
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.limits import ServerWindow
from leadline.testing.provider_server.server import ProviderServer, Received
from leadline.testing.researcher import ScriptedResearcher, Topic, topics
from tests.composition.cli import Command

pytestmark = pytest.mark.anyio

SMALL, LARGE = 8_000, 1_000_000
OVERLAP = 60
"""Characters that are read again, as a part may end inside of a sentence."""
CHARS = 4_000
"""Of each document: more parts than a small window holds."""
FILLER = "The keeper of the register notes the weather of the day and nothing else. "


def long_document(topic: Topic, chars: int) -> str:
    """A document of that length in which the sentences of the topic stand far from each other."""
    every = chars // len(topic.sentences)
    parts = [f"# {topic.name}\n"]
    for at, sentence in enumerate(topic.sentences):
        day = f"Day {at} of the {topic.name}. "
        parts.append((day + FILLER) * (every // len(day + FILLER)))
        parts.append(sentence)
    return "\n\n".join(parts) + "\n"


@dataclass
class _Course:
    recorded: list[str] = field(default_factory=list)
    searched: bool = False
    source: str = ""
    following: int | None = 0
    recalled: bool = False


class LongReader(ScriptedResearcher):
    """Reads a document to its end, part by part, quotes what it sees, and what it skipped at first at the very end."""

    def __init__(self, known: tuple[Topic, ...]) -> None:
        super().__init__(known)
        self.courses = {topic.name: _Course() for topic in known}
        self.summaries = 0

    def __call__(self, request: Received) -> Behaviour:
        last = request.messages[-1]
        if last["role"] == "user" and "is getting too long" in str(last["content"]):
            self.summaries += 1
            return Behaviour("success", message="A document is being read, part by part.")
        return super().__call__(request)

    def _researched(self, request: Received) -> Behaviour:
        said = "\n".join(str(message.get("content")) for message in request.messages)
        topic = next(one for one in self._topics if f"What is known of the {one.name}?" in said)
        course = self.courses[topic.name]
        result = str(request.messages[-1]["content"])
        if not course.searched:
            course.searched = True
            return self._calls(request, CallSpec("corpus_search", {"query": topic.name}))
        if not course.source:
            found = re.search(r"d-[0-9a-f]{10}", result)
            assert found, result
            course.source = found.group()
        if result.startswith("Source "):
            go_on = re.search(r"continue with start=(\d+)", result)
            course.following = int(go_on.group(1)) if go_on else None
        skipped = topic.sentences[0]
        seen = [one for one in topic.sentences[1:] if one in result and one not in course.recorded]
        if not seen and course.following is not None:
            start = max(0, course.following - OVERLAP)
            arguments = {"source": course.source, "start": start, "limit": 4_000}
            return self._calls(request, CallSpec("read", arguments))
        if not seen and skipped not in course.recorded:
            if not course.recalled and ("left out" in said or "with recall" in said):
                course.recalled = True
                return self._calls(request, CallSpec("recall", {"find": skipped}))
            assert not course.recalled or skipped in result, result
            seen = [skipped]
        if seen:
            course.recorded += seen
            return self._calls(request, *(self._quote(course.source, one) for one in seen))
        return self._hand_in(request, {"findings": "Figures.", "unresolved": []})

    def _quote(self, source: str, quote: str) -> CallSpec:
        return CallSpec("record_evidence", {"source": source, "quote": quote, "claim": quote})


@dataclass(frozen=True)
class Found:
    result: ResearchResult
    quotes: Mapping[tuple[str, int, int], str]
    changes: list[WindowChanged]
    results: list[ToolAnswered]
    model: LongReader


async def researched(
    command: Command, folder: Path, window: int, monkeypatch: pytest.MonkeyPatch, *, told: bool
) -> Found:
    """A run with a model of that window, whose provider refuses what is larger."""
    known = topics(2, sentences=6)
    corpus = folder / "share"
    corpus.mkdir(exist_ok=True)
    for topic in known:
        (corpus / f"{topic.name.split()[0].lower()}.md").write_text(
            long_document(topic, CHARS if told else 10 * CHARS)
        )
    patch = folder / "many.yml"
    patch.write_text("- {id: research, merge: {source_calls: 60, max_steps: 150}}\n")
    monkeypatch.setenv("LEADLINE_HOME", str(folder / f"home-{window}-{told}"))
    model = LongReader(known)
    async with ProviderServer(model, window=ServerWindow(tokens=window, output_counts=False)) as server:
        size = ["--context-window", str(window)] if told else []
        ended = command("models", "add", "fake/tiny", "--base-url", server.base_url, *size, "--default")
        assert ended.code == 0, ended
        async with Leadline(patches=[patch]) as app:
            bundle = folder / f"{window}-{told}.leadline"
            result = await app.research("What did the reservoirs hold?", corpus=[corpus], bundle=bundle)
            run = await app.stored(result.id)
            quotes = {
                (quote.source, quote.start, quote.end): quote.text for quote in run.ledger.quotes.values()
            }
            store = app.ctx.get(SessionStore)
            below = [await store.read(one.id) for one in await store.list() if one.parent == result.id]
            changes = [change for one in below for change in one.of(WindowChanged)]
            results = [answer for one in below for answer in one.of(ToolAnswered)]
    verified = command("verify", bundle)
    assert verified.code == 0, verified
    return Found(result, quotes, changes, results, model)


@pytest.mark.parametrize("told", [True, False], ids=["window told", "window learned from refusals"])
async def test_evidence_report_and_verdicts_are_the_same_in_a_window_of_8k(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    small = await researched(command, tmp_path, SMALL, monkeypatch, told=told)
    large = await researched(command, tmp_path, LARGE, monkeypatch, told=told)
    assert small.result.status == large.result.status == "completed", small.result.error
    assert {change.cause for change in small.changes} & {"prune", "compact"}
    assert not large.changes
    assert any(one.message.name == "recall" for one in small.results)
    assert len(small.quotes) == 12
    assert small.quotes == large.quotes
    assert small.result.report == large.result.report
    assert [(one.text, one.verdict) for one in small.result.sentences] == [
        (one.text, one.verdict) for one in large.result.sentences
    ]
