"""A role that does not hand in by its tool is told once, and held to its schema where the model can be held so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from leadline.apps.sdk.app import Leadline
from leadline.testing.provider_server import Behaviour, ProviderServer, Received
from leadline.testing.researcher import ScriptedResearcher, topics, write_corpus

pytestmark = pytest.mark.anyio
KNOWN = topics(1)


class Talker:
    """A researcher that answers in words where it should hand in, until it is held to a schema."""

    def __init__(self, *, hands_in: str) -> None:
        self._researcher = ScriptedResearcher(KNOWN)
        self._hands_in = hands_in
        """What it does when it is told: ``text`` or ``tool``."""
        self.formats: list[tuple[str, object]] = []
        """The last message and the form of each answer that was to be handed in."""

    def __call__(self, request: Received) -> Behaviour:
        behaviour = self._researcher(request)
        if not behaviour.calls or behaviour.calls[0].name != "structured_output":
            return behaviour
        told = "cannot be used as the result" in str(request.messages[-1]["content"])
        self.formats.append(("told" if told else "first", request.body.get("response_format")))
        if not told:
            return Behaviour(text="Here is what I found: a lot.")
        if self._hands_in == "tool":
            return behaviour
        return Behaviour(text=behaviour.calls[0].text())


async def run(talker: Talker, folder: Path, provider: Mapping[str, object]) -> str:
    write_corpus(folder / "share", KNOWN)
    async with ProviderServer(talker) as server:
        row = {"providers": {"mine": {**provider, "base_url": server.base_url}}}
        patch = folder / "patch.yml"
        patch.write_text(json.dumps([{"id": "models", "merge": row}]))
        async with Leadline(model="mine/m", home=folder / "home", patches=[patch]) as app:
            with anyio.fail_after(60):
                result = await app.research("How much water?", corpus=[folder / "share"], breadth="broad")
    assert result.status == "completed", (result.error, result.notes)
    return result.report or ""


async def test_a_server_that_writes_to_a_schema_is_held_to_it_when_the_tool_was_not_called(
    tmp_path: Path,
) -> None:
    talker = Talker(hands_in="text")
    assert "litres of water" in await run(talker, tmp_path, {"profile": "ollama"})
    first = [form for when, form in talker.formats if when == "first"]
    told = [form for when, form in talker.formats if when == "told"]
    assert first
    assert not any(first), "the tool is the way to hand in"
    assert len(told) == len(first)
    for form in told:
        assert isinstance(form, dict)
        assert form["type"] == "json_schema"
        assert form["json_schema"]["name"] == "structured_output"
        assert form["json_schema"]["schema"]["type"] == "object"


async def test_a_model_that_can_be_made_to_call_is_told_and_no_more(tmp_path: Path) -> None:
    talker = Talker(hands_in="tool")
    assert "litres of water" in await run(talker, tmp_path, {"profile": "local"})
    assert any(when == "told" for when, _ in talker.formats)
    assert not any(form for _, form in talker.formats)
