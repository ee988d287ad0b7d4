"""Every wire format over real HTTP on loopback: what is sent, and what becomes of refusals, silence and loss."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from leadline.capabilities.models.plugin import plugin as models_plugin
from leadline.capabilities.models.providers.calling import ProviderAdapter, Route
from leadline.capabilities.models.providers.formats import adapter_for
from leadline.capabilities.models.providers.http import HttpClient
from leadline.capabilities.models.providers.profiles import build_profile, shipped_profiles
from leadline.core.agent.spec import AgentSpec
from leadline.core.clock import Clock
from leadline.core.llm.adapter import Models
from leadline.core.llm.assembler import Assembler, Completion
from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.messages import Conversation, Text, UserMessage
from leadline.core.llm.request import CHAT, CallConfig, LlmRequest, ModelRef
from leadline.core.llm.stream import Finish
from leadline.core.loop.audit import audit
from leadline.core.session.events import TurnEnd
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import Tool, ToolOutput
from leadline.testing.agents import agent_stack
from leadline.testing.conformance.llm_adapter import CHECKS, Check
from leadline.testing.wires import WIRES, Said, WireSpeech, wire_bytes

pytestmark = pytest.mark.anyio

_MAKE = {
    "openai-chat": ("deepseek", "/chat/completions", "authorization", "Bearer sk-1"),
    "anthropic-messages": ("anthropic", "/messages", "x-api-key", "sk-1"),
    "gemini": ("gemini", "/models/m:streamGenerateContent?alt=sse", "x-goog-api-key", "sk-1"),
    "openai-responses": ("openai-responses", "/responses", "authorization", "Bearer sk-1"),
}
every_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.api)
CALLS = (("c1", "search", '{"q":"x"}'), ("c2", "read", "{}"))
SCHEMA: Mapping[str, object] = {"type": "object", "properties": {"q": {"type": "string"}}}
ANSWERED = Said(text="Nine fathoms.")
SAID = Said(text="Nine fathoms.", calls=(("c1", "search", "{}"),), piece=4)


@dataclass
class Server:
    """Answers every request with the same bytes, then closes, or hangs."""

    parts: Sequence[bytes]
    hang: bool = False
    then: Sequence[Sequence[bytes]] = ()
    """Answers to the second request and those behind it."""
    url: str = ""
    seen: list[tuple[str, Mapping[str, str], bytes]] = field(
        default_factory=list[tuple[str, Mapping[str, str], bytes]]
    )

    async def serve(self, stream: SocketStream) -> None:
        async with stream:
            got = b""
            while b"\r\n\r\n" not in got:
                got += await stream.receive()
            head, _, body = got.partition(b"\r\n\r\n")
            first, *lines = head.decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            while len(body) < int(headers.get("content-length", "0")):
                body += await stream.receive()
            self.seen.append((first.split(" ")[1], headers, body))
            for part in (self.parts, *self.then)[min(len(self.seen) - 1, len(self.then))]:
                await stream.send(part)
            if self.hang:
                await anyio.sleep_forever()


def http(status: str, content_type: str, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


STREAM = http("200 OK", "text/event-stream; charset=utf-8")


@asynccontextmanager
async def listening(server: Server) -> AsyncGenerator[None, None]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as serving:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        server.url = f"http://127.0.0.1:{port}"
        serving.start_soon(listener.serve, server.serve)
        yield
        serving.cancel_scope.cancel()


@asynccontextmanager
async def served(
    wire: WireSpeech, *parts: bytes, hang: bool = False, key: str | None = "sk-1", **settings: object
) -> AsyncGenerator[tuple[Server, ProviderAdapter], None]:
    profile, *_ = _MAKE[wire.api]
    server, client = Server(parts, hang), HttpClient()
    async with listening(server):
        built = build_profile(profile, shipped_profiles(), {"base_url": server.url, **settings})
        try:
            yield server, adapter_for(Route("p", built, client, Clock(), lambda: key))
        finally:
            await client.aclose()


def request() -> LlmRequest:
    conversation = Conversation([UserMessage("u1", (Text("How deep?"),))])
    return LlmRequest(CallConfig(ModelRef("p", "m")), CHAT, "s", (), conversation)


async def completed(adapter: ProviderAdapter) -> Completion:
    assembler, ends = Assembler(producer="p/m"), 0
    with anyio.fail_after(20):
        async for event in adapter.prepare(request()).stream(idempotency_key="key-1"):
            assembler.add(event)
            ends += isinstance(event, Finish)
    assert ends == 1
    return assembler.completion()


@every_wire
async def test_the_request_carries_its_key_its_digest_and_its_idempotency_key(wire: WireSpeech) -> None:
    *_, path, header, value = _MAKE[wire.api]
    async with served(wire, STREAM, wire_bytes(wire.events(SAID))) as (server, adapter):
        done = await completed(adapter)
        digest = adapter.prepare(request()).digest
    ((seen, headers, body),) = server.seen
    assert (done.text, [call.id for call in done.tool_calls]) == ("Nine fathoms.", ["c1"])
    assert (seen, headers[header], headers["idempotency-key"]) == (path, value, "key-1")
    assert hashlib.sha256(body).hexdigest() == digest
    assert ("anthropic-version" in headers) == (wire.api == "anthropic-messages")


@every_wire
async def test_a_missing_key_is_told_before_a_byte_is_sent(wire: WireSpeech) -> None:
    async with served(wire, STREAM, key=None) as (server, adapter):
        failure = (await completed(adapter)).finish.failure
    assert isinstance(failure, Stop)
    assert (failure.code, server.seen) == ("MISSING_CREDENTIAL", [])
    assert failure.next_step is not None
    assert "_API_KEY" in failure.next_step


@every_wire
@pytest.mark.case("M28")
async def test_retry_after_of_a_refusal_is_kept(wire: WireSpeech) -> None:
    body = json.dumps({"error": {"message": "slow down", "type": "rate_limit_error"}}).encode()
    head = http("429 Too Many", "application/json", body, Retry_After="30", X_Request_Id="r-1")
    async with served(wire, head) as (_, adapter):
        failure = (await completed(adapter)).finish.failure
    assert isinstance(failure, Wait)
    assert (failure.code, failure.retry_after_s, failure.status) == ("RATE_LIMIT", 30, 429)
    assert failure.request_id == "r-1"


@every_wire
@pytest.mark.case("M51")
async def test_a_web_page_of_a_gateway_is_told_by_its_title(wire: WireSpeech) -> None:
    page = http("504 Gateway Timeout", "text/html", b"<html><title>504 Gateway Time-out</title>")
    async with served(wire, page) as (_, adapter):
        failure = (await completed(adapter)).finish.failure
    assert isinstance(failure, Wait)
    assert failure.message == "504 Gateway Time-out"


@every_wire
async def test_silence_ends_the_attempt_and_runs_nothing(wire: WireSpeech) -> None:
    half = wire_bytes(wire.events(SAID)[:4])
    async with served(wire, STREAM + half, hang=True, idle_timeout_s=0.1) as (_, adapter):
        done = await completed(adapter)
    assert isinstance(done.finish.failure, Wait)
    assert (done.finish.state, done.finish.failure.code) == ("incomplete", "TIMEOUT")
    assert done.tool_calls == ()


@every_wire
async def test_a_connection_that_ends_too_early_is_incomplete(wire: WireSpeech) -> None:
    data = wire_bytes(wire.events(SAID))
    async with served(wire, STREAM + data[: len(data) // 2]) as (_, adapter):
        done = await completed(adapter)
    assert (done.finish.state, done.tool_calls) == ("incomplete", ())


@every_wire
async def test_a_connection_that_stays_open_behind_the_end_holds_nobody_up(wire: WireSpeech) -> None:
    data = wire_bytes(wire.events(SAID))
    async with served(wire, STREAM + data, hang=True, linger_s=0.1) as (_, adapter):
        done = await completed(adapter)
    assert (done.finish.state, len(done.tool_calls), done.usage) == ("done", 1, wire.usage)


@every_wire
async def test_a_reply_in_one_piece_is_read_too(wire: WireSpeech) -> None:
    whole = http("200 OK", "application/json", wire.whole(SAID))
    async with served(wire, whole, streaming=False) as (server, adapter):
        done = await completed(adapter)
    assert (done.text, len(done.tool_calls), done.usage) == ("Nine fathoms.", 1, wire.usage)
    if wire.api == "gemini":
        assert server.seen[0][0] == "/models/m:generateContent"


@every_wire
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_promises_of_an_adapter_are_kept(wire: WireSpeech, check: Check) -> None:
    async with served(wire, STREAM, wire_bytes(wire.events(SAID))) as (_, adapter):
        await check(adapter)


_RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
_PER_DAY = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}


@pytest.mark.parametrize(
    ("api", "status", "error", "code", "wait_s"),
    [
        (
            "anthropic-messages",
            529,
            {"type": "overloaded_error", "message": "Overloaded"},
            "OVERLOADED",
            None,
        ),
        ("anthropic-messages", 401, {"type": "authentication_error", "message": "invalid"}, "AUTH", None),
        (
            "anthropic-messages",
            400,
            {"type": "invalid_request_error", "message": "Your credit balance is too low to access the API."},
            "QUOTA",
            None,
        ),
        (
            "anthropic-messages",
            400,
            {"type": "invalid_request_error", "message": "prompt is too long: 2 tokens > 1 maximum"},
            "CONTEXT_WINDOW_EXCEEDED",
            None,
        ),
        ("anthropic-messages", 404, {"type": "not_found_error", "message": "model: m"}, "NOT_FOUND", None),
        (
            "gemini",
            400,
            {"code": 400, "status": "INVALID_ARGUMENT", "message": "API key not valid. Please pass one."},
            "AUTH",
            None,
        ),
        (
            "gemini",
            429,
            {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Slow.", "details": [_RETRY_INFO]},
            "RATE_LIMIT",
            34.5,
        ),
        (
            "gemini",
            429,
            {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "x", "details": [_PER_DAY, _RETRY_INFO]},
            "QUOTA",
            34.5,
        ),
        ("gemini", 503, {"code": 503, "status": "UNAVAILABLE", "message": "overloaded"}, "OVERLOADED", None),
        (
            "openai-responses",
            429,
            {"code": "insufficient_quota", "message": "You exceeded your current quota"},
            "QUOTA",
            None,
        ),
        (
            "openai-responses",
            429,
            {"code": "rate_limit_exceeded", "message": "Please try again in 1.5s."},
            "RATE_LIMIT",
            1.5,
        ),
        (
            "openai-responses",
            400,
            {"code": "context_length_exceeded", "message": "too long"},
            "CONTEXT_WINDOW_EXCEEDED",
            None,
        ),
    ],
)
async def test_a_providers_refusal_says_whether_to_wait_or_to_stop(
    api: str, status: int, error: Mapping[str, object], code: str, wait_s: float | None
) -> None:
    wire = next(wire for wire in WIRES if wire.api == api)
    body = json.dumps({"type": "error", "error": error}).encode()
    async with served(wire, http(f"{status} No", "application/json", body)) as (_, adapter):
        failure = (await completed(adapter)).finish.failure
    assert failure is not None
    assert failure.code == code
    asked = failure.retry_after_s if isinstance(failure, Wait) else failure.resets_in_s
    assert asked == wait_s


@every_wire
async def test_a_row_of_providers_chooses_the_wire_and_an_agent_works_over_it(
    wire: WireSpeech, tmp_path: Path
) -> None:
    """A call, its result, and the provider's state sent back with it, from configuration to the log."""
    called = Said(reasoning="hm", state="c2ln+/=", text="Looking.", calls=CALLS, piece=3)
    server = Server(
        [STREAM, wire_bytes(wire.events(called))], then=[[STREAM, wire_bytes(wire.events(ANSWERED))]]
    )
    async with listening(server):
        profile = _MAKE[wire.api][0]
        mine = {"profile": profile, "base_url": server.url, "api_key": "sk-1"}
        config = {"default": "mine/m", "providers": {"mine": mine}}
        async with agent_stack(tmp_path, models_plugin=(models_plugin, config)) as stack:

            async def body(arguments: object, call: ToolInvocation) -> ToolOutput:
                return ToolOutput({"depth": 9}, content="Nine.")

            for name in ("search", "read"):
                stack.tools.register(stack.ctx, Tool(name, f"{name}.", SCHEMA, body))
            agent = await stack.agents.create(AgentSpec())
            with anyio.fail_after(30):
                agent.send("How deep?")
                await agent.when_idle()
            (end,) = [line.as_(TurnEnd) for line in agent.session.logged if line.type == TurnEnd.TYPE]
            report = audit(agent.session, stack.ctx.get(Models))
    assert end.reason == "completed", end
    assert (report.ok, report.proved) == (True, 2)
    first, second = (body for *_, body in server.seen)
    assert second.startswith(first.removesuffix(b"]}"))
    assert second.count(b"Nine.") == 2
    assert (b"c2ln+/=" in second) == (wire.api != "openai-chat")
