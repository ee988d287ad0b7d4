"""The adapter over real HTTP, against a provider that plays faults."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

import anyio
import pytest

from leadline import __version__
from leadline.capabilities.models.providers.calling import ProviderAdapter, Route
from leadline.capabilities.models.providers.formats import adapter_for
from leadline.capabilities.models.providers.http import HttpClient, proxy_for
from leadline.capabilities.models.providers.profiles import build_profile, shipped_profiles
from leadline.core.clock import Clock
from leadline.core.llm.assembler import Assembler, Completion
from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.messages import AssistantMessage, Conversation, Reasoning, Text, ToolCall, UserMessage
from leadline.core.llm.request import CHAT, CallConfig, LlmRequest, ModelRef, ToolSchema
from leadline.core.llm.stream import Finish, TextDelta
from leadline.core.llm.usage import Usage
from leadline.testing.provider_server import Behaviour, CallSpec, ProviderServer

pytestmark = pytest.mark.anyio

ASK = Conversation([UserMessage("u1", (Text("hello"),))])
SEARCH = ToolSchema("search", "Find.", {"type": "object"})


def request(conversation: Conversation = ASK, *, tools: bool = True) -> LlmRequest:
    return LlmRequest(CallConfig(ModelRef("p", "m")), CHAT, "s", (SEARCH,) if tools else (), conversation)


@asynccontextmanager
async def reached(
    base_url: str, profile: str = "local", key: str | None = "secret", **settings: object
) -> AsyncGenerator[ProviderAdapter, None]:
    client = HttpClient()
    built = build_profile(profile, shipped_profiles(), {**settings, "base_url": base_url})
    try:
        yield adapter_for(Route("p", built, client, Clock(), lambda: key))
    finally:
        await client.aclose()


async def completed(
    adapter: ProviderAdapter, asked: LlmRequest | None = None, key: str | None = None
) -> Completion:
    assembler, ends = Assembler(producer="p/m"), 0
    async for event in adapter.prepare(asked or request()).stream(idempotency_key=key):
        assembler.add(event)
        ends += isinstance(event, Finish)
    assert ends == 1
    return assembler.completion()


async def played(*replies: Behaviour | str, **settings: object) -> Completion:
    async with (
        ProviderServer(replies) as server,
        reached(server.base_url, "local", None, **settings) as adapter,
    ):
        return await completed(adapter)


async def test_text_reasoning_calls_and_usage_arrive() -> None:
    reply = Behaviour(
        text="Looking.", reasoning="hm", calls=(CallSpec("search", {"q": "x"}, "c1"),), chunk_chars=2,
        usage={"prompt_tokens": 100, "completion_tokens": 20, "prompt_cache_hit_tokens": 64,
               "completion_tokens_details": {"reasoning_tokens": 8}},
    )  # fmt: skip
    for streaming in (True, False):
        done = await played(reply, streaming=streaming)
        assert done.content == (
            Reasoning("hm", None, "p/m"),
            Text("Looking."),
            ToolCall("c1", "search", '{"q":"x"}'),
        )
        assert done.usage == Usage(input=36, cached_input=64, output=12, reasoning=8)
        assert (done.finish.state, done.finish.failure) == ("done", None)


async def test_the_body_that_is_sent_is_the_one_the_digest_names() -> None:
    async with ProviderServer(["one", "two"], strict=True) as server, reached(server.base_url) as adapter:
        call = adapter.prepare(request())
        async for _ in call.stream(idempotency_key="k-1"):
            pass
        longer = ASK.extended(
            AssistantMessage("a", (Text("one"),), "p/m"), UserMessage("u2", (Text("more"),))
        )
        await completed(adapter, request(longer))
    first, second = server.requests
    assert hashlib.sha256(first.raw).hexdigest() == call.digest
    assert second.raw.startswith(first.raw.removesuffix(b"]}"))
    assert first.headers["authorization"] == "Bearer secret"
    assert first.headers["user-agent"] == f"leadline/{__version__}"
    assert first.headers["idempotency-key"] == "k-1"
    assert "idempotency-key" not in second.headers
    assert first.path == "/v1/chat/completions"


async def test_one_connection_serves_requests_that_follow_each_other() -> None:
    async with ProviderServer(["a", "b", "c"]) as server, reached(server.base_url) as adapter:
        for _ in range(3):
            await completed(adapter)
        assert server.connections == 1


async def test_a_hundred_calls_at_once_each_have_a_connection() -> None:
    async with (
        ProviderServer(["ok"] * 100, latency_s=0.05) as server,
        reached(server.base_url) as adapter,
    ):
        done: list[Completion] = []

        async def one() -> None:
            done.append(await completed(adapter))

        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(one)
        assert [completion.text for completion in done] == ["ok"] * 100
        assert server.connections == 100


@pytest.mark.parametrize(
    ("kind", "state", "family", "code"),
    [
        ("connection_reset", "error", Wait, "TRANSPORT"),
        ("stream_disconnect", "error", Wait, "STREAM_CLOSED"),
        ("partial_disconnect", "incomplete", Wait, "STREAM_CLOSED"),
        ("empty_body", "error", Wait, "EMPTY_RESPONSE"),
        ("stream_eof", "error", Wait, "EMPTY_RESPONSE"),
        ("partial_eof", "incomplete", Wait, "STREAM_CLOSED"),
        ("malformed_json", "error", Wait, "MALFORMED_RESPONSE"),
        ("malformed_event", "error", Wait, "MALFORMED_RESPONSE"),
        ("error_event", "error", Wait, "SERVER"),
        ("wrong_content_type", "error", Wait, "MALFORMED_RESPONSE"),
        ("rate_limit", "error", Wait, "RATE_LIMIT"),
        ("server_error", "error", Wait, "SERVER"),
        ("service_unavailable", "error", Wait, "OVERLOADED"),
        ("auth_error", "error", Stop, "AUTH"),
        ("invalid_request", "error", Stop, "INVALID_REQUEST"),
        ("context_overflow", "error", Stop, "CONTEXT_WINDOW_EXCEEDED"),
        ("quota_exceeded", "error", Stop, "QUOTA"),
    ],
)
async def test_every_fault_ends_as_a_value_of_its_family(
    kind: str, state: str, family: type, code: str
) -> None:
    done = await played(Behaviour(kind))  # pyright: ignore[reportArgumentType]
    assert done.finish.state == state
    assert isinstance(done.finish.failure, family)
    assert done.finish.failure is not None
    assert done.finish.failure.code == code
    assert done.tool_calls == ()


@pytest.mark.case("M51")
async def test_a_web_page_of_a_gateway_is_shortened_and_waited_for() -> None:
    done = await played(Behaviour("html_error"))
    assert done.finish.failure == Wait("SERVER", "504 Gateway Time-out", status=504)


async def test_a_web_page_in_place_of_a_completion_points_at_the_base_url() -> None:
    failure = (await played(Behaviour("html_error", status=200))).finish.failure
    assert failure is not None
    assert "check base_url" in failure.message
    assert "504 Gateway Time-out" in failure.message


async def test_an_empty_answer_that_ends_properly_is_done() -> None:
    done = await played(Behaviour("empty"))
    assert (done.finish.state, done.empty) == ("done", True)


@pytest.mark.case("M43")
@pytest.mark.parametrize("streaming", [True, False])
async def test_an_answer_cut_by_the_ceiling_says_length_and_keeps_usage(streaming: bool) -> None:
    reply = Behaviour("max_tokens", text="half", usage={"prompt_tokens": 10, "completion_tokens": 20})
    done = await played(reply, streaming=streaming)
    assert (done.finish.state, done.usage) == ("length", Usage(input=10, output=20))


@pytest.mark.case("M28")
async def test_retry_after_reaches_the_caller() -> None:
    failure = (await played(Behaviour("rate_limit", retry_after="30"))).finish.failure
    assert isinstance(failure, Wait)
    assert failure.retry_after_s == 30.0


async def test_a_silent_stream_is_given_up_after_the_idle_time() -> None:
    done = await played(Behaviour("stall", text="begun"), idle_timeout_s=1.0)
    assert (done.finish.state, done.text) == ("incomplete", "begun")
    assert done.finish.failure == Wait("TIMEOUT", "the provider was silent for 1 s")


async def test_a_stream_that_never_ends_is_given_up_after_the_whole_time() -> None:
    reply = Behaviour("slow_success", text="x" * 200, chunk_chars=1, delay_s=0.01)
    done = await played(reply, total_timeout_s=0.7)
    assert (done.finish.state, isinstance(done.finish.failure, Wait)) == ("incomplete", True)


async def test_the_time_a_consumer_takes_is_not_silence_of_the_provider() -> None:
    reply = Behaviour("slow_success", text="abcdef", chunk_chars=1, delay_s=0.01)
    async with (
        ProviderServer([reply]) as server,
        reached(server.base_url, idle_timeout_s=0.8) as adapter,
    ):
        assembler, paused = Assembler(), False
        async for event in adapter.prepare(request()).stream():
            assembler.add(event)
            if isinstance(event, TextDelta) and not paused:
                paused = True
                await anyio.sleep(1.0)
        done = assembler.completion()
    assert (done.finish.state, done.text) == ("done", "abcdef")


async def test_a_server_that_keeps_the_socket_open_behind_the_end_is_not_waited_for() -> None:
    event = 'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
    reply = Behaviour("raw", message=event + "data: [DONE]\n\n" + ": more\n\n" * 3)
    assert (await played(reply)).finish.state == "done"


async def test_nothing_listening_is_a_transport_failure_that_names_the_place() -> None:
    async with ProviderServer() as server:
        url = server.base_url
    async with reached(url) as adapter:
        failure = (await completed(adapter)).finish.failure
    assert isinstance(failure, Wait)
    assert failure.code == "TRANSPORT"
    assert f"127.0.0.1:{server.port}" in failure.message


async def test_a_stream_left_early_closes_its_connection() -> None:
    reply = Behaviour("slow_success", text="abcdef" * 20, chunk_chars=1, delay_s=0.01)
    async with ProviderServer([reply, "next"]) as server, reached(server.base_url) as adapter:
        async with aclosing(adapter.prepare(request()).stream()) as events:
            async for _ in events:
                break
        assert (await completed(adapter)).text == "next"


async def test_a_cancelled_call_stops_and_the_client_serves_on() -> None:
    async with (
        ProviderServer([Behaviour("stall"), "next"]) as server,
        reached(server.base_url) as adapter,
    ):
        with anyio.move_on_after(0.1) as scope:
            await completed(adapter)
        assert scope.cancelled_caught
        assert (await completed(adapter)).text == "next"


async def test_calls_without_results_are_refused_before_anything_is_sent() -> None:
    broken = ASK.extended(AssistantMessage("a", (ToolCall("c", "search", "{}"),), "p/m"))
    async with ProviderServer(["x"]) as server, reached(server.base_url) as adapter:
        failure = (await completed(adapter, request(broken))).finish.failure
        assert server.requests == []
    assert isinstance(failure, Stop)
    assert failure.code == "INVALID_REQUEST"


async def test_a_missing_key_says_which_variable_to_set() -> None:
    async with ProviderServer(["x"]) as server, reached(server.base_url, "deepseek", key=None) as adapter:
        failure = (await completed(adapter)).finish.failure
        assert server.requests == []
    assert isinstance(failure, Stop)
    assert failure.code == "MISSING_CREDENTIAL"
    assert "DEEPSEEK_API_KEY" in str(failure.next_step)


async def test_a_local_server_needs_no_key() -> None:
    async with ProviderServer(["x"]) as server, reached(server.base_url, key=None) as adapter:
        assert (await completed(adapter)).text == "x"
        assert "authorization" not in server.requests[0].headers


async def test_a_key_that_cannot_be_a_header_is_an_auth_stop() -> None:
    async with ProviderServer(["x"]) as server, reached(server.base_url, key="a\nb") as adapter:
        failure = (await completed(adapter)).finish.failure
    assert isinstance(failure, Stop)
    assert failure.code == "AUTH"


async def test_the_key_is_in_no_representation() -> None:
    async with reached("http://127.0.0.1:1/v1", key="sk-very-secret") as adapter:
        call = adapter.prepare(request())
        assert "sk-very-secret" not in repr(adapter) + repr(call) + str(vars(adapter))


@pytest.mark.case("M39")
@pytest.mark.parametrize("parse", [True, False])
async def test_a_call_leaked_as_text_is_run_or_flagged(parse: bool) -> None:
    leak = '<tool_call>{"name":"search","arguments":{"q":"x"}}</tool_call>'
    done = await played(Behaviour(text=leak, chunk_chars=4), text_tool_calls={"parse": parse})
    assert [call.name for call in done.tool_calls] == (["search"] if parse else [])
    assert done.finish.leaked_call is not parse


@pytest.mark.case("M40")
async def test_residue_beside_real_calls_is_dropped() -> None:
    reply = Behaviour(text=">\n</tool_call>", calls=(CallSpec("search", {}, "c1"),), chunk_chars=2)
    assert (await played(reply)).content == (ToolCall("c1", "search", "{}"),)


@pytest.mark.case("M50")
@pytest.mark.parametrize("name", ["OpenAI", "deepseek", "anything at all"])
async def test_the_providers_name_changes_nothing_but_its_name(name: str) -> None:
    profile = build_profile("deepseek", shipped_profiles())
    adapter = adapter_for(Route(name, profile, HttpClient(), Clock(), lambda: None))
    plain = adapter_for(Route("p", profile, HttpClient(), Clock(), lambda: None))
    assert adapter.provider == name
    assert adapter.info("gpt-5") == plain.info("gpt-5")
    assert adapter.prepare(request()).digest == plain.prepare(request()).digest


async def test_a_body_of_megabytes_is_sent_whole() -> None:
    long = Conversation([UserMessage("u", (Text("x" * 3_000_000),))])
    async with ProviderServer(["ok"]) as server, reached(server.base_url) as adapter:
        assert (await completed(adapter, request(long))).text == "ok"
        assert len(server.requests[0].raw) > 3_000_000


def test_proxies_of_the_environment_are_used_but_never_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://us%40er:pw@proxy.test:3128")
    monkeypatch.setenv("http_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", "inside.test")
    found = proxy_for("https://api.test/v1")
    assert found is not None
    assert (found.url, found.user, found.password) == ("http://proxy.test:3128", "us@er", "pw")
    for url in (
        "http://127.0.0.1:8080/v1",
        "http://localhost/v1",
        "http://[::1]:1/v1",
        "https://inside.test/v1",
    ):
        assert proxy_for(url) is None
