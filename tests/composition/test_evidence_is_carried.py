"""A researcher whose conversation is summarised in the middle of its unit still knows its unit and its evidence."""

from __future__ import annotations

from pathlib import Path

import pytest
from anyio import to_thread

from leadline import Leadline
from leadline.core.llm.messages import Text
from leadline.core.session.events import WindowChanged
from leadline.core.session.store import SessionStore
from leadline.testing.provider_server.limits import ServerWindow
from leadline.testing.provider_server.server import ProviderServer
from leadline.testing.researcher import topics
from tests.composition.cli import Command
from tests.composition.test_evidence_outlives_the_window import LongReader, long_document

pytestmark = pytest.mark.anyio


async def test_a_summary_holds_unit_and_evidence_from_the_ledger_and_audit_proves_the_rest(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = topics(2, sentences=6)
    corpus = tmp_path / "share"
    corpus.mkdir()
    for topic in known:
        (corpus / f"{topic.name.split()[0].lower()}.md").write_text(long_document(topic, 40_000))
    patch = tmp_path / "patch.yml"
    patch.write_text(
        "- {id: research, merge: {source_calls: 60, max_steps: 150}}\n"
        "- {id: window, merge: {prune: {enabled: false}}}\n"
    )
    monkeypatch.setenv("LEADLINE_HOME", str(tmp_path / "home"))
    model = LongReader(known)
    for topic in known:
        model.courses[topic.name].recorded.append(topic.sentences[0])  # it is not looked for
    async with ProviderServer(model, window=ServerWindow(tokens=8_000, output_counts=False)) as server:
        ended = command("models", "add", "fake/tiny", "--base-url", server.base_url, "--default")
        assert ended.code == 0, ended
        async with Leadline(patches=[patch]) as app:
            result = await app.research("What did the reservoirs hold?", corpus=[corpus])
            ledger = (await app.stored(result.id)).ledger
            store = app.ctx.get(SessionStore)
            below = [await store.read(one.id) for one in await store.list() if one.parent == result.id]
    assert result.status == "completed", result.error
    assert len(ledger.quotes) == 10
    summaries = [
        (session.id, "".join(part.text for part in change.summary.content if isinstance(part, Text)))
        for session in below
        for change in session.of(WindowChanged)
        if change.cause == "compact" and change.summary is not None
    ]
    assert len(summaries) >= 2 and model.summaries >= 2
    of_unit = {state.child: unit for unit, state in ledger.units.items()}
    told_of_evidence = 0
    for child, text in summaries:
        unit = of_unit[child]
        assert f"- {unit} (running, this one is yours)" in text
        assert "What is known of the" in text
        told_of_evidence += f"- {unit}.e1 (supporting, " in text
    assert told_of_evidence >= 2
    whole = tmp_path / "run.leadline-session"
    for words in (
        ("audit", result.id, "--json"),
        ("sessions", "show", summaries[0][0]),
        ("sessions", "export", result.id, whole),
    ):
        ended = await to_thread.run_sync(command, *words)
        assert ended.code == 0, ended
    monkeypatch.setenv("LEADLINE_HOME", str(tmp_path / "other home"))
    added = ("models", "add", "fake/tiny", "--base-url", "http://127.0.0.1:9/v1")
    for words in (("sessions", "import", whole), added, ("audit", result.id, "--json")):
        ended = await to_thread.run_sync(command, *words)
        assert ended.code == 0, ended
