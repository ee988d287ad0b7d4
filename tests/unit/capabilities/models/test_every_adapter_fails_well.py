"""Every adapter over real HTTP, the bridge too: each way in which a provider fails has one meaning, whatever it speaks."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import pytest

from leadline.capabilities.models.providers.calling import ProviderAdapter, Route
from leadline.capabilities.models.providers.formats import adapter_for
from leadline.capabilities.models.providers.http import HttpClient
from leadline.capabilities.models.providers.profiles import build_profile, shipped_profiles
from leadline.core.clock import Clock
from leadline.core.llm.assembler import Assembler, Completion
from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.messages import Conversation, Text, UserMessage
from leadline.core.llm.request import CHAT, CallConfig, LlmRequest, ModelRef, ToolSchema
from leadline.testing.provider_server import Behaviour, CallSpec, ProviderServer, ServerWindow
from leadline.testing.provider_server.counting import Lie

pytestmark = pytest.mark.anyio

TOOL = ToolSchema("save", "Save.", {"type": "object", "properties": {"text": {"type": "string"}}})
CALLS = (
    CallSpec("save", {"text": "one two three four five six seven eight"}, "c1"),
    CallSpec("save", {}, "c2"),
)


@dataclass(frozen=True)
class Spoken:
    """A provider by the wire format that it speaks."""

    name: str
    profile: str
    through: str = ""
    """Whose client the bridge uses."""

    def settings(self, server: ProviderServer) -> dict[str, object]:
        base_url = server.base_url.removesuffix("/v1") if self.through == "anthropic" else server.base_url
        return {"base_url": base_url, **({"bridge": self.through} if self.through else {})}


SPOKEN = (
    Spoken("chat", "deepseek"),
    Spoken("messages", "anthropic"),
    Spoken("gemini", "gemini"),
    Spoken("responses", "openai-responses"),
    Spoken("bridge-chat", "bridge", "openai"),
    Spoken("bridge-messages", "bridge", "anthropic"),
)
every_adapter = pytest.mark.parametrize("spoken", SPOKEN, ids=lambda one: one.name)


@pytest.fixture(autouse=True)
def library(request: pytest.FixtureRequest) -> None:
    if "bridge" in request.node.name:
        pytest.importorskip("any_llm", reason="the extra leadline[bridge] is not installed")


@asynccontextmanager
async def reached(
    spoken: Spoken, server: ProviderServer, **settings: object
) -> AsyncGenerator[ProviderAdapter, None]:
    client = HttpClient()
    profile = build_profile(
        spoken.profile,
        shipped_profiles(),
        {"idle_timeout_s": 0.6, "linger_s": 0.2, **spoken.settings(server), **settings},
    )
    try:
        yield adapter_for(Route("p", profile, client, Clock(), lambda: "sk-1"))
    finally:
        await client.aclose()


async def asked(spoken: Spoken, *replies: Behaviour, window: ServerWindow | None = None) -> Completion:
    """What becomes of one attempt, which is made once and no more."""
    request = LlmRequest(
        CallConfig(ModelRef("p", "m")),
        CHAT,
        "Be brief.",
        (TOOL,),
        Conversation((UserMessage("u", (Text("hi"),)),)),
    )
    async with ProviderServer(replies, window=window) as server, reached(spoken, server) as adapter:
        assembler = Assembler(producer="p/m")
        with anyio.fail_after(10):
            async for event in adapter.prepare(request).stream(idempotency_key="k"):
                assembler.add(event)
        assert len(server.requests) == 1
    return assembler.completion()


@every_adapter
@pytest.mark.parametrize(
    "kind",
    [
        "truncated",
        "partial_eof",
        "partial_disconnect",
        "stall",
        "error_event",
        "malformed_event",
        "max_tokens",
    ],
)
async def test_half_an_answer_runs_no_call(spoken: Spoken, kind: str) -> None:
    done = await asked(spoken, Behaviour(kind, text="Saving.", calls=CALLS, chunk_chars=3))  # pyright: ignore[reportArgumentType]  # one of them
    assert done.tool_calls == ()
    assert done.finish.state != "done"
    assert (done.finish.failure is None) == (kind == "max_tokens")


@every_adapter
@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        ("stream_eof", {"EMPTY_RESPONSE", "STREAM_CLOSED"}),
        ("stream_disconnect", {"STREAM_CLOSED", "TRANSPORT", "EMPTY_RESPONSE"}),
        ("connection_reset", {"TRANSPORT"}),
        ("stall_before_headers", {"TIMEOUT"}),
        ("stall", {"TIMEOUT"}),
        ("empty_body", {"EMPTY_RESPONSE", "STREAM_CLOSED"}),
        ("error_body", {"SERVER", "EMPTY_RESPONSE", "STREAM_CLOSED"}),
        ("error_event", {"SERVER"}),
        ("malformed_json", {"MALFORMED_RESPONSE", "SERVER"}),
        ("html_error", {"SERVER"}),
        ("server_error", {"SERVER"}),
        ("service_unavailable", {"OVERLOADED"}),
        ("rate_limit", {"RATE_LIMIT"}),
    ],
)
async def test_what_may_pass_is_waited_for(spoken: Spoken, kind: str, codes: set[str]) -> None:
    failure = (await asked(spoken, Behaviour(kind))).finish.failure  # pyright: ignore[reportArgumentType]  # one of them
    assert isinstance(failure, Wait), failure
    assert failure.code in codes
    assert failure.message


@every_adapter
@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("auth_error", "AUTH"),
        ("quota_exceeded", "QUOTA"),
        ("invalid_request", "INVALID_REQUEST"),
        ("context_overflow", "CONTEXT_WINDOW_EXCEEDED"),
    ],
)
async def test_what_will_not_pass_stops_at_once_and_says_what_to_do(
    spoken: Spoken, kind: str, code: str
) -> None:
    message = "prompt is too long: the input token count exceeds the maximum context length"
    behaviour = Behaviour(kind, message=message if kind == "context_overflow" else "")  # pyright: ignore[reportArgumentType]  # one of them
    failure = (await asked(spoken, behaviour)).finish.failure
    assert isinstance(failure, Stop), failure
    assert failure.code == code
    assert failure.next_step


@every_adapter
@pytest.mark.case("M26", "M28")
async def test_the_time_to_wait_is_the_one_that_was_said(spoken: Spoken) -> None:
    failure = (await asked(spoken, Behaviour("rate_limit", retry_after="11180"))).finish.failure
    assert isinstance(failure, Wait)
    assert failure.retry_after_s == 11180


@every_adapter
async def test_a_web_page_is_told_by_its_title_and_not_by_its_length(spoken: Spoken) -> None:
    failure = (await asked(spoken, Behaviour("html_error"))).finish.failure
    assert isinstance(failure, Wait)
    assert failure.status == 504
    if not spoken.through:
        assert failure.message == "504 Gateway Time-out"
    assert len(failure.message) < 600


@every_adapter
@pytest.mark.parametrize("kind", ["stall_after_finish", "truncated_after_finish"])
async def test_an_answer_that_is_whole_is_taken_though_its_stream_does_not_end(
    spoken: Spoken, kind: str
) -> None:
    done = await asked(spoken, Behaviour(kind, text="Saved.", calls=CALLS[:1]))  # pyright: ignore[reportArgumentType]  # one of them
    if (
        spoken.name == "chat"
    ):  # this provider promises an end mark, so that without it something may be missing
        assert done.finish.state == "incomplete"
        return
    assert (done.finish.state, done.text) == ("done", "Saved.")
    assert [call.id for call in done.tool_calls] == ["c1"]


@every_adapter
@pytest.mark.parametrize("lie", ["small", "large", "missing", "negative", "doubled", "scattered"])
async def test_no_report_of_usage_breaks_an_answer_or_is_added_up(spoken: Spoken, lie: Lie) -> None:
    true = (await asked(spoken, Behaviour(text="x" * 400))).usage
    done = await asked(spoken, Behaviour(text="x" * 400, lie=lie))
    if (spoken.name, lie) in (("bridge-messages", "missing"), ("bridge-chat", "scattered")):
        # The library refuses what breaks the types of the provider; that is told, and no answer is taken for whole.
        assert isinstance(done.finish.failure, Wait)
        return
    assert (done.finish.state, len(done.text)) == ("done", 400)
    counts = [done.usage.input, done.usage.cached_input, done.usage.output, done.usage.reasoning]
    assert all(count is None or count >= 0 for count in counts)
    assert true.completion == 100
    wanted = {"small": 10, "large": 1000, "doubled": 100, "scattered": 100}
    if lie in wanted:
        assert done.usage.completion == wanted[lie]


@every_adapter
@pytest.mark.case("M18", "M43")
async def test_the_usage_of_an_answer_that_was_cut_by_the_ceiling_is_kept(spoken: Spoken) -> None:
    done = await asked(spoken, Behaviour("max_tokens", text="x" * 400))
    assert (done.finish.state, done.usage.completion) == ("length", 100)


@every_adapter
@pytest.mark.case("M37")
async def test_an_empty_answer_is_a_proper_end_without_content(spoken: Spoken) -> None:
    done = await asked(spoken, Behaviour("empty"))
    assert (done.finish.state, done.empty, done.content) == ("done", True, ())


@every_adapter
@pytest.mark.case("M10")
@pytest.mark.parametrize("arguments", ["", "{}"])
async def test_a_call_without_arguments_has_an_empty_object(spoken: Spoken, arguments: str) -> None:
    if not arguments and spoken.name == "gemini":
        pytest.skip("arguments are an object there")
    done = await asked(spoken, Behaviour(calls=(CallSpec("save", arguments, "c1"),)))
    assert [(call.name, call.arguments) for call in done.tool_calls] == [("save", "{}")]


@every_adapter
@pytest.mark.parametrize("chunk_chars", [0, 1, 7])
async def test_every_way_of_cutting_an_answer_into_chunks_is_the_same_answer(
    spoken: Spoken, chunk_chars: int
) -> None:
    text = "Grüße aus 東京 🚢, neun Faden — 'done' <tag> \\u0041 \\n"
    calls = (CallSpec("save", {"text": text}, "c1"), CallSpec("save", {"n": [1, {"a": None}]}, "c2"))
    done = await asked(spoken, Behaviour("slow_success", text=text, calls=calls, chunk_chars=chunk_chars))
    assert done.text == text
    assert [(call.id, json.loads(call.arguments)) for call in done.tool_calls] == [
        ("c1", {"text": text}),
        ("c2", {"n": [1, {"a": None}]}),
    ]
