"""The bridge, with the real library, against the provider server: answers, calls, usage, refusals, loss and silence."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from leadline.apps.sdk.app import Leadline
from leadline.capabilities.models.providers.bridge import BadBridgedModel, asked
from leadline.capabilities.models.providers.calling import ProviderAdapter, Route
from leadline.capabilities.models.providers.formats import adapter_for
from leadline.capabilities.models.providers.http import HttpClient
from leadline.capabilities.models.providers.profiles import build_profile, shipped_profiles
from leadline.core.clock import Clock
from leadline.core.llm.assembler import Assembler, Completion
from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.messages import (
    AssistantMessage,
    Conversation,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from leadline.core.llm.request import CHAT, CallConfig, LlmRequest, ModelRef, ToolSchema
from leadline.testing.conformance.llm_adapter import CHECKS, Check
from leadline.testing.provider_server import Behaviour, CallSpec, ProviderServer, ServerWindow
from leadline.testing.researcher import ScriptedResearcher, topics, write_corpus

pytest.importorskip("any_llm", reason="the extra leadline[bridge] is not installed")
pytestmark = pytest.mark.anyio

THEIRS = ("openai", "anthropic")
"""Two providers of the library that speak differently and need nothing but it."""
every_provider = pytest.mark.parametrize("provider", THEIRS)
TOOL = ToolSchema("search", "Find.", {"type": "object", "properties": {"q": {"type": "string"}}})
ASK = UserMessage("u1", (Text("How deep?"),))


def address(server: ProviderServer, provider: str) -> str:
    """What the library is told: its client of Anthropic adds the version by itself."""
    return server.base_url if provider == "openai" else server.base_url.removesuffix("/v1")


@asynccontextmanager
async def bridged(
    server: ProviderServer, provider: str, key: str | None = "sk-1", **settings: object
) -> AsyncGenerator[ProviderAdapter, None]:
    client = HttpClient()
    own = {"bridge": provider, "base_url": address(server, provider), **settings}
    profile = build_profile("bridge", shipped_profiles(), own)
    try:
        yield adapter_for(Route("theirs", profile, client, Clock(), lambda: key))
    finally:
        await client.aclose()


async def completed(
    adapter: ProviderAdapter, history: Sequence[Message] = (ASK,), tools: tuple[ToolSchema, ...] = (TOOL,)
) -> Completion:
    model = ModelRef("theirs", "m")
    request = LlmRequest(CallConfig(model, max_tokens=900), CHAT, "Be brief.", tools, Conversation(history))
    assembler = Assembler(producer=str(model))
    with anyio.fail_after(20):
        async for event in adapter.prepare(request).stream(idempotency_key="k"):
            assembler.add(event)
    return assembler.completion()


@every_provider
async def test_text_reasoning_calls_and_usage_arrive(provider: str) -> None:
    reply = Behaviour(
        reasoning="Two are wanted, it seems.",
        state="c2ln",
        text="Nine — 九 🚢.",
        calls=(CallSpec("search", {"q": "é"}, "c1"), CallSpec("search", {"q": "b"}, "c2")),
        chunk_chars=3,
    )
    async with ProviderServer([reply]) as server, bridged(server, provider) as adapter:
        done = await completed(adapter)
        charge = server.bill[0]
        headers = server.requests[0].headers
    assert (done.finish.state, done.text) == ("done", "Nine — 九 🚢.")
    assert [(one.id, one.name, json.loads(one.arguments)) for one in done.tool_calls] == [
        ("c1", "search", {"q": "é"}),
        ("c2", "search", {"q": "b"}),
    ]
    thoughts = "".join(part.text for part in done.content if isinstance(part, Reasoning))
    assert thoughts == "Two are wanted, it seems."
    assert (done.usage.prompt, done.usage.completion) == (charge.prompt_tokens, charge.completion_tokens)
    assert "sk-1" in (headers.get("authorization", "") + headers.get("x-api-key", ""))


@every_provider
async def test_a_conversation_with_calls_and_results_reaches_the_provider(provider: str) -> None:
    called = AssistantMessage("a1", (Text("Looking."), ToolCall("c1", "search", '{"q":"é"}')), "theirs/m")
    history = (ASK, called, ToolMessage("t1", "c1", "search", "nine fathoms"))
    async with ProviderServer(["Nine."]) as server, bridged(server, provider) as adapter:
        assert (await completed(adapter, history)).text == "Nine."
        (request,) = server.requests
    assert request.tools == ("search",)
    assert request.model == "m"
    assert [one["content"] for one in request.messages if one["role"] == "tool"] == ["nine fathoms"]


@every_provider
@pytest.mark.parametrize(
    ("behaviour", "family", "code"),
    [
        (Behaviour("rate_limit", retry_after="7"), Wait, "RATE_LIMIT"),
        (Behaviour("server_error"), Wait, "SERVER"),
        (Behaviour("service_unavailable"), Wait, "OVERLOADED"),
        (Behaviour("auth_error"), Stop, "AUTH"),
        (Behaviour("quota_exceeded"), Stop, "QUOTA"),
        (Behaviour("invalid_request"), Stop, "INVALID_REQUEST"),
        (Behaviour("context_overflow"), Stop, "CONTEXT_WINDOW_EXCEEDED"),
        (Behaviour("connection_reset"), Wait, "TRANSPORT"),
    ],
    ids=lambda one: one.kind if isinstance(one, Behaviour) else "",
)
async def test_a_refusal_has_its_family_and_is_not_tried_again_by_the_library(
    provider: str, behaviour: Behaviour, family: type, code: str
) -> None:
    async with ProviderServer([behaviour, "no"]) as server, bridged(server, provider) as adapter:
        failure = (await completed(adapter)).finish.failure
        assert len(server.requests) == 1
    assert failure is not None
    assert isinstance(failure, family), failure
    assert failure.code == code
    if code == "RATE_LIMIT":
        assert isinstance(failure, Wait)
        assert failure.retry_after_s == 7


@every_provider
@pytest.mark.parametrize(
    "kind", ["truncated", "partial_eof", "partial_disconnect", "stall", "stall_before_headers", "error_event"]
)
async def test_an_answer_that_breaks_off_runs_nothing(provider: str, kind: str) -> None:
    calls = (CallSpec("search", {"q": "a long one, so that it comes in pieces"}, "c1"),)
    behaviour = Behaviour(kind, calls=calls, chunk_chars=2)  # pyright: ignore[reportArgumentType]  # one of them
    async with (
        ProviderServer([behaviour]) as server,
        bridged(server, provider, idle_timeout_s=0.4) as adapter,
    ):
        done = await completed(adapter)
    assert done.finish.state in ("error", "incomplete")
    assert isinstance(done.finish.failure, Wait), done.finish
    assert done.tool_calls == ()


@every_provider
async def test_a_ceiling_and_a_refusal_are_told_as_such(provider: str) -> None:
    replies = [Behaviour("max_tokens", text="Ni"), Behaviour("refused", text="No.")]
    async with ProviderServer(replies) as server, bridged(server, provider) as adapter:
        assert (await completed(adapter)).finish.state == "length"
        assert (await completed(adapter)).finish.state == "refused"


async def test_the_window_that_a_refusal_names_is_known() -> None:
    window = ServerWindow(tokens=40)
    async with ProviderServer(["x"], window=window) as server, bridged(server, "openai") as adapter:
        failure = (await completed(adapter)).finish.failure
    assert isinstance(failure, Stop)
    assert failure.window_tokens == 40


@pytest.mark.parametrize("streaming", [True, False])
async def test_an_answer_in_one_piece_is_the_same(streaming: bool) -> None:
    reply = Behaviour(text="Nine.", calls=(CallSpec("search", {"q": "a"}, "c1"),))
    async with ProviderServer([reply]) as server, bridged(server, "openai", streaming=streaming) as adapter:
        done = await completed(adapter)
    assert (done.text, [one.id for one in done.tool_calls]) == ("Nine.", ["c1"])
    assert done.usage.reported


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_it_keeps_the_promises_of_an_adapter(check: Check) -> None:
    reply = Behaviour(text="Nine fathoms.", reasoning="hm", chunk_chars=2, calls=(CallSpec("lookup"),))
    async with ProviderServer(lambda _: reply) as server, bridged(server, "openai") as adapter:
        await check(adapter)


async def test_a_key_that_is_missing_and_a_provider_that_is_unknown_say_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with ProviderServer(["x"]) as server:
        async with bridged(server, "openai", key=None) as adapter:
            missing = (await completed(adapter)).finish.failure
        async with bridged(server, "nobody") as adapter:
            unknown = (await completed(adapter)).finish.failure
        async with bridged(server, "bedrock") as adapter:
            uninstalled = (await completed(adapter)).finish.failure
    assert isinstance(missing, Stop)
    assert (missing.code, "OPENAI_API_KEY" in str(missing.next_step)) == ("MISSING_CREDENTIAL", True)
    assert isinstance(unknown, Stop)
    assert (unknown.code, "bridge/PROVIDER/MODEL" in str(unknown.next_step)) == ("NOT_FOUND", True)
    assert isinstance(uninstalled, Stop)
    assert (uninstalled.code, "any-llm-sdk[bedrock]" in uninstalled.message) == ("UNSUPPORTED", True)


async def test_without_the_library_the_message_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "any_llm", None)
    async with ProviderServer(["x"]) as server, bridged(server, "openai") as adapter:
        failure = (await completed(adapter)).finish.failure
    assert isinstance(failure, Stop)
    assert (failure.code, "leadline[bridge]" in str(failure.next_step)) == ("UNSUPPORTED", True)


def test_a_model_names_its_provider_where_the_profile_does_not() -> None:
    profile = build_profile("bridge", shipped_profiles())
    found = asked(profile, b'{"model":"cohere/command-a/x","messages":[]}')
    assert (found.provider, found.options["model"]) == ("cohere", "command-a/x")
    with pytest.raises(BadBridgedModel, match="bridge/PROVIDER/MODEL"):
        asked(profile, b'{"model":"command-a","messages":[]}')


async def test_a_key_is_given_to_nobody_but_the_one_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-theirs")
    async with ProviderServer(["x"]) as server, bridged(server, "", key="sk-other") as adapter:
        model = ModelRef("bridge", "openai/m")
        request = LlmRequest(CallConfig(model), CHAT, "", (), Conversation((ASK,)))
        client = adapter.prepare(request)
        async for _ in client.stream():
            pass
        (seen,) = server.requests
    assert seen.headers["authorization"] == "Bearer sk-theirs"
    assert "sk-other" not in str(seen.headers)


async def test_a_research_run_works_over_the_bridge(tmp_path: Path) -> None:
    known = topics(2)
    write_corpus(tmp_path / "share", known)
    async with ProviderServer(ScriptedResearcher(known)) as server:
        theirs = {"profile": "bridge", "base_url": address(server, "anthropic"), "api_key": "sk-1"}
        row = {
            "id": "models",
            "merge": {"providers": {"theirs": {**theirs, "settings": {"bridge": "anthropic"}}}},
        }
        patch = tmp_path / "patch.yml"
        patch.write_text(json.dumps([row]))
        async with Leadline(model="theirs/m", home=tmp_path / "home", patches=[patch]) as app:
            with anyio.fail_after(60):
                result = await app.research("How much water?", corpus=[tmp_path / "share"], breadth="broad")
    assert result.status == "completed", (result.error, result.notes)
    assert "litres of water" in (result.report or "")
    assert {request.path for request in server.requests} == {"/v1/messages"}


def test_nothing_of_the_library_is_imported_before_it_is_used() -> None:
    code = (
        "import sys, leadline.capabilities.models.providers.bridge as b;"
        "assert not {'any_llm', 'openai', 'anthropic'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
