"""Rate limits are read from the head of a response, in whatever words a provider has for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio
import pytest
from anyio.abc import SocketStream
from hypothesis import given
from hypothesis import strategies as st

from leadline.capabilities.models.providers.decode import ChatDecoder
from leadline.capabilities.models.providers.exchange import Exchange
from leadline.capabilities.models.providers.http import HttpClient, Reply
from leadline.capabilities.models.providers.profiles import build_profile, shipped_profiles
from leadline.capabilities.models.providers.rate_limits import rate_limits, seconds_until
from leadline.core.clock import Clock
from leadline.core.llm.assembler import Assembler
from leadline.core.llm.limits import Bucket, RateLimits
from leadline.core.llm.stream import Finish, LimitsReport, StreamEvent

NOW = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""


def _read(profile: str, headers: Mapping[str, str]) -> RateLimits | None:
    return rate_limits(build_profile(profile, shipped_profiles(), {}).rate_limits, headers, NOW)


# Constructed from what each provider publishes of its headers.
@pytest.mark.parametrize(
    ("profile", "headers", "requests", "tokens"),
    [
        (
            "openai",
            {
                "x-ratelimit-limit-requests": "60",
                "x-ratelimit-limit-tokens": "150000",
                "x-ratelimit-remaining-requests": "59",
                "x-ratelimit-remaining-tokens": "149984",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            Bucket(60, 59, 1.0, steady=True),
            Bucket(150000, 149984, 360.0, steady=True),
        ),
        (
            "azure",
            {"x-ratelimit-remaining-requests": "9", "x-ratelimit-remaining-tokens": "900"},
            Bucket(None, 9, None, steady=True),
            Bucket(None, 900, None, steady=True),
        ),
        (
            "groq",
            {
                "x-ratelimit-limit-requests": "14400",
                "x-ratelimit-limit-tokens": "18000",
                "x-ratelimit-remaining-requests": "14370",
                "x-ratelimit-remaining-tokens": "17997",
                "x-ratelimit-reset-requests": "2m59.56s",
                "x-ratelimit-reset-tokens": "7.66s",
            },
            Bucket(14400, 14370, 179.56, steady=True),
            Bucket(18000, 17997, 7.66, steady=True),
        ),
        (
            "anthropic",
            {
                "anthropic-ratelimit-requests-limit": "50",
                "anthropic-ratelimit-requests-remaining": "49",
                "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:12Z",
                "anthropic-ratelimit-tokens-limit": "40000",
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "2026-01-01T01:00:30+01:00",
            },
            Bucket(50, 49, 12.0, steady=True),
            Bucket(40000, 0, 30.0, steady=True),
        ),
        (
            "anthropic",
            {
                "anthropic-ratelimit-input-tokens-limit": "30000",
                "anthropic-ratelimit-input-tokens-remaining": "29000",
                "anthropic-ratelimit-input-tokens-reset": "2026-01-01T00:00:02Z",
            },
            None,
            Bucket(30000, 29000, 2.0, steady=True),
        ),
        (
            "openrouter",
            {
                "x-ratelimit-limit": "20",
                "x-ratelimit-remaining": "0",
                "x-ratelimit-reset": "1767225660000",
            },
            Bucket(20, 0, 60.0),
            None,
        ),
        (
            "mistral",
            {
                "x-ratelimit-limit-req-minute": "720",
                "x-ratelimit-remaining-req-minute": "717",
                "x-ratelimit-limit-tokens-minute": "5000000",
                "x-ratelimit-remaining-tokens-minute": "4999911",
            },
            Bucket(720, 717, 60.0),
            Bucket(5000000, 4999911, 60.0),
        ),
        (
            "together",
            {
                "x-ratelimit-limit": "60",
                "x-ratelimit-remaining": "57",
                "x-ratelimit-reset": "2",
                "x-tokenlimit-limit": "100000",
                "x-tokenlimit-remaining": "98500",
            },
            Bucket(60, 57, 2.0),
            Bucket(100000, 98500, 2.0),
        ),
        (
            "local",
            {"ratelimit-limit": "100, 100;w=60", "ratelimit-remaining": "50", "ratelimit-reset": "30"},
            Bucket(100, 50, 30.0),
            None,
        ),
        (
            "local",
            {"ratelimit": '"burst";r=50;t=30, "day";r=3;t=900', "ratelimit-policy": '"burst";q=100;w=60,"day";q=9;w=86400'},
            Bucket(9, 3, 900.0),
            None,
        ),
        ("local", {"ratelimit": '"default";r=0', "ratelimit-policy": '"default";q=10;w=60'}, Bucket(10, 0, 60.0), None),
    ],
)  # fmt: skip
def test_the_headers_of_a_provider_are_understood(
    profile: str, headers: Mapping[str, str], requests: Bucket | None, tokens: Bucket | None
) -> None:
    found = _read(profile, headers)
    assert found is not None
    assert (found.requests, found.tokens) == (requests, tokens)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/event-stream"},
        {"x-ratelimit-remaining-requests": ""},
        {"x-ratelimit-remaining-requests": "unlimited"},
        {"x-ratelimit-remaining-requests": "-1"},
        {"x-ratelimit-remaining-requests": "1" * 400},
        {"x-ratelimit-reset-requests": "10"},
        {"ratelimit": "none"},
    ],
)
def test_what_says_nothing_is_nothing(headers: Mapping[str, str]) -> None:
    assert _read("local", headers) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0.0),
        ("0", 0.0),
        ("120ms", 0.12),
        ("1h2m3s", 3723.0),
        ("30.5", 30.5),
        ("1767225610", 10.0),
        ("1767225500", 0.0),
        ("Thu, 01 Jan 2026 00:00:10 GMT", 10.0),
        ("2026-01-01T00:00:10", 10.0),
        ("-3", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("3 apples", None),
        ("9999-99-99", None),
        ("", None),
    ],
)
def test_a_reset_may_be_a_length_of_time_or_a_moment(text: str, seconds: float | None) -> None:
    assert seconds_until(text, NOW) == (None if seconds is None else pytest.approx(seconds))


@given(
    st.text(max_size=40),
    st.sampled_from(
        ("ratelimit", "ratelimit-policy", "x-ratelimit-reset-requests", "x-ratelimit-remaining-tokens")
    ),
)
def test_no_header_raises(text: str, name: str) -> None:
    found = _read("local", {"x-ratelimit-remaining-requests": "5", name: text})
    assert found is not None
    assert found.requests is None or found.requests.resets_in_s is None or found.requests.resets_in_s >= 0


_CHUNK = b'data: {"choices":[{"delta":{"content":"Nine."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


async def _events(status: str, headers: Mapping[str, str], body: bytes) -> Sequence[StreamEvent]:
    """What comes of one response that a server on loopback gives."""
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    answer = f"HTTP/1.1 {status}\r\nConnection: close\r\n{head}\r\n".encode() + body

    async def serve(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(answer)

    events: list[StreamEvent] = []
    profile, clock, client = build_profile("openai", shipped_profiles(), {}), Clock(), HttpClient()
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as serving:
        serving.start_soon(listener.serve, serve)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        reply = await client.post(f"http://127.0.0.1:{port}/", {}, b"{}", proxy=None, timeout_s=20)
        assert isinstance(reply, Reply)
        exchange = Exchange(profile, clock, ChatDecoder(profile), reply, clock.monotonic() + 20)

        while not exchange.ended:
            events += await exchange.advance()
        reply.close()
        await client.aclose()
        serving.cancel_scope.cancel()
    return events


_LEFT = {"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "2s"}
_REPORT = LimitsReport(RateLimits(requests=Bucket(None, 3, 2.0, steady=True)))


@pytest.mark.anyio
async def test_an_answer_begins_with_what_its_head_says_about_limits() -> None:
    events = await _events("200 OK", {"Content-Type": "text/event-stream", **_LEFT}, _CHUNK)
    assert events[0] == _REPORT
    assert sum(isinstance(event, LimitsReport) for event in events) == 1
    assembler = Assembler()
    for event in events:
        assembler.add(event)
    assert (assembler.completion().text, assembler.completion().limits) == ("Nine.", _REPORT.limits)


@pytest.mark.anyio
async def test_a_refusal_says_what_its_head_says_about_limits() -> None:
    said = {"Content-Type": "application/json", "Retry-After": "7", **_LEFT}
    report, finish = await _events("429 Too Many Requests", said, b'{"error":{"message":"slow down"}}')
    assert report == _REPORT
    assert isinstance(finish, Finish)
    assert finish.failure is not None
    assert finish.failure.code == "RATE_LIMIT"


@pytest.mark.anyio
async def test_an_answer_whose_head_says_nothing_reports_nothing() -> None:
    events = await _events("200 OK", {"Content-Type": "text/event-stream"}, _CHUNK)
    assert not any(isinstance(event, LimitsReport) for event in events)
