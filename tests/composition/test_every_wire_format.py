"""A whole research run, and an agent that calls tools, over every wire format and real HTTP: the same work, the same report."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from leadline.apps.sdk.app import Leadline
from leadline.testing.provider_server import Behaviour, CallSpec, ProviderServer, Received, wavering
from leadline.testing.researcher import ScriptedResearcher, topics, write_corpus

pytestmark = pytest.mark.anyio

APIS = {
    "deepseek": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "gemini": "/v1/models/m:streamGenerateContent?alt=sse",
    "openai-responses": "/v1/responses",
}
every_api = pytest.mark.parametrize("profile", APIS)
KNOWN = topics(2)
QUESTION = "How much water did the reservoirs hold?"


@asynccontextmanager
async def over(
    profile: str, answer: Callable[[Received], Behaviour], folder: Path, **settings: object
) -> AsyncGenerator[tuple[Leadline, ProviderServer], None]:
    """The whole program with one provider, which speaks the wire format of a profile."""
    async with ProviderServer(answer) as server:
        mine = {"profile": profile, "base_url": server.base_url, "api_key": "sk-1", "settings": settings}
        patch = folder / "patch.yml"
        patch.write_text(json.dumps([{"id": "models", "merge": {"providers": {"mine": mine}}}]))
        async with Leadline(model="mine/m", home=folder / "home", patches=[patch]) as app:
            yield app, server


async def report_over(
    profile: str, answer: Callable[[Received], Behaviour], folder: Path, **settings: object
) -> tuple[str, ProviderServer]:
    write_corpus(folder / "share", KNOWN)
    with anyio.fail_after(60):
        async with over(profile, answer, folder, **settings) as (app, server):
            result = await app.research(QUESTION, corpus=[folder / "share"], breadth="broad")
    assert result.status == "completed", (result.error, result.notes)
    assert result.report is not None
    return result.report, server


@every_api
async def test_a_research_run_comes_to_the_same_report(profile: str, tmp_path: Path) -> None:
    (tmp_path / "usual").mkdir()
    usual, _ = await report_over("local", ScriptedResearcher(KNOWN), tmp_path / "usual")
    report, server = await report_over(profile, ScriptedResearcher(KNOWN), tmp_path)
    assert {request.path for request in server.requests} == {APIS[profile]}
    assert "litres of water" in report
    assert report == usual
    assert len(server.bill) == len(server.requests)


FAULTS = [
    Behaviour("rate_limit", retry_after="0"),
    Behaviour("server_error"),
    Behaviour("service_unavailable"),
    Behaviour("truncated"),
    Behaviour("partial_disconnect"),
    Behaviour("stall", text="Hm"),
    Behaviour("stall_before_headers"),
    Behaviour("error_event"),
    Behaviour("error_body"),
    Behaviour("malformed_json"),
    Behaviour("html_error"),
    Behaviour("empty_body"),
    Behaviour("connection_reset"),
]


@every_api
async def test_a_provider_that_is_unwell_in_every_way_changes_nothing_in_the_report(
    profile: str, tmp_path: Path
) -> None:
    (tmp_path / "usual").mkdir()
    usual, _ = await report_over("local", ScriptedResearcher(KNOWN), tmp_path / "usual")
    unwell = wavering(ScriptedResearcher(KNOWN), FAULTS)
    report, server = await report_over(profile, unwell, tmp_path, idle_timeout_s=0.3)
    assert report == usual
    assert len(server.requests) > len(server.bill)


@every_api
@pytest.mark.case("M36")
async def test_an_agent_calls_tools_and_sends_back_the_state_of_the_provider(
    profile: str, tmp_path: Path
) -> None:
    state = "  c2ln+/=é "
    replies = iter(
        (
            Behaviour(
                "tool_call_success",
                reasoning="Two depths are wanted.",
                state=state,
                calls=(CallSpec("depth", {"place": "Fär 九"}, "c1"), CallSpec("depth", {"place": "b"}, "c2")),
                chunk_chars=3,
            ),
            Behaviour(text="Nine and nine."),
        )
    )
    async with over(profile, lambda _: next(replies), tmp_path) as (app, server):
        asked: list[str] = []

        @app.tool
        def depth(place: str) -> str:  # pyright: ignore[reportUnusedFunction]  # the decorator uses it
            """How deep it is."""
            asked.append(place)
            return f"nine fathoms at {place}"

        with anyio.fail_after(30):
            reply = await app.agent("How deep?")
    assert reply.text == "Nine and nine."
    assert sorted(asked) == ["Fär 九", "b"]
    first, second = server.requests
    assert [message["content"] for message in second.messages if message["role"] == "tool"] == [
        "nine fathoms at Fär 九",
        "nine fathoms at b",
    ]
    assert (json.dumps(state, ensure_ascii=False).encode() in second.raw) == (profile != "deepseek")
    assert set(first.tools) == set(second.tools)
